"""`handshake` on real servers, where the sets alone promise what does not arrive, or the reverse."""

import pytest

from compose import faults_history, faults_logs
from compose.faults import commit, table_on
from compose.faults_applier import await_received
from compose.native.installation import Installation
from compose.native.shapes import (
    Link,
    Pair,
    Topology,
    TopologyPlan,
    follow,
    follow_by_name,
    running,
    wait_for,
)
from gtid import GtidSet
from tests.topology.test_handshake_live import matrix_of
from topology.adapters.collect import collect_cluster
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Verdict
from topology.facts.source_answer import Outcome, SourceAnswer
from topology.handshake.matrix import handshake_matrix
from topology.handshake.offered_sets import answers_to_set
from topology.handshake.promotion import Promotion, PromotionStep, promotion_of
from topology.handshake.promotion_steps import promotion_steps
from topology.policy import Policy
from topology.readings.snapshot import ClusterSnapshot
from topology.readings.target import ServerTarget

_DIAMOND = TopologyPlan(
    names=("top", "a", "b", "low"),
    links=(Link(source="top", replica="a"), Link(source="top", replica="b")),
)


def read(topology: Topology, offered: GtidSet | None = None) -> ClusterSnapshot:
    """Read servers as the command does: for a set, or for every two of them."""
    targets = [
        ServerTarget(name=name, host=server.host, port=server.port, user="root")
        for name, server in topology.servers.items()
    ]
    return collect_cluster("shop", targets, offered=offered, pairs=offered is None)


def promoted(topology: Topology, candidate: str) -> tuple[Promotion, tuple[PromotionStep, ...]]:
    snapshot = read(topology)
    promotion = promotion_of(matrix_of(snapshot), candidate)
    return promotion, promotion_steps(promotion, snapshot)


def _answer_to(topology: Topology, offered: GtidSet, *, source: str) -> SourceAnswer:
    snapshot = read(topology, offered)
    found = answers_to_set(snapshot, audit_cluster(snapshot), Policy(), offered)
    return next(each for each in found.answers if each.source == source)


def test_what_carries_the_server_id_of_a_replica_arrives_after_its_step(chain97: Topology) -> None:
    dropped = GtidSet.parse(faults_history.equal_server_ids(chain97).dropped)
    last = chain97["last"]
    answer = matrix_of(read(chain97)).answer(replica="last", source="middle")
    assert (answer.outcome, answer.dropped) == (Outcome.INCOMPLETE, dropped)
    promotion, steps = promoted(chain97, "middle")
    assert promotion.verdict is Verdict.WARNING
    change, kept = [step for step in steps if step.server == "last"]
    assert "Do not point it to middle before the repair" in kept.what
    for statement in change.statements:
        last.execute(statement.replace("(a number that no other server has)", "9999"))
    wait_for(last, str(dropped))
    promotion, steps = promoted(chain97, "middle")
    assert promotion.verdict is Verdict.OK
    assert not any(step.server == "last" for step in steps)  # it follows the middle one already


def test_a_relay_log_that_was_not_read_is_not_deleted(chain97: Topology) -> None:
    """The source of the middle one is not read: only its relay log has the last transaction."""
    first, middle, last = chain97.servers.values()
    account = "audit@'127.0.0.1'"
    first.execute(
        f"CREATE USER {account}", f"GRANT REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO {account}"
    )
    wait_for(last, str(first.value("@@GLOBAL.gtid_executed")))
    middle.execute("STOP REPLICA SQL_THREAD")
    received = commit(first, "CREATE DATABASE last_copy")
    await_received(middle, received)
    policy = Policy(external_sources=frozenset({f"127.0.0.1:{first.port}"}))
    middle.execute(
        "SET SESSION sql_log_bin = OFF", f"REVOKE REPLICATION CLIENT ON *.* FROM {account}"
    )
    for user, verdict, said in (
        ("root", Verdict.CRITICAL, f"It has received {received} and not applied it."),
        ("audit", Verdict.UNKNOWN, "Not known: the channels"),
    ):
        targets = [
            ServerTarget(name=name, host=server.host, port=server.port, user=user)
            for name, server in (("last", last), ("middle", middle))
        ]
        snapshot = collect_cluster("shop", targets, pairs=True)
        audit = audit_cluster(snapshot, policy)
        promotion = promotion_of(handshake_matrix(snapshot, audit, policy), "last")
        steps = promotion_steps(promotion, snapshot)
        assert promotion.verdict is verdict
        [step] = [each for each in steps if each.server == "middle"]
        assert step.what.startswith(said)
        assert not any("CHANGE" in text for each in steps for text in each.statements)


@pytest.mark.slow
def test_a_gtid_made_by_hand_on_a_replica_arrives_on_its_owner(pair97: Pair) -> None:
    table_on(pair97.a, pair97.b, "made")
    pair97.a.execute(pair97.a.dialect.stop_replica)
    gtid = f"{pair97.a.value('@@GLOBAL.server_uuid')}:99"
    pair97.b.execute(
        f"SET gtid_next = '{gtid}'", "INSERT INTO made.t () VALUES ()", "SET gtid_next = AUTOMATIC"
    )
    answer = matrix_of(read(pair97)).answer(replica="a", source="b")
    assert (answer.outcome, answer.fetched) == (Outcome.SERVED, GtidSet.parse(gtid))
    pair97.b.execute(pair97.b.dialect.stop_replica)
    follow(pair97.a, pair97.b)
    wait_for(pair97.a, gtid)


@pytest.mark.slow
def test_a_replica_with_a_channel_from_the_candidate_keeps_its_channels(
    installation97: Installation,
) -> None:
    with running(installation97, _DIAMOND) as four:
        low = four["low"]
        for above in ("a", "b"):
            follow_by_name(low, four[above])
        written = commit(four["top"], "CREATE DATABASE kept")
        for name in ("a", "b", "low"):
            wait_for(four[name], written)
        promotion, steps = promoted(four, "a")
        assert promotion.verdict is Verdict.OK
        assert [step.server for step in steps] == ["", "b", "top", "a"]
        for step in steps:
            if step.server == "top":  # the account is the operator's
                follow(four["top"], four["a"])
            else:
                for statement in step.statements:
                    four[step.server].execute(statement)
        for name in ("top", "b", "low"):
            wait_for(four[name], commit(four["a"], f"CREATE DATABASE by_{name}"))
        assert audit_cluster(read(four)).verdict is Verdict.OK


@pytest.mark.slow
@pytest.mark.parametrize("is_listed", [True, False])
def test_a_log_that_is_missing_leaves_the_answer_to_its_consumer_open(
    pair97: Pair, *, is_listed: bool
) -> None:
    if is_listed:
        faults_logs.log_deleted(pair97)
    else:
        faults_logs.log_lost(pair97, is_passed=False)
    offered = GtidSet.parse(pair97.b.value("@@GLOBAL.gtid_executed"))
    first = _answer_to(pair97, offered, source="a")
    assert first.outcome is Outcome.UNKNOWN
    assert matrix_of(read(pair97)).answer(replica="b", source="a").outcome is Outcome.UNKNOWN
    # A set that has what the missing log had is served: the heads of the logs show that.
    later = commit(pair97.a, "CREATE DATABASE later")
    held = GtidSet.parse(pair97.a.value("@@GLOBAL.gtid_executed")) - GtidSet.parse(later)
    second = _answer_to(pair97, held, source="a")
    assert (second.outcome, second.fetched) == (Outcome.SERVED, GtidSet.parse(later))
    words = pair97.b.dialect
    pair97.a.execute(words.stop_replica)
    pair97.b.execute(words.words.reset_binary_logs_and_gtids, f"SET GLOBAL gtid_purged = '{held}'")
    follow(pair97.b, pair97.a)
    wait_for(pair97.b, later)


def test_what_a_server_committed_under_its_former_server_uuid_does_not_come_back(
    pair97: Pair,
) -> None:
    """a returns without its last transaction, as from a backup, with a new server_uuid."""
    a, b = pair97.a, pair97.b
    table_on(a, b, "back")
    a.execute("STOP REPLICA", "RESET REPLICA ALL")
    had = a.value("@@GLOBAL.gtid_executed")
    lost = commit(a, "INSERT INTO back.t (id) VALUES (100)")
    wait_for(b, lost)
    b.execute("STOP REPLICA", "RESET REPLICA ALL")
    a.execute(
        "RESET BINARY LOGS AND GTIDS",
        f"SET GLOBAL gtid_purged = '{had}'",
        "SET SESSION sql_log_bin = 0",
        "DELETE FROM back.t WHERE id = 100",
    )
    a.stop()
    (a.datadir / "auto.cnf").unlink()
    a.start()
    later = commit(b, "INSERT INTO back.t (id) VALUES (200)")
    answer = matrix_of(read(pair97)).answer(replica="a", source="b")
    assert (answer.outcome, answer.dropped) == (Outcome.INCOMPLETE, GtidSet.parse(lost))
    # And so it is.
    follow(a, b)
    wait_for(a, later)
    assert not a.query("SELECT 1 FROM back.t WHERE id = 100")

"""What `handshake` predicts, held against what real servers do: every server pointed to every other.

The texts are compared character by character, in both versions.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import permutations

import pymysql
import pytest

from compose.faults import await_status, commit
from compose.faults_applier import await_received
from compose.faults_content import restart_with
from compose.faults_handshake import four_that_differ
from compose.native.installation import Installation
from compose.native.load import write_load
from compose.native.provision import REPLICATION_USER
from compose.native.server import Server
from compose.native.shapes import Link, Pair, Topology, TopologyPlan, follow, running, wait_for
from gtid import GtidSet
from topology.adapters.collect import collect_cluster
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Verdict
from topology.facts.source_answer import FailedCheck, Outcome, SourceAnswer
from topology.handshake.matrix import HandshakeMatrix, handshake_matrix
from topology.handshake.offered_sets import answers_to_set
from topology.handshake.promotion import promotion_of
from topology.handshake.promotion_steps import promotion_steps
from topology.policy import Policy
from topology.readings.snapshot import ClusterSnapshot
from topology.readings.target import ServerTarget

_SERVED_AFTER_SECONDS = 0.25
_ANSWER_SECONDS_MAX = 20.0
_NAMES = ("source", "one", "two", "three")
_FOUR = TopologyPlan(
    names=_NAMES, links=tuple(Link(source="source", replica=name) for name in _NAMES[1:])
)


@pytest.fixture(params=["installation97", "installation56"])
def installation(request: pytest.FixtureRequest) -> Installation:
    found: Installation = request.getfixturevalue(request.param)
    return found


@contextmanager
def two_servers(installation: Installation) -> Iterator[Topology]:
    with running(installation, TopologyPlan(names=("a", "b"), links=())) as two:
        yield two


def read(topology: Topology) -> ClusterSnapshot:
    targets = [
        ServerTarget(name=name, host=server.host, port=server.port, user="root")
        for name, server in topology.servers.items()
    ]
    return collect_cluster("four", targets)


def matrix_of(snapshot: ClusterSnapshot) -> HandshakeMatrix:
    return handshake_matrix(snapshot, audit_cluster(snapshot), Policy())


def point(replica: Server, source: Server) -> None:
    """Point a replica to a source and start its receiver alone: nothing is applied."""
    words = replica.dialect
    receiver = f"{words.start_replica} IO_THREAD"
    replica.execute(words.stop_replica)
    replica.execute(
        words.change_source_to(
            host=source.host,
            port=source.port,
            user=REPLICATION_USER,
            auto_position=1,
            connect_retry=1,
            retry_count=10,
        ),
        receiver,
    )


def outcome_of(replica: Server) -> tuple[int, str]:
    """Wait for the answer of the source: an error, or (0, "") once it sends.

    A receiver also waits for events before it has read the source's error, so it counts as served
    only if it still waits a moment later.
    """
    deadline = time.monotonic() + _ANSWER_SECONDS_MAX
    waiting_since = None
    while time.monotonic() < deadline:
        status = replica.replica_status()
        state = status.get("Replica_IO_State") or status.get("Slave_IO_State") or ""
        if status["Last_IO_Errno"]:
            return int(status["Last_IO_Errno"]), str(status["Last_IO_Error"])
        is_waiting = state.startswith("Waiting for") and "send event" in state
        if is_waiting and waiting_since is None:
            waiting_since = time.monotonic()
        if is_waiting and waiting_since is not None:
            if time.monotonic() - waiting_since > _SERVED_AFTER_SECONDS:
                return 0, ""
        else:
            waiting_since = None
        time.sleep(0.05)
    raise AssertionError(f"{replica} got no answer: {status}")


def expected_of(answer: SourceAnswer) -> tuple[int, str]:
    return (answer.text.errno, answer.text.text) if answer.text is not None else (0, "")


def hold_against_servers(topology: Topology, matrix: HandshakeMatrix) -> None:
    for replica, source in permutations(topology.servers, 2):
        answer = matrix.answer(replica=replica, source=source)
        assert answer.outcome is not Outcome.UNKNOWN
        point(topology[replica], topology[source])
        found = outcome_of(topology[replica])
        assert found == expected_of(answer), (replica, source)
        if answer.outcome is not Outcome.REFUSED:
            missing = GtidSet.parse(topology[source].value("@@GLOBAL.gtid_executed"))
            missing -= GtidSet.parse(topology[replica].value("@@GLOBAL.gtid_executed"))
            assert missing == answer.fetched | answer.dropped


@pytest.mark.parametrize(
    "installation",
    ["installation97", pytest.param("installation56", marks=pytest.mark.slow)],
    indirect=True,
)
def test_all_directions_between_four_servers_are_answered_as_predicted(
    installation: Installation,
) -> None:
    with running(installation, _FOUR) as four:
        fault = four_that_differ(four)
        snapshot = read(four)
        matrix = matrix_of(snapshot)
        assert matrix.verdict is Verdict.CRITICAL  # no server gets "source" its own back
        lost = GtidSet.parse(fault.lost)
        refused = matrix.answer(replica="one", source="source")
        assert (refused.refusal, refused.gtid_set) == (FailedCheck.MORE_GTIDS, lost)
        assert matrix.answer(replica="three", source="one").refusal is FailedCheck.PURGED
        own = matrix.answer(replica="source", source="one")
        assert (own.outcome, own.dropped) == (Outcome.INCOMPLETE, lost)
        hidden = matrix.answer(replica="two", source="one")
        assert (hidden.outcome, hidden.gtid_set) == (Outcome.DIVERGED, GtidSet.parse(fault.errant))
        hold_against_servers(four, matrix)
        promotion = promotion_of(matrix, "one")
        assert promotion.verdict is Verdict.WARNING
        assert [(str(each.gtid_set), each.donor) for each in promotion.missing] == [
            (fault.errant, "two")
        ]
        assert {each.answer.replica: each.donor for each in promotion.obstacles} == {
            "source": None,
            "two": None,
            "three": "two",
        }
        carry_out(four, snapshot, promote="one")
        # The steps do not point it. What the comparison above left in its relay log goes.
        words = four["source"].dialect
        four["source"].execute(words.stop_replica, words.reset_replica)
        after = matrix_of(read(four))
        # Only what the steps leave to `repair plan` is left: the source's own lost transactions.
        left = {each.replica: each.outcome for each in after.of_source("one")}
        assert left == {
            "source": Outcome.INCOMPLETE,
            "two": Outcome.SERVED,
            "three": Outcome.SERVED,
        }
        hold_against_servers(four, after)


def carry_out(topology: Topology, snapshot: ClusterSnapshot, *, promote: str) -> None:
    """Run the steps of a promotion literally; wait for what each fetches before the next begins."""
    for step in promotion_steps(promotion_of(matrix_of(snapshot), promote), snapshot):
        for statement in step.statements:
            topology[step.server].execute(statement)
        if step.statements and "replicate from two" in step.what:
            wait_for(topology[step.server], topology["two"].value("@@GLOBAL.gtid_executed"))
    everything = topology[promote].value("@@GLOBAL.gtid_executed")
    for name in ("two", "three"):
        wait_for(topology[name], everything)


@pytest.mark.slow
def test_a_busy_pair_hides_and_refuses_nothing(pair97: Pair) -> None:
    with write_load([pair97.a, pair97.b]):
        for _ in range(10):
            outcomes = {each.outcome for each in matrix_of(read(pair97)).answers}
            assert outcomes <= {Outcome.SERVED, Outcome.UNKNOWN}
    pair97.settle()
    assert matrix_of(read(pair97)).verdict is Verdict.OK


def test_a_failover_keeps_what_only_a_relay_log_has(installation97: Installation) -> None:
    """The source is dead, and one replica has received its last transaction without applying it."""
    with running(installation97, _FOUR) as four:
        source, one, two = (four[name] for name in ("source", "one", "two"))
        source.execute("CREATE DATABASE last", "CREATE TABLE last.t (id INT PRIMARY KEY)")
        four.settle()
        two.execute(f"{two.dialect.stop_replica} SQL_THREAD")
        for replica in (one, four["three"]):
            replica.execute(f"{replica.dialect.stop_replica} IO_THREAD")
        last = commit(source, "INSERT INTO last.t VALUES (1)")
        await_received(two, last)
        source.kill()
        snapshot = read(four)
        matrix = matrix_of(snapshot)
        hidden = matrix.answer(replica="two", source="one")
        assert (hidden.outcome, hidden.gtid_set) == (Outcome.DIVERGED, GtidSet.parse(last))
        steps = promotion_steps(promotion_of(matrix, "one"), snapshot)
        assert [each.server for each in steps] == ["", "source", "two", ""]
        two.execute(f"{two.dialect.start_replica} SQL_THREAD")
        for step in steps:
            for statement in step.statements:
                four[step.server].execute(statement)
        snapshot = read(four)
        promotion = promotion_of(matrix_of(snapshot), "one")
        assert [(each.gtid_set, each.donor) for each in promotion.missing] == [
            (GtidSet.parse(last), "two")
        ]
        carry_out(four, snapshot, promote="one")
        for name in ("one", "two", "three"):
            assert four[name].query("SELECT id FROM last.t") == [(1,)]


def test_a_set_is_served_by_the_servers_that_have_not_purged(installation97: Installation) -> None:
    with running(installation97, _FOUR) as four:
        four_that_differ(four)
        snapshot = read(four)
        offered = GtidSet.parse(four["three"].value("@@GLOBAL.gtid_executed"))
        answers = answers_to_set(snapshot, audit_cluster(snapshot), Policy(), offered)
        assert answers.verdict is Verdict.WARNING
        assert {each.source: each.refusal for each in answers.answers} == {
            "source": FailedCheck.PURGED,
            "one": FailedCheck.PURGED,
            "two": None,
            "three": None,
        }


OFFLINE = 3032
NO_TLS = 3159


def test_settings_that_refuse_are_predicted_with_their_text(installation97: Installation) -> None:
    with two_servers(installation97) as two:
        a, b = two["a"], two["b"]
        commit(a, "CREATE DATABASE settings")
        follow(b, a)
        wait_for(b, a.value("@@GLOBAL.gtid_executed"))

        def hold(refusal: FailedCheck | None) -> None:
            answer = matrix_of(read(two)).answer(replica="b", source="a")
            assert answer.refusal is refusal
            point(b, a)
            assert outcome_of(b) == expected_of(answer)

        hold(None)
        a.execute("SET GLOBAL offline_mode = ON")
        answer = matrix_of(read(two)).answer(replica="b", source="a")
        assert [each for each in answer.doubts if "offline_mode is ON on a" in each]
        point(b, a)
        assert outcome_of(b)[0] == OFFLINE
        a.execute("SET GLOBAL offline_mode = OFF")
        a.execute("SET GLOBAL require_secure_transport = ON")
        answer = matrix_of(read(two)).answer(replica="b", source="a")
        assert [each for each in answer.doubts if "a channel without SOURCE_SSL = 1" in each]
        b.execute("STOP REPLICA", "CHANGE REPLICATION SOURCE TO SOURCE_SSL = 0")  # 9.7: 1
        point(b, a)
        assert outcome_of(b)[0] == NO_TLS
        b.execute("STOP REPLICA IO_THREAD", "CHANGE REPLICATION SOURCE TO SOURCE_SSL = 1")
        b.execute("START REPLICA IO_THREAD")
        assert outcome_of(b) == (0, "")
        assert not matrix_of(read(two)).answer(replica="b", source="a").doubts
        a.client("SET GLOBAL require_secure_transport = OFF")
        a.execute("SET GLOBAL gtid_mode = ON_PERMISSIVE")
        hold(FailedCheck.SOURCE_MODE)
        a.execute("SET GLOBAL gtid_mode = ON")
        own = b.value("@@GLOBAL.server_id")
        b.execute(f"SET GLOBAL server_id = {a.value('@@GLOBAL.server_id')}")
        hold(FailedCheck.SAME_SERVER_ID)
        b.execute(f"SET GLOBAL server_id = {own}")
        own = a.value("@@GLOBAL.server_id")
        a.execute("SET GLOBAL server_id = 0")
        hold(FailedCheck.NO_SERVER_ID)
        a.execute(f"SET GLOBAL server_id = {own}")
        restart_with(a, "--skip-log-bin")
        hold(FailedCheck.NO_BINARY_LOG)
        (b.datadir / "auto.cnf").write_text(f"[auto]\nserver-uuid={a.value('@@server_uuid')}\n")
        b.restart()
        hold(FailedCheck.SAME_SERVER_UUID)


def test_a_wait_names_the_delay_and_how_it_is_not_ended(installation: Installation) -> None:
    with two_servers(installation) as two:
        a, b = two["a"], two["b"]
        words = b.dialect
        option = f"{words.words.option_prefix}DELAY"
        follow(b, a)
        b.execute(words.stop_replica, f"{words.words.change_source} {option} = 3600")
        b.execute(words.start_replica)
        late = commit(a, "CREATE DATABASE late")
        await_received(b, late)
        snapshot = read(two)
        waits = [
            step.what
            for step in promotion_steps(promotion_of(matrix_of(snapshot), "b"), snapshot)
            if "Wait until" in step.what
        ]
        assert waits
        assert all(f"{option} delays b by 3,600 s" in each for each in waits)
        shorter = f"{words.words.change_source} {option} = 0"
        b.execute(f"{words.stop_replica} SQL_THREAD")
        if option == "MASTER_DELAY":
            with pytest.raises(pymysql.err.OperationalError, match="1198"):
                b.execute(shorter)
        else:
            b.execute(shorter)
        assert late in b.replica_status()["Retrieved_Gtid_Set"]
        b.execute(words.stop_replica, shorter)
        assert not b.replica_status()["Retrieved_Gtid_Set"]


@pytest.mark.parametrize("digits", [12, 13])
def test_sets_that_do_not_fit_the_message_are_left_out(
    installation97: Installation, digits: int
) -> None:
    """The text with both sets has 512 bytes with 12 digits, and one more with 13."""
    uuids = [f"{number:08d}-1111-1111-1111-111111111111" for number in (1, 2, 3)]
    with two_servers(installation97) as two:
        sent = ",".join(f"{uuid}:1-3" for uuid in uuids[:2])
        purged = f"{uuids[0]}:1-5,{uuids[1]}:1-5,{uuids[2]}:1-{10**digits + 9}"
        for server, gtids in ((two["a"], purged), (two["b"], sent)):
            server.execute(
                server.dialect.words.reset_binary_logs_and_gtids,
                f"SET GLOBAL gtid_purged = '{gtids}'",
            )
        answer = matrix_of(read(two)).answer(replica="b", source="a")
        assert answer.refusal is FailedCheck.PURGED
        assert answer.text is not None
        assert ("too long to print" in answer.text.text) is (digits == 13)
        point(two["b"], two["a"])
        assert outcome_of(two["b"]) == expected_of(answer)


def test_a_relay_log_with_transactions_without_gtids_is_not_deleted(
    installation97: Installation,
) -> None:
    """Only the places of the channel show them; the source is dead, and a CHANGE deletes them."""
    plan = TopologyPlan(
        names=("a", "b", "c"),
        links=(Link(source="a", replica="b"), Link(source="a", replica="c")),
    )
    with running(installation97, plan) as three:
        a, b, c = (three[name] for name in "abc")
        commit(a, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
        three.settle()
        for replica in (b, c):
            replica.execute(
                "STOP REPLICA",
                "CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 0,"
                " ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS = LOCAL",
                "START REPLICA",
            )
        a.execute("SET GLOBAL gtid_mode = ON_PERMISSIVE", "SET GLOBAL gtid_mode = OFF_PERMISSIVE")
        c.execute("STOP REPLICA IO_THREAD")
        b.execute("STOP REPLICA SQL_THREAD")
        assert all(matrix_of(read(three)).partial == () for _ in range(2)), "nothing waits"
        a.execute("INSERT INTO d.t VALUES (1)")
        await_status(b, _has_read_more)
        a.kill()
        snapshot = read(three)
        stopped = ("A7", "b")
        [found] = [
            each
            for each in audit_cluster(snapshot).findings
            if (each.code, each.replica) == stopped
        ]
        assert "without GTIDs, that it has not applied" in found.explanation
        matrix = matrix_of(snapshot)
        assert matrix.answer(replica="b", source="c").outcome is Outcome.UNKNOWN
        for candidate in ("b", "c"):
            steps = promotion_steps(promotion_of(matrix, candidate), snapshot)
            assert not [text for step in steps for text in step.statements]
            [step] = [each for each in steps if each.server == "b"]
            assert "may be the last copy of transactions without a GTID" in step.what
        # As the step says: once its applier has applied them, they are in its set.
        b.execute("START REPLICA SQL_THREAD")
        deadline = time.monotonic() + _ANSWER_SECONDS_MAX
        while not b.query("SELECT * FROM d.t") and time.monotonic() < deadline:
            time.sleep(0.05)
        assert b.query("SELECT * FROM d.t")
        assert matrix_of(read(three)).partial == ()


def _has_read_more(status: dict[str, object]) -> bool:
    """Return whether a receiver has read further than its applier has applied."""
    places = status["Read_Source_Log_Pos"], status["Exec_Source_Log_Pos"]
    return int(str(places[0])) > int(str(places[1]))

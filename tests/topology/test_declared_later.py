"""GTIDs that a server in service was given in gtid_purged: its source's, its replica's, any."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from compose import faults_history
from compose.native.shapes import Pair, Topology
from gtid import GtidSet
from tests.snapshots import NOON, A, B, C, a_channel, a_cluster, a_server, commits_of
from tests.topology.test_faults_live import audited, targets_of
from topology.adapters.collect import collect_cluster
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Grade, Severity, Verdict
from topology.facts.accepted import AcceptedRepair
from topology.facts.cluster_facts import gather_facts
from topology.facts.declared_later import Unordered, declared_later, unordered
from topology.policy import Policy
from topology.questions.log_questions import questions_of
from topology.readings.history_evidence import HistoryEvidence, LogStart
from topology.readings.snapshot import BinaryLog, ClusterSnapshot

LOGS = (BinaryLog("binlog.000007", 1000),)


def gtids(text: str) -> GtidSet:
    return GtidSet.parse(text.replace("A:", f"{A}:").replace("B:", f"{B}:").replace("C:", f"{C}:"))


def logs(*order: str, held: str | None = "") -> HistoryEvidence:
    """Return what a log shows that has these GTIDs in this order; `held`: what purged ones had."""
    first = None if held is None else LogStart("binlog.000007", NOON, gtids(held))
    found = commits_of(*[str(gtids(each)) for each in order])
    return replace(found, first_log=first)


def pair(
    *order: str,
    purged: str = "B:1-2",
    held: str | None = "",
    asked: bool = True,
    source: dict[str, Any] | None = None,
    replica: dict[str, Any] | None = None,
) -> ClusterSnapshot:
    """Make a, with B:1-2 in gtid_purged, and its replica b, which logged `order`."""
    of_a: dict[str, Any] = {"history_evidence": logs("A:1", "C:1", held=held) if asked else None}
    of_b: dict[str, Any] = {"history_evidence": logs(*order) if asked else None}
    both = gtids("A:1-9,B:1-2").to_text()
    return a_cluster(
        "pair",
        a_server(
            "a",
            A,
            both,
            **{"binary_logs": LOGS, "gtid_purged": gtids(purged), **of_a, **(source or {})},
        ),
        a_server(
            "b",
            B,
            both,
            **{"channels": (a_channel("a", A),), "binary_logs": LOGS, **of_b, **(replica or {})},
        ),
    )


LATER = ("A:1", "B:1", "B:2")


def test_a_replicas_gtids_that_were_declared_on_its_source_are_e4() -> None:
    audit = audit_cluster(pair(*LATER))
    [found] = audit.findings
    assert (found.code, found.grade, found.severity) == ("E4", Grade.LIKELY, Severity.WARNING)
    assert (found.replica, found.gtid_set) == ("a", gtids("B:1-2"))
    assert found.name == "executed without its content"
    assert "SET GLOBAL gtid_purged" in found.explanation
    assert audit.unknown == ()


@pytest.mark.parametrize(
    ("order", "reported"),
    [
        (LATER, "B:1-2"),
        (("B:1", "A:1", "B:2"), "B:2"),  # a was made from a backup with B:1
        (("B:1", "B:2", "A:1"), ""),  # a was made from a backup, and in service behind it
        (("B:1", "B:2"), ""),
        (("A:1",), ""),
        ((), ""),
    ],
)
def test_only_what_was_committed_behind_it_is_reported(
    order: tuple[str, ...], reported: str
) -> None:
    found = audit_cluster(pair(*order)).findings
    assert [str(each.gtid_set) for each in found] == ([str(gtids(reported))] if reported else [])


@pytest.mark.parametrize(
    ("source", "replica"),
    [
        ({"gtid_purged": gtids("A:1-9,B:1-2")}, {}),  # made from a backup: it has logged nothing
        ({"gtid_purged": GtidSet()}, {}),  # it logged them
        ({"binary_logs": None}, {}),
        ({"settings": (("log_replica_updates", "OFF"),)}, {}),
        ({}, {"gtid_purged": gtids("B:1-2")}),
        ({}, {"gtid_purged": gtids("A:1-9")}),
        # The replica has no more A:1: what it has is not asked about.
        ({"history_evidence": logs("A:2")}, {}),
        ({"history_evidence": None}, {}),
        ({}, {"history_evidence": None}),
    ],
)
def test_without_the_facts_nothing_is_reported(
    source: dict[str, Any], replica: dict[str, Any]
) -> None:
    audit = audit_cluster(pair(*LATER, source=source, replica=replica))
    assert (audit.verdict, audit.findings) == (Verdict.OK, ())


def test_what_it_logged_and_purged_is_left_out() -> None:
    assert audit_cluster(pair(*LATER, held="B:1-2")).findings == ()
    [found] = audit_cluster(pair(*LATER, held="B:1")).findings
    assert found.gtid_set == gtids("B:2")


def test_without_its_first_log_nothing_is_known_of_it() -> None:
    audit = audit_cluster(pair(*LATER, held=None))
    assert (audit.verdict, audit.findings) == (Verdict.UNKNOWN, ())
    assert [each.server for each in audit.unknown] == ["a"]


def test_another_transaction_under_the_earlier_gtid_proves_nothing() -> None:
    """The server was reset, and used A:1 again: the replica has the former A:1."""
    snapshot = pair(*LATER)
    a, b = snapshot.last
    assert a.history_evidence is not None
    for changed in ({"committed_at": NOON}, {"is_exact": False}):
        [own, other] = a.history_evidence.commits
        evidence = replace(a.history_evidence, commits=(replace(own, **changed), other))
        last = (replace(a, history_evidence=evidence), b)
        assert declared_later(replace(snapshot, last=last)) == {}


def test_the_holder_must_have_the_same_earlier_transaction_with_an_exact_time() -> None:
    snapshot = pair(*LATER)
    a, b = snapshot.last
    assert b.history_evidence is not None
    for changed in ({"committed_at": NOON}, {"is_exact": False}):
        [earlier, *others] = b.history_evidence.commits
        commits = (replace(earlier, **changed), *others)
        last = (a, replace(b, history_evidence=replace(b.history_evidence, commits=commits)))
        assert declared_later(replace(snapshot, last=last)) == {}


def test_logs_without_exact_times_show_no_order() -> None:
    snapshot = pair(*LATER)
    a, b = snapshot.last
    assert b.history_evidence is not None
    records = tuple(replace(each, logged_at=None) for each in b.history_evidence.commits)
    last = (a, replace(b, history_evidence=replace(b.history_evidence, commits=records)))
    assert declared_later(replace(snapshot, last=last)) == {}


def test_transactions_that_were_logged_at_one_moment_show_no_order() -> None:
    snapshot = pair(*LATER)
    a, b = snapshot.last
    assert b.history_evidence is not None
    records = tuple(replace(each, logged_at=NOON) for each in b.history_evidence.commits)
    last = (a, replace(b, history_evidence=replace(b.history_evidence, commits=records)))
    assert declared_later(replace(snapshot, last=last)) == {}


@pytest.mark.parametrize(
    ("logged", "clock", "is_reported"),
    [
        (timedelta(seconds=-3), timedelta(), True),
        (timedelta(seconds=-2), timedelta(), False),  # within the doubt about two clocks
        (timedelta(seconds=3), timedelta(), False),  # it arrived behind the backup
        (timedelta(seconds=-3), timedelta(seconds=-2), False),
        (timedelta(seconds=3), timedelta(seconds=6), True),
        (timedelta(seconds=-3), None, False),
    ],
)
def test_of_a_third_servers_transaction_the_clocks_must_show_it(
    logged: timedelta, clock: timedelta | None, *, is_reported: bool
) -> None:
    """A server that commits nothing itself, in the middle of a chain c -> a -> b."""
    both = gtids("C:1-9,B:1").to_text()
    commit = commits_of(str(gtids("C:1"))).commits[0]
    at = NOON - timedelta(minutes=1) + timedelta(microseconds=1)  # when b committed B:1
    here = HistoryEvidence(
        LogStart("binlog.000007", NOON, GtidSet()), (replace(commit, logged_at=at + logged),)
    )
    a = a_server(
        "a",
        A,
        both,
        binary_logs=LOGS,
        gtid_purged=gtids("B:1"),
        history_evidence=here,
        server_clock=None if clock is None else NOON + timedelta(milliseconds=40) + clock,
    )
    b = a_server(
        "b",
        B,
        both,
        channels=(a_channel("a", A),),
        server_clock=NOON + timedelta(milliseconds=40),
        history_evidence=commits_of(str(gtids("C:1")), str(gtids("B:1"))),
    )
    snapshot = a_cluster("chain", a, b)
    assert declared_later(snapshot) == ({"a": gtids("B:1")} if is_reported else {})


def test_an_accepted_plan_may_have_declared_them() -> None:
    repair = AcceptedRepair("p1", NOON, (A, B), ((A, gtids("B:1-2")),))
    audit = audit_cluster(pair(*LATER), Policy(accepted=(repair,)))
    assert [each.severity for each in audit.findings] == [Severity.INFO]
    assert audit.verdict is Verdict.OK


def test_few_transactions_are_asked_for() -> None:
    snapshot = pair(asked=False)
    [asked] = unordered(snapshot)
    assert asked == Unordered("a", "b", gtids("A:1"), (gtids("B:1-2"),))
    questions = questions_of(gather_facts(snapshot, Policy()))
    assert (questions["a"].first_log, questions["a"].commits) == (True, (gtids("A:1"),))
    assert questions["b"].commits == (gtids("A:1"), gtids("B:1"), gtids("B:1-2"))
    many = Unordered("a", "b", gtids("A:1"), (gtids("B:1-100"),))
    assert many.samples == (gtids("B:1"), gtids("B:93-100"))
    unpurged = pair(asked=False, source={"gtid_purged": GtidSet()})
    assert questions_of(gather_facts(unpurged, Policy())) == {}


def test_the_oldest_transaction_of_the_server_itself_is_compared_first() -> None:
    """What a server committed itself needs no clocks; A:1 came from a third server."""
    every = gtids("A:1-9,B:3-9,C:1-2").to_text()
    a = a_server("a", B, every, binary_logs=LOGS, gtid_purged=gtids("C:1-2"))
    b = a_server("b", C, every, binary_logs=LOGS, channels=(a_channel("a", B),))
    [found] = unordered(a_cluster("pair", a, b))
    assert (found.server, found.holder, found.earlier) == ("a", "b", gtids("B:3"))


# -- on real servers ------------------------------------------------------------------------------


def healthy(audit: ClusterAudit) -> bool:
    return (audit.verdict, audit.findings, audit.unknown) == (Verdict.OK, (), ())


@pytest.mark.slow
def test_a_replicas_work_declared_on_its_source(star97: Topology) -> None:
    fault = faults_history.declared_on_source(star97)
    # What the others do not have is errant for them: declared there as well.
    star97["replica2"].execute(f"SET GLOBAL gtid_purged = '+{fault.gtid}'")
    star97.settle()
    assert star97["source"].value("COUNT(*) FROM declared.t") == 0
    assert star97["replica1"].value("COUNT(*) FROM declared.t") == 2
    found = [each for each in audited(star97).findings if each.replica == "source"]
    assert [(each.code, each.grade, str(each.gtid_set)) for each in found] == [
        ("E4", Grade.LIKELY, fault.gtid)
    ]
    star97["source"].execute("FLUSH BINARY LOGS", "CREATE DATABASE later")
    star97["source"].restart()
    star97.settle()
    assert "source" in [each.replica for each in audited(star97).findings]


def test_backups_and_purges_in_a_pair_that_is_written_on_both_sides(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    _write_in_turn(pair97, 1)
    a.execute(f"PURGE BINARY LOGS TO '{a.query('SHOW BINARY LOGS')[-1][0]}'")
    _write_in_turn(pair97, 5)
    assert _asked_about(pair97) == [("a", "b")], "b has in its logs what a has purged"
    assert healthy(audited(pair97)), "a logged them before"
    # Made from a backup of a: what the backup holds is in gtid_purged.
    for server in (a, b):
        server.execute(server.dialect.stop_replica)
    b.execute(
        "RESET BINARY LOGS AND GTIDS", f"SET GLOBAL gtid_purged = '{a.value('@@gtid_executed')}'"
    )
    for server in (a, b):
        server.execute(server.dialect.start_replica)
    _write_in_turn(pair97, 9)
    assert _asked_about(pair97) == [("b", "a")]
    assert healthy(audited(pair97)), "b committed nothing before what the backup holds"


def _write_in_turn(pair: Pair, first: int) -> None:
    for row, server in enumerate((pair.a, pair.b, pair.a, pair.b), first):
        server.execute(f"INSERT INTO d.t VALUES ({row})", "FLUSH BINARY LOGS")
        pair.settle()


def _asked_about(topology: Topology) -> list[tuple[str, str]]:
    snapshot = collect_cluster("live", targets_of(topology))
    return [(each.server, each.holder) for each in unordered(snapshot)]

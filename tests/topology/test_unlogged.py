"""GTIDs in gtid_purged that no binary log of the server ever held."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from compose.native.shapes import Topology
from gtid import GtidSet
from tests.snapshots import NOON, A, B, C, a_channel, a_cluster, a_server
from tests.topology.test_faults_live import audited, targets_of
from topology.adapters.collect import CollectLimits
from topology.adapters.collect_fleet import collect_fleet
from topology.adapters.inventory.fleet import Cluster, Fleet
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Grade, Severity, Verdict
from topology.facts.accepted import AcceptedRepair
from topology.facts.cluster_facts import gather_facts
from topology.facts.unlogged import candidates_in, purged_above_a_gap
from topology.policy import Policy
from topology.questions.log_questions import questions_of
from topology.readings.history_evidence import HistoryEvidence, LogStart, PurgedChange
from topology.readings.snapshot import BinaryLog, ClusterSnapshot, ServerSnapshot

LOGS = (BinaryLog("binlog.000007", 1000),)


def pair(
    purged: str, *, held: str | None = "", log_updates: str = "ON", policy: Policy | None = None
) -> ClusterAudit:
    """Audit a, with A:1-20, and its replica b, that has purged what is given.

    `held` is what the logs that b has deleted had held, None if its first log could not be read.
    """
    first_log = None
    if held is not None:
        first_log = LogStart("binlog.000007", NOON, GtidSet.parse(held.replace("A", str(A))))
    evidence = HistoryEvidence(first_log, (), "" if first_log else "the first binary log: refused")
    a = a_server("a", A, f"{A}:1-20", channels=(), binary_logs=LOGS)
    b = a_server(
        "b",
        B,
        f"{A}:1-20",
        gtid_purged=GtidSet.parse(purged.replace("A", str(A))),
        channels=(a_channel("a", A, gtid_retrieved=GtidSet.parse(f"{A}:1-20")),),
        binary_logs=LOGS,
        settings=(("log_replica_updates", log_updates),),
    )
    last = [
        replace(
            each,
            phase=2,
            read_started=each.read_ended,
            read_ended=each.read_ended + timedelta(seconds=2),
        )
        for each in (a, b)
    ]
    return audit_cluster(
        ClusterSnapshot("pair", (a, b), (last[0], replace(last[1], history_evidence=evidence))),
        policy,
    )


def test_what_was_declared_above_logged_gtids_is_reported() -> None:
    audit = pair("A:13-16")
    [found] = audit.findings
    assert (found.code, found.grade, found.severity) == ("E4", Grade.LIKELY, Severity.WARNING)
    assert (found.replica, found.gtid_set) == ("b", GtidSet.parse(f"{A}:13-16"))
    assert "gtid_purged" in found.explanation
    assert "log_replica_updates" in found.explanation


@pytest.mark.parametrize(
    ("purged", "held", "log_updates"),
    [
        ("A:1-16", "", "ON"),  # restored from a backup: below all that is logged
        ("A:1-8,A:10", "A:1-8,A:10", "ON"),  # logged out of order, then purged
        ("A:13-16", "", "OFF"),  # it logs nothing that it applies
        ("A:13-16", "", "0"),
    ],
)
def test_what_looks_like_it_and_is_healthy_is_not_reported(
    purged: str, held: str, log_updates: str
) -> None:
    audit = pair(purged, held=held, log_updates=log_updates)
    assert (audit.verdict, audit.findings, audit.unknown) == (Verdict.OK, (), ())


def test_a_part_that_was_logged_is_left_out() -> None:
    [found] = pair("A:1-8,A:10,A:13-16", held="A:1-8,A:10").findings
    assert found.gtid_set == GtidSet.parse(f"{A}:13-16")


def test_without_its_first_log_nothing_is_known_of_it() -> None:
    audit = pair("A:13-16", held=None)
    assert (audit.verdict, audit.findings) == (Verdict.UNKNOWN, ())
    [unknown] = audit.unknown
    assert (unknown.server, unknown.reason) == ("b", "the first binary log: refused")


def test_a_plan_that_declared_them_may_be_accepted() -> None:
    def accepting(gtids: str, server: UUID = B) -> Policy:
        repair = AcceptedRepair("p1", NOON, (A, B), ((server, GtidSet.parse(f"{A}:{gtids}")),))
        return Policy(accepted=(repair,))

    whole = pair("A:13-16", policy=accepting("13-16"))
    assert [(one.severity, whole.verdict) for one in whole.findings] == [
        (Severity.INFO, Verdict.OK)
    ]
    assert "accepted" in whole.findings[0].explanation
    part = pair("A:13-16", policy=accepting("13-15"))
    assert [(one.severity, one.gtid_set.gtid_count) for one in part.findings] == [
        (Severity.WARNING, 1)
    ]
    assert "accepted" in part.findings[0].explanation
    elsewhere = pair("A:13-16", policy=accepting("13-16", A))
    assert [one.severity for one in elsewhere.findings] == [Severity.WARNING]


def test_candidates_need_every_fact() -> None:
    server = a_server("a", A, f"{A}:1-20", gtid_purged=GtidSet.parse(f"{A}:13"), binary_logs=LOGS)

    def found(server: ServerSnapshot) -> dict[str, GtidSet]:
        return dict(candidates_in(a_cluster("pair", server)))

    assert found(server) == {"a": GtidSet.parse(f"{A}:13")}
    for other in (
        replace(server, gtid_executed=None),
        replace(server, gtid_purged=None),
        replace(server, binary_logs=None),
        replace(server, binary_logs=()),
        replace(server, gtid_purged=GtidSet.parse(f"{A}:1")),
    ):
        assert found(other) == {}


def test_what_a_receiver_passed_over_is_a_candidate_below_all_that_is_logged() -> None:
    received = GtidSet.parse(f"{A}:1-3:5-9")
    b = a_server(
        "b",
        B,
        f"{A}:1-9",
        gtid_purged=GtidSet.parse(f"{A}:1-4"),
        channels=(a_channel("a", A, gtid_retrieved=received),),
        binary_logs=LOGS,
    )
    snapshot = a_cluster("pair", a_server("a", A, f"{A}:1-9"), b)
    assert candidates_in(snapshot) == {"b": GtidSet.parse(f"{A}:4")}


def silent(received: str, changes: tuple[PurgedChange, ...] | None = ()) -> ClusterSnapshot:
    """Return b, which logs nothing of what it applies; `received` is of the present relay log."""
    evidence = HistoryEvidence(None, (), "the error log: refused", purged_changes=changes)
    b = a_server(
        "b",
        B,
        f"{A}:1-9",
        gtid_purged=GtidSet.parse(f"{A}:1-9"),
        channels=(a_channel("a", A, gtid_retrieved=GtidSet.parse(received and f"{A}:{received}")),),
        settings=(("log_replica_updates", "OFF"),),
        notable_settings=None,
        history_evidence=evidence,
    )
    return a_cluster("pair", a_server("a", A, f"{A}:1-9"), b)


@pytest.mark.parametrize(
    ("received", "left"),
    [
        ("1-3:5-9", "4"),
        ("1-3", "4-9"),  # the receiver is stopped, or will pass them
        ("1-9", ""),
        ("", ""),  # a new relay log
    ],
)
def test_a_replica_that_logs_nothing_has_what_it_did_not_receive(received: str, left: str) -> None:
    expected = {"b": GtidSet.parse(f"{A}:{left}")} if left else {}
    snapshot = silent(received)
    assert candidates_in(snapshot) == expected
    questions = questions_of(gather_facts(snapshot, Policy()))
    assert ("b" in questions and questions["b"].purged_changes) is bool(left)


def test_of_a_replica_that_logs_nothing_the_error_log_shows_what_was_declared() -> None:
    """Fetched again after its relay log began anew, A:4 looks the same, and nothing is wrong."""
    change = PurgedChange(NOON, GtidSet.parse(f"{A}:1-5"))
    [found] = audit_cluster(silent("1-3:6-9", (change,))).findings
    assert (found.code, found.gtid_set) == ("E4", GtidSet.parse(f"{A}:4-5"))
    assert "none of its channels has received them" in found.explanation
    shown = [each.fact for each in found.evidence]
    assert shown[1:] == ["log_replica_updates", "added to gtid_purged, by its error log"]
    other = PurgedChange(NOON, GtidSet.parse(f"{A}:1-3"))
    for changes in ((other,), ()):
        audit = audit_cluster(silent("1-3:6-9", changes))
        assert (audit.findings, audit.unknown) == ((), ())
    [unread] = audit_cluster(silent("1-3:6-9", None)).unknown
    assert (unread.server, unread.reason) == ("b", "the error log: refused")
    assert audit_cluster(silent("1-9", None)).unknown == ()


def test_what_a_repair_would_uncover_is_asked_about_before() -> None:
    def read(purged: str, executed: str = "", **facts: object) -> ClusterSnapshot:
        sets = {
            "gtid_purged": GtidSet.parse(purged),
            "gtid_executed": GtidSet.parse(f"{purged},{executed}"),
            "binary_logs": (BinaryLog("binlog.000001", 200),),
            **facts,
        }
        return a_cluster("pair", a_server("a", A, f"{A}:1-9"), a_server("b", B, "", **sets))

    for snapshot, names in (
        (read(f"{A}:2"), ("b",)),
        (read(f"{A}:1-3:5", f"{B}:1-7"), ("b",)),
        (read(f"{A}:1-3"), ()),
        (read(f"{A}:2", f"{A}:1"), ()),  # seen already
        (read(f"{A}:2", binary_logs=()), ()),
        (read(f"{A}:2", settings=(("log_replica_updates", "OFF"),)), ()),
        (read(f"{A}:2", gtid_purged=None), ()),
    ):
        assert purged_above_a_gap(snapshot) == names
        asked = questions_of(gather_facts(snapshot, Policy()))
        assert not names or asked["b"].first_log


def read_as_a_fleet(topology: Topology) -> ClusterAudit:
    """Audit a cluster as `audit --fleet` and `snapshot` read it."""
    fleet = Fleet((Cluster("live", tuple(targets_of(topology))),), CollectLimits(), 8, Policy())
    [snapshot] = collect_fleet(fleet)
    return audit_cluster(snapshot)


def test_gtids_declared_before_the_source_reaches_them(star97: Topology) -> None:
    source, replica = star97["source"], star97["replica1"]
    source.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    star97.settle()
    uuid = source.value("@@server_uuid")
    highest = GtidSet.parse(source.value("@@gtid_executed")).gtid_count
    declared = f"{uuid}:{highest + 2}-{highest + 4}"
    replica.execute(f"SET GLOBAL gtid_purged = '+{declared}'")
    ahead = audited(star97)
    assert [(one.code, one.replica) for one in ahead.findings] == [("H7", "replica1")]
    source.execute(*[f"INSERT INTO d.t VALUES ({row})" for row in range(6)])
    star97.settle()
    assert replica.value("COUNT(*) FROM d.t") == 3
    audit = audited(star97)
    [found] = audit.findings
    assert (found.code, found.grade, audit.verdict) == ("E4", Grade.LIKELY, Verdict.WARNING)
    assert (found.replica, str(found.gtid_set)) == ("replica1", declared)
    assert [str(one.gtid_set) for one in read_as_a_fleet(star97).findings] == [declared]
    replica.restart()
    star97.settle()
    assert [(one.code, str(one.gtid_set)) for one in audited(star97).findings] == [("E4", declared)]


def test_a_reset_with_too_large_a_set(star97: Topology) -> None:
    source, replica = star97["source"], star97["replica1"]
    source.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    star97.settle()
    uuid = source.value("@@server_uuid")
    highest = GtidSet.parse(source.value("@@gtid_executed")).gtid_count
    replica.execute(
        "STOP REPLICA",
        "RESET BINARY LOGS AND GTIDS",
        f"SET GLOBAL gtid_purged = '{uuid}:1-{highest + 3}'",
    )
    source.execute(*[f"INSERT INTO d.t VALUES ({row})" for row in range(6)])
    replica.execute("START REPLICA")
    star97.settle()
    assert replica.value("COUNT(*) FROM d.t") == 3
    [found] = audited(star97).findings
    assert (found.code, found.replica) == ("E4", "replica1")
    assert str(found.gtid_set) == f"{uuid}:{highest + 1}-{highest + 3}"


@pytest.mark.parametrize("log_updates", ["OFF", "ON"])
def test_what_a_source_never_logs_is_not_on_its_way(log_updates: str) -> None:
    """Between the questions for gtid_purged and for gtid_executed b applied A:20."""
    settings = (("gtid_mode", "ON"), ("log_replica_updates", log_updates))
    from_a = a_channel("a", A, gtid_retrieved=GtidSet.parse(f"{A}:1-20"))
    b = a_server("b", B, f"{A}:1-20", channels=(from_a,), settings=settings)
    from_b = a_channel("b", B, gtid_retrieved=GtidSet.parse(f"{A}:1-19"))
    c = a_server("c", C, f"{A}:1-19", channels=(from_b,))
    snapshot = a_cluster("chain", a_server("a", A, f"{A}:1-20"), b, c)
    purged = {each: GtidSet.parse(f"{A}:1-{each}") for each in (19, 20)}
    first, last = (
        tuple(replace(each, gtid_purged=purged[to]) if each.name == "b" else each for each in of)
        for of, to in ((snapshot.first, 19), (snapshot.last, 20 if log_updates == "OFF" else 19))
    )
    found = audit_cluster(replace(snapshot, first=first, last=last)).findings
    of_c = {one.code for one in found if one.replica == "c" and one.gtid_set}
    assert ("P1" in of_c) is (log_updates == "OFF")
    assert not of_c & {"T1", "T2", "T3"}

"""GTIDs that a server had in gtid_purged before their origin committed them."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from compose.faults_after_plan import add_channel
from compose.native.server import Server
from compose.native.shapes import Topology
from gtid import GtidSet
from tests.snapshots import (
    NOON,
    A,
    B,
    a_channel,
    a_cluster,
    a_server,
    commits_of,
    with_facts,
)
from tests.topology.test_faults_live import audited, only
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Finding, Grade, Severity, Verdict
from topology.facts.accepted import AcceptedRepair
from topology.facts.cluster_facts import gather_facts
from topology.facts.declared import newest_set
from topology.policy import Policy
from topology.questions.log_questions import questions_of
from topology.readings.history_evidence import HistoryEvidence, PurgedChange
from topology.readings.snapshot import BinaryLog, ClusterSnapshot

FIRST_LOGS = (BinaryLog("binlog.000001", 200), BinaryLog("binlog.000002", 200))


def pair(
    *, begun: timedelta = timedelta(minutes=-2), asked: bool = True, **facts: Any
) -> ClusterSnapshot:
    """Make a, which committed A:16 a minute before noon, and b with A:1-16 set at some time."""
    held = GtidSet.parse(f"{A}:1-16")
    change = PurgedChange(NOON + begun, held)
    made: dict[str, Any] = {"gtid_purged": held, "binary_logs": FIRST_LOGS, **facts}
    named = HistoryEvidence(None, (), purged_changes=(change,))
    return a_cluster(
        "pair",
        a_server("a", A, f"{A}:1-20", history_evidence=commits_of(f"{A}:16") if asked else None),
        a_server(
            "b",
            B,
            f"{A}:1-20",
            channels=(a_channel("a", A),),
            **{"history_evidence": named if asked else None, **made},
        ),
    )


def findings(snapshot: ClusterSnapshot, policy: Policy | None = None) -> list[Finding]:
    return list(audit_cluster(snapshot, policy).findings)


def test_a_set_that_is_older_than_its_transactions_is_e4() -> None:
    [found] = findings(pair())
    assert (found.code, found.grade, found.severity) == ("E4", Grade.LIKELY, Severity.WARNING)
    assert (found.source, found.replica) == ("a", "b")
    assert found.gtid_set == GtidSet.parse(f"{A}:16")
    assert found.name == "executed without its content"
    assert "SET GLOBAL gtid_purged" in found.explanation


@pytest.mark.parametrize("name", ["a", "b"])
def test_servers_that_were_not_read_twice_are_not_compared(name: str) -> None:
    """A reading without gtid_owned: one of the two is no server that any rule compares."""
    snapshot = pair()
    first = tuple(
        with_facts(each, gtid_owned=None) if each.name == name else each for each in snapshot.first
    )
    found = findings(replace(snapshot, first=first))
    assert [each.code for each in found if each.code == "E4"] == []


@pytest.mark.parametrize(
    ("facts", "is_reported"),
    [
        ({}, True),
        ({"begun": timedelta(minutes=-1, seconds=-3)}, True),
        ({"begun": timedelta(minutes=-1, seconds=-2)}, False),  # within the doubt
        ({"begun": timedelta()}, False),  # a dump or a clone of what was there
        ({"binary_logs": FIRST_LOGS[1:]}, False),  # a purge may have made the set
        ({"binary_logs": None}, False),
        ({"binary_logs": (BinaryLog("binlog.000011", 200),)}, False),
        ({"gtid_purged": GtidSet.parse(f"{A}:1-15")}, False),
        ({"history_evidence": None}, False),
        ({"history_evidence": HistoryEvidence(None, ())}, False),
        # Its clock is two minutes behind: it was set when a had committed them.
        ({"server_clock": NOON - timedelta(minutes=2)}, False),
        ({"server_clock": NOON + timedelta(minutes=2)}, True),
        ({"server_clock": None}, False),
    ],
)
def test_only_a_set_that_was_certainly_earlier_is_reported(
    facts: dict[str, Any], *, is_reported: bool
) -> None:
    codes = [each.code for each in findings(pair(**facts)) if each.code != "C13"]
    assert codes == (["E4"] if is_reported else [])


def test_a_change_that_added_other_gtids_was_not_too_early_for_these() -> None:
    """The first change added A:1-8, and the backup with A:16 came after its commit."""
    snapshot = pair()
    a, b = snapshot.last
    early = PurgedChange(NOON - timedelta(minutes=2), GtidSet.parse(f"{A}:1-8"))
    later = PurgedChange(NOON, GtidSet.parse(f"{A}:9-16"))
    evidence = HistoryEvidence(None, (), purged_changes=(early, later))
    last = (a, replace(b, history_evidence=evidence))
    assert findings(replace(snapshot, last=last)) == []


def test_times_of_whole_seconds_prove_nothing() -> None:
    snapshot = pair()
    a, b = snapshot.last
    assert a.history_evidence is not None
    [commit] = a.history_evidence.commits
    inexact = replace(a.history_evidence, commits=(replace(commit, is_exact=False),))
    last = (replace(a, history_evidence=inexact), b)
    assert findings(replace(snapshot, last=last)) == []


UNREAD = HistoryEvidence(None, (), "changes of gtid_purged: denied", purged_changes=None)


def test_an_error_log_that_was_not_read_leaves_it_unknown() -> None:
    audit = audit_cluster(pair(history_evidence=UNREAD))
    [unknown] = audit.unknown
    assert (audit.verdict, unknown.server, unknown.reason) == (
        Verdict.UNKNOWN,
        "b",
        "changes of gtid_purged: denied",
    )
    assert f"{A}:9-16 was set in gtid_purged" in unknown.fact
    purged_since = pair(history_evidence=UNREAD, binary_logs=FIRST_LOGS[1:])
    assert audit_cluster(purged_since).unknown == (), "the set may come from a purge"


def test_what_a_plan_declared_is_accepted() -> None:
    repair = AcceptedRepair("p1", NOON, (A, B), ((B, GtidSet.parse(f"{A}:16")),))
    assert findings(pair(), Policy(accepted=(repair,))) == []


def test_the_logs_are_asked_of_few_servers() -> None:
    """Not of servers that have purged a log, and for the newest GTIDs of each origin alone."""
    newest = GtidSet.parse(f"{A}:9-16")
    assert newest_set(pair()) == {("b", "a"): newest}
    asked = questions_of(gather_facts(pair(asked=False), Policy()))
    assert (asked["b"].purged_changes, asked["a"].commits) == (True, (newest,))
    unpurged = pair(asked=False, gtid_purged=GtidSet())
    assert questions_of(gather_facts(unpurged, Policy())) == {}


# -- on real servers ------------------------------------------------------------------------------


def set_anew(replica: Server, source: Server, gtids: str) -> None:
    """Forget channel and history, set gtid_purged, and configure the channel. The rows stay."""
    replica.execute(
        "STOP REPLICA",
        "RESET REPLICA ALL",
        "RESET BINARY LOGS AND GTIDS",
        f"SET GLOBAL gtid_purged = '{gtids}'",
    )
    add_channel(replica, source)


def test_a_set_that_is_too_large_shows_by_time_alone(star97: Topology) -> None:
    source, replica = star97["source"], star97["replica1"]
    source.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    star97.settle()
    set_anew(replica, source, source.value("@@gtid_executed"))
    source.execute("INSERT INTO d.t VALUES (100)")
    replica.execute(replica.dialect.start_replica)
    star97.settle()
    assert healthy(audited(star97)), "what a dump or a clone sets was committed before"
    uuid = source.value("@@server_uuid")
    highest = GtidSet.parse(source.value("@@gtid_executed")).gtid_count
    set_anew(replica, source, f"{uuid}:1-{highest + 3}")
    time.sleep(3)  # longer than the doubt about two clocks
    source.execute(*[f"INSERT INTO d.t VALUES ({row})" for row in range(6)])
    replica.execute(replica.dialect.start_replica)  # refused (13114) before the source is there
    star97.settle()
    assert replica.value("COUNT(*) FROM d.t") == 4
    found = only(audited(star97))
    assert (found.code, found.replica, found.grade) == ("E4", "replica1", Grade.LIKELY)
    assert str(found.gtid_set) == f"{uuid}:{highest + 1}-{highest + 3}"


def healthy(audit: ClusterAudit) -> bool:
    return (audit.verdict, audit.findings, audit.unknown) == (Verdict.OK, (), ())

"""GTIDs that were declared executed while they waited in a relay log."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import Any

import pytest

from compose.faults import commit, purge_until_gone
from compose.faults_applier import await_received, delayed
from compose.faults_history import MadeByHand, declared_while_waiting, emptied_while_waiting
from compose.native.installation import Clients
from compose.native.shapes import Pair, Topology
from gtid import GtidSet
from repair.model.initial_model import start_model
from repair.model.strategy_case import LogEvidence
from tests.snapshots import HERE, NOON, A, B, a_channel, a_cluster, a_server
from tests.topology.test_faults_live import audited
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Grade, Severity, Verdict
from topology.facts.accepted import AcceptedRepair
from topology.facts.cluster_facts import gather_facts
from topology.facts.declared_waiting import GTIDS_MAX, in_relay_log
from topology.policy import Policy
from topology.questions.log_questions import questions_of
from topology.questions.log_searches import Search
from topology.readings.history_evidence import HistoryEvidence, LogSearch
from topology.readings.snapshot import ClusterSnapshot, LogPosition, ThreadState

FILE = "binlog.000003"
PLACE = LogPosition.of(file=FILE, position=3_000)
assert PLACE is not None, "a file with a number"
BEFORE: LogPosition = PLACE


def sets(numbers: str) -> GtidSet:
    return GtidSet.parse(f"{A}:{numbers}" if numbers else "")


def pair(
    *,
    received: str = "8-9",
    executed: str = "1-9",
    purged: str = "1-9",
    source: str = "1-9",
    source_purged: str = "",
    evidence: HistoryEvidence | None = None,
    log_updates: str = "ON",
    log_bin: str = "ON",
    **facts: Any,
) -> ClusterSnapshot:
    """Make a and its replica b, whose applier is before its receiver."""
    channel = a_channel("a", A, **{"gtid_retrieved": sets(received), "applied_to": BEFORE, **facts})
    a = a_server("a", A, sets(source), gtid_purged=sets(source_purged), history_evidence=evidence)
    logs = (("log_replica_updates", log_updates), ("log_bin", log_bin))
    settings = (("gtid_mode", "ON"), *logs)
    b = a_server(
        "b", B, sets(executed), gtid_purged=sets(purged), channels=(channel,), settings=settings
    )
    return a_cluster("pair", a, b)


@pytest.mark.parametrize(
    ("facts", "waits"),
    [
        ({}, "8-9"),
        (
            {"received": "8-12", "source": "1-12"},
            "8-9",
        ),  # what came later waits, and is not declared
        ({"received": "1-9", "purged": "1-7"}, ""),  # a busy replica: the newest is in its log
        ({"received": "1-7", "purged": "1-7"}, "1-7"),  # just purged: the log of a decides
        ({"applied_to": HERE}, ""),  # the applier has read everything
        ({"applied_to": None}, ""),
        ({"applier_state": "Replica has read all relay log; waiting for more updates"}, ""),
        ({"received_to": None}, ""),
        ({"received": ""}, ""),
        ({"source_purged": "1-8"}, "9"),  # a cannot show where the others were
        ({"log_updates": "OFF"}, ""),  # all that it applies is in gtid_purged
        ({"log_bin": "OFF"}, ""),
    ],
)
def test_what_may_wait_is_the_newest_that_is_purged(facts: dict[str, Any], waits: str) -> None:
    found = [(place, gtids) for _, place, gtids in in_relay_log(pair(**facts))]
    assert found == ([(BEFORE, sets(waits))] if waits else [])


def test_nothing_is_concluded_without_the_settings() -> None:
    snapshot = pair()
    last = replace(snapshot.last[1], settings=None, notable_settings=None)
    assert list(in_relay_log(replace(snapshot, last=(snapshot.last[0], last)))) == []


def test_an_applier_that_has_caught_up_since_waits_for_nothing() -> None:
    snapshot = pair()
    [channel] = snapshot.last[1].channels or ()
    last = replace(snapshot.last[1], channels=(replace(channel, applied_to=HERE),))
    assert list(in_relay_log(replace(snapshot, last=(snapshot.last[0], last)))) == []


def test_of_many_the_newest_are_searched_for() -> None:
    of_all = "1-1000"
    snapshot = pair(source=of_all, received=of_all, executed=of_all, purged=of_all)
    [(_, _, waits)] = in_relay_log(snapshot)
    assert waits == sets(f"{1001 - GTIDS_MAX}-1000")


def test_the_log_of_the_source_is_searched_up_to_the_applier() -> None:
    asked = questions_of(gather_facts(pair(), Policy()))
    assert asked["a"].searches == (Search("b", "", BEFORE, sets("8-9")),)


def found_in_log(before: str) -> HistoryEvidence:
    place = f"{FILE}:{BEFORE.position}"
    return HistoryEvidence(
        None, (), searches=(LogSearch("b", "", place, sets("8-9"), sets(before)),)
    )


@pytest.mark.parametrize(("before", "waits"), [("", "8-9"), ("8", "9"), ("8-9", "")])
def test_what_is_after_the_applier_is_e4(before: str, waits: str) -> None:
    audit = audit_cluster(pair(evidence=found_in_log(before), received="8-9"))
    found = [each for each in audit.findings if each.code == "E4"]
    assert [each.gtid_set for each in found] == ([sets(waits)] if waits else [])
    for each in found:
        assert (each.source, each.replica, each.channel) == ("a", "b", "")
        assert (each.grade, each.severity) == (Grade.LIKELY, Severity.WARNING)
        assert "RESET BINARY LOGS AND GTIDS" in each.explanation
        assert "Or a dump or a copy" in each.explanation


def test_an_accepted_plan_may_have_declared_them() -> None:
    accepted = AcceptedRepair("plan-1", NOON, (A, B), emptied=((B, sets("8-9")),))
    audit = audit_cluster(pair(evidence=found_in_log("")), Policy(accepted=(accepted,)))
    assert "E4" not in {each.code for each in audit.findings}


def test_without_the_log_of_the_source_it_is_unknown() -> None:
    audit = audit_cluster(pair(evidence=HistoryEvidence(None, (), "access denied")))
    [unknown] = [each for each in audit.unknown if "gtid_purged" in each.fact]
    assert (unknown.server, unknown.reason) == ("b", "access denied")
    assert audit.verdict is Verdict.UNKNOWN


def test_no_start_is_planned_that_would_pass_them() -> None:
    for evidence, doubts in ((found_in_log(""), True), (found_in_log("8-9"), False)):
        snapshot = pair(
            evidence=evidence, receiver=ThreadState.STOPPED, applier=ThreadState.STOPPED
        )
        [channel] = start_model(snapshot, audit_cluster(snapshot), LogEvidence())["b"].channels
        assert ("would pass them and apply none" in channel.doubt) is doubts


def test_a_reset_of_a_delayed_replica_hides_nothing(star97: Topology) -> None:
    """With the rows or without them: no reading separates the two, so E4 is likely."""
    part = Topology({name: star97[name] for name in ("source", "replica1")}, ())
    fault = declared_while_waiting(star97, source="source", replica="replica1")
    assert_waits(part, fault)
    rows = [each.value("COUNT(*) FROM applier.t") for each in (fault.owner, fault.written_on)]
    assert rows == [3, 0]
    restored = ["INSERT INTO applier.t () VALUES ()"] * 3  # as a dump would have brought them
    fault.written_on.execute("SET SESSION sql_log_bin = 0", *restored)
    assert_waits(part, fault)


@pytest.mark.slow
def test_a_reset_of_a_delayed_replica_of_5_6_hides_nothing(pair56: Pair) -> None:
    pair56.a.execute("STOP SLAVE", "RESET SLAVE ALL")
    assert_waits(pair56, declared_while_waiting(pair56))


def assert_waits(topology: Topology, fault: MadeByHand) -> None:
    audit = audited(topology)
    assert audit.verdict is Verdict.WARNING, audit
    [found] = [each for each in audit.findings if each.code == "E4"]
    assert found.gtid_set == GtidSet.parse(fault.gtid)
    assert found.grade is Grade.LIKELY


def test_a_delayed_replica_that_has_purged_its_logs_is_healthy(pair97: Pair) -> None:
    held = delayed(pair97)
    applied = held.replica.value("@@GLOBAL.gtid_executed")
    held.replica.execute("FLUSH BINARY LOGS")
    purge_until_gone(held.replica, applied)
    audit = audited(pair97)
    assert "E4" not in {each.code for each in audit.findings}, audit
    assert audit.unknown == ()


@pytest.mark.parametrize("shape", ["pair97", pytest.param("pair56", marks=pytest.mark.slow)])
def test_empty_transactions_for_all_that_waits_are_found(
    shape: str, request: pytest.FixtureRequest
) -> None:
    pair: Pair = request.getfixturevalue(shape)
    pair.a.execute(pair.a.dialect.stop_replica, pair.a.dialect.reset_replica)
    fault = emptied_while_waiting(pair)
    assert_waits(pair, fault)
    await_received(fault.written_on, commit(fault.owner, "INSERT INTO applier.t () VALUES ()"))
    assert_waits(pair, fault)


def test_a_replayed_log_is_no_other_commit(pair97: Pair, mysql_clients: Clients) -> None:
    """The benign twin: the rows are there, and the applier passes the GTIDs as well."""
    held = delayed(pair97)
    shown = (*mysql_clients.command("mysqlbinlog"), f"--include-gtids={held.held}")
    logs = [str(held.source.datadir / name) for name, *_ in held.source.query("SHOW BINARY LOGS")]
    text = subprocess.run([*shown, *logs], capture_output=True, check=True, text=True).stdout
    replayed = held.replica.client(text)
    assert replayed.returncode == 0, replayed.stderr
    assert held.replica.value("COUNT(*) FROM applier.t") == 3
    audit = audited(pair97)
    assert (audit.verdict, audit.unknown) == (Verdict.OK, ()), audit

"""Channels that hold transactions back on purpose, and servers that a reset left empty."""

from dataclasses import replace
from typing import Any

import pytest

from gtid import GtidSet
from repair import Plan, plan_repair
from repair.model.actions import AutoPositionOn, StartChannel, StopChannel
from repair.model.invariants import broken_invariants
from tests.repair.build import channel, evidence_of, model, server, snapshot_of
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit
from topology.readings.snapshot import ClusterSnapshot, ThreadState

STOPPED = model(server("a", "a:1-9"), server("b", "a:1-5", channel("a", runs=False)))


def read(**changes: Any) -> tuple[ClusterSnapshot, ClusterAudit]:
    """Both readings of the stopped pair, with other facts of b's channel."""
    snapshot = snapshot_of(STOPPED)
    first, last = (
        tuple(
            replace(each, channels=tuple(replace(one, **changes) for one in each.channels or ()))
            for each in readings
        )
        for readings in (snapshot.first, snapshot.last)
    )
    snapshot = replace(snapshot, first=first, last=last)
    return snapshot, audit_cluster(snapshot)


def planned(choices: dict[str, str] | None = None, **changes: Any) -> Plan:
    snapshot, audit = read(**changes)
    return plan_repair(snapshot, audit, choices=choices, evidence=evidence_of(audit))


@pytest.mark.parametrize(("delay", "waits"), [(0, True), (110, True), (111, False), (3600, False)])
def test_a_script_waits_only_for_what_can_arrive_in_its_time(delay: int, waits: bool) -> None:
    [step] = planned(delay_seconds=delay).steps
    assert step.procedure.estimated_seconds == 2 + delay
    assert any("WAIT_FOR_EXECUTED_GTID_SET" in each for each in step.procedure.statements) == waits
    assert (
        any("not everything has arrived" in each.message for each in step.procedure.verifications)
        == waits
    )
    assert ("SOURCE_DELAY" in step.procedure.estimate_assumes) == bool(delay)
    assert (f"within {delay} s gtid_executed contains" in step.procedure.check) != waits


def test_what_an_operator_told_to_stop_is_started_when_selected() -> None:
    plan = planned(until="SQL_BEFORE_GTIDS")
    assert not plan.steps
    [left] = [each for each in plan.not_planned if each.code == "A7"]
    assert "UNTIL SQL_BEFORE_GTIDS" in left.why
    [step] = planned({"A7": "start_channel"}, until="SQL_BEFORE_GTIDS").steps
    assert step.action == "StartChannel"


def test_an_applier_that_an_operator_stopped_on_a_delayed_replica_is_started_when_selected() -> (
    None
):
    alone: dict[str, Any] = {"receiver": ThreadState.RUNNING, "applier": ThreadState.STOPPED}
    plan = planned(delay_seconds=3600, **alone)
    assert not plan.steps
    [left] = [each for each in plan.not_planned if each.code == "A7"]
    assert "only the applier of b is stopped, and SOURCE_DELAY is 3600 s" in left.why
    assert planned({"A7": "start_channel"}, delay_seconds=3600, **alone).steps
    # Without a delay, or with both threads stopped, nothing says so.
    assert planned(delay_seconds=0, **alone).steps


def test_no_channel_is_started_from_a_server_that_a_reset_left_empty() -> None:
    servers = model(
        server("a", "a:1-9", channel("b", runs=False)),
        server("b", "", channel("a", runs=False)),
    )
    for action in (StartChannel("a", ""), AutoPositionOn("a", "", filled=GtidSet())):
        [why] = broken_invariants(servers, servers, action)
        assert "gtid_executed of b, its source, is empty" in why
    assert not list(broken_invariants(servers, servers, StopChannel("a", "")))

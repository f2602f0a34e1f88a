"""Auto-position fetches all that is missing: also what another finding of the channel is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from repair import LogEvidence, Plan, plan_repair
from repair.content.transaction_content import NetRow, RowsOn, RowState, TransactionContent
from repair.model.replication_model import Model
from tests.repair.build import channel, evidence_of, gtids, model, server, snapshot_of
from tests.repair.cases import a_net_row
from tests.repair.test_other_steps import FITS, actions, found
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Finding, Grade
from topology.readings.content_class import ContentClass

PASSED_BY = found("H1", "a", "b", "a:4-6", channel="")
PASSED = found("H8", "a", "b", "a:8", channel="")
THERE = FITS | {"b": RowsOn(RowState.AS_AFTER)}


def two_holes(*, runs: bool = True) -> Model:
    """The channel of b is behind a:4-6 in the log of a, and its applier behind a:8."""
    behind = replace(
        channel("a", auto=False, bypassed="a:4-6", runs=runs),
        passed=gtids("a:8"),
        retrieved=gtids("a:8"),
    )
    return model(server("a", "a:1-9", channel("b")), server("b", "a:1-3 a:7 a:9", behind))


def planned(
    servers: Model,
    *findings: Finding,
    of_bypassed: Mapping[str, RowsOn] = FITS,
    rows_of_bypassed: tuple[NetRow, ...] | None = None,
    **of_passed: Any,
) -> Plan:
    """Plan with what is known of the rows of H1 (they fit), and of H8's content."""
    snapshot = snapshot_of(servers)
    audit = replace(audit_cluster(snapshot), findings=findings)
    evidence = evidence_of(audit, ContentClass.DATA, rows_on=of_bypassed, rows=rows_of_bypassed)
    other = TransactionContent("a", {ContentClass.DATA: PASSED.gtid_set}, **of_passed)
    contents = dict(evidence.contents)
    for each in findings:
        if each.code == "H8":
            contents[each.id] = other
    return plan_repair(snapshot, audit, evidence=LogEvidence(contents=contents))


def test_nothing_is_fetched_with_transactions_whose_rows_are_there_already() -> None:
    likely = replace(PASSED, grade=Grade.LIKELY)
    plan = planned(two_holes(), PASSED_BY, likely, rows_on=THERE)
    assert actions(plan) == []
    assert all("are already on b" in each.why for each in plan.not_planned)


def test_transactions_whose_rows_are_there_are_emptied_before_the_others_are_fetched() -> None:
    """Not if the other hole may change the same row: without it, a row may only look deleted."""
    deleted, elsewhere = (a_net_row((key, 5), None) for key in (1, 2))
    inserted = (a_net_row(None, (1, 5)),)
    for rows, steps in (
        ((deleted,), []),
        (None, []),
        ((elsewhere,), ["b InjectEmpty", "b AutoPositionOn"]),
    ):
        plan = planned(
            two_holes(), PASSED_BY, PASSED, rows_on=THERE, rows=rows, rows_of_bypassed=inserted
        )
        assert actions(plan) == steps, rows
    there = planned(two_holes(), PASSED_BY, PASSED, rows_on=THERE, of_bypassed=THERE)
    assert actions(there)[0] == "b InjectEmpty"


def test_two_holes_whose_rows_fit_are_fetched_in_one_step() -> None:
    plan = planned(two_holes(), PASSED_BY, PASSED, rows_on=FITS)
    assert actions(plan) == ["b AutoPositionOn"]


def test_what_waits_on_a_stopped_channel_is_compared_before_it_is_switched() -> None:
    servers = two_holes(runs=False)
    below = replace(servers["b"], executed=gtids("a:1-3 a:7"))  # a:8 waits, and is no gap
    plan = planned(servers.replace(below), PASSED_BY)
    assert actions(plan) == []
    assert "has not been read" in plan.not_planned[0].why


def test_gaps_of_a_stopped_applier_are_filled_before_its_channel_is_switched() -> None:
    plan = planned(two_holes(runs=False), PASSED_BY)
    assert actions(plan) == []
    assert "may have left gaps" in plan.not_planned[0].why
    assert "START REPLICA UNTIL SQL_AFTER_MTS_GAPS" in plan.not_planned[0].why


def test_what_another_channel_may_bring_first_is_compared_as_well() -> None:
    """c sends it too; whichever channel is first, the rows of b are there already."""
    passed = replace(channel("a", name="x"), passed=gtids("a:8"), retrieved=gtids("a:8"))
    servers = model(
        server("a", "a:1-9"),
        server("b", "a:1-7 a:9", passed, channel("c", name="y")),
        server("c", "a:1-9", channel("a")),
    )
    likely = replace(PASSED, grade=Grade.LIKELY, channel="x")
    plan = planned(servers, likely, rows_on=THERE)
    assert actions(plan) == []
    assert "are already on b" in plan.not_planned[0].why


def test_what_carries_the_server_id_of_its_receiver_is_not_fetched_again() -> None:
    by_sets = replace(channel("a"), passed=gtids("a:8"), retrieved=gtids("a:8"))
    servers = model(server("a", "a:1-9", channel("b")), server("b", "a:1-7 a:9", by_sets))
    own = {2: gtids("a:8")}
    plan = planned(servers, PASSED, rows_on=FITS, server_ids=own)
    assert actions(plan) == []
    assert "has server_id 2" in plan.not_planned[0].why
    others = {7: gtids("a:8")}
    plan = planned(servers, PASSED, rows_on=FITS, server_ids=others)
    assert actions(plan) == ["b AutoPositionOn"]


def test_nothing_is_fetched_again_while_its_source_has_long_been_committing_later_ones() -> None:
    """b may have applied a:10 before it forgot both: its rows are newer than those of a."""
    by_sets = replace(channel("a"), passed=gtids("a:8"), retrieved=gtids("a:8"))
    servers = model(server("a", "a:1-9", channel("b")), server("b", "a:1-7 a:9", by_sets))
    snapshot = snapshot_of(servers)
    busy = [
        replace(each, gtid_owned=gtids("a:10")) if each.name == "a" else each
        for each in snapshot.last
    ]
    for first, steps in ((snapshot.first, ["b AutoPositionOn"]), (tuple(busy), [])):
        looked = replace(snapshot, first=first, last=tuple(busy))
        audit = replace(audit_cluster(looked), findings=(PASSED,))
        content = TransactionContent("a", {ContentClass.DATA: PASSED.gtid_set}, rows_on=FITS)
        plan = plan_repair(looked, audit, evidence=LogEvidence(contents={PASSED.id: content}))
        assert actions(plan) == steps
    assert "a has been committing" in plan.not_planned[0].why


def test_no_empty_transaction_where_no_binary_log_would_hold_it_for_the_replicas() -> None:
    """a executes and purges it at once: its other replica would get error 1236."""
    for has_log, steps in ((True, ["a InjectEmpty"]), (False, [])):
        servers = model(
            server("a", "a:1-3"),
            server("b", "a:1-3 b:1", channel("a")),
            server("c", "a:1-3", channel("a")),
        )
        snapshot = snapshot_of(servers)
        last = tuple(
            replace(
                each, settings=(*(each.settings or ()), ("log_bin", "ON" if has_log else "OFF"))
            )
            if each.name == "a"
            else each
            for each in snapshot.last
        )
        snapshot = replace(snapshot, last=last)
        errant = found("E1", "a", "b", "b:1", channel="")
        audit = replace(audit_cluster(snapshot), findings=(errant,))
        plan = plan_repair(snapshot, audit, evidence=evidence_of(audit))
        assert actions(plan) == steps, has_log


@pytest.mark.parametrize(
    ("grade", "passed", "purged", "told"),
    [
        (Grade.LIKELY, (), "a:1-3", "4-6"),
        (Grade.LIKELY, (PASSED,), "a:1-3", "4-6:8"),
        (Grade.PROVED, (), "a:1-3", ""),  # a file position is the one cause that is left
        # A RESET would have removed what its logs have of a:1-3.
        (Grade.LIKELY, (), "", ""),
        (Grade.LIKELY, (), "a:1-2", ""),
    ],
)
def test_rows_behind_a_file_position_may_have_been_deleted_since_a_reset(
    grade: Grade, passed: tuple[Finding, ...], purged: str, told: str
) -> None:
    found = replace(PASSED_BY, grade=grade)
    servers = two_holes() if passed else one_hole()
    servers = servers.replace(replace(servers["b"], purged=gtids(purged)))
    plan = planned(servers, found, *passed, rows_on=FITS)
    assert actions(plan) == ["b AutoPositionOn"]
    said = [each for each in plan.warnings if "if b had" in each and "they come back" in each]
    assert len(said) == bool(told)
    assert all(f":{told} before" in each for each in said)


def one_hole() -> Model:
    """The channel of b is behind a:4-6 in the log of a."""
    behind = channel("a", auto=False, bypassed="a:4-6")
    return model(server("a", "a:1-7", channel("b")), server("b", "a:1-3 a:7", behind))

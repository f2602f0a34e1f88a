"""What the steps for one finding must not be taken for: an answer to another one.

The findings are written down by hand: what the rules need to find them is not the matter here.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from repair import Plan, plan_repair
from repair.content.transaction_content import RowsOn, RowState
from repair.model.actions import AutoPositionOn
from repair.model.initial_model import start_model
from repair.model.replication_model import Model
from repair.model.settled_model import settle
from repair.model.strategy_case import LogEvidence
from repair.planner import BY_OTHER_STEPS
from tests.repair.build import OLD, channel, evidence_of, gtids, model, server, snapshot_of
from tests.repair.script_cases import finding
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Finding, Grade, Severity
from topology.catalogue.strategy_table import STRATEGIES
from topology.catalogue.verdict_table import CATALOGUE
from topology.readings.content_class import ContentClass
from topology.readings.snapshot import LogPosition

FITS = {"a": RowsOn(RowState.AS_AFTER), "b": RowsOn(RowState.AS_BEFORE)}
HELD = gtids("a:1-2")


def found(code: str, source: str, replica: str, of: str, **more: object) -> Finding:
    strategies = CATALOGUE[code].strategies
    made = replace(finding(), code=code, source=source, replica=replica, strategies=strategies)
    return replace(made, gtid_set=gtids(of), **more)  # type: ignore[arg-type]


def planned(
    servers: Model,
    *findings: Finding,
    keep: str = "",
    kind: ContentClass = ContentClass.DATA,
    rows_on: dict[str, RowsOn] | None = None,
) -> Plan:
    """Plan for these findings, and for those of the rules that have a code of `keep`."""
    snapshot = snapshot_of(servers)
    audit = audit_cluster(snapshot)
    kept = [each for each in audit.findings if each.code in keep.split()]
    audit = replace(audit, findings=(*kept, *findings))
    return plan_repair(snapshot, audit, evidence=evidence_of(audit, kind, rows_on=rows_on or {}))


def actions(plan: Plan) -> list[str]:
    return [f"{step.server} {step.action}" for step in plan.steps]


def by_others(plan: Plan) -> list[str]:
    return [each.code for each in plan.answered if each.strategy == BY_OTHER_STEPS]


def held_twice() -> Model:
    """d was reset: both its channels hold a:1-2, one of them behind its applier, one is stopped."""
    from_b = replace(channel("b", name="from_b"), retrieved=HELD, passed=HELD)
    from_c = replace(channel("c", name="from_c", runs=False), retrieved=HELD)
    return model(
        server("a", "a:1-3"),
        server("b", "a:1-3", channel("a")),
        server("c", "a:1-3", channel("a")),
        server("d", "a:3", from_b, from_c),
    )


def test_a_channel_that_is_started_does_not_bring_what_was_passed() -> None:
    plan = planned(
        held_twice(),
        found("H8", "b", "d", "a:1-2", channel="from_b"),
        keep="A7",
    )
    assert actions(plan) == ["d StartChannel"]
    assert by_others(plan) == []
    assert [each.code for each in plan.not_planned] == ["H8"]


@pytest.mark.parametrize("at_end", [True, False])
def test_what_one_channel_passed_does_not_arrive_by_another_that_holds_it(*, at_end: bool) -> None:
    """A stopped applier that has not come to the end of its relay log may stand before it."""
    snapshot = snapshot_of(held_twice())
    [d] = [each for each in snapshot.last if each.name == "d"]
    before = None if at_end else LogPosition.of(file="binlog.000001", position=1)
    channels = tuple(
        replace(each, applied_to=before or each.received_to) if each.name == "from_c" else each
        for each in d.channels or ()
    )
    changed = replace(d, channels=channels)
    last = tuple(changed if each.name == "d" else each for each in snapshot.last)
    audit = replace(
        audit_cluster(snapshot), findings=(found("H8", "b", "d", "a:1-2", channel="from_b"),)
    )
    begun = start_model(replace(snapshot, last=last), audit, LogEvidence())
    started = begun.replace(begun["d"].with_channel("from_c", running=True))
    assert settle(started)["d"].executed == gtids("a:3" if at_end else "a:1-3")


@pytest.mark.parametrize("code", ["A5", "A8", "A2", "A3"])
def test_an_applier_that_stands_is_not_helped_by_steps_elsewhere(code: str) -> None:
    servers = model(
        server("a", "a:1-5"),
        server("b", "a:1-5", channel("a", auto=False)),
        server("c", "a:1-3", channel("a")),
    )
    plan = planned(servers, found(code, "a", "c", "a:4"), keep="C3", kind=ContentClass.EMPTY)
    assert actions(plan) == ["b AutoPositionOn"]
    assert by_others(plan) == []
    assert [each.code for each in plan.not_planned] == [code]


def test_what_arrives_without_any_step_is_no_answer_of_a_step() -> None:
    """The channel of c uses a file position, which may be behind a:2-5: the sets do not show it."""
    servers = model(
        server("a", "a:1-5"),
        server("b", "a:1-4", channel("a", runs=False)),
        server("c", "a:1", channel("a", auto=False)),
    )
    waiting = found("T3", "a", "c", "a:2-5")
    plan = planned(servers, waiting, keep="A7", kind=ContentClass.EMPTY)
    assert actions(plan) == ["b StartChannel"]
    assert by_others(plan) == []


@pytest.mark.parametrize("grade", [Grade.PROVED, Grade.LIKELY])
@pytest.mark.parametrize("code", ["T1", "T2"])
def test_what_an_applier_may_have_passed_is_not_said_to_arrive(code: str, grade: Grade) -> None:
    """The rules grade it likely, as in ON_PERMISSIVE, where sql_replica_skip_counter may skip it."""
    servers = model(
        server("a", "a:1-5"),
        server("b", "a:1-4", channel("a", runs=False)),
        server("c", "a:1", channel("a")),
    )
    waiting = replace(found(code, "a", "c", "a:2-5"), grade=grade, severity=Severity.INFO)
    plan = planned(servers, waiting, keep="A7", kind=ContentClass.EMPTY)
    assert actions(plan) == ["b StartChannel"]
    assert by_others(plan) == ([code] if grade is Grade.PROVED else [])


BYPASSED = model(
    server("a", "a:1-9", channel("b")),
    server("b", "a:1-3 a:7-9", channel("a", auto=False, bypassed="a:4-6")),
)


def test_rows_are_fetched_only_if_nothing_was_applied_since_they_were_compared() -> None:
    plan = planned(BYPASSED, keep="H1", rows_on=FITS)
    [step] = plan.steps
    assert isinstance(step.effect, AutoPositionOn)
    assert step.effect.compared_at == gtids("a:1-3 a:7-9")
    text = "\n".join(step.procedure.statements)
    assert f"SET @fit = GTID_SUBSET(@@GLOBAL.gtid_executed, '{step.effect.compared_at}')" in text


def test_what_holds_no_rows_is_fetched_at_any_time() -> None:
    plan = planned(BYPASSED, keep="H1", kind=ContentClass.EMPTY)
    assert actions(plan) == ["b AutoPositionOn"]
    assert "@fit" not in "\n".join(plan.steps[0].procedure.statements)


def test_rows_are_not_fetched_while_transactions_arrive() -> None:
    busy = BYPASSED.replace(replace(BYPASSED["a"], executed=gtids("a:1-10")))
    plan = planned(busy, found("H1", "a", "b", "a:4-6"), rows_on=FITS)
    assert not plan.steps
    [left] = plan.not_planned
    assert "will be applied on b first" in left.why
    assert "stop the channels of b" in left.why
    stopped = busy.replace(busy["b"].with_channel("", running=False))
    plan = planned(stopped, found("H1", "a", "b", "a:4-6"), rows_on=FITS)
    assert actions(plan) == ["b AutoPositionOn"]


@pytest.mark.parametrize(("grade", "steps"), [(Grade.LIKELY, 0), (Grade.PROVED, 1)])
def test_what_the_receiver_may_drop_again_is_not_fetched(grade: Grade, steps: int) -> None:
    """f is no server: b may have committed f:1-2 before it was rebuilt, with its server_id."""
    servers = model(server("a", "a:1-5 f:1-2"), server("b", "a:1-5", channel("a")))
    plan = planned(servers, found("H8", "a", "b", "f:1-2", grade=grade), rows_on=FITS)
    assert len(plan.steps) == steps
    assert steps or "the UUID of no server that was read" in plan.not_planned[0].why


@pytest.mark.parametrize(
    ("chosen", "steps"),
    [
        ({}, ["b AutoPositionOn"]),
        ({"H1": "refetch"}, ["b AutoPositionOn"]),
        ({"H1": "inject_empty"}, ["b InjectEmpty", "b AutoPositionOn"]),
        ({"H1": "gtid_purged_append"}, []),
    ],
)
def test_no_step_fetches_what_was_chosen_to_be_left_out(
    chosen: dict[str, str], steps: list[str]
) -> None:
    """5.6 cannot append to gtid_purged. The operator may choose so because the rows are there."""
    behind = channel("a", auto=False, bypassed="a:4-6")
    servers = model(
        server("a", "a:1-9", version=OLD), server("b", "a:1-3 a:7-9", behind, version=OLD)
    )
    hole, by_position = found("H1", "a", "b", "a:4-6", channel=""), found("C3", "a", "b", "")
    by_position = replace(by_position, channel="")
    snapshot = snapshot_of(servers)
    audit = replace(audit_cluster(snapshot), findings=(hole, by_position))
    choices = {"C3": "auto_position_on", **chosen}
    evidence = evidence_of(audit, ContentClass.DATA, rows_on=FITS)
    plan = plan_repair(snapshot, audit, choices=choices, evidence=evidence)
    assert actions(plan) == steps
    if not steps:
        [why] = [each.why for each in plan.not_planned if each.code == "C3"]
        assert "gtid_purged_append was chosen to leave out there (H1" in why
        assert "That is not planned: b runs 5.6" in why


def test_a_strategy_that_is_no_answer_to_a_finding_is_not_planned() -> None:
    strange = replace(found("H1", "a", "b", "a:4-6"), strategies=(STRATEGIES["redo_on_source"],))
    [left] = planned(BYPASSED, strange).not_planned
    assert left.why == "redo_on_source: this strategy does not answer H1"

"""Which findings the steps for others answer: never more than the model shows."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from gtid import GtidSet
from repair.answered_by_steps import StepsSoFar, delivers
from repair.model.actions import AutoPositionOn, InjectEmpty, MovePast, StartChannel
from repair.model.replication_model import Model
from repair.model.strategy_case import LogEvidence
from repair.plan_input import PlanInput
from repair.plan_parts import ORDER
from tests.repair.build import channel, gtids, model, server, snapshot_of
from tests.repair.cases import a_finding
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Severity
from topology.policy import Policy

BEFORE = model(
    server("a", "a:1-3"),
    server("b", "a:1-2", channel("a", runs=False), channel("a", name="other", runs=False)),
)
BY_ITSELF = ["E4", "H7", "A5", "A6", "A8", "A9"]
OF_A_CHANNEL = ["A1", "A2", "A3", "A4", "A7"]
BY_SETS = ["H1", "H8", "E1", "E3", "J3", "P1", "T2", "T3"]


def after(executed: str = "a:1-3", **facts: Any) -> Model:
    made = replace(channel("a"), **facts)
    other = channel("a", name="other")
    return model(server("a", executed), server("b", executed, made, other))


START = StartChannel("b", "")
INJECT = InjectEmpty("b", gtids("a:3"))


def given_by(before: Model) -> PlanInput:
    snapshot = snapshot_of(before)
    return PlanInput.of(snapshot, audit_cluster(snapshot), {}, LogEvidence(), Policy())


def after_steps(effects: list[Any], then: Model, before: Model = BEFORE) -> StepsSoFar:
    """Return a plan in the making, some steps later."""
    given = given_by(before)
    outlook = given.look_ahead(given.started)
    return StepsSoFar(
        effects=effects,
        started=given.started,
        model=then,
        known=given.known,
        before=frozenset(each.id for each in outlook.findings),
        outlook=outlook,
    )


def finding(code: str, **facts: Any) -> Any:
    return a_finding(code, "a:3", **facts)


@pytest.mark.parametrize("code", [*BY_ITSELF, *OF_A_CHANNEL, *BY_SETS])
def test_nothing_is_answered_without_a_step(code: str) -> None:
    assert not delivers(after_steps([], after()), finding(code))


@pytest.mark.parametrize("code", BY_ITSELF)
def test_what_the_model_does_not_show_is_never_answered(code: str) -> None:
    assert not delivers(after_steps([START, INJECT], after()), finding(code))


@pytest.mark.parametrize("code", BY_SETS)
def test_what_has_arrived_is_answered(code: str) -> None:
    assert delivers(after_steps([INJECT], after()), finding(code))
    assert not delivers(after_steps([INJECT], after("a:1-2")), finding(code))


@pytest.mark.parametrize("code", [*OF_A_CHANNEL, *BY_SETS])
def test_a_finding_without_a_set_or_a_server_is_not_answered_by_sets(code: str) -> None:
    made = after_steps([INJECT], after())
    assert not delivers(made, a_finding(code, ""))
    assert not delivers(made, finding(code, replica="x", source="y"))


@pytest.mark.parametrize("code", OF_A_CHANNEL)
@pytest.mark.parametrize(
    ("steps", "then", "facts", "is_answered"),
    [
        ([START], after(), {}, True),
        ([INJECT], after(), {}, False),  # the set has arrived, and the channel still stands
        ([StartChannel("b", "other")], after(), {}, False),
        ([StartChannel("a", "")], after(), {}, False),
        ([AutoPositionOn("b", "", filled=GtidSet())], after(), {}, True),
        ([MovePast("b", "", SimpleNamespace())], after(), {}, True),  # type: ignore[arg-type]
        ([START], after(running=False), {}, False),
        ([START], after(is_stuck=True), {}, False),
        ([START], after(), {"channel": None}, False),
        ([START], after(), {"channel": "gone"}, False),
        ([START], after(), {"replica": "x"}, False),
    ],
)
def test_only_a_step_that_starts_the_channel_answers_for_it(
    code: str, steps: list[Any], then: Model, facts: dict[str, Any], *, is_answered: bool
) -> None:
    assert delivers(after_steps(steps, then), finding(code, **facts)) is is_answered


@pytest.mark.parametrize(("code", "is_answered"), [("H1", False), ("H8", False), ("P1", True)])
def test_what_the_rules_find_no_more_is_answered_but_not_what_was_passed(
    code: str, *, is_answered: bool
) -> None:
    made = after_steps([INJECT], after("a:1-2"))
    gone = finding(code)
    assert not delivers(made, gone), "the rules did not find it before either"
    made = replace(made, before=frozenset({gone.id}), outlook=replace(made.outlook, findings=()))
    assert delivers(made, gone) is is_answered
    made = replace(made, outlook=replace(made.outlook, findings=(gone,)))
    assert not delivers(made, gone)


@pytest.mark.parametrize("auto", [True, False])
def test_a_backlog_behind_a_file_position_is_not_answered_by_sets(*, auto: bool) -> None:
    running = model(server("a", "a:1-3"), server("b", "a:1-2", channel("a", auto=auto)))
    made = after_steps([INJECT], after(), running)
    made = replace(made, started=after(auto_position=auto))  # it arrives without a step
    for code in ("T2", "T3"):
        assert delivers(made, finding(code)) is auto
        assert not delivers(made, finding(code, channel="gone"))
    assert not delivers(made, finding("H1")), "by another channel, which may not apply it"
    made = replace(made, started=running)
    assert delivers(made, finding("T3")), "a step has brought it"
    assert delivers(made, finding("H1"))


@pytest.mark.parametrize(
    ("code", "severity", "is_answered"),
    [
        ("T1", Severity.WARNING, False),
        ("T3", Severity.WARNING, False),
        ("T1", Severity.INFO, True),
        ("T3", Severity.INFO, True),
        ("T2", Severity.WARNING, True),
    ],
)
def test_a_backlog_that_may_never_arrive_is_not_answered(
    code: str, severity: Severity, *, is_answered: bool
) -> None:
    doubtful = replace(finding(code), severity=severity)
    assert delivers(after_steps([INJECT], after()), doubtful) is is_answered


def test_holes_are_other_findings_about_the_same_server() -> None:
    own, beside = finding("H1"), finding("H8")
    findings = (own, beside, finding("H1", replica="a"), finding("E1"))
    snapshot = snapshot_of(BEFORE)
    audit = replace(audit_cluster(snapshot), findings=findings)
    given = PlanInput.of(snapshot, audit, {}, LogEvidence(), Policy())
    case = given.case(own, "refetch", model=BEFORE, effects=(), declared={})
    assert [(each.code, each.gtids) for each in case.holes] == [("H8", gtids("a:3"))]


def test_a_set_may_be_all_that_a_server_has() -> None:
    """Of a new replica, for instance: the finding is about its whole set."""
    arrived = after("a:3")
    made = after_steps([INJECT], arrived, after())
    made = replace(made, started=arrived)
    assert delivers(made, finding("T2"))
    assert not delivers(made, finding("H1")), "no step does it"
    made = replace(made, started=after("a:1"))
    for code in ("T2", "H1", "P1"):
        assert delivers(made, finding(code)), "a step has brought it"


def test_what_is_missing_on_the_source_is_looked_for_there() -> None:
    extra = model(server("a", "a:1-2"), server("b", "a:1-3", channel("a")))
    for code in ("E1", "E2", "E3", "J3"):
        assert not delivers(after_steps([INJECT], extra), finding(code))
    for code in ("H1", "P1", "T3"):
        assert delivers(after_steps([INJECT], extra), finding(code))


def test_a_stuck_applier_comes_before_sets_and_sets_before_channels() -> None:
    assert list(ORDER) == [
        *("A1", "A2", "A3"),
        *("H1", "H2", "H3", "H4", "H5", "H8", "P1"),
        *("E3", "H7", "E1", "E2", "J3", "C3", "E4"),
    ]

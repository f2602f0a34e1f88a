"""plan.json: what programs read of a plan, and what its id depends on."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from repair import Plan
from repair.render import render_files
from repair.scripts.procedure import Procedure
from repair.scripts.steps import Step
from tests.repair.build import UUIDS
from tests.repair.script_cases import finding, full_plan, numbered, plan_of, steps
from topology.catalogue.findings import Severity

STEPS = steps()
A, B = UUIDS["a"], UUIDS["b"]


def written(plan: Plan) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(render_files(plan)["plan.json"])
    return found


def step_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = written(plan_of(STEPS[name]))["steps"][0]
    return found


def test_a_plan_has_all_that_was_asked_and_found() -> None:
    plan = full_plan(STEPS)
    found = written(plan)
    assert list(found)[:2] == ["schema_version", "id"]
    assert found["id"] == plan.id
    assert found["snapshot_read_at"] == "2026-01-01T12:00:00+00:00"
    assert found["choices"] == {"E1": "inject_empty"}
    assert found["only_findings"] is None
    assert found["command"] == "gtid-audit repair plan --pair a b --again plan-1"
    assert found["estimated_seconds"] == plan.estimated_seconds == 4
    assert found["warnings"] == ["compare the tables", "a name with\na line"]
    for name in ("answered", "not_planned", "not_chosen", "rows", "contents", "afterwards"):
        assert found[name], name
    assert plan.finding_ids == ("f-1", "f-2")
    assert plan.left == {"f-3", "f-4"}, "the steps of one finding may answer another"
    assert replace(plan, steps=()).left == {"f-1", "f-2", "f-3", "f-4"}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_has_its_action_its_files_and_its_sql(name: str) -> None:
    found, step = step_of(name), STEPS[name]
    assert found["action"] == found["change"]["type"] == step.action
    assert found["change"]["server"] == found["server"] == step.server
    names = [*(check["script"] for check in found["checks"]), found["script"]]
    servers = [*(check.server for check in step.checks), step.server]
    assert names == [f"{at:02d}-{server}.sql" for at, server in enumerate(servers, start=1)]
    assert found["statements"] == list(step.procedure.statements)
    assert found["session"] == list(step.procedure.session)
    assert found["privileges"] == list(step.privileges)
    for part, guards in (
        ("preconditions", step.procedure.preconditions),
        ("verifications", step.procedure.verifications),
    ):
        assert [each["condition"] for each in found[part]] == [each.condition for each in guards]
        assert [each["message"] for each in found[part]] == [each.message for each in guards]
    assert "effect" not in found


def test_an_action_is_structured() -> None:
    assert step_of("empty transactions, 9.7.4")["change"] == {
        "type": "InjectEmpty",
        "server": "b",
        "gtids": f"{A}:4-5",
        "may_be_executed": False,
        "rows_are_there": False,
        "rows": [],
        "undone": [],
    }
    past = step_of("past an event, 9.7.4")["change"]
    assert past["channel"] == ""
    assert past["event"]["gtid"] == f"{A}:4"
    assert past["event"]["end"] == "binlog.000002:900"
    rows = step_of("rows made alike")["change"]
    assert rows["rows"][0] == {"table": "d.t", "where": "`id` = 1"}
    reset = step_of("a reset, 5.6.24")["change"]
    assert reset["restart"] == [""]
    assert reset["executed"] == f"{A}:1-3:7-9,{B}:1"


def test_a_step_has_the_state_before_and_after() -> None:
    found = step_of("auto-position with a hole to fetch, 9.7.4")
    [before], [after] = found["before"], found["after"]
    assert before["server"] == after["server"] == "b"
    assert before["gtid_executed"] == f"{A}:1-3:7-9,{B}:1"
    assert after["gtid_executed"] == f"{A}:1-9,{B}:1"
    assert before["gtid_purged"] == ""
    assert before["channels"] == ["'' from a, auto-position off, running"]
    assert after["channels"] == ["'' from a, auto-position on, running"]
    purged = step_of("gtid_purged, 9.7.4")
    assert purged["after"][0]["gtid_purged"] == f"{A}:4-6"
    stopped = step_of("stop, 9.7.4")
    assert stopped["after"][0]["channels"] == ["'' from a, auto-position on, stopped"]
    outside = step_of("start a channel from outside")
    assert outside["before"][0]["channels"] == [
        "'out' from a server outside the snapshot, auto-position on, stopped"
    ]


def test_a_check_is_there_with_its_script() -> None:
    [check] = step_of("an errant transaction, 9.7.4")["checks"]
    assert (check["server"], check["port"], check["script"]) == ("b", 3307, "01-b.sql")
    assert len(check["guards"]) == 2


def test_the_id_depends_on_what_is_done_and_on_nothing_else() -> None:
    plan = full_plan(STEPS)
    later = datetime(2030, 1, 1, tzinfo=UTC)
    [first, *others] = plan.steps
    same = (
        replace(plan, snapshot_read_at=later),
        replace(plan, assumed=()),
        replace(plan, warnings=()),
        replace(plan, command="another"),
        replace(plan, steps=(replace(first, why="in other words", after=()), *others)),
    )
    assert {each.id for each in same} == {plan.id}
    changed = (
        replace(plan, cluster="other"),
        replace(plan, choices={}),
        replace(plan, answered=plan.answered[:1]),
        replace(plan, not_planned=()),
        replace(plan, steps=()),
        *(replace(plan, steps=numbered((each, *others))) for each in _changed(first)),
    )
    assert len({plan.id, *(each.id for each in changed)}) == len(changed) + 1


def _changed(step: Step) -> list[Step]:
    return [
        replace(step, server="other"),
        replace(step, host="other"),
        replace(step, port=1),
        replace(step, unix_socket="/s"),
        replace(step, effect=STEPS["stop, 9.7.4"].effect),
        *(replace(step, procedure=each) for each in _changed_procedures(step.procedure)),
        replace(step, checks=()),
    ]


def _changed_procedures(procedure: Procedure) -> list[Procedure]:
    first, *others = procedure.preconditions
    return [
        replace(procedure, preconditions=tuple(others)),
        replace(procedure, verifications=(*procedure.verifications, first)),
        replace(procedure, session=("SET x;",)),
        replace(procedure, statements=procedure.statements[:-1]),
    ]


def test_the_finding_of_a_step_is_named() -> None:
    found = step_of("stop, 9.7.4")
    assert found["finding_ids"] == [finding().id]
    assert found["why"] == "H1 bypassed by file position: an explanation"
    assert finding().severity is Severity.WARNING

"""A plan that is read from its directory: complete, unedited, and of this version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from repair import Plan
from repair.adapters.plan_files import read_directory, write_plan
from repair.applying.written_plan import UnusablePlan, read_plan
from repair.render import PLAN, render_files
from tests.repair.script_cases import full_plan, steps


def a_plan() -> Plan:
    return full_plan(steps())


def written(**changes: Any) -> str:
    document = json.loads(render_files(a_plan())[PLAN])
    return json.dumps({**document, **changes})


def test_every_step_and_check_is_read_with_its_states() -> None:
    plan, read = a_plan(), read_plan(written())
    assert (read.id, read.cluster) == (plan.id, plan.cluster)
    assert [each.number for each in read.scripts] == [*range(1, plan.scripts_count + 1)]
    assert [each.file_name for each in read.scripts] == [
        name for step in plan.steps for name in (*map(step.check_name, step.checks), step.file_name)
    ]
    changes = [each for each in read.scripts if not each.is_check]
    for script, step in zip(changes, plan.steps, strict=True):
        assert (script.before, script.after) == (step.before, step.after)
        assert (script.server, script.title, script.risk) == (
            step.server,
            step.procedure.title,
            step.procedure.risk,
        )
        assert script.proves == f"step {step.number} is done"
    checks = [each for each in read.scripts if each.is_check]
    assert checks, "the plan has checks"
    assert all(not each.before and each.proves.startswith("go on with step") for each in checks)
    left = {each.finding_id for each in plan.not_planned}
    assert {each.finding_id for each in plan.afterwards} | left == read.announced.keys()
    assert [each.name for each in read.servers] == [each.server for each in plan.assumed]
    assert read.server(read.servers[0].name) is read.servers[0]


def test_a_check_counts_as_done_only_together_with_its_step() -> None:
    read = read_plan(written())
    for done, script in enumerate(read.scripts, start=1):
        again = read.begin_again(done)
        if script.is_check:
            assert read.scripts[again] == read.checks_of(script)[0]
        else:
            assert again == done
    assert read.begin_again(0) == 0
    assert read.begin_again(len(read.scripts)) == len(read.scripts)


def test_the_states_after_later_scripts_are_those_of_the_same_server() -> None:
    read = read_plan(written())
    changes = [each for each in read.scripts if not each.is_check]
    first = changes[0]
    later = [*read.states_after(first, first.server)]
    assert later == [
        (before, after)
        for script in changes[1:]
        for before, after in zip(script.before, script.after, strict=True)
        if after.server == first.server
    ]
    assert [*read.states_after(changes[-1], first.server)] == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a plan of gtid-audit"),
        ("{}", "not a plan of gtid-audit"),
        (written(schema_version=1), "schema_version 1.*plan again"),
        (written(schema_version=99), "schema_version 99.*plan again"),
        (written(id=7), "expected a text, found 7"),
        (written(steps=[{}]), "KeyError"),
        (written(assumed=[{"server": "a"}]), "KeyError"),
        (written(afterwards=None), "TypeError"),
        (written(command="'"), "ValueError"),
    ],
)
def test_anything_else_is_refused_with_its_reason(text: str, why: str) -> None:
    with pytest.raises(UnusablePlan, match=why):
        read_plan(text)


def test_a_plan_without_digests_was_made_by_an_older_version() -> None:
    document = json.loads(written())
    del document["digests"]
    with pytest.raises(UnusablePlan, match="digests of its scripts: plan again"):
        read_plan(json.dumps(document))


@pytest.mark.parametrize("name", ["../x.sql", "/x.sql", "..", ""])
def test_a_script_is_a_file_of_the_directory(name: str) -> None:
    document = json.loads(written())
    document["steps"][0]["script"] = name
    document["digests"][name] = "0"
    with pytest.raises(UnusablePlan, match="no file of the plan's directory"):
        read_plan(json.dumps(document))


def test_the_directory_has_the_scripts_as_they_were_written(tmp_path: Path) -> None:
    plan = a_plan()
    write_plan(plan, tmp_path / "plan")
    read, scripts = read_directory(tmp_path / "plan")
    files = render_files(plan)
    assert scripts == {each.file_name: files[each.file_name] for each in read.scripts}


def test_an_edited_script_is_refused_by_name(tmp_path: Path) -> None:
    *_, path = write_plan(a_plan(), tmp_path / "plan")
    script = path.with_name(a_plan().steps[0].file_name)
    script.write_text(script.read_text() + "\n")
    with pytest.raises(UnusablePlan, match=f"{script.name}: it was edited after the plan was made"):
        read_directory(tmp_path / "plan")
    script.unlink()
    with pytest.raises(UnusablePlan, match=f"{script.name}: No such file"):
        read_directory(tmp_path / "plan")


def test_a_directory_without_a_plan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusablePlan, match=r"plan\.json: No such file"):
        read_directory(tmp_path)
    (tmp_path / PLAN).write_text("{}")
    with pytest.raises(UnusablePlan, match=r"plan\.json: not a plan"):
        read_directory(tmp_path)

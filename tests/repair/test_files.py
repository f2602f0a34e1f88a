"""What is written: scripts, runbook, JSON; all of it or nothing; never more than was meant."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from repair import Plan, plan_repair
from repair.adapters.plan_files import DirectoryTaken, record_applied, write_plan
from repair.render import render_files
from tests.repair.build import channel, evidence_of, model, server, snapshot_of
from topology.audit_cluster import audit_cluster
from topology.facts.accepted import APPLIED_FILE, NotAPlan, applied_by_from_text


def _plan(choices: dict[str, str] | None = None, up_longer: int = 0) -> Plan:
    snapshot = snapshot_of(
        model(
            server("a", "a:1-9", channel("b")),
            server("b", "a:1-3 a:7-9", channel("a", auto=False, bypassed="a:4-6")),
        )
    )
    last = (
        replace(each, uptime_seconds=(each.uptime_seconds or 0) + up_longer)
        for each in snapshot.last
    )
    snapshot = replace(snapshot, last=tuple(last))
    audit = audit_cluster(snapshot)
    return plan_repair(snapshot, audit, choices=choices, evidence=evidence_of(audit))


def _scripts(plan: Plan) -> list[str]:
    return [text for name, text in render_files(plan).items() if name.endswith(".sql")]


def test_every_file_is_for_who_made_it_alone(tmp_path: Path) -> None:
    plan = _plan({"H1": "inject_empty"})
    paths = write_plan(plan, tmp_path / "new" / "plan")
    scripts = ["01-b.sql", "02-a.sql", "03-b.sql"]
    assert [path.name for path in paths] == [*scripts, "RUNBOOK.md", "plan.json"]
    for path in paths:
        assert path.read_text() == render_files(plan)[path.name]
        assert path.stat().st_mode & 0o777 == 0o600
    assert paths[0].parent.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in paths[0].parent.parent.iterdir()] == ["plan"], "nothing left over"


def test_who_applied_a_plan_is_recorded_beside_it(tmp_path: Path) -> None:
    """The plan is the same as before, each application is a record, a damaged one is left alone."""
    written = write_plan(_plan(), tmp_path / "plan")
    at = datetime(2026, 1, 2, 12, tzinfo=UTC)
    for operator in ("anna@ops", "ben@ops"):
        record_applied(tmp_path / "plan", plan_id="x", procedure="p", operator=operator, at=at)
    path = tmp_path / "plan" / APPLIED_FILE
    assert applied_by_from_text(path.read_text(), "x") == ("anna@ops", "ben@ops")
    assert [each["at"] for each in json.loads(path.read_text())["applied"]] == [
        "2026-01-02T12:00:00+00:00"
    ] * 2
    assert path.stat().st_mode & 0o777 == 0o600
    assert write_plan(_plan(), tmp_path / "plan") == written
    assert {each.name for each in path.parent.iterdir()} == {
        *(each.name for each in written),
        APPLIED_FILE,
    }
    path.write_text("{")
    with pytest.raises(NotAPlan):
        record_applied(tmp_path / "plan", plan_id="x", procedure="p", operator="o", at=at)
    assert path.read_text() == "{"


def test_an_empty_directory_is_taken_over(tmp_path: Path) -> None:
    assert write_plan(_plan(), tmp_path)[0].exists()


def test_the_same_plan_may_be_written_again(tmp_path: Path) -> None:
    first = write_plan(_plan(), tmp_path / "plan")
    times = [path.stat().st_mtime_ns for path in first]
    assert write_plan(_plan(), tmp_path / "plan") == first
    assert [path.stat().st_mtime_ns for path in first] == times


@pytest.mark.parametrize("there", ["another plan", "a stranger's file", "an edited script", "more"])
def test_anything_else_is_left_alone(tmp_path: Path, there: str) -> None:
    target = tmp_path / "plan"
    if there == "a stranger's file":
        target.mkdir()
        (target / "notes.txt").write_text("mine")
    else:
        write_plan(_plan({"H1": "inject_empty"} if there == "another plan" else None), target)
    if there == "an edited script":
        (target / "01-b.sql").write_text("-- edited\nDO 1;\n")
    if there == "more":
        (target / "notes.txt").write_text("mine")
    before = {path.name: path.read_text() for path in target.iterdir()}
    with pytest.raises(DirectoryTaken, match="holds something else"):
        write_plan(_plan(), target)
    assert {path.name: path.read_text() for path in target.iterdir()} == before


def test_the_same_plan_of_a_later_reading_is_left_as_it_is(tmp_path: Path) -> None:
    plan = _plan()
    first = write_plan(plan, tmp_path / "plan")
    texts = [path.read_text() for path in first]
    later = replace(plan, snapshot_read_at=datetime(2030, 1, 1, tzinfo=UTC))
    assert later.id == plan.id
    assert render_files(later) != render_files(plan)
    assert write_plan(later, tmp_path / "plan") == first
    assert [path.read_text() for path in first] == texts


@pytest.mark.parametrize("seconds", [-1, 1])
def test_a_start_that_was_measured_a_second_apart_is_the_same_plan(
    tmp_path: Path, seconds: int
) -> None:
    """Uptimes have whole seconds, and the second ends between two readings or does not."""
    first, again = _plan({"H1": "inject_empty"}), _plan({"H1": "inject_empty"}, seconds)
    assert _scripts(first) != _scripts(again), "the start is in a guard"
    assert again.id == first.id
    paths = write_plan(first, tmp_path / "plan")
    assert write_plan(again, tmp_path / "plan") == paths


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan").write_text("mine")
    with pytest.raises(DirectoryTaken, match="not a directory"):
        write_plan(_plan(), tmp_path / "plan")


def test_what_cannot_be_finished_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: Path, _target: Path) -> None:
        raise PermissionError("no")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(PermissionError):
        write_plan(_plan(), tmp_path / "plan")
    assert not list(tmp_path.iterdir())


def test_the_json_is_the_whole_plan() -> None:
    plan = _plan()
    written = json.loads(render_files(plan)["plan.json"])
    assert written["id"] == plan.id
    [step] = written["steps"]
    assert [check["script"] for check in step["checks"]] == ["01-a.sql"]
    assert (step["script"], step["number"]) == ("02-b.sql", 2)
    assert written["steps"][0]["statements"] == list(plan.steps[0].procedure.statements)
    assert written["steps"][0]["finding_ids"] == list(plan.finding_ids)
    assert [each["server"] for each in written["assumed"]] == ["a", "b"]


def test_a_script_begins_with_comments_then_guards_then_the_change() -> None:
    plan = _plan({"H1": "inject_empty"})
    script = render_files(plan)["01-b.sql"]
    kinds = [
        "comment" if line.startswith("--") else "statement" for line in script.splitlines() if line
    ]
    assert kinds[:8] == ["comment"] * 8
    code = [line for line in script.splitlines() if line and not line.startswith("--")]
    assert code[0].startswith("SET @client = ")
    assert code[1] == "SET NAMES utf8mb4;"
    assert code[2].endswith("@go = 1, @done = 0;")
    assert "@client NOT IN" in code[3]
    assert "server_uuid" in code[5]
    assert next(i for i, line in enumerate(code) if "gtid_next" in line) > 4
    assert code[-1].startswith("SELECT IF(@go, 'step 1 is done'")
    for about in ("Why:", "Findings:", "Risk:", "If it stops here:", "Undo:", "Check:", "Run:"):
        assert f"-- {about}" in script


def test_gtid_next_is_always_given_back() -> None:
    for name, text in render_files(_plan({"H1": "inject_empty"})).items():
        if name.endswith(".sql"):
            values = re.findall(r"SET SESSION gtid_next = (.*);", text)
            assert not values or values[-1] == "'AUTOMATIC'"


def test_scripts_are_for_the_plain_client_only() -> None:
    for choice in ("refetch", "inject_empty", "gtid_purged_append"):
        for name, text in render_files(_plan({"H1": choice})).items():
            if name.endswith(".sql"):
                for line in text.splitlines():
                    assert line == "" or line.startswith("-- ") or line.endswith(";")
                assert "\\" not in text
                assert "DELIMITER" not in text.upper()


def test_no_name_becomes_a_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server named by a joker: its name shows in comments, quoted texts and the file's name."""
    from tests.repair import build

    joker = "b'\n; DROP TABLE t; -- `/*"
    monkeypatch.setitem(build.UUIDS, joker, build.UUIDS["b"])
    snapshot = build.snapshot_of(
        model(
            server("a", "a:1-9"),
            server(joker, "a:1-3 a:7-9", channel("a", auto=False, bypassed="a:4-6")),
        )
    )
    plan = plan_repair(snapshot, audit_cluster(snapshot), choices={"H1": "inject_empty"})
    files = render_files(plan)
    assert next(iter(files)) == "01-b____DROP_TABLE_t__--____.sql"
    for name, text in files.items():
        if name.endswith(".sql"):
            assert not re.search(r"^\s*;?\s*DROP", text, re.MULTILINE)
            for line in text.splitlines():
                bare = re.sub(r"'(?:[^']|'')*'", "''", line)
                assert line.startswith("--") or "DROP" not in bare

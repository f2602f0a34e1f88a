"""A plan that was stopped before its last step, planned again (`--again`): the same end."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from compose import faults
from compose.native.shapes import Pair
from gtid_audit.cli import run
from tests.repair.live import await_clean, executed, rows

pytestmark = pytest.mark.slow  # a rare shape: make nightly


def planned(
    pair: Pair, capsys: pytest.CaptureFixture[str], folder: Path, *options: str
) -> dict[str, Any]:
    capsys.readouterr()
    dsns = pair.a.dsn, pair.b.dsn
    run(["repair", "plan", "--pair", *dsns, "--json", "--out", str(folder), *options])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def run_steps(pair: Pair, steps: list[dict[str, Any]], folder: Path) -> None:
    servers = {f"{each.host}:{each.port}": each for each in pair.servers.values()}
    for step in steps:
        [script] = folder.glob(f"{step['number']:02d}-*.sql")
        done = servers[step["server"]].client(script.read_text())
        assert done.returncode == 0, done.stderr


def purged(pair: Pair) -> None:
    faults.purge_under_stopped_replica(pair)


def lost(pair: Pair) -> None:
    faults.lost_tail_crash(pair)


@dataclass(frozen=True)
class Stopped:
    """A fault, the selected strategy whose last step is left, and whether rows are equal then."""

    fault: Callable[[Pair], None]
    choice: str
    table: str
    is_equal: bool = True


STOPPED = (
    Stopped(lost, "E3=redo_on_source", "lost.t"),
    Stopped(lost, "E3=undo_on_replica", "lost.t"),
    Stopped(purged, "P1=inject_empty", "purged.t", is_equal=False),
)


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
@pytest.mark.parametrize("case", STOPPED, ids=lambda case: case.choice)
def test_the_start_that_is_left_is_planned(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    shape: str,
    case: Stopped,
) -> None:
    pair: Pair = request.getfixturevalue(shape)
    case.fault(pair)
    plan = planned(pair, capsys, tmp_path / "plan", f"--strategy={case.choice}")
    assert plan["steps"][-1]["action"] == "StartChannel"
    run_steps(pair, plan["steps"][:-1], tmp_path / "plan")
    # Without the choices of the plan nothing is started: no set shows why the GTIDs fit by now.
    alone = planned(pair, capsys, tmp_path / "alone")
    assert alone["steps"] == []
    [left] = [each for each in alone["not_planned"] if each["code"] == "A4"]
    assert "select it with --strategy A4=start_channel" in left["why"]
    again = planned(pair, capsys, tmp_path / "again", "--again", str(tmp_path / "plan"))
    last = plan["steps"][-1]
    found = [(each["action"], each["server"]) for each in again["steps"]]
    assert found == [(last["action"], last["server"])]
    run_steps(pair, again["steps"], tmp_path / "again")
    await_clean(pair)
    assert executed(pair.a) == executed(pair.b)
    assert (rows(pair.a, case.table) == rows(pair.b, case.table)) is case.is_equal


def test_a_start_is_not_planned_where_the_source_used_the_gtids_itself(
    pair97: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sets agree as they do behind the steps of the plan, and only contents show it."""
    faults.lost_tail_crash(pair97)
    planned(pair97, capsys, tmp_path / "plan", "--strategy=E3=redo_on_source")
    pair97.a.execute(*(f"CREATE DATABASE another{number}" for number in range(4)))
    for number, options in enumerate(([], ["--content"], ["--no-content"])):
        folder = tmp_path / f"again{number}"
        again = planned(pair97, capsys, folder, "--again", str(tmp_path / "plan"), *options)
        assert again["steps"] == []
        assert "A4" in [each["code"] for each in again["not_planned"]]

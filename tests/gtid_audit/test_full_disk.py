"""A full disk behind standard output: a clear error and its status, no defect."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gtid_audit import exits
from gtid_audit.commands import running_repair
from gtid_audit.commands.running_repair import RunOptions
from gtid_audit.output import OutputLost
from repair.applying.procedures_applied import EventKind, ProcedureEvent
from tests.snapshots import NOON

FULL = Path("/dev/full")
SET = "aaaaaaaa-0000-0000-0000-000000000001:1-3"
COMMANDS = [
    ("--help", True),
    ("explain E1", True),
    *(
        pytest.param(command, buffers, marks=pytest.mark.slow)
        for command in (
            *("--help", "--version", "pair --help", "explain E1", "explain E1 --json", "man"),
            *("repair list --json", f"sets equal {SET} {SET}"),
        )
        for buffers in (True, False)
    ),
]


@pytest.mark.long
@pytest.mark.skipif(not FULL.exists(), reason="provider missing: /dev/full")
@pytest.mark.parametrize(("command", "buffers"), COMMANDS)
def test_each_command_ends_in_64(command: str, tmp_path: Path, *, buffers: bool) -> None:
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gtid_audit", *command.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={
                **os.environ,
                "XDG_STATE_HOME": str(tmp_path),
                "PYTHONUNBUFFERED": "" if buffers else "1",
            },
        )
    assert done.returncode == exits.USAGE
    assert done.stderr == f"gtid-audit: {OutputLost(OSError(28, 'No space left on device'))}\n"


@pytest.mark.parametrize(("full_at", "status"), [("event", 2), ("end", 0)])
def test_a_repair_ends_in_2_unless_it_was_done(
    full_at: str,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A script that had begun is not "nothing was sent"; one that is done stays done."""

    def write(*_: object) -> None:
        raise OutputLost(OSError(28, "No space left on device"))

    class Applied:
        def __init__(self, say: Any, **_: object) -> None:
            self.say = say

        def run(self) -> SimpleNamespace:
            if full_at == "event":
                monkeypatch.setattr(running_repair, "write_line", write)
                self.say(ProcedureEvent(1, NOON, EventKind.BEGUN, None, None, "begun"))
            return SimpleNamespace(id="p1")

    monkeypatch.setattr(running_repair, "Application", Applied)
    monkeypatch.setattr(running_repair, "show_end", write)
    monkeypatch.setattr(running_repair, "status_of", lambda _ended: 0)
    options = RunOptions(
        step=False, detach=False, json_lines=False, as_json=False, asks_password=False
    )
    given: Any = SimpleNamespace(id="p1")
    assert running_repair.run(given, given, given, options) == status
    shown = capsys.readouterr().err
    assert "No space left on device" in shown
    assert ("gtid-audit repair resume p1" in shown) is (full_at == "event")

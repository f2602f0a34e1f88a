"""--watch: audits again, survives a failure, and ends with the status of the last audit."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from gtid_audit import exits
from gtid_audit.cli import run
from gtid_audit.commands import watching
from gtid_audit.exits import UsageProblem
from gtid_audit.output_form import OutputForm
from gtid_audit.views.audit_results import InMemory
from gtid_audit.views.report import Engine, report_of
from tests.gtid_audit.build import GTID_AUDIT, healthy, holed
from topology.audit_cluster import audit_cluster
from topology.readings.target import Secret

DEAD = ("mysql://root@127.0.0.1:1/", "mysql://root@127.0.0.1:2/")
HOLED = InMemory(report_of(Engine.LOCAL, [audit_cluster(holed())]))
HEALTHY = InMemory(report_of(Engine.LOCAL, [audit_cluster(healthy())]))


def audits(*steps: Any) -> Callable[[watching.Say], int]:
    """Return an audit that does one step after another, and then is interrupted."""
    left = iter(steps)

    def audit(say: watching.Say) -> int:
        step = next(left, KeyboardInterrupt())
        if isinstance(step, BaseException):
            raise step
        return say(step)

    return audit


@pytest.fixture(autouse=True)
def _no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "sleep", lambda _seconds: None)


def watched(*steps: Any, form: OutputForm = OutputForm.PLUGIN) -> int:
    return watching.audited(audits(*steps), form=form, watch="5")


def test_without_watch_there_is_one_audit(capsys: pytest.CaptureFixture[str]) -> None:
    audit = audits(HEALTHY, HEALTHY)
    assert watching.audited(audit, form=OutputForm.PLUGIN, watch=None) == 0
    assert capsys.readouterr().out.count("\n") == 1


@pytest.mark.parametrize(("last", "status"), [(HEALTHY, 0), (HOLED, 2)])
def test_the_status_is_that_of_the_last_audit(
    last: InMemory, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert watched(HOLED, HEALTHY, last) == status
    assert capsys.readouterr().out.count("\n") == 3


def test_an_interrupt_before_the_first_answer_is_an_interrupt() -> None:
    assert watched() == exits.INTERRUPTED


@pytest.mark.parametrize("failure", [RuntimeError("mysql://u:pw@h/ | x"), UsageProblem("gone")])
def test_an_audit_that_fails_is_unknown_and_the_next_one_follows(
    failure: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    assert watched(HEALTHY, failure) == 3
    ok, unknown = capsys.readouterr().out.splitlines()
    assert ok.startswith("GTID OK - ")
    assert unknown.startswith("GTID UNKNOWN - ")
    assert watched(HEALTHY, failure, HOLED, form=OutputForm.JSONL) == 2
    out = capsys.readouterr().out
    reasons = [each for each in map(json.loads, out.splitlines()) if each["type"] == "unknown"]
    assert len(reasons) == 1
    assert "pw" not in out
    assert ("gone" in reasons[0]["reason"]) is isinstance(failure, UsageProblem)


def test_a_defect_of_the_first_audit_is_unknown_too() -> None:
    assert watched(RuntimeError("x")) == 3


def test_wrong_usage_ends_it_at_once() -> None:
    with pytest.raises(UsageProblem, match="no such file"):
        watched(UsageProblem("no such file"), HEALTHY)


def test_text_follows_text_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert watched(HEALTHY, HEALTHY, form=OutputForm.TEXT) == 0
    out = capsys.readouterr().out
    assert out.count(" OK  ") == 2
    assert "\x1b" not in out


def test_a_terminal_is_repainted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr(watching, "get_terminal_size", lambda: os.terminal_size((80, 5)))
    assert watched(HOLED, HEALTHY, form=OutputForm.TEXT) == 0
    out = capsys.readouterr().out
    assert out.startswith("\x1b[2J\x1b[H")
    assert out.count("\x1b[2J") == 1, "cleared once, then painted over"
    pages = out.removeprefix("\x1b[2J").split("\x1b[H")[1:]
    assert len(pages) == 2
    for page in pages:
        assert page.endswith("\x1b[J")
        assert page.count("\n") <= 4, "it fits a terminal of 5 lines"
    assert re.search(r"… \d+ more lines; every 5 s, Ctrl-C ends", pages[0])


def test_a_line_that_the_terminal_wraps_needs_more_rows() -> None:
    colored = f"\x1b[1;31m{'x' * 20}\x1b[0m"
    fits = watching._count_that_fits
    assert fits(["a", "", "b"], columns=10, rows=3) == 3
    assert fits(["a", "", "b"], columns=10, rows=2) == 2
    assert fits([colored, "a", "b"], columns=10, rows=3) == 2
    assert fits([colored, "a", "b"], columns=9, rows=3) == 1
    assert fits([colored], columns=10, rows=1) == 0


@pytest.mark.parametrize("command", [("pair",), ("audit",), ("audit", "--discover")])
def test_a_password_is_asked_for_once(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts, pauses = [], iter((None, None))

    def prompt() -> Secret:
        prompts.append(1)
        return Secret("hunter2")

    def pause(_seconds: float) -> None:
        if next(pauses, 1):
            raise KeyboardInterrupt

    monkeypatch.setattr("gtid_audit.operands.user_accounts.ask_password", prompt)
    monkeypatch.setattr(watching, "sleep", pause)
    options = ("--ask-password", "--timeout", "1", "--watch", "9", "--format", "plugin")
    assert run((*command, *DEAD, *options)) == 3
    assert capsys.readouterr().out.count("GTID UNKNOWN") == 3
    assert prompts == [1]


@pytest.mark.parametrize("seconds", ["0", "nan", "x", "90000"])
def test_a_wrong_interval_is_64(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(("pair", *DEAD, "--watch", seconds)) == 64
    assert "--watch: expected 0.1 to 86,400 seconds" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ("--snapshots", "x"),
        ("--offline", "x"),
        ("--questions", "9.7.0"),
        ("--fleet", "x", "--write-baseline", "y"),
    ],
)
def test_what_is_read_once_is_not_watched(
    options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(("audit", "--watch", "5", *options)) == 64
    assert "is not for --watch" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("command", ["pair", "audit"])
def test_a_real_interrupt_ends_with_the_last_status(command: str) -> None:
    words = [GTID_AUDIT, command, *DEAD, "--timeout", "1", "--watch", "0.1", "--format", "plugin"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        first, second = process.stdout.readline(), process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert first == second
    assert first.startswith(b"GTID UNKNOWN - ")
    assert (process.returncode, err) == (3, b"")

import re
import threading
from io import StringIO

import pytest
from rich.console import Console

from gtid_audit import clock, output
from gtid_audit.output import progress
from gtid_audit.views.report_parts import explained


@pytest.fixture(autouse=True)
def _no_tick_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_TICK_SECONDS", 3600)


@pytest.mark.parametrize(
    ("is_terminal", "term", "shown"),
    [
        (True, "xterm", "\r\x1b[Kreading \\x1b[1m\r\x1b[K"),
        (True, "dumb", ""),
        (False, "xterm", ""),
    ],
)
def test_progress_is_for_those_who_watch(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    is_terminal: bool,
    term: str,
    shown: str,
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    monkeypatch.setenv("TERM", term)
    with progress() as line:
        line.say("reading \x1b[1m")
    assert capsys.readouterr() == ("", shown)


def test_a_step_that_lasts_shows_its_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    now = [0.0]
    monkeypatch.setattr(clock, "monotonic_seconds", lambda: now[0])
    line = output.Progress(is_shown=True)
    line.say("compiling")
    for moment in (1.9, 7.5):
        now[0] = moment
        line.tick()
    line.say("reading")
    line.clear()
    line.tick()  # nothing lasts any more
    drawn = capsys.readouterr().err.split("\r\x1b[K")
    assert drawn == ["", "compiling", "compiling", "compiling … 7 s", "reading", ""]


def test_a_long_first_step_is_shown_without_a_word_from_the_command(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The command does nothing here but wait: so does one whose kernels are compiled."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(output, "_TICK_SECONDS", 0.01)
    drawn = threading.Event()
    draw = output.Progress.tick

    def noted(line: output.Progress) -> None:
        draw(line)
        drawn.set()

    monkeypatch.setattr(output.Progress, "tick", noted)
    with output.progress():
        assert drawn.wait(60)
    assert "working" in capfd.readouterr().err


def test_output_is_not_written_into_the_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with output.progress("reading"):
        output.write("answer\n")
        assert capsys.readouterr() == ("answer\n", "\r\x1b[K")
        output.warn("beware")
        assert capsys.readouterr().err == "\r\x1b[Kgtid-audit: beware\n"


def test_held_output_is_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    with output.held_output() as pieces:
        output.write("a")
        output.write("b")
    assert (pieces, capsys.readouterr().out) == (["a", "b"], "")
    output.write("c")
    assert capsys.readouterr().out == "c"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("Two. Possible causes: a; b. Compare the rows.", 1),
        ("No cause; at all; and nothing; more.", 1),
        ("It is so. Possible causes: a; b (c, d. e); f. Compare the rows.", 5),
        ("Possible causes: a; b; c.", 4),
        ("Possible causes: a; b (c; d); e; f (g).", 5),
    ],
)
def test_several_causes_are_a_list_that_has_every_word(text: str, lines: int) -> None:
    paper = StringIO()
    Console(file=paper, width=200).print(explained(text))
    printed = paper.getvalue()
    assert len(printed.splitlines()) == lines
    assert re.sub(r"[·;.\s]+", " ", printed).split() == re.sub(r"[;.\s]+", " ", text).split()

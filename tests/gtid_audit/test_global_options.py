"""--quiet, --no-color and -V, before and after the command."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from gtid_audit import __version__, clock, output
from gtid_audit.cli import run
from gtid_audit.global_options import GLOBAL_OPTIONS
from gtid_audit.views.reconcile_text import reconcile_document, show_reconciled
from gtid_audit.views.reconciled import Reconciled
from tests.gtid_audit.build import run_program
from tests.repair.cases import a_finding
from tests.topology.pasted_texts import pair
from topology.catalogue.findings import Verdict

NOON = datetime(2026, 1, 2, 12, 1, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(clock, "now", lambda: NOON)
    for name, text in pair(Replica_SQL_Running="No", Last_SQL_Errno="1062").items():
        (tmp_path / f"{name}.txt").write_text(text)
    return str(tmp_path)


@pytest.mark.long
def test_the_version_has_a_short_name() -> None:
    assert (
        run_program("-V").stdout == run_program("--version").stdout == f"gtid-audit {__version__}\n"
    )


@pytest.mark.parametrize("is_before", [True, False])
def test_quiet_is_the_first_line(
    folder: str, capsys: pytest.CaptureFixture[str], *, is_before: bool
) -> None:
    assert run(("audit", "--offline", folder)) == 2
    whole = capsys.readouterr().out
    words = ("audit", "--offline", folder)
    assert run(("--quiet", *words) if is_before else (*words, "--quiet")) == 2
    out, err = capsys.readouterr()
    assert out == whole.splitlines(keepends=True)[0]
    assert err == ""
    assert "Next: gtid-audit explain" in whole


def test_quiet_is_one_line_however_narrow(
    folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log or a mail takes the line; it was two where labels or a time made it long."""
    monkeypatch.setenv("COLUMNS", "30")
    assert run(("--quiet", "audit", "--offline", folder)) == 2
    out, _ = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert "UTC" in out


def test_quiet_leaves_a_document_complete(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = []
    for options in ((), ("--quiet",)):
        assert run(("audit", "--offline", folder, "--json", *options)) == 2
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]


def test_quiet_of_a_reconciled_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    found = Reconciled("orders", Verdict.UNKNOWN, (), (), unread=("db1 did not answer",))
    show_reconciled(found)
    whole = capsys.readouterr().out
    show_reconciled(found, is_short=True)
    assert capsys.readouterr().out == whole.splitlines(keepends=True)[0] == " UNKNOWN  orders\n"


def test_a_reconciled_cluster_says_why_something_is_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    left = a_finding("S2", "a:1")
    found = Reconciled(
        "orders", Verdict.WARNING, (left,), (left,), reasons={left.id: "by hand: d.t"}
    )
    show_reconciled(found)
    shown = capsys.readouterr().out
    assert "  left: S2" in shown
    assert "        by hand: d.t\n" in shown
    assert "were not compared" not in shown
    [cluster] = reconcile_document([found])["clusters"]
    assert cluster["reasons"] == [{"finding": left.id, "why": "by hand: d.t"}]
    show_reconciled(Reconciled("orders", Verdict.OK, (), (), compares_definitions=False))
    assert "definitions were not compared (`definitions: true`" in capsys.readouterr().out


def test_quiet_leaves_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(("sets", "count", "x", "--quiet")) == 64
    assert "expected" in capsys.readouterr().err


def test_quiet_shows_no_progress_and_no_hints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(GLOBAL_OPTIONS, "is_quiet", True)
    with output.progress() as line:
        line.say("reading")
    output.hint("it helps")
    assert capsys.readouterr() == ("", "")
    output.warn("it is wrong")
    assert capsys.readouterr().err == "gtid-audit: it is wrong\n"


def test_an_option_of_one_run_is_not_one_of_the_next(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(("sets", "count", "", "--quiet", "--no-color", "--debug")) == 0
    assert (GLOBAL_OPTIONS.is_quiet, GLOBAL_OPTIONS.has_color) == (True, False)
    assert run(("sets", "count", "")) == 0
    assert (GLOBAL_OPTIONS.is_quiet, GLOBAL_OPTIONS.has_color) == (False, True)
    assert GLOBAL_OPTIONS.is_debug is False


@pytest.mark.parametrize(
    ("arguments", "environment", "has_color"),
    [
        ((), {}, True),
        (("--no-color",), {}, False),
        ((), {"NO_COLOR": "1"}, False),
        ((), {"NO_COLOR": ""}, True),
        ((), {"GTID_AUDIT_NO_COLOR": "1"}, False),
    ],
)
def test_colors(
    folder: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    environment: dict[str, str],
    *,
    has_color: bool,
) -> None:
    for name in ("NO_COLOR", "GTID_AUDIT_NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert run(("audit", "--offline", folder, *arguments)) == 2
    assert ("[1;37;41m" in capsys.readouterr().out) is has_color

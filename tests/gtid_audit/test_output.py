import pytest

from gtid_audit.output import progress


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

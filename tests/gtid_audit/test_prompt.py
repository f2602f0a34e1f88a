import pytest

from gtid_audit.exits import UsageProblem
from gtid_audit.operands.prompt import ask_password


def test_no_prompt_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    with pytest.raises(UsageProblem, match="needs a terminal"):
        ask_password()

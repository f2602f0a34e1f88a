"""What a server shows of a guard's message, and of a statement: cut where its limits are."""

import pytest

from repair.sql.guard import DETAIL_CHARACTERS_MAX, GUARD_CHARACTERS_MAX, Guard
from repair.sql.script import _STATEMENT_CHARACTERS_SHOWN, short


@pytest.mark.parametrize(
    ("detail", "limit"),
    [("", GUARD_CHARACTERS_MAX), ("@why", GUARD_CHARACTERS_MAX - DETAIL_CHARACTERS_MAX)],
)
def test_a_message_is_as_long_as_its_error_shows(detail: str, limit: int) -> None:
    """The server adds the detail to the message, and shows both together."""
    whole, longer = "x" * limit, "x" * limit + "y"
    assert Guard("TRUE", whole, detail).message == whole
    assert Guard("TRUE", longer, detail).message == "x" * (limit - 3) + "..."


def test_a_statement_is_shown_on_one_line() -> None:
    whole = "x" * _STATEMENT_CHARACTERS_SHOWN
    assert short("SELECT\n  1") == "SELECT 1"
    assert short(whole) == whole
    assert short(whole + "y") == whole[:-1] + "…"

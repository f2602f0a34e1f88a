"""The tables of the code that decides are those that were read and approved."""

from tests.tidy.decision_tables import APPROVED, text


def test_tables_and_limits_are_as_approved() -> None:
    """Wrong? Read the difference; then `python -m tests.approve`."""
    assert text().splitlines() == APPROVED.read_text().splitlines()

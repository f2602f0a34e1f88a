"""Scripts whose servers, readings or action are otherwise: they change as it was approved."""

import pytest

from tests.repair.changed_scripts import APPROVED, Entry, outcome, read_entries

ENTRIES = read_entries(APPROVED.read_text())


@pytest.mark.parametrize(
    ("entry", "approved"), ENTRIES, ids=[f"entry {at}" for at in range(len(ENTRIES))]
)
def test_a_changed_case_changes_the_script_as_approved(entry: Entry, approved: str) -> None:
    """Wrong? Read the difference; then `python -m tests.approve`."""
    assert outcome(entry) == approved, entry.text()


def test_no_entry_is_there_twice() -> None:
    assert len({entry for entry, _ in ENTRIES}) == len(ENTRIES)
    assert all(approved for _, approved in ENTRIES)

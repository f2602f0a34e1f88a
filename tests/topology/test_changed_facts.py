"""What the audit reports otherwise where one or two facts are other ones, as it was approved."""

import pytest

from tests.topology.changed_facts import APPROVED, CHANGES, Entry, outcome, read_entries

ENTRIES = read_entries(APPROVED.read_text())


@pytest.mark.parametrize(
    ("entry", "approved"), ENTRIES, ids=[f"entry {at}" for at in range(len(ENTRIES))]
)
def test_a_changed_fact_changes_what_was_approved(entry: Entry, approved: str) -> None:
    """Wrong? Read the difference; then `python -m tests.approve`."""
    assert outcome(entry) == approved, entry.text()


def test_every_entry_is_there_once_and_changes_something() -> None:
    assert len({entry for entry, _ in ENTRIES}) == len(ENTRIES)
    assert all(approved for _, approved in ENTRIES)
    assert {change for entry, _ in ENTRIES for _, _, change in entry.changes} <= CHANGES.keys()

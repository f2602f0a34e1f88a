"""What is computed of each scenario, with and without changed facts: no part changes unnoticed."""

import pytest

from tests.topology.fact_digests import APPROVED, entries, entry_of, line_of

LINES = APPROVED.read_text().splitlines()


@pytest.mark.parametrize("line", LINES, ids=[f"line {at}" for at in range(len(LINES))])
def test_facts_findings_and_questions_are_as_approved(line: str) -> None:
    """Wrong? Is it intended? Then `python -m tests.approve`."""
    assert line_of(entry_of(line)) == line


def test_every_scenario_and_every_entry_has_its_line() -> None:
    assert {entry_of(line) for line in LINES} == set(entries())
    assert len(set(LINES)) == len(LINES)

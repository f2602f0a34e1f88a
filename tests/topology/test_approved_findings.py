"""Findings as they were read and approved: no evidence, cause or strategy changes unnoticed."""

import pytest

from tests.topology.approved_findings import STORIES, in_words, read_approved, title_of
from tests.topology.transcript import Scenario, read_scenarios

SCENARIOS = read_scenarios(STORIES.read_text())
APPROVED = read_approved()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: f"line {scenario.line}")
def test_every_finding_is_the_one_that_was_approved(scenario: Scenario) -> None:
    """Wrong? Read the difference; then `python -m tests.approve`."""
    assert in_words(scenario) == APPROVED.get(title_of(scenario))


def test_every_story_is_approved_once() -> None:
    assert sorted(APPROVED) == sorted(map(title_of, SCENARIOS))

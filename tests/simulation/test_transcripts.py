"""What the product says of kept histories, as it was read and approved."""

import pytest

from tests.simulation.transcripts import APPROVED, Story, read_stories, transcript

STORIES = read_stories(APPROVED.read_text())


@pytest.mark.parametrize(
    ("story", "approved"), STORIES, ids=[f"story {at}" for at in range(len(STORIES))]
)
def test_a_history_is_reported_and_planned_as_approved(story: Story, approved: str) -> None:
    """Wrong? Read the difference; then `python -m tests.approve`."""
    assert transcript(story) == approved.rstrip("\n"), story.text


def test_no_story_is_there_twice() -> None:
    assert len({story.text for story, _ in STORIES}) == len(STORIES)

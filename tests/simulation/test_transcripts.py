"""What the product says of kept histories, as it was read and approved."""

import pytest

from tests.simulation import digests, history_digests
from tests.simulation.digests import entries, entry_of, line_of
from tests.simulation.transcripts import APPROVED, Story, read_stories, transcript

HISTORIES = history_digests.APPROVED.read_text().splitlines()
STORIES = read_stories(APPROVED.read_text())
DIGESTS = digests.APPROVED.read_text().splitlines()


@pytest.mark.parametrize(
    ("story", "approved"), STORIES, ids=[f"story {at}" for at in range(len(STORIES))]
)
def test_a_history_is_reported_and_planned_as_approved(story: Story, approved: str) -> None:
    """Wrong? Read the difference; then `python -m tests.approve`."""
    assert transcript(story) == approved.rstrip("\n"), story.text


@pytest.mark.parametrize("line", DIGESTS, ids=[f"line {at}" for at in range(len(DIGESTS))])
def test_what_no_transcript_shows_is_as_approved(line: str) -> None:
    """Wrong? Facts, questions, or texts of a plan changed. Intended? `python -m tests.approve`."""
    assert line_of(entry_of(line)) == line


# Of the digests of kept histories one in eight: the rest belongs to the nightly run. The histories
# themselves are all checked each time (test_histories.py).
IN_EACH_RUN = 8


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(
            line, marks=[] if line[0].isdigit() or at % IN_EACH_RUN == 0 else [pytest.mark.slow]
        )
        for at, line in enumerate(HISTORIES)
    ],
    ids=[line.partition(" ")[0] for line in HISTORIES],
)
def test_what_is_computed_of_a_history_is_as_approved(line: str) -> None:
    """Wrong? Facts, findings, questions, or texts of a plan changed: `python -m tests.approve`."""
    assert history_digests.line_of(line.partition(" ")[0]) == line


def test_every_history_has_its_digests() -> None:
    assert [line.partition(" ")[0] for line in HISTORIES] == history_digests.names()


def test_every_story_has_its_digests() -> None:
    assert {entry_of(line) for line in DIGESTS} == set(entries())
    assert len(set(DIGESTS)) == len(DIGESTS)


def test_no_story_is_there_twice() -> None:
    assert len({story.text for story, _ in STORIES}) == len(STORIES)

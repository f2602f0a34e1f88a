"""Digests of what no transcript shows of the stories of transcripts.txt.

`python -m tests.approve` writes digests.txt. A digest shows that something is otherwise, not what:
scripts.txt, changed_scripts.txt and approved_findings.txt have what can be read. One line for each
story: facts, findings before one explains another, questions to logs, the servers with which a plan
begins, and all texts of the plan, of the default one and of the one by choice.

More lines are of stories in which one or two facts are not as they were read: server, reading, name
of the change. They were selected because they notice changes of the code that no other test does.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from repair.model.initial_model import start_model
from repair.render import render_files
from tests.digests import digest, of_facts
from tests.simulation import transcripts
from tests.simulation.transcripts import Reported, Story, read_stories, reported
from tests.topology.changed_facts import Changes
from topology.policy import Policy

_BETWEEN = " | "
APPROVED = Path(__file__).with_name("digests.txt")


@dataclass(frozen=True, slots=True)
class Entry:
    """A story by its name, and its changes."""

    name: str
    changes: Changes = ()


def line_of(entry: Entry) -> str:
    """Return the line of an entry."""
    found = reported(stories()[entry.name], entry.changes)
    parts = [of_facts(found.snapshot, Policy()), *_plans(found)]
    return _BETWEEN.join((entry.name, *map(" ".join, entry.changes), " ".join(parts)))


def entry_of(line: str) -> Entry:
    """Return the entry of a line."""
    name, *changes, _ = line.split(_BETWEEN)
    made = (each.split(" ", 2) for each in changes)
    return Entry(name, tuple((server, reading, change) for server, reading, change in made))


@cache
def stories() -> dict[str, Story]:
    """Return the stories of transcripts.txt by name."""
    found = read_stories(transcripts.APPROVED.read_text())
    return {name_of(story): story for story, _ in found}


def name_of(story: Story) -> str:
    """Return what names a story here: a digest of its text."""
    return digest(story.text)


def _plans(found: Reported) -> Iterator[str]:
    for name, planned in (("default", found.default), ("chosen", found.chosen)):
        if planned is not None:
            begun = digest(start_model(found.snapshot, found.audit, planned.evidence))
            yield f"{name} {begun} {digest(render_files(planned.plan))}"


def entries() -> list[Entry]:
    """Return the stories of transcripts.txt, and the entries that only this file has."""
    found = {Entry(name): None for name in stories()}
    found |= {entry_of(line): None for line in APPROVED.read_text().splitlines()}
    return [each for each in found if each.name in stories()]


def text() -> str:
    """Return the text of the file as the product is now."""
    return "".join(f"{line_of(each)}\n" for each in entries())

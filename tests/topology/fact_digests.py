"""Digests of what is computed of each scenario, and of scenarios with changed facts.

`python -m tests.approve` writes fact_digests.txt. One line each: the digests (tests/digests.py), the
changes if any (server, reading, name of the change), and the title of the scenario. A finding that
another one explains is seen here, and a fact that leads to no finding. The changed ones are those
of changed_facts.txt, and more that were selected because they notice changes of the code that no
other does.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.digests import of_facts
from tests.topology import changed_facts
from tests.topology.changed_facts import Entry, changed, scenarios
from tests.topology.transcript import Scenario

APPROVED = Path(__file__).with_name("fact_digests.txt")
_BETWEEN = " | "


@cache
def _scenarios() -> dict[str, Scenario]:
    return scenarios()


def line_of(entry: Entry) -> str:
    """Return the line of an entry; one without changes is a scenario as it is."""
    scenario = _scenarios()[entry.title]
    found = of_facts(changed(scenario.snapshot, entry.changes), scenario.policy)
    changes = (" ".join(each) for each in entry.changes)
    return _BETWEEN.join((found, *changes, entry.title))


def entry_of(line: str) -> Entry:
    """Return the entry of a line."""
    _, *changes, title = line.split(_BETWEEN)
    made = (each.split(" ", 2) for each in changes)
    return Entry(title, tuple((name, reading, change) for name, reading, change in made))


def entries() -> Iterator[Entry]:
    """Yield the scenarios, the entries of changed_facts.txt, and those that only this file has."""
    found = {Entry(title, ()): None for title in _scenarios()}
    found |= {
        each: None for each, _ in changed_facts.read_entries(changed_facts.APPROVED.read_text())
    }
    if APPROVED.exists():
        found |= {entry_of(line): None for line in APPROVED.read_text().splitlines()}
    yield from (each for each in found if each.title in _scenarios())


def text() -> str:
    """Return the text of the file as the product is now."""
    return "".join(f"{line_of(each)}\n" for each in entries())

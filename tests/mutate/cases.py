"""Snapshots on which mutants of facts and rules are tried: those that tests keep, and new ones.

What is computed of a case (tests/digests.py) has to be otherwise with a mutant. Of every kept case
a file of approved digests holds that:

* fact_digests.txt: scenarios, as they are and with changed facts;
* digests.txt: stories of transcripts.txt, as they are and with changed facts;
* history_digests.txt: kept histories and generated ones.

A new case is a scenario or a story with some facts changed at random. It can be kept as a line of
the first file or of the second.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

from tests.digests import computed, digest
from tests.simulation import digests
from tests.simulation.history import generate, parse
from tests.simulation.history_digests import GENERATED, KEPT
from tests.simulation.transcripts import snapshot_of
from tests.topology import changed_facts, fact_digests
from tests.topology.changed_facts import CHANGES, READINGS, changed, scenarios
from topology.policy import Policy
from topology.readings.snapshot import ClusterSnapshot

Entry = changed_facts.Entry | digests.Entry
_STORIES_SHARE = 0.2
# How many facts are changed: one, mostly.
_CHANGED = (1, 1, 1, 1, 2, 2, 2, 3)


@dataclass(frozen=True, eq=False)
class Case:
    """A snapshot, what names it, and the entry that would keep it."""

    name: str
    snapshot: ClusterSnapshot
    policy: Policy
    entry: Entry | None = None

    def outcome(self) -> Iterator[str]:
        """Yield a digest of each part that is computed of the case.

        A copy is given: a result that is kept for the same snapshot is not of the mutant.
        """
        for _, each in computed(replace(self.snapshot), self.policy):
            yield digest(each)

    @cached_property
    def expected(self) -> tuple[str, ...]:
        """Return the outcome without a mutant; nothing if it cannot be computed."""
        return tuple(self.outcome())

    def compute(self) -> None:
        """Compute all parts, for what is executed by that."""
        for _ in computed(replace(self.snapshot), self.policy):
            pass


def kept_cases() -> Iterator[Case]:
    """Yield the cases that tests keep, those of short tests first."""
    yield from map(_of_scenario, fact_digests.entries())
    yield from map(_of_story, digests.entries())
    for path in sorted(KEPT.glob("*.txt")):
        history = parse(path.read_text())
        yield Case(f"history {path.stem}", snapshot_of(history, history.play()), Policy())
    for seed in range(GENERATED):
        history, _ = generate(seed)
        yield Case(f"history {seed}", snapshot_of(history, history.play()), Policy())


def new_case(dice: random.Random) -> Case | None:
    """Return a scenario or a story with facts changed at random; None if it cannot be."""
    is_story = dice.random() < _STORIES_SHARE
    name = dice.choice(_names_of_stories() if is_story else _titles())
    unchanged = _story(name) if is_story else _scenarios()[name].snapshot
    names = [each.name for each in unchanged.last]
    if not names:
        return None
    changes = {
        (dice.choice(names), dice.choice(READINGS), dice.choice(_names_of_changes()))
        for _ in range(dice.choice(_CHANGED))
    }
    made = tuple(sorted(changes))
    try:
        if is_story:
            case = _of_story(digests.Entry(name, made))
        else:
            case = _of_scenario(changed_facts.Entry(name, made))
        case.compute()
    except (AssertionError, ValueError):
        return None  # facts that contradict each other
    return case


def _of_scenario(entry: changed_facts.Entry) -> Case:
    scenario = _scenarios()[entry.title]
    snapshot = changed(scenario.snapshot, entry.changes)
    return Case(f"{entry.title} {entry.changes}", snapshot, scenario.policy, entry)


def _of_story(entry: digests.Entry) -> Case:
    history = digests.stories()[entry.name].history
    snapshot = snapshot_of(history, history.play(), entry.changes)
    return Case(f"story {entry.name} {entry.changes}", snapshot, Policy(), entry)


_scenarios = cache(scenarios)


@cache
def _titles() -> Sequence[str]:
    return sorted(_scenarios())


@cache
def _names_of_stories() -> Sequence[str]:
    return sorted(digests.stories())


@cache
def _story(name: str) -> ClusterSnapshot:
    return _of_story(digests.Entry(name)).snapshot


@cache
def _names_of_changes() -> Sequence[str]:
    return sorted(CHANGES)

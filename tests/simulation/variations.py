"""Kept histories with a few steps added, left out or in another order: a seed makes one of them.

How it works
------------
A scenario is the shortest history of a fault that was corrected. What is wrong next to it is near:
one step more or less shows it, where histories made by chance would need both faults at once. The
same seed makes another history when a scenario is added, so a finding is kept as text, not as a
seed.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from pathlib import Path

from tests.simulation.history import FAULTS, QUIET, History, parse, reading_by_chance
from tests.simulation.state import World
from tests.simulation.steps import STEPS, Line

SCENARIOS = Path(__file__).parent / "scenarios"


@cache
def scenarios() -> tuple[History, ...]:
    """Return all kept histories, in the order of their names."""
    return tuple(parse(path.read_text()) for path in sorted(SCENARIOS.glob("*.txt")))


def vary(seed: int) -> tuple[History, World]:
    """Return a variation of a kept history, and the world before its reading."""
    dice = random.Random(seed)
    history = dice.choice(scenarios())
    for _ in range(dice.choice((1, 1, 2, 2, 3))):
        history = replace(history, lines=_varied(history, dice))
    world = history.play()
    if dice.random() < 0.35:
        reading = reading_by_chance(dice, world)
        reading = replace(reading, definitions=history.reading.definitions)
        return replace(history, reading=reading), world
    if dice.random() < 0.5:
        moving = dice.random() < 0.4
        reading = replace(history.reading, seed=dice.randrange(10**6), moving=moving)
        return replace(history, reading=reading), world
    return history, world


def _varied(history: History, dice: random.Random) -> tuple[Line, ...]:
    """Return the steps with one less, one more, or two in the places of each other."""
    lines, way = list(history.lines), dice.random()
    if way < 0.2 and lines:
        lines.pop(dice.randrange(len(lines)))
    elif way < 0.85:
        at = dice.randint(0, len(lines))
        world = replace(history, lines=tuple(lines[:at])).play()
        name = dice.choice(FAULTS if dice.random() < 0.5 else QUIET)
        args = STEPS[name].choose(world, dice)
        if args is not None:
            lines.insert(at, (name, *args))
    elif len(lines) > 1:
        one, other = dice.sample(range(len(lines)), 2)
        lines[one], lines[other] = lines[other], lines[one]
    return tuple(lines)

"""The simulated replication group held to a real one: the same steps, and after each the same."""

from __future__ import annotations

import random
from contextlib import ExitStack

import pymysql
import pytest

from compose.native.installation import Installation
from tests.simulation import groups
from tests.simulation.reality import REAL, Twins, nightly_seed, repeated
from tests.simulation.reality_groups import group_differences, group_twins, real_restart
from tests.simulation.state import World
from tests.simulation.steps import STEPS, perform

assert groups.__name__, "importing it adds its steps to the table"

_STEPS = ("write", "write", "write-errant", "group-leave", "group-join", "group-join")


def _step(both: Twins, dice: random.Random) -> str:
    """Do one step in both worlds. Return its words, or nothing where none applied."""
    rare = dice.random()
    name = "group-restart" if rare < 0.1 else "group-expel" if rare < 0.2 else dice.choice(_STEPS)
    args = STEPS[name].choose(both.world, dice)
    if args is None:
        return ""
    before = both.world.copy()
    if not perform(both.world, (name, *args)):
        both.world = before
        if name == "group-join":
            _is_refused(both, before, str(args[0]))
        return ""
    if name == "group-restart":
        real_restart(both, before, str(args[0]))
    else:
        REAL[name](both, *args)
    return " ".join(map(str, (name, *args)))


def _is_refused(both: Twins, world: World, name: str) -> None:
    group = world.group
    assert group is not None, "a world of a group"
    if group.online and name not in group.online:
        with pytest.raises(pymysql.err.MySQLError):
            both.real(name).execute("START GROUP_REPLICATION USER = 'replication'")


@pytest.mark.slow
@pytest.mark.parametrize("number", range(8))
def test_a_group(installation97: Installation, number: int) -> None:
    seed = nightly_seed(number)
    dice = random.Random(seed)
    with ExitStack() as stack:
        both = group_twins(installation97, stack)
        assert group_differences(both) == []
        while len(both.log) < 30:
            done = _step(both, dice)
            if done:
                both.log.append(done)
                found = group_differences(both)
                assert found == [], "\n".join([repeated(seed, number), *both.log, *found])

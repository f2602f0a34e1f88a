"""What the sets of one answer prove, for all that a server can do while it evaluates a SELECT.

Two transactions of one server, t and u, are in the log, and the model does every sequence of steps
of both between the variables of a statement. The statements themselves say in which order these
are evaluated.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest

from binlog.adapters.set_statements import HELD_SETS, SENT_SETS, SETTLED_SETS, STATE_SETS

Names = frozenset[str]


@dataclass(frozen=True)
class Sets:
    owned: Names = frozenset()
    executed: Names = frozenset()
    purged: Names = frozenset()

    def steps(self) -> Iterator["Sets"]:
        """Yield the state itself, and that after a transaction's commit begins or ends, or a purge.

        A purge takes a prefix of the log: t before u.
        """
        yield self
        for each in sorted({"t", "u"} - self.owned - self.executed):
            yield replace(self, owned=self.owned | {each})
        for each in sorted(self.owned):
            yield replace(self, owned=self.owned - {each}, executed=self.executed | {each})
        left = sorted(self.executed - self.purged)
        if left and not (left[0] == "u" and "t" not in self.purged):
            yield replace(self, purged=self.purged | {left[0]})


def reachable(begin: Sets, steps: int) -> set[Sets]:
    found = {begin}
    for _ in range(steps):
        found |= {after for each in found for after in each.steps()}
    return found


ALL_STATES = reachable(Sets(), 6)


def histories(count: int) -> Iterator[tuple[Sets, ...]]:
    """Yield the states in which the variables of a statement are evaluated."""
    kept: list[tuple[Sets, ...]] = [(each,) for each in ALL_STATES]
    for _ in range(count - 1):
        kept = [(*each, after) for each in kept for after in reachable(each[-1], 4)]
    yield from kept


def variables(statement: str) -> list[str]:
    return re.findall(r"@@GLOBAL\.gtid_(\w+)", statement)


def answers(order: list[str], states: tuple[Sets, ...]) -> Sets:
    read = {name: getattr(state, name) for name, state in zip(order, states, strict=True)}
    return Sets(**read)


def settled(answer: Sets, states: tuple[Sets, ...]) -> bool:
    return answer.owned | answer.executed >= states[0].owned | states[0].executed


def within(answer: Sets, _states: tuple[Sets, ...]) -> bool:
    return answer.purged <= answer.executed


def held(answer: Sets, states: tuple[Sets, ...]) -> bool:
    at_end = states[-1]
    return answer.executed - answer.purged <= at_end.executed - at_end.purged


def requested(answer: Sets, states: tuple[Sets, ...]) -> bool:
    """Return whether what was in a log at the first question is requested."""
    return answer.executed - answer.purged >= states[0].executed - states[0].purged


PROVED: list[tuple[str, Callable[[Sets, tuple[Sets, ...]], bool]]] = [
    (SETTLED_SETS, settled),
    (STATE_SETS, settled),
    (STATE_SETS, within),
    (HELD_SETS, held),
    (SENT_SETS, within),
    (SENT_SETS, requested),
]


@pytest.mark.parametrize(("statement", "holds"), PROVED)
def test_the_order_proves_what_its_readers_conclude(
    statement: str, holds: Callable[[Sets, tuple[Sets, ...]], bool]
) -> None:
    order = variables(statement)
    assert 2 <= len(order) <= 3
    all_histories = list(histories(len(order)))
    assert len(all_histories) > 50
    assert all(holds(answers(order, each), each) for each in all_histories)


@pytest.mark.parametrize(("statement", "holds"), PROVED)
def test_the_opposite_order_does_not(
    statement: str, holds: Callable[[Sets, tuple[Sets, ...]], bool]
) -> None:
    order = variables(statement)[::-1]
    assert not all(holds(answers(order, each), each) for each in histories(len(order)))


def test_sets_only_move_on() -> None:
    for states in histories(2):
        for before, after in pairwise(states):
            assert before.executed <= after.executed
            assert before.purged <= after.purged <= after.executed

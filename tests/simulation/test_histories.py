"""The product against thousands of histories whose truth is known; and kept histories once more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.simulation.checking import check, check_seed
from tests.simulation.history import History, generate, parse
from tests.simulation.oracles import Violation
from tests.simulation.state import World
from tests.simulation.variations import vary

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))
BATCHES = range(0, 500, 250)
MORE_BATCHES = range(500, 21_500, 1000)

# Kinds of violations that are known and open; each has a scenario that says so.
KNOWN: frozenset[tuple[str, str]] = frozenset()


def is_known(violation: Violation) -> bool:
    """Return whether a violation is of a kind that is open, for its code or for every code."""
    return bool({violation.kind, (violation.oracle, "")} & KNOWN)


def assert_none_is_new(seeds: range) -> None:
    for seed in seeds:
        history, violations = check_seed(seed)
        new = [each for each in violations if not is_known(each)]
        assert new == [], f"seed {seed}\n{history.text()}"


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(each, marks=[pytest.mark.slow if each else pytest.mark.long])
        for each in BATCHES
    ],
)
def test_no_history_contradicts_the_product(first: int) -> None:
    assert_none_is_new(range(first, first + 250))


@pytest.mark.slow
@pytest.mark.parametrize("first", MORE_BATCHES)
def test_none_of_many_histories_contradicts_the_product(first: int) -> None:
    assert_none_is_new(range(first, first + 1000))


@pytest.mark.parametrize("path", SCENARIOS, ids=[path.stem for path in SCENARIOS])
def test_a_kept_history_does_not_contradict_the_product(path: Path) -> None:
    text = path.read_text()
    found = check(parse(text))
    if text.startswith("# open") and found:
        pytest.xfail(f"open: {found[0].text}")
    assert [each for each in found if not is_known(each)] == []


@pytest.mark.parametrize("make", [generate, vary])
def test_a_history_is_what_its_text_is(make: Callable[[int], tuple[History, World]]) -> None:
    for seed in range(200):
        history, world = make(seed)
        assert parse(history.text()) == history
        again = history.play()
        for name, server in world.servers.items():
            assert (server.executed, server.rows) == (again[name].executed, again[name].rows)

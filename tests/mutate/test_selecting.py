"""Probes miss no mutant that a case notices; the search finds what a kept case notices."""

import ast
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tests.mutate.cases import new_case
from tests.mutate.mutants import count_of, tree_of
from tests.mutate.probes import Difference, Probes, difference, put_probes
from tests.mutate.selecting import KEPT, NOTHING, Search, try_kept, try_new
from tests.simulation.digests import stories
from tests.topology.changed_facts import CHANGES, READINGS, scenarios

SOURCE = '''
def decide(a, b):
    """A docstring."""
    found = []
    for each in (a, b, *[other for other in (a + b, a - b) if other and other > 1]):
        if each is None:
            continue
        if (high := each > 2) and not each == b:
            found.append(each)
        else:
            found += [-each if high or a in found else each]
    return next((each for each in found if each < 0), len(found) - 1), helper(a) | helper(b)

def helper(a):
    return {a, 1} if a in (2, 3) else {a}
'''
FILE = "decided.py"
Function = Callable[[int, int], object]


def functions(code: Any) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(code, names)
    return {name: names[name] for name in ("decide", "helper")}


def outcome(decide: Function, a: int, b: int) -> object:
    try:
        return decide(a, b)
    except Exception as problem:  # noqa: BLE001 - a mutant may raise anything
        return repr(problem)


@cache
def differences() -> dict[int, Difference]:
    original = ast.parse(SOURCE)
    found = {}
    for number in range(count_of(SOURCE)):
        line, tree = tree_of(SOURCE, number)
        found[number] = difference(original, tree, line)
    return found


@cache
def mutants() -> list[Any]:
    """Return the code of each mutant."""
    numbers = range(count_of(SOURCE))
    return [compile(tree_of(SOURCE, number)[1], FILE, "exec") for number in numbers]


@pytest.mark.parametrize("a", [-1, 0, 2, 3])
@pytest.mark.parametrize("b", [0, 2, 4])
def test_probes_record_every_mutant_that_gives_another_result(a: int, b: int) -> None:
    original = functions(compile(SOURCE, FILE, "exec"))
    expected = outcome(original["decide"], a, b)
    other = {
        number
        for number, code in enumerate(mutants())
        if outcome(functions(code)["decide"], a, b) != expected
    }
    probed = functions(compile(SOURCE, FILE, "exec"))
    put_probes(probed.values(), SOURCE, FILE, differences())
    with Probes(count_of(SOURCE)) as probes:
        assert outcome(probed["decide"], a, b) == expected
        found = set(probes.take())
        assert probes.take() == []
    assert other <= found
    assert found < set(range(count_of(SOURCE)))


def test_a_new_case_changes_facts_of_a_scenario_or_a_story() -> None:
    dice = random.Random(1)
    entries = [case.entry for case in (new_case(dice) for _ in range(40)) if case is not None]
    names = {getattr(each, "title", None) or getattr(each, "name", None) for each in entries}
    assert names <= scenarios().keys() | stories().keys()
    changes = [each for entry in entries if entry is not None for each in entry.changes]
    assert all(reading in READINGS and change in CHANGES for _, reading, change in changes)
    assert len(entries) > 30


@pytest.mark.slow
def test_the_search_finds_what_kept_and_new_cases_notice() -> None:
    path = "topology/facts/islands.py"
    search = Search([path], None)
    try_kept(search, random.Random(1), tries=100)
    noticed = sum(each.by == KEPT for each in search.mutants)
    assert noticed >= 0.8 * len(search.mutants)
    for each in search.mutants:
        each.by = NOTHING
    try_new(search, 1.0, random.Random(1))
    assert sum(each.case is not None for each in search.mutants) >= 0.5 * len(search.mutants)

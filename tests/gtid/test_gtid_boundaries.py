"""The engine against all small inputs, and against its definition on larger ones."""

import operator
from array import array
from collections.abc import Callable, Iterable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtid import boundaries as line
from gtid import boundary_sequence
from gtid.boundaries import TruthTable
from gtid.boundary_sequence import Boundaries, settled
from tests.hypothesis_profiles import laws

pytestmark = pytest.mark.usefixtures("representation")

LAWS = laws(80)

OPERATIONS: dict[str, tuple[TruthTable, Callable[[int, int], int]]] = {
    "union": (line.UNION, operator.or_),
    "intersection": (line.INTERSECTION, operator.and_),
    "subtraction": (line.SUBTRACTION, lambda left, right: left & ~right),
    "symmetric difference": (line.SYMMETRIC_DIFFERENCE, operator.xor),
}

BEYOND = 2**64


def boundaries_of(numbers: Iterable[int]) -> Boundaries:
    """The twin of canonical form: a boundary wherever membership changes."""
    held = set(numbers)
    edges = {number for number in held if number - 1 not in held}
    edges |= {number + 1 for number in held if number + 1 not in held}
    return settled(sorted(edges))


def numbers_of(boundaries: Boundaries) -> frozenset[int]:
    return frozenset(
        number for start, end in line.pairs(boundaries) for number in range(start, end)
    )


def define(left: Boundaries, right: Boundaries, keep: Callable[[bool, bool], bool]) -> Boundaries:
    """The definition: look at every boundary of both, emit one where membership flips."""
    result: list[int] = []
    i = j = 0
    inside = False
    while i < len(left) or j < len(right):
        here = min(
            left[i] if i < len(left) else BEYOND,
            right[j] if j < len(right) else BEYOND,
        )
        i += i < len(left) and left[i] == here
        j += j < len(right) and right[j] == here
        if keep(i % 2 == 1, j % 2 == 1) != inside:
            inside = not inside
            result.append(here)
    assert not inside
    return settled(result)


@pytest.fixture(scope="module")
def small(representation: object) -> list[Boundaries]:
    """Every set of numbers 1 to 7, by its bit mask."""
    return [boundaries_of(bit + 1 for bit in range(7) if mask >> bit & 1) for mask in range(128)]


@pytest.mark.long
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_pair_of_small_sets(name: str, small: list[Boundaries]) -> None:
    table, on_bits = OPERATIONS[name]
    for left, right in product(range(128), repeat=2):
        expected = small[on_bits(left, right)]
        assert line.combine(small[left], small[right], table) == expected, (left, right)


def test_every_predicate_on_every_pair_of_small_sets(small: list[Boundaries]) -> None:
    for left, right in product(range(128), repeat=2):
        pair = small[left], small[right]
        assert line.is_subset(*pair) == (left & ~right == 0), pair
        assert line.is_disjoint(*pair) == (left & right == 0), pair


def test_every_number_of_every_small_set(small: list[Boundaries]) -> None:
    for mask, boundaries in enumerate(small):
        held = [bit + 1 for bit in range(7) if mask >> bit & 1]
        assert line.count(boundaries) == len(held)
        assert [number for number in range(10) if line.contains(boundaries, number)] == held
        for number_count in range(9):
            assert line.first(boundaries, number_count) == boundaries_of(held[:number_count])


def test_every_way_to_write_three_intervals() -> None:
    intervals = list(product(range(1, 5), range(1, 6)))
    for written in product(intervals, repeat=3):
        numbers = [number for interval in written for number in interval]
        expected = {number for start, end in written for number in range(start, end)}
        assert line.canonical(numbers) == boundaries_of(expected), written
        assert line.canonical(array("q", numbers)) == boundaries_of(expected), written


def test_canonical_input_is_taken_as_it_is() -> None:
    assert line.canonical([]) == ()
    assert line.canonical([1, 3, 5, 6]) == settled((1, 3, 5, 6))
    written = array("q", range(1, 9))
    assert (line.canonical(written) is written) == (boundary_sequence.LONG_BOUNDARIES_MIN <= 8)


def test_the_length_alone_decides_on_the_form(small: list[Boundaries]) -> None:
    for boundaries in small:
        is_long = len(boundaries) >= boundary_sequence.LONG_BOUNDARIES_MIN
        assert isinstance(boundaries, array if is_long else tuple)
        assert settled(boundaries) is boundaries


def test_the_usual_threshold() -> None:
    just_short = range(1, boundary_sequence.LONG_BOUNDARIES_MIN)
    just_long = range(1, boundary_sequence.LONG_BOUNDARIES_MIN + 1)
    assert isinstance(settled(just_short), tuple)
    assert isinstance(settled(just_long), array)


def test_equal_sequences_have_equal_hashes(small: list[Boundaries]) -> None:
    for boundaries in small:
        again = settled(list(boundaries))
        assert again == boundaries
        assert line.hash_of(again) == line.hash_of(boundaries)
    assert len({line.hash_of(boundaries) for boundaries in small}) == len(small)


def test_a_hash_looks_at_a_few_of_many() -> None:
    many = array("q", range(1, 200_001))
    assert len(many[:: len(many) // 16]) < 20
    assert line.hash_of(many) == line.hash_of(many[:])
    assert line.hash_of(many) != line.hash_of(many[:-2])


def sequences(boundaries_max: int) -> st.SearchStrategy[Boundaries]:
    return st.sets(st.integers(1, 400), max_size=boundaries_max).map(
        lambda edges: settled(sorted(edges)[: len(edges) // 2 * 2])
    )


@LAWS
@given(left=sequences(6), right=sequences(120), name=st.sampled_from(sorted(OPERATIONS)))
def test_the_sweep_is_its_definition(left: Boundaries, right: Boundaries, name: str) -> None:
    table = OPERATIONS[name][0]

    def keep(in_left: bool, in_right: bool) -> bool:
        if in_left and in_right:
            return table.both
        return (in_left and table.left_only) or (in_right and table.right_only)

    assert line.combine(left, right, table) == define(left, right, keep)
    assert line.combine(right, left, table) == define(right, left, keep)


@LAWS
@given(left=sequences(10), right=sequences(120))
def test_the_predicates_are_their_definitions(left: Boundaries, right: Boundaries) -> None:
    for one, other in ((left, right), (right, left)):
        assert line.is_subset(one, other) == (not line.combine(one, other, line.SUBTRACTION))
        assert line.is_disjoint(one, other) == (not line.combine(one, other, line.INTERSECTION))
        within = line.combine(one, other, line.INTERSECTION)
        assert line.is_subset(within, one)
        assert line.is_subset(within, other)


@LAWS
@given(st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), max_size=30))
def test_canonical_form_keeps_every_number(written: list[tuple[int, int]]) -> None:
    numbers = [number for interval in written for number in interval]
    expected = {number for start, end in written for number in range(start, end)}
    found = line.canonical(numbers)
    assert numbers_of(found) == expected
    assert found == line.canonical(array("q", numbers)) == boundaries_of(expected)
    assert line.canonical(found) == found


@LAWS
@given(st.lists(sequences(20), min_size=1, max_size=7))
def test_uniting_many_is_uniting_one_by_one(parts: list[Boundaries]) -> None:
    one_by_one: Boundaries = ()
    for part in parts:
        one_by_one = line.combine(one_by_one, part, line.UNION)
    assert line.unite(parts) == one_by_one

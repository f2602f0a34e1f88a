"""Every pair of sets of the numbers 1 to 7, for every operation, in every form a set can have."""

import operator
from collections.abc import Callable
from itertools import groupby
from typing import Any

import pyarrow as pa
import pytest

from gtid import GtidSet, SetRelation, relate
from gtid.columns import GtidSetColumn

U = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
MASKS = range(128)
ALL = MASKS[-1]

OPERATIONS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[int, int], int]]] = {
    "union": (operator.or_, operator.or_),
    "intersection": (operator.and_, operator.and_),
    "subtraction": (operator.sub, lambda left, right: left & ~right),
    "symmetric difference": (operator.xor, operator.xor),
}
PREDICATES: dict[
    str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any], Callable[[int, int], bool]]
] = {
    "subset": (operator.le, GtidSetColumn.is_subset, lambda left, right: left & ~right == 0),
    "equal": (operator.eq, GtidSetColumn.equals, operator.eq),
    "disjoint": (
        GtidSet.is_disjoint,
        GtidSetColumn.is_disjoint,
        lambda left, right: left & right == 0,
    ),
}


def text_of(mask: int) -> str:
    """Write the numbers whose bits are set; number 1 has the lowest bit."""
    numbers = [bit + 1 for bit in range(7) if mask >> bit & 1]
    runs = [
        [number for _, number in run]
        for _, run in groupby(enumerate(numbers), lambda each: each[1] - each[0])
    ]
    written = [f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs]
    return ":".join([U, *written]) if written else ""


TEXTS = [text_of(mask) for mask in MASKS]


@pytest.fixture(scope="module")
def sets(representation: object) -> list[GtidSet]:
    return [GtidSet.parse(text) for text in TEXTS]


@pytest.fixture(scope="module")
def columns() -> tuple[GtidSetColumn, GtidSetColumn]:
    """Every pair, a row each: the left one changes slowly."""
    lefts = [left for left in TEXTS for _ in TEXTS]
    return GtidSetColumn.parse(pa.array(lefts)), GtidSetColumn.parse(pa.array(TEXTS * len(TEXTS)))


@pytest.mark.long
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_of_sets(name: str, sets: list[GtidSet]) -> None:
    operate, on_masks = OPERATIONS[name]
    for left in MASKS:
        for right in MASKS:
            expected = on_masks(left, right)
            found = operate(sets[left], sets[right])
            assert found == sets[expected], (left, right)
            assert str(found) == TEXTS[expected], (left, right)


@pytest.mark.parametrize("name", PREDICATES)
def test_predicates_of_sets(name: str, sets: list[GtidSet]) -> None:
    holds, _, on_masks = PREDICATES[name]
    for left in MASKS:
        for right in MASKS:
            assert holds(sets[left], sets[right]) == on_masks(left, right), (left, right)


@pytest.mark.long
def test_relations_and_hashes_of_sets(sets: list[GtidSet]) -> None:
    for left in MASKS:
        for right in MASKS:
            shared = left & right
            expected = (
                SetRelation.EQUAL if left == right
                else SetRelation.CONTAINS if shared == right
                else SetRelation.CONTAINED if shared == left
                else SetRelation.INTERSECTS if shared
                else SetRelation.DISJOINT
            )  # fmt: skip
            assert relate(sets[left], sets[right]) is expected, (left, right)
            again = sets[left] - sets[ALL - left]
            assert hash(again) == hash(sets[left])


def test_each_set_alone(sets: list[GtidSet]) -> None:
    for mask, held in enumerate(sets):
        numbers = [bit + 1 for bit in range(7) if mask >> bit & 1]
        inner = range(numbers[0], numbers[-1]) if numbers else ()
        holes = sum(1 << (number - 1) for number in inner if number not in numbers)
        assert held.gtid_count == len(numbers)
        assert held.holes() == sets[holes]
        assert held.filled() == sets[(1 << numbers[-1]) - 1 if numbers else 0]
        assert [gtid.gno for gtid in held.gtids()] == numbers
        assert GtidSet.union_of(map(GtidSet.of, held.gtids())) == held
        for count in range(9):
            assert [gtid.gno for gtid in held.first(count).gtids()] == numbers[:count]


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_of_columns(name: str, columns: tuple[GtidSetColumn, GtidSetColumn]) -> None:
    operate, on_masks = OPERATIONS[name]
    expected = [TEXTS[on_masks(left, right)] for left in MASKS for right in MASKS]
    assert operate(*columns).to_arrow().to_pylist() == expected


@pytest.mark.parametrize("name", PREDICATES)
def test_predicates_of_columns(name: str, columns: tuple[GtidSetColumn, GtidSetColumn]) -> None:
    _, holds, on_masks = PREDICATES[name]
    expected = [on_masks(left, right) for left in MASKS for right in MASKS]
    assert holds(*columns).to_pylist() == expected


def test_each_row_alone() -> None:
    column, sets = GtidSetColumn.parse(pa.array(TEXTS)), [GtidSet.parse(text) for text in TEXTS]
    assert [column.row(row) for row in MASKS] == sets
    assert column.holes().to_arrow().to_pylist() == [str(held.holes()) for held in sets]
    assert column.filled().to_arrow().to_pylist() == [str(held.filled()) for held in sets]
    assert column.gtid_count().to_pylist() == [held.gtid_count for held in sets]
    assert column.interval_count().to_pylist() == [held.interval_count for held in sets]
    assert column.tsid_count().to_pylist() == [held.tsid_count for held in sets]

"""Sets of integers as flat sequences of boundaries: start, end, start, end, ...

1. Canonical means strictly ascending. That one comparison says it all: no interval is empty, none
   overlap, and none touch. Equal sets are therefore equal tuples.
2. Ends are exclusive. A number is inside when an odd number of boundaries is at or below it.
3. There is one engine, `combine`; an operation is a truth table.
4. This file does not know what the integers stand for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import islice
from operator import lt
from typing import NamedTuple, TypeAlias

Boundaries: TypeAlias = tuple[int, ...]


class TruthTable(NamedTuple):
    """Whether a number belongs to the result, by where it is. What is in neither never does."""

    left_only: bool
    right_only: bool
    both: bool


UNION = TruthTable(left_only=True, right_only=True, both=True)
INTERSECTION = TruthTable(left_only=False, right_only=False, both=True)
SUBTRACTION = TruthTable(left_only=True, right_only=False, both=False)
SYMMETRIC_DIFFERENCE = TruthTable(left_only=True, right_only=True, both=False)


def combine(left: Boundaries, right: Boundaries, table: TruthTable) -> Boundaries:
    """Apply a truth table to two canonical sequences; the result is canonical.

    Time: the length of the result, plus the length of the shorter operand times the logarithm of
    the longer one. A large set minus a few holes costs little more than copying it.
    """
    if left == right:
        return left if table.both else ()
    if not left:
        return right if table.right_only else ()
    if not right:
        return left if table.left_only else ()
    if len(left) <= len(right):
        return _sweep(left, right, (False, table.right_only), (table.left_only, table.both))
    return _sweep(right, left, (False, table.left_only), (table.right_only, table.both))


def _sweep(
    few: Boundaries,
    many: Boundaries,
    outside_few: tuple[bool, bool],
    inside_few: tuple[bool, bool],
) -> Boundaries:
    """Cut the number line at each boundary of `few`.

    Between two cuts membership in `few` does not change, so the result there either flips at each
    boundary of `many` (copy the slice) or at none of them (skip it). `outside_few` and `inside_few`
    hold the verdict for what is outside and inside of `many`.
    """
    result: list[int] = []
    here = outside_few
    done = 0  # how many boundaries of `many` lie behind us; odd: we are inside of it
    length = len(many)
    for cut in few:
        reached = bisect_left(many, cut, done)
        if here[0] != here[1]:
            result += many[done:reached]
        before = here[reached % 2]
        done = reached + (reached < length and many[reached] == cut)
        here = inside_few if here is outside_few else outside_few
        if here[done % 2] != before:
            result.append(cut)
    assert here is outside_few, "an odd number of boundaries"
    if here[1]:
        result += many[done:]
    return tuple(result)


def canonical(numbers: Sequence[int]) -> Boundaries:
    """Fold start, end, start, end, ... in any order, overlapping or empty, into canonical form.

    An end that is not above its start means an empty interval, and counts for nothing.
    Time: linear if canonical already, else as long as sorting takes.
    """
    assert len(numbers) % 2 == 0, "a start without an end"
    if all(map(lt, numbers, islice(numbers, 1, None))):
        return tuple(numbers)
    result: list[int] = []
    reached = 0
    for start, end in sorted(zip(numbers[::2], numbers[1::2], strict=True)):
        if end <= start:
            continue
        if not result or start > reached:
            result += (start, end)
            reached = end
        elif end > reached:
            result[-1] = reached = end
    return tuple(result)


def contains(boundaries: Boundaries, number: int) -> bool:
    """Tell whether `number` is inside."""
    return bisect_right(boundaries, number) % 2 == 1


def is_subset(left: Boundaries, right: Boundaries) -> bool:
    """Tell whether `left - right` is empty, without computing it."""
    if left == right:
        return True
    done = 0
    length = len(right)
    for start, end in zip(left[::2], left[1::2], strict=True):
        done = bisect_right(right, start, done)
        if done % 2 == 0 or done == length or right[done] < end:
            return False
    return True


def is_disjoint(left: Boundaries, right: Boundaries) -> bool:
    """Tell whether `left & right` is empty, without computing it."""
    few, many = (left, right) if len(left) <= len(right) else (right, left)
    done = 0
    length = len(many)
    for start, end in zip(few[::2], few[1::2], strict=True):
        done = bisect_right(many, start, done)
        if done % 2 == 1 or (done < length and many[done] < end):
            return False
    return True


def count(boundaries: Boundaries) -> int:
    """Count the numbers inside."""
    return sum(boundaries[1::2]) - sum(boundaries[::2])


def first(boundaries: Boundaries, number_count: int) -> Boundaries:
    """Keep the `number_count` lowest numbers."""
    left = number_count
    for index in range(0, len(boundaries), 2):
        start, end = boundaries[index : index + 2]
        if left <= end - start:
            return boundaries[:index] + ((start, start + left) if left else ())
        left -= end - start
    return boundaries

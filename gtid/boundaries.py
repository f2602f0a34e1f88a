"""Sets of integers as flat sequences of boundaries: start, end, start, end, ...

1. Canonical means strictly ascending. That one comparison says it all: no interval is empty, none
   overlap, and none touch.
2. Ends are exclusive. A number is inside when an odd number of boundaries is at or below it.
3. Short sequences are tuples, long ones arrays of 64-bit integers. The length alone decides, so
   equal sets are equal sequences. An array is never changed once it is in use.
4. There is one engine, `combine`; an operation is a truth table.
5. What is long enough goes to compiled kernels instead (gtid/accelerated.py says when). What they
   do is what is written here.
6. This file does not know what the integers stand for.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import lt
from typing import NamedTuple, TypeAlias, TypeVar

from gtid.accelerated import kernels_for, kernels_if_there

Item = TypeVar("Item")

Boundaries: TypeAlias = "tuple[int, ...] | array[int]"

# From here on arrays. In one a boundary takes 8 bytes instead of 40, comparing takes a twentieth of
# the time, a slice is copied as bytes, and kernels can look at it; but every number that Python
# looks at must be made first, so making one takes ten times as long (4 microseconds for 256), and
# walking it up to twice as long.
LONG_BOUNDARIES_MIN = 256

# Looking up one boundary takes Python as long as the kernels take to pass by so many. Measured:
# 4,000 boundaries and 2,000,000 take 12 ms and 14 ms, 10,000 and 2,000,000 take 17 ms and 14 ms.
_LOOK_UP_COST = 256

# A predicate looks at so many first: most pairs that are not what is asked show it early on.
_PROBE = 64

_ONE_INTERVAL = 2

# How many boundaries of a long sequence enter its hash.
_HASHED = 16


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
    if len(left) == len(right) == _ONE_INTERVAL and left[0] == right[0]:
        return _combine_from_one_start(left, right, table)
    arrays = _as_arrays(left, right)
    if arrays is not None:
        kernels = kernels_for(len(left) + len(right))
        if kernels is not None:
            return settled(kernels.combine(*arrays, **table._asdict()))
    if len(left) <= len(right):
        return _sweep(left, right, (False, table.right_only), (table.left_only, table.both))
    return _sweep(right, left, (False, table.left_only), (table.right_only, table.both))


def _combine_from_one_start(left: Boundaries, right: Boundaries, table: TruthTable) -> Boundaries:
    """Apply a truth table to two intervals that begin together, as what a server executed does.

    Both have the shorter one; only the longer one has what is behind that.
    """
    is_left_longer = left[1] > right[1]
    longer, shorter = (left, right) if is_left_longer else (right, left)
    keeps_rest = table.left_only if is_left_longer else table.right_only
    if table.both:
        return longer if keeps_rest else shorter
    return settled((shorter[1], longer[1])) if keeps_rest else ()


def _as_arrays(left: Boundaries, right: Boundaries) -> tuple[array[int], array[int]] | None:
    """Return both if they are arrays, and passing by all of them is better than looking up."""
    if isinstance(left, tuple) or isinstance(right, tuple):
        return None
    few, many = sorted((len(left), len(right)))
    return (left, right) if many <= _LOOK_UP_COST * few else None


def settled(numbers: Sequence[int]) -> Boundaries:
    """Return canonical numbers the form that belongs to their length. Keeps an array as it is."""
    if len(numbers) < LONG_BOUNDARIES_MIN:
        return tuple(numbers)
    return numbers if isinstance(numbers, array) else array("q", numbers)


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
    result: list[int] | array[int] = array("q") if isinstance(many, array) else []
    here = outside_few
    done = 0  # how many boundaries of `many` lie behind us; odd: we are inside of it
    length = len(many)
    for cut in few:
        reached = bisect_left(many, cut, done)
        if here[0] != here[1]:
            result.extend(many[done:reached])
        before = here[reached % 2]
        done = reached + (reached < length and many[reached] == cut)
        here = inside_few if here is outside_few else outside_few
        if here[done % 2] != before:
            result.append(cut)
    assert here is outside_few, "an odd number of boundaries"
    if here[1]:
        result.extend(many[done:])
    return settled(result)


def canonical(numbers: Sequence[int]) -> Boundaries:
    """Fold start, end, start, end, ... in any order, overlapping or empty, into canonical form.

    An end that is not above its start means an empty interval, and counts for nothing.
    Time: linear if canonical already, else as long as sorting takes. An array may be kept: whoever
    gives one must not change it afterwards.
    """
    assert len(numbers) % 2 == 0, "a start without an end"
    if is_canonical(numbers):
        return settled(numbers)
    if isinstance(numbers, array):
        kernels = kernels_for(len(numbers))
        if kernels is not None:
            return settled(kernels.canonical(numbers))
    result: list[int] = []
    reached = 0
    for start, end in sorted(pairs(numbers)):
        if end <= start:
            continue
        if not result or start > reached:
            result += (start, end)
            reached = end
        elif end > reached:
            result[-1] = reached = end
    return settled(result)


def is_canonical(numbers: Sequence[int]) -> bool:
    """Return whether the numbers ascend strictly."""
    kernels = kernels_if_there()
    if kernels is not None and isinstance(numbers, array):
        return kernels.is_canonical(numbers)
    return all(map(lt, numbers, islice(numbers, 1, None)))


def unite(parts: Sequence[Boundaries]) -> Boundaries:
    """Unite any number of canonical sequences; the result is canonical.

    Short ones are sorted together. As soon as one is long they are united two by two, in rounds: no
    Python object is made for each interval then, and none is looked at more often than there are
    rounds.
    """
    if len(parts) > 1 and not any(isinstance(part, array) for part in parts):
        return canonical([number for part in parts for number in part])
    left = list(parts)
    while len(left) > 1:
        odd = left[-1:] if len(left) % 2 else []
        left = [combine(one, other, UNION) for one, other in pairs(left[: len(left) // 2 * 2])]
        left += odd
    return left[0]


def pairs(items: Iterable[Item]) -> Iterator[tuple[Item, Item]]:
    """Return the items two by two: of boundaries, each start with its end."""
    walk = iter(items)
    return zip(walk, walk, strict=True)


def contains(boundaries: Boundaries, number: int) -> bool:
    """Return whether `number` is inside."""
    return bisect_right(boundaries, number) % 2 == 1


def is_subset(left: Boundaries, right: Boundaries) -> bool:
    """Return whether `left - right` is empty, without computing it."""
    if left == right:
        return True
    if len(left) == len(right) == _ONE_INTERVAL:
        return right[0] <= left[0] and left[1] <= right[1]
    arrays = _as_arrays(left, right)
    if arrays is not None and len(left) > _PROBE and is_subset(left[:_PROBE], right):
        kernels = kernels_for(len(left))
        if kernels is not None:
            return not kernels.finds(*arrays, left_only=True, both=False)
    done = 0
    length = len(right)
    for start, end in pairs(left):
        done = bisect_right(right, start, done)
        if done % 2 == 0 or done == length or right[done] < end:
            return False
    return True


def is_disjoint(left: Boundaries, right: Boundaries) -> bool:
    """Return whether `left & right` is empty, without computing it."""
    few, many = (left, right) if len(left) <= len(right) else (right, left)
    arrays = _as_arrays(few, many)
    if arrays is not None and len(few) > _PROBE and is_disjoint(few[:_PROBE], many):
        kernels = kernels_for(len(few))
        if kernels is not None:
            return not kernels.finds(*arrays, left_only=False, both=True)
    done = 0
    length = len(many)
    for start, end in pairs(few):
        done = bisect_right(many, start, done)
        if done % 2 == 1 or (done < length and many[done] < end):
            return False
    return True


def count(boundaries: Boundaries) -> int:
    """Count the numbers inside."""
    kernels = kernels_if_there()
    if kernels is not None and isinstance(boundaries, array):
        return kernels.count(boundaries)
    return sum(boundaries[1::2]) - sum(boundaries[::2])


def inner(boundaries: Boundaries) -> Boundaries:
    """Return what lacks between the first and the last: the holes."""
    return settled(boundaries[1:-1])


def first(boundaries: Boundaries, number_count: int) -> Boundaries:
    """Keep the `number_count` lowest numbers."""
    left = number_count
    for index, (start, end) in enumerate(pairs(boundaries)):
        if left <= end - start:
            kept = boundaries[: 2 * index]
            last = (start, start + left) if left else ()
            if isinstance(kept, tuple):
                return kept + last
            kept.extend(last)
            return settled(kept)
        left -= end - start
    return boundaries


def hash_of(boundaries: Boundaries) -> int:
    """Hash a sequence; of a long one only its length and some of it, evenly chosen."""
    if isinstance(boundaries, tuple):
        return hash(boundaries)
    some = boundaries[:: len(boundaries) // _HASHED or 1]
    return hash((len(boundaries), boundaries[-1], *some))

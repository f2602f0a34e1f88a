"""Sets of integers as flat sequences of boundaries: start, end, start, end, ...

1. One engine, `combine`, implements every operation; an operation is a truth table.
2. Long sequences go to compiled kernels (gtid/accelerated.py decides when). The kernels compute
   exactly what this file defines.
3. This file does not know what the integers stand for.

How it works
------------
A boundary is a number at which membership in the set changes. Ends are exclusive, so the set
{1, 2, 5, 7, 8, 9} is the sequence 1, 3, 5, 6, 7, 10. A number is in the set when an odd number of
boundaries is at or below it: for 8 these are 1, 3, 5, 6, 7.

Invariants:

* A canonical sequence ascends strictly and has an even length. This one comparison implies that no
  interval is empty, that no two overlap, and that no two touch.
* Each set has exactly one canonical sequence. The length alone decides its type: a tuple below
  LONG_BOUNDARIES_MIN (boundary_sequence.py), an array of 64-bit integers from there on. So equal
  sets are equal sequences, and `==` and `hash` need no conversion.
* An array is never changed once it is in use.

`combine` visits the boundaries of the shorter sequence, `few`, in order and calls each a cut.
Between two cuts, membership in `few` is constant. So the truth table has only two answers there:
one for numbers outside of `many`, one for numbers inside. If the answers differ, the result changes
at each boundary of `many` in that stretch, and `_sweep` copies the slice. If they are equal, it
skips the slice. Binary search finds the end of the slice. At the cut itself `_sweep` compares the
answer before and after, and appends the cut if they differ. Example: 1-10:21-30 minus 5-24.

    many 1, 11, 21, 31     few 5, 25     outside `few`: (False, True)   inside: (False, False)

    to cut 5    answers differ: copy 1    before: in the result; after: not    append 5
    to cut 25   answers equal: skip 11, 21    before: not; after: in the result    append 25
    the rest    answers differ: copy 31                     result 1, 5, 25, 31 = 1-4:25-30

The common case is a set of many intervals and a small change to it. A merge that visits every
boundary would spend 0.3 microseconds of Python on each; here most boundaries are copied as slices.
A list of (start, end) pairs needs a Python object for each interval. It also needs one loop for
each operation, and each loop has its own rules where intervals touch. A bitmap or a set of numbers
costs memory for each GTID, whereas `1-4000000000` has only two boundaries.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import lt
from typing import NamedTuple, TypeVar

from gtid.accelerated import kernels_for, kernels_if_there
from gtid.boundary_sequence import Boundaries, settled

Item = TypeVar("Item")

# In the time that Python needs to look up one boundary, the kernels pass over this many. Measured
# (Python, kernels): 4,000 and 2,000,000 boundaries take 12 ms and 14 ms; 10,000 and 2,000,000 take
# 17 ms and 14 ms.
_LOOK_UP_COST = 256

# A predicate checks this many boundaries first: most pairs for which it is false differ early.
_PROBE = 64

_ONE_INTERVAL = 2

# About how many boundaries of a long sequence enter its hash.
_HASHED = 16


class TruthTable(NamedTuple):
    """Whether a number belongs to the result, by operand. A number in neither never does."""

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
    """Apply a truth table to two intervals with the same start, as in two servers' gtid_executed.

    Both sets contain the shorter interval. Only the longer one contains the numbers after it.
    """
    is_left_longer = left[1] > right[1]
    longer, shorter = (left, right) if is_left_longer else (right, left)
    keeps_rest = table.left_only if is_left_longer else table.right_only
    if table.both:
        return longer if keeps_rest else shorter
    return settled((shorter[1], longer[1])) if keeps_rest else ()


def _as_arrays(left: Boundaries, right: Boundaries) -> tuple[array[int], array[int]] | None:
    """Return both if they are arrays and a full pass is cheaper than looking boundaries up."""
    if isinstance(left, tuple) or isinstance(right, tuple):
        return None
    few, many = sorted((len(left), len(right)))
    return (left, right) if many <= _LOOK_UP_COST * few else None


def _sweep(
    few: Boundaries,
    many: Boundaries,
    outside_few: tuple[bool, bool],
    inside_few: tuple[bool, bool],
) -> Boundaries:
    """Cut the number line at each boundary of `few`; see *How it works*.

    `outside_few` and `inside_few` each hold two answers of the truth table: whether a number
    belongs to the result if it is outside of `many`, and if it is inside.
    """
    result: list[int] | array[int] = array("q") if isinstance(many, array) else []
    here = outside_few
    done = 0  # how many boundaries of `many` were passed; odd: the position is inside of `many`
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

    An interval whose end is not above its start is empty and is dropped. Time: linear if the
    numbers are already canonical, else that of sorting. The result may be the array that the caller
    passed, so the caller must not change it afterwards.
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

    Short sequences are sorted together. If one of them is long, they are united in pairs, in
    rounds. Then Python creates no object for each interval, and visits each at most once a round.
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
    """Return the items in pairs: for boundaries, each start with its end."""
    walk = iter(items)
    return zip(walk, walk, strict=True)


def contains(boundaries: Boundaries, number: int) -> bool:
    """Return whether `number` is in the set."""
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
    """Count the numbers in the set."""
    kernels = kernels_if_there()
    if kernels is not None and isinstance(boundaries, array):
        return kernels.count(boundaries)
    return sum(boundaries[1::2]) - sum(boundaries[::2])


def inner(boundaries: Boundaries) -> Boundaries:
    """Return the gaps: the numbers that are missing between the lowest and the highest."""
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
    """Hash a sequence; of a long one, only the length and some evenly spaced boundaries."""
    if isinstance(boundaries, tuple):
        return hash(boundaries)
    some = boundaries[:: len(boundaries) // _HASHED or 1]
    return hash((len(boundaries), boundaries[-1], *some))

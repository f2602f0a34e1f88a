"""Canonical boundaries of a set: their highest value, and the two types, tuples or long arrays."""

from array import array
from collections.abc import Sequence
from typing import TypeAlias

# The exclusive end of 2**63 - 1 would not fit in a signed 64-bit integer.
GNO_MAX = 2**63 - 2
GNO_END = GNO_MAX + 1

Boundaries: TypeAlias = "tuple[int, ...] | array[int]"

# Sequences of this length or more are arrays. In an array, a boundary takes 8 bytes instead of 40,
# comparing takes a twentieth of the time, a slice is copied as bytes, and kernels can read it. But
# Python must create an object for each number that it visits. So making an array takes ten times as
# long (4 microseconds for 256), and iterating over it up to twice as long.
LONG_BOUNDARIES_MIN = 256


def settled(numbers: Sequence[int]) -> Boundaries:
    """Convert canonical numbers to the type that their length requires; keep a long array."""
    if len(numbers) < LONG_BOUNDARIES_MIN:
        return tuple(numbers)
    return numbers if isinstance(numbers, array) else array("q", numbers)

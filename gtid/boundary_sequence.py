"""The two types in which the canonical boundaries of a set are kept: tuples, and arrays if long."""

from array import array
from collections.abc import Sequence
from typing import TypeAlias

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

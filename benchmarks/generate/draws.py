"""Random numbers that depend on what they are for, not on the order in which they are drawn.

Number i of a draw is a hash of (seed, name of the draw, i): a fleet cut into other chunks, or made
by several processes, is the same fleet.
"""

from dataclasses import dataclass
from typing import TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Int64s: TypeAlias = NDArray[np.int64]
Uint64s: TypeAlias = NDArray[np.uint64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]

# The constants of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True, slots=True)
class Draws:
    """The draws for things number first, first + 1, … , first + count - 1."""

    seed: int
    first: int
    count: int

    def bits(self, name: str, index: int = 0) -> Uint64s:
        """Return 64 random bits for each."""
        stream = np.uint64((self.seed << 32 | crc32(f"{name}/{index}".encode())) % 2**64)
        start = _mixed(np.array([stream], dtype=np.uint64))[0]
        number = np.arange(self.first, self.first + self.count, dtype=np.uint64)
        return _mixed(number * _GOLDEN + start)

    def uniform(self, name: str, index: int = 0) -> Floats:
        """Return a number from 0 up to, not including, 1 for each."""
        return (self.bits(name, index) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def between(self, name: str, low: int, high: int, index: int = 0) -> Int64s:
        """Return a whole number from `low` to `high`, both included, for each."""
        assert low <= high
        return low + (self.uniform(name, index) * (high - low + 1)).astype(np.int64)


def _mixed(bits: Uint64s) -> Uint64s:
    bits = (bits ^ (bits >> np.uint64(30))) * _MIX_1
    bits = (bits ^ (bits >> np.uint64(27))) * _MIX_2
    return bits ^ (bits >> np.uint64(31))

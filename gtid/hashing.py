"""A 64-bit hash of bytes, eight at a time: fast when compiled, with the same result in Python.

It is not cryptographic: an attacker can construct collisions. `kernels/hash_bytes.py` is the
compiled version, and tests compare the two.
"""

import struct
from typing import Final

_BITS: Final = (1 << 64) - 1
SEED: Final = 0x9E3779B97F4A7C15  # the golden ratio, an odd number without a pattern
_MULTIPLIER: Final = 0xD6E8FEB86659FD93
_FINISH_1: Final = 0xBF58476D1CE4E5B9  # of splitmix64
_FINISH_2: Final = 0x94D049BB133111EB


def mix(state: int, word: int) -> int:
    """Mix one 64-bit word into a state. For a given word, distinct states stay distinct."""
    state = ((state ^ word) * _MULTIPLIER) & _BITS
    return state ^ state >> 32


def mix_bytes(state: int, data: bytes) -> int:
    """Mix the length and then the bytes into a state, eight at a time; pad the last word.

    >>> mix_bytes(SEED, b"a") != mix_bytes(SEED, b"a" + bytes(1))
    True
    """
    state = mix(state, len(data))
    whole = len(data) & ~7
    for (word,) in struct.iter_unpack("<Q", data[:whole]):
        state = mix(state, word)
    if whole < len(data):
        state = mix(state, int.from_bytes(data[whole:], "little"))
    return state


def finish(state: int) -> int:
    """Spread the input over all bits, so that sums of states remain distinct."""
    state = ((state ^ state >> 30) * _FINISH_1) & _BITS
    state = ((state ^ state >> 27) * _FINISH_2) & _BITS
    return state ^ state >> 31


def add(total: int, state: int) -> int:
    """Add a finished state to a sum that does not depend on the order."""
    return (total + state) & _BITS

"""A 64-bit hash of bytes, eight at a time: fast where it is compiled, and the same in Python.

It separates what differs by accident, not what an attacker made to collide. `kernels/hashing.py` is
its compiled twin, and tests hold the two together.
"""

import struct
from typing import Final

_BITS: Final = (1 << 64) - 1
SEED: Final = 0x9E3779B97F4A7C15  # the golden ratio, an odd number without a pattern
_MULTIPLIER: Final = 0xD6E8FEB86659FD93
_FINISH_1: Final = 0xBF58476D1CE4E5B9  # of splitmix64
_FINISH_2: Final = 0x94D049BB133111EB


def mix(state: int, word: int) -> int:
    """Put one 64-bit word into a state. For a given word no two states give the same one."""
    state = ((state ^ word) * _MULTIPLIER) & _BITS
    return state ^ state >> 32


def mix_bytes(state: int, data: bytes) -> int:
    """Put a length and the bytes behind it into a state, eight at a time, the last padded.

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
    """Spread what went in over all bits, so that sums of states keep them apart."""
    state = ((state ^ state >> 30) * _FINISH_1) & _BITS
    state = ((state ^ state >> 27) * _FINISH_2) & _BITS
    return state ^ state >> 31


def add(total: int, state: int) -> int:
    """Put a finished state into a sum, in which the order does not matter."""
    return (total + state) & _BITS

"""The hash of gtid/hashing.py, compiled. It reads bytes by their address."""

from __future__ import annotations

from typing import Final

import numpy as np

from gtid.jit import inlined, kernel
from gtid.kernels.eight_bytes import load_byte, load_eight

SEED: Final = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER: Final = np.uint64(0xD6E8FEB86659FD93)
_FINISH_1: Final = np.uint64(0xBF58476D1CE4E5B9)
_FINISH_2: Final = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)


@inlined
def mix(state: int, word: int) -> int:
    """Mix one 64-bit word into a state."""
    mixed = (state ^ word) * _MULTIPLIER
    return mixed ^ (mixed >> _S32)


@inlined
def finish(state: int) -> int:
    """Spread the input over all bits."""
    spread = (state ^ (state >> _S30)) * _FINISH_1
    spread = (spread ^ (spread >> _S27)) * _FINISH_2
    return spread ^ (spread >> _S31)


@inlined
def integer(at: int, count: int) -> int:
    """Read a little-endian number of fewer than eight bytes."""
    value = np.int64(0)
    for place in range(count):
        value |= np.int64(load_byte(at + place)) << np.int64(8 * place)
    return value


@kernel
def mix_bytes(state: int, at: int, stop: int) -> int:
    """Mix a length and the bytes from one address to another into a state."""
    mixed = mix(state, np.uint64(stop - at))
    while stop - at >= 8:
        mixed = mix(mixed, load_eight(at))
        at += 8
    if at < stop:
        mixed = mix(mixed, np.uint64(integer(at, stop - at)))
    return mixed

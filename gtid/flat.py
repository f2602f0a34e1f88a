"""Runs the kernels on a single GTID set: arrays of boundaries in, arrays of boundaries out.

1. This file and its imports need NumPy and Numba; only gtid/accelerated.py imports it.
2. It never passes a kernel memory that other code may change or free.
"""

from __future__ import annotations

import ctypes
from array import array
from typing import Any

import numpy as np

from gtid.boundary_sequence import Boundaries, settled
from gtid.errors import GtidSetTooLarge, MalformedGtidSet
from gtid.jit import cache_directory
from gtid.kernels import combining, folding, reading, writing
from gtid.kernels.eight_bytes import Numbers
from gtid.layout import Limits, key_text, read_texts

_COLON = ord(":")
_PIECE_BYTES = 256 * 1024  # the temporary array of a piece stays in the processor's cache

# CPython stores ASCII text as bytes with a zero at the end. This function returns their address
# without a copy (Python/C API, "Unicode Objects").
_address_of = ctypes.pythonapi.PyUnicode_AsUTF8AndSize
_address_of.restype = ctypes.c_void_p
_address_of.argtypes = [ctypes.py_object, ctypes.c_void_p]


def is_kept() -> bool:
    """Return whether later processes can load what one process compiled."""
    return cache_directory() is not None


def combine(
    left: array[int], right: array[int], *, left_only: bool, right_only: bool, both: bool
) -> array[int]:
    """Apply a truth table to two canonical sequences; the result is canonical."""
    table = left_only * combining.LEFT_ONLY | right_only * combining.RIGHT_ONLY
    table |= both * combining.BOTH
    room = np.empty(len(left) + len(right), np.int64)
    length = combining.sweep(_seen(left), _seen(right), table, room, 0)
    return _taken(room[:length])


def finds(left: array[int], right: array[int], *, left_only: bool, both: bool) -> bool:
    """Return whether the result of applying a truth table is not empty."""
    table = left_only * combining.LEFT_ONLY | both * combining.BOTH
    return bool(combining.sweep_finds(_seen(left), _seen(right), table))


def canonical(numbers: array[int]) -> array[int]:
    """Fold start, end, start, end, ... into canonical form. Empty intervals are dropped."""
    pairs = _seen(numbers).reshape(-1, 2)
    held = np.ascontiguousarray(pairs[pairs[:, 0] < pairs[:, 1]]).reshape(-1)
    return _taken(folding.canonical(held))


def is_canonical(numbers: array[int]) -> bool:
    """Return whether the numbers ascend strictly."""
    seen = _seen(numbers)
    return bool((seen[:-1] < seen[1:]).all())


def count(boundaries: array[int]) -> int:
    """Count the numbers in the set: fewer than 2**63, since they are distinct and below that."""
    seen = _seen(boundaries)
    return int((seen[1::2] - seen[::2]).sum())


def count_colons(text: str) -> int:
    """Count the colons of an ASCII text."""
    whole = (ctypes.c_char * len(text)).from_address(_address(text))
    seen = np.frombuffer(memoryview(whole), np.uint8)
    pieces = range(0, len(seen), _PIECE_BYTES)
    return sum(
        int(np.count_nonzero(seen[begin : begin + _PIECE_BYTES] == _COLON)) for begin in pieces
    )


def read(text: str, *, colon_count: int, tsids_max: int) -> dict[str, Boundaries]:
    """Read an ASCII text; return each key's canonical boundaries, in key order.

    Raises MalformedGtidSet, or GtidSetTooLarge for more than `tsids_max` TSIDs.
    """
    offsets, valid = np.array([0, len(text)]), np.ones(1, np.bool_)
    # The caller has already checked its limits on bytes and colons.
    limits = Limits(len(text), colon_count, tsids_max)
    read = read_texts(_address(text), offsets, valid, limits)
    if read.faults[0] == reading.TOO_LARGE:
        raise GtidSetTooLarge("TSIDs", tsids_max + 1, tsids_max)
    if read.faults[0]:
        expected = reading.EXPECTED[read.faults[0]]
        raise MalformedGtidSet.at(text, position=int(read.places[0]), expected=expected)
    rows, keys, run_bounds, bounds = read.arrays
    run_count = int(rows[1])
    edges = run_bounds[: run_count + 1].tolist()
    return {
        key_text(words): settled(_taken(bounds[begin:end]))
        for words, begin, end in zip(keys[:run_count].tolist(), edges[:-1], edges[1:], strict=True)
    }


def write(boundaries: array[int]) -> str:
    """Write `1-2:5`."""
    room = np.empty(len(boundaries) // 2 * writing.INTERVAL_CHARS_MAX, np.uint8)
    length = writing.write_run_bounds(room, 0, _seen(boundaries))
    return str(room[1:length].data, "ascii")  # without the first colon


def _address(text: str) -> int:
    assert text.isascii(), "only ASCII text is kept as bytes"
    address: Any = _address_of(text, None)
    return int(address)


def _seen(numbers: array[int]) -> Numbers:
    """Return a read-only view of an array."""
    seen: Numbers = np.frombuffer(numbers, np.int64)
    seen.flags.writeable = False
    return seen


def _taken(numbers: Numbers) -> array[int]:
    taken: array[int] = array("q")
    taken.frombytes(numbers.data.cast("B"))
    return taken

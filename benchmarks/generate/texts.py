"""Writes the text of many GTID sets straight into Arrow buffers.

1. A set is given by what it is cut from: the numbers `low` up to, not including, `high` of each
   UUID, without the holes that all sets of its family share and without one gap of its own.
2. Holes of one UUID ascend and do not touch; a set's own gap lies above them.
3. The text is MySQL's canonical one; a test reads it back with the product's own parser.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.generate.draws import Int64s, Uint64s

P = ParamSpec("P")
R = TypeVar("R")
Bytes = NDArray[np.uint8]

UUID_CHARS = 36
_NUMBER_CHARS = 19
_COLON, _DASH, _COMMA, _ZERO = (ord(char) for char in ":-,0")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function; the machine code is kept beside the source.

    Not the product's decorator: its cache knows the product's kernels only.
    """
    compiled: Any = numba.njit(cache=True, nogil=True)(function)
    made: Callable[P, R] = compiled
    return made


@dataclass(frozen=True, slots=True)
class Family:
    """What the sets of a cluster are cut from; one row per cluster, one column per UUID or hole."""

    uuids: Bytes  # [cluster, slot, 36] their text
    order: Int64s  # [cluster, rank] slots in order of UUID
    uuid_counts: Int64s  # [cluster] how many of `order` count
    hole_slots: Int64s  # [cluster, hole] -1 for no hole
    hole_lows: Int64s
    hole_highs: Int64s  # exclusive


@dataclass(frozen=True, slots=True)
class Gaps:
    """One hole of its own for each set; slot -1 for none."""

    slots: Int64s
    lows: Int64s
    highs: Int64s  # exclusive

    @classmethod
    def none(cls, count: int) -> "Gaps":
        """Return no gap for any of `count` sets."""
        nothing = np.zeros(count, dtype=np.int64)
        return cls(nothing - 1, nothing, nothing)


def set_texts(
    family: Family, clusters: Int64s, *, lows: Int64s, highs: Int64s, gaps: Gaps
) -> pa.StringArray:
    """Write one text per row: the set of `clusters[row]`, from `lows[row, slot]` to `highs`."""
    slots, holes = family.order.shape[1], family.hole_slots.shape[1]
    chars = slots * (UUID_CHARS + 1) + (slots + holes + 1) * 2 * (_NUMBER_CHARS + 1)
    text = np.empty(len(clusters) * chars, dtype=np.uint8)
    offsets = np.zeros(len(clusters) + 1, dtype=np.int64)
    _write_sets(
        clusters,
        lows,
        highs,
        gaps.slots,
        gaps.lows,
        gaps.highs,
        family.uuids,
        family.order,
        family.uuid_counts,
        family.hole_slots,
        family.hole_lows,
        family.hole_highs,
        text,
        offsets,
    )
    return string_array(text, offsets)


def uuid_characters(high: Uint64s, low: Uint64s) -> Bytes:
    """Return the text of each UUID, given its two halves, as [..., 36] characters."""
    text = np.empty((high.size, UUID_CHARS), dtype=np.uint8)
    _write_uuids(high.ravel(), low.ravel(), text)
    return text.reshape(*high.shape, UUID_CHARS)


def fixed_array(characters: Bytes) -> pa.StringArray:
    """Return rows of equally many characters as texts."""
    count, width = characters.shape
    offsets = np.arange(count + 1, dtype=np.int64) * width
    return string_array(np.ascontiguousarray(characters).ravel(), offsets)


def string_array(text: Bytes, offsets: Int64s) -> pa.StringArray:
    """Wrap characters and offsets. At most 2 GiB of text in one array, as Arrow has it."""
    assert offsets[-1] < 2**31, "Arrow's string offsets are 32 bits"
    return pa.StringArray.from_buffers(
        len(offsets) - 1,
        pa.py_buffer(offsets.astype(np.int32)),
        pa.py_buffer(text[: offsets[-1]]),
    )


@kernel
def write_number(text: Bytes, at: int, number: int) -> int:
    """Write a number of 0 or more in decimal and return the place after it."""
    digits = 1
    rest = number // 10
    while rest > 0:
        digits += 1
        rest //= 10
    rest = number
    for place in range(at + digits - 1, at - 1, -1):
        text[place] = _ZERO + rest % 10
        rest //= 10
    return at + digits


@kernel
def write_interval(text: Bytes, at: int, low: int, high: int) -> int:
    """Write `:low` or `:low-last` and return the place after it. `high` is exclusive."""
    text[at] = _COLON
    at = write_number(text, at + 1, low)
    if high - low > 1:
        text[at] = _DASH
        at = write_number(text, at + 1, high - 1)
    return at


@kernel
def _write_sets(  # noqa: PLR0917 - a kernel takes arrays, one after the other
    clusters: Int64s,
    lows: Int64s,
    highs: Int64s,
    gap_slots: Int64s,
    gap_lows: Int64s,
    gap_highs: Int64s,
    uuids: Bytes,
    order: Int64s,
    uuid_counts: Int64s,
    hole_slots: Int64s,
    hole_lows: Int64s,
    hole_highs: Int64s,
    text: Bytes,
    offsets: Int64s,
) -> None:
    holes = hole_slots.shape[1]
    at = 0
    for row in range(len(clusters)):
        cluster = clusters[row]
        begun = at
        for rank in range(uuid_counts[cluster]):
            slot = order[cluster, rank]
            here, high = lows[row, slot], highs[row, slot]
            named = False
            for hole in range(holes + 2):
                if hole < holes:
                    hole_slot = hole_slots[cluster, hole]
                    hole_low, hole_high = hole_lows[cluster, hole], hole_highs[cluster, hole]
                elif hole == holes:
                    hole_slot, hole_low, hole_high = gap_slots[row], gap_lows[row], gap_highs[row]
                else:
                    hole_slot, hole_low, hole_high = slot, high, high  # where the set ends
                if hole_slot != slot:
                    continue
                end = min(hole_low, high)
                if end > here:
                    if not named:
                        at = _write_entry(text, at, begun, uuids[cluster, slot])
                        named = True
                    at = write_interval(text, at, here, end)
                here = max(here, hole_high)
        offsets[row + 1] = at


@kernel
def _write_entry(text: Bytes, at: int, begun: int, uuid: Bytes) -> int:
    if at > begun:
        text[at] = _COMMA
        at += 1
    text[at : at + UUID_CHARS] = uuid
    return at + UUID_CHARS


@kernel
def _write_uuids(high: Uint64s, low: Uint64s, text: Bytes) -> None:
    for row in range(len(high)):
        place = 0
        for nibble in range(32):
            if nibble in (8, 12, 16, 20):
                text[row, place] = _DASH
                place += 1
            half = high[row] if nibble < 16 else low[row]
            value = (half >> np.uint64(60 - 4 * (nibble % 16))) & np.uint64(15)
            text[row, place] = value + np.uint64(_ZERO if value < 10 else ord("a") - 10)
            place += 1

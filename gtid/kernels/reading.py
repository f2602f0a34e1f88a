"""Reads the text of GTID sets, a row at a time, by the grammar of gtid/text.py.

The first error of a row is reported as a place and a code; EXPECTED has the words of a code. Of
a valid row two facts are returned: whether its runs are in order already, and whether the very
text is the canonical one. Neither costs a second look.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gtid.jit import inlined, kernel
from gtid.kernels.keys import KEY_WORDS, key_order
from gtid.kernels.tokens import (
    COLON,
    COMMA,
    DIGIT,
    EXPECTED,
    FINE,
    KIND,
    LONG_TAG,
    NO_COLON,
    NO_TAG,
    NO_UUID,
    TAG_CHARS_MAX,
    TOO_LARGE,
    UUID_CHARS,
    any_uuid,
    behind_commas,
    behind_space,
    dashed_uuid,
    interval,
    tag_words,
)
from gtid.kernels.words import Bytes, Flags, Numbers, Words, count_byte, load_byte, load_eight

__all__ = [
    "EXACT",
    "EXPECTED",
    "ORDERLY",
    "TOO_LARGE",
    "count_colons",
    "read_row",
    "read_rows",
    "read_uuids",
]

ORDERLY: Final = 1  # the runs are in order, and canonical
EXACT: Final = 2  # the text is what `gtid.kernels.writing` would write


@inlined
def read_row(
    begin: int,
    end: int,
    run: int,
    bound: int,
    keys: Words,
    run_bounds: Numbers,
    bounds: Numbers,
) -> tuple[int, int, int, int, int]:
    """Read the text from address `begin` up to `end` and append its runs as they are written.

    `keys` needs room for one run more than there are colons. Returns (run, bound, what is true of
    the row, fault, place of the fault).
    """
    first_run = run
    at = behind_commas(begin, end)
    truth = ORDERLY | EXACT if at == begin else ORDERLY
    while at < end:
        at, run, bound, truth, fault = _read_entry(
            at, end, first_run, run, bound, truth, keys, run_bounds, bounds
        )
        if fault != FINE:
            return run, bound, 0, fault, at
        if at < end:
            if load_byte(at) != COMMA:
                return run, bound, 0, NO_COLON, at
            place = at + 1
            at = behind_commas(place, end)
            if at != place or at == end:
                truth &= ~EXACT
    if not truth & ORDERLY:
        truth = 0
    return run, bound, truth, FINE, 0


@inlined
def _read_entry(
    at: int,
    end: int,
    first_run: int,
    run: int,
    bound: int,
    truth: int,
    keys: Words,
    run_bounds: Numbers,
    bounds: Numbers,
) -> tuple[int, int, int, int, int]:
    """Read one UUID with its tags and intervals: (place behind or of the fault, ..., fault).

    The tag in force is kept where the next run's key will be.
    """
    place = at
    at, high, low, fault = any_uuid(at, end)
    if fault == 1:
        return place, run, bound, truth, NO_UUID
    # Capitals; or two entries where one would do.
    if fault == 2 or (run > first_run and keys[run - 1, 0] == high and keys[run - 1, 1] == low):
        truth &= ~EXACT
    for word in range(2, KEY_WORDS):
        keys[run, word] = np.uint64(0)
    is_tagged, is_open, is_idle = False, False, True
    place = at
    at = behind_space(at, end)
    while True:
        if at != place:
            truth &= ~EXACT
        if at == end or load_byte(at) != COLON:
            break
        place = at + 1
        at = behind_space(place, end)
        if at != place:
            truth &= ~EXACT
        if at < end and KIND[load_byte(at)] == DIGIT:
            at, first, last, fault, is_exact = interval(at, end)
            if fault != FINE:
                return at, run, bound, truth, fault
            if not is_exact:
                truth &= ~EXACT
            place = at
            if last < first:
                continue
            if not is_open:
                keys[run, 0], keys[run, 1] = high, low
                truth &= _open_run(first_run, run, bound, keys, run_bounds)
                run += 1
            elif bounds[bound - 1] >= first:
                truth &= ~ORDERLY
            is_open, is_idle = True, False
            bounds[bound], bounds[bound + 1] = first, last + 1
            bound += 2
        else:
            place = at
            at, capitals = tag_words(at, end, keys[run, 2:])
            if at == place:
                return place, run, bound, truth, NO_TAG
            if at - place > TAG_CHARS_MAX:
                return place, run, bound, truth, LONG_TAG
            if capitals or (is_tagged and is_idle):
                truth &= ~EXACT
            is_tagged, is_open, is_idle = True, False, True
            place = at
            at = behind_space(at, end)
    if is_idle:
        truth &= ~EXACT
    return at, run, bound, truth, FINE


@inlined
def _open_run(first_run: int, run: int, bound: int, keys: Words, run_bounds: Numbers) -> int:
    """Begin a run, whose key is written; give what may still be true of its row."""
    run_bounds[run] = bound
    is_behind = run == first_run or key_order(keys, run - 1, keys, run) < 0
    return ORDERLY | EXACT if is_behind else EXACT


@kernel
def count_colons(begin: int, end: int) -> int:
    """Count what bounds the number of runs, and twice the number of boundaries."""
    count = 0
    at = begin
    while at + 8 <= end:
        count += count_byte(load_eight(at), COLON)
        at += 8
    while at < end:
        count += load_byte(at) == COLON
        at += 1
    return count


@kernel
def read_rows(
    address: int,
    offsets: Numbers,
    text_bytes_max: int,
    intervals_max: int,
    valid: Flags,
    rows: Numbers,
    keys: Words,
    run_bounds: Numbers,
    bounds: Numbers,
    truths: Bytes,
    faults: Bytes,
    places: Numbers,
) -> None:
    """Read every valid row of the text at `address`.

    A row with a fault becomes invalid and leaves nothing but its fault. One that is not ORDERLY
    stands as it was written: see folding.fold_rows.
    """
    run, bound = 0, 0
    for row in range(len(valid)):
        rows[row] = run
        truths[row], faults[row], places[row] = 0, 0, 0
        if not valid[row]:
            continue
        begin, end = address + offsets[row], address + offsets[row + 1]
        if end - begin > text_bytes_max or (
            end - begin > intervals_max and count_colons(begin, end) > intervals_max
        ):
            faults[row], valid[row] = TOO_LARGE, False
            continue
        next_run, next_bound, truth, fault, place = read_row(
            begin, end, run, bound, keys, run_bounds, bounds
        )
        if fault != FINE:
            faults[row], places[row], valid[row] = fault, place - begin, False
            continue
        truths[row] = truth
        run, bound = next_run, next_bound
    rows[len(valid)] = run
    run_bounds[run] = bound


@kernel
def read_uuids(address: int, offsets: Numbers, high: Words, low: Words, exact: Flags) -> None:
    """Read a column of UUIDs; `exact` says which rows to look at, and which are canonical."""
    for row in range(len(exact)):
        begin, end = address + offsets[row], address + offsets[row + 1]
        if exact[row]:
            exact[row] = False
            if end - begin == UUID_CHARS:
                high[row], low[row], fault = dashed_uuid(begin)
                exact[row] = fault == FINE

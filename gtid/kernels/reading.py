"""Reads the text of GTID sets, one row at a time, with the grammar of gtid/gtid_text.py.

How it works
------------
The reader passes over the bytes of a row once, from left to right. It appends a run for each
stretch of intervals with the same TSID, in the layout of gtid/kernels/__init__.py:

    text    3E11FA47-…:1-2:5:dba:3,   4f22…:7       runs in `bounds`
            `-- UUID   `---' `-- tag                  3e11…       1, 3, 5, 6
                        run 0    run 1                3e11…:dba   3, 4
                                                      4f22…       7, 8

The state within one entry (a UUID with its tags and intervals) is:

* `high`, `low`: the UUID. The current tag is in keys[run, 2:], where the key of the next run will
  be. A tag is sticky: it applies until the next tag or the end of the entry.
* `is_open`: a run exists for the current TSID, so the next interval extends it. A new tag closes
  the run. Empty intervals such as `2-1` are read and then dropped, so a run is never empty.
* `is_idle`: the current tag, or the UUID before any tag, has no interval yet.

The reader does not sort or merge. In the same pass it determines two facts about a valid row:

* ORDERLY: the runs already satisfy the layout. Each key is above the one before (`_open_run`), and
  each interval starts above the end of the one before it in its run. The reader clears this bit
  at the first exception, and gtid/kernels/folding.py then folds the row. Servers print sets in
  order, so folding is rare.
* EXACT: the text is the canonical text, byte for byte, so it need not be written again. White
  space, capitals, leading zeros, `5-5`, a UUID that is repeated, an unused tag, or a missing
  ORDERLY clear it.

Examples of both facts, with u and v for UUIDs where u < v:

    text                 runs                 facts
    u:1-2:5,v:7          u 1,3,5,6; v 7,8     ORDERLY, EXACT
    u:5:1-2              u 5,6,1,3            none: 1 is below the end of 5
    u:1-2:3              u 1,3,3,4            none: 3 touches the end of 1-2, so it is one interval
    v:7,u:1              v 7,8; u 1,2         none: the key of u is below the one before
    u:1, v:7             u 1,2; v 7,8         ORDERLY: only the text has a blank too many
    u:05                 u 5,6                ORDERLY: a leading zero
    u:3-2                                     ORDERLY: an empty interval is no run
    u:1:x:2:1-9          u 1,2; u:x 2,3,1,10  none, and only that row is folded

So a row that is not ORDERLY is never EXACT, and a row that is EXACT is never written again.

The first error ends the row. It is reported as a code and a position; EXPECTED has the message of
each code. A row with an error leaves no runs: the caller continues at the old `run` and `bound`.

The number of colons bounds the number of runs, and twice that number bounds the boundaries, because
each interval and each tag has a colon before it. So `count_colons` is enough to allocate the arrays
before reading, and no kernel has to grow an array.

The limits of a row are checked before it is read, because a server or a file may send any text. Its
bytes are known. Each interval has a colon, and n bytes have at most n colons. So the colons are
only counted for a row with more bytes than intervals are permitted. `read_rows` writes rows[row]
before it reads a row. So a row that is null, too large or faulty is an empty one in the layout,
and later rows begin where it would have begun.

A parser in Python or a regular expression for each row costs objects for each interval. Reading
first and validating the order later would need a second pass over all rows.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gtid.jit import inlined, kernel
from gtid.kernels.eight_bytes import Bytes, Flags, Numbers, Words, count_byte, load_byte, load_eight
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
    TOO_LARGE,
    any_uuid,
    behind_commas,
    behind_space,
    dashed_uuid,
    interval,
    tag_words,
)
from gtid.tsid import TAG_CHARS_MAX, UUID_CHARS

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
EXACT: Final = 2  # the text equals what `gtid.kernels.writing` would write


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

    `keys` needs space for one run more than there are colons. Returns (run, bound, truths of the
    row, fault, position of the fault).
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
    """Read one UUID with its tags and intervals: (next position or that of the fault, ..., fault).

    The current tag is stored where the key of the next run will be.
    """
    place = at
    at, high, low, fault = any_uuid(at, end)
    if fault == 1:
        return place, run, bound, truth, NO_UUID
    # Capitals, or a second entry for the same UUID: the canonical text has neither.
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
    """Begin a run, whose key is already written; return a mask for the truths of its row.

    Keys must ascend strictly: an equal key is a TSID that the row has in two places.
    """
    run_bounds[run] = bound
    is_behind = run == first_run or key_order(keys, run - 1, keys, run) < 0
    return ORDERLY | EXACT if is_behind else EXACT


@kernel
def count_colons(begin: int, end: int) -> int:
    """Count the colons: an upper bound on the runs; twice it bounds the boundaries."""
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

    A row with a fault becomes invalid and only records the fault. The runs of a row that is not
    ORDERLY remain as they were written: see folding.fold_rows.
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
    """Read a column of UUIDs. `exact` selects the rows, and receives which are canonical.

    A UUID in another form is not exact. Servers print one form only, so such a row is left to the
    caller instead of a second parser here.
    """
    for row in range(len(exact)):
        begin, end = address + offsets[row], address + offsets[row + 1]
        if exact[row]:
            exact[row] = False
            if end - begin == UUID_CHARS:
                high[row], low[row], fault = dashed_uuid(begin)
                exact[row] = fault == FINE

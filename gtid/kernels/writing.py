"""Writes GTID sets as text: MySQL's canonical form, on one line.

How it works
------------
The layout of gtid/kernels/__init__.py is already in MySQL's order, so the writer makes one pass and
never sorts or compares numbers. For each run it writes three parts:

    keys of the row          bounds             text
    3e11…                    1, 3, 5, 6         3e11fa47-71ca-11e1-9e33-c80aa9429562:1-2:5
    3e11…  "dba"             3, 4               :dba:3
    4f22…                    7, 8               ,4f22…:7

* The UUID, only if it differs from that of the run before. A comma precedes it unless the run is
  the first of its row. Runs of the same UUID are adjacent, and the untagged one comes first,
  because a tag of zeros sorts before any other.
* The tag, if the first of its four words is not zero. The tag ends at the first zero byte.
* The intervals. `bounds` has exclusive ends and the text inclusive ones, so the writer subtracts 1.
  An interval of one number is written without a dash.

The caller allocates the text before the call: RUN_CHARS_MAX for each run and INTERVAL_CHARS_MAX for
each interval are upper bounds, so the kernel needs no checks. offsets[row] is the position at
which a row begins, and offsets[rows] the end of the text. Both arrays are Arrow's own format, and a
null row is a row with no bytes.

`_write_number` counts the digits first and then writes from the last digit to the first, two at a
time from a table of 100 pairs. Thus the digits need no reversal, and each division yields two. A
string per interval in Python, or one text per row that is joined later, would allocate for each.

Example: 40713 has 5 digits. 40713 = 407 * 100 + 13 writes "13" at the end, 407 = 4 * 100 + 7 writes
"07" before it, and 4 is below 10, so one digit "4" is left for the first place.

Invariants:

* `at` is always the offset of the next byte, and never above what the caller has allocated: a run
  needs a comma, a UUID, a colon and a tag, and an interval two numbers of 19 digits and two signs.
* The text of a valid row is canonical: gtid_text.py reads it back as the same set, and writes the
  same bytes. Property tests compare both.
* A row that is not valid has no bytes, so its offset equals that of the next row.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gtid.jit import kernel
from gtid.kernels.eight_bytes import Bytes, Flags, Numbers, Words

RUN_CHARS_MAX: Final = 1 + 36 + 1 + 32  # a comma, a UUID, a colon, a tag
INTERVAL_CHARS_MAX: Final = 1 + 19 + 1 + 19

_COLON, _COMMA, _DASH, _ZERO = np.frombuffer(b":,-0", np.uint8).copy()
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8).copy()
_TENS = np.array([10**power for power in range(1, 19)], np.int64)
_PAIRS = np.frombuffer("".join(f"{number:02}" for number in range(100)).encode(), np.uint8).copy()


@kernel
def _write_hex(text: Bytes, at: int, word: int, shift: int, count: int) -> int:
    """Write `count` hexadecimal digits of a word; `shift` is the bit position of the first."""
    for _ in range(count):
        text[at] = _HEX[(word >> np.uint64(shift)) & np.uint64(15)]
        at += 1
        shift -= 4
    return at


@kernel
def _write_uuid(text: Bytes, at: int, high: int, low: int) -> int:
    at = _write_hex(text, at, high, 60, 8)
    text[at] = _DASH
    at = _write_hex(text, at + 1, high, 28, 4)
    text[at] = _DASH
    at = _write_hex(text, at + 1, high, 12, 4)
    text[at] = _DASH
    at = _write_hex(text, at + 1, low, 60, 4)
    text[at] = _DASH
    return _write_hex(text, at + 1, low, 44, 12)


@kernel
def _write_number(text: Bytes, at: int, number: int) -> int:
    count = 1
    while count < 19 and number >= _TENS[count - 1]:
        count += 1
    place = at + count
    value = np.uint64(number)
    while value >= np.uint64(100):
        rest = value // np.uint64(100)
        pair = np.int64(value - rest * np.uint64(100)) * 2
        place -= 2
        text[place], text[place + 1] = _PAIRS[pair], _PAIRS[pair + 1]
        value = rest
    if value >= np.uint64(10):
        pair = np.int64(value) * 2
        text[place - 2], text[place - 1] = _PAIRS[pair], _PAIRS[pair + 1]
    else:
        text[place - 1] = _ZERO + np.uint8(value)
    return at + count


@kernel
def _write_tag(text: Bytes, at: int, keys: Words, run: int) -> int:
    text[at] = _COLON
    at += 1
    for word in range(2, 6):
        for shift in range(56, -1, -8):
            byte = np.uint8((keys[run, word] >> np.uint64(shift)) & np.uint64(255))
            if byte == 0:
                return at
            text[at] = byte
            at += 1
    return at


@kernel
def write_run_bounds(text: Bytes, at: int, bounds: Numbers) -> int:
    """Write the intervals of one run, for example `:1-2:5`."""
    for index in range(0, len(bounds), 2):
        start, end = bounds[index], bounds[index + 1]
        text[at] = _COLON
        at = _write_number(text, at + 1, start)
        if end - start > 1:
            text[at] = _DASH
            at = _write_number(text, at + 1, end - 1)
    return at


@kernel
def write_rows(
    rows: Numbers,
    keys: Words,
    run_bounds: Numbers,
    bounds: Numbers,
    valid: Flags,
    text: Bytes,
    offsets: Numbers,
) -> int:
    """Write every valid row and the offset of each row; return the number of bytes written."""
    at = 0
    for row in range(len(valid)):
        offsets[row] = at
        if not valid[row]:
            continue
        for run in range(rows[row], rows[row + 1]):
            if run == rows[row] or (
                keys[run - 1, 0] != keys[run, 0] or keys[run - 1, 1] != keys[run, 1]
            ):
                if run > rows[row]:
                    text[at] = _COMMA
                    at += 1
                at = _write_uuid(text, at, keys[run, 0], keys[run, 1])
            if keys[run, 2] != np.uint64(0):
                at = _write_tag(text, at, keys, run)
            at = write_run_bounds(text, at, bounds[run_bounds[run] : run_bounds[run + 1]])
    offsets[len(valid)] = at
    return at

"""Reads the text of GTID sets, a row at a time, by the grammar of gtid/text.py.

What stands first wrong in a row is told as a place and a code, for which EXPECTED has the words. Of
a well-formed row two things are told: whether its runs are in order already, and whether the very
text is the canonical one. Neither costs a second look.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gtid.jit import inlined, kernel
from gtid.kernels.folding import fold_row
from gtid.kernels.keys import KEY_WORDS, key_order
from gtid.kernels.words import (
    Bytes,
    Flags,
    Numbers,
    Words,
    are_hex_digits,
    decimal_value,
    digit_count,
    has_capitals,
    hex_value,
    load_byte,
    load_eight,
    load_four,
)

TAG_CHARS_MAX: Final = 32
GNO_MAX: Final = 2**63 - 2

# Codes: 0 is a row without fault. The words are those of gtid/text.py.
EXPECTED: Final = (
    "",
    "a UUID",
    "a tag or an interval",
    f"a tag of 1 to {TAG_CHARS_MAX} characters",
    f"a number from 1 to {GNO_MAX}",
    f"a number from 0 to {GNO_MAX}",
    "a number",
    "a colon, a comma or the end",
)
TOO_LARGE: Final = len(EXPECTED)  # one more code: a row beyond the limits
_FINE, _NO_UUID, _NO_TAG, _LONG_TAG, _NO_START, _NO_LAST, _NO_NUMBER, _NO_COLON = range(8)

ORDERLY: Final = 1  # the runs are in order, and canonical
EXACT: Final = 2  # the text is what `gtid.kernels.writing` would write

_COLON, _COMMA, _DASH, _ZERO, _BLANK, _OPEN, _CLOSE = (np.uint64(byte) for byte in b":,-0 {}")
_ENTRY_CHARS: Final = 36
_BARE_CHARS: Final = 32
_BRACED_CHARS: Final = 38
_ROUNDS_MAX: Final = 922337203685477580  # ten times this is within 2**63

# What a byte is: a digit (1), a letter (2), white space (4), in ASCII alone.
_KIND = np.zeros(256, np.uint8)
_KIND[np.frombuffer(b"0123456789", np.uint8)] = 1
_KIND[np.frombuffer(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_", np.uint8)] = 2
_KIND[np.frombuffer(b" \t\n\v\f\r", np.uint8)] = 4


@inlined
def _behind_space(at: int, end: int) -> int:
    while at < end and load_byte(at) <= _BLANK and _KIND[load_byte(at)] == 4:
        at += 1
    return at


@kernel
def _behind_commas(at: int, end: int) -> int:
    while at < end and (load_byte(at) == _COMMA or _KIND[load_byte(at)] == 4):
        at += 1
    return at


@kernel
def _dashed_uuid(at: int) -> tuple[int, int, int]:
    """Read 36 characters as (high word, low word, fault); fault 2: well, but with capitals."""
    if not (
        load_byte(at + 8) == _DASH
        and load_byte(at + 13) == _DASH
        and load_byte(at + 18) == _DASH
        and load_byte(at + 23) == _DASH
    ):
        return np.uint64(0), np.uint64(0), 1
    half = np.uint64(32)
    first = load_eight(at)
    second = load_four(at + 9) | (load_four(at + 14) << half)
    third = load_four(at + 19) | (load_four(at + 24) << half)
    fourth = load_eight(at + 28)
    if not (
        are_hex_digits(first)
        and are_hex_digits(second)
        and are_hex_digits(third)
        and are_hex_digits(fourth)
    ):
        return np.uint64(0), np.uint64(0), 1
    capitals = has_capitals(first) or has_capitals(second)
    capitals = capitals or has_capitals(third) or has_capitals(fourth)
    high = (hex_value(first) << half) | hex_value(second)
    low = (hex_value(third) << half) | hex_value(fourth)
    return high, low, 2 if capitals else 0


@kernel
def _bare_uuid(at: int) -> tuple[int, int, int]:
    """Read 32 characters without dashes likewise."""
    half = np.uint64(32)
    first, second = load_eight(at), load_eight(at + 8)
    third, fourth = load_eight(at + 16), load_eight(at + 24)
    if not (
        are_hex_digits(first)
        and are_hex_digits(second)
        and are_hex_digits(third)
        and are_hex_digits(fourth)
    ):
        return np.uint64(0), np.uint64(0), 1
    high = (hex_value(first) << half) | hex_value(second)
    low = (hex_value(third) << half) | hex_value(fourth)
    return high, low, 2


@kernel
def _uuid(at: int, end: int) -> tuple[int, int, int, int]:
    """Read a UUID in any form as (place behind it, high, low, fault); see _dashed_uuid."""
    if end - at >= _ENTRY_CHARS:
        high, low, fault = _dashed_uuid(at)
        if fault != 1:
            return at + _ENTRY_CHARS, high, low, fault
    if (
        end - at >= _BRACED_CHARS
        and load_byte(at) == _OPEN
        and load_byte(at + _BRACED_CHARS - 1) == _CLOSE
    ):
        high, low, fault = _dashed_uuid(at + 1)
        if fault != 1:
            return at + _BRACED_CHARS, high, low, 2
    if end - at >= _BARE_CHARS:
        high, low, fault = _bare_uuid(at)
        if fault != 1:
            return at + _BARE_CHARS, high, low, 2
    return at, np.uint64(0), np.uint64(0), 1


@inlined
def _number(at: int, end: int) -> tuple[int, int]:
    """Read digits as (place behind them, value); -1 if it is above GNO_MAX."""
    count = np.int64(8)
    word = np.uint64(0)
    if at + 8 <= end:
        word = load_eight(at)
        count = digit_count(word)
    if count < 8:
        behind, value = at + count, decimal_value(word, count)
    else:
        behind, value = _long_number(at, end)
    return behind, value


@kernel
def _long_number(at: int, end: int) -> tuple[int, int]:
    """Read likewise, however many digits there are, or however near the end."""
    value = np.int64(0)
    while at < end:
        digit = np.int64(load_byte(at)) - 48
        if digit < 0 or digit > 9:
            break
        at += 1
        if value < 0 or value > _ROUNDS_MAX:
            value = np.int64(-1)
        else:
            value = value * 10 + digit  # up to 2**63 + 1: what is too large may wrap below zero
    return at, value if 0 <= value <= GNO_MAX else np.int64(-1)


@kernel
def _tag(at: int, end: int, words: Words) -> tuple[int, bool]:
    """Read a tag into its four words; give the place behind it and whether it has capitals."""
    for word in range(4):
        words[word] = np.uint64(0)
    begin = at
    capitals = False
    while at < end and _KIND[load_byte(at)] & 3 != 0:
        byte = load_byte(at)
        if 65 <= byte <= 90:
            capitals = True
            byte = byte | np.uint8(32)
        offset = at - begin
        if offset < TAG_CHARS_MAX:
            words[offset >> 3] |= np.uint64(byte) << np.uint64(56 - 8 * (offset & 7))
        at += 1
    return at, capitals


@inlined
def _interval(at: int, end: int) -> tuple[int, int, int, int, bool]:
    """Read an interval as (place behind it, first, last, fault, is as we would write it).

    With a fault the place is that of the fault.
    """
    place, fault = at, _FINE
    exact = load_byte(at) != _ZERO
    at, first = _number(at, end)
    last = first
    if first < 1:
        at, fault = place, _NO_START
    else:
        place = at
        at = _behind_space(at, end)
        exact = exact and at == place
        if at < end and load_byte(at) == _DASH:
            place = at + 1
            at = _behind_space(place, end)
            exact = exact and at == place
            place = at
            if at == end or _KIND[load_byte(at)] != 1:
                fault = _NO_NUMBER
            else:
                exact = exact and load_byte(at) != _ZERO
                at, last = _number(at, end)
                exact = exact and last > first
                if last < 0:
                    at, fault = place, _NO_LAST
                else:
                    place = at
                    at = _behind_space(at, end)
                    exact = exact and at == place
    return at, first, last, fault, exact


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
    at = _behind_commas(begin, end)
    truth = ORDERLY | EXACT if at == begin else ORDERLY
    while at < end:
        at, run, bound, truth, fault = _read_entry(
            at, end, first_run, run, bound, truth, keys, run_bounds, bounds
        )
        if fault != _FINE:
            return run, bound, 0, fault, at
        if at < end:
            if load_byte(at) != _COMMA:
                return run, bound, 0, _NO_COLON, at
            place = at + 1
            at = _behind_commas(place, end)
            if at != place or at == end:
                truth &= ~EXACT
    if not truth & ORDERLY:
        truth = 0
    return run, bound, truth, _FINE, 0


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
    at, high, low, fault = _uuid(at, end)
    if fault == 1:
        return place, run, bound, truth, _NO_UUID
    # Capitals; or two entries where one would do.
    if fault == 2 or (run > first_run and keys[run - 1, 0] == high and keys[run - 1, 1] == low):
        truth &= ~EXACT
    for word in range(2, KEY_WORDS):
        keys[run, word] = np.uint64(0)
    is_tagged, is_open, is_idle = False, False, True
    place = at
    at = _behind_space(at, end)
    while True:
        if at != place:
            truth &= ~EXACT
        if at == end or load_byte(at) != _COLON:
            break
        place = at + 1
        at = _behind_space(place, end)
        if at != place:
            truth &= ~EXACT
        if at < end and _KIND[load_byte(at)] == 1:
            at, first, last, fault, is_exact = _interval(at, end)
            if fault != _FINE:
                return at, run, bound, truth, fault
            if not is_exact:
                truth &= ~EXACT
            place = at
            if last < first:
                continue
            if not is_open:
                keys[run, 0], keys[run, 1] = high, low
                run_bounds[run] = bound
                if run > first_run and key_order(keys, run - 1, keys, run) >= 0:
                    truth &= ~ORDERLY
                run += 1
                is_open, is_idle = True, False
            elif bounds[bound - 1] >= first:
                truth &= ~ORDERLY
            bounds[bound], bounds[bound + 1] = first, last + 1
            bound += 2
        else:
            place = at
            at, capitals = _tag(at, end, keys[run, 2:])
            if at == place:
                return place, run, bound, truth, _NO_TAG
            if at - place > TAG_CHARS_MAX:
                return place, run, bound, truth, _LONG_TAG
            if capitals or (is_tagged and is_idle):
                truth &= ~EXACT
            is_tagged, is_open, is_idle = True, False, True
            place = at
            at = _behind_space(at, end)
    if is_idle:
        truth &= ~EXACT
    return at, run, bound, truth, _FINE


@kernel
def count_colons(begin: int, end: int) -> int:
    """Count what bounds the number of runs, and twice the number of boundaries."""
    count = 0
    for at in range(begin, end):
        count += load_byte(at) == _COLON
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

    A row with a fault becomes invalid and leaves nothing but its fault.
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
        if fault != _FINE:
            faults[row], places[row], valid[row] = fault, place - begin, False
            continue
        if not truth & ORDERLY:
            next_run, next_bound = fold_row(run, next_run, next_bound, keys, run_bounds, bounds)
        truths[row] = truth
        run, bound = next_run, next_bound
    rows[len(valid)] = run
    run_bounds[run] = bound

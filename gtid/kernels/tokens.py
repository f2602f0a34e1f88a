"""Reads the tokens of the grammar at an address: UUIDs, tags, numbers and intervals.

Each function returns the position after its token. A fault is a code; EXPECTED has its message.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gtid.boundary_sequence import GNO_MAX
from gtid.jit import inlined, kernel
from gtid.kernels.eight_bytes import (
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
from gtid.tsid import TAG_CHARS_MAX, UUID_CHARS

# Messages by code; 0 is a row without a fault. The messages are those of gtid/gtid_text.py.
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
TOO_LARGE: Final = len(EXPECTED)  # an additional code: a row above the limits
FINE, NO_UUID, NO_TAG, LONG_TAG, NO_START, NO_LAST, NO_NUMBER, NO_COLON = range(8)

COLON, COMMA, DASH, _ZERO, _BLANK, _OPEN, _CLOSE = (np.uint64(byte) for byte in b":,-0 {}")
_BARE_CHARS: Final = 32
_BRACED_CHARS: Final = 38
_TENS = 10 ** np.arange(8)
_ROUNDS_MAX: Final = 922337203685477580  # ten times this is within 2**63

# The class of each byte, in ASCII only.
DIGIT: Final = 1
LETTER: Final = 2
BLANK: Final = 4
KIND = np.zeros(256, np.uint8)
KIND[np.frombuffer(b"0123456789", np.uint8)] = DIGIT
KIND[np.frombuffer(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_", np.uint8)] = LETTER
KIND[np.frombuffer(b" \t\n\v\f\r", np.uint8)] = BLANK


@inlined
def behind_space(at: int, end: int) -> int:
    """Skip white space."""
    while at < end and load_byte(at) <= _BLANK and KIND[load_byte(at)] == BLANK:
        at += 1
    return at


@kernel
def behind_commas(at: int, end: int) -> int:
    """Skip commas and white space."""
    while at < end and (load_byte(at) == COMMA or KIND[load_byte(at)] == BLANK):
        at += 1
    return at


@kernel
def dashed_uuid(at: int) -> tuple[int, int, int]:
    """Read 36 characters as (high word, low word, fault); fault 2: valid, but with capitals."""
    if not (
        load_byte(at + 8) == DASH
        and load_byte(at + 13) == DASH
        and load_byte(at + 18) == DASH
        and load_byte(at + 23) == DASH
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
    """Read 32 characters without dashes; the fault is 1 or 2, as the form is not canonical."""
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
def any_uuid(at: int, end: int) -> tuple[int, int, int, int]:
    """Read a UUID in any form as (next position, high, low, fault); see dashed_uuid."""
    if end - at >= UUID_CHARS:
        high, low, fault = dashed_uuid(at)
        if fault != 1:
            return at + UUID_CHARS, high, low, fault
    if (
        end - at >= _BRACED_CHARS
        and load_byte(at) == _OPEN
        and load_byte(at + _BRACED_CHARS - 1) == _CLOSE
    ):
        high, low, fault = dashed_uuid(at + 1)
        if fault != 1:
            return at + _BRACED_CHARS, high, low, 2
    if end - at >= _BARE_CHARS:
        high, low, fault = _bare_uuid(at)
        if fault != 1:
            return at + _BARE_CHARS, high, low, 2
    return at, np.uint64(0), np.uint64(0), 1


@inlined
def _eight_at(at: int, end: int) -> int:
    """Load eight bytes; bytes from `end` on are zeros.

    The load may reach back before `at`, but never before the row: a UUID precedes each number, so
    the row has at least eight bytes before `end`.
    """
    word = np.uint64(0)
    if at + 8 <= end:
        word = load_eight(at)
    elif at < end:
        word = load_eight(end - 8) >> np.uint64(8 * (at + 8 - end))
    return word


@inlined
def _number(at: int, end: int) -> tuple[int, int]:
    """Read one or more digits as (next position, value); the value is -1 if above GNO_MAX."""
    word = _eight_at(at, end)
    count = digit_count(word)
    if count < 8:
        behind, value = at + count, decimal_value(word, count)
    else:
        word_behind = _eight_at(at + 8, end)
        count = digit_count(word_behind)
        if count == 0:
            behind, value = at + 8, decimal_value(word, 8)
        elif count < 8:
            behind = at + 8 + count
            value = decimal_value(word, 8) * _TENS[count] + decimal_value(word_behind, count)
        else:
            behind, value = _long_number(at, end)
    return behind, value


@kernel
def _long_number(at: int, end: int) -> tuple[int, int]:
    """Read any number of digits in the same way."""
    value = np.int64(0)
    while at < end:
        digit = np.int64(load_byte(at)) - 48
        if digit < 0 or digit > 9:
            break
        at += 1
        if value < 0 or value > _ROUNDS_MAX:
            value = np.int64(-1)
        else:
            value = value * 10 + digit  # up to 2**63 + 1: a value from 2**63 on wraps below zero
    return at, value if 0 <= value <= GNO_MAX else np.int64(-1)


@kernel
def tag_words(at: int, end: int, words: Words) -> tuple[int, bool]:
    """Read a tag into its four words; return the next position and whether it has capitals."""
    for word in range(4):
        words[word] = np.uint64(0)
    begin = at
    capitals = False
    while at < end and KIND[load_byte(at)] & (DIGIT | LETTER) != 0:
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
def interval(at: int, end: int) -> tuple[int, int, int, int, bool]:
    """Read an interval as (next position, first, last, fault, is in canonical form).

    With a fault, the position is that of the fault.
    """
    place, fault = at, FINE
    exact = load_byte(at) != _ZERO
    at, first = _number(at, end)
    last = first
    if first < 1:
        at, fault = place, NO_START
    else:
        place = at
        at = behind_space(at, end)
        exact = exact and at == place
        if at < end and load_byte(at) == DASH:
            place = at + 1
            at = behind_space(place, end)
            exact = exact and at == place
            place = at
            if at == end or KIND[load_byte(at)] != DIGIT:
                fault = NO_NUMBER
            else:
                exact = exact and load_byte(at) != _ZERO
                at, last = _number(at, end)
                exact = exact and last > first
                if last < 0:
                    at, fault = place, NO_LAST
                else:
                    place = at
                    at = behind_space(at, end)
                    exact = exact and at == place
    return at, first, last, fault, exact

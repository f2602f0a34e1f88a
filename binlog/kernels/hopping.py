"""Over a whole transaction at once: how long it says it is, and what stands where it ends."""

from __future__ import annotations

from typing import Final

import numpy as np

from binlog.kernels.memory import byte_at, fetch_line, four_at
from binlog.kernels.roles import BETWEEN, FORMAT, HEAD, TAGGED_GTID, XID_EVENT, role_of
from gtid.jit import inlined, kernel
from gtid.kernels.words import load_byte, load_eight

_HEADER: Final = 19
_POSITION_MASK: Final = 0xFFFFFFFF
_MAY_HAVE_STATEMENTS: Final = 1
_XID_BYTES: Final = 8

# Transactions of about one length stand one behind the other. Of one so many ahead the lines are
# fetched in which a hop to it looks, and no others: an XID event before where it begins, and a GTID
# event behind. Without that, most of the time would go by in waiting for memory.
_FIRST_LINE, _LINE_STEP, _LINES = -31, 53, 3
_AHEAD, _SHORT = 16, 4096


@inlined
def hop_end_of(event: int, at: int, size: int, limit: int) -> tuple[int, bool]:
    """Return where the transaction ends by what its GTID event says, 0 if not before the limit.

    And whether its changes are logged as rows only: the flag is cleared then, since 8.0.2 as the
    length is there (FLAG_MAY_HAVE_SBR, libs/mysql/binlog/event/control_events.h).
    """
    body, end = event + _HEADER, event + size
    tagged = load_byte(event + 4) == TAGGED_GTID
    length, flags = _tagged_length(body, end) if tagged else _fixed_length(body, end)
    return at + length if 0 < length <= limit - at else 0, not flags & _MAY_HAVE_STATEMENTS


@kernel
def _fixed_length(at: int, end: int) -> tuple[int, int]:
    """Return the length in a GTID or anonymous event, 0 if it is not there; and its flags."""
    if end - at < 50 or load_byte(at + 25) != 2:
        return 0, 0
    flags = byte_at(at)
    at += 56 if load_byte(at + 48) & np.uint64(0x80) else 49
    if at >= end:
        return 0, 0
    first = byte_at(at)
    width = 2 if first == 252 else 3 if first == 253 else 8
    if first < 251:
        return first, flags
    if first in (251, 255) or at + 1 + width > end:
        return 0, 0
    return np.int64(load_eight(at + width - 7) >> np.uint64(64 - 8 * width)), flags


@kernel
def _tagged_length(at: int, end: int) -> tuple[int, int]:
    """Return fields 8 and 0 of a tagged event; 0 if not there: all between them is passed over."""
    field, flags = np.int64(-1), np.int64(0)
    for _ in range(3):  # version, size, last field that must be known
        at = _behind_varlen(at, end)
    while at < end and field < 8:
        field = byte_at(at) >> 1  # one byte holds the numbers of all fields
        at += 1
        behind = _behind_varlen(at, end)
        if field in (0, 8) and behind > end:
            break
        if field == 0:
            flags = _varlen(at)
        elif field == 8:
            return _varlen(at), flags
        elif field == 3 and at < end:
            behind += byte_at(at) >> 1  # the tag: at most 32 bytes
        elif field == 1:
            for _ in range(15):
                behind = _behind_varlen(behind, end)
        at = behind
    return 0, 0


@inlined
def _behind_varlen(at: int, end: int) -> int:
    """Pass over a number: its first byte has as many trailing ones as bytes follow."""
    return at + 1 + _ones_below(byte_at(at)) if at < end else end + 1


@inlined
def _ones_below(byte: int) -> int:
    count = 0
    while byte >> count & 1:
        count += 1
    return count


@inlined
def _varlen(at: int) -> int:
    """Return the value of a serialization integer that is there in whole."""
    more = _ones_below(byte_at(at))
    value = np.int64(0)
    for index in range(more):
        value |= byte_at(at + 1 + index) << (8 * index)
    return value if more == 8 else value << (7 - more) | byte_at(at) >> (more + 1)


@kernel
def lands(address: int, landing: int, limit: int, base: int, least: int) -> bool:
    """Return whether the bytes end there, or an event starts that may stand between groups.

    `base` is where the bytes begin in the file, or negative if end_log_pos is another file's.
    """
    if landing == limit:
        return True
    if limit - landing < _HEADER:
        return False
    event = address + landing
    size = four_at(event + 9)
    role = role_of(event)
    if size < least or size > limit - landing:
        return False
    if role not in (HEAD, BETWEEN, FORMAT):
        return False
    return base < 0 or four_at(event + 13) == (base + landing + size) & _POSITION_MASK


@inlined
def closes_before(address: int, at: int, landing: int, base: int, least: int) -> bool:
    """Return whether an XID event stands between `at` and where a hop lands, and ends there."""
    size = least + _XID_BYTES
    event = address + landing - size
    if landing - size < at or four_at(event + 9) != size or load_byte(event + 4) != XID_EVENT:
        return False
    return base < 0 or four_at(event + 13) == base + landing & _POSITION_MASK


@inlined
def fetch_ahead(event: int, length: int) -> None:
    """Ask for the head of a transaction some way ahead, if this one's length tells where it is."""
    if 0 < length < _SHORT:
        for line in range(_LINES):
            fetch_line(event + _AHEAD * length + _FIRST_LINE + _LINE_STEP * line)

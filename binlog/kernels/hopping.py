"""Skips a whole transaction in one step, with the length in its GTID event.

How it works
------------
Since 8.0.2 a GTID event contains the length of its transaction, counted from the event's own first
byte. A hop goes from there to the landing, the first byte after the transaction. The length alone
is not enough: in a relay log a file may end inside a transaction, and bytes may be damaged. So the
walk (walking.py) hops only if the bytes at the landing confirm the length:

* `lands`: the bytes end at the landing, or an event starts there that may stand between two
  transactions (HEAD, BETWEEN, FORMAT). Its size must fit and, in a source's binary log, its
  end_log_pos must match its position.
* `closes_before`, for a hop from the GTID event itself: an XID event ends exactly at the landing.

Where the length is, in the body of a GTID or anonymous event of 8.0.2 and later:

    offset   0      flags; bit 0 is FLAG_MAY_HAVE_SBR: the transaction may contain statements
    offset   1, 17  UUID (16 bytes) and GNO (8)
    offset  25      clock type, 2; then last_committed (8) and sequence_number (8)
    offset  42      commit time (7). If the top bit of its last byte (48) is set, the origin's
                    time (7) follows
    offset  49, 56  the length as a length-encoded integer: 1, 3, 4 or 9 bytes

A tagged event is a message of numbered fields. The length is field 8, so `_tagged_length` skips the
fields before it by their own lengths.

Example, with checksums: a GTID event of 79 bytes at 1,000 states a length of 420. The landing is
1,420. An XID event has 19 + 8 + 4 = 31 bytes, so one must start at 1,389, with end_log_pos 1,420.
The header at 1,420 must be that of a GTID event of, say, 79 bytes, with end_log_pos 1,499. Then the
transaction ends at 1,420, and BEGIN, TABLE_MAP and row events were never read.

Invariants: a landing is never above `limit`. Every read is within a whole event, or within the
bytes before `limit`: `_fixed_length` reads its number from the end backward for this reason.

On a long log the walk waits for memory more than it computes, because each hop reaches a cache line
that is not loaded. `fetch_ahead` assumes that the next transactions have about the same length, and
prefetches the lines around the start of the 16th one ahead. A wrong guess only costs the prefetch.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from binlog.header import HEADER_BYTES, POSITION_MASK
from binlog.kernels.addresses import byte_at, fetch_line, four_at
from binlog.kernels.roles import BETWEEN, FORMAT, HEAD, TAGGED_GTID, XID_EVENT, role_of
from gtid.jit import inlined, kernel
from gtid.kernels.eight_bytes import load_byte, load_eight

_MAY_HAVE_STATEMENTS: Final = 1
_XID_BYTES: Final = 8

# Adjacent transactions often have about the same length. For the one _AHEAD transactions later,
# only the cache lines that a hop to it reads are prefetched: the XID event before its start, and
# the GTID event after it. Without this, the walk would spend most of its time waiting for memory.
_FIRST_LINE, _LINE_STEP, _LINES = -31, 53, 3
_AHEAD, _SHORT = 16, 4096


@inlined
def hop_end_of(event: int, at: int, size: int, limit: int) -> tuple[int, bool]:
    """Return where the transaction ends according to its GTID event, and whether it is all rows.

    The end is 0 if it is unknown or above the limit. Since 8.0.2, a server clears the flag
    FLAG_MAY_HAVE_SBR if all changes are logged as rows (libs/mysql/binlog/event/control_events.h).
    """
    body, end = event + HEADER_BYTES, event + size
    tagged = load_byte(event + 4) == TAGGED_GTID
    length, flags = _tagged_length(body, end) if tagged else _fixed_length(body, end)
    return at + length if 0 < length <= limit - at else 0, not flags & _MAY_HAVE_STATEMENTS


@kernel
def _fixed_length(at: int, end: int) -> tuple[int, int]:
    """Return the length in a GTID or anonymous event, 0 if it has none, and its flags."""
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
    """Return fields 8 (length) and 0 (flags) of a tagged event; each is 0 if it is missing."""
    field, flags = np.int64(-1), np.int64(0)
    for _ in range(3):  # version, size, last field that must be known
        at = _behind_varlen(at, end)
    while at < end and field < 8:
        field = byte_at(at) >> 1  # every field number fits in one byte
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
    """Skip an integer: its first byte has as many trailing ones as there are further bytes."""
    return at + 1 + _ones_below(byte_at(at)) if at < end else end + 1


@inlined
def _ones_below(byte: int) -> int:
    count = 0
    while byte >> count & 1:
        count += 1
    return count


@inlined
def _varlen(at: int) -> int:
    """Return the value of a serialization integer; the caller has checked its length."""
    more = _ones_below(byte_at(at))
    value = np.int64(0)
    for index in range(more):
        value |= byte_at(at + 1 + index) << (8 * index)
    return value if more == 8 else value << (7 - more) | byte_at(at) >> (more + 1)


@kernel
def lands(address: int, landing: int, limit: int, base: int, least: int) -> bool:
    """Return whether the bytes end at `landing`, or an event between groups starts there.

    `base` is the position of the bytes in the file; negative if end_log_pos is another file's.
    """
    if landing == limit:
        return True
    if limit - landing < HEADER_BYTES:
        return False
    event = address + landing
    size = four_at(event + 9)
    role = role_of(event)
    if size < least or size > limit - landing:
        return False
    if role not in (HEAD, BETWEEN, FORMAT):
        return False
    return base < 0 or four_at(event + 13) == (base + landing + size) & POSITION_MASK


@inlined
def closes_before(address: int, at: int, landing: int, base: int, least: int) -> bool:
    """Return whether an XID event starts at or after `at` and ends at the landing."""
    size = least + _XID_BYTES
    event = address + landing - size
    if landing - size < at or four_at(event + 9) != size or load_byte(event + 4) != XID_EVENT:
        return False
    return base < 0 or four_at(event + 13) == base + landing & POSITION_MASK


@inlined
def fetch_ahead(event: int, length: int) -> None:
    """Prefetch the start of a later transaction, if this one is short enough to predict it."""
    if 0 < length < _SHORT:
        for line in range(_LINES):
            fetch_line(event + _AHEAD * length + _FIRST_LINE + _LINE_STEP * line)

"""Verifies the checksum of every event, and the chain of positions in end_log_pos.

1. The checksum is the CRC-32 of zlib over an event without its last four bytes (Log_event_footer,
   libs/mysql/binlog/event/binlog_event.h). The kernel processes sixteen bytes at a time with
   sixteen tables.
2. In a source's binary log, end_log_pos is the position after the event, modulo 2^32. In a relay
   log it is a position in another file.
3. If an event is wrong, the caller passes it to the decoder, which raises the appropriate error.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from binlog.event_types import EventType as Type
from binlog.header import EVENT_BYTES_MAX, HEADER_BYTES, POSITION_MASK
from binlog.kernels.roles import ANONYMOUS, GTID, TAGGED_GTID
from gtid.jit import inlined, kernel
from gtid.kernels.eight_bytes import load_byte, load_eight, load_four

# Why `sound_until` ended: no further whole event; a format description, which may change the rules
# for later events; an impossible length; a wrong checksum; a wrong position.
NO_MORE, DESCRIPTION, LENGTH, CHECKSUM, CHAIN = range(5)

_FORMAT_DESCRIPTION: Final = int(Type.FORMAT_DESCRIPTION)
_CHECKSUM_BYTES: Final = 4
_POLYNOMIAL: Final = 0xEDB88320
_AT_ONCE: Final = 16
_BYTE: Final = np.uint64(0xFF)
_START: Final = np.uint64(0xFFFFFFFF)


def _tables() -> np.ndarray[tuple[int, ...], np.dtype[np.uint32]]:
    """Make, for each of sixteen byte places, the effect of a byte there on the checksum."""
    found = np.zeros((_AT_ONCE, 256), np.uint32)
    rows = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        rows = (rows >> np.uint32(1)) ^ (rows & np.uint32(1)) * np.uint32(_POLYNOMIAL)
    found[0] = rows
    for place in range(1, _AT_ONCE):
        found[place] = (found[place - 1] >> np.uint32(8)) ^ rows[found[place - 1] & 0xFF]
    return found.astype(np.uint64).reshape(-1)


_TABLES = _tables()


@inlined
def _of(place: int, word: int) -> int:
    """Look up the lowest byte of a word."""
    return _TABLES[np.int64((place << 8) | np.int64(word & _BYTE))]


@kernel
def crc32(at: int, end: int) -> int:
    """Return the checksum of the bytes from `at` up to `end`."""
    crc = _START
    while end - at >= _AT_ONCE:
        low = load_eight(at) ^ crc
        high = load_eight(at + 8)
        crc = _of(15, low) ^ _of(7, high)
        for place in range(1, 8):
            shift = np.uint64(8 * place)
            crc ^= _of(15 - place, low >> shift) ^ _of(7 - place, high >> shift)
        at += _AT_ONCE
    while at < end:
        crc = _of(0, crc ^ load_byte(at)) ^ crc >> np.uint64(8)
        at += 1
    return np.int64(crc ^ _START)


@kernel
def sound_until(
    address: int, at: int, limit: int, position: int, trailer: int, is_chained: bool
) -> tuple[int, int]:
    """Verify the events from `at` on; return the offset at which it ended, and why."""
    while limit - at >= HEADER_BYTES:
        event = address + at
        size = np.int64(load_four(event + 9))
        if size < HEADER_BYTES + trailer or size > EVENT_BYTES_MAX:
            return at, LENGTH
        if size > limit - at:
            break
        if load_byte(event + 4) == _FORMAT_DESCRIPTION:
            return at, DESCRIPTION
        if trailer:
            covered = event + size - _CHECKSUM_BYTES
            if np.int64(load_four(covered)) != crc32(event, covered):
                return at, CHECKSUM
        if is_chained:
            end = (position + at + size) & POSITION_MASK
            if np.int64(load_four(event + 13)) != end:
                return at, CHAIN
        at += size
    return at, NO_MORE


@kernel
def find_head(address: int, at: int, until: int, limit: int, trailer: int) -> int:
    """Find an apparent GTID event, followed by an event, from `at` to `until`; -1 if none.

    The end_log_pos of both must match. `address` is that of the file's first byte.
    """
    until = min(until, limit - HEADER_BYTES)
    while at < until:
        type_code = load_byte(address + at + 4)
        if type_code in (GTID, ANONYMOUS, TAGGED_GTID):
            behind = _end_said(address, at, limit, trailer)
            if behind > at and _end_said(address, behind, limit, trailer) > behind:
                return at
        at += 1
    return -1


@inlined
def _end_said(address: int, at: int, limit: int, trailer: int) -> int:
    """Return where an event ends if its size and end_log_pos agree; 0 if not."""
    size = np.int64(0)
    if limit - at >= HEADER_BYTES:
        size = np.int64(load_four(address + at + 9))
    is_sound = HEADER_BYTES + trailer <= size <= limit - at
    if is_sound and np.int64(load_four(address + at + 13)) != (at + size) & POSITION_MASK:
        is_sound = False
    return at + size if is_sound else 0

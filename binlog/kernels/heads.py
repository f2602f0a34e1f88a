"""Reads the first event of each transaction of many rows: the compiled binlog.gtid_bodies.

1. `read_heads` receives the rows of a walk: each starts with a whole event in the walk's bytes.
2. It stops at a row whose body is malformed; the decoder then raises the appropriate error.
3. A log has few distinct UUIDs and tags. Each is looked up in a dictionary, or added, and the row
   contains its index.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlog.header import HEADER_BYTES
from binlog.kernels.roles import ANONYMOUS, GTID, TAGGED_GTID
from binlog.kernels.walking import SLOTS
from gtid import GNO_MAX, TAG_CHARS_MAX
from gtid.jit import inlined, kernel
from gtid.kernels.eight_bytes import (
    Numbers,
    Words,
    load_byte,
    load_eight,
    load_four,
    store_eight,
    store_four,
)

# The columns that the kernel writes. A missing value is one that no server writes.
GNO, ORIGINAL, IMMEDIATE, LAST, SEQUENCE = range(5)
UUID_INDEX, TAG_INDEX, VERSION = range(3)
ABSENT: Final = -(2**63)
NO_SHORT: Final = -1

# The fields of `counts`: the names in each dictionary, the index found last, and the number of rows
# in which each group of columns is missing.
NAMES, LAST_NAMES, WITHOUT_GTID, WITHOUT_TAG, WITHOUT_CLOCK, WITHOUT_TIMES, WITHOUT_VERSION = (
    0, 2, 4, 5, 6, 7, 8,
)  # fmt: skip
IS_CROWDED: Final = 9  # set if a dictionary was full
COUNTS_SIZE: Final = 10
UUIDS, TAGS = range(2)
NAME_WORDS: Final = 4

_UNKNOWN_VERSION: Final = 999_999
_LAST_FIELD: Final = 11
_FIELD_UUID, _FIELD_GNO, _FIELD_TAG = 1, 2, 3
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)


@kernel
def read_heads(
    heads_at: int,
    first: int,
    end: int,
    trailer: int,
    numbers: int,
    shorts: int,
    rows_max: int,
    counts: Numbers,
    keys: Words,
    slots: NDArray[np.int32],
) -> int:
    """Fill rows from `first` up to `end`; return the first row that was not filled.

    The walk has written the addresses of the rows' first events to `heads_at`. The result is `end`,
    or a row with a malformed event, or a row whose name did not fit: then counts[IS_CROWDED] is
    set.
    """
    names = np.zeros(2 * NAME_WORDS, np.uint64)
    fields = np.zeros(_LAST_FIELD + 1, np.int64)
    last = NO_SHORT  # the number of the UUID in names[0] and names[1]
    without_gtid = without_tag = without_clock = without_times = without_version = 0
    while first < end:
        event = np.int64(load_eight(heads_at + 8 * (first & SLOTS - 1)))
        at = event + HEADER_BYTES
        behind = event + np.int64(load_four(event + 9)) - trailer
        type_code = np.int64(load_byte(event + 4))
        cell, short = numbers + 8 * first, shorts + 4 * first
        uuid = tag = NO_SHORT
        if type_code == TAGGED_GTID:
            flaws = _read_tagged(at, behind, names, fields)
            if flaws >= 0:
                flaws = _write_fields(fields, cell, short, rows_max)
                uuid = index_of(UUIDS, names, counts, keys, slots)
                if names[NAME_WORDS]:
                    tag = index_of(TAGS, names, counts, keys, slots)
                counts[IS_CROWDED] = uuid < 0 or (names[NAME_WORDS] and tag < 0)
            last = NO_SHORT
        else:
            is_named = type_code == GTID
            flaws = _read_fixed(at, behind, is_named, type_code, cell, short, rows_max)
            if flaws >= 0 and is_named:
                high, low = load_eight(at + 1), load_eight(at + 9)
                if last < 0 or high != names[0] or low != names[1]:
                    names[0], names[1] = high, low
                    last = index_of(UUIDS, names, counts, keys, slots)
                    counts[IS_CROWDED] = last < 0
                uuid = last
        if flaws < 0 or counts[IS_CROWDED]:
            break
        store_four(short + 4 * UUID_INDEX * rows_max, uuid)
        store_four(short + 4 * TAG_INDEX * rows_max, tag)
        without_gtid += uuid < 0
        without_tag += tag < 0
        without_clock += flaws & 1
        without_times += flaws >> 1 & 1
        without_version += flaws >> 2
        first += 1
    counts[WITHOUT_GTID] += without_gtid
    counts[WITHOUT_TAG] += without_tag
    counts[WITHOUT_CLOCK] += without_clock
    counts[WITHOUT_TIMES] += without_times
    counts[WITHOUT_VERSION] += without_version
    return first


@kernel
def _write(
    cell: int,
    short: int,
    rows_max: int,
    gno: int,
    last: int,
    sequence: int,
    immediate: int,
    original: int,
    version: int,
) -> int:
    """Fill a row; return a bit mask of what is missing: clock, times, version.

    A commit time of 0 means that the origin did not log one; version 999999 means unknown.
    """
    immediate = immediate or ABSENT
    original = original or ABSENT
    version = NO_SHORT if version in (ABSENT, _UNKNOWN_VERSION) else version
    store_eight(cell + 8 * GNO * rows_max, gno)
    store_eight(cell + 8 * LAST * rows_max, last)
    store_eight(cell + 8 * SEQUENCE * rows_max, sequence)
    store_eight(cell + 8 * IMMEDIATE * rows_max, immediate)
    store_eight(cell + 8 * ORIGINAL * rows_max, original)
    store_four(short + 4 * VERSION * rows_max, version)
    without_clock = ABSENT in (last, sequence)
    without_times = ABSENT in (immediate, original)
    return 1 * without_clock + 2 * without_times + 4 * (version == NO_SHORT)


@inlined
def _seven(at: int) -> int:
    """Read seven bytes. The load includes the byte before them, which belongs to the event."""
    return np.int64(load_eight(at - 1) >> np.uint64(8))


@kernel
def _read_fixed(
    at: int, end: int, is_named: bool, type_code: int, cell: int, short: int, rows_max: int
) -> int:
    """Read a GTID (33) or anonymous (34) event; return the mask of _write, or -1 if malformed.

    Later server versions appended fields. In a row without such an event, all fields are missing.
    """
    gno = last = sequence = immediate = original = version = ABSENT
    if type_code not in (GTID, ANONYMOUS):
        return _write(cell, short, rows_max, gno, last, sequence, immediate, original, version)
    if end - at < 25:
        return -1
    if is_named:
        gno = np.int64(load_eight(at + 17))
        if not 1 <= gno <= GNO_MAX:
            return -1
    # 5.6 ends here.
    if end - at == 25 or load_byte(at + 25) != 2:
        return _write(cell, short, rows_max, gno, last, sequence, immediate, original, version)
    if end - at < 42:
        return -1
    last, sequence = np.int64(load_eight(at + 26)), np.int64(load_eight(at + 34))
    at += 42
    if end - at < 7:  # 5.7: no commit timestamps
        return _write(cell, short, rows_max, gno, last, sequence, immediate, original, version)
    immediate = original = _seven(at)
    at += 7
    if immediate >> 55:  # the highest bit is set: the origin's time differs and follows
        if end - at < 7:
            return -1
        immediate &= (1 << 55) - 1
        original = _seven(at)
        at += 7
    if at < end:  # 8.0.2: the length of the transaction, which the walk has already read
        first = load_byte(at)
        if first in (251, 255):
            return -1
        at += 1 if first < 251 else 3 if first == 252 else 4 if first == 253 else 9
        if at > end:
            return -1
    if end - at >= 4:  # 8.0.14
        version = np.int64(load_four(at))
        if version >> 31:
            if end - at < 8:
                return -1
            version = np.int64(load_four(at + 4))
    return _write(cell, short, rows_max, gno, last, sequence, immediate, original, version)


@kernel
def _read_tagged(at: int, end: int, names: Words, fields: Numbers) -> int:
    """Read one serialization message: fields with ascending numbers; return -1 if malformed."""
    body = at
    version, at = _varlen(at, end)
    size, at = _varlen(at, end)
    required, at = _varlen(at, end)
    if at == 0 or version != np.uint64(1) or size != np.uint64(end - body):
        return -1
    if required > np.uint64(_LAST_FIELD):
        return -1
    fields[:] = ABSENT
    names[NAME_WORDS] = np.uint64(0)
    previous = np.int64(-1)
    while at < end:
        coded, at = _varlen(at, end)
        if at == 0:
            return -1
        if coded > np.uint64(_LAST_FIELD):
            break  # a newer server wrote this field, and `required` allows to ignore it
        field = np.int64(coded)
        if field <= previous:
            return -1
        previous = field
        if field == _FIELD_UUID:
            at = _read_uuid(at, end, names)
            fields[_FIELD_UUID] = 1
        elif field == _FIELD_TAG:
            at = _read_tag(at, end, names)
        else:
            coded, at = _varlen(at, end)
            is_signed = field in (_FIELD_GNO, 4, 5)
            fields[field] = _signed(coded) if is_signed else np.int64(coded)
        if at == 0:
            return -1
    if fields[_FIELD_UUID] != 1 or not 1 <= fields[_FIELD_GNO] <= GNO_MAX:
        return -1
    return 0


@kernel
def _write_fields(fields: Numbers, cell: int, short: int, rows_max: int) -> int:
    """Fill a row with a message's fields. It contains the origin's values only if they differ."""
    immediate, version = fields[6], fields[9]
    return _write(
        cell,
        short,
        rows_max,
        fields[_FIELD_GNO],
        fields[4],
        fields[5],
        immediate,
        immediate if fields[7] == ABSENT else fields[7],
        version if fields[10] == ABSENT else fields[10],
    )


@inlined
def _signed(coded: int) -> int:
    """Decode a signed integer: the lowest bit is the sign, and negatives are complemented."""
    half = np.int64(coded >> np.uint64(1))
    return ~half if coded & np.uint64(1) else half


@kernel
def _varlen(at: int, end: int) -> tuple[int, int]:
    """Read a serialization integer as (value, next address); the address is 0 if incomplete."""
    if at == 0 or at >= end:
        return np.uint64(0), 0
    first = load_byte(at)
    more = np.int64(0)
    while more < 8 and (first >> np.uint64(more)) & np.uint64(1):
        more += 1
    if at + 1 + more > end:
        return np.uint64(0), 0
    value = np.uint64(0)
    for index in range(more):
        value |= load_byte(at + 1 + index) << np.uint64(8 * index)
    if more < 8:
        value = value << np.uint64(7 - more) | first >> np.uint64(more + 1)
    return value, at + 1 + more


@kernel
def _read_uuid(at: int, end: int, names: Words) -> int:
    """Read sixteen variable-length integers; return the next address, 0 if malformed."""
    names[0] = names[1] = np.uint64(0)
    for index in range(16):
        value, at = _varlen(at, end)
        if at == 0 or value > np.uint64(0xFF):
            return 0
        names[index // 8] |= value << np.uint64(8 * (index % 8))
    return at


@kernel
def _read_tag(at: int, end: int, names: Words) -> int:
    """Read a tag in lower case; return the next address, 0 if it is invalid (see gtid.tsid)."""
    size, at = _varlen(at, end)
    if at == 0 or size > np.uint64(TAG_CHARS_MAX) or np.int64(size) > end - at:
        return 0
    for word in range(NAME_WORDS):
        names[NAME_WORDS + word] = np.uint64(0)
    for index in range(np.int64(size)):
        byte = np.int64(load_byte(at + index))
        if 65 <= byte <= 90:
            byte += 32
        is_letter = 97 <= byte <= 122 or byte == 95
        if not is_letter and not (index and 48 <= byte <= 57):
            return 0
        names[NAME_WORDS + index // 8] |= np.uint64(byte) << np.uint64(8 * (index % 8))
    return at + np.int64(size)


@kernel
def index_of(
    which: int, names: Words, counts: Numbers, keys: Words, slots: NDArray[np.int32]
) -> int:
    """Return the index of a name in its dictionary, adding it if new; NO_SHORT if that is full.

    The number of slots is a power of two and above that of keys, so one is always empty.
    """
    name = NAME_WORDS * which
    mixed = names[name] ^ names[name + 1] * _MIX
    mixed ^= names[name + 2] * np.uint64(3) ^ names[name + 3] * np.uint64(5)
    slot = np.int64((mixed * _MIX) >> np.uint64(33)) & (slots.shape[1] - 1)
    while slots[which, slot] >= 0 and not _is(names, name, keys, which, slots[which, slot]):
        slot = (slot + 1) & (slots.shape[1] - 1)
    found = np.int64(slots[which, slot])
    if found < 0:
        found = counts[NAMES + which]
        if found == keys.shape[1]:
            return NO_SHORT
        for word in range(NAME_WORDS):
            keys[which, found, word] = names[name + word]
        slots[which, slot] = found
        counts[NAMES + which] += 1
    counts[LAST_NAMES + which] = found
    return found


@inlined
def _is(names: Words, name: int, keys: Words, which: int, index: int) -> bool:
    return (
        names[name] == keys[which, index, 0]
        and names[name + 1] == keys[which, index, 1]
        and names[name + 2] == keys[which, index, 2]
        and names[name + 3] == keys[which, index, 3]
    )

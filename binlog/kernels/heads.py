"""What the first event of each transaction says, for many rows: binlog.gtid_bodies, by address.

1. `read_heads` is given the rows of a walk: each starts with a whole event of that walk's bytes.
2. A body that is not sound ends it at that row; the decoder has the words for what is wrong.
3. UUIDs and tags are few: each is found in, or added to, a dictionary, and the row has its index.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gtid.jit import inlined, kernel
from gtid.kernels.words import Numbers, Words, load_byte, load_eight, load_four

# The columns it writes; what is absent has a value that no server writes.
GNO, ORIGINAL, IMMEDIATE, LAST, SEQUENCE = range(5)
UUID_INDEX, TAG_INDEX, VERSION = range(3)
ABSENT: Final = -(2**63)
NO_SHORT: Final = -1

# `counts`: names in each dictionary, the index last found, and how many rows lack what.
NAMES, LAST_NAMES, WITHOUT_GTID, WITHOUT_TAG, WITHOUT_CLOCK, WITHOUT_TIMES, WITHOUT_VERSION = (
    0, 2, 4, 5, 6, 7, 8,
)  # fmt: skip
IS_CROWDED: Final = 9  # set if there was no room for a name
COUNTS_SIZE: Final = 10
UUIDS, TAGS = range(2)
NAME_WORDS: Final = 4

_HEADER: Final = 19
_GTID, _ANONYMOUS, _TAGGED = 33, 34, 42
_GNO_MAX: Final = 2**63 - 2
_TAG_BYTES_MAX: Final = 32
_UNKNOWN_VERSION: Final = 999_999
_LAST_FIELD: Final = 11
_FIELD_UUID, _FIELD_GNO, _FIELD_TAG = 1, 2, 3
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)


@kernel
def read_heads(
    address: int,
    starts: Numbers,
    first: int,
    end: int,
    trailer: int,
    numbers: Numbers,
    shorts: NDArray[np.int32],
    counts: Numbers,
    keys: Words,
    slots: NDArray[np.int32],
) -> int:
    """Fill rows `first` up to `end`, which start at address + starts[row]; give where it ended.

    That is `end`, or a row whose head is not sound, or for whose name there was no room: then
    counts[IS_CROWDED] is set.
    """
    names = np.zeros(2 * NAME_WORDS, np.uint64)
    fields = np.zeros(_LAST_FIELD + 1, np.int64)
    for row in range(first, end):
        event = address + starts[row]
        type_code = np.int64(load_byte(event + 4))
        at = event + _HEADER
        behind = event + np.int64(load_four(event + 9)) - trailer
        for column in range(5):
            numbers[column, row] = ABSENT
        names[NAME_WORDS] = np.uint64(0)
        shorts[VERSION, row] = NO_SHORT
        if type_code == _TAGGED:
            is_sound = _read_tagged(at, behind, row, numbers, shorts, names, fields)
        elif type_code in (_GTID, _ANONYMOUS):
            is_sound = _read_fixed(at, behind, type_code == _GTID, row, numbers, shorts, names)
        else:
            is_sound = True
        if not is_sound:
            return row
        if not _identify(row, numbers, shorts, counts, names, keys, slots):
            counts[IS_CROWDED] = 1
            return row
        _count_absent(row, numbers, shorts, counts)
    return end


@inlined
def _count_absent(row: int, numbers: Numbers, shorts: NDArray[np.int32], counts: Numbers) -> None:
    """0 is a commit time that the origin did not tell, 999999 a version nobody knows."""
    if numbers[ORIGINAL, row] == 0:
        numbers[ORIGINAL, row] = ABSENT
    if numbers[IMMEDIATE, row] == 0:
        numbers[IMMEDIATE, row] = ABSENT
    if shorts[VERSION, row] == _UNKNOWN_VERSION:
        shorts[VERSION, row] = NO_SHORT
    counts[WITHOUT_TIMES] += numbers[ORIGINAL, row] == ABSENT or numbers[IMMEDIATE, row] == ABSENT
    counts[WITHOUT_CLOCK] += numbers[LAST, row] == ABSENT or numbers[SEQUENCE, row] == ABSENT
    counts[WITHOUT_VERSION] += shorts[VERSION, row] == NO_SHORT


@inlined
def _seven(at: int) -> int:
    """Read seven bytes. The one before them is read too, and is the event's own."""
    return np.int64(load_eight(at - 1) >> np.uint64(8))


@kernel
def _read_fixed(
    at: int,
    end: int,
    is_named: bool,
    row: int,
    numbers: Numbers,
    shorts: NDArray[np.int32],
    names: Words,
) -> bool:
    """Read GTID (33) and anonymous (34) events; each server generation appended fields."""
    if end - at < 25:
        return False
    if is_named:
        names[0], names[1] = load_eight(at + 1), load_eight(at + 9)
        numbers[GNO, row] = np.int64(load_eight(at + 17))
        if not 1 <= numbers[GNO, row] <= _GNO_MAX:
            return False
    if end - at == 25 or load_byte(at + 25) != 2:
        return True
    if end - at < 42:
        return False
    numbers[LAST, row] = np.int64(load_eight(at + 26))
    numbers[SEQUENCE, row] = np.int64(load_eight(at + 34))
    at += 42
    if end - at < 7:
        return True
    immediate = _seven(at)
    original = immediate
    at += 7
    if immediate >> 55:
        if end - at < 7:
            return False
        immediate &= (1 << 55) - 1
        original = _seven(at)
        at += 7
    numbers[IMMEDIATE, row], numbers[ORIGINAL, row] = immediate, original
    if at == end:
        return True
    length = np.int64(load_byte(at))  # the walk has used it
    if length in (251, 255):
        return False
    at += 1 if length < 251 else 3 if length == 252 else 4 if length == 253 else 9
    if at > end:
        return False
    if end - at < 4:
        return True
    version = np.int64(load_four(at))
    if version >> 31:
        if end - at < 8:
            return False
        version = np.int64(load_four(at + 4))
    shorts[VERSION, row] = version
    return True


@kernel
def _read_tagged(
    at: int,
    end: int,
    row: int,
    numbers: Numbers,
    shorts: NDArray[np.int32],
    names: Words,
    fields: Numbers,
) -> bool:
    """Read one serialization message: numbered fields in ascending order."""
    body = at
    version, at = _varlen(at, end)
    size, at = _varlen(at, end)
    required, at = _varlen(at, end)
    if at == 0 or version != np.uint64(1) or size != np.uint64(end - body):
        return False
    if required > np.uint64(_LAST_FIELD):
        return False
    fields[:] = ABSENT
    previous = np.int64(-1)
    while at < end:
        coded, at = _varlen(at, end)
        if at == 0:
            return False
        if coded > np.uint64(_LAST_FIELD):
            break  # written by a newer server, which says that it may be left unread
        field = np.int64(coded)
        if field <= previous:
            return False
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
            return False
    return _finish(row, fields, numbers, shorts)


@kernel
def _finish(row: int, fields: Numbers, numbers: Numbers, shorts: NDArray[np.int32]) -> bool:
    """Move a message's fields to their columns. The origin's are written where they differ."""
    if fields[_FIELD_UUID] != 1 or not 1 <= fields[_FIELD_GNO] <= _GNO_MAX:
        return False
    numbers[GNO, row] = fields[_FIELD_GNO]
    numbers[LAST, row], numbers[SEQUENCE, row] = fields[4], fields[5]
    numbers[IMMEDIATE, row] = fields[6]
    numbers[ORIGINAL, row] = fields[6] if fields[7] == ABSENT else fields[7]
    version = fields[9] if fields[10] == ABSENT else fields[10]
    if version != ABSENT:
        shorts[VERSION, row] = version
    return True


@inlined
def _signed(coded: int) -> int:
    """Take the lowest bit for the sign; negatives are complemented."""
    half = np.int64(coded >> np.uint64(1))
    return ~half if coded & np.uint64(1) else half


@kernel
def _varlen(at: int, end: int) -> tuple[int, int]:
    """Read a serialization integer as (value, place behind it); place 0 if there is not enough."""
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
    """Read sixteen variable-length integers; give the place behind them, 0 if not sound."""
    names[0] = names[1] = np.uint64(0)
    for index in range(16):
        value, at = _varlen(at, end)
        if at == 0 or value > np.uint64(0xFF):
            return 0
        names[index // 8] |= value << np.uint64(8 * (index % 8))
    return at


@kernel
def _read_tag(at: int, end: int, names: Words) -> int:
    """Read a tag, in lower case; give the place behind it, 0 if it is none (see gtid.tsid)."""
    size, at = _varlen(at, end)
    if at == 0 or size > np.uint64(_TAG_BYTES_MAX) or np.int64(size) > end - at:
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
def _identify(
    row: int,
    numbers: Numbers,
    shorts: NDArray[np.int32],
    counts: Numbers,
    names: Words,
    keys: Words,
    slots: NDArray[np.int32],
) -> bool:
    """Give the row the indices of its names; False if there is no room for one."""
    uuid, tag = NO_SHORT, NO_SHORT
    if numbers[GNO, row] != ABSENT:
        uuid = index_of(UUIDS, names, counts, keys, slots)
        if names[NAME_WORDS] != np.uint64(0):
            tag = index_of(TAGS, names, counts, keys, slots)
            if tag == NO_SHORT:
                return False
        if uuid == NO_SHORT:
            return False
    shorts[UUID_INDEX, row], shorts[TAG_INDEX, row] = uuid, tag
    counts[WITHOUT_GTID] += uuid == NO_SHORT
    counts[WITHOUT_TAG] += tag == NO_SHORT
    return True


@kernel
def index_of(
    which: int, names: Words, counts: Numbers, keys: Words, slots: NDArray[np.int32]
) -> int:
    """Find a name in its dictionary or add it; NO_SHORT if that is full.

    Slots are a power of two, and more than keys, so that one is always empty.
    """
    name = NAME_WORDS * which
    last = counts[LAST_NAMES + which]
    if last < counts[NAMES + which] and _is(names, name, keys, which, last):
        return last
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

"""Walks from event to event and finds those that may change what is known of a table.

1. These are all statements except BEGIN, COMMIT, ROLLBACK and those that only change rows, and each
   TABLE_MAP that differs from the last known one. All other events are skipped by their length.
2. The walk stops at each such event, because its result affects the events after it. While it
   skips, it records the last end of a group, and the first events of the current group.
3. If an event does not follow these rules, the walk stops with UNSURE: the decoder then raises the
   appropriate error. The walk reads only whole events before the limit.
4. No event is skipped on a guess: a TABLE_MAP is compared byte by byte.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlog.header import EVENT_BYTES_MAX, FLAG_IGNORABLE, HEADER_BYTES
from binlog.kernels import roles
from binlog.kernels.addresses import byte_at, four_at
from binlog.kernels.statements import (
    WORD_BEGIN,
    WORD_END,
    WORD_PLAIN,
    behind_word,
    text_of_statement,
    word_of_statement,
)
from gtid.jit import inlined, kernel
from gtid.kernels.eight_bytes import Bytes, Numbers, load_byte, load_eight

# The results of `next_defining`. All except NO_MORE: the caller must decode the event at state[AT].
NO_MORE, STATEMENT, TABLE_MAP, PAYLOAD, DESCRIPTION, UNSURE = range(6)

# The fields of `state`. AT: the current offset. TRAILER: bytes of checksum at an event's end.
# QUERY_POST: bytes of the fixed part of a statement's body. FIRST_AT, LAST_AT: offsets of the first
# and last event of the group that ended last. HEAD_AT, BEGIN_AT: offsets of the GTID and the BEGIN
# of the current group. An offset is NOWHERE if the event is not in this range. IS_OPEN: BEGIN was
# read. SLOT: the slot of the TABLE_MAP at which the walk stopped.
AT, TRAILER, QUERY_POST, FIRST_AT, LAST_AT, HEAD_AT, BEGIN_AT, IS_OPEN, SLOT = range(9)
STATE_SIZE: Final = 9
NOWHERE: Final = -1

# The known TABLE_MAPs, in a hash table: each slot has the start of one in `kept`, and its length. A
# slot contains only the last one.
SLOTS: Final = 1 << 14
KEPT_AT, KEPT_BYTES = range(2)
# The offset after the table id and the flags of the event (Table_map_event, rows_event.h).
MAP_AT: Final = 8
EMPTY_SLOT: Final = -(1 << 40)

_TYPE_AT: Final = 4

# The roles of events that never affect a table definition.
_PASSED = np.zeros(roles.REFUSED + 1, np.bool_)
_PASSED[[roles.PLAIN, roles.OPENING, roles.ROWS, roles.VIEW, roles.BETWEEN]] = True
_ENDS = np.zeros(roles.REFUSED + 1, np.bool_)
_ENDS[[roles.XID, roles.PREPARE, roles.LOST]] = True

# In a group, statements that begin with these words only change rows.
_INSERT = np.frombuffer(b"insert", np.uint8)
_UPDATE = np.frombuffer(b"update", np.uint8)
_DELETE = np.frombuffer(b"delete", np.uint8)
_REPLACE = np.frombuffer(b"replace", np.uint8)
_SAVEPOINT = np.frombuffer(b"savepoint", np.uint8)

_MIXER: Final = np.uint64(0x9E3779B97F4A7C15)
_HALF: Final = np.uint64(29)
_SPACE: Final = np.uint64(0x20)


@kernel
def next_defining(
    address: int, limit: int, state: Numbers, slots: NDArray[np.int64], kept: Bytes
) -> int:
    """Walk from state[AT], up to `limit` bytes, to the next event that the caller must decode."""
    at, least = state[AT], HEADER_BYTES + state[TRAILER]
    answer = NO_MORE
    while limit - at >= HEADER_BYTES:
        event = address + at
        size, role = four_at(event + 9), roles.role_of(event)
        if not least <= size <= EVENT_BYTES_MAX:
            answer = UNSURE
            break
        if size > limit - at:
            break
        if _PASSED[role]:
            at += size
            continue
        body, end = event + HEADER_BYTES, event + size - state[TRAILER]
        if role == roles.HEAD:
            state[HEAD_AT], state[BEGIN_AT], state[IS_OPEN] = at, NOWHERE, 0
        elif _ENDS[role]:
            _end_group(state, at)
        elif role == roles.QUERY:
            word = np.int64(WORD_PLAIN)
            is_load = byte_at(event + _TYPE_AT) == roles.LOAD_QUERY
            if not is_load:
                word = word_of_statement(body, end, state[QUERY_POST])
            if word == WORD_BEGIN:
                state[BEGIN_AT], state[IS_OPEN] = at, 1
            elif word == WORD_END:
                _end_group(state, at)
            elif (
                is_load
                or word != WORD_PLAIN
                or not state[IS_OPEN]
                or not _changes_rows(text_of_statement(body, end, state[QUERY_POST]), end)
            ):
                answer = STATEMENT
                break
        elif role == roles.MAP:
            slot = _slot(body + MAP_AT, end)
            if not _is_kept(body + MAP_AT, end, slots[slot], kept):
                state[SLOT] = slot
                answer = TABLE_MAP
                break
        elif role in (roles.PAYLOAD, roles.FORMAT):
            answer = PAYLOAD if role == roles.PAYLOAD else DESCRIPTION
            break
        elif role == roles.REFUSED or not byte_at(event + 17) & FLAG_IGNORABLE:
            answer = UNSURE
            break
        at += size
    state[AT] = at
    return answer


@inlined
def _end_group(state: Numbers, at: int) -> None:
    state[FIRST_AT] = state[BEGIN_AT] if state[HEAD_AT] == NOWHERE else state[HEAD_AT]
    state[LAST_AT] = at
    state[HEAD_AT] = state[BEGIN_AT] = NOWHERE
    state[IS_OPEN] = 0


@kernel
def _changes_rows(sql: int, end: int) -> bool:
    """Return whether a statement begins with a word of those that only change rows."""
    for word in (_INSERT, _UPDATE, _DELETE, _REPLACE, _SAVEPOINT):
        behind = behind_word(sql, end, word)
        if 0 < behind < end and load_byte(behind) == _SPACE:
            return True
    return False


@kernel
def _slot(at: int, end: int) -> int:
    """Return the slot of a TABLE_MAP: a hash of all its bytes except the table id and flags."""
    mixed = np.uint64(end - at)
    while end - at >= 8:
        mixed = (mixed ^ load_eight(at)) * _MIXER
        mixed ^= mixed >> _HALF
        at += 8
    while at < end:
        mixed = (mixed ^ load_byte(at)) * _MIXER
        at += 1
    mixed ^= mixed >> _HALF
    return np.int64(mixed & np.uint64(SLOTS - 1))


@kernel
def _is_kept(at: int, end: int, slot: NDArray[np.int64], kept: Bytes) -> bool:
    """Return whether a TABLE_MAP equals the one in its slot."""
    known, behind = slot[KEPT_AT], slot[KEPT_AT] + slot[KEPT_BYTES]
    while known < behind and at < end and load_byte(at) == kept[known]:
        at += 1
        known += 1
    return at == end and known == behind

"""From event to event, to those that may say something new of a table.

1. Statements may, but BEGIN, COMMIT, ROLLBACK and those that only change rows; and a TABLE_MAP may
   that says something else than the one before it of that table. All others are passed over by
   their length.
2. The walk stops at each event that may, for what comes of it decides about those behind it. Of
   what it passed over it remembers the last end of a group, and the head of the group it is in.
3. Where something is not as these rules have it the walk stops too, UNSURE: the decoder has the
   words for what is wrong. Nothing is read but whole events that lie before the limit.
4. That an event is passed over is never a guess: a TABLE_MAP is compared byte by byte.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlog.kernels import roles
from binlog.kernels.memory import byte_at, four_at
from binlog.kernels.statements import (
    WORD_BEGIN,
    WORD_END,
    WORD_PLAIN,
    behind_word,
    text_of_statement,
    word_of_statement,
)
from gtid.jit import inlined, kernel
from gtid.kernels.words import Bytes, Numbers, load_byte, load_eight

# What `next_defining` answers. All but NO_MORE: the event at state[AT] has to be looked at.
NO_MORE, STATEMENT, TABLE_MAP, PAYLOAD, DESCRIPTION, UNSURE = range(6)

# `state`. AT: where the walk is; TRAILER: bytes of checksum behind each event; QUERY_POST: of the
# fixed part of a statement's body. Where events start, NOWHERE if they do not here: the first and
# the last of the group that ended last, and the GTID and the BEGIN of the group the walk is in.
# IS_OPEN: BEGIN has been seen. SLOT: of the TABLE_MAP it stopped at.
AT, TRAILER, QUERY_POST, FIRST_AT, LAST_AT, HEAD_AT, BEGIN_AT, IS_OPEN, SLOT = range(9)
STATE_SIZE: Final = 9
NOWHERE: Final = -1

# What is known of TABLE_MAPs: where one starts in `kept`, and how long it is, for each of so many
# slots; a slot has the last one only.
SLOTS: Final = 1 << 14
KEPT_AT, KEPT_BYTES = range(2)
# Behind the table's number and the flags of its event (Table_map_event, rows_event.h).
MAP_AT: Final = 8
EMPTY_SLOT: Final = -(1 << 40)

_HEADER, _EVENT_BYTES_MAX = 19, 1 << 30
_TYPE_AT: Final = 4
_IGNORABLE: Final = 0x80

# Of these nothing is said of tables.
_PASSED = np.zeros(roles.REFUSED + 1, np.bool_)
_PASSED[[roles.PLAIN, roles.OPENING, roles.ROWS, roles.VIEW, roles.BETWEEN]] = True
_ENDS = np.zeros(roles.REFUSED + 1, np.bool_)
_ENDS[[roles.XID, roles.PREPARE, roles.LOST]] = True

# In a group they change rows, whatever comes behind them.
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
    """Go on from state[AT] over `limit` bytes, to the next event that has to be looked at."""
    at, least = state[AT], _HEADER + state[TRAILER]
    answer = NO_MORE
    while limit - at >= _HEADER:
        event = address + at
        size, role = four_at(event + 9), roles.role_of(event)
        if not least <= size <= _EVENT_BYTES_MAX:
            answer = UNSURE
            break
        if size > limit - at:
            break
        if _PASSED[role]:
            at += size
            continue
        body, end = event + _HEADER, event + size - state[TRAILER]
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
        elif role == roles.REFUSED or not byte_at(event + 17) & _IGNORABLE:
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
    """Return whether a statement begins with a word that changes rows and nothing else."""
    for word in (_INSERT, _UPDATE, _DELETE, _REPLACE, _SAVEPOINT):
        behind = behind_word(sql, end, word)
        if 0 < behind < end and load_byte(behind) == _SPACE:
            return True
    return False


@kernel
def _slot(at: int, end: int) -> int:
    """Return the slot of a TABLE_MAP, by all of its bytes but the table's number."""
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
    """Compare a TABLE_MAP with the one of its slot."""
    known, behind = slot[KEPT_AT], slot[KEPT_AT] + slot[KEPT_BYTES]
    while known < behind and at < end and load_byte(at) == kept[known]:
        at += 1
        known += 1
    return at == end and known == behind

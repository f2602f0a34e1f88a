"""From transaction to transaction: where they stand in a log and of what kind they are.

1. The rules of a group are those of binlog.transactions. Checksums are not looked at here, nor the
   bodies of what is passed over.
2. Where something is not as these rules have it the walk stops, UNSURE, and says where: the decoder
   then reads that group and has the words for what is wrong.
3. Nothing is read but whole events that lie before the limit: a length is compared with what is
   left, and a field with its event's end, before either is used.
4. From 8.0.2 a GTID event tells its transaction's length (Gtid_event::transaction_length). The walk
   hops to that end from the first row event, if an event that may stand between groups starts
   there (or the bytes end there), and goes on event by event otherwise: a relay log can hold the
   head of a group without its tail. So it cannot see the error of a statement behind a row event,
   in a transaction that mixes both; without HOPS it sees every statement.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gtid.jit import inlined, kernel
from gtid.kernels.words import Numbers, load_byte, load_eight, load_four

# What `walk` answers.
NO_MORE, DESCRIPTION, UNSURE, FULL = range(4)

# `state`: where the walk is and what it has to know; then the group it is in, and what it counted.
AT, ROW, ROWS_END, BASE, TRAILER, QUERY_POST, LOAD_POST, CHAINED, HOPS = range(9)
IS_OPEN, BEGUN, KIND, ERROR, HOP_END, PAYLOADS, INCOMPLETE = range(9, 16)
STATE_SIZE: Final = 16

# The columns it writes of `numbers` and of `shorts`.
START, END, BYTES, SERVER_ID, LOGGED_AT = range(5)
ROW_KIND, ROW_ERROR = range(2)

# Kinds: TransactionKind's, in its order, and a payload that somebody has yet to look into.
EMPTY, DDL, DML, XA, INCIDENT, OTHER, IN_PAYLOAD = range(7)

_HEADER: Final = 19
_EVENT_BYTES_MAX: Final = 1 << 30
_ARTIFICIAL: Final = 0x20
_IGNORABLE: Final = 0x80
_TAGGED_GTID: Final = 42
_LOAD_QUERY: Final = 18
_POSITION_MASK: Final = 0xFFFFFFFF
_MICROSECONDS: Final = 1_000_000

# What an event is to a group. From _FORMAT on: nothing of a group's.
_PLAIN, _OPENING, _HEAD, _QUERY, _MAP, _ROWS, _XID, _PREPARE = range(8)
_LOST, _PAYLOAD, _VIEW, _FORMAT, _BETWEEN, _STRANGE, _REFUSED = range(8, 15)
_ROLES = np.full(256, _STRANGE, np.uint8)
_ROLES[[1, *range(160, 172)]] = _REFUSED  # before 5.0; MariaDB's
_ROLES[[6, 8, 10, 11, 12, 28, 36]] = _PLAIN
_ROLES[[5, 9, 13, 14, 17, 29]] = _OPENING  # written before the statement they belong to
_ROLES[[33, 34, _TAGGED_GTID]] = _HEAD
_ROLES[[2, _LOAD_QUERY]] = _QUERY
_ROLES[[23, 24, 25, 30, 31, 32, 39]] = _ROWS
_ROLES[[19, 16, 38]] = _MAP, _XID, _PREPARE
_ROLES[[26, 40, 37, 15]] = _LOST, _PAYLOAD, _VIEW, _FORMAT
_ROLES[[3, 4, 27, 35, 41]] = _BETWEEN
# Without a GTID event a group opens with one of these.
_OPENS = np.zeros(15, np.bool_)
_OPENS[[_OPENING, _QUERY, _MAP, _LOST, _PAYLOAD]] = True

# First words of statements, as in binlog.transactions.
_WORD_BEGIN, _WORD_END, _WORD_XA_BEGIN, _WORD_XA_INNER, _WORD_XA_END, _WORD_PLAIN = range(6)
_BEGIN = np.frombuffer(b"begin", np.uint8)
_COMMIT = np.frombuffer(b"commit", np.uint8)
_ROLLBACK = np.frombuffer(b"rollback", np.uint8)
_XA_WORD = np.frombuffer(b"xa", np.uint8)
_XA_START = np.frombuffer(b"start", np.uint8)
_XA_END = np.frombuffer(b"end", np.uint8)


@kernel
def walk(
    address: int,
    limit: int,
    state: Numbers,
    numbers: Numbers,
    shorts: NDArray[np.int32],
    complete: NDArray[np.uint8],
    payloads: Numbers,
) -> int:
    """Go on from state[AT] over `limit` bytes; rows are written from state[ROW] to [ROWS_END].

    NO_MORE: the rest is no whole event; DESCRIPTION: one is at AT; UNSURE: see rule 2; FULL: no
    room for a further row. A row that is not closed yet is state[ROW], and IS_OPEN is set.
    """
    at = state[AT]
    least = _HEADER + state[TRAILER]
    while limit - at >= _HEADER:
        event = address + at
        size = _four(event + 9)
        if size < least or size > _EVENT_BYTES_MAX:
            return _stopped(state, at, UNSURE)
        if size > limit - at:
            break
        role = _ROLES[load_byte(event + 4)]
        flags = _byte(event + 17)
        if role >= _FORMAT:
            if role == _FORMAT:
                return _stopped(state, at, DESCRIPTION)
            if role == _REFUSED or (role == _STRANGE and not flags & _IGNORABLE):
                return _stopped(state, at, UNSURE)
        if role == _BETWEEN or flags & _ARTIFICIAL:
            at += size
            continue
        if role == _HEAD or not state[IS_OPEN]:
            if role == _HEAD and state[IS_OPEN]:
                close(state, numbers, shorts, complete, 0)
            if role == _HEAD or _OPENS[role]:
                if state[ROW] == state[ROWS_END]:
                    return _stopped(state, at, FULL)
                _open(event, at, state, numbers)
            if role == _HEAD:
                state[HOP_END] = _hop_end(event, at, size, limit, state)
                numbers[END, state[ROW]] = state[BASE] + at + size
            if role == _HEAD or not state[IS_OPEN]:
                at += size
                continue
        effect = _effect(event, size, role, state)
        if effect < 0:
            return _stopped(state, at, UNSURE)
        if role == _PAYLOAD:
            payloads[state[PAYLOADS], 0] = state[ROW]
            payloads[state[PAYLOADS], 1] = at
            state[PAYLOADS] += 1
        at += size
        if role == _ROWS and state[HOP_END] > at:
            if _lands(address, state[HOP_END], limit, state):
                at = state[HOP_END]
                effect = 1
            else:
                state[HOP_END] = 0
        numbers[END, state[ROW]] = state[BASE] + at
        if effect:
            close(state, numbers, shorts, complete, 1)
    return _stopped(state, at, NO_MORE)


@kernel
def close(
    state: Numbers,
    numbers: Numbers,
    shorts: NDArray[np.int32],
    complete: NDArray[np.uint8],
    is_complete: int,
) -> None:
    """Finish the row of the open group."""
    row = state[ROW]
    numbers[BYTES, row] = numbers[END, row] - numbers[START, row]
    shorts[ROW_KIND, row] = state[KIND]
    shorts[ROW_ERROR, row] = state[ERROR]
    complete[row] = is_complete
    state[INCOMPLETE] += 1 - is_complete
    state[ROW] += 1
    state[IS_OPEN] = 0


@inlined
def _byte(at: int) -> int:
    return np.int64(load_byte(at))


@inlined
def _four(at: int) -> int:
    return np.int64(load_four(at))


@inlined
def _stopped(state: Numbers, at: int, answer: int) -> int:
    state[AT] = at
    return answer


@inlined
def _open(event: int, at: int, state: Numbers, numbers: Numbers) -> None:
    """Begin a row with what its first event's header says."""
    row = state[ROW]
    numbers[START, row] = state[BASE] + at
    numbers[SERVER_ID, row] = _four(event + 5)
    numbers[LOGGED_AT, row] = _four(event) * _MICROSECONDS
    state[IS_OPEN] = 1
    state[BEGUN] = state[KIND] = state[ERROR] = state[HOP_END] = 0


@inlined
def _effect(event: int, size: int, role: int, state: Numbers) -> int:
    """Put an event into the group; 1 if it ends it, 0 if not, -1 if it is not sound."""
    if role == _ROWS:
        _note(state, DML)
        return 0
    if role == _QUERY:
        return _add_statement(event, size, state)
    if role == _XID:
        return 1
    if role == _PREPARE:
        _note(state, XA)
        return 1
    if role == _LOST:
        state[KIND] = INCIDENT
        return 1
    if role == _PAYLOAD:
        _note(state, IN_PAYLOAD)
        return 1
    if role == _VIEW:
        _note(state, OTHER)
    return 0


@inlined
def _note(state: Numbers, kind: int) -> None:
    """Give the group a kind; the first that is not EMPTY stays."""
    if state[KIND] == EMPTY:
        state[KIND] = kind


@kernel
def _add_statement(event: int, size: int, state: Numbers) -> int:
    """Put a statement into the group; the answer is _effect's."""
    post = state[LOAD_POST] if load_byte(event + 4) == _LOAD_QUERY else state[QUERY_POST]
    at, end = event + _HEADER, event + size - state[TRAILER]
    if end - at < post or post < 13:
        return -1
    sql = at + post + _byte(at + 8) + (_byte(at + 11) | _byte(at + 12) << 8) + 1
    if sql > end or load_byte(sql - 1) != 0:
        return -1
    if not state[ERROR]:
        state[ERROR] = _byte(at + 9) | _byte(at + 10) << 8
    word = _word(sql, end)
    if word == _WORD_BEGIN:
        state[BEGUN] = 1
        return 0
    if word == _WORD_END:
        return 1
    if word == _WORD_PLAIN:
        _note(state, DML if state[BEGUN] else DDL)
    else:
        _note(state, XA)
        if word == _WORD_XA_BEGIN:
            state[BEGUN] = 1
    return 1 if word == _WORD_XA_END or not state[BEGUN] else 0


@kernel
def _word(at: int, end: int) -> int:
    """Tell what a statement does to its group."""
    if _alone(at, end, _BEGIN):
        return _WORD_BEGIN
    if _alone(at, end, _COMMIT) or _alone(at, end, _ROLLBACK):
        return _WORD_END
    if not _spelled(at, end, _XA_WORD):
        return _WORD_PLAIN
    at += len(_XA_WORD)
    if at == end or not _is_space(_byte(at)):
        return _WORD_PLAIN
    while at < end and _is_space(_byte(at)):
        at += 1
    if _bounded(at, end, _XA_START) or _bounded(at, end, _BEGIN):
        return _WORD_XA_BEGIN
    if _bounded(at, end, _XA_END):
        return _WORD_XA_INNER
    if _bounded(at, end, _COMMIT) or _bounded(at, end, _ROLLBACK):
        return _WORD_XA_END
    return _WORD_PLAIN


@kernel
def _spelled(at: int, end: int, word: NDArray[np.uint8]) -> bool:
    """Tell whether the bytes begin with a word, in either case."""
    if end - at < len(word):
        return False
    for index in range(len(word)):  # noqa: SIM110 - a loop is what is compiled
        if load_byte(at + index) | np.uint64(0x20) != word[index]:
            return False
    return True


@kernel
def _alone(at: int, end: int, word: NDArray[np.uint8]) -> bool:
    """Tell whether a word is all there is, but for white space behind it."""
    if not _spelled(at, end, word):
        return False
    at += len(word)
    while at < end and _is_space(_byte(at)):
        at += 1
    return at == end


@kernel
def _bounded(at: int, end: int, word: NDArray[np.uint8]) -> bool:
    """Tell whether the bytes begin with a word that ends there."""
    if not _spelled(at, end, word):
        return False
    at += len(word)
    if at == end:
        return True
    byte = _byte(at)
    return not (48 <= byte <= 57 or byte == 95 or 65 <= byte <= 90 or 97 <= byte <= 122)


@inlined
def _is_space(byte: int) -> bool:
    return byte == 32 or 9 <= byte <= 13


@kernel
def _lands(address: int, landing: int, limit: int, state: Numbers) -> bool:
    """Tell whether the bytes end there, or an event starts that may stand between groups."""
    if landing == limit:
        return True
    if limit - landing < _HEADER:
        return False
    event = address + landing
    size = _four(event + 9)
    role = _ROLES[load_byte(event + 4)]
    if size < _HEADER + state[TRAILER] or size > limit - landing:
        return False
    if role not in (_HEAD, _BETWEEN, _FORMAT):
        return False
    position = (state[BASE] + landing + size) & _POSITION_MASK
    return not state[CHAINED] or _four(event + 13) == position


@inlined
def _hop_end(event: int, at: int, size: int, limit: int, state: Numbers) -> int:
    """Return where the transaction ends by what its GTID event says; 0 if not before the limit."""
    if not state[HOPS]:
        return 0
    body, end = event + _HEADER, event + size - state[TRAILER]
    tagged = load_byte(event + 4) == _TAGGED_GTID
    length = _tagged_length(body, end) if tagged else _fixed_length(body, end)
    return at + length if 0 < length <= limit - at else 0


@kernel
def _fixed_length(at: int, end: int) -> int:
    """Return the length in a GTID or anonymous event, 0 if it is not there; see binlog.heads."""
    at += 42
    if end - at < 8 or load_byte(at - 17) != 2:
        return 0
    at += 14 if load_byte(at + 6) & np.uint64(0x80) else 7
    if at >= end:
        return 0
    first = _byte(at)
    width = 0 if first < 251 else 2 if first == 252 else 3 if first == 253 else 8
    if first in (251, 255) or at + 1 + width > end:
        return 0
    if width == 0:
        return first
    return np.int64(load_eight(at + width - 7) >> np.uint64(64 - 8 * width))


@kernel
def _tagged_length(at: int, end: int) -> int:
    """Return field 8 of a tagged event, 0 if it is not there: all before it is passed over."""
    field = np.int64(-1)
    for _ in range(3):  # version, size, last field that must be known
        at = _behind_varlen(at, end)
    while at < end and field < 8:
        field = _byte(at) >> 1  # one byte holds the numbers of all fields
        at += 1
        if field == 8:
            behind = _behind_varlen(at, end)
            return _varlen(at) if behind <= end else 0
        if field == 3 and at < end:
            at = _behind_varlen(at, end) + (_byte(at) >> 1)  # the tag: at most 32 bytes
        else:
            for _ in range(16 if field == 1 else 1):
                at = _behind_varlen(at, end)
    return 0


@inlined
def _behind_varlen(at: int, end: int) -> int:
    """Pass over a serialization integer; the place is beyond `end` if there is not enough."""
    return at + 1 + _ones_below(_byte(at)) if at < end else end + 1


@inlined
def _ones_below(byte: int) -> int:
    """Count the trailing ones: so many bytes follow."""
    count = np.int64(0)
    while byte >> count & 1:
        count += 1
    return count


@inlined
def _varlen(at: int) -> int:
    """Return the value of a serialization integer that is there in whole."""
    more = _ones_below(_byte(at))
    value = np.int64(0)
    for index in range(more):
        value |= _byte(at + 1 + index) << (8 * index)
    return value if more == 8 else value << (7 - more) | _byte(at) >> (more + 1)

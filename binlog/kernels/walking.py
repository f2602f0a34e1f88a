"""From transaction to transaction: where they stand in a log and of what kind they are.

1. The rules of a group are those of binlog.transactions. Checksums are not looked at here, nor the
   bodies of what is passed over.
2. Where something is not as these rules have it the walk stops, UNSURE, and says where: the decoder
   then reads that group and has the words for what is wrong.
3. Nothing is read but whole events that lie before the limit: a length is compared with what is
   left, and a field with its event's end, before either is used.
4. From 8.0.2 a GTID event tells its transaction's length (Gtid_event::transaction_length). The walk
   hops there from the first TABLE_MAP, if an event that may stand between groups starts there (or
   the bytes end), and goes on event by event otherwise: a relay log can hold the head of a group
   alone. So it cannot see the error of a statement behind rows, nor that none follow a TABLE_MAP;
   without HOPS it sees every event.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from gtid.jit import inlined, kernel
from gtid.kernels.words import Numbers, load_byte, load_eight, load_four

# What `walk` answers.
NO_MORE, DESCRIPTION, UNSURE, FULL = range(4)

# `state`: where the walk is and what it has to know; then the group it is in, if IS_OPEN, whose end
# counts from the first byte here, as AT does; and how many payloads there were.
AT, ROW, ROWS_END, BASE, TRAILER, QUERY_POST, LOAD_POST, CHAINED, HOPS = range(9)
IS_OPEN, BEGUN, KIND, ERROR, HOP_END, GROUP_END, PAYLOADS = range(9, 16)
STATE_SIZE: Final = 16

# The columns it writes of `numbers` and of `shorts`, each with a place for every row of the batch.
START, END, BYTES, SERVER_ID, LOGGED_AT = range(5)
ROW_KIND, ROW_ERROR = range(2)

# Kinds: TransactionKind's, in its order, and a payload that somebody has yet to look into.
EMPTY, DDL, DML, XA, INCIDENT, OTHER, IN_PAYLOAD = range(7)

_HEADER, _EVENT_BYTES_MAX = 19, 1 << 30
_ARTIFICIAL, _IGNORABLE = 0x20, 0x80
_LOAD_QUERY, _TAGGED_GTID = 18, 42
_POSITION_MASK, _MICROSECONDS = 0xFFFFFFFF, 1_000_000

# Transactions of about one length stand one behind the other: these lines of one so many ahead are
# fetched. Without that, most of the time would go by in waiting for memory.
_LINES, _AHEAD, _SHORT = 4, 16, 4096

# What an event is to a group. From _FORMAT on it is not for the walk to pass over.
_PLAIN, _OPENING, _HEAD, _QUERY, _MAP, _ROWS, _XID, _PREPARE = range(8)
_LOST, _PAYLOAD, _VIEW, _BETWEEN, _FORMAT, _STRANGE, _REFUSED = range(8, 15)
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
# A group opens with its GTID event or, without GTIDs, with one of the others.
_OPENS, _CLOSES = np.zeros((2, 15), np.bool_)
_OPENS[[_HEAD, _OPENING, _QUERY, _MAP, _LOST, _PAYLOAD]] = True
_CLOSES[[_XID, _PREPARE, _LOST, _PAYLOAD]] = True
_KIND_OF_ROLE = np.full(15, EMPTY, np.int64)
_KIND_OF_ROLE[[_ROWS, _PREPARE, _LOST, _PAYLOAD, _VIEW]] = DML, XA, INCIDENT, IN_PAYLOAD, OTHER

# First words of statements, as in binlog.transactions.
_WORD_BEGIN, _WORD_END, _WORD_XA_BEGIN, _WORD_XA_INNER, _WORD_XA_END, _WORD_PLAIN = range(6)
# The kind by the word, outside BEGIN and inside.
_KIND_OF_WORD = np.array(
    [(EMPTY, EMPTY), (EMPTY, EMPTY), (XA, XA), (XA, XA), (XA, XA), (DDL, DML)], np.int64
)
_BEGI, _N = np.uint64(0x49474542), np.uint64(ord("N"))
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
    numbers: int,
    shorts: int,
    complete: int,
    payloads: int,
    rows_max: int,
) -> int:
    """Go on from state[AT] over `limit` bytes; rows are written from state[ROW] to [ROWS_END].

    NO_MORE: the rest is no whole event; DESCRIPTION: one is at AT; UNSURE: see rule 2; FULL: no
    room for a further row. The row of a group that is still open has its START only.
    """
    at, row, base, least = state[AT], state[ROW], state[BASE], _HEADER + state[TRAILER]
    is_open, begun, kind = state[IS_OPEN], state[BEGUN], state[KIND]
    error, hop_end, end = state[ERROR], state[HOP_END], state[GROUP_END]
    answer = NO_MORE
    while limit - at >= _HEADER:
        event = address + at
        size, role, flags = _four(event + 9), _ROLES[load_byte(event + 4)], _byte(event + 17)
        if not least <= size <= _EVENT_BYTES_MAX or size > limit - at:
            answer = NO_MORE if least <= size <= _EVENT_BYTES_MAX else UNSURE
            break
        if role >= _FORMAT and not (role == _STRANGE and flags & _IGNORABLE):
            answer = DESCRIPTION if role == _FORMAT else UNSURE
            break
        if role == _BETWEEN or flags & _ARTIFICIAL:
            at += size
            continue
        if role == _HEAD and is_open:
            _write_end(numbers, shorts, complete, rows_max, row, base + end, kind, error, 0)
            is_open, row = 0, row + 1
        if not is_open and _OPENS[role]:
            if row == state[ROWS_END]:
                answer = FULL
                break
            _write_start(event, base + at, numbers, rows_max, row)
            is_open, begun, kind, error, hop_end = 1, 0, EMPTY, 0, 0
        noted, closes = _KIND_OF_ROLE[role], _CLOSES[role]
        if role == _QUERY:
            post = state[LOAD_POST] if load_byte(event + 4) == _LOAD_QUERY else state[QUERY_POST]
            word = _statement(event + _HEADER, event + size - state[TRAILER], post)
            if word < 0:
                answer = UNSURE
                break
            error = error or _byte(event + _HEADER + 9) | _byte(event + _HEADER + 10) << 8
            begun |= word in (_WORD_BEGIN, _WORD_XA_BEGIN)
            noted = _KIND_OF_WORD[word, begun]
            closes = not begun or word in (_WORD_END, _WORD_XA_END)
        kind = noted if kind == EMPTY or role == _LOST else kind
        if role == _PAYLOAD and is_open:
            state[PAYLOADS] = _note_payload(payloads, state[PAYLOADS], row, at)
        if role == _HEAD and state[HOPS]:
            hop_end = _hop_end(event, at, size - state[TRAILER], limit)
            _fetch_ahead(event, hop_end - at)
        at += size
        if hop_end > at and role in (_MAP, _ROWS):
            closes = _lands(address, hop_end, limit, base if state[CHAINED] else -1, least)
            at, kind, hop_end = (hop_end, kind or DML, 0) if closes else (at, kind, 0)
        end = at
        if closes and is_open:
            _write_end(numbers, shorts, complete, rows_max, row, base + end, kind, error, 1)
            is_open, row = 0, row + 1
    state[AT], state[ROW], state[IS_OPEN], state[BEGUN] = at, row, is_open, begun
    state[KIND], state[ERROR], state[HOP_END], state[GROUP_END] = kind, error, hop_end, end
    return answer


def _storer(bits: int) -> Any:
    """Make the intrinsic that writes the lowest `bits` of a number at an address."""

    def store(_typing: Any, _address: Any, _value: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            kind = ir.IntType(bits)
            value = builder.trunc(arguments[1], kind) if bits < 64 else arguments[1]
            builder.store(value, builder.inttoptr(arguments[0], kind.as_pointer()), align=1)

        return types.void(types.int64, types.int64), generate

    return intrinsic(store)


_store_eight, _store_four, _store_byte = _storer(64), _storer(32), _storer(8)


@intrinsic
def _fetch(_typing: Any, _address: Any) -> Any:
    """Ask for the bytes at an address before they are needed; it may be any."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        place = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, word, word, word])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", (place.type,), kind)
        builder.call(prefetch, [place, word(0), word(3), word(1)])

    return types.void(types.int64), generate


@inlined
def _byte(at: int) -> int:
    return np.int64(load_byte(at))


@inlined
def _is_space(at: int) -> bool:
    return load_byte(at) == 32 or 9 <= load_byte(at) <= 13


@inlined
def _four(at: int) -> int:
    return np.int64(load_four(at))


@inlined
def _fetch_ahead(event: int, length: int) -> None:
    if 0 < length < _SHORT:
        for line in range(_LINES):
            _fetch(event + _AHEAD * length + 64 * line)


@inlined
def _note_payload(payloads: int, count: int, row: int, at: int) -> int:
    _store_eight(payloads + 16 * count, row)
    _store_eight(payloads + 16 * count + 8, at)
    return count + 1


@inlined
def _write_start(event: int, position: int, numbers: int, rows_max: int, row: int) -> None:
    """Begin a row with what its first event's header says."""
    _store_eight(numbers + 8 * (START * rows_max + row), position)
    _store_eight(numbers + 8 * (SERVER_ID * rows_max + row), _four(event + 5))
    _store_eight(numbers + 8 * (LOGGED_AT * rows_max + row), _four(event) * _MICROSECONDS)


@inlined
def _write_end(
    numbers: int,
    shorts: int,
    complete: int,
    rows_max: int,
    row: int,
    end: int,
    kind: int,
    error: int,
    is_complete: int,
) -> None:
    """Finish a row."""
    start = np.int64(load_eight(numbers + 8 * (START * rows_max + row)))
    _store_eight(numbers + 8 * (END * rows_max + row), end)
    _store_eight(numbers + 8 * (BYTES * rows_max + row), end - start)
    _store_four(shorts + 4 * (ROW_KIND * rows_max + row), kind)
    _store_four(shorts + 4 * (ROW_ERROR * rows_max + row), error)
    _store_byte(complete + row, is_complete)


@kernel
def _statement(at: int, end: int, post: int) -> int:
    """Tell what the statement of a QUERY's body does to its group; -1 if the body is not sound."""
    if end - at < post or post < 13:
        return -1
    sql = at + post + _byte(at + 8) + (_byte(at + 11) | _byte(at + 12) << 8) + 1
    if sql > end or load_byte(sql - 1) != 0:
        return -1
    return _word(sql, end)


@kernel
def _word(at: int, end: int) -> int:
    if end - at == 5 and load_four(at) == _BEGI and load_byte(at + 4) == _N:
        return _WORD_BEGIN  # as servers write it
    if _alone(at, end, _BEGIN):
        return _WORD_BEGIN
    if _alone(at, end, _COMMIT) or _alone(at, end, _ROLLBACK):
        return _WORD_END
    at = _behind(at, end, _XA_WORD)
    if at in (0, end) or not _is_space(at):
        return _WORD_PLAIN
    while at < end and _is_space(at):
        at += 1
    if _bounded(at, end, _XA_START) or _bounded(at, end, _BEGIN):
        return _WORD_XA_BEGIN
    if _bounded(at, end, _XA_END):
        return _WORD_XA_INNER
    if _bounded(at, end, _COMMIT) or _bounded(at, end, _ROLLBACK):
        return _WORD_XA_END
    return _WORD_PLAIN


@kernel
def _behind(at: int, end: int, word: NDArray[np.uint8]) -> int:
    """Give the place behind a word, in either case, that the bytes begin with; 0 if they do not."""
    if end - at < len(word):
        return 0
    for index in range(len(word)):
        if load_byte(at + index) | np.uint64(0x20) != word[index]:
            return 0
    return at + len(word)


@kernel
def _alone(at: int, end: int, word: NDArray[np.uint8]) -> bool:
    """Tell whether a word is all there is, but for white space behind it."""
    at = _behind(at, end, word)
    while 0 < at < end and _is_space(at):
        at += 1
    return at == end


@kernel
def _bounded(at: int, end: int, word: NDArray[np.uint8]) -> bool:
    """Tell whether the bytes begin with a word that ends there."""
    at = _behind(at, end, word)
    if at in (0, end):
        return at == end
    byte = _byte(at)
    return not (48 <= byte <= 57 or byte == 95 or 65 <= byte <= 90 or 97 <= byte <= 122)


@kernel
def _lands(address: int, landing: int, limit: int, base: int, least: int) -> bool:
    """Tell whether the bytes end there, or an event starts that may stand between groups.

    `base` is where the bytes begin in the file, or negative if end_log_pos is another file's.
    """
    if landing == limit:
        return True
    if limit - landing < _HEADER:
        return False
    event = address + landing
    size = _four(event + 9)
    role = _ROLES[load_byte(event + 4)]
    if size < least or size > limit - landing:
        return False
    if role not in (_HEAD, _BETWEEN, _FORMAT):
        return False
    return base < 0 or _four(event + 13) == (base + landing + size) & _POSITION_MASK


@kernel
def _hop_end(event: int, at: int, size: int, limit: int) -> int:
    """Return where the transaction ends by what its GTID event says; 0 if not before the limit."""
    body, end = event + _HEADER, event + size
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
    width = 2 if first == 252 else 3 if first == 253 else 8
    if first < 251:
        return first
    if first in (251, 255) or at + 1 + width > end:
        return 0
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
    """Pass over a number: its first byte has as many trailing ones as bytes follow."""
    return at + 1 + _ones_below(_byte(at)) if at < end else end + 1


@inlined
def _ones_below(byte: int) -> int:
    count = 0
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

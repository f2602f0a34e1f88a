"""From transaction to transaction: where they stand in a log and of what kind they are.

1. The rules of a group are those of binlog.transactions. Checksums are not looked at here, nor the
   bodies of what is passed over.
2. Where something is not as these rules have it the walk stops, UNSURE, and says where: the decoder
   then reads that group and has the words for what is wrong.
3. Nothing is read but whole events that lie before the limit: a length is compared with what is
   left, and a field with its event's end, before either is used.
4. From 8.0.2 a GTID event tells its transaction's length (Gtid_event::transaction_length), and
   whether it is all rows. If so, and if an XID event ends there, the walk hops over it at once, and
   otherwise from its first TABLE_MAP on; if an event that may stand between groups starts there (or
   the bytes end). Else it goes on event by event: a relay log can hold the head of a group alone.
   So it cannot see the error of a statement behind rows, nor that none follow; without HOPS it sees
   every event.
5. Where the bytes are a file's, mapped, a hop over many pages reads the few bytes it lands at from
   the FILE itself: that costs half of what it does to map a page that is looked at once. If they
   cannot be had that way, the mapped ones are looked at.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from binlog.kernels.hopping import closes_before, fetch_ahead, hop_end_of, lands
from binlog.kernels.memory import byte_at, four_at, read_file
from binlog.kernels.roles import (
    BETWEEN,
    CLOSES,
    FORMAT,
    HEAD,
    LOAD_QUERY,
    LOST,
    MAP,
    OPENS,
    PAYLOAD,
    PREPARE,
    QUERY,
    ROWS,
    STRANGE,
    VIEW,
    role_of,
)
from binlog.kernels.statements import (
    WORD_BEGIN,
    WORD_END,
    WORD_XA_BEGIN,
    WORD_XA_END,
    word_of_statement,
)
from gtid.jit import inlined, kernel
from gtid.kernels.words import (
    Numbers,
    load_byte,
    load_eight,
    store_byte,
    store_eight,
    store_four,
)

# What `walk` answers.
NO_MORE, DESCRIPTION, UNSURE, FULL = range(4)
NOTHING: Final = 4  # that it would not pass

# `state`: where the walk is and what it has to know; then the group it is in, if IS_OPEN, whose end
# counts from the first byte here, as AT does; and how many payloads there were.
AT, ROW, ROWS_END, BASE, TRAILER, QUERY_POST, LOAD_POST, CHAINED, HOPS = range(9)
IS_OPEN, BEGUN, KIND, ERROR, HOP_END, GROUP_END, PAYLOADS = range(9, 16)
# Where it writes the address of each new row's first event; the file's descriptor, or NO_FILE; and
# where it keeps what it reads from that. The last two are binlog.kernels.rows's own.
HEADS_AT, FILE, NEAR, HEADED, FETCHED = range(16, 21)
STATE_SIZE: Final = 21
NO_FILE: Final = -1

# One call makes so many rows at most. Each has a slot of its own for its address and for the bytes
# there, and so has the one behind them, where the last hop lands: slots are taken in turn.
WALK_ROWS: Final = 1024
SLOTS: Final = 2 * WALK_ROWS
NEAR_BYTES: Final = 320  # an XID event, a GTID event, BEGIN and the head of a TABLE_MAP
BEFORE_BYTES: Final = 32  # of these before the place
# A hop as long as this reads where it lands. All pages of shorter ones are mapped at once.
FAR_BYTES: Final = 12 << 10

# The columns it writes of `numbers` and of `shorts`, each with a place for every row of the batch.
START, END, BYTES, SERVER_ID, LOGGED_AT = range(5)
ROW_KIND, ROW_ERROR = range(2)

# Kinds: TransactionKind's, in its order, and a payload that the decoder has yet to open.
EMPTY, DDL, DML, XA, INCIDENT, OTHER, IN_PAYLOAD = range(7)

_HEADER, _EVENT_BYTES_MAX = 19, 1 << 30
_ARTIFICIAL, _IGNORABLE = 0x20, 0x80
_MICROSECONDS: Final = 1_000_000

# The kind of a group by the role of an event in it.
_KIND_OF_ROLE = np.full(15, EMPTY, np.int64)
_KIND_OF_ROLE[[ROWS, PREPARE, LOST, PAYLOAD, VIEW]] = DML, XA, INCIDENT, IN_PAYLOAD, OTHER
# By its statement's first word, outside BEGIN and inside.
_KIND_OF_WORD = np.array(
    [(EMPTY, EMPTY), (EMPTY, EMPTY), (XA, XA), (XA, XA), (XA, XA), (DDL, DML)], np.int64
)


@kernel
def walk(
    address: int,
    limit: int,
    state: Numbers,
    walked: tuple[int, int, int, int],
    rows_max: int,
) -> int:
    """Go on from state[AT] over `limit` bytes; rows are written from state[ROW] to [ROWS_END].

    `walked` are the addresses of numbers, shorts, flags of completeness, and payloads. The answer:
    NO_MORE: the rest is no whole event; DESCRIPTION: one is at AT; UNSURE: see rule 2; FULL: no
    room for a further row. The row of a group that is still open has its START only.
    """
    at, row, base, least = state[AT], state[ROW], state[BASE], _HEADER + state[TRAILER]
    is_open, begun, kind = state[IS_OPEN], state[BEGUN], state[KIND]
    error, hop_end, end = state[ERROR], state[HOP_END], state[GROUP_END]
    numbers, shorts, complete, payloads = walked
    answer, mapped, end_of_all = NOTHING, address, limit
    while end_of_all - at >= _HEADER:
        if limit - at < _HEADER:
            address, limit = mapped, end_of_all
        event = address + at
        size, role, flags = four_at(event + 9), role_of(event), byte_at(event + 17)
        answer = _obstacle(size, role, flags, least, end_of_all - at)
        if answer != NOTHING:
            break
        if size > limit - at and role != MAP:
            address, limit, event = mapped, end_of_all, mapped + at
        if role == BETWEEN or flags & _ARTIFICIAL:
            at += size
            continue
        if role == HEAD and is_open:
            _write_end(numbers, shorts, complete, rows_max, row, base + end, kind, error, 0)
            is_open, row = 0, row + 1
        if not is_open and OPENS[role]:
            if row == state[ROWS_END]:
                answer = FULL
                break
            _write_start(state, event, base + at, numbers, rows_max, row)
            is_open, begun, kind, error, hop_end = 1, 0, EMPTY, 0, 0
        noted, closes = _KIND_OF_ROLE[role], CLOSES[role]
        if role == QUERY:
            post = state[LOAD_POST] if load_byte(event + 4) == LOAD_QUERY else state[QUERY_POST]
            word = word_of_statement(event + _HEADER, event + size - state[TRAILER], post)
            if word < 0:
                answer = UNSURE
                break
            error = error or byte_at(event + _HEADER + 9) | byte_at(event + _HEADER + 10) << 8
            begun |= word in (WORD_BEGIN, WORD_XA_BEGIN)
            noted = _KIND_OF_WORD[word, begun]
            closes = not begun or word in (WORD_END, WORD_XA_END)
        kind = noted if kind == EMPTY or role == LOST else kind
        if role == PAYLOAD and is_open:
            state[PAYLOADS] = _note_payload(payloads, state[PAYLOADS], row, at)
        is_plain = False
        if role == HEAD and state[HOPS]:
            hop_end, is_plain = hop_end_of(event, at, size - state[TRAILER], end_of_all)
            fetch_ahead(event, hop_end - at)
        at += size
        if hop_end > at and (is_plain or role in (MAP, ROWS)):
            closes, address, limit = _hop(state, role, row, at, hop_end, mapped, end_of_all)
            at, kind = (hop_end, kind or DML) if closes else (at, kind)
            hop_end = hop_end if role == HEAD and not closes else 0
        end = at
        if closes and is_open:
            _write_end(numbers, shorts, complete, rows_max, row, base + end, kind, error, 1)
            is_open, row = 0, row + 1
    state[AT], state[ROW], state[IS_OPEN], state[BEGUN] = at, row, is_open, begun
    state[KIND], state[ERROR], state[HOP_END], state[GROUP_END] = kind, error, hop_end, end
    return NO_MORE if answer == NOTHING else answer


@inlined
def _obstacle(size: int, role: int, flags: int, least: int, left: int) -> int:
    """Return why the walk cannot pass an event; NOTHING if it can."""
    if not least <= size <= _EVENT_BYTES_MAX:
        return UNSURE
    if size > left:
        return NO_MORE
    if role == FORMAT:
        return DESCRIPTION
    is_strange = role > FORMAT and not (role == STRANGE and flags & _IGNORABLE)
    return UNSURE if is_strange else NOTHING


@inlined
def _hop(
    state: Numbers, role: int, row: int, at: int, landing: int, mapped: int, end: int
) -> tuple[bool, int, int]:
    """Return whether a hop closes its row, which memory to look at then, and where that ends."""
    address, limit = mapped, end
    if landing - at >= FAR_BYTES and state[FILE] != NO_FILE:
        address, limit = _look_from_afar(state, row + 1, landing, mapped, end)
    base, least = state[BASE] if state[CHAINED] else -1, _HEADER + state[TRAILER]
    closes = lands(address, landing, end, base, least)
    if role == HEAD:
        closes = closes and closes_before(address, at, landing, base, least)
    return (True, address, limit) if closes else (False, mapped, end)


@inlined
def _look_from_afar(
    state: Numbers, row: int, landing: int, mapped: int, end: int
) -> tuple[int, int]:
    """Read what stands about a place from the file; give the memory to look at, and its end."""
    at = landing - BEFORE_BYTES
    some = min(NEAR_BYTES, end - at)
    near = state[NEAR] + NEAR_BYTES * (row & SLOTS - 1)
    is_there = read_file(state[FILE], state[BASE] + at, near, some)
    return (near - at, at + some) if is_there else (mapped, end)


@inlined
def _note_payload(payloads: int, count: int, row: int, at: int) -> int:
    store_eight(payloads + 16 * count, row)
    store_eight(payloads + 16 * count + 8, at)
    return count + 1


@inlined
def _write_start(
    state: Numbers, event: int, position: int, numbers: int, rows_max: int, row: int
) -> None:
    """Begin a row with what its first event's header says, and note where that is."""
    store_eight(state[HEADS_AT] + 8 * (row & SLOTS - 1), event)
    store_eight(numbers + 8 * (START * rows_max + row), position)
    store_eight(numbers + 8 * (SERVER_ID * rows_max + row), four_at(event + 5))
    store_eight(numbers + 8 * (LOGGED_AT * rows_max + row), four_at(event) * _MICROSECONDS)


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
    store_eight(numbers + 8 * (END * rows_max + row), end)
    store_eight(numbers + 8 * (BYTES * rows_max + row), end - start)
    store_four(shorts + 4 * (ROW_KIND * rows_max + row), kind)
    store_four(shorts + 4 * (ROW_ERROR * rows_max + row), error)
    store_byte(complete + row, is_complete)

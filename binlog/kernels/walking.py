"""Walks from transaction to transaction: finds the position and the kind of each.

How it works
------------
The walk reads the headers of events in order and combines events into groups, one row for each
transaction, with the rules of binlog.transactions. It reads neither checksums nor the bodies of the
events that it passes, except the first words of statements. For each event (`role_of`):

* BETWEEN (ROTATE, STOP, heartbeats …) and artificial events belong to no group: pass.
* HEAD (a GTID event) while a group is open: the old group was cut off. Its row gets complete = 0.
* An event that may open a group, while none is open: write START, server_id and time of a new row.
* QUERY: the first words decide whether the statement begins the group (BEGIN, XA START), ends it,
  or is the whole group (DDL).
* XID, XA PREPARE, an incident, a payload, or a closing statement ends the group: write END, BYTES,
  kind and error, complete = 1.

Example of a log (offset, event, effect):

    194  GTID          opens row 0: START 194
    273  QUERY BEGIN   begun = 1
    348  TABLE_MAP
    396  WRITE_ROWS    kind = DML
    440  XID           closes row 0: END 471, BYTES 277, complete = 1
    471  GTID          opens row 1 …

`state` contains all of this between two calls: the offset AT, the current ROW, and the open group.
So a walk can stop at any event and continue in the same bytes.

Hops. Since 8.0.2 a GTID event contains its transaction's length (Gtid_event::transaction_length),
and whether all changes are rows. If all are rows, and an XID event ends at that length, the walk
hops over the whole transaction (in the example from 194 to 471). Otherwise it hops from the first
TABLE_MAP or row event on. It hops only if the landing confirms the length (hopping.py). If not, it
continues event by event: a relay log may end inside a group. A hop does not see the error code of a
statement after the rows, nor that no row event follows. Without HOPS the walk reads every event.

If the bytes are those of a mapped file, a hop of FAR_BYTES or more reads the few bytes around the
landing from the FILE with pread. This takes half the time of mapping a page that is read once. If
the read fails, the walk uses the mapped bytes.

Invariants: the walk reads only whole events before the limit. It compares a length with the
remaining bytes, and a field with the end of its event, before it uses either. If an event does not
follow the rules, the walk stops there with UNSURE. The decoder then reads that group, and returns
its row or raises the appropriate error. So the walk never guesses.

Simpler ways fail. Decoding every event in Python creates objects for each event. Trusting the
length alone is wrong for relay logs and damaged files. Searching for GTID events by their bytes
finds them in row data, too.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from binlog.header import EVENT_BYTES_MAX, FLAG_ARTIFICIAL, FLAG_IGNORABLE, HEADER_BYTES
from binlog.kernels.addresses import byte_at, four_at, read_file
from binlog.kernels.hopping import closes_before, fetch_ahead, hop_end_of, lands
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
from gtid.kernels.eight_bytes import (
    Numbers,
    load_byte,
    load_eight,
    store_byte,
    store_eight,
    store_four,
)

# The results of `walk`.
NO_MORE, DESCRIPTION, UNSURE, FULL = range(4)
NOTHING: Final = 4  # no obstacle: the walk can pass the event

# The fields of `state`. First the current offset and the settings; then the open group, if IS_OPEN;
# then the number of payloads. GROUP_END and AT count from the first byte of these bytes.
AT, ROW, ROWS_END, BASE, TRAILER, QUERY_POST, LOAD_POST, CHAINED, HOPS = range(9)
IS_OPEN, BEGUN, KIND, ERROR, HOP_END, GROUP_END, PAYLOADS = range(9, 16)
# HEADS_AT: where the walk writes the address of each new row's first event. FILE: the descriptor of
# the file, or NO_FILE. NEAR: the buffer for bytes read from it. filling.py uses the last two,
# HEADED and FETCHED.
HEADS_AT, FILE, NEAR, HEADED, FETCHED = range(16, 21)
STATE_SIZE: Final = 21
NO_FILE: Final = -1

# One call fills at most WALK_ROWS rows. Each row has its own slot for an address and for bytes read
# from the file, and so has the next row, where the last hop lands. Slots are used in rotation.
WALK_ROWS: Final = 1024
SLOTS: Final = 2 * WALK_ROWS
NEAR_BYTES: Final = 320  # an XID event, a GTID event, BEGIN and the header of a TABLE_MAP
BEFORE_BYTES: Final = 32  # how many of these precede the landing
# A hop of at least this length reads the landing from the file. For shorter ones, all pages are
# mapped.
FAR_BYTES: Final = 12 << 10

# The columns in `numbers` and in `shorts`; each has a value for every row of the batch.
START, END, BYTES, SERVER_ID, LOGGED_AT = range(5)
ROW_KIND, ROW_ERROR = range(2)

# The kinds of TransactionKind, in its order, and a payload that is not decompressed yet.
EMPTY, DDL, DML, XA, INCIDENT, OTHER, IN_PAYLOAD = range(7)

_MICROSECONDS: Final = 1_000_000
_ERROR_AT: Final = HEADER_BYTES + 9  # in a QUERY event: its error code, two bytes

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
    """Walk from state[AT] up to `limit` bytes; write rows from state[ROW] up to state[ROWS_END].

    `walked` has the addresses of numbers, shorts, flags of completeness, and payloads. Results:
    NO_MORE: the rest is not a whole event; DESCRIPTION: a format description is at AT; UNSURE: the
    decoder must read on; FULL: no space for another row. An open group's row has only its START.
    """
    at, row, base, least = state[AT], state[ROW], state[BASE], HEADER_BYTES + state[TRAILER]
    is_open, begun, kind = state[IS_OPEN], state[BEGUN], state[KIND]
    error, hop_end, end = state[ERROR], state[HOP_END], state[GROUP_END]
    numbers, shorts, complete, payloads = walked
    answer, mapped, end_of_all = NOTHING, address, limit
    while end_of_all - at >= HEADER_BYTES:
        if limit - at < HEADER_BYTES:
            address, limit = mapped, end_of_all
        event = address + at
        size, role, flags = four_at(event + 9), role_of(event), byte_at(event + 17)
        answer = _obstacle(size, role, flags, least, end_of_all - at)
        if answer != NOTHING:
            break
        if size > limit - at and role != MAP:
            address, limit, event = mapped, end_of_all, mapped + at
        if role == BETWEEN or flags & FLAG_ARTIFICIAL:
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
            word = word_of_statement(event + HEADER_BYTES, event + size - state[TRAILER], post)
            if word < 0:
                answer = UNSURE
                break
            error = error or byte_at(event + _ERROR_AT) | byte_at(event + _ERROR_AT + 1) << 8
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
    if not least <= size <= EVENT_BYTES_MAX:
        return UNSURE
    if size > left:
        return NO_MORE
    if role == FORMAT:
        return DESCRIPTION
    is_strange = role > FORMAT and not (role == STRANGE and flags & FLAG_IGNORABLE)
    return UNSURE if is_strange else NOTHING


@inlined
def _hop(
    state: Numbers, role: int, row: int, at: int, landing: int, mapped: int, end: int
) -> tuple[bool, int, int]:
    """Return whether a hop closes its row, the address of the memory to read next, and its end."""
    address, limit = mapped, end
    if landing - at >= FAR_BYTES and state[FILE] != NO_FILE:
        address, limit = _look_from_afar(state, row + 1, landing, mapped, end)
    base, least = state[BASE] if state[CHAINED] else -1, HEADER_BYTES + state[TRAILER]
    closes = lands(address, landing, end, base, least)
    if role == HEAD:
        closes = closes and closes_before(address, at, landing, base, least)
    return (True, address, limit) if closes else (False, mapped, end)


@inlined
def _look_from_afar(
    state: Numbers, row: int, landing: int, mapped: int, end: int
) -> tuple[int, int]:
    """Read the bytes around a landing from the file; return the memory to read, and its end."""
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
    """Begin a row with the header of its first event, and record the address of that event."""
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

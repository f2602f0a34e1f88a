"""Computes the digests of many transactions: the compiled form of binlog/content/content_digest.py.

1. A transaction is a range of bytes from its first event to the end of its last, in a file or in a
   decompressed payload. The result is its digest, or why the decoder must read the transaction:
   PAYLOAD (it is compressed), ASK (a rare event, or an error: binlog/content/content_digest.py has
   the rules and the messages).
2. The kernel reads only events that are wholly in the range, and never past the end of an event.
   Every length is compared with the remaining bytes before it is used.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from binlog.event_types import GTID_EVENTS, ROWS_DELETED, ROWS_UPDATED, ROWS_WRITTEN
from binlog.event_types import EventType as Type
from binlog.header import HEADER_BYTES
from binlog.kernels import row_ends as images
from binlog.kernels.row_ends import (
    COLUMNS_MAX,
    TABLES_MAX,
    announce,
    begin_transaction,
    behind_row,
    column_metadata,
    open_rows,
)
from binlog.kernels.statements import text_of_statement
from gtid.jit import kernel
from gtid.kernels.eight_bytes import Bytes, Numbers, Words, load_byte, load_eight, load_four
from gtid.kernels.hash_bytes import SEED, finish, integer, mix, mix_bytes

# The results for a transaction.
DIGEST, PAYLOAD, ASK = range(3)

# The constants of binlog/content/content_digest.py; a test compares the two. (Imported constants
# would be compiled into the cached machine code, and remain there after a change.)
_STATEMENT, _CONTEXT, _ROWS = np.uint64(1), 2, np.uint64(16)
_NOTHING: Final = np.uint64((1 << 64) - 1)
_DECISIVE_FLAGS: Final = 1 << 14 | 1 << 26 | 1 << 27
_AUTO_INCREMENT_DEFAULT: Final = 1 | 1 << 16
_ZERO, _ONE = np.uint64(0), np.uint64(1)

# The role of each event type.
_SKIP, _QUERY, _TABLE, _WRITE, _UPDATE, _DELETE, _VARIABLE, _PACKED, _RARE = range(9)
_ROLES = np.full(256, _RARE, np.uint8)
_ROLES[[*GTID_EVENTS, Type.XID, Type.XA_PREPARE, Type.ROWS_QUERY]] = _SKIP
_ROLES[[Type.IGNORABLE, Type.TRANSACTION_CONTEXT]] = _SKIP
_ROLES[[Type.QUERY, Type.TABLE_MAP, Type.TRANSACTION_PAYLOAD]] = _QUERY, _TABLE, _PACKED
_ROLES[list(ROWS_WRITTEN)], _ROLES[list(ROWS_UPDATED)] = _WRITE, _UPDATE
_ROLES[list(ROWS_DELETED)] = _DELETE
_ROLES[[Type.INTVAR, Type.RAND, Type.USER_VAR]] = _VARIABLE

# The fields of `work`: the state of the digest, and the current run of rows.
_STATE, _IN_RUN, _RUN_KIND, _RUN_FORM, _RUN_SUM, _RUN_COUNT = range(6)
_WORK_SIZE: Final = 6

# The sizes of a statement's status variables (statement_events.h). -1: a length byte and as many
# bytes; -2: two of those; -3: a count and names; -4: as -1 with a zero byte at the end; -5: an
# unknown code, which ends the list.
_VARIABLES = np.full(256, -5, np.int64)
_VARIABLES[[0, 1, 3, 4, 7, 8, 9, 10, 13]] = 4, 8, 4, 6, 2, 2, 8, 4, 3
_VARIABLES[[14, 15, 16, 17, 18, 19, 20]] = 8, 16, 1, 8, 2, 1, 1
_VARIABLES[[2, 5, 6, 11, 12]] = -4, -1, -1, -2, -3
_SCHEMAS_MAX: Final = 16
_BEGIN, _COMMIT = np.frombuffer(b"BEGIN", np.uint8), np.frombuffer(b"COMMIT", np.uint8)
_ROLLBACK, _XA = np.frombuffer(b"ROLLBACK", np.uint8), np.frombuffer(b"XA ", np.uint8)
_SAVEPOINT = np.frombuffer(b"SAVEPOINT ", np.uint8)
_ROLLBACK_TO = np.frombuffer(b"ROLLBACK TO ", np.uint8)


@kernel
def digest_ranges(
    address: int,
    starts: Numbers,
    ends: Numbers,
    trailer: int,
    query_post: int,
    digests: Words,
    answers: Bytes,
) -> None:
    """Digest the transactions that begin and end at these offsets from `address`.

    `trailer` is the length of an event's checksum, `query_post` that of a statement's fixed part.
    For a PAYLOAD, `digests` has the offset of the event.
    """
    work = np.empty(_WORK_SIZE, np.uint64)
    known = np.zeros(images.KNOWN_FIELDS, np.int64)
    tables = np.empty((TABLES_MAX, images.TABLE_FIELDS), np.int64)
    keys = np.empty(TABLES_MAX, np.uint64)
    columns = np.empty(COLUMNS_MAX, np.int64)
    form = np.empty(images.FORM_FIELDS, np.int64)
    for row in range(len(starts)):
        begin_transaction(known)
        work[_STATE], work[_IN_RUN] = SEED, _ZERO
        at, answers[row] = _read_events(
            address, starts[row], ends[row], trailer, query_post, known, tables, keys, columns,
            form, work,
        )  # fmt: skip
        _end_run(work)
        digests[row] = finish(work[_STATE]) if answers[row] == DIGEST else np.uint64(at)


@kernel
def _read_events(
    address: int,
    at: int,
    end: int,
    trailer: int,
    query_post: int,
    known: Numbers,
    tables: Numbers,
    keys: Words,
    columns: Numbers,
    form: Numbers,
    work: Words,
) -> tuple[int, int]:
    """Mix the events of a transaction into its digest; return where that ended, and the result."""
    while at < end:
        if end - at < HEADER_BYTES:
            return at, ASK
        event = address + at
        size, code = integer(event + 9, 4), np.int64(load_byte(event + 4))
        body, stop = event + HEADER_BYTES, event + size - trailer
        if size > end - at or stop < body:
            return at, ASK
        role, sound = _ROLES[code], True
        if role == _PACKED:
            # There must be no other content before or after it.
            is_alone = work[_STATE] == SEED and work[_IN_RUN] == _ZERO and at + size == end
            is_alone &= known[images.NOW] == known[images.BEGAN]
            return at, PAYLOAD if is_alone else ASK
        if role == _QUERY:
            sound = _add_query(event, body, stop, query_post, work)
        elif role == _TABLE:
            count = known[images.TABLES]
            table = announce(body, stop, known, tables, columns)
            sound = table >= 0
            if table == count:
                keys[table] = _key_of(tables[table])
        elif role == _VARIABLE:
            _end_run(work)
            tag = np.uint64(_CONTEXT + (code << 8))
            work[_STATE] = mix_bytes(mix(work[_STATE], tag), body, stop)
        elif _WRITE <= role <= _DELETE:
            table = open_rows(body, stop, code, known, tables, form)
            if table < 0:
                return at, ASK
            kind = np.uint64(role - _WRITE)
            _open_run(kind, keys[table], tables[table, images.WIDTH], form, work)
            sound = _add_rows(stop, form, tables[table], columns, work)
        else:
            sound = role == _SKIP
        if not sound:
            return at, ASK
        at += size
    return at, DIGEST


@kernel
def _end_run(work: Words) -> None:
    if work[_IN_RUN] != _ZERO:
        state = mix(work[_STATE], _ROWS + work[_RUN_KIND])
        state = mix(mix(state, work[_RUN_FORM]), work[_RUN_COUNT])
        work[_STATE] = mix(state, work[_RUN_SUM])
        work[_IN_RUN] = _ZERO


@kernel
def _add_query(event: int, at: int, stop: int, post: int, work: Words) -> bool:
    """Mix a statement into the digest; return False if its body is malformed."""
    sql = text_of_statement(at, stop, post)
    if sql == 0:
        return False
    word = integer(at + 9, 2)
    variables, schema = at + post, sql - 1 - integer(at + 8, 1)
    if _is(sql, stop, _BEGIN) or _is(sql, stop, _COMMIT) or _is(sql, stop, _ROLLBACK):
        return True
    sql_mode, charsets, flags, lc_time_names, is_sound = _settings(variables, schema)
    if not is_sound:
        return False
    _end_run(work)
    schema_end = sql - 1
    if (
        _begins(sql, stop, _XA)
        or _begins(sql, stop, _SAVEPOINT)
        or _begins(sql, stop, _ROLLBACK_TO)
    ):
        sql_mode, charsets, flags, schema_end = _NOTHING, _NOTHING, _AUTO_INCREMENT_DEFAULT, schema
    else:
        word |= lc_time_names << 16 | np.int64(load_four(event)) << 32
    state = mix(mix(work[_STATE], _STATEMENT), np.uint64(word))
    state = mix(mix(mix(state, sql_mode), charsets), np.uint64(flags))
    work[_STATE] = mix_bytes(mix_bytes(state, schema, schema_end), sql, stop)
    return True


@kernel
def _begins(at: int, stop: int, word: Bytes) -> bool:
    return stop - at >= len(word) and _is(at, at + len(word), word)


@kernel
def _is(at: int, stop: int, word: Bytes) -> bool:
    place, length = 0, len(word)
    while place < length and at + place < stop and integer(at + place, 1) == word[place]:
        place += 1
    return place == length and at + place == stop


@kernel
def _settings(at: int, stop: int) -> tuple[int, int, int, int, bool]:
    """Read the status variables that affect the statement's result: `Session.numbers`."""
    sql_mode, charsets, lc_time_names = _NOTHING, _NOTHING, 0
    flags, increment = 0, _AUTO_INCREMENT_DEFAULT
    is_sound = True
    while at < stop:
        code = integer(at, 1)
        size = _VARIABLES[code]
        at += 1
        if size == -5:
            break
        if size < 0 and at >= stop:
            is_sound = False
        elif size == -3:
            at = _behind_names(at, stop)
        elif size < 0:
            for _ in range(2 if size == -2 else 1):
                if at < stop:
                    length = integer(at, 1)
                    at += 1 + length + (1 if size == -4 and length else 0)
                else:
                    is_sound = False
        elif size > stop - at:
            is_sound = False
        else:
            if code == 0:
                flags = np.int64(load_four(at)) & _DECISIVE_FLAGS
            elif code == 1:
                sql_mode = load_eight(at)
            elif code == 3:
                increment = np.int64(load_four(at))
            elif code == 4:
                charsets = load_four(at) | np.uint64(integer(at + 4, 2)) << np.uint64(32)
            elif code == 7:
                lc_time_names = integer(at, 2)
            at += size
        if not is_sound or at > stop:
            return sql_mode, charsets, 0, 0, False
    return sql_mode, charsets, increment | flags << 32, lc_time_names, True


@kernel
def _behind_names(at: int, stop: int) -> int:
    """Skip a count and zero-terminated names; the result is above `stop` if they do not fit."""
    count = integer(at, 1)
    at += 1
    if count > _SCHEMAS_MAX:
        return at
    for _ in range(count):
        while at < stop and load_byte(at) != _ZERO:
            at += 1
        at += 1
    return at


@kernel
def _key_of(table: Numbers) -> int:
    """Hash a table's names, and the types and metadata of its columns."""
    key = mix_bytes(SEED, table[images.SCHEMA], table[images.SCHEMA_END])
    key = mix_bytes(key, table[images.TABLE], table[images.TABLE_END])
    kinds, metadata = table[images.KINDS], table[images.METADATA]
    key = mix_bytes(key, kinds, kinds + table[images.WIDTH])
    for column in range(table[images.WIDTH]):
        value, metadata = column_metadata(integer(kinds + column, 1), metadata)
        key = mix(key, np.uint64(value))
    return key


@kernel
def _open_run(kind: int, key: int, width: int, form: Numbers, work: Words) -> None:
    """Continue the current run if its kind and form are these; else begin a new run."""
    state = _mix_bitmap(key, form[images.BEFORE], width)
    state = _mix_bitmap(state, form[images.AFTER], width if form[images.HAS_AFTER] else 0)
    state = mix(state, np.uint64(form[images.IS_PARTIAL]))
    if work[_IN_RUN] == _ZERO or work[_RUN_KIND] != kind or work[_RUN_FORM] != state:
        _end_run(work)
        work[_IN_RUN], work[_RUN_KIND], work[_RUN_FORM] = _ONE, kind, state
        work[_RUN_SUM], work[_RUN_COUNT] = _ZERO, _ZERO


@kernel
def _add_rows(stop: int, form: Numbers, table: Numbers, columns: Numbers, work: Words) -> bool:
    """Add the rows of one event to the run; return False if they do not fit their table."""
    at, total, rows = form[images.IMAGES], work[_RUN_SUM], work[_RUN_COUNT]
    while at < stop:
        behind = behind_row(at, stop, form, table, columns)
        if behind == 0:
            return False
        total += finish(mix_bytes(SEED, at, behind))
        rows += _ONE
        at = behind
    work[_RUN_SUM], work[_RUN_COUNT] = total, rows
    return True


@kernel
def _mix_bitmap(state: int, at: int, width: int) -> int:
    """Mix a bitmap into a state, without the bits after the last column."""
    size = (width + 7) // 8
    mixed = mix(state, np.uint64(size))
    while size:
        taken = min(size, 8)
        word = np.uint64(integer(at, taken)) if taken < 8 else load_eight(at)
        if width < 64:
            word &= (_ONE << np.uint64(width)) - _ONE
        mixed = mix(mixed, word)
        at, size, width = at + taken, size - taken, width - 64
    return mixed

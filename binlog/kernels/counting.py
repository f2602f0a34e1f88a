"""Finds which tables each transaction changed, the row counts, and the position of its DDL.

1. A transaction is a range of bytes from its first event to the end of its last, in a file or in a
   decompressed payload. The result is COUNTED, or why the decoder must read the transaction:
   PAYLOAD (it is compressed), ASK (a rare event, or an error: binlog.transactions has the rules and
   the messages).
2. The kernel reads only events that are wholly in the range, and never past the end of an event.
3. The tables are those with row events, in the order of their names. Each occurs once, even if the
   transaction has several TABLE_MAPs for it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from binlog.event_types import ROWS_DELETED, ROWS_UPDATED, ROWS_WRITTEN
from binlog.event_types import EventType as Type
from binlog.header import FLAG_ARTIFICIAL, FLAG_IGNORABLE, HEADER_BYTES
from binlog.kernels import roles
from binlog.kernels import row_ends as images
from binlog.kernels.row_ends import (
    COLUMNS_MAX,
    NOT_ANNOUNCED,
    TABLES_MAX,
    announce,
    begin_transaction,
    behind_row,
    open_rows,
)
from binlog.kernels.statements import text_of_statement
from gtid.jit import kernel
from gtid.kernels.eight_bytes import Bytes, Flags, Numbers, load_byte
from gtid.kernels.hash_bytes import integer

# The results for a transaction.
COUNTED, PAYLOAD, ASK = range(3)

# A change: the offset of the body of its table's TABLE_MAP, and rows written, updated, deleted.
CHANGE_FIELDS: Final = 4
# `places` of a transaction: the number of changes up to its end, and the begin and end of its
# statement if it is DDL. For a PAYLOAD, begin and end are those of the event.
CHANGES_END, BEGIN, END = range(3)
PLACE_FIELDS: Final = 3

_SOUGHT, _NOT_SOUGHT = -2, -1


# The role of each event type. The bodies of skipped events are not read.
_SKIP, _QUERY, _TABLE, _WRITE, _UPDATE, _DELETE, _PACKED, _STRANGE, _RARE = range(9)
_ROLES = np.full(256, _STRANGE, np.uint8)
_ROLES[np.isin(roles.OF_TYPE, (roles.FORMAT, roles.LOST, roles.VIEW, roles.REFUSED))] = _RARE
_ROLES[np.isin(roles.OF_TYPE, (roles.PLAIN, roles.OPENING, roles.HEAD, roles.BETWEEN))] = _SKIP
_ROLES[np.isin(roles.OF_TYPE, (roles.XID, roles.PREPARE))] = _SKIP
_ROLES[roles.OF_TYPE == roles.QUERY] = _QUERY
_ROLES[[Type.TABLE_MAP, Type.TRANSACTION_PAYLOAD]] = _TABLE, _PACKED
_ROLES[list(ROWS_WRITTEN)], _ROLES[list(ROWS_UPDATED)] = _WRITE, _UPDATE
_ROLES[list(ROWS_DELETED)] = _DELETE


@kernel
def count_changes(
    address: int,
    starts: Numbers,
    ends: Numbers,
    are_ddl: Flags,
    trailer: int,
    query_posts: Numbers,
    first: int,
    changes: Numbers,
    places: Numbers,
    answers: Bytes,
) -> int:
    """Process transactions from number `first` on; `starts` and `ends` are relative to `address`.

    Returns the number of the first transaction whose changes did not fit, or the number of
    transactions. `trailer` is the length of an event's checksum, `query_posts` the lengths of the
    fixed part of QUERY and of EXECUTE_LOAD_QUERY.
    """
    known = np.zeros(images.KNOWN_FIELDS, np.int64)
    tables = np.empty((TABLES_MAX, images.TABLE_FIELDS), np.int64)
    columns = np.empty(COLUMNS_MAX, np.int64)
    form = np.empty(images.FORM_FIELDS, np.int64)
    found = np.empty((TABLES_MAX, CHANGE_FIELDS), np.int64)
    written = places[first - 1, CHANGES_END] if first else 0
    for row in range(first, len(starts)):
        begin_transaction(known)
        places[row, BEGIN] = places[row, END] = _SOUGHT if are_ddl[row] else _NOT_SOUGHT
        answers[row], count = _read_events(
            address, starts[row], ends[row], trailer, query_posts, known, tables, columns, form,
            found, places[row],
        )  # fmt: skip
        if answers[row] != COUNTED:
            count = 0
        if count > len(changes) - written:
            return row
        _sort(found, count, tables)
        for number in range(count):
            changes[written] = found[number]
            changes[written, 0] = tables[found[number, 0], images.BODY] - address
            written += 1
        places[row, CHANGES_END] = written
    return len(starts)


@kernel
def _read_events(
    address: int,
    at: int,
    end: int,
    trailer: int,
    query_posts: Numbers,
    known: Numbers,
    tables: Numbers,
    columns: Numbers,
    form: Numbers,
    found: Numbers,
    place: Numbers,
) -> tuple[int, int]:
    """Count the changes of a transaction; return the result and the number of tables."""
    count = 0
    while at < end:
        if end - at < HEADER_BYTES:
            return ASK, 0
        event = address + at
        size, code = integer(event + 9, 4), np.int64(load_byte(event + 4))
        body, stop = event + HEADER_BYTES, event + size - trailer
        if size > end - at or stop < body:
            return ASK, 0
        flags, sound = integer(event + 17, 2), True
        role = _SKIP if flags & FLAG_ARTIFICIAL else _ROLES[code]
        if role == _PACKED:
            place[BEGIN], place[END] = at, at + size
            # There must be no other changes before or after it.
            is_alone = known[images.NOW] == known[images.BEGAN] and count == 0
            return PAYLOAD if is_alone and at + size == end else ASK, 0
        if role == _QUERY:
            if place[BEGIN] == _SOUGHT:
                post = query_posts[1 if code == roles.LOAD_QUERY else 0]
                sql = text_of_statement(body, stop, post)
                place[BEGIN], place[END] = sql - address, stop - address
                sound = sql > 0
        elif role == _TABLE:
            sound = announce(body, stop, known, tables, columns) >= 0
        elif _WRITE <= role <= _DELETE:
            table = open_rows(body, stop, code, known, tables, form)
            if table >= 0:
                count = _add_rows(stop, role, form, table, tables, columns, found, count)
                sound = count > 0
            else:
                # An event without rows only ends the statement (sql/log_event.cc).
                sound = table == NOT_ANNOUNCED and form[images.IMAGES] == stop
        else:
            sound = role == _SKIP or (role == _STRANGE and flags & FLAG_IGNORABLE != 0)
        if not sound:
            return ASK, 0
        at += size
    return COUNTED, count


@kernel
def _add_rows(
    stop: int,
    role: int,
    form: Numbers,
    table: int,
    tables: Numbers,
    columns: Numbers,
    found: Numbers,
    count: int,
) -> int:
    """Add the rows of an event to their table; return the number of tables, or -1 for ASK."""
    at, rows = form[images.IMAGES], 0
    while at < stop:
        at = behind_row(at, stop, form, tables[table], columns)
        if at == 0:
            return -1
        rows += 1
    if not form[images.NULLS_BEFORE] and not form[images.NULLS_AFTER]:
        rows = 1  # no column was logged: rows take no bytes, so their number is unknown
    number = 0
    while number < count and not _is(tables[found[number, 0]], tables[table]):
        number += 1
    if number == count:
        found[number] = 0
        found[number, 0] = table
        count += 1
    found[number, 1 + role - _WRITE] += rows
    return count


@kernel
def _is(table: Numbers, other: Numbers) -> bool:
    """Return whether two TABLE_MAPs are of the same table."""
    return table[images.BODY] == other[images.BODY] or _order(table, other) == 0


@kernel
def _order(table: Numbers, other: Numbers) -> int:
    """Compare two tables by schema and name; return a number below 0, 0, or above 0."""
    by_schema = _compare(
        table[images.SCHEMA], table[images.SCHEMA_END],
        other[images.SCHEMA], other[images.SCHEMA_END],
    )  # fmt: skip
    if by_schema:
        return by_schema
    return _compare(
        table[images.TABLE], table[images.TABLE_END],
        other[images.TABLE], other[images.TABLE_END],
    )  # fmt: skip


@kernel
def _compare(at: int, end: int, other: int, other_end: int) -> int:
    """Compare byte strings; a prefix sorts before a longer string."""
    while at < end and other < other_end:
        difference = integer(at, 1) - integer(other, 1)
        if difference:
            return difference
        at, other = at + 1, other + 1
    return (end - at) - (other_end - other)


@kernel
def _sort(found: Numbers, count: int, tables: Numbers) -> None:
    """Sort the tables of a transaction, usually few, by name."""
    for last in range(1, count):
        place = last
        while place and _order(tables[found[place - 1, 0]], tables[found[place, 0]]) > 0:
            for field in range(CHANGE_FIELDS):
                found[place - 1, field], found[place, field] = (
                    found[place, field],
                    found[place - 1, field],
                )
            place -= 1

"""Which tables each of many transactions changed, by how many rows; and where its statement stands.

1. A transaction is bytes from its first event to the end of its last, of a file or of what a
   payload held. The answer is COUNTED, or why the decoder must read it: PAYLOAD (it is
   compressed), ASK (something rare, or wrong: binlog.transactions has the rules and the words).
2. Nothing is read but events that lie within the range, and within an event nothing beyond its end.
3. Tables are those of which there are row events, each once however often it was announced, in the
   order of their names.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from binlog.kernels import images
from binlog.kernels.images import (
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
from gtid.kernels.hashing import integer
from gtid.kernels.words import Bytes, Flags, Numbers, load_byte

# What becomes of a transaction.
COUNTED, PAYLOAD, ASK = range(3)

# A change: its table's TABLE_MAP, by the offset of its body, and rows written, updated, deleted.
CHANGE_FIELDS: Final = 4
# `places` of a transaction: how many changes there are up to its end, and where its statement, if
# it is one of DDL, begins and ends. Of a PAYLOAD the place of the event stands in place of that.
CHANGES_END, BEGIN, END = range(3)
PLACE_FIELDS: Final = 3

_SOUGHT, _NOT_SOUGHT = -2, -1

_HEADER: Final = 19
_ARTIFICIAL, _IGNORABLE = 0x20, 0x80
_LOAD_QUERY: Final = 18

# What an event is here. The bodies of those that are passed over are not looked at.
_SKIP, _QUERY, _TABLE, _WRITE, _UPDATE, _DELETE, _PACKED, _STRANGE, _RARE = range(9)
_ROLES = np.full(256, _STRANGE, np.uint8)
_ROLES[[1, 15, 26, 37, *range(160, 172)]] = _RARE
_ROLES[[3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 16, 17, 27, 28, 29]] = _SKIP
_ROLES[[33, 34, 35, 36, 38, 41, 42]] = _SKIP
_ROLES[[2, _LOAD_QUERY]], _ROLES[19], _ROLES[40] = _QUERY, _TABLE, _PACKED
_ROLES[[23, 30]], _ROLES[[24, 31, 39]], _ROLES[[25, 32]] = _WRITE, _UPDATE, _DELETE


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
    """Look at transactions from number `first` on, which stand at these offsets from `address`.

    The answer is the number of the first for whose changes there was no room left, or how many
    transactions there are. `trailer` is what of each event is its checksum, `query_posts` the
    lengths of the fixed part of a statement, and of one that loads a file.
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
    """Count what the events of a transaction change; give the answer, and how many tables."""
    count = 0
    while at < end:
        if end - at < _HEADER:
            return ASK, 0
        event = address + at
        size, code = integer(event + 9, 4), np.int64(load_byte(event + 4))
        body, stop = event + _HEADER, event + size - trailer
        if size > end - at or stop < body:
            return ASK, 0
        flags, sound = integer(event + 17, 2), True
        role = _SKIP if flags & _ARTIFICIAL else _ROLES[code]
        if role == _PACKED:
            place[BEGIN], place[END] = at, at + size
            # Changes before or behind it would count, too.
            is_alone = known[images.NOW] == known[images.BEGAN] and count == 0
            return PAYLOAD if is_alone and at + size == end else ASK, 0
        if role == _QUERY:
            if place[BEGIN] == _SOUGHT:
                sql = text_of_statement(body, stop, query_posts[1 if code == _LOAD_QUERY else 0])
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
                # A dummy event that only ends the statement (sql/log_event.cc).
                sound = table == NOT_ANNOUNCED and form[images.IMAGES] == stop
        else:
            sound = role == _SKIP or (role == _STRANGE and flags & _IGNORABLE != 0)
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
    """Count the rows of an event under their table; return how many tables there are, -1: ASK."""
    at, rows = form[images.IMAGES], 0
    while at < stop:
        at = behind_row(at, stop, form, tables[table], columns)
        if at == 0:
            return -1
        rows += 1
    if not form[images.NULLS_BEFORE] and not form[images.NULLS_AFTER]:
        rows = 1  # of no column a value was logged: however many there are, they take no bytes
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
    """Return whether two tables have one name."""
    return table[images.BODY] == other[images.BODY] or _order(table, other) == 0


@kernel
def _order(table: Numbers, other: Numbers) -> int:
    """Compare two tables by schema and name: below 0, 0, above 0."""
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
    """Compare bytes as numbers; the shorter of two that begin alike comes first."""
    while at < end and other < other_end:
        difference = integer(at, 1) - integer(other, 1)
        if difference:
            return difference
        at, other = at + 1, other + 1
    return (end - at) - (other_end - other)


@kernel
def _sort(found: Numbers, count: int, tables: Numbers) -> None:
    """Put the tables of a transaction, which are few, into the order of their names."""
    for last in range(1, count):
        place = last
        while place and _order(tables[found[place - 1, 0]], tables[found[place, 0]]) > 0:
            for field in range(CHANGE_FIELDS):
                found[place - 1, field], found[place, field] = (
                    found[place, field],
                    found[place - 1, field],
                )
            place -= 1

"""Reads the rows that two transactions under one GTID touched, as both servers have them now.

1. A row is found by its primary key, or by a unique key without NULLs, whose values are in the row
   images. The key comes from the table's definition, or from the binary log if that has it.
2. Rows that cannot be found are reported with the reason. Reasons are a table without a key,
   statements instead of rows, a dropped table, and columns that were changed since (tables_now.py).
3. If rows are only compared, JSON documents are compared by value (typed_documents.py). If they may
   be written, a document whose text does not contain its whole value is skipped.
4. Servers are only read, row by row, up to ROWS_MAX.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, TypeAlias

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor, DictCursor

from binlog.adapters.row_decoder import RowDecoder
from binlog.adapters.server_errors import server_words
from binlog.errors import BinlogError
from binlog.event_types import RowKind
from binlog.quoting import quote_identifier
from binlog.rows.images import (
    BIT,
    DATETIME2,
    ENUM,
    FLOAT,
    JSON,
    SET,
    TIME2,
    TIMESTAMP2,
    VECTOR,
)
from binlog.rows.json_values import JsonDocument, JsonObject, JsonUnsigned, JsonValue, json_text
from binlog.rows.tables import OLD_DATETIME, OLD_TIMESTAMP, RowColumn, RowTable
from binlog.rows.values import ABSENT, Image, RowChanges, Value, rows_of_group
from binlog.scan import EventGroup
from gtid import GtidSet
from repair.adapters.tables_now import Definitions, LogBehind, LoggedDefinitions, lookup_misfit
from repair.adapters.typed_documents import unshown_types, with_types
from repair.sql.row_literals import CannotRender, condition
from topology.adapters.connection import Way

ROWS_MAX: Final = 200
# Transactions whose rows are looked up. Each version is read again for that.
LOOKED_UP_MAX: Final = 100
GroupsOf: TypeAlias = Callable[[GtidSet], Iterator[EventGroup]]
# The conditions are written for UTC (repair/sql/row_literals.py).
IN_UTC: Final = "SET SESSION time_zone = '+00:00'"

Row = dict[str, str | None]
# Reads one row, as text and as values, by a condition.
ReadRow: TypeAlias = "Callable[[Connection[Any], RowTable, str], tuple[Row | None, Image | None]]"
# Types that SELECT returns as Python values, and images hold as text: dates, times, documents.
# DATE, TIME, YEAR and NEWDATE have no other names here (enum_field_types, include/field_types.h).
_AS_TEXT: Final = frozenset(
    {OLD_TIMESTAMP, OLD_DATETIME, TIMESTAMP2, DATETIME2, TIME2, 10, 11, 13, 14, JSON}
)
_SIGNED_END: Final = 1 << 63


@dataclass(frozen=True, slots=True)
class AffectedRow:
    """One row on both servers; None if a server does not have it."""

    of: RowTable
    key: str  # the condition that finds it
    left: Row | None
    right: Row | None
    # The rows as values, as row images hold them; None if they were only compared.
    images: tuple[Image | None, Image | None]

    @property
    def table(self) -> str:
        """Return the table's name for display."""
        return self.of.name

    @property
    def differs(self) -> bool:
        """Return whether the servers hold different rows."""
        return self.left != self.right

    def differing(self) -> tuple[str, ...]:
        """Return the columns that differ; all columns if one server does not have the row."""
        columns = dict.fromkeys([*(self.left or {}), *(self.right or {})])
        if self.left is None or self.right is None:
            return tuple(columns)
        left, right = self.left, self.right
        return tuple(name for name in columns if left.get(name) != right.get(name))


@dataclass(slots=True)
class AffectedRows:
    """All rows that were read, and the reasons why others were not."""

    rows: list[AffectedRow] = field(default_factory=list)
    unread: dict[str, None] = field(default_factory=dict)

    def note(self, why: str) -> None:
        """Record once why something was not read."""
        self.unread[why] = None


def look_up_rows(
    gtids: GtidSet,
    logs: tuple[GroupsOf, GroupsOf],
    ways: tuple[Way, Way],
    *,
    seconds_max: float,
    transactions_max: int = LOOKED_UP_MAX,
    rows_max: int = ROWS_MAX,
    only_compare: bool = False,
) -> AffectedRows:
    """Read the rows that the first of these transactions touched, from two servers.

    `logs` return the transactions as the servers of `ways` have them, in the same order. The result
    contains the reasons for what could not be read.
    """
    looked_up = gtids.first(transactions_max)
    found = AffectedRows()
    try:
        with closing(ways[0]()) as ours, closing(ways[1]()) as theirs:
            sides = tuple(
                _Side(
                    connection,
                    groups_of(looked_up),
                    of_now := Definitions(connection, found.note),
                    LoggedDefinitions(of_now, LogBehind(way, seconds_max), found.note),
                )
                for connection, groups_of, way in zip((ours, theirs), logs, ways, strict=True)
            )
            _read_affected_rows(
                sides, found, rows_max, read=read_to_compare if only_compare else read_row
            )
    except pymysql.MySQLError as error:
        found.note(f"the rows could not be read: {server_words(error)}")
    except (BinlogError, OSError) as error:
        found.note(f"the rows could not be read: {error}")
    if looked_up != gtids:
        found.note(f"only the rows of the first {transactions_max} transactions were read")
    return found


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two servers: its rows, its log's version of the transactions, its tables."""

    connection: Connection[Any]
    groups: Iterator[EventGroup]
    of_now: Definitions
    logged: LoggedDefinitions


def _read_affected_rows(
    sides: tuple[_Side, ...], found: AffectedRows, rows_max: int, *, read: ReadRow
) -> None:
    """Read, from both servers, the rows that the transactions of either side touched."""
    for side in sides:
        _ask(side.connection, IN_UTC)
    seen: dict[tuple[str, str], None] = {}
    for table, image in chain.from_iterable(_images(side, found) for side in sides):
        where = _where(table, image, found)
        if where is None or (table.name, where) in seen or not _fits(table, sides, found):
            continue
        if len(seen) == rows_max:
            found.note(f"more than {rows_max} rows: the others were not read")
            break
        seen[table.name, where] = None
        try:
            left, right = (read(side.connection, table, where) for side in sides)
        except pymysql.MySQLError as error:
            found.note(f"{table.name}: {error.args[-1] if error.args else error}")
            continue
        except CannotRender as error:
            found.note(f"{table.name}, {where}: {error}")
            continue
        found.rows.append(AffectedRow(table, where, left[0], right[0], (left[1], right[1])))


def _fits(table: RowTable, sides: tuple[_Side, ...], found: AffectedRows) -> bool:
    """Return whether the present tables on both servers match the logged definition."""
    whys = [lookup_misfit(table, side.of_now(table.schema, table.table)) for side in sides]
    for why in whys:
        if why is not None:
            found.note(why)
    return not any(whys)


def _images(side: _Side, found: AffectedRows) -> Iterator[tuple[RowTable, Image]]:
    read_value = RowDecoder()
    for group in side.groups:
        transaction = group.transaction
        if transaction.statements and not transaction.tables:
            found.note(f"{transaction.gtid}: logged as statements")
        definition_of = side.logged.at(transaction.file, group.rows_begin)
        try:
            for part in rows_of_group(group, read_value, definition_of=definition_of):
                if not isinstance(part, RowChanges):
                    continue
                if (part.table.schema, part.table.table) in side.logged.changed:
                    continue
                for change in part.rows:
                    yield from (
                        (part.table, image)
                        for image in (change.before, change.after)
                        if image is not None and not _is_partial(part, image)
                    )
        except BinlogError as error:
            found.note(str(error))


def _is_partial(part: RowChanges, image: Image) -> bool:
    """Return whether an update's image has no key: after images leave out unchanged columns."""
    return part.kind is RowKind.UPDATE and any(image[at] is ABSENT for at in part.table.key or ())


def _where(table: RowTable, image: Image, found: AffectedRows) -> str | None:
    if not table.key or not table.has_names:
        why = (
            "it has no key"
            if table.key == ()
            else "its key is not known (no SELECT privilege on it?)"
        )
        found.note(f"{table.name}: its rows cannot be found: {why}")
        return None
    try:
        return " AND ".join(
            condition(
                table.columns[at],
                quote_identifier(table.columns[at].name or ""),
                image[at],
                is_key=True,
            )
            for at in table.key
        )
    except CannotRender as error:
        found.note(f"{table.name}: {error}")
        return None


def read_row(
    connection: Connection[Any], table: RowTable, where: str
) -> tuple[Row | None, Image | None]:
    """Read one row, as text and as values.

    Raises CannotRender for a value that its text does not fully represent: it would be written as
    another value.
    """
    row = _row_at(connection, table, where)
    if row is None:
        return None, None
    documents = _documents(table, _shown(table, row))
    for (name, path), type_ in unshown_types(connection, _quoted(table), where, documents).items():
        if type_ != "STRING":
            raise CannotRender(f"{name}: {path} is a {type_}, which JSON text cannot show")
    image = tuple(
        _logged(column, value)
        for column, value in zip(table.columns, row[len(table.columns) :], strict=True)
    )
    return _shown(table, row), image


def read_to_compare(
    connection: Connection[Any], table: RowTable, where: str
) -> tuple[Row | None, None]:
    """Read one row as text that is equal only for equal values."""
    row = _row_at(connection, table, where)
    if row is None:
        return None, None
    shown = _shown(table, row)
    documents = _documents(table, shown)
    return {**shown, **with_types(connection, _quoted(table), where, documents)}, None


def _documents(table: RowTable, shown: Row) -> dict[str, str]:
    return {
        column.name: text
        for column in table.columns
        if column.type_code == JSON and column.name is not None
        if (text := shown[column.name]) is not None
    }


def _row_at(connection: Connection[Any], table: RowTable, where: str) -> tuple[Any, ...] | None:
    """Read one row: each column for display, then each column as a row image has it."""
    names = [quote_identifier(column.name or "") for column in table.columns]
    read = [*map(_as_shown, table.columns, names), *map(_as_logged, table.columns, names)]
    with connection.cursor(Cursor) as cursor:
        cursor.execute(f"SELECT {', '.join(read)} FROM {_quoted(table)} WHERE {where} LIMIT 1")  # noqa: S608 - quoted
        return cursor.fetchone()


def _shown(table: RowTable, row: tuple[Any, ...]) -> Row:
    return {
        column.name or "": _text(value) for column, value in zip(table.columns, row, strict=False)
    }


def _quoted(table: RowTable) -> str:
    return f"{quote_identifier(table.schema)}.{quote_identifier(table.table)}"


def _as_shown(column: RowColumn, name: str) -> str:
    """Return SQL for a column's value as text. A VECTOR comes as bytes declared as ASCII."""
    return _as_logged(column, name) if column.type_code == VECTOR else name


def _as_logged(column: RowColumn, name: str) -> str:
    """Return SQL for a column's value as a row image has it: see binlog/rows/values.py."""
    if column.is_string or column.type_code == VECTOR:
        return f"CAST({name} AS BINARY)"
    if column.type_code in (BIT, ENUM, SET):
        return f"CAST({name} + 0 AS UNSIGNED)"
    if column.type_code == FLOAT:
        return f"{name} + 0e0"
    if column.type_code in _AS_TEXT:
        return f"CAST({name} AS CHAR)"
    return name


def _logged(column: RowColumn, value: Any) -> Value:  # noqa: ANN401 - PyMySQL's
    if column.type_code == JSON and value is not None:
        return JsonDocument(_document(value))
    found: Value = value
    return found


def _document(text: str) -> JsonValue:
    """Parse a document. Raises CannotRender if its text does not contain the whole value."""

    def read(value: object) -> JsonValue:
        match value:
            case None | bool() | float() | str():
                return value
            case int():
                return value if value < _SIGNED_END else JsonUnsigned(value)
            case dict():
                return JsonObject(tuple((key, read(item)) for key, item in value.items()))
            case list():
                return tuple(map(read, value))
        raise AssertionError(value)

    root = read(json.loads(text))
    if json_text(root) != text:
        raise CannotRender("a JSON document has values that its text does not show exactly")
    return root


def _ask(connection: Connection[Any], sql: str) -> list[dict[str, Any]]:
    with connection.cursor(DictCursor) as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return "0x" + value.hex()
    return str(value)

"""The rows that two transactions under one GTID touched, as they are on both servers now.

1. A row is found by its primary key, or a unique key without NULLs, whose values are in the row
   images; the key itself is told by the table's definition, or by the binlog where that has it.
2. What cannot be found is named, with the reason: a table without a key, statements instead of
   rows, a table that is gone.
3. Servers are only read, row by row, up to ROWS_MAX.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import DictCursor

from binlog.adapters.row_decoder import RowDecoder
from binlog.errors import BinlogError
from binlog.event_types import RowKind
from binlog.rows.tables import RowTable
from binlog.rows.values import ABSENT, Image, RowChanges, rows_of_group
from binlog.scan import EventGroup
from binlog.schema.tables import TableDefinition, definition_from_create
from binlog.schema.words import CannotFollow
from repair.row_literals import CannotRender, condition
from topology.quoting import quote_identifier

ROWS_MAX: Final = 200
# The session in which conditions mean what they say (repair/row_literals.py), and times are UTC.
_SESSION: Final = "SET SESSION sql_mode = '', time_zone = '+00:00'"

Row = dict[str, str | None]


@dataclass(frozen=True, slots=True)
class AffectedRow:
    """One row on both servers; None where it is not there."""

    table: str
    key: str  # the condition by which it was looked for
    left: Row | None
    right: Row | None

    @property
    def differs(self) -> bool:
        """Tell whether the servers hold different rows."""
        return self.left != self.right

    def differing(self) -> tuple[str, ...]:
        """Return the columns in which they differ; all, where one has no such row."""
        columns = dict.fromkeys([*(self.left or {}), *(self.right or {})])
        if self.left is None or self.right is None:
            return tuple(columns)
        left, right = self.left, self.right
        return tuple(name for name in columns if left.get(name) != right.get(name))


@dataclass(slots=True)
class AffectedRows:
    """All that were looked at, and why others were not."""

    rows: list[AffectedRow] = field(default_factory=list)
    unread: dict[str, None] = field(default_factory=dict)


def read_affected_rows(
    groups: Iterable[EventGroup],
    left: "Connection[Any]",
    right: "Connection[Any]",
) -> AffectedRows:
    """Read the rows that these transactions touched from both servers."""
    found = AffectedRows()
    for connection in (left, right):
        _ask(connection, _SESSION)
    definitions = _Definitions((left, right))
    seen: dict[tuple[str, str], None] = {}
    for table, image in _images(groups, definitions, found):
        where = _where(table, image, found)
        if where is None or (table.name, where) in seen:
            continue
        if len(seen) == ROWS_MAX:
            found.unread[f"more than {ROWS_MAX} rows: the others were not read"] = None
            break
        seen[table.name, where] = None
        try:
            both = [_read(connection, table, where) for connection in (left, right)]
        except pymysql.MySQLError as error:
            found.unread[f"{table.name}: {error.args[-1] if error.args else error}"] = None
            continue
        found.rows.append(AffectedRow(table.name, where, both[0], both[1]))
    return found


class _Definitions:
    """What SHOW CREATE TABLE says on the first server that has the table."""

    def __init__(self, connections: "Iterable[Connection[Any]]") -> None:
        self._connections = tuple(connections)
        self._known: dict[tuple[str, str], TableDefinition | None] = {}

    def __call__(self, schema: str, table: str) -> TableDefinition | None:
        if (schema, table) not in self._known:
            self._known[schema, table] = self._asked(schema, table)
        return self._known[schema, table]

    def _asked(self, schema: str, table: str) -> TableDefinition | None:
        name = f"{quote_identifier(schema)}.{quote_identifier(table)}"
        for connection in self._connections:
            try:
                [row] = _ask(connection, f"SHOW CREATE TABLE {name}")
                return definition_from_create(str(row["Create Table"]), schema=schema)
            except (pymysql.MySQLError, CannotFollow):
                continue  # a table that no server can describe has no key, which is said
        return None


def _images(
    groups: Iterable[EventGroup], definitions: _Definitions, found: AffectedRows
) -> Iterator[tuple[RowTable, Image]]:
    read_value = RowDecoder()
    for group in groups:
        if group.transaction.statements and not group.transaction.tables:
            found.unread[f"{group.transaction.gtid}: logged as statements"] = None
        try:
            for part in rows_of_group(group, read_value, definition_of=definitions):
                if isinstance(part, RowChanges):
                    for change in part.rows:
                        yield from (
                            (part.table, image)
                            for image in (change.before, change.after)
                            if image is not None and not _is_partial(part, image)
                        )
        except BinlogError as error:
            found.unread[str(error)] = None


def _is_partial(part: RowChanges, image: Image) -> bool:
    """Tell whether an update's image holds no key: after images leave out what did not change."""
    return part.kind is RowKind.UPDATE and any(image[at] is ABSENT for at in part.table.key or ())


def _where(table: RowTable, image: Image, found: AffectedRows) -> str | None:
    if not table.key or not table.has_names:
        why = "it has no key" if table.key == () else "its key is not known"
        found.unread[f"{table.name}: its rows cannot be found: {why}"] = None
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
        found.unread[f"{table.name}: {error}"] = None
        return None


def _read(connection: "Connection[Any]", table: RowTable, where: str) -> Row | None:
    names = ", ".join(quote_identifier(column.name or "") for column in table.columns)
    of = f"{quote_identifier(table.schema)}.{quote_identifier(table.table)}"
    rows = _ask(connection, f"SELECT {names} FROM {of} WHERE {where} LIMIT 1")  # noqa: S608
    return {name: _text(value) for name, value in rows[0].items()} if rows else None


def _ask(connection: "Connection[Any]", sql: str) -> list[dict[str, Any]]:
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

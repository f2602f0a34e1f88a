"""Reads row images: the values of a row before and after a change, column by column.

1. This file splits images into values. A `ReadValue`, the interface of the decoders, reads each
   value (`adapters.row_decoder`).
2. A value that cannot be read raises CorruptBinlog with file and position. There are no partial
   rows.
3. A column that was not logged is ABSENT, which differs from NULL.
4. Values are MySQL's, not Python's: text is bytes in the column's character set; ENUM, SET and BIT
   are numbers; dates and times are MySQL's text (TIMESTAMP in UTC).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Protocol, TypeAlias

from binlog.cursor import Cursor, MalformedBody
from binlog.errors import CorruptBinlog
from binlog.event_types import RowKind
from binlog.events import Event, Rows, TableMap
from binlog.rows.images import JSON, skip_value
from binlog.rows.json_values import JsonDiffs, JsonDocument
from binlog.rows.tables import RowColumn, RowTable, describe_table
from binlog.scan import EventGroup
from binlog.schema.table_definitions import TableDefinition


class Absent(Enum):
    """The value of a column that an image does not contain (binlog_row_image=MINIMAL, NOBLOB)."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT

Value: TypeAlias = "int | float | Decimal | str | bytes | JsonDocument | JsonDiffs | Absent | None"
# One value for each of the table's columns.
Image: TypeAlias = "tuple[Value, ...]"
DefinitionOf: TypeAlias = "Callable[[str, str], TableDefinition | None]"

# Rows_event::enum_flag, rows_event.h.
_NO_FOREIGN_KEY_CHECKS = 1 << 1
_RELAXED_UNIQUE_CHECKS = 1 << 2
_SQL_FOREIGN_KEYS = 1 << 4  # verified on 9.7.4


class ReadValue(Protocol):
    """Reads the bytes of one value, including its length bytes if it has any."""

    def __call__(self, column: RowColumn, raw: bytes, *, is_partial: bool) -> Value:
        """Return the value; `is_partial`: it is JSON differences. Raises MalformedBody."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """One changed row: `before` is None for an insert, `after` is None for a delete."""

    before: Image | None
    after: Image | None

    def __post_init__(self) -> None:
        assert self.before is not None or self.after is not None


@dataclass(frozen=True, slots=True)
class RowChanges:
    """The rows of one event."""

    table: RowTable
    kind: RowKind
    rows: tuple[RowChange, ...]
    file: str
    position: int
    # The settings of the session: FOREIGN_KEY_CHECKS, UNIQUE_CHECKS.
    foreign_key_checks: bool
    unique_checks: bool
    # Whether the SQL layer enforced foreign keys and logged their changes in other tables (9.6 and
    # later). If not, the log has no cascades: they happen again where the rows are applied.
    logs_cascades: bool
    # Whether the event has the type of updates that may contain differences of JSON values. The
    # session's PARTIAL_JSON causes it, for any columns (verified on 9.7.4).
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class LoggedRows:
    """The rows of one event before their values are read, and their table."""

    table: RowTable
    rows: Rows
    file: str
    position: int

    @property
    def kind(self) -> RowKind:
        """What the event did to its rows."""
        return self.rows.kind

    @property
    def foreign_key_checks(self) -> bool:
        """See `RowChanges`."""
        return not self.rows.flags & _NO_FOREIGN_KEY_CHECKS

    @property
    def unique_checks(self) -> bool:
        """See `RowChanges`."""
        return not self.rows.flags & _RELAXED_UNIQUE_CHECKS

    @property
    def logs_cascades(self) -> bool:
        """See `RowChanges`."""
        return bool(self.rows.flags & _SQL_FOREIGN_KEYS)

    def read(self, read_value: ReadValue) -> RowChanges:
        """Read the values. Raises CorruptBinlog."""
        try:
            changes = tuple(_changes(self.rows, self.table, read_value))
        except MalformedBody as error:
            raise _corrupt(self.file, self.position, self.table.name, error) from error
        return RowChanges(
            table=self.table,
            kind=self.kind,
            rows=changes,
            file=self.file,
            position=self.position,
            foreign_key_checks=self.foreign_key_checks,
            unique_checks=self.unique_checks,
            logs_cascades=self.logs_cascades,
            is_partial=self.rows.is_partial,
        )

    def as_one_row(self) -> RowChange:
        """Return a row with the logged columns of the event, whose values stand for any others.

        Logged columns are NULL before, and a text after. What a statement needs that no value
        changes (a key, whole images) is decided by it.
        """
        before, after = (
            tuple(value if at in logged else ABSENT for at in range(len(self.table.columns)))
            for bitmap, value in (
                (self.rows.columns_before, None),
                (self.rows.columns_after, "another"),
            )
            for logged in (_present(bitmap, self.table),)
        )
        if self.kind is RowKind.WRITE:
            return RowChange(None, before)
        return RowChange(before, after if self.kind is RowKind.UPDATE else None)


def definitions_nowhere(_schema: str, _table: str) -> None:
    """Return None: the default of a caller without definitions."""


def rows_of_group(
    group: EventGroup,
    read_value: ReadValue,
    *,
    definition_of: DefinitionOf = definitions_nowhere,
) -> Iterator[RowChanges | Event]:
    """Yield the content of a transaction in order: decoded rows, and all other events unchanged.

    TABLE_MAPs are consumed. Raises CorruptBinlog at rows that cannot be read.
    """
    for item in logged_rows_of(group.events, definition_of=definition_of):
        yield item.read(read_value) if isinstance(item, LoggedRows) else item


def logged_rows_of(
    events: Iterable[Event],
    *,
    definition_of: DefinitionOf = definitions_nowhere,
    describe: Callable[[TableMap, TableDefinition | None], RowTable] = describe_table,
) -> Iterator[LoggedRows | Event]:
    """Yield the same, with the rows as they are logged."""
    tables: dict[int, RowTable] = {}
    for event in events:
        match event.body:
            case TableMap() as table_map:
                definition = definition_of(table_map.schema, table_map.table)
                try:
                    tables[table_map.table_id] = describe(table_map, definition)
                except MalformedBody as error:
                    name = f"{table_map.schema}.{table_map.table}"
                    raise _corrupt(event.file, event.start, name, error) from error
            case Rows() as rows if rows.table_id in tables:
                yield LoggedRows(tables[rows.table_id], rows, event.file, event.start)
            case Rows() as rows:
                # An event without rows only ends the statement (sql/log_event.cc).
                if rows.images:
                    what = f"rows of table id {rows.table_id} without a TABLE_MAP event before them"
                    raise CorruptBinlog(file=event.file, position=event.start, what=what)
            case _:
                yield event


def read_rows(event: Event, rows: Rows, table: RowTable, read_value: ReadValue) -> RowChanges:
    """Read the rows of one event. Raises CorruptBinlog."""
    return LoggedRows(table, rows, event.file, event.start).read(read_value)


def _corrupt(file: str, position: int, table: str, error: MalformedBody) -> CorruptBinlog:
    return CorruptBinlog(file=file, position=position, what=f"rows of {table}: {error.what}")


def _changes(rows: Rows, table: RowTable, read_value: ReadValue) -> Iterator[RowChange]:
    """Yield the rows of one event. A row without any logged column takes no bytes (MINIMAL)."""
    cursor = Cursor(rows.images)
    if rows.column_count != len(table.columns):
        raise cursor.fail(f"expected {len(table.columns)} columns, found {rows.column_count}")
    before, after = _present(rows.columns_before, table), _present(rows.columns_after, table)
    json_columns = [at for at, column in enumerate(table.columns) if column.type_code == JSON]
    is_update = rows.kind is RowKind.UPDATE
    while cursor.remaining or not (before or after):
        start = cursor.at
        first = _image(cursor, table, before, read_value)
        second = None
        if is_update:
            partial = _partial(cursor, json_columns) if rows.is_partial else frozenset()
            second = _image(cursor, table, after, read_value, partial=partial)
        if rows.kind is RowKind.WRITE:
            yield RowChange(None, first)
        else:
            yield RowChange(first, second)
        if not (before or after):
            return
        if cursor.at == start:
            raise cursor.fail("a row image of no bytes")


def _present(bitmap: bytes, table: RowTable) -> tuple[int, ...]:
    return tuple(
        at for at in range(len(table.columns)) if bitmap and bitmap[at >> 3] >> (at & 7) & 1
    )


def _partial(cursor: Cursor, json_columns: list[int]) -> frozenset[int]:
    """Read which JSON columns are logged as differences: one bit for each in the table."""
    if not cursor.net_integer("the value options") & 1:
        return frozenset()
    bitmap = cursor.take((len(json_columns) + 7) // 8, "the bitmap of partial JSON values")
    return frozenset(
        column for at, column in enumerate(json_columns) if bitmap[at >> 3] >> (at & 7) & 1
    )


def _image(
    cursor: Cursor,
    table: RowTable,
    present: tuple[int, ...],
    read_value: ReadValue,
    *,
    partial: frozenset[int] = frozenset(),
) -> Image:
    """Read one image: a NULL bit for each logged column, then the other values."""
    nulls = cursor.take((len(present) + 7) // 8, "the bitmap of NULLs")
    values: list[Value] = [ABSENT] * len(table.columns)
    for number, at in enumerate(present):
        if nulls[number >> 3] >> (number & 7) & 1:
            values[at] = None
            continue
        column = table.columns[at]
        start = cursor.at
        skip_value(cursor, column.type_code, column.metadata)
        try:
            values[at] = read_value(
                column, cursor.data[start : cursor.at], is_partial=at in partial
            )
        except MalformedBody as error:
            label = column.name or f"number {at + 1}"
            raise cursor.fail(f"column {label}: {error.what}") from error
    return tuple(values)

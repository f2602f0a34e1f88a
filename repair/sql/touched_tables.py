"""The tables whose rows a script changes, and the checks that each needs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from binlog.event_types import RowKind
from binlog.rows.tables import RowTable
from binlog.rows.values import LoggedRows, RowChange, RowChanges
from repair.sql.column_type_guards import has_type
from repair.sql.row_sql import member_columns, unset_columns


@dataclass(frozen=True, slots=True, order=True)
class TouchedTable:
    """A table whose rows a script changes, and the checks that it needs before."""

    schema: str
    table: str
    # No definition shows which of its columns are generated.
    asks_for_generated: bool = False
    # Rows were deleted or changed. Foreign keys may have changed rows of other tables that the log
    # does not show, or may change other rows there now.
    asks_for_delete_rules: bool = False
    asks_for_update_rules: bool = False
    # ENUM and SET columns whose values are written as numbers: name, and required start of the
    # type.
    members: tuple[tuple[str, str], ...] = ()
    # All its columns in order, if the rows must be logged with the same columns.
    columns: tuple[str, ...] = ()
    # The types of these, as conditions on their definitions (column_type_guards.py).
    types: tuple[tuple[str, str], ...] = ()
    # Columns that updates do not set, and that ON UPDATE CURRENT_TIMESTAMP would change here.
    unset: tuple[str, ...] = ()


def touched(
    changes: RowChanges | LoggedRows, *, asks_for_rules: bool, keeps_form: bool = False
) -> TouchedTable:
    """Return the checks of the table of one event before its rows are written.

    `keeps_form`: the rows are logged a second time under one GTID.
    """
    asks = asks_for_rules and changes.foreign_key_checks
    table = changes.table
    rows: Iterable[RowChange] = ()
    if keeps_form:
        rows = changes.rows if isinstance(changes, RowChanges) else (changes.as_one_row(),)
    return TouchedTable(
        table.schema,
        table.table,
        asks_for_generated=any(column.is_generated is None for column in table.columns),
        asks_for_delete_rules=asks and changes.kind is RowKind.DELETE,
        asks_for_update_rules=asks and changes.kind is RowKind.UPDATE,
        members=member_columns(table),
        columns=tuple(column.name or "" for column in table.columns) if keeps_form else (),
        types=_types_of(table) if keeps_form else (),
        unset=tuple(sorted({name for row in rows for name in unset_columns(table, row)})),
    )


def _types_of(table: RowTable) -> tuple[tuple[str, str], ...]:
    types = ((column.name or "", has_type(column)) for column in table.columns)
    return tuple((name, condition) for name, condition in types if name and condition)

"""The text of the rows of one event: its statements, each with its part of the count.

1. Rows are written forwards (redo), or as the opposite with the last row first (undo): a `RowsWay`.
2. Rows that are inserted into one table share a statement. That is as safe as one statement for
   each: in the strict sql_mode the server rejects all rows of a statement if it rejects one, and
   ROW_COUNT() is their number. A table without transactions keeps the rows before the rejected one,
   as it does with a statement for each. A row with an ENUM's error value is written alone, because
   in the lenient sql_mode an INSERT of several rows accepts a NULL that an INSERT of one row
   rejects (Reference Manual, "Constraints on Invalid Data").
3. Deleted and changed rows keep a statement each: it finds its row by all known values, and the
   count shows whether it did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from binlog.event_types import RowKind
from binlog.rows.tables import RowTable
from binlog.rows.values import Image, RowChange
from repair.sql.row_sql import insert_head, needs_lenience, redo_row, undo_row

# The sql_mode for rows: zero and invalid dates are accepted, 0 is stored as 0 and not as the next
# number. Everything else is strict, so that no value is truncated.
SQL_MODE = "NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION"
LENIENT_SQL_MODE = "NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION"
# The characters of the rows of one INSERT, unless it has one row. It is far below the least
# max_allowed_packet that a server is run with (1 MiB).
INSERT_CHARACTERS_MAX: Final = 64 * 1024
ROW_BETWEEN = ",\n  "
COUNT = " SET @rows = @rows + ROW_COUNT();"


@dataclass(frozen=True, slots=True)
class RowsWay:
    """How rows are written: backwards, or forwards, or forwards in their logged form.

    `keeps_form`: see `row_sql.redo_row`.
    """

    is_undo: bool = False
    keeps_form: bool = False

    def statement(self, table: RowTable, row: RowChange) -> str | None:
        """Return the statement of one row; None if it changed nothing. Raises CannotRender."""
        if self.is_undo:
            return undo_row(table, row)
        return redo_row(table, row, keeps_form=self.keeps_form)

    def inserted(self, row: RowChange) -> Image | None:
        """Return the image that is inserted, if the statement of the row is an INSERT."""
        image, other = (row.before, row.after) if self.is_undo else (row.after, row.before)
        return image if other is None else None

    def inserts(self, kind: RowKind) -> bool:
        """Return whether rows that were logged as `kind` are inserted."""
        return kind is (RowKind.DELETE if self.is_undo else RowKind.WRITE)


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """The lines of rows, and how many rows their statements must find or insert."""

    lines: tuple[str, ...]
    row_count: int


def write_rows(way: RowsWay, table: RowTable, rows: Iterable[RowChange]) -> WrittenRows:
    """Write the rows of one event. Raises CannotRender."""
    lines: list[str] = []
    count = 0
    head: str | None = None
    values: list[str] = []
    for row in reversed(tuple(rows)) if way.is_undo else rows:
        statement = way.statement(table, row)
        if statement is None:
            continue
        count += 1
        image = way.inserted(row)
        is_lenient = needs_lenience(table, row)
        if image is not None and not is_lenient:
            its_head = insert_head(table, image)
            if its_head != head:
                lines += insert_lines(head, values)
                head, values = its_head, []
            values.append(statement[len(its_head) : -1])
            continue
        lines += insert_lines(head, values)
        head, values = None, []
        if is_lenient:
            lines.append(f"SET sql_mode = '{LENIENT_SQL_MODE}';")
            lines.append(statement + COUNT)
            lines.append(f"SET sql_mode = '{SQL_MODE}';")
        else:
            lines.append(statement + COUNT)
    lines += insert_lines(head, values)
    return WrittenRows(tuple(lines), count)


def insert_lines(head: str | None, values: list[str]) -> Iterator[str]:
    """Yield the lines of the statements that insert rows: `head` is up to VALUES."""
    if not values:
        return
    assert head is not None
    rows = ROW_BETWEEN.join(values)
    if len(rows) <= INSERT_CHARACTERS_MAX:
        yield _insert(head, rows, len(values))
        return
    first = characters = 0
    for at, row in enumerate(values):
        characters += len(row) + (len(ROW_BETWEEN) if at > first else 0)
        if at > first and characters > INSERT_CHARACTERS_MAX:
            yield _insert(head, ROW_BETWEEN.join(values[first:at]), at - first)
            first, characters = at, len(row)
    yield _insert(head, ROW_BETWEEN.join(values[first:]), len(values) - first)


def _insert(head: str, rows: str, count: int) -> str:
    return f"{head}{rows};{COUNT}" if count == 1 else f"{head.rstrip()}\n  {rows};{COUNT}"

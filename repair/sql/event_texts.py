"""Writes the rows of an event as SQL column by column, to the same text as row by row.

How it works
------------
`written_rows.write_rows` is the definition: it reads each value, decides for each row what it
needs, and joins the texts. For all rows of one event most of these decisions are the same. So they
are made once for a table, the kind of its event and the logged columns, and kept as a format with
one place for each column:

    DELETE FROM `d`.`t` WHERE `id` = %s AND %s AND `price` = %s;

The cells of an event (`split_images`) are turned by column, each column is written by its function
(`value_texts.cell_writer`), and the columns are turned back to rows that fill the format. A column
with a NULL in it has its whole condition in the format's place, because `a = NULL` finds nothing.

An UPDATE has a format for each set of changed columns. A column counts as changed if its bytes
differ. If two different values had the same text, the definition would decide (NotAlike).

Tables with many rows are written by generated functions (`row_functions`), and by column only where
these cannot.

What is not like that goes to the definition, as a whole event: differences of JSON values, an
UPDATE whose images do not have all columns, a DELETE of a row without a known key that is not
logged whole, and each value of `NotAlike`. So this file raises nothing and refuses nothing: the
definition finds the reason again. A test compares both on all kinds of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Final, TypeAlias

from binlog.cursor import MalformedBody
from binlog.event_types import RowKind
from binlog.rows.split_images import Cell, Cells, ImageSplitter
from binlog.rows.tables import RowTable
from binlog.rows.values import LoggedRows, ReadValue
from repair.sql.row_functions import ROWS_BEFORE_FUNCTIONS, RowFunctions, RowPiece, RowProgram
from repair.sql.row_literals import is_bytes
from repair.sql.row_sql import (
    SELF_SETTING,
    column_name,
    insert_of,
    searched_columns,
    table_name,
    written_columns,
)
from repair.sql.value_texts import NotAlike, WriteCells, cell_writer
from repair.sql.written_rows import (
    COUNT,
    RowsWay,
    WrittenRows,
    insert_lines,
    write_rows,
)

# Tables, kinds and logged columns whose formats are kept.
_SHAPES_MAX: Final = 256

_Column: TypeAlias = "Sequence[str | Cell]"


class EventTexts:
    """Writes the rows of events in one way. Keeps what it decided about each table.

    `rows_before_functions`: how many rows of a shape come before functions are made for it.
    """

    def __init__(
        self,
        way: RowsWay,
        read_value: ReadValue,
        *,
        rows_before_functions: int = ROWS_BEFORE_FUNCTIONS,
    ) -> None:
        self._way = way
        self._read_value = read_value
        self._rows_before_functions = rows_before_functions
        # The table is kept, so that no other object can get its id.
        self._shapes: dict[tuple[int, RowKind, bytes, bytes], tuple[RowTable, _Shape | None]] = {}

    def write(self, logged: LoggedRows) -> WrittenRows:
        """Write the rows of one event. Raises CannotRender, CorruptBinlog."""
        rows, table = logged.rows, logged.table
        key = (id(table), rows.kind, rows.columns_before, rows.columns_after)
        if key not in self._shapes:
            if len(self._shapes) >= _SHAPES_MAX:
                self._shapes.clear()
            shape = _shape(logged, self._way, self._read_value)
            if shape is not None:
                shape.rows_left = self._rows_before_functions
            self._shapes[key] = table, shape
        shape = self._shapes[key][1]
        if shape is not None and not rows.is_partial:
            try:
                written = shape.write(rows.images)
            except NotAlike:
                written = None
            if written is not None:
                return written
        return write_rows(self._way, table, logged.read(self._read_value).rows)


def _shape(logged: LoggedRows, way: RowsWay, read_value: ReadValue) -> _Shape | None:
    """Decide what the rows of a table have in common; None if the definition must write them."""
    table, rows = logged.table, logged.rows
    count = len(table.columns)
    present = [at for at in range(count) if rows.columns_before[at >> 3] >> (at & 7) & 1]
    written = list(written_columns(table))
    is_update = rows.kind is RowKind.UPDATE
    is_whole = set(written) <= set(present)
    if rows.column_count != count or not {*present}.intersection(written):
        return None
    if is_update and (rows.columns_before != rows.columns_after or len(present) < count):
        return None
    try:
        splitter = ImageSplitter([table.columns[at] for at in present])
        places = {at: place for place, at in enumerate(present)}
        writers = {at: cell_writer(table.columns[at], read_value) for at in present}
    except MalformedBody:
        return None
    shape = _Shape(table, way, rows.kind, splitter, places, writers, read_value)
    if way.inserts(rows.kind):
        return shape if is_whole or not way.is_undo else None
    has_key = bool(table.key) and set(table.key or ()) <= set(present)
    return shape if has_key or is_whole else None


@dataclass
class _Shape:
    """The rows of one table, kind and set of logged columns.

    `places` are the places of the logged columns in an image, `writers` their functions.
    """

    table: RowTable
    way: RowsWay
    kind: RowKind
    splitter: ImageSplitter
    places: dict[int, int]
    writers: dict[int, WriteCells]
    read_value: ReadValue
    rows_left: int = 0  # until functions are made
    _settings: dict[tuple[int, ...], str] = field(default_factory=dict)
    _functions: RowFunctions | None = None

    def write(self, images: bytes) -> WrittenRows | None:
        """Write the rows; None if the images are malformed. Raises NotAlike."""
        if self.kind is RowKind.UPDATE:
            return self._updates(images)
        texts = self._by_functions(images)
        if texts is None:
            return self._by_columns(images)
        if self.way.is_undo:
            texts.reverse()
        if self.way.inserts(self.kind):
            lines = tuple(insert_lines(self._insert_head, texts))
        else:
            lines = tuple(texts)
        return WrittenRows(("\n".join(lines),), len(texts))

    def _by_functions(self, images: bytes) -> list[str] | None:
        if self._functions is None:
            if self.rows_left > 0:
                return None
            columns = tuple(self.table.columns[at] for at in self.places)
            inserts = self.way.inserts(self.kind)
            pieces = tuple(self._inserted_pieces() if inserts else self._found_pieces())
            end = ")" if inserts else f"{self._limit};{COUNT}"
            self._functions = RowFunctions(RowProgram(columns, pieces, end), self.read_value)
        return self._functions.write(images)

    def _by_columns(self, images: bytes) -> WrittenRows | None:
        rows = self.splitter.split(images)
        if not rows:
            return None
        self.rows_left -= len(rows)
        if self.way.is_undo:
            rows.reverse()
        columns = self._columns(rows)
        if self.way.inserts(self.kind):
            lines = tuple(self._inserts(columns))
        else:
            lines = tuple(self._statement_ends(columns))
        return WrittenRows(("\n".join(lines),), len(rows))

    def _columns(self, rows: list[Cells]) -> dict[int, _Column]:
        """Return the literals of each logged column, by its number in the table."""
        return {at: self._column(at, rows) for at in self.places}

    def _column(self, at: int, rows: list[Cells]) -> _Column:
        place = self.places[at]
        return self.writers[at]([row[place] for row in rows])

    def _inserts(self, columns: dict[int, _Column]) -> Iterator[str]:
        wanted = self._inserted()
        row_format = f"({', '.join(['%s'] * len(wanted))})"
        values = [row_format % row for row in zip(*(columns[at] for at in wanted), strict=True)]
        yield from insert_lines(self._insert_head, values)

    def _inserted(self) -> list[int]:
        return [at for at in written_columns(self.table) if at in self.places]

    @cached_property
    def _insert_head(self) -> str:
        return insert_of(self.table, self._inserted())

    @property
    def _where(self) -> str:
        """The part of a statement before a condition: all of a DELETE."""
        if self.kind is RowKind.UPDATE:
            return " WHERE "
        return f"DELETE FROM {table_name(self.table)} WHERE "  # noqa: S608 - quoted

    @cached_property
    def _limit(self) -> str:
        return "" if searched_columns(self.table, frozenset(self.places))[0] else " LIMIT 1"

    def _inserted_pieces(self) -> Iterator[RowPiece]:
        for number, at in enumerate(self._inserted()):
            before = ", " if number else "("
            yield RowPiece(self.places[at], before, f"{before}NULL")

    def _found_pieces(self) -> Iterator[RowPiece]:
        """Yield the pieces of a condition: a key of text is compared twice, see `row_sql`."""
        has_key, searched = searched_columns(self.table, frozenset(self.places))
        before = self._where
        for at in searched:
            is_null = f"{before}{column_name(self.table, at)} IS NULL"
            for compared in self._compared(at, has_key=has_key):
                yield RowPiece(self.places[at], f"{before}{compared} = ", is_null)
                before, is_null = " AND ", ""

    def _compared(self, at: int, *, has_key: bool) -> list[str]:
        """Return what is compared with a value of a column: the column, its bytes, or both."""
        column, name = self.table.columns[at], column_name(self.table, at)
        is_key = has_key and at in (self.table.key or ())
        compared = [name] if is_key or not is_bytes(column) else []
        return compared + ([f"CAST({name} AS BINARY)"] if is_bytes(column) else [])

    def _statement_ends(self, columns: dict[int, _Column]) -> list[str]:
        """Return what finds each row, up to the end of its statement."""
        formats: list[str] = []
        filled: list[_Column] = []
        for at, one, is_null, width in self._searched:
            texts = columns[at]
            if "NULL" in texts:
                formats.append("%s")
                filled.append([is_null if t == "NULL" else one % ((t,) * width) for t in texts])
            else:
                formats.append(one)
                filled += [texts] * width
        whole = f"{_escaped(self._where)}{' AND '.join(formats)}{self._limit};{COUNT}"
        return [whole % row for row in zip(*filled, strict=True)]

    @cached_property
    def _searched(self) -> list[tuple[int, str, str, int]]:
        """Of each searched column: its format, its condition if it is NULL, and the places."""
        has_key, searched = searched_columns(self.table, frozenset(self.places))
        found = []
        for at in searched:
            compared = self._compared(at, has_key=has_key)
            one = " AND ".join(f"{_escaped(each)} = %s" for each in compared)
            found.append((at, one, f"{column_name(self.table, at)} IS NULL", len(compared)))
        return found

    def _updates(self, images: bytes) -> WrittenRows | None:
        """Write updates: the images of a row before and after it follow each other."""
        rows = self.splitter.split(images)
        if not rows or len(rows) % 2:
            return None
        self.rows_left -= len(rows)
        before, after = slice(0, None, 2), slice(1, None, 2)
        was, becomes = (after, before) if self.way.is_undo else (before, after)
        ends = self._by_functions(images)
        ends = self._statement_ends(self._columns(rows[was])) if ends is None else ends[was]
        pairs = [(at, self.places[at]) for at in written_columns(self.table)]
        changes = [
            tuple([at for at, place in pairs if old[place] != new[place]])
            for old, new in zip(rows[was], rows[becomes], strict=True)
        ]
        # Generated columns are not written; an ENUM's error value there, or damage, counts.
        unwritten = {at for at in self.places if self.table.columns[at].is_generated}
        wanted = unwritten.union(chain.from_iterable(changes))
        columns = {at: self._column(at, rows) for at in wanted}
        lines: list[str] = []
        for number, (changed, end) in enumerate(zip(changes, ends, strict=True)):
            if not changed:
                continue
            old, new = (2 * number + each.start for each in (was, becomes))
            if any(columns[at][old] == columns[at][new] for at in changed):
                raise NotAlike
            setting = self._settings.get(changed) or self._setting(changed)
            lines.append(setting % tuple([columns[at][new] for at in changed]) + end)
        if self.way.is_undo:
            lines.reverse()
        return WrittenRows(("\n".join(lines),) if lines else (), len(lines))

    def _setting(self, changed: tuple[int, ...]) -> str:
        """Return the format of an UPDATE that changes these columns, up to its condition."""
        if len(self._settings) >= _SHAPES_MAX:
            self._settings.clear()
        settings = []
        for at in written_columns(self.table):
            name = _escaped(column_name(self.table, at))
            if at in changed:
                settings.append(f"{name} = %s")
            elif self.table.columns[at].type_code in SELF_SETTING:
                settings.append(f"{name} = {name}")
        table = _escaped(table_name(self.table))
        self._settings[changed] = made = f"UPDATE {table} SET {', '.join(settings)}"  # noqa: S608 - quoted
        return made


def _escaped(text: str) -> str:
    return text.replace("%", "%%")

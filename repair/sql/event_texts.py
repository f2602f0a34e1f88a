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

What is not like that goes to the definition, as a whole event: differences of JSON values, an
UPDATE whose images do not have all columns, a DELETE of a row without a known key that is not
logged whole, and each value of `NotAlike`. So this file raises nothing and refuses nothing: the
definition finds the reason again. A test compares both on all kinds of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from binlog.cursor import MalformedBody
from binlog.event_types import RowKind
from binlog.rows.split_images import Cell, Cells, ImageSplitter
from binlog.rows.tables import RowColumn, RowTable
from binlog.rows.values import LoggedRows, ReadValue
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
    INSERT_CHARACTERS_MAX,
    ROW_BETWEEN,
    RowsWay,
    WrittenRows,
    insert_lines,
    insert_of_rows,
    write_rows,
)

# Tables, kinds and logged columns whose formats are kept.
_SHAPES_MAX: Final = 256

_Column: TypeAlias = "Sequence[str | Cell]"


@dataclass(frozen=True, slots=True)
class RowPiece:
    """A part of a row's text: a constant and the literal of a column, or another constant for NULL.

    `place` is the place of the column among the logged ones.
    """

    place: int
    before: str
    if_null: str


@dataclass(frozen=True, slots=True)
class RowProgram:
    """How each row of a shape is written: its pieces, then `end`; `between` stands between rows."""

    columns: tuple[RowColumn, ...]
    pieces: tuple[RowPiece, ...]
    end: str
    between: str
    is_backwards: bool


# Returns the text of the rows of an event and their number; None if a value is not plain.
WriteImages: TypeAlias = "Callable[[bytes], tuple[str, int] | None]"
# Compiles a program; None if a column of it has a type that is never plain.
Compile: TypeAlias = "Callable[[RowProgram], WriteImages | None]"


class EventTexts:
    """Writes the rows of events in one way. Keeps what it decided about each table.

    With `compiler`, rows that are inserted or deleted are written by compiled programs, where their
    values are plain.
    """

    def __init__(
        self, way: RowsWay, read_value: ReadValue, compiler: Compile | None = None
    ) -> None:
        self._way = way
        self._read_value = read_value
        self._compiler = compiler
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
            if shape is not None and self._compiler is not None:
                shape.compile(self._compiler)
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
    shape = _Shape(table, way, rows.kind, splitter, places, writers)
    if way.inserts(rows.kind):
        return shape if is_whole or not way.is_undo else None
    has_key = bool(table.key) and set(table.key or ()) <= set(present)
    return shape if has_key or is_whole else None


@dataclass(slots=True)
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
    _settings: dict[tuple[int, ...], str] = field(default_factory=dict)
    _compiled: WriteImages | None = None
    _searched: tuple[tuple[int, str, str, int], ...] = ()

    def compile(self, compiler: Compile) -> None:
        """Compile how rows are inserted or deleted."""
        if self.kind is RowKind.UPDATE:
            return
        inserts = self.way.inserts(self.kind)
        columns = tuple(self.table.columns[at] for at in self.places)
        pieces = tuple(self._inserted_pieces() if inserts else self._deleted_pieces())
        end = ")" if inserts else f"{self._limit()};{COUNT}"
        between = ROW_BETWEEN if inserts else "\n"
        self._compiled = compiler(RowProgram(columns, pieces, end, between, self.way.is_undo))

    def write(self, images: bytes) -> WrittenRows | None:
        """Write the rows; None if the images are malformed. Raises NotAlike."""
        if self._compiled is not None and (done := self._compiled(images)) is not None:
            text, count = done
            if not self.way.inserts(self.kind):
                return WrittenRows((text,), count)
            if count == 1 or len(text) <= INSERT_CHARACTERS_MAX:
                return WrittenRows((insert_of_rows(self._insert_head(), text, count),), count)
        rows = self.splitter.split(images)
        if not rows:
            return None
        if self.kind is RowKind.UPDATE:
            return self._updates(rows)
        if self.way.is_undo:
            rows.reverse()
        columns = self._columns(rows)
        if self.way.inserts(self.kind):
            lines = tuple(self._inserts(columns))
        else:
            delete = self._delete_head()
            lines = tuple([f"{delete}{where};{COUNT}" for where in self._conditions(columns)])
        return WrittenRows(("\n".join(lines),), len(rows))

    def _columns(self, rows: list[Cells]) -> dict[int, _Column]:
        """Return the literals of each logged column, by its number in the table."""
        cells = list(zip(*rows, strict=True))
        return {at: self.writers[at](cells[place]) for at, place in self.places.items()}

    def _inserts(self, columns: dict[int, _Column]) -> Iterator[str]:
        wanted = self._inserted()
        row_format = f"({', '.join(['%s'] * len(wanted))})"
        values = [row_format % row for row in zip(*(columns[at] for at in wanted), strict=True)]
        yield from insert_lines(self._insert_head(), values)

    def _inserted(self) -> list[int]:
        return [at for at in written_columns(self.table) if at in self.places]

    def _insert_head(self) -> str:
        return insert_of(self.table, self._inserted())

    def _delete_head(self) -> str:
        return f"DELETE FROM {table_name(self.table)} WHERE "  # noqa: S608 - quoted

    def _limit(self) -> str:
        return "" if searched_columns(self.table, frozenset(self.places))[0] else " LIMIT 1"

    def _inserted_pieces(self) -> Iterator[RowPiece]:
        for number, at in enumerate(self._inserted()):
            before = ", " if number else "("
            yield RowPiece(self.places[at], before, f"{before}NULL")

    def _deleted_pieces(self) -> Iterator[RowPiece]:
        """Yield the pieces of a condition: a key of text is compared twice, see `row_sql`."""
        has_key, searched = searched_columns(self.table, frozenset(self.places))
        before = self._delete_head()
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

    def _conditions(self, columns: dict[int, _Column]) -> list[str]:
        """Return the condition that finds each row: `row_sql.row_condition`."""
        if not self._searched:
            self._searched = tuple(self._conditions_of_columns())
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
        whole = " AND ".join(formats) + _escaped(self._limit())
        return [whole % row for row in zip(*filled, strict=True)]

    def _conditions_of_columns(self) -> Iterator[tuple[int, str, str, int]]:
        """Yield each searched column: its format, its condition if it is NULL, and the places."""
        has_key, searched = searched_columns(self.table, frozenset(self.places))
        for at in searched:
            compared = self._compared(at, has_key=has_key)
            one = " AND ".join(f"{_escaped(each)} = %s" for each in compared)
            yield at, one, f"{column_name(self.table, at)} IS NULL", len(compared)

    def _updates(self, rows: list[Cells]) -> WrittenRows | None:
        """Write updates: the images of a row before and after it follow each other."""
        if len(rows) % 2:
            return None
        before, after = rows[::2], rows[1::2]
        found, wanted = (after, before) if self.way.is_undo else (before, after)
        if self.way.is_undo:
            found.reverse()
            wanted.reverse()
        found_columns, wanted_columns = self._columns(found), self._columns(wanted)
        conditions = self._conditions(found_columns)
        written = tuple(written_columns(self.table))
        pairs = [(at, self.places[at]) for at in written]
        lines: list[str] = []
        for number, (old, new) in enumerate(zip(found, wanted, strict=True)):
            changed = tuple([at for at, place in pairs if old[place] != new[place]])
            if not changed:
                continue
            for at in changed:
                if found_columns[at][number] == wanted_columns[at][number]:
                    raise NotAlike
            setting = self._settings.get(changed) or self._setting(changed)
            values = tuple([wanted_columns[at][number] for at in changed])
            lines.append(f"{setting % values} WHERE {conditions[number]};{COUNT}")
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

"""Describes a transaction in one line: values of its first rows, beginnings of its statements."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from binlog.content.compare import Version
from binlog.errors import BinlogError
from binlog.event_types import RowKind
from binlog.events import Event
from binlog.rows.json_values import JsonDiffs, JsonDocument, json_text
from binlog.rows.value_text import diff_text
from binlog.rows.values import ABSENT, Image, RowChange, RowChanges, Value, rows_of_group
from binlog.scan import EventGroup
from binlog.transactions import Statement, TableChange
from topology.readings.hidden_passwords import without_secrets

_CHARACTERS_MAX: Final = 200
_VALUE_CHARACTERS_MAX: Final = 40
_PARTS_MAX: Final = 4
_DONE: Final = {
    RowKind.WRITE: "inserted",
    RowKind.UPDATE: "updated",
    RowKind.DELETE: "deleted",
}


def in_short(version: Version) -> str:
    """Return in one line what a transaction does; with few rows, include their values."""
    transaction = version.transaction
    if version.content.is_empty:
        return "nothing"
    parts = _rows(version.events) if version.events is not None else None
    if parts is None:
        parts = [_counted(table) for table in transaction.tables]
    parts += [_statement(each) for each in transaction.statements]
    if not parts:
        return version.content.unreadable or transaction.kind.value
    more = len(parts) - _PARTS_MAX
    return "; ".join(parts[:_PARTS_MAX]) + (f"; and {more} more" if more > 0 else "")


def first_rows(group: EventGroup, *, rows_max: int) -> tuple[str, ...]:
    """Return the first rows of a transaction, a line each. No further row is decoded.

    Raises CorruptBinlog for rows that cannot be read.
    """
    from binlog.adapters.row_decoder import RowDecoder  # it imports a driver's decoders

    return tuple(islice(_lines(rows_of_group(group, RowDecoder())), rows_max))


def shortened_statement(sql: str) -> str:
    """Return the beginning of a statement on one line, without passwords."""
    return _cut(" ".join(without_secrets(sql).split()), _CHARACTERS_MAX)


def _rows(group: EventGroup) -> list[str] | None:
    """Return a line for each row; None if the rows cannot be decoded."""
    from binlog.adapters.row_decoder import RowDecoder  # it imports a driver's decoders

    try:
        return list(_lines(rows_of_group(group, RowDecoder())))
    except BinlogError:
        return None  # the caller shows counts; the reason is reported where rows are decoded


def _lines(parts: Iterable[RowChanges | Event]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, RowChanges):
            for change in part.rows:
                yield _row(part, change)


def _row(part: RowChanges, change: RowChange) -> str:
    images = " → ".join(_image(image) for image in (change.before, change.after) if image)
    return f"{part.table.name}: {_DONE[part.kind]} {images}"


def _image(image: Image) -> str:
    text = ", ".join(_value(value) for value in image if value is not ABSENT)
    return f"({_cut(text, _CHARACTERS_MAX)})"


def _value(value: Value) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return _cut(repr(value.decode("utf-8", errors="backslashreplace")), _VALUE_CHARACTERS_MAX)
    if isinstance(value, JsonDocument):
        return _cut(json_text(value.root), _VALUE_CHARACTERS_MAX)
    if isinstance(value, JsonDiffs):
        return _cut(", ".join(map(diff_text, value.steps)), _VALUE_CHARACTERS_MAX)
    return _cut(str(value), _VALUE_CHARACTERS_MAX)


def _counted(table: TableChange) -> str:
    return f"{table.schema}.{table.table}: {', '.join(_counts(table))}"


def _counts(table: TableChange) -> Iterator[str]:
    counts = (table.rows_written, table.rows_updated, table.rows_deleted)
    for count, done in zip(counts, _DONE.values(), strict=True):
        if count:
            yield f"{count:,} {done}"


def _statement(statement: Statement) -> str:
    return shortened_statement(statement.sql)


def _cut(text: str, characters_max: int) -> str:
    return text if len(text) <= characters_max else text[:characters_max] + "…"

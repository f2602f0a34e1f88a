"""Writes the values of one column as SQL literals, many at a time.

1. The definition is `row_literals.literal`: the same text for every value. Values that are often
   repeated are looked up; the common types have a shorter way to the same text; a test compares
   them for every type. All other types are read and written by the definition itself.
2. NotAlike is raised for a value whose statement is not like that of its neighbours: the error
   value of an ENUM, a SET above the signed numbers, an integer that may have either sign. The
   caller then writes the event row by row, which also finds the reason of a value that cannot be
   written.
3. The shorter ways keep no more than MEMORY_CELLS_MAX texts of at most MEMORY_BYTES_MAX bytes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from binlog.cursor import MalformedBody
from binlog.quoting import quote_string
from binlog.rows.charsets import UTF8
from binlog.rows.images import (
    DATETIME2,
    DOUBLE,
    ENUM,
    FLOAT,
    NEWDECIMAL,
    SET,
    TIMESTAMP2,
)
from binlog.rows.split_images import Cell, cell_format
from binlog.rows.tables import INTEGERS, RowColumn
from binlog.rows.temporal import datetime_text, timestamp_text
from binlog.rows.values import ReadValue
from repair.sql.row_literals import CannotRender, literal

MEMORY_CELLS_MAX: Final = 4096
MEMORY_BYTES_MAX: Final = 64
_SIGNED_END = 1 << 63
_GROUP_DIGITS, _GROUP_BYTES = 9, 4
_SHORT_GROUPS = 2
DIGITS_TO_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_LENGTHS = {"B": 1, "H": 2, "3s": 3, "I": 4}
# DATETIME2 and TIMESTAMP2: the bytes before the fraction.
WHOLE_BYTES = {DATETIME2: 5, TIMESTAMP2: 4}
_FRACTION_DIGITS_MAX = 6
_DATETIME_ZERO = 1 << 39
_FLOATS = {FLOAT: struct.Struct("<f"), DOUBLE: struct.Struct("<d")}

# Returns the literals of the cells of one column, "NULL" for None; integers may stay integers.
WriteCells: TypeAlias = "Callable[[Sequence[Cell]], Sequence[str | Cell]]"
WriteCell: TypeAlias = "Callable[[bytes], str]"


class NotAlike(Exception):
    """A value whose row must be written on its own, or cannot be written."""


def cell_writer(column: RowColumn, read_value: ReadValue) -> WriteCells:
    """Return the function that writes the cells of a column (`split_images.Cell`)."""
    code, _ = cell_format(column)
    if column.type_code in INTEGERS and not code.endswith("s"):
        return _signed_or_unsigned if column.is_unsigned is None else _integers
    if is_moment(column) and column.metadata:
        return _with_fraction(column)
    if column.type_code == NEWDECIMAL or column.type_code in _FLOATS:
        return _each(value_writer(column, read_value))
    texts = remembered(column, read_value)
    return lambda cells: [texts[cell] for cell in cells]


def remembered(column: RowColumn, read_value: ReadValue) -> KnownTexts:
    """Return the texts of the values of a column, by their bytes without the length."""
    return (
        whole_seconds(column) if is_moment(column) else KnownTexts(value_writer(column, read_value))
    )


def value_writer(column: RowColumn, read_value: ReadValue) -> WriteCell:
    """Return the function that writes one value, by its bytes without the length."""
    write = _by_definition(column, read_value)
    if column.type_code == NEWDECIMAL:
        return _decimal(column, write)
    if column.type_code in _FLOATS:
        return _float(column, write)
    return _utf8(write) if column.is_string and column.charset in UTF8 else write


def _integers(cells: Sequence[Cell]) -> Sequence[str | Cell]:
    return _without_nulls(cells) if None in cells else cells


def _signed_or_unsigned(cells: Sequence[Cell]) -> Sequence[str | Cell]:
    if any(cell.__class__ is int and cell < 0 for cell in cells):
        raise NotAlike
    return _integers(cells)


def _without_nulls(cells: Iterable[Cell]) -> list[str | Cell]:
    return ["NULL" if cell is None else cell for cell in cells]


def _each(write: WriteCell) -> WriteCells:
    return lambda cells: [
        "NULL" if cell is None else write(cell)  # type: ignore[arg-type]  # bytes, by cell_format
        for cell in cells
    ]


class KnownTexts(dict["Cell", str]):
    """The texts of values that were written before, and how to write another one."""

    def __init__(self, write: WriteCell) -> None:
        super().__init__({None: "NULL"})
        self._write = write

    def __missing__(self, cell: bytes) -> str:
        text = self._write(cell)
        if len(cell) <= MEMORY_BYTES_MAX:
            if len(self) >= MEMORY_CELLS_MAX:
                self.clear()
                self[None] = "NULL"
            self[cell] = text
        return text


def _by_definition(column: RowColumn, read_value: ReadValue) -> WriteCell:
    """Return a function that reads a value and writes it, as row by row. Raises NotAlike."""
    code, has_length = cell_format(column)
    length_bytes = _LENGTHS[code] if has_length else 0

    def write(cell: bytes) -> str:
        raw = len(cell).to_bytes(length_bytes, "little") + cell if has_length else cell
        try:
            value = read_value(column, raw, is_partial=False)
            if column.type_code == ENUM and value == 0:
                raise NotAlike
            if column.type_code == SET and isinstance(value, int) and value >= _SIGNED_END:
                raise NotAlike
            return literal(column, value)
        except (MalformedBody, CannotRender) as error:
            raise NotAlike from error

    return write


def _utf8(otherwise: WriteCell) -> WriteCell:
    """Return the writer of text in UTF-8. ASCII is the same text in it, whatever its characters."""

    def write(cell: bytes) -> str:
        return quote_string(cell.decode("ascii")) if cell.isascii() else otherwise(cell)

    return write


def _float(column: RowColumn, otherwise: WriteCell) -> WriteCell:
    reader = _FLOATS[column.type_code]

    def write(cell: bytes) -> str:
        if len(cell) != reader.size:
            return otherwise(cell)
        [value] = reader.unpack(cell)
        if not math.isfinite(value):
            return otherwise(cell)
        text = repr(value)
        return text if "e" in text else text + "e0"

    return write


def is_moment(column: RowColumn) -> bool:
    """Return whether a column is a DATETIME(n) or TIMESTAMP(n), as servers since 5.6.4 log it."""
    return column.type_code in WHOLE_BYTES and column.metadata <= _FRACTION_DIGITS_MAX


def _with_fraction(column: RowColumn) -> WriteCells:
    """Return the writer of a DATETIME(n) or TIMESTAMP(n), whose whole seconds are remembered."""
    size, digits = WHOLE_BYTES[column.type_code], column.metadata
    stored_digits = (digits + 1) // 2 * 2
    end, unshown = 10**stored_digits, 10 ** (stored_digits - digits)
    whole = whole_seconds(column)

    def write(cells: Sequence[Cell]) -> Sequence[str | Cell]:
        known: list[bytes] = [cell for cell in cells if cell.__class__ is bytes]
        fractions = [int.from_bytes(cell[size:], "big") for cell in known]
        if fractions and max(fractions) >= end:
            raise NotAlike
        texts = [
            f"{whole[cell[:size]]}{fraction // unshown:0{digits}d}'"
            for cell, fraction in zip(known, fractions, strict=True)
        ]
        return texts if len(texts) == len(cells) else _between_nulls(cells, texts)

    return write


def whole_seconds(column: RowColumn) -> KnownTexts:
    """Return the quoted texts of whole seconds; with a fraction, up to its first digit.

    See `binlog.rows.temporal`.
    """
    end = "." if column.metadata else "'"

    def write(cell: bytes) -> str:
        number = int.from_bytes(cell, "big")
        if column.type_code == TIMESTAMP2:
            return f"'{timestamp_text(number)}{end}"
        if number < _DATETIME_ZERO:
            raise NotAlike
        return f"'{datetime_text(number - _DATETIME_ZERO)}{end}"

    return KnownTexts(write)


def _between_nulls(cells: Sequence[Cell], texts: Iterable[str]) -> list[str]:
    remaining = iter(texts)
    return ["NULL" if cell is None else next(remaining) for cell in cells]


def _decimal(column: RowColumn, otherwise: WriteCell) -> WriteCell:
    """Return the writer of a DECIMAL: groups of nine digits in four bytes each (decimal.cc).

    The highest bit is inverted, and so are all bits of a negative number. What no server writes (a
    group above its digits, a negative zero) is left to the definition.
    """
    scale = column.metadata & 0xFF
    whole, fraction = decimal_groups(column)
    size = sum(DIGITS_TO_BYTES[digits] for digits in (*whole, *fraction))
    bits = 8 * size
    top, mask = 1 << max(bits - 1, 0), (1 << bits) - 1
    parts: list[tuple[int, int, int]] = []  # of each group: its shift, its mask, its end
    left = bits
    for digits in (*whole, *fraction):
        width = 8 * DIGITS_TO_BYTES[digits]
        left -= width
        parts.append((left, (1 << width) - 1, 10**digits))
    of_whole, of_fraction = parts[: len(whole)], parts[len(whole) :]

    def write(cell: bytes) -> str:
        number = int.from_bytes(cell, "big")
        is_negative = not number & top
        number = (~number & mask if is_negative else number) ^ top
        units = fractions = 0
        for shift, part, end in of_whole:
            group = number >> shift & part
            if group >= end:
                return otherwise(cell)
            units = units * end + group
        for shift, part, end in of_fraction:
            group = number >> shift & part
            if group >= end:
                return otherwise(cell)
            fractions = fractions * end + group
        if is_negative and not units and not fractions:
            return otherwise(cell)
        sign = "-" if is_negative else ""
        return f"{sign}{units}.{fractions:0{scale}d}" if scale else f"{sign}{units}"

    if len(of_whole) != _SHORT_GROUPS or len(of_fraction) != 1:
        return write
    # DECIMAL(10 to 27, 1 to 9): two groups and one, most of which are positive.
    (high_shift, _, high_end), (low_shift, low_mask, low_end) = of_whole
    [(_, fraction_mask, fraction_end)] = of_fraction

    def write_short(cell: bytes) -> str:
        number = int.from_bytes(cell, "big") - top
        if number >= 0:
            high, low = number >> high_shift, number >> low_shift & low_mask
            fraction = number & fraction_mask
            if high < high_end and low < low_end and fraction < fraction_end:
                return f"{high * low_end + low}.{fraction:0{scale}d}"
        return write(cell)

    return write_short


def decimal_groups(column: RowColumn) -> tuple[list[int], list[int]]:
    """Return the digits of each group of a DECIMAL: those before the point, and those behind it."""
    precision, scale = column.metadata >> 8, column.metadata & 0xFF
    return _groups(precision - scale, is_whole=True), _groups(scale, is_whole=False)


def _groups(digits: int, *, is_whole: bool) -> list[int]:
    """Return the digits of each group: the short one stands farthest from the point."""
    full, rest = divmod(digits, _GROUP_DIGITS)
    groups = [_GROUP_DIGITS] * full
    short = [rest] if rest else []
    return short + groups if is_whole else groups + short

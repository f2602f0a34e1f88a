"""Reads single values of row images; uses mysql-replication's decoders where they are correct.

1. `_THEIRS` are the types that the library decodes (`mysql_replication_values`, imported for the
   first of them). Each was compared with SELECT on 5.6.24 and 9.7.4, with the lowest and highest
   values.
2. `_OURS` decodes all other types, with the reason beside each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from binlog.cursor import Cursor, MalformedBody
from binlog.rows.images import (
    BIT,
    BLOB,
    DOUBLE,
    ENUM,
    FLOAT,
    GEOMETRY,
    JSON,
    NEWDECIMAL,
    ONE_BYTE_LENGTH_MAX,
    SET,
    STRING,
    VAR_STRING,
    VARCHAR,
    VECTOR,
    char_length,
)
from binlog.rows.json_values import read_diffs, read_json
from binlog.rows.tables import INT24, LONG, LONGLONG, SHORT, TINY, RowColumn
from binlog.rows.temporal import READERS as TEMPORAL_READERS
from binlog.rows.values import Value
from binlog.schema.charset_names import BINARY

if TYPE_CHECKING:
    from binlog.adapters.mysql_replication_values import LibraryValues

_THEIRS = frozenset({TINY, SHORT, INT24, LONG, LONGLONG, FLOAT, DOUBLE, NEWDECIMAL, BIT})


class RowDecoder:
    """A `ReadValue`."""

    @cached_property
    def _their_values(self) -> LibraryValues:
        from binlog.adapters.mysql_replication_values import LibraryValues

        return LibraryValues()

    def __call__(self, column: RowColumn, raw: bytes, *, is_partial: bool) -> Value:
        """See `ReadValue`. An integer is read as signed if its signedness is unknown."""
        kind = column.type_code
        if kind in _THEIRS:
            is_unsigned = bool(column.is_unsigned)
            theirs = self._their_values.read(kind, column.metadata, raw, is_unsigned=is_unsigned)
            return _checked(kind, theirs)
        if kind == JSON:
            data = _behind_length(Cursor(raw), column.metadata)
            reader = read_diffs if is_partial else read_json
            return reader(data, self.read_decimal)
        cursor = Cursor(raw)
        if kind not in _OURS:
            raise cursor.fail(f"expected a column type, found {kind}")
        value = _OURS[kind](cursor, column.metadata)
        if cursor.remaining:
            raise cursor.fail(f"{cursor.remaining} bytes are left of a value")
        if kind == STRING and column.charset == BINARY:
            assert isinstance(value, bytes)
            # Field_string::pack drops trailing zeros of a BINARY(n); SELECT returns them.
            return value.ljust(char_length(column.metadata), b"\0")
        return value

    def read_decimal(self, data: bytes, precision: int, scale: int) -> Decimal:
        """Read a decimal inside a JSON document. Raises `MalformedBody`."""
        if not 0 < precision <= _PRECISION_MAX or scale > min(precision, _SCALE_MAX):
            raise MalformedBody(offset=0, what=f"a DECIMAL({precision},{scale})")
        metadata = precision << 8 | scale
        value = self._their_values.read(NEWDECIMAL, metadata, data, is_unsigned=False)
        assert isinstance(value, Decimal), "what they make of a NEWDECIMAL"
        return value


# DECIMAL_MAX_PRECISION, DECIMAL_MAX_SCALE, my_decimal.h; a JSON document may reach both limits.
_PRECISION_MAX, _SCALE_MAX = 81, 30


def _checked(kind: int, value: float | Decimal | str) -> Value:
    """Convert the library's value. A column cannot contain an infinity or NaN."""
    if kind == BIT:
        return int(str(value), 2)
    if isinstance(value, float) and not math.isfinite(value):
        raise MalformedBody(offset=0, what=f"expected a number, found {value}")
    return value


def _behind_length(cursor: Cursor, length_bytes: int) -> bytes:
    data = cursor.take(cursor.integer(length_bytes, "a length"), "a value")
    if cursor.remaining:
        raise cursor.fail(f"{cursor.remaining} bytes are left of a value")
    return data


def _number(cursor: Cursor, _metadata: int) -> int:
    return int.from_bytes(cursor.rest(), "little")


def _characters(cursor: Cursor, length_max: int) -> bytes:
    size = 2 if length_max > ONE_BYTE_LENGTH_MAX else 1
    return _behind_length(cursor, size)


def _char(cursor: Cursor, metadata: int) -> bytes:
    return _characters(cursor, char_length(metadata))


_OURS: Mapping[int, Callable[[Cursor, int], Value]] = MappingProxyType(
    {
        # The library returns None for zero dates; see binlog/rows/temporal.py.
        **TEMPORAL_READERS,
        # The library decodes text at once, and guesses the character set where it is not logged.
        # This loses the bytes that the repair SQL must contain.
        VARCHAR: _characters,
        VAR_STRING: _characters,
        STRING: _char,
        BLOB: _behind_length,
        # The library returns no number, and then 0 (an invalid member) cannot be distinguished
        # from ''.
        ENUM: _number,
        SET: _number,
        GEOMETRY: _behind_length,
        # The library does not support the type, and misreads a TABLE_MAP that contains it.
        VECTOR: _behind_length,
    }
)

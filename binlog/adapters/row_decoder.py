"""Reads single values of row images; uses mysql-replication's decoders where they are correct.

1. Only this file imports `pymysqlreplication`. It never uses that library's events, streams and
   GTID classes: `binlog.rows.values` cuts out a value's bytes, and the decoder receives only these.
2. The table `_FIELD_TYPES` lists the types that the library decodes. Each was compared with SELECT
   on 5.6.24 and 9.7.4, with the lowest and highest values. `_OURS` decodes all other types, with
   the reason beside each.
3. The library's decoder is a method of an event that reads from a packet. So `_Event` is an event
   without a body, and receives a packet of one value. If the decoder leaves bytes over, or needs
   more than there are, the value raises MalformedBody.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from io import BytesIO
from types import MappingProxyType
from typing import TypeAlias

from pymysqlreplication.column import Column
from pymysqlreplication.constants import BINLOG, FIELD_TYPE
from pymysqlreplication.packet import BinLogPacketWrapper
from pymysqlreplication.row_event import RowsEvent
from pymysqlreplication.table import Table

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

_FIELD_TYPES: Mapping[int, int] = MappingProxyType(
    {
        TINY: FIELD_TYPE.TINY,
        SHORT: FIELD_TYPE.SHORT,
        INT24: FIELD_TYPE.INT24,
        LONG: FIELD_TYPE.LONG,
        LONGLONG: FIELD_TYPE.LONGLONG,
        FLOAT: FIELD_TYPE.FLOAT,
        DOUBLE: FIELD_TYPE.DOUBLE,
        NEWDECIMAL: FIELD_TYPE.NEWDECIMAL,
        BIT: FIELD_TYPE.BIT,
    }
)
# The types of value that the library's decoder returns for these.
Theirs: TypeAlias = "int | Decimal | float | str"
_ALL_COLUMNS = b"\x01"
_NO_NULLS = b"\x00"


class _Packet(BinLogPacketWrapper):  # type: ignore[misc]  # the library has no types
    """The packet that the library's decoder reads: the bytes of one row of one column."""

    def __init__(self, value: bytes) -> None:  # the parent's reads an event's header from a socket
        self.read_bytes = 0
        self._BinLogPacketWrapper__data_buffer = b""
        self.packet = BytesIO(_NO_NULLS + value)


class _Event(RowsEvent):  # type: ignore[misc]  # the library has no types
    """The library's decoder, without an event's header and body."""

    def __init__(self) -> None:  # the parent's reads an event's body
        self.event_type = BINLOG.WRITE_ROWS_EVENT_V2
        self.table_id = 0

    def read(self, table: Table, value: bytes) -> Theirs:
        [column] = self.columns = table.columns
        self.table_map = {0: table}
        self.packet = _Packet(value)
        read = self._read_column_data(_ALL_COLUMNS)
        if self.packet.packet.read(1):
            raise ValueError("bytes are left over")
        found: Theirs = read[column.name]
        return found


class RowDecoder:
    """A `ReadValue`. Caches the library's description of each kind of column."""

    def __init__(self) -> None:
        self._event = _Event()
        self._tables: dict[tuple[int, int, bool], Table] = {}

    def __call__(self, column: RowColumn, raw: bytes, *, is_partial: bool) -> Value:
        """See `ReadValue`. An integer is read as signed if its signedness is unknown."""
        kind = column.type_code
        if kind in _FIELD_TYPES:
            described = self._describe(kind, column.metadata, is_unsigned=bool(column.is_unsigned))
            return _checked(kind, self._theirs(described, raw))
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
        described = self._describe(NEWDECIMAL, precision << 8 | scale, is_unsigned=False)
        value = self._theirs(described, data)
        assert isinstance(value, Decimal), "what they make of a NEWDECIMAL"
        return value

    def _theirs(self, table: Table, raw: bytes) -> Theirs:
        try:
            return self._event.read(table, raw)
        except (struct.error, ValueError, ArithmeticError, LookupError) as error:
            what = f"a value of {len(raw)} bytes that cannot be read: {error}"
            raise MalformedBody(offset=0, what=what) from error

    def _describe(self, kind: int, metadata: int, *, is_unsigned: bool) -> Table:
        """Return a table of one column, from which the library's decoder reads a row."""
        key = (kind, metadata, is_unsigned)
        if key not in self._tables:
            high, low = metadata >> 8, metadata & 0xFF
            column = Column(
                type=_FIELD_TYPES[kind],
                name="value",
                unsigned=is_unsigned,
                precision=high,
                decimals=low,
                bits=8 * high + low,
                bytes=high + (low > 0),
            )
            self._tables[key] = Table(0, "", "", [column], primary_key="")
        return self._tables[key]


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

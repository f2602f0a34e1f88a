"""Reads single values of row images, by mysql-replication's decoders where they are right.

1. The one place that imports `pymysqlreplication`. Its events, streams and GTID classes are never
   used: a value's bytes are cut out by `binlog.rows.values`, and its decoder is given these alone.
2. Which types it reads is the table `_THEIRS`; each was held against SELECT on 5.6.24 and 9.7.4,
   with the least and greatest values. All others are read by `_OURS`, and the reason is beside it.
3. Its decoder is one method of an event that reads from a packet, so there is an event without a
   packet here, which is handed a packet of one value. Whatever it leaves over, or asks for in vain,
   is MalformedBody.
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
from binlog.schema.charsets import BINARY

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
# What its decoder gives for these.
Theirs: TypeAlias = "int | Decimal | float | str"
_ALL_COLUMNS = b"\x01"
_NO_NULLS = b"\x00"


class _Packet(BinLogPacketWrapper):  # type: ignore[misc]  # the library has no types
    """What their decoder reads from: the bytes of one row of one column."""

    def __init__(self, value: bytes) -> None:  # the parent's reads an event's head from a socket
        self.read_bytes = 0
        self._BinLogPacketWrapper__data_buffer = b""
        self.packet = BytesIO(_NO_NULLS + value)


class _Event(RowsEvent):  # type: ignore[misc]  # the library has no types
    """Their decoder, without the event around it."""

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
    """A `ReadValue`. Keeps the library's description of each kind of column it has met."""

    def __init__(self) -> None:
        self._event = _Event()
        self._tables: dict[tuple[int, int, bool], Table] = {}

    def __call__(self, column: RowColumn, raw: bytes, *, is_partial: bool) -> Value:
        """See `ReadValue`. An integer whose sign is not known is read as a signed one."""
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
            # Field_string::pack drops the zeros at the end of a BINARY(n), which SELECT shows.
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
        """Return the table of one column that their decoder is to read a row of."""
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


# DECIMAL_MAX_PRECISION, DECIMAL_MAX_SCALE, my_decimal.h; a JSON document may go to the end of both.
_PRECISION_MAX, _SCALE_MAX = 81, 30


def _checked(kind: int, value: float | Decimal | str) -> Value:
    """Make ours of their value. No column holds an infinity, nor what is no number."""
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
        # Theirs give None for zero dates; see `row_temporal`.
        **TEMPORAL_READERS,
        # Theirs decode text as they go, by a guess where the character set is not logged, and lose
        # the bytes that SQL has to give back.
        VARCHAR: _characters,
        VAR_STRING: _characters,
        STRING: _char,
        BLOB: _behind_length,
        # Theirs have no number, without which 0 (an invalid member) and '' are one.
        ENUM: _number,
        SET: _number,
        GEOMETRY: _behind_length,
        # Theirs do not know the type, and lose their way in a TABLE_MAP that has it.
        VECTOR: _behind_length,
    }
)

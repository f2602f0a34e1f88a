"""Reads values with mysql-replication's decoders: the only file that imports `pymysqlreplication`.

1. It never uses that library's events, streams and GTID classes: `binlog.rows.values` cuts out a
   value's bytes, and the decoder receives only these.
2. The library's decoder is a method of an event that reads from a packet. So `_Event` is an event
   without a body, and receives a packet of one value. If the decoder leaves bytes over, or needs
   more than there are, the value raises MalformedBody.
3. `row_decoder` imports this when it first needs it: most values of a script do not, and importing
   the library takes as long as writing 20,000 rows.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from io import BytesIO
from typing import TypeAlias

from pymysqlreplication.column import Column
from pymysqlreplication.constants import BINLOG
from pymysqlreplication.packet import BinLogPacketWrapper
from pymysqlreplication.row_event import RowsEvent
from pymysqlreplication.table import Table

from binlog.cursor import MalformedBody

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


class LibraryValues:
    """Reads values. Caches the library's description of each kind of column."""

    def __init__(self) -> None:
        self._event = _Event()
        self._tables: dict[tuple[int, int, bool], Table] = {}

    def read(self, kind: int, metadata: int, raw: bytes, *, is_unsigned: bool) -> Theirs:
        """Read a value of a type that the library decodes. Raises MalformedBody."""
        table = self._describe(kind, metadata, is_unsigned=is_unsigned)
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
                type=kind,
                name="value",
                unsigned=is_unsigned,
                precision=high,
                decimals=low,
                bits=8 * high + low,
                bytes=high + (low > 0),
            )
            self._tables[key] = Table(0, "", "", [column], primary_key="")
        return self._tables[key]

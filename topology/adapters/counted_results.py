"""Reads the result of a statement: its columns and rows are counted before they become objects.

1. A row of NULLs has few bytes and becomes many objects. So each column, row and value counts some
   bytes against the limit of its answer (connection.py), about what Python needs for them.
2. A reading sends the same statements to every server, and most columns of an answer come with the
   same bytes each time. What these bytes describe is kept for all connections: SHOW REPLICA STATUS
   has 60 columns for one row. Only bytes that PyMySQL has parsed before, as a whole and in the same
   order, are not parsed again; anything else takes PyMySQL's own way.
3. Rows are parsed here: PyMySQL makes an object of each packet, and four calls for each value.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pymysql.connections import MySQLResult
from pymysql.protocol import MysqlPacket

if TYPE_CHECKING:  # the stubs name no method of it
    _Base: Any = MySQLResult
else:
    _Base = MySQLResult

COLUMNS_MAX: Final = 4096  # MySQL's own limit for a table: "Limits on Table Column Count"
# Measured with CPython 3.11: a dict and a tuple per row, an entry and a string per value.
ROW_BYTES: Final = 256
VALUE_BYTES: Final = 128
COLUMN_BYTES: Final = 1024  # the description of a column

Converter: TypeAlias = Callable[[Any], Any]

_EOF: Final = b"\xfe"  # also the length of a value above 16 MiB: the packet's length decides
# The first byte of a value: its length, NULL, or how many bytes of length follow ("Protocol Data
# Types" of the MySQL internals documentation).
_NULL: Final = 251
_BYTES_OF_LENGTH: Final = {252: 2, 253: 3, 254: 8}

# One answer's columns have at most this many bytes if they are kept: those of a reading have 5 KB.
_KEPT_BYTES_MAX: Final = 16 * 1024
_KEPT_MAX: Final = 256
# By the bytes of the packets and the connection's encoding: fields, converters and description.
_kept: dict[tuple[bytes, str], tuple[Any, Any, Any]] = {}


class CountedResult(_Base):  # type: ignore[misc]
    """A result whose columns and rows are counted before they become objects."""

    connection: Any
    fields: Any
    converters: Any
    description: Any

    def _get_descriptions(self) -> None:
        count = self.field_count
        if not 0 < (count or 0) <= COLUMNS_MAX:
            raise ValueError(f"a result of {count} columns")
        connection = self.connection
        connection.spend(count * COLUMN_BYTES)
        packets = connection.packets_ahead(count)
        key = packets, connection.encoding
        held = _kept.get(key)
        if held is None:
            super()._get_descriptions()
            if packets is not None and len(packets) <= _KEPT_BYTES_MAX:
                if len(_kept) >= _KEPT_MAX:
                    _kept.clear()
                _kept[key] = self.fields, self.converters, self.description
            return
        connection.pass_packets(packets, count)
        end = connection._read_packet()  # noqa: SLF001 - PyMySQL's
        assert end.is_eof_packet(), "the columns are followed by an EOF packet"
        self.fields, self.converters, self.description = held

    def _read_rowdata_packet(self) -> None:
        connection, converters = self.connection, self.converters
        bytes_of_row = ROW_BYTES + VALUE_BYTES * self.field_count
        rows = []
        while True:
            data = connection.next_payload()
            if data[:1] == _EOF and self._check_packet_is_eof(
                MysqlPacket(data, connection.encoding)
            ):
                break
            connection.spend(bytes_of_row)
            rows.append(_row(data, converters))
        self.connection = None
        self.affected_rows, self.rows = len(rows), tuple(rows)


def _row(data: bytes, converters: Sequence[tuple[str | None, Converter | None]]) -> tuple[Any, ...]:
    """Return the values of a row, as PyMySQL does: a short row has fewer values.

    Raises:
        ValueError: a value ends after the row, or its length has no known form.
    """
    row: list[Any] = []
    at, end = 0, len(data)
    for encoding, converter in converters:
        if at == end:
            break
        length = data[at]
        at += 1
        if length == _NULL:
            row.append(None)
            continue
        if length > _NULL:
            after = at + _BYTES_OF_LENGTH.get(length, end)
            length = int.from_bytes(data[at:after], "little")
            at = after
        value: Any = data[at : at + length]
        at += length
        if at > end:
            raise ValueError("a value ends after its row")
        if encoding is not None:
            value = value.decode(encoding)
        row.append(value if converter is None else converter(value))
    return tuple(row)

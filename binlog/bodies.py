"""Reads the body of each event type. The table at the end maps types to functions.

1. This file and binlog/rows/images.py contain all knowledge of the layout of bodies.
2. A function receives a cursor over exactly the body (no header, no checksum). It returns a value
   of `events` or raises `MalformedBody`. It never reads past the body, and every loop consumes
   bytes.
3. Comments cite the source file of mysql-server, and the version where versions differ.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from binlog.cursor import Cursor
from binlog.event_types import ROW_EVENTS, ROW_EVENTS_V1, ROWS_UPDATED, EventType
from binlog.events import (
    Body,
    ChecksumAlgorithm,
    FormatDescription,
    Heartbeat,
    Incident,
    Query,
    Rotate,
    Rows,
    RowsQuery,
    Stop,
    TableMap,
    TransactionPayload,
    XaPrepare,
    Xid,
)
from binlog.gtid_bodies import read_gtid, read_gtid_tagged, read_previous_gtids
from binlog.header import HEADER_BYTES, EventHeader
from binlog.rows.images import read_column_metadata

# Format_description_event, control_events.h: version (2), server version (50), created (4),
# header length (1), then one byte per event type, then from 5.6.1 on the checksum algorithm.
_SERVER_VERSION_BYTES = 50
_BINLOG_VERSION = 4
_CHECKSUM_SINCE = (5, 6, 1)
_QUERY_POST_HEADER_BYTES = 13


def version_tuple(text: str) -> tuple[int, ...]:
    """Return the numbers of `8.0.36-log` as (8, 0, 36); () for a version without a number."""
    numbers: list[int] = []
    for part in text.split("-", 1)[0].split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)


def read_format_description(cursor: Cursor, header: EventHeader) -> FormatDescription:
    """Read a format description. `cursor` includes its checksum: it marks the table's end."""
    binlog_version = cursor.integer(2, "the binlog version")
    if binlog_version != _BINLOG_VERSION:
        raise cursor.fail(f"expected binlog version {_BINLOG_VERSION}, found {binlog_version}")
    padded = cursor.take(_SERVER_VERSION_BYTES, "the server version")
    server_version = padded.split(b"\0", 1)[0].decode("ascii", errors="backslashreplace")
    created_at = cursor.integer(4, "the creation time")
    header_bytes = cursor.integer(1, "the header length")
    if header_bytes != HEADER_BYTES:
        raise cursor.fail(f"expected event headers of {HEADER_BYTES} bytes, found {header_bytes}")
    table = cursor.rest()
    checksum = ChecksumAlgorithm.UNDEFINED
    if version_tuple(server_version) >= _CHECKSUM_SINCE:
        # The description always has four bytes for a checksum, even if the algorithm is "none".
        if len(table) < EventType.FORMAT_DESCRIPTION + 5:
            raise cursor.fail("the event ends before its checksum algorithm")
        code = table[-5]
        if code not in (ChecksumAlgorithm.NONE, ChecksumAlgorithm.CRC32):
            raise cursor.fail(f"expected a checksum algorithm, found {code}")
        checksum = ChecksumAlgorithm(code)
        table = table[:-5]
    if len(table) < EventType.EXECUTE_LOAD_QUERY:  # the last one of 5.0.3
        raise cursor.fail(f"expected the lengths of 18 event types or more, found {len(table)}")
    return FormatDescription(
        binlog_version=binlog_version,
        server_version=server_version,
        created_at_seconds=created_at,
        checksum=checksum,
        post_header_bytes=table,
        is_in_use=header.is_in_use,
    )


def _rotate(cursor: Cursor, _header: EventHeader, _format: FormatDescription) -> Rotate:
    position = cursor.integer(8, "the next position")
    return Rotate(cursor.text(cursor.remaining, "the next file"), position)


def _query(cursor: Cursor, header: EventHeader, description: FormatDescription) -> Query:
    """Read a QUERY (Query_event::Query_event, statement_events.cpp).

    EXECUTE_LOAD_QUERY has a longer post-header.
    """
    thread_id = cursor.integer(4, "the thread id")
    execution_seconds = cursor.integer(4, "the execution time")
    schema_bytes = cursor.integer(1, "the length of the schema")
    error_code = cursor.integer(2, "the error code")
    variables_bytes = cursor.integer(2, "the length of the status variables")
    post_header = description.fixed_bytes(header.type_code)
    if post_header < _QUERY_POST_HEADER_BYTES:
        raise cursor.fail(f"expected a post-header of 13 bytes or more, found {post_header}")
    cursor.take(post_header - _QUERY_POST_HEADER_BYTES, "the rest of the post-header")
    variables, time_zone = _status_variables(cursor, variables_bytes)
    schema = cursor.text(schema_bytes, "the schema")
    if cursor.integer(1, "the zero after the schema") != 0:
        raise cursor.fail("expected a zero byte after the schema")
    charsets = variables.get(_CHARSET)
    explicit = variables.get(_EXPLICIT_DEFAULTS)
    return Query(
        thread_id=thread_id,
        execution_seconds=execution_seconds,
        error_code=error_code,
        schema=schema,
        sql=cursor.rest(),
        sql_mode=variables.get(_SQL_MODE),
        charset_client=charsets & 0xFFFF if charsets is not None else None,
        collation_server=charsets >> 32 if charsets is not None else None,
        explicit_defaults_for_timestamp=None if explicit is None else bool(explicit),
        status=tuple(sorted(variables.items())),
        time_zone=time_zone,
    )


# Query_event_status_vars, statement_events.h, of fixed size; _status_variables reads the others.
_SQL_MODE = 1
_CATALOG_ZERO = 2
_CHARSET = 4
_TIME_ZONE = 5
_CATALOG = 6
_INVOKER = 11
_UPDATED_SCHEMAS = 12
_EXPLICIT_DEFAULTS = 16
_STATUS_VARIABLE_BYTES: Mapping[int, int] = MappingProxyType(
    {
        0: 4,  # flags2
        _SQL_MODE: 8,
        3: 4,  # auto_increment_increment and _offset
        _CHARSET: 6,  # client, connection, server
        7: 2,  # lc_time_names
        8: 2,  # collation_database
        9: 8,  # table map for a multi-table update
        10: 4,  # original event size, in relay logs of 4.x sources
        13: 3,  # microseconds
        14: 8,  # a commit clock of 5.7 milestones
        15: 16,  # and its successor
        _EXPLICIT_DEFAULTS: 1,
        17: 8,  # XID of a recoverable DDL
        18: 2,  # default collation of utf8mb4
        19: 1,  # sql_require_primary_key
        20: 1,  # default_table_encryption
    }
)
# For more schemas than MAX_DBS_IN_EVENT_MTS, a server writes the number 254 and no names.
_UPDATED_SCHEMAS_MAX = 16


def _status_variables(cursor: Cursor, size: int) -> tuple[dict[int, int], str | None]:
    """Return the numbers and the time zone. An unknown code ends the block, as in the server."""
    block = Cursor(cursor.take(size, "the status variables"))
    found: dict[int, int] = {}
    time_zone = None
    while block.remaining:
        code = block.integer(1, "a status variable")
        if code in _STATUS_VARIABLE_BYTES:
            value = block.take(_STATUS_VARIABLE_BYTES[code], f"status variable {code}")
            found[code] = int.from_bytes(value, "little")
        elif code == _TIME_ZONE:
            time_zone = block.text(block.integer(1, "a length"), f"status variable {code}")
        elif code == _CATALOG:
            block.take(block.integer(1, "a length"), f"status variable {code}")
        elif code == _CATALOG_ZERO:  # 5.0.0 to 5.0.3: a zero byte follows the catalog
            length = block.integer(1, "a length")
            block.take(length + 1 if length else 0, "the catalog")
        elif code == _INVOKER:
            block.take(block.integer(1, "a length"), "the user")
            block.take(block.integer(1, "a length"), "the host")
        elif code == _UPDATED_SCHEMAS:
            count = block.integer(1, "the number of schemas")
            for _ in range(count if count <= _UPDATED_SCHEMAS_MAX else 0):
                _zero_terminated(block, "the name of a schema")
        else:
            break
    return found, time_zone


def _zero_terminated(cursor: Cursor, what: str) -> None:
    length = cursor.data.find(b"\0", cursor.at) - cursor.at
    if length < 0:
        raise cursor.fail(f"expected a zero byte after {what}")
    cursor.take(length + 1, what)


def _xid(cursor: Cursor, _header: EventHeader, _format: FormatDescription) -> Xid:
    return Xid(cursor.integer(8, "the XID"))


def _xa_prepare(cursor: Cursor, _header: EventHeader, _format: FormatDescription) -> XaPrepare:
    return XaPrepare(is_one_phase=cursor.integer(1, "the one-phase flag") != 0)


def _table_map(cursor: Cursor, _header: EventHeader, _format: FormatDescription) -> TableMap:
    """Read a TABLE_MAP (Table_map_event::Table_map_event, rows_event.cpp).

    The optional metadata is kept as bytes.
    """
    table_id = cursor.integer(6, "the table id")
    cursor.integer(2, "the flags")
    schema = cursor.text(cursor.integer(1, "a length"), "the schema")
    cursor.take(1, "the zero after the schema")
    table = cursor.text(cursor.integer(1, "a length"), "the table")
    cursor.take(1, "the zero after the table")
    types = cursor.take(cursor.net_integer("the number of columns"), "the column types")
    metadata = cursor.take(cursor.net_integer("the metadata length"), "the column metadata")
    return TableMap(
        table_id=table_id,
        schema=schema,
        table=table,
        column_types=types,
        column_metadata=read_column_metadata(types, Cursor(metadata)),
        nullable=cursor.take((len(types) + 7) // 8, "the bitmap of nullable columns"),
        optional_metadata=cursor.rest(),
    )


def _rows(cursor: Cursor, header: EventHeader, _format: FormatDescription) -> Rows:
    """Read a row event (Rows_event::Rows_event, rows_event.cpp)."""
    table_id = cursor.integer(6, "the table id")
    flags = cursor.integer(2, "the flags")
    if header.type_code not in ROW_EVENTS_V1:
        extra = cursor.integer(2, "the length of the extra row data")
        if extra < 2:  # noqa: PLR2004 - the length counts itself
            raise cursor.fail(f"expected a length of 2 or more, found {extra}")
        cursor.take(extra - 2, "the extra row data")
    columns = cursor.net_integer("the number of columns")
    bitmap_bytes = (columns + 7) // 8
    before = cursor.take(bitmap_bytes, "the bitmap of columns")
    kind = ROW_EVENTS[header.type_code]
    has_after = header.type_code in ROWS_UPDATED
    after = cursor.take(bitmap_bytes, "the bitmap of columns after") if has_after else b""
    return Rows(
        table_id=table_id,
        kind=kind,
        column_count=columns,
        columns_before=before,
        columns_after=after,
        images=cursor.rest(),
        is_partial=header.type_code == EventType.PARTIAL_UPDATE_ROWS,
        flags=flags,
    )


def _rows_query(cursor: Cursor, _header: EventHeader, _format: FormatDescription) -> RowsQuery:
    """Read a ROWS_QUERY. Its length byte is too small for a long text, so it is ignored."""
    cursor.integer(1, "the length")
    return RowsQuery(cursor.rest())


# Transaction_payload_event, control_events.h: OTW_PAYLOAD_…_FIELD; 0 ends the list.
_PAYLOAD_BYTES = 1
_PAYLOAD_COMPRESSION = 2
_PAYLOAD_UNCOMPRESSED_BYTES = 3
_PAYLOAD_FIELDS = frozenset({_PAYLOAD_BYTES, _PAYLOAD_COMPRESSION, _PAYLOAD_UNCOMPRESSED_BYTES})


def _payload(
    cursor: Cursor, _header: EventHeader, _format: FormatDescription
) -> TransactionPayload:
    """Read a payload (Transaction_payload::decode, codecs/binary.cpp): number, length, value."""
    fields: dict[int, int] = {}
    while (field := cursor.net_integer("a field number")) != 0:
        length = cursor.net_integer("a field length")
        value = Cursor(cursor.take(length, f"field {field}"))
        if field in _PAYLOAD_FIELDS:
            fields[field] = value.net_integer(f"field {field}")
    if _PAYLOAD_BYTES not in fields or _PAYLOAD_COMPRESSION not in fields:
        raise cursor.fail("expected the payload's size and compression type")
    payload = cursor.take(fields[_PAYLOAD_BYTES], "the payload")
    return TransactionPayload(
        compression_type=fields[_PAYLOAD_COMPRESSION],
        uncompressed_bytes=fields.get(_PAYLOAD_UNCOMPRESSED_BYTES),
        payload=payload,
    )


def _stop(_cursor: Cursor, _header: EventHeader, _format: FormatDescription) -> Stop:
    return Stop()


def _heartbeat(cursor: Cursor, header: EventHeader, _format: FormatDescription) -> Heartbeat:
    return Heartbeat(cursor.text(cursor.remaining, "the file"), header.end_log_pos)


def _heartbeat_v2(cursor: Cursor, _header: EventHeader, _format: FormatDescription) -> Heartbeat:
    """Read a HEARTBEAT_V2 (Heartbeat::decode, codecs/binary.cpp).

    Field 0 ends the list, 1 is the file, 2 the 64-bit position.
    """
    file, position = "", 0
    while cursor.remaining and (field := cursor.net_integer("a field number")) != 0:
        value = Cursor(cursor.take(cursor.net_integer("a field length"), f"field {field}"))
        if field == 1:
            file = value.text(value.remaining, "the file")
        elif field == 2:  # noqa: PLR2004
            position = value.net_integer("the position")
    return Heartbeat(file, position)


def _incident(cursor: Cursor, _header: EventHeader, _format: FormatDescription) -> Incident:
    number = cursor.integer(2, "the incident")
    return Incident(number, cursor.text(cursor.integer(1, "a length"), "the message"))


BodyReader = Callable[[Cursor, EventHeader, FormatDescription], Body]

# FORMAT_DESCRIPTION is missing: these functions need a description, so the decoder reads it first.
BODY_READERS: Mapping[int, BodyReader] = MappingProxyType(
    {
        EventType.QUERY: _query,
        EventType.EXECUTE_LOAD_QUERY: _query,
        EventType.STOP: _stop,
        EventType.ROTATE: _rotate,
        EventType.XID: _xid,
        EventType.XA_PREPARE: _xa_prepare,
        EventType.TABLE_MAP: _table_map,
        **dict.fromkeys(ROW_EVENTS, _rows),
        EventType.ROWS_QUERY: _rows_query,
        EventType.TRANSACTION_PAYLOAD: _payload,
        EventType.GTID: read_gtid,
        EventType.ANONYMOUS_GTID: read_gtid,
        EventType.GTID_TAGGED: read_gtid_tagged,
        EventType.PREVIOUS_GTIDS: read_previous_gtids,
        EventType.HEARTBEAT: _heartbeat,
        EventType.HEARTBEAT_V2: _heartbeat_v2,
        EventType.INCIDENT: _incident,
    }
)

"""Reads the events with GTIDs: GTID (33) and anonymous (34), tagged (42), PREVIOUS_GTIDS (35).

GTID and anonymous events have a fixed layout to which later server versions appended fields. A
tagged event (8.3 and later) is one message of MySQL's serialization library: numbered fields in
ascending order.
"""

from uuid import UUID

from binlog.cursor import Cursor
from binlog.event_types import EventType
from binlog.events import FormatDescription, GtidLog, PreviousGtids
from binlog.header import EventHeader
from gtid import Gtid, GtidError, Tsid
from gtid import binary as gtid_binary


def read_gtid(cursor: Cursor, header: EventHeader, _format: FormatDescription) -> GtidLog:
    """Read a GTID or anonymous event (Gtid_event::Gtid_event, control_events.cpp)."""
    cursor.integer(1, "the GTID flags")
    uuid = UUID(bytes=cursor.take(16, "the UUID"))
    gno = cursor.integer(8, "the GNO")
    gtid = None
    if header.type_code == EventType.GTID:
        gtid = _make_gtid(cursor, uuid=uuid, tag="", gno=gno)
    # 5.6 ends here. 5.7.4 and earlier have another clock type, and fields that no reader needs.
    if not cursor.remaining or cursor.integer(1, "the clock type") != 2:  # noqa: PLR2004
        return GtidLog(gtid)
    last_committed = cursor.integer(8, "last_committed")
    sequence_number = cursor.integer(8, "sequence_number")
    if cursor.remaining < 7:  # noqa: PLR2004 - 5.7: no commit timestamps
        return GtidLog(gtid, last_committed, sequence_number)
    immediate, original = _pair(cursor, 7, "the commit timestamp")
    length = cursor.net_integer("the transaction length") if cursor.remaining else None
    immediate_version = original_version = None
    if cursor.remaining >= 4:  # noqa: PLR2004 - 8.0.14 and later
        immediate_version, original_version = _pair(cursor, 4, "the server version")
    return GtidLog(
        gtid=gtid,
        logical_last_committed=last_committed,
        logical_sequence_number=sequence_number,
        original_commit_timestamp=original,
        immediate_commit_timestamp=immediate,
        transaction_bytes=length,
        original_server_version=original_version,
        immediate_server_version=immediate_version,
    )


def _pair(cursor: Cursor, count: int, what: str) -> tuple[int, int]:
    """Read immediate and original: if the highest bit of the first is set, a second follows."""
    immediate = cursor.integer(count, what)
    differs = 1 << (8 * count - 1)
    if not immediate & differs:
        return immediate, immediate
    return immediate - differs, cursor.integer(count, f"{what} of the origin")


# Gtid_event::define_fields, control_events.h: the number of each field in the message.
_TAGGED_FLAGS, _TAGGED_UUID, _TAGGED_GNO, _TAGGED_TAG = range(4)
_TAGGED_LAST_FIELD = 11
_TAGGED_SIGNED = frozenset({_TAGGED_GNO, 4, 5})


def read_gtid_tagged(cursor: Cursor, _header: EventHeader, _format: FormatDescription) -> GtidLog:
    """Read one serialization message: version, size, last field a reader must know, then fields.

    This is the format of 9.7.4. The UUID is sixteen variable-length integers, so 0xaa takes two
    bytes. The version and the field numbers are variable-length, too (one byte, twice the number).
    """
    version = cursor.varlen_unsigned("the serialization version")
    if version != 1:
        raise cursor.fail(f"expected serialization version 1, found {version}")
    size = cursor.varlen_unsigned("the message size")
    if size != cursor.end:
        raise cursor.fail(f"expected a message of {cursor.end} bytes, found one of {size}")
    required = cursor.varlen_unsigned("the last field that must be known")
    if required > _TAGGED_LAST_FIELD:
        raise cursor.fail(f"field {required} must be understood and is not known")
    uuid, tag = b"", ""
    numbers: dict[int, int] = {}
    previous = -1
    while cursor.remaining:
        field = cursor.varlen_unsigned("a field number")
        if field <= previous:
            raise cursor.fail(f"expected a field after {previous}, found {field}")
        previous = field
        if field > _TAGGED_LAST_FIELD:
            break  # a newer server wrote this field, and `required` allows to ignore it
        if field == _TAGGED_UUID:
            uuid = _uuid_bytes(cursor)
        elif field == _TAGGED_TAG:
            tag = cursor.text(cursor.varlen_unsigned("the tag length"), "the tag")
        elif field in _TAGGED_SIGNED:
            numbers[field] = cursor.varlen_signed(f"field {field}")
        else:
            numbers[field] = cursor.varlen_unsigned(f"field {field}")
    if not uuid or _TAGGED_GNO not in numbers:
        raise cursor.fail("the message has no UUID or no GNO")
    immediate, immediate_version = numbers.get(6), numbers.get(9)
    return GtidLog(
        gtid=_make_gtid(cursor, uuid=UUID(bytes=uuid), tag=tag, gno=numbers[_TAGGED_GNO]),
        logical_last_committed=numbers.get(4),
        logical_sequence_number=numbers.get(5),
        original_commit_timestamp=numbers.get(7, immediate),
        immediate_commit_timestamp=immediate,
        transaction_bytes=numbers.get(8),
        original_server_version=numbers.get(10, immediate_version),
        immediate_server_version=immediate_version,
    )


def _uuid_bytes(cursor: Cursor) -> bytes:
    values = [cursor.varlen_unsigned("a byte of the UUID") for _ in range(16)]
    if max(values) > 0xFF:  # noqa: PLR2004
        raise cursor.fail(f"expected a byte of the UUID, found {max(values)}")
    return bytes(values)


def _make_gtid(cursor: Cursor, *, uuid: UUID, tag: str, gno: int) -> Gtid:
    try:
        return Gtid(Tsid(uuid, tag), gno)
    except GtidError as error:
        raise cursor.fail(f"expected a GTID: {error}") from error


def read_previous_gtids(
    cursor: Cursor, _header: EventHeader, _format: FormatDescription
) -> PreviousGtids:
    """Read an encoded GTID set; `gtid.binary` decodes its versions."""
    try:
        return PreviousGtids(gtid_binary.decode(cursor.rest()))
    except GtidError as error:
        raise cursor.fail(f"expected an encoded GTID set: {error}") from error

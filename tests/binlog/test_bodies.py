"""Bodies by hand: each event type's layout, and what is said of bytes that do not follow it."""

from __future__ import annotations

import struct

import pytest

from binlog.decode import PAYLOAD_BYTES_MAX, events_in_payload
from binlog.errors import CorruptBinlog
from binlog.event_types import EventType
from binlog.events import (
    Event,
    Heartbeat,
    Incident,
    Opaque,
    Query,
    Rotate,
    RowsQuery,
    Stop,
    TransactionPayload,
    XaPrepare,
    Xid,
)
from tests.binlog.builders import (
    MAGIC,
    Log,
    body_of,
    decode,
    event,
    failure,
    payload_body,
    query_body,
)


def test_small_bodies() -> None:
    assert body_of(EventType.STOP, b"") == Stop()
    assert body_of(EventType.XA_PREPARE, b"\1" + bytes(12)) == XaPrepare(is_one_phase=True)
    assert body_of(EventType.ROTATE, struct.pack("<Q", 2**40) + b"next") == Rotate("next", 2**40)
    assert body_of(EventType.INCIDENT, b"\1\0\4lost") == Incident(1, "lost")
    assert body_of(EventType.ROWS_QUERY, b"\1SELECT 1") == RowsQuery(b"SELECT 1")
    assert body_of(EventType.INTVAR, b"\2" + bytes(8)) == Opaque(b"\2" + bytes(8))
    beat = body_of(EventType.HEARTBEAT, b"log.000001")
    assert isinstance(beat, Heartbeat)
    assert beat.file == "log.000001"


def test_heartbeats_of_both_forms() -> None:
    position = 2**33 + 5
    body = b"\1\3log\2\x09\xfe" + struct.pack("<Q", position) + b"\7\1x\0"
    assert body_of(EventType.HEARTBEAT_V2, body) == Heartbeat("log", position)
    assert body_of(EventType.HEARTBEAT_V2, b"") == Heartbeat("", 0)


def test_a_payload_in_three_fields_and_more() -> None:
    known = b"\2\3\xfc\xff\0" + b"\3\1\7" + b"\1\1\2"
    payload = TransactionPayload(compression_type=255, uncompressed_bytes=7, payload=b"ab")
    assert body_of(EventType.TRANSACTION_PAYLOAD, known + b"\x09\1x" + b"\0ab") == payload
    log = Log()
    log.add(EventType.TRANSACTION_PAYLOAD, b"\1\1\2\0ab")
    assert "expected the payload's size and compression type" in failure(bytes(log)).what
    log = Log()
    log.add(EventType.TRANSACTION_PAYLOAD, b"\xfb")
    assert "as a length-encoded integer, found byte 251" in failure(bytes(log)).what


# ---- statements


def status_variables(*pieces: bytes) -> object:
    return body_of(EventType.QUERY, query_body("SELECT 1", variables=b"".join(pieces)))


def test_status_variables_of_every_kind() -> None:
    """Codes and sizes: Query_event_status_vars, statement_events.h."""
    query = status_variables(
        b"\0" + bytes(4),
        b"\1" + struct.pack("<Q", 0x200000),
        b"\2\3std\0",
        b"\2\0",
        b"\3" + bytes(4),
        b"\4" + struct.pack("<HHH", 45, 33, 8),
        b"\5\6SYSTEM",
        b"\6\3std",
        b"\7\1\0",
        b"\x08\1\0",
        b"\x09" + bytes(8),
        b"\x0a" + bytes(4),
        b"\x0b\4root\x09localhost",
        b"\x0c\2d\0e\0",
        b"\x0c\xfe",
        b"\x0d" + bytes(3),
        b"\x0e" + bytes(8),
        b"\x0f" + bytes(16),
        b"\x10\1",
        b"\x11" + bytes(8),
        b"\x12\xff\0",
        b"\x13\0",
        b"\x14\0",
        b"\xc8whatever a later server adds ends the block",
    )
    assert isinstance(query, Query)
    assert (query.sql, query.schema) == (b"SELECT 1", "d")
    assert (query.sql_mode, query.charset_client) == (0x200000, 45)
    assert (query.thread_id, query.execution_seconds) == (5, 1)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (query_body("x", variables=b"\6\x09std"), "expected status variable 6 of 9 bytes"),
        (query_body("x", variables=b"\x0c\1no end"), "expected a zero byte after"),
        (query_body("x")[:12], "expected the length of the status variables"),
        (query_body("x", schema="")[:13] + b"notzero", "expected a zero byte after the schema"),
        (query_body("x")[:11] + b"\xff\xff" + b"d\0x", "expected the status variables of 65535"),
    ],
)
def test_statements_that_are_not(body: bytes, what: str) -> None:
    log = Log()
    at = log.add(EventType.QUERY, body)
    error = failure(bytes(log))
    assert what in error.what
    assert f"QUERY event at {at}" in error.what
    assert at + 19 <= error.position <= len(bytes(log))


def test_a_description_that_shortens_statements_is_not_believed() -> None:
    body = struct.pack("<H50sIB", 4, b"9.7.4", 0, 19) + bytes(42) + b"\0"
    data = MAGIC + event(EventType.FORMAT_DESCRIPTION, body)
    data += event(EventType.QUERY, query_body("x"), checksum=False)
    assert "expected a post-header of 13 bytes or more, found 0" in failure(data).what


def test_load_data_has_a_longer_post_header() -> None:
    plain = query_body("LOAD DATA")
    query = body_of(EventType.EXECUTE_LOAD_QUERY, plain[:13] + bytes(13) + plain[13:])
    assert isinstance(query, Query)
    assert query.sql == b"LOAD DATA"


# ---- payloads


def payload_event(content: bytes, *, compression: int = 0, size: int = 0) -> Event:
    log = Log(checksum=False)
    body = payload_body(content, compression=compression, uncompressed_bytes=size)
    log.add(EventType.TRANSACTION_PAYLOAD, body)
    return decode(bytes(log))[-1]


def test_a_payload_is_opened_with_what_is_given() -> None:
    inner = event(EventType.XID, bytes(8), checksum=False)
    asked: list[tuple[bytes, int]] = []

    def decompress(data: bytes, bytes_max: int) -> bytes:
        asked.append((data, bytes_max))
        return inner

    outer = payload_event(b"compressed", size=len(inner))
    description = decode(bytes(Log(checksum=False)))[0].body
    found = events_in_payload(outer, description=description, decompress=decompress)  # type: ignore[arg-type]
    assert found is not None
    [xid] = found
    assert xid.body == Xid(0)
    assert (xid.start, xid.end) == (outer.start, outer.end)
    assert asked == [(b"compressed", len(inner))]
    assert events_in_payload(outer, description=None, decompress=None) is None
    unknown = payload_event(b"x", compression=9)
    assert events_in_payload(unknown, description=None, decompress=decompress) is None


@pytest.mark.parametrize("size", [b"", b"\3\x09\xfe" + struct.pack("<Q", 2**40)])
def test_what_a_payload_says_of_its_size_is_no_leave_to_take_more(size: bytes) -> None:
    log = Log(checksum=False)
    log.add(EventType.TRANSACTION_PAYLOAD, b"\2\1\0" + size + b"\1\1\2\0ab")
    asked: list[int] = []

    def decompress(_data: bytes, bytes_max: int) -> bytes:
        asked.append(bytes_max)
        return b""

    found = events_in_payload(decode(bytes(log))[-1], description=None, decompress=decompress)
    assert found is not None
    assert list(found) == []
    assert asked == [PAYLOAD_BYTES_MAX]


def refuse(_data: bytes, _bytes_max: int) -> bytes:
    raise ValueError("not a frame")


def test_payloads_that_cannot_be() -> None:
    with pytest.raises(CorruptBinlog, match="cannot be decompressed: not a frame"):
        events_in_payload(payload_event(b"x"), description=None, decompress=refuse)
    for content, what in (
        (bytes(5), "5 bytes are left"),
        (bytes(19), "claims a length of 0"),
        (event(EventType.XID, bytes(8))[:-1], "claims a length of 31"),
    ):
        outer = payload_event(content, compression=255)
        found = events_in_payload(outer, description=None, decompress=None)
        assert found is not None
        with pytest.raises(CorruptBinlog, match=what):
            list(found)

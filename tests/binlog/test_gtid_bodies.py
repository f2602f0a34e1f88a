"""GTID events of every generation, from bytes; the tagged one is 9.7.4's own."""

from __future__ import annotations

import struct

import pytest

from binlog.cursor import Cursor, MalformedBody
from binlog.errors import CorruptBinlog
from binlog.event_types import EventType
from binlog.events import GtidLog, PreviousGtids
from binlog.scan import scan_events
from gtid import Gtid, GtidSet
from tests.binlog.builders import UUID_A, Log, gtid_body

# The body of event 42 for `SET gtid_next='aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaff:dba:7'` on 9.7.4.
TAGGED = bytes.fromhex(
    "02820000000" + "2" + "a902" * 15 + "fd03" + "041c" + "0606646261" + "0820" + "0a24"
    "0c7f7b85af01bb6006" + "107104" + "1283120b"
)


def read(kind: EventType, body: bytes) -> object:
    log = Log()
    log.add(kind, body)
    return list(scan_events([bytes(log)], file="log"))[-1].body


def complaint(kind: EventType, body: bytes) -> str:
    with pytest.raises(CorruptBinlog) as caught:
        read(kind, body)
    return caught.value.what


def clock(last: int, number: int) -> bytes:
    return b"\2" + struct.pack("<QQ", last, number)


def test_each_generation_appended_fields() -> None:
    gtid = Gtid.parse(f"{UUID_A}:5")
    since_56 = gtid_body(5)
    since_57 = since_56 + clock(3, 4)
    since_801 = since_57 + (1000).to_bytes(7, "little")
    since_802 = since_801 + b"\xfc\x2c\x01"
    since_8014 = since_802 + struct.pack("<I", 80014)
    assert read(EventType.GTID, since_56) == GtidLog(gtid)
    assert read(EventType.GTID, since_56 + b"\1" + bytes(8)) == GtidLog(gtid)  # before 5.7.5
    assert read(EventType.GTID, since_57) == GtidLog(gtid, 3, 4)
    assert read(EventType.GTID, since_801) == GtidLog(gtid, 3, 4, 1000, 1000)
    assert read(EventType.GTID, since_802) == GtidLog(gtid, 3, 4, 1000, 1000, 300)
    assert read(EventType.GTID, since_8014) == GtidLog(gtid, 3, 4, 1000, 1000, 300, 80014, 80014)


def test_a_replica_tells_origin_from_immediate_source() -> None:
    body = gtid_body(5) + clock(3, 4)
    body += (2000 + 2**55).to_bytes(7, "little") + (1000).to_bytes(7, "little") + b"\x64"
    body += struct.pack("<II", 90704 + 2**31, 80036)
    found = read(EventType.GTID, body)
    assert isinstance(found, GtidLog)
    assert (found.original_commit_timestamp, found.immediate_commit_timestamp) == (1000, 2000)
    assert (found.original_server_version, found.immediate_server_version) == (80036, 90704)


def test_an_anonymous_transaction_has_no_gtid() -> None:
    body = b"\0" + bytes(24) + clock(0, 1)
    assert read(EventType.ANONYMOUS_GTID, body) == GtidLog(None, 0, 1)


def test_numbers_out_of_range() -> None:
    assert "expected a GTID" in complaint(EventType.GTID, gtid_body(0))
    assert "expected a GTID" in complaint(EventType.GTID, gtid_body(2**63 - 1))
    assert "expected the GNO of 8 bytes" in complaint(EventType.GTID, bytes(20))


def test_tagged_as_9_7_writes_it() -> None:
    assert read(EventType.GTID_TAGGED, TAGGED) == GtidLog(
        gtid=Gtid.parse(f"{UUID_A}:dba:7"),
        logical_last_committed=8,
        logical_sequence_number=9,
        original_commit_timestamp=0x6_60BB_01AF_857B,
        immediate_commit_timestamp=0x6_60BB_01AF_857B,
        transaction_bytes=284,
        original_server_version=90704,
        immediate_server_version=90704,
    )


def varlen(value: int) -> bytes:
    """The shortest form: n trailing ones, a zero, the bits."""
    more = max(0, (value.bit_length() - 1) // 7)
    if more >= 8:
        return b"\xff" + value.to_bytes(8, "little")
    return (value << (more + 1) | (1 << more) - 1).to_bytes(more + 1, "little")


def message(*fields: tuple[int, bytes], required: int = 0, version: int = 1) -> bytes:
    content = b"".join(varlen(number) + data for number, data in fields)
    head = varlen(version)
    size = len(head) + 1 + len(varlen(required)) + len(content)
    assert size < 128
    return head + varlen(size) + varlen(required) + content


UUID_FIELD = (1, b"".join(varlen(byte) for byte in UUID_A.bytes))
GNO_FIELD = (2, varlen(7 << 1))


@pytest.mark.parametrize(
    "value", [0, 1, 127, 128, 2**14 - 1, 2**14, 2**49, 2**56 - 1, 2**56, 2**63, 2**64 - 1]
)
def test_variable_length_integers(value: int) -> None:
    assert Cursor(varlen(value)).varlen_unsigned("n") == value
    with pytest.raises(MalformedBody):
        Cursor(varlen(value)[:-1]).varlen_unsigned("n")


@pytest.mark.parametrize("value", [0, 1, -1, 65535, -65535, -65536, 2**62, -(2**63)])
def test_signed_integers(value: int) -> None:
    coded = value << 1 if value >= 0 else -(value + 1) << 1 | 1
    assert Cursor(varlen(coded)).varlen_signed("n") == value


def test_the_documented_examples_of_variable_length_integers() -> None:
    """libs/mysql/serialization/readme.md, printed there with the highest byte first."""
    assert Cursor(bytes.fromhex("fbff07")).varlen_unsigned("n") == 65535
    assert Cursor(bytes.fromhex("f3ff0f")).varlen_signed("n") == 65535
    assert Cursor(bytes.fromhex("fbff0f")).varlen_signed("n") == -65536


def test_later_fields_may_be_left_unread() -> None:
    found = read(EventType.GTID_TAGGED, message(UUID_FIELD, GNO_FIELD, (12, b"unknown")))
    assert found == GtidLog(Gtid.parse(f"{UUID_A}:7"))


def test_the_origin_defaults_to_the_immediate_source() -> None:
    found = read(
        EventType.GTID_TAGGED,
        message(
            (0, varlen(1)),
            UUID_FIELD,
            GNO_FIELD,
            (6, varlen(2000)),
            (7, varlen(1000)),
            (9, varlen(90704)),
            (10, varlen(80400)),
            (11, varlen(5)),
        ),
    )
    assert isinstance(found, GtidLog)
    assert (found.original_commit_timestamp, found.immediate_commit_timestamp) == (1000, 2000)
    assert (found.original_server_version, found.immediate_server_version) == (80400, 90704)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (message(UUID_FIELD, GNO_FIELD, version=2), "expected serialization version 1, found 2"),
        (message(UUID_FIELD, GNO_FIELD) + b"\0", "found one of"),
        (message(UUID_FIELD, GNO_FIELD, required=12), "field 12 must be understood"),
        (message(GNO_FIELD, UUID_FIELD), "expected a field after 2, found 1"),
        (message(UUID_FIELD), "no UUID or no GNO"),
        (message(GNO_FIELD), "no UUID or no GNO"),
        (message((1, varlen(256) + bytes(15)), GNO_FIELD), "a byte of the UUID, found 256"),
        (message(UUID_FIELD, (2, varlen(1))), "expected a GTID"),
        (message(UUID_FIELD, GNO_FIELD, (3, varlen(2) + b"1a")), "expected a GTID"),
        (message(UUID_FIELD, GNO_FIELD, (3, varlen(9) + b"a")), "expected the tag of 9 bytes"),
    ],
)
def test_messages_that_are_wrong(body: bytes, what: str) -> None:
    assert what in complaint(EventType.GTID_TAGGED, body)


def test_previous_gtids() -> None:
    assert read(EventType.PREVIOUS_GTIDS, bytes(8)) == PreviousGtids(GtidSet())
    one = struct.pack("<Q", 1) + UUID_A.bytes + struct.pack("<QQQ", 1, 1, 4)
    assert read(EventType.PREVIOUS_GTIDS, one) == PreviousGtids(GtidSet.parse(f"{UUID_A}:1-3"))
    assert "expected an encoded GTID set" in complaint(EventType.PREVIOUS_GTIDS, one[:-1])

"""The decoder on bytes no server would write: cut, flipped, foreign, or of another age."""

from __future__ import annotations

import pickle
import random
import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from binlog.decode import NEED_MORE_DATA, EventDecoder
from binlog.errors import (
    BinlogError,
    BinlogMisuse,
    CorruptBinlog,
    DumpBroken,
    DumpRefused,
    DumpTimedOut,
    LimitExceeded,
    TruncatedBinlog,
    UnsupportedBinlog,
)
from binlog.event_types import EventType
from binlog.events import (
    ChecksumAlgorithm,
    Opaque,
    Xid,
)
from binlog.scan import scan_events
from binlog.transactions import Transaction, fold_transactions
from tests.binlog.builders import (
    MAGIC,
    Log,
    body_of,
    decode,
    event,
    failure,
    gtid_body,
    payload_body,
    query_body,
    rows_body,
    table_map_body,
)
from tests.binlog.mariadb_log import MARIADB_LOG


def everything() -> Log:
    """A file with each kind of event the folder treats in its own way; no checksums."""
    log = Log(checksum=False)
    log.add(EventType.PREVIOUS_GTIDS, bytes(8))
    log.gtid(1)
    log.query("CREATE TABLE t (a INT)", error_code=1050)
    log.gtid(2)
    log.query("BEGIN")
    log.add(EventType.TABLE_MAP, table_map_body(b"\x03\x0f\xfc", b"\x14\0\2"))
    row = b"\0" + b"\1\0\0\0" + b"\1x" + b"\2\0yy"
    log.add(EventType.WRITE_ROWS, rows_body(row * 2, columns=3))
    log.add(EventType.UPDATE_ROWS, rows_body(row * 4, columns=3, update=True))
    log.add(EventType.DELETE_ROWS_V1, rows_body(row, columns=3, version=1))
    log.xid()
    log.gtid(3)
    log.query("XA START 'x'")
    log.query("XA END 'x'")
    log.add(EventType.XA_PREPARE, b"\0" + bytes(12))
    log.gtid(4)
    inner = event(EventType.QUERY, query_body("BEGIN"), checksum=False, end_log_pos=0)
    inner += event(EventType.XID, bytes(8), checksum=False, end_log_pos=0)
    payload = payload_body(inner, compression=255, uncompressed_bytes=len(inner))
    log.add(EventType.TRANSACTION_PAYLOAD, payload)
    log.add(EventType.ROTATE, struct.pack("<Q", 4) + b"log.000002")
    return log


# ---- the file as a whole

COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zX": "xz",
    b"BZh": "bzip2",
    b"\x04\x22\x4d\x18": "lz4",
    b"PK\x03\x04": "zip",
}


def test_an_empty_file_is_truncated() -> None:
    error = failure(b"")
    assert isinstance(error, TruncatedBinlog)
    assert (error.position, error.in_use) == (0, False)


def test_foreign_files() -> None:
    assert failure(b"PK\x05\x06").what.startswith("expected the magic number")
    for start, name in COMPRESSED.items():
        with pytest.raises(UnsupportedBinlog, match=f"compressed with {name}: decompress it"):
            decode(start + bytes(40))
    assert failure(b"\xfe").position == 0
    with pytest.raises(UnsupportedBinlog, match="encrypted"):
        decode(b"\xfdbin\x01")
    with pytest.raises(UnsupportedBinlog, match="MariaDB"):
        decode(bytes(Log(version="5.5.5-10.11.6-MariaDB-log")))
    with pytest.raises(UnsupportedBinlog, match="MariaDB"):
        decode(MARIADB_LOG)
    # As a MySQL server would pass them on: what they are is seen by their types, too.
    head = bytes(Log(checksum=True))
    theirs = MARIADB_LOG[4 + int.from_bytes(MARIADB_LOG[13:17], "little") :]
    with pytest.raises(UnsupportedBinlog, match="event type 163 is MariaDB's"):
        decode(head + theirs)
    log = Log()
    log.add(162, bytes(10))
    with pytest.raises(UnsupportedBinlog, match="event type 162 is MariaDB's"):
        decode(bytes(log))
    with pytest.raises(UnsupportedBinlog, match=r"older than MySQL 5\.0"):
        decode(MAGIC + event(EventType.START_V3, bytes(56), checksum=False))


def test_a_description_must_come_first() -> None:
    error = failure(MAGIC + event(EventType.XID, bytes(8)))
    assert error.position == 4
    assert error.what == "expected a format description, found XID"


def test_before_checksums() -> None:
    """5.5 wrote neither an algorithm nor room for a checksum."""
    body = struct.pack("<H50sIB", 4, b"5.5.62-log", 0, 19) + bytes(27)
    data = MAGIC + event(EventType.FORMAT_DESCRIPTION, body, checksum=False)
    data += event(EventType.XID, bytes(8), at=len(data), checksum=False)
    description, xid = decode(data)
    assert description.body.checksum is ChecksumAlgorithm.UNDEFINED  # type: ignore[union-attr]
    assert xid.body == Xid(0)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (struct.pack("<H50sIB", 3, b"9.7.4", 0, 19), "expected binlog version 4, found 3"),
        (
            struct.pack("<H50sIB", 4, b"9.7.4", 0, 27),
            "expected event headers of 19 bytes, found 27",
        ),
        (struct.pack("<H50sIB", 4, b"9.7.4", 0, 19), "ends before its checksum algorithm"),
        (struct.pack("<H50sIB", 4, b"9.7.4", 0, 19) + bytes(40) + b"\7", "algorithm, found 7"),
        (b"\4\0" + bytes(7), "expected the server version of 50 bytes"),
    ],
)
def test_descriptions_that_describe_nothing(body: bytes, what: str) -> None:
    assert what in failure(MAGIC + event(EventType.FORMAT_DESCRIPTION, body)).what


def test_a_version_without_numbers_is_taken_for_an_old_one() -> None:
    body = struct.pack("<H50sIB", 4, b"unknown", 0, 19) + bytes(27)
    [description] = decode(MAGIC + event(EventType.FORMAT_DESCRIPTION, body, checksum=False))
    assert description.body.checksum is ChecksumAlgorithm.UNDEFINED  # type: ignore[union-attr]


def test_a_file_in_use_says_so_and_its_checksum_still_holds() -> None:
    log = Log(flags=1)
    log.xid()
    events = decode(bytes(log))
    assert events[0].body.is_in_use  # type: ignore[union-attr]
    with pytest.raises(TruncatedBinlog) as cut:
        decode(bytes(log)[:-1])
    assert cut.value.in_use
    assert cut.value.position == events[1].start


def test_a_relay_log_changes_its_description() -> None:
    log = Log(checksum=True)
    log.xid()
    log.description(version="5.6.24", checksum=False)
    log.xid()
    assert [type(each.body) for each in decode(bytes(log))[1::2]] == [Xid, Xid]


# ---- events one by one


def test_every_prefix_asks_for_more_and_reads_what_is_whole() -> None:
    data = bytes(everything())
    whole = decode(data)
    ends = [each.end for each in whole]
    for size in range(len(data)):
        decoder = EventDecoder(file="log")
        decoder.receive(data[:size])
        found = []
        while (found_event := decoder.next_event()) is not NEED_MORE_DATA:
            found.append(found_event)
        assert found == whole[: sum(end <= size for end in ends)]
        if size not in (4, *ends):
            with pytest.raises(TruncatedBinlog):
                decoder.finish()


def test_a_flipped_bit_under_a_checksum_is_found() -> None:
    log = Log()
    at = log.query("CREATE TABLE t (a INT)")
    data = bytearray(bytes(log))
    for byte in range(at, len(data)):
        if at + 9 <= byte < at + 13:
            continue  # the length: the next test
        data[byte] ^= 0x10
        error = failure(bytes(data))
        assert error.position >= at
        data[byte] ^= 0x10


@pytest.mark.parametrize("checksum", [True, False])
def test_flipped_lengths_never_hang_and_never_read_past(checksum: bool) -> None:
    log = Log(checksum=checksum)
    log.gtid(1)
    at = log.query("BEGIN")
    log.xid()
    data = bytes(log)
    for bit in range(32):
        mutated = bytearray(data)
        mutated[at + 9 + bit // 8] ^= 1 << bit % 8
        error = failure(bytes(mutated))
        assert at <= error.position <= len(data)


def test_lengths_no_event_can_have() -> None:
    for size, what in ((18, "found a length of 18"), (2**31, f"found a length of {2**31}")):
        raw = struct.pack("<IBIIIH", 0, EventType.XID, 1, size, 0, 0)
        error = failure(bytes(Log()) + raw)
        assert what in error.what
    log = Log()
    too_short = struct.pack("<IBIIIH", 0, EventType.STOP, 1, 21, 0, 0) + bytes(2)
    assert "too short for its checksum" in failure(bytes(log) + too_short).what


def test_unknown_types() -> None:
    assert body_of(99, b"newer", flags=0x80) == Opaque(b"newer")
    log = Log()
    at = log.add(99, b"newer")
    assert failure(bytes(log)).what == "expected an event type, found 99, which may not be ignored"
    assert failure(bytes(log)).position == at


# ---- whatever bytes come


def outcome(data: bytes) -> list[Transaction] | BinlogError:
    """Every answer there may be: transactions, or an error of ours with a place in the input."""
    try:
        return list(fold_transactions(scan_events([data], file="log")))
    except (CorruptBinlog, UnsupportedBinlog) as error:
        failed = error
    assert failed.file == "log"
    assert 0 <= getattr(failed, "position", 0) <= len(data)
    return failed


@given(
    st.lists(
        st.tuples(st.integers(0, len(bytes(everything())) - 1), st.integers(0, 255)), max_size=8
    ),
    st.integers(0, len(bytes(everything()))),
)
@example([], 0)
def test_mutated_files(changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(bytes(everything()))
    for at, value in changes:
        data[at] = value
    outcome(bytes(data[: len(data) - cut]))


@pytest.mark.long
def test_every_single_byte_replaced_by_hostile_values() -> None:
    data = bytes(everything())
    errors = 0
    for at in range(len(data)):
        for value in (0x00, 0x7F, 0x80, 0xFF, data[at] ^ 1):
            mutated = data[:at] + bytes((value,)) + data[at + 1 :]
            errors += isinstance(outcome(mutated), BinlogError)
    assert errors > len(data)


def test_random_bytes_behind_a_sound_head() -> None:
    source = random.Random(5)
    for _ in range(300):
        outcome(bytes(Log(checksum=False)) + source.randbytes(source.randrange(200)))


@given(st.sampled_from(sorted(EventType)), st.binary(max_size=80))
def test_any_body_under_any_type(kind: EventType, body: bytes) -> None:
    log = Log(checksum=False)
    log.gtid(1)
    log.add(EventType.TABLE_MAP, table_map_body(b"\x03", b""))
    log.add(kind, body)
    outcome(bytes(log))


def test_errors_survive_a_trip_between_processes() -> None:
    errors = (
        CorruptBinlog(file="f", position=3, what="w"),
        TruncatedBinlog(file="f", position=3, what="w", in_use=True),
        UnsupportedBinlog(file="f", what="w"),
        BinlogMisuse("m"),
        DumpRefused(code=1236, text="t"),
        DumpTimedOut(timeout_seconds_max=1.5),
        DumpBroken("b"),
        LimitExceeded(name="n", limit=3, what="w"),
    )
    for error in errors:
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert again.__dict__ == error.__dict__


def test_gtid_body_of_5_6_is_what_the_builder_makes() -> None:
    assert len(gtid_body(1)) == 25

"""Whole logs and dumps, from bytes: heads, positions beyond 4 GiB, files one after another."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from binlog.adapters import wanted_events
from binlog.adapters.compression import find_decompressor
from binlog.adapters.log_files import FileLogs
from binlog.errors import BinlogMisuse, CorruptBinlog, LimitExceeded, ReusedGtid
from binlog.event_types import EventType
from binlog.events import ChecksumAlgorithm, Event, Heartbeat
from binlog.header import FLAG_RELAY_LOG
from binlog.scan import DumpDecoder, EventGroup, read_head
from binlog.transactions import TransactionKind
from gtid import Gtid, GtidSet, Tsid
from gtid.binary import encode
from tests.binlog.builders import UUID_A, Log, event, gtid_body, payload_body, query_body
from tests.binlog.logs_in_memory import MemoryLogs, read_transactions


def chunks(log: Log) -> MemoryLogs:
    return MemoryLogs({"log": bytes(log)}, chunk_bytes=5)


def test_the_head_of_a_relay_log_has_its_sources_description() -> None:
    """Its head: its own description, previous GTIDs, the source's ROTATE and description."""
    log = Log(checksum=True)
    log.add(EventType.PREVIOUS_GTIDS, bytes(8))
    log.add(EventType.ROTATE, struct.pack("<Q", 4) + b"binlog.000001")
    log.description(version="5.6.24", checksum=False)
    log.gtid(1)
    log.query("CREATE TABLE t (a INT)")
    head = read_head([bytes(log)], file="log")
    assert head.description.server_version == "5.6.24"
    assert head.previous_gtids == GtidSet()
    [group] = groups_of(log, 1)
    assert group.transaction.start == head.first_position
    assert group.description == head.description


def test_a_head_of_nothing_but_a_rotate() -> None:
    data = b"\xfebin" + event(EventType.ROTATE, bytes(8) + b"x", checksum=False)
    with pytest.raises(CorruptBinlog, match="expected a format description"):
        read_head([data], file="log")


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BinlogMisuse, match="the same name"):
        FileLogs([tmp_path / "a" / "binlog.000001", tmp_path / "b" / "binlog.000001"])


def test_an_empty_file_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    path.touch()
    with pytest.raises(CorruptBinlog, match=r"binlog\.000001: at byte 0"):
        list(read_transactions(path))


def test_a_cut_file_gives_what_is_whole_before_it_complains(tmp_path: Path) -> None:
    log = Log()
    log.gtid(1)
    log.query("CREATE TABLE t (a INT)")
    at = log.gtid(2)
    path = tmp_path / "binlog.000001"
    path.write_bytes(bytes(log)[:-3])
    transactions = read_transactions(path)
    assert str(next(transactions).gtid) == f"{UUID_A}:1"
    with pytest.raises(CorruptBinlog) as caught:
        next(transactions)
    assert (caught.value.file, caught.value.position) == ("binlog.000001", at)


# ---- transactions with their events


def groups_of(log: Log, *gnos: int, bytes_max: int = 10_000) -> list[EventGroup]:
    wanted = GtidSet.of(Gtid(Tsid(UUID_A), gno) for gno in gnos)
    return list(chunks(log).events_of(wanted, bytes_max=bytes_max))


def kinds_of(group: EventGroup) -> list[int]:
    return [each.header.type_code for each in group.events]


def test_a_transaction_that_never_ends_is_given_as_it_is() -> None:
    log = Log()
    log.gtid(1)
    log.query("BEGIN")
    log.gtid(2)
    log.query("CREATE TABLE t (a INT)")
    log.gtid(3)
    log.query("BEGIN")
    whole, cut, last = groups_of(log, 1, 2, 3)
    assert [each.transaction.is_complete for each in (whole, cut, last)] == [True, False, False]
    assert [str(each.transaction.gtid) for each in (cut, last)] == [f"{UUID_A}:{n}" for n in (1, 3)]
    assert kinds_of(cut) == kinds_of(last) == [EventType.GTID, EventType.QUERY]
    assert groups_of(log, 2) == [whole]


def test_of_a_transaction_that_was_received_again_the_whole_is_given() -> None:
    log = Log(flags=FLAG_RELAY_LOG)
    for statements in (["INSERT INTO t VALUES (1)"], []):  # a receiver that was cut off, twice
        log.gtid(1)
        for sql in ["BEGIN", *statements]:
            log.query(sql)
    [half] = groups_of(log, 1, 2)
    assert not half.transaction.is_complete
    assert len(half.events) == 3, "the longest"
    log.gtid(1)
    for sql in ("BEGIN", "INSERT INTO t VALUES (1)", "COMMIT"):
        log.query(sql)
    log.gtid(2)
    log.query("CREATE TABLE t (a INT)")
    assert [(len(each.events), each.transaction.is_complete) for each in groups_of(log, 1, 2)] == [
        (4, True),
        (2, True),
    ]


def parts_over_files(*, flags: int, numbers: tuple[int, ...] = (1, 2, 3)) -> MemoryLogs:
    """A transaction that begins in one file and ends in the third."""
    first = Log(flags=flags)
    first.gtid(1)
    first.query("BEGIN")
    logs, last = [first], first
    for sql in ("INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)"):
        log = Log(flags=flags)
        # Behind the receiver's description comes that of its source.
        log.description(version="9.7.4", checksum=True)
        log.ahead = len(bytes(last)) + last.ahead - len(bytes(log))
        log.query(sql)
        logs.append(log)
        last = log
    last.xid()
    last.gtid(2)
    last.query("CREATE TABLE t (a INT)")
    files = {f"log.{number:06}": bytes(log) for number, log in enumerate(logs, start=1)}
    return MemoryLogs({f"log.{number:06}": files[f"log.{number:06}"] for number in numbers})


@pytest.mark.parametrize(
    ("flags", "numbers", "first"),
    [
        (FLAG_RELAY_LOG, (1, 2, 3), (5, True)),
        (0, (1, 2, 3), (2, False)),
        (FLAG_RELAY_LOG, (1, 3), (2, False)),
        (FLAG_RELAY_LOG, (1, 2), (3, False)),
    ],
)
def test_a_transaction_goes_on_in_the_next_relay_log_only(
    flags: int, numbers: tuple[int, ...], first: tuple[int, bool]
) -> None:
    """Not in the next binary log, and not in a relay log behind one that is lost."""
    wanted = GtidSet.parse(f"{UUID_A}:1-2")
    found = {
        str(each.transaction.gtid)[-1]: (len(each.events), each.transaction.is_complete)
        for each in parts_over_files(flags=flags, numbers=numbers).events_of(wanted)
    }
    assert found == {"1": first, **({"2": (2, True)} if 3 in numbers else {})}


def test_a_lost_end_of_a_relay_log_is_noticed_by_the_positions_of_its_source() -> None:
    logs = parts_over_files(flags=FLAG_RELAY_LOG)
    second = logs.files["log.000002"]
    shorter = MemoryLogs({**logs.files, "log.000002": second[: -len(INSERTED)]})
    wanted = GtidSet.parse(f"{UUID_A}:1-2")
    found = [each.transaction.is_complete for each in shorter.events_of(wanted)]
    assert found == [True, False], "the second one, and the begin of the first one"


INSERTED = event(EventType.QUERY, query_body("INSERT INTO t VALUES (1)"))


def two_histories(tmp_path: Path, *, again: str, is_listed: bool = False) -> list[Path]:
    """Files of a server; the third has GTID 2 again, with another statement or with the same."""
    paths = [tmp_path / f"binlog.{number:06}" for number in (1, 2, 3)]
    for path, previous, statements in (
        (paths[0], "", {1: "CREATE TABLE a (a INT)"}),
        (paths[1], f"{UUID_A}:1", {2: "CREATE TABLE b (a INT)"}),
        (paths[2], f"{UUID_A}:1-2" if is_listed else f"{UUID_A}:1", {2: again, 3: "DROP TABLE b"}),
    ):
        log = Log()
        log.add(EventType.PREVIOUS_GTIDS, encode(GtidSet.parse(previous)))
        for gno, sql in statements.items():
            log.gtid(gno)
            log.query(sql)
        path.write_bytes(bytes(log))
    return paths


def test_two_transactions_under_one_gtid_are_not_one(tmp_path: Path) -> None:
    logs = FileLogs(two_histories(tmp_path, again="CREATE TABLE c (a INT)"))
    said: list[ReusedGtid] = []
    for wanted in (f"{UUID_A}:2", f"{UUID_A}:1-3"):
        with pytest.raises(ReusedGtid, match=r"binlog\.000002 and binlog\.000003 have two diff"):
            list(logs.events_of(GtidSet.parse(wanted)))
    groups = list(logs.events_of(GtidSet.parse(f"{UUID_A}:1-3"), reused=said.append))
    found = [(each.transaction.file[-1], str(each.transaction.gtid)[-1]) for each in groups]
    assert found == [("1", "1"), ("2", "2"), ("3", "2"), ("3", "3")]
    assert [each.gtid for each in said] == [f"{UUID_A}:2"]


def test_the_same_transaction_in_two_files_is_given_once(tmp_path: Path) -> None:
    logs = FileLogs(two_histories(tmp_path, again="CREATE TABLE b (a INT)"))
    groups = list(logs.events_of(GtidSet.parse(f"{UUID_A}:1-3")))
    assert [each.transaction.file[-1] for each in groups] == ["1", "2", "3"]


def test_no_file_is_read_whose_header_lists_all(tmp_path: Path) -> None:
    """What it has instead is damaged here: nothing complains."""
    paths = two_histories(tmp_path, again="CREATE TABLE c (a INT)", is_listed=True)
    paths[2].write_bytes(paths[2].read_bytes()[:-3])
    [group] = FileLogs(paths).events_of(GtidSet.parse(f"{UUID_A}:2"))
    assert group.transaction.file == paths[1].name


def test_what_stands_between_groups_belongs_to_none() -> None:
    log = Log()
    log.gtid(1)
    log.query("BEGIN")
    log.add(EventType.HEARTBEAT, b"log")
    log.add(EventType.ROTATE, bytes(8) + b"x", flags=0x20)
    log.description(version="9.7.4", checksum=True)
    log.xid()
    log.add(EventType.ANONYMOUS_GTID, gtid_body(0))
    log.query("CREATE TABLE t (a INT)")
    log.query("CREATE TABLE u (a INT)")
    [group] = groups_of(log, 1)
    assert kinds_of(group) == [EventType.GTID, EventType.QUERY, EventType.XID]
    assert group.transaction.is_complete


def compressed(*, compression: int, uncompressed_bytes: int) -> Log:
    inner = event(EventType.QUERY, query_body("BEGIN"), checksum=False)
    inner += event(EventType.XID, bytes(8), checksum=False)
    log = Log()
    log.gtid(1)
    log.add(
        EventType.TRANSACTION_PAYLOAD,
        payload_body(inner, compression=compression, uncompressed_bytes=uncompressed_bytes),
    )
    return log


def test_a_payload_that_cannot_be_opened_stays() -> None:
    [group] = groups_of(compressed(compression=0, uncompressed_bytes=100), 1)
    assert kinds_of(group) == [EventType.GTID, EventType.TRANSACTION_PAYLOAD]
    assert group.transaction.kind is TransactionKind.OTHER


def test_a_payload_is_as_large_as_what_is_inside() -> None:
    log = compressed(compression=255, uncompressed_bytes=60_000)
    [group] = groups_of(log, 1, bytes_max=61_000)
    assert kinds_of(group) == [EventType.GTID, EventType.QUERY, EventType.XID]
    with pytest.raises(LimitExceeded, match="larger than the limit of"):
        groups_of(log, 1, bytes_max=60_000)


# ---- large files: only what is wanted is decoded


@pytest.fixture
def _all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wanted_events, "_LARGE_BYTES", 0)


def five(*, flags: int = 0) -> tuple[Log, list[int]]:
    log = Log(flags=flags)
    starts = []
    for gno in range(1, 6):
        starts.append(log.gtid(gno))
        log.query(f"CREATE TABLE t{gno} (a INT)")
    return log, starts


def given(path: Path, *gnos: int) -> tuple[list[EventGroup], str]:
    """What comes, and the error behind it."""
    wanted = GtidSet.of(Gtid(Tsid(UUID_A), gno) for gno in gnos)
    found: list[EventGroup] = []
    try:
        found.extend(FileLogs([path]).events_of(wanted))  # keeps what came before an error
    except CorruptBinlog as error:
        return found, str(error)
    return found, ""


WANTED = [(), (1,), (5,), (2, 3), (1, 3, 5), (1, 2, 3, 4, 5), (1, 9)]


@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize("damage", ["none", "in the fourth", "cut off"])
def test_both_ways_give_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: tuple[int, ...], damage: str
) -> None:
    log, starts = five()
    data = bytearray(bytes(log))
    if damage == "in the fourth":
        data[starts[3] + 4] = 99
    path = tmp_path / "binlog.000001"
    path.write_bytes(data[:-3] if damage == "cut off" else data)
    everything = given(path, *wanted)
    monkeypatch.setattr(wanted_events, "_LARGE_BYTES", 0)
    assert given(path, *wanted) == everything


@pytest.mark.usefixtures("_all_are_large")
def test_what_is_not_wanted_is_not_decoded(tmp_path: Path) -> None:
    log, starts = five()
    data = bytearray(bytes(log))
    data[starts[2] - 1] ^= 1  # the checksum of what ends the second
    path = tmp_path / "binlog.000001"
    path.write_bytes(data)
    assert [str(each.transaction.gtid) for each in given(path, 3)[0]] == [f"{UUID_A}:3"]
    assert "checksum" in given(path, 2)[1]


@pytest.mark.usefixtures("_all_are_large")
@pytest.mark.parametrize("flags", [0, 0x40])
def test_a_relay_log_is_decoded_whole(tmp_path: Path, flags: int) -> None:
    path = tmp_path / "relay.000001"
    path.write_bytes(bytes(five(flags=flags)[0]))
    assert len(list(wanted_of(path))) == (11 if flags else 1)


@pytest.mark.usefixtures("_all_are_large")
def test_without_kernels_a_file_is_decoded_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(bytes(five()[0]))
    monkeypatch.setattr(wanted_events, "find_spec", lambda _name: None)
    assert len(list(wanted_of(path))) == 11
    assert [each.transaction.start for each in given(path, 1)[0]] == [five()[1][0]]


def wanted_of(path: Path) -> Iterator[Event]:
    return wanted_events.wanted_events(path, GtidSet())


# ---- dumps


def dump_decoder() -> DumpDecoder:
    decoder = DumpDecoder(checksum=ChecksumAlgorithm.NONE)
    rotate = struct.pack("<Q", 4) + b"binlog.000007"
    decoder.decode(event(EventType.ROTATE, rotate, checksum=False, flags=0x20, end_log_pos=0))
    description = bytes(Log(checksum=False))[4:]
    decoder.decode(description)
    return decoder


def gtid_at(end_log_pos: int) -> bytes:
    return event(EventType.GTID, gtid_body(1), checksum=False, end_log_pos=end_log_pos)


def test_positions_of_a_dump_come_from_the_headers() -> None:
    decoder = dump_decoder()
    assert decoder.file == "binlog.000007"
    found = decoder.decode(gtid_at(1000))
    assert (found.file, found.start, found.end) == ("binlog.000007", 1000 - 44, 1000)


def test_a_description_sent_again_takes_no_bytes() -> None:
    decoder = dump_decoder()
    decoder.decode(gtid_at(1000))
    log = bytes(Log(checksum=False))[4:]
    again = log[:13] + bytes(4) + log[17:]
    found = decoder.decode(again)
    assert (found.start, found.end) == (1000, 1000)


def test_positions_beyond_4_gib_grow_on() -> None:
    decoder = dump_decoder()
    decoder.decode(gtid_at(2**32 - 10))
    found = decoder.decode(gtid_at(90))
    assert found.end == 2**32 + 90
    found = decoder.decode(gtid_at(2**32 - 1))
    assert found.end == 2**33 - 1
    found = decoder.decode(gtid_at(1000))
    assert (found.start, found.end) == (2**33 + 1000 - 44, 2**33 + 1000)


@pytest.mark.parametrize("end_log_pos", [0, 43, 47])
def test_an_event_of_a_dump_that_would_start_before_its_file(end_log_pos: int) -> None:
    with pytest.raises(CorruptBinlog, match=f"an event of 44 bytes that ends at {end_log_pos}"):
        DumpDecoder(checksum=ChecksumAlgorithm.NONE).decode(gtid_at(end_log_pos))


def test_heartbeats_move_the_position() -> None:
    decoder = dump_decoder()
    beat = event(EventType.HEARTBEAT, b"binlog.000008", checksum=False, end_log_pos=500)
    found = decoder.decode(beat)
    assert found.body == Heartbeat("binlog.000008", 500)
    assert (decoder.file, decoder.position) == ("binlog.000008", 500)
    wide = b"\1\1x\2\x09\xfe" + struct.pack("<Q", 2**33) + b"\0"
    decoder.decode(event(EventType.HEARTBEAT_V2, wide, checksum=False, end_log_pos=0))
    assert (decoder.file, decoder.position) == ("x", 2**33)


def test_a_decompressor_is_bounded_and_names_what_is_wrong() -> None:
    decompress = find_decompressor()
    if decompress is None:
        pytest.skip("zstandard is not installed")
    import zstandard  # type: ignore[import-not-found,unused-ignore]

    frame = zstandard.ZstdCompressor().compress(b"x" * 100_000)
    assert decompress(frame, 100_000) == b"x" * 100_000
    with pytest.raises(ValueError, match="more than the 1,000 bytes"):
        decompress(frame, 1000)
    with pytest.raises(ValueError, match="more than the 99,999 bytes"):
        decompress(frame, 99_999)
    with pytest.raises(ValueError, match=r"(?i)frame|unknown|descriptor"):
        decompress(b"no frame at all", 1000)

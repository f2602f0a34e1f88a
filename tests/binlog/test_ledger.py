"""The ledger's kernels against the decoder of every event, on logs of servers and made by hand."""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest

from benchmarks.generate.binlogs import LogShape, check, write_binlog
from binlog.adapters.ledger_files import ledger_of_file
from binlog.adapters.log_files import read_events
from binlog.content.content_digest import digest_of
from binlog.errors import CorruptBinlog
from binlog.event_types import EventType
from binlog.ledger.ledger_columns import FileLedger, LedgerRequest
from binlog.ledger.ledger_window import WindowPlace, _Window, ledger_of_window
from compose.native.installation import Clients
from compose.native.shapes import Pair
from tests.binlog.builders import Log, event, gtid_body, query_body, table_map_body
from tests.binlog.ledger_shapes import SHAPES, gtid_of_8_0, of_8_0, rows, whole
from tests.binlog.ledger_twin import ledger_of_bytes, rows_said, twin_of
from tests.binlog.material import Written


def same(path: Path, *, details: bool = False) -> FileLedger:
    """Hold both ways to each other, and give the decoder's ledger."""
    slow = twin_of(path, details=details)
    for verify in (False, True):
        fast = ledger_of_file(path, LedgerRequest(verify=verify, details=details))
        assert fast.rows.schema == slow.rows.schema
        fast.rows.validate(full=True)
        assert rows_said(fast.rows) == rows_said(slow.rows)
        assert (type(fast.error), str(fast.error)) == (type(slow.error), str(slow.error))
        assert (fast.file, fast.head, fast.end) == (slow.file, slow.head, slow.end)
    return slow


@pytest.fixture
def _by_kernels_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sound and known is never left to the decoder."""

    def refuse(_window: _Window, at: int) -> None:
        pytest.fail(f"the walk did not know what to do at {at}")

    monkeypatch.setattr(_Window, "_read_group", refuse)


@pytest.mark.usefixtures("_by_kernels_alone")
def test_logs_of_servers(written: Written) -> None:
    for path in written.files:
        assert same(path, details=True).rows.num_rows


def test_digests_are_those_of_the_definition(written: Written) -> None:
    for path in written.files:
        events = list(read_events(path))
        rows = ledger_of_file(path, LedgerRequest(digests=True)).rows
        for each in rows.select(["start", "end", "kind", "digest"]).to_pylist():
            group = [event for event in events if each["start"] <= event.start < each["end"]]
            if group[-1].header.type_code != EventType.TRANSACTION_PAYLOAD:
                assert each["digest"] == digest_of(group)
        assert rows["digest"].null_count == 0


def test_rows_are_those_of_mysqlbinlog(written: Written, mysql_clients: Clients) -> None:
    """GTID, place, time, clock: transaction by transaction."""
    for path in written.files:
        command = [*mysql_clients.command("mysqlbinlog"), str(path)]
        answer = subprocess.run(command, capture_output=True, check=True, timeout=60)
        text = answer.stdout.decode("utf-8", errors="replace")
        rows = ledger_of_file(path).rows
        blocks = re.split(r"^# at ", text, flags=re.MULTILINE)[1:]
        found = [block for block in blocks if re.search(r"GTID_NEXT= '[^']+:\d+'", block)]
        assert len(found) == rows.num_rows
        for each, block in zip(rows.to_pylist(), found, strict=True):
            printed = _PRINTED.match(block)
            assert printed, block
            tag = f":{each['tag']}" if each["tag"] else ""
            assert f"{each['uuid']}{tag}:{each['gno']}" == printed["gtid"]
            assert each["start"] == int(printed["start"])
            assert each["server_id"] == int(printed["server_id"])
            # mysqlbinlog speaks the machine's local time, and pads the hour with a blank.
            logged = each["logged_at"].astimezone()
            assert f"{logged:%y%m%d %H:%M:%S}" == printed["logged"].replace("  ", " 0")
            if each["original_commit_at"] is not None:
                assert each["bytes"] == int(_value("transaction_length", block))
                commit = each["original_commit_at"].timestamp() * 1_000_000
                assert round(commit) == int(_value("original_commit_timestamp", block))
                assert each["last_committed"] == int(_value("last_committed", block))
                assert each["sequence_number"] == int(_value("sequence_number", block))
                assert each["original_server_version"] == int(
                    _value("original_server_version", block)
                )


_PRINTED = re.compile(
    r"(?P<start>\d+)\n#(?P<logged>\d{6} [ \d]\d:\d\d:\d\d) server id (?P<server_id>\d+) .*"
    r"GTID_NEXT= '(?P<gtid>[^']+)'",
    re.DOTALL,
)


def _value(name: str, block: str) -> str:
    found = re.search(rf"{name}=(\d+)", block)
    assert found, (name, block)
    return found[1]


def test_a_replicas_relay_logs_and_its_own_log(pair97: Pair) -> None:
    """Several descriptions, the source's coordinates, and commit times of two servers."""
    pair97.a.execute("CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)")
    pair97.a.execute("INSERT INTO d.t VALUES (1), (2)", "FLUSH BINARY LOGS")
    pair97.a.execute("INSERT INTO d.t VALUES (3)")
    pair97.settle()
    relayed = [path for path in sorted(pair97.b.datadir.glob("*relay*.0*")) if path.stat().st_size]
    assert sum(same(path).rows.num_rows for path in relayed) >= 1
    own = same(max(pair97.b.datadir.glob("binlog.0*"))).rows
    later = pc.greater(own["immediate_commit_at"], own["original_commit_at"])
    assert pc.any(later).as_py()


@pytest.mark.parametrize("name", SHAPES)
def test_made_by_hand(name: str, tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(SHAPES[name]())
    same(path, details=True)


def test_a_length_that_is_wrong_is_not_followed(tmp_path: Path) -> None:
    """A relay log may hold the head of a transaction, and then the whole of it once more."""
    log = Log()
    whole(log, 7)
    for length in (100, 200, 5_000, 2**40):
        log.add(EventType.GTID, gtid_of_8_0(1, transaction_bytes=length))
        log.query("BEGIN")
        rows(log)
        whole(log, 1)
    path = tmp_path / "relay.000001"
    path.write_bytes(bytes(log))
    found = same(path).rows
    assert found["is_complete"].to_pylist() == [True, *[False, True] * 4]


def test_what_a_hop_cannot_see(tmp_path: Path) -> None:
    """No rows behind a TABLE_MAP, the error of a statement behind rows: both told by `verify`."""
    log = Log()
    whole(log, 1, middle=lambda part: part.add(EventType.TABLE_MAP, table_map_body(b"\x03", b"")))
    whole(log, 2, middle=rows_and_a_failure)
    path = tmp_path / "binlog.000001"
    path.write_bytes(bytes(log))
    told = [ledger_of_file(path, LedgerRequest(verify=verify)).rows for verify in (False, True)]
    assert [rows["kind"].to_pylist() for rows in told] == [["dml", "dml"], ["empty", "dml"]]
    assert [rows["error_code"].to_pylist() for rows in told] == [[0, 0], [0, 1062]]


def rows_and_a_failure(part: Log) -> None:
    rows(part)
    part.query("INSERT INTO t VALUES (1)", error_code=1062)


@pytest.mark.parametrize("is_told", [True, False])
def test_a_transaction_beyond_4_gib(tmp_path: Path, *, is_told: bool) -> None:
    """end_log_pos wraps at 2^32. The rows are holes in the file, a gigabyte each."""
    log = Log(checksum=False)
    start = len(log.data)
    gigabyte = 1 << 30
    head = gtid_of_8_0(1, transaction_bytes=5 * gigabyte + 200)
    begin = query_body("BEGIN")
    length = 2 * 19 + len(head) + len(begin) + 5 * gigabyte + 27
    head = gtid_of_8_0(1, transaction_bytes=length if is_told else None)
    log.add(EventType.GTID, head)
    log.query("BEGIN")
    path = tmp_path / "binlog.000001"
    with path.open("wb") as file:
        file.write(bytes(log))
        at = len(log.data)
        for _ in range(5):
            size = gigabyte
            end = (at + size) % 2**32
            file.write(struct.pack("<IBIIIH", 1, EventType.WRITE_ROWS, 7, size, end, 0))
            at = file.seek(at + size)
        file.write(event(EventType.XID, bytes(8), at=at, checksum=False))
        behind = file.tell()
        file.write(event(EventType.GTID, gtid_body(2), at=behind, checksum=False))
        file.write(event(EventType.QUERY, query_body("x"), at=file.tell(), checksum=False))
        size = file.tell()
    ledger = ledger_of_file(path)
    assert ledger.error is None
    assert ledger.rows.select(["start", "end", "gno", "kind"]).to_pylist() == [
        {"start": start, "end": behind, "gno": 1, "kind": "dml"},
        {"start": behind, "end": size, "gno": 2, "kind": "ddl"},
    ]
    path.unlink()


def test_the_chain_of_positions_is_verified(tmp_path: Path) -> None:
    log = Log()
    whole(log, 1)
    begun = len(log.data)
    log.data += event(EventType.GTID, gtid_body(2), at=begun, end_log_pos=1)
    log.query("CREATE TABLE t (a INT)")
    path = tmp_path / "binlog.000001"
    path.write_bytes(bytes(log))
    assert ledger_of_file(path).error is None
    ledger = ledger_of_file(path, LedgerRequest(verify=True))
    assert isinstance(ledger.error, CorruptBinlog)
    assert str(ledger.error) == (
        f"binlog.000001: at byte {begun}: an event that ends at {begun + 48} but has end_log_pos 1"
    )
    assert (ledger.rows.num_rows, ledger.end) == (1, begun)


def test_a_checksum_is_verified_when_asked(tmp_path: Path) -> None:
    data = bytearray(of_8_0())
    data[-40] ^= 1
    path = tmp_path / "binlog.000001"
    path.write_bytes(data)
    assert ledger_of_file(path).error is None
    error = ledger_of_file(path, LedgerRequest(verify=True)).error
    assert error is not None
    assert "expected checksum" in str(error)


def test_what_cannot_be_opened_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ledger_of_file(tmp_path / "nothing")


def test_a_window_leaves_what_is_not_whole_to_the_next(tmp_path: Path) -> None:
    """Every split of a log gives the rows of the whole."""
    data = of_8_0()
    rows = ledger_of_bytes(data, file="log").rows.to_pylist()
    at, description, found = 0, None, []
    for end in [*range(1, len(data), 97), len(data)]:
        part = np.frombuffer(data[at:end], np.uint8)
        window = ledger_of_window(
            part,
            WindowPlace("log", position=at, description=description, is_last=end == len(data)),
        )
        assert window.error is None
        found += window.rows.to_pylist()
        at, description = window.end, window.description
    assert found == rows
    assert at == len(data)


@pytest.mark.usefixtures("_by_kernels_alone")
@pytest.mark.parametrize("shape", [LogShape(300, 1, 20), LogShape(20, 3, 30_000)])
def test_the_logs_that_are_measured_are_sound(
    shape: LogShape, tmp_path: Path, mysql_clients: Clients
) -> None:
    path = tmp_path / "binlog.000001"
    write_binlog(path, shape)
    check(path, shape, mysql_clients.command("mysqlbinlog"))
    assert same(path).rows["is_complete"].to_pylist() == [True] * shape.transactions

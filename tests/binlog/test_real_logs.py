"""Logs that real servers wrote, against what mysqlbinlog and the servers themselves say of them."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from binlog.adapters.log_files import read_events, read_file_head
from binlog.decode import NEED_MORE_DATA, EventDecoder
from binlog.events import ChecksumAlgorithm, Event, FormatDescription, GtidLog
from binlog.transactions import TableChange, fold_transactions
from binlog.transactions import TransactionKind as Kind
from compose.native.installation import Clients
from gtid import Gtid, GtidSet
from tests.binlog.logs_in_memory import read_transactions
from tests.binlog.material import FOREIGN, Written

ZSTANDARD = find_spec("zstandard") is not None
GEOMETRIES = TableChange("d", "geometries", rows_written=3)
COMPRESSED = Kind.DML if ZSTANDARD else Kind.OTHER


def _mysqlbinlog(clients: Clients, path: Path) -> str:
    command = [*clients.command("mysqlbinlog"), "--base64-output=decode-rows", "-v", str(path)]
    answer = subprocess.run(command, capture_output=True, check=True, timeout=60)
    return answer.stdout.decode("utf-8", errors="replace")


def _oracle_transactions(text: str) -> list[tuple[int, str, Counter[tuple[str, str]]]]:
    """Position, GTID and row counts of each transaction that mysqlbinlog prints."""
    found: list[tuple[int, str, Counter[tuple[str, str]]]] = []
    at = 0
    for line in text.splitlines():
        if position := re.fullmatch(r"# at (\d+)", line):
            at = int(position[1])
        elif gtid := re.match(r"SET @@SESSION.GTID_NEXT= '([^']+:\d+)'", line):
            found.append((at, gtid[1], Counter()))
        elif row := re.match(r"### (INSERT INTO|UPDATE|DELETE FROM) (\S+)$", line):
            found[-1][2][row[1].split()[0], row[2].replace("`", "")] += 1
    return found


def test_transactions_are_those_of_mysqlbinlog(written: Written, mysql_clients: Clients) -> None:
    compared = 0
    for path in written.files:
        oracle = _oracle_transactions(_mysqlbinlog(mysql_clients, path))
        ours = list(read_transactions(path))
        assert [(each.start, str(each.gtid)) for each in ours] == [each[:2] for each in oracle]
        assert all(each.is_complete and each.file == path.name for each in ours)
        for each, (_, _, rows) in zip(ours, oracle, strict=True):
            if each.kind is Kind.OTHER:
                assert not ZSTANDARD
                continue
            if GEOMETRIES in each.tables:
                continue
            counted = Counter(
                {
                    (verb, f"{table.schema}.{table.table}"): count
                    for table in each.tables
                    for verb, count in (
                        ("INSERT", table.rows_written),
                        ("UPDATE", table.rows_updated),
                        ("DELETE", table.rows_deleted),
                    )
                    if count
                }
            )
            assert counted == rows, each
            compared += sum(rows.values())
    assert compared > 10


def test_geometries_are_counted(written: Written) -> None:
    tables = [table for each in read_transactions(written.path(1)) for table in each.tables]
    assert GEOMETRIES in tables


def test_commit_times_and_clock_are_those_of_mysqlbinlog(
    written97: Written, mysql_clients: Clients
) -> None:
    text = _mysqlbinlog(mysql_clients, written97.path(1))
    ours = list(read_transactions(written97.path(1)))
    times = re.findall(r"^# original_commit_timestamp=(\d+)", text, re.MULTILINE)
    assert [each.original_commit_timestamp for each in ours] == [int(time) for time in times]
    assert [each.immediate_commit_timestamp for each in ours] == [int(time) for time in times]
    clock = re.findall(r"last_committed=(\d+)\s+sequence_number=(\d+)", text)
    ours_clock = [(each.logical_last_committed, each.logical_sequence_number) for each in ours]
    assert ours_clock == [(int(last), int(number)) for last, number in clock]
    assert {each.original_server_version for each in ours} == {90704}


def test_transactions_follow_each_other_without_a_gap(written: Written) -> None:
    for path in written.files:
        head = read_file_head(path)
        at = head.first_position
        for each in read_transactions(path):
            assert each.start == at
            at = each.end


def test_events_are_those_of_the_server(written: Written) -> None:
    for path in written.files:
        oracle = written.server.query(f"SHOW BINLOG EVENTS IN '{path.name}'")
        ours = [(event.start, event.end) for event in read_events(path)]
        # The server shows a payload's inner events too, at the payload's end and without a length.
        theirs = [(int(row[1]), int(row[4])) for row in oracle if row[1] != row[4]]
        assert ours == theirs


def test_transaction_length_hops_from_gtid_to_gtid(written97: Written) -> None:
    transactions = {each.start: each for each in read_transactions(written97.path(1))}
    hops = 0
    for event in read_events(written97.path(1)):
        if isinstance(event.body, GtidLog):
            assert event.body.transaction_bytes is not None
            assert event.start + event.body.transaction_bytes == transactions[event.start].end
            hops += 1
    assert hops == len(transactions)


def test_heads(written: Written) -> None:
    heads = [read_file_head(path) for path in written.files]
    checksums = [head.description.checksum for head in heads]
    assert checksums[0] is ChecksumAlgorithm.CRC32
    assert ChecksumAlgorithm.NONE in checksums
    assert [head.description.is_in_use for head in heads] == [False] * (len(heads) - 1) + [True]
    assert all(head.description.server_version.startswith(("5.6.", "9.7.")) for head in heads)
    logged = GtidSet()
    for path, head in zip(written.files, heads, strict=True):
        assert head.previous_gtids == logged
        logged |= GtidSet.of(each.gtid for each in read_transactions(path) if each.gtid)
    assert logged == written.executed


def test_kinds_97(written97: Written) -> None:
    kinds = {str(each.gtid): each.kind for each in read_transactions(written97.path(1))}
    assert kinds.pop(f"{FOREIGN}:5") is Kind.EMPTY
    assert kinds.pop(f"{FOREIGN}:dba:7") is Kind.DML
    assert list(kinds.values()) == [
        *[Kind.DDL] * 3,
        *[Kind.DML] * 7,  # the last of these is CREATE TABLE … SELECT
        *[Kind.XA] * 3,
        COMPRESSED,
        Kind.DML,
        *[Kind.DDL] * 2,
    ]


def test_statements_97(written97: Written) -> None:
    transactions = list(read_transactions(written97.path(1)))
    [mixed] = [each for each in transactions if len(each.statements) == 3]
    assert [statement.sql for statement in mixed.statements] == [
        "INSERT INTO d.s VALUES (12, 'kept')",
        "SAVEPOINT `here`",
        "INSERT INTO d.s VALUES (13, 'kept')",
    ]
    assert all(each.error_code == 0 for each in transactions)
    assert {each.server_id for each in transactions} == {written97.server.server_id}
    assert transactions[0].statements[0].schema == "d"


@pytest.mark.skipif(not ZSTANDARD, reason="zstandard is not installed")
def test_compressed_payload_is_opened(written97: Written) -> None:
    compressed = next(
        each
        for each in read_transactions(written97.path(1))
        if each.tables and each.tables[0].rows_written == 2 and each.tables[0].table == "s"
    )
    assert (compressed.tables[0].schema, compressed.kind) == ("d", Kind.DML)


def test_compressed_payload_without_a_decompressor_is_placed_and_dated(written97: Written) -> None:
    path = written97.path(1)
    transactions = list(fold_transactions(read_events(path)))
    [unread] = [each for each in transactions if each.kind is Kind.OTHER]
    assert unread.gtid is not None
    assert not unread.tables
    assert not unread.statements
    assert unread.original_commit_timestamp


def test_failing_view_of_5_6(written56: Written) -> None:
    failed = [each for each in read_transactions(written56.path(1)) if each.error_code]
    [failing] = failed
    assert failing.error_code == 1050
    assert failing.kind is Kind.DDL
    assert failing.statements[0].error_code == 1050
    assert failing.statements[0].sql.startswith("CREATE ALGORITHM=UNDEFINED")
    rows = written56.server.query(f"SHOW BINLOG EVENTS IN '{failing.file}' FROM {failing.start}")
    assert [row[2] for row in rows[:2]] == ["Gtid", "Query"]
    assert str(failing.gtid) in rows[0][5]
    assert (rows[1][4], rows[1][5]) == (failing.end, failing.statements[0].sql)


def test_kinds_56(written56: Written) -> None:
    transactions = list(read_transactions(written56.path(1)))
    assert [each.kind for each in transactions] == [
        *[Kind.DDL] * 5,
        Kind.DML,
        Kind.EMPTY,
        *[Kind.DML] * 7,
        Kind.DDL,
    ]
    assert all(each.original_commit_timestamp is None for each in transactions)
    assert all(each.logical_sequence_number is None for each in transactions)


def _events_fed(data: bytes, chunk_bytes: int) -> list[Event]:
    decoder = EventDecoder(file="log")
    events: list[Event] = []
    for at in range(0, len(data), chunk_bytes):
        decoder.receive(data[at : at + chunk_bytes])
        while (event := decoder.next_event()) is not NEED_MORE_DATA:
            events.append(event)
    decoder.finish()
    return events


def test_feeding_byte_by_byte_equals_one_chunk(written: Written) -> None:
    for path in written.files:
        data = path.read_bytes()
        whole = _events_fed(data, len(data))
        assert whole
        assert isinstance(whole[0].body, FormatDescription)
        assert _events_fed(data, 1) == whole
        assert _events_fed(data, 7) == whole


def test_a_gtid_is_a_gtid(written97: Written) -> None:
    found = [each.gtid for each in read_transactions(written97.path(1))]
    assert Gtid.parse(f"{FOREIGN}:dba:7") in found

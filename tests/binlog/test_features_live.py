"""Events that a server writes on few occasions, from real servers made to: what they say of them.

`test_real_logs.py` has what every server writes. Here: a shutdown, a crash, lost events, the change
from GTIDs to none and back, row events of version 1, and payloads larger than a window.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pymysql
import pytest

from binlog.adapters.ledger_files import ledger_of_file
from binlog.adapters.log_files import read_events, read_file_head
from binlog.adapters.stream_ledger import ledger_of_server
from binlog.adapters.stream_packets import dump_events
from binlog.adapters.stream_session import AllBut, FromPlace, Only, RequestLimits, Wish
from binlog.errors import DumpRefused, TruncatedBinlog
from binlog.event_types import EventType
from binlog.ledger.ledger_columns import LedgerRequest
from binlog.transactions import TransactionKind as Kind
from compose.native import shapes
from compose.native.command import Settings
from compose.native.installation import Clients, Installation
from compose.native.server import Server
from gtid import GtidSet
from tests.binlog.logs_in_memory import read_transactions
from tests.binlog.material import Written, connect_arguments
from tests.binlog.test_ledger import same

# Several rows of a table without transactions that do not fit the cache: the rows are there, and
# the log has an incident in their place (ER_MULTI_ROW_STMT_CACHE_FULL; both versions).
_LOSES_EVENTS = (
    "INSERT INTO d.m VALUES (1, REPEAT('x', 3000)), (2, REPEAT('x', 3000)), (3, REPEAT('x', 3000))"
)
_CACHE_FULL = 1705
_SMALL_CACHE = ("--max-binlog-stmt-cache-size=4096", "--binlog-stmt-cache-size=4096")
_VERSION_1 = "--log-bin-use-v1-row-events=1"
_ROWS = (
    "INSERT INTO d.t VALUES (1, 'one'), (2, 'two')",
    "UPDATE d.t SET v = 'other'",
    "DELETE FROM d.t WHERE a = 1",
)

# SHOW BINLOG EVENTS and mysqlbinlog have names of their own for a few types.
_NAMES = {
    "Format_desc": EventType.FORMAT_DESCRIPTION,
    "Previous_gtids": EventType.PREVIOUS_GTIDS,
    "Gtid": EventType.GTID,
    "Anonymous_Gtid": EventType.ANONYMOUS_GTID,
    "Query": EventType.QUERY,
    "Xid": EventType.XID,
    "Table_map": EventType.TABLE_MAP,
    "Write_rows": EventType.WRITE_ROWS,
    "Update_rows": EventType.UPDATE_ROWS,
    "Delete_rows": EventType.DELETE_ROWS,
    "Write_rows_v1": EventType.WRITE_ROWS_V1,
    "Update_rows_v1": EventType.UPDATE_ROWS_V1,
    "Delete_rows_v1": EventType.DELETE_ROWS_V1,
    "Incident": EventType.INCIDENT,
    "Rotate": EventType.ROTATE,
    "Stop": EventType.STOP,
}


@dataclass(frozen=True)
class Marked:
    """A server, its logs as they are, and as its last one was when it was killed."""

    server: Server
    files: tuple[Path, ...]
    killed: Path

    def types_of(self, number: int) -> list[int]:
        return [event.header.type_code for event in read_events(self.files[number - 1])]


@pytest.fixture(scope="module")
def marked97(
    installation97: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Marked]:
    folder = tmp_path_factory.mktemp("killed")
    with shapes.single(installation97, settings=Settings(extra=_SMALL_CACHE)) as server:
        _write(server)
        for mode in ("ON_PERMISSIVE", "OFF_PERMISSIVE"):
            server.execute(f"SET GLOBAL gtid_mode = {mode}")
        server.execute("INSERT INTO d.t VALUES (5, 'nameless')", "CREATE TABLE d.u (a INT)")
        for mode in ("ON_PERMISSIVE", "ON"):
            server.execute(f"SET GLOBAL gtid_mode = {mode}")
        server.execute("INSERT INTO d.t VALUES (6, 'named again')")
        yield _killed(server, folder)


@pytest.fixture(scope="module")
def marked56(
    installation56: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Marked]:
    folder = tmp_path_factory.mktemp("killed")
    settings = Settings(extra=(*_SMALL_CACHE, _VERSION_1))
    with shapes.single(installation56, settings=settings) as server:
        _write(server)
        yield _killed(server, folder)


@pytest.fixture(params=["marked56", "marked97"])
def marked(request: pytest.FixtureRequest) -> Marked:
    found: Marked = request.getfixturevalue(request.param)
    return found


def _write(server: Server) -> None:
    server.execute(
        "CREATE DATABASE d",
        "CREATE TABLE d.t (a INT PRIMARY KEY, v VARCHAR(20))",
        "CREATE TABLE d.m (a INT, v TEXT) ENGINE=MyISAM",
        *_ROWS,
    )
    with pytest.raises(pymysql.err.MySQLError) as full:
        server.execute(_LOSES_EVENTS)
    assert full.value.args[0] == _CACHE_FULL
    server.execute("INSERT INTO d.t VALUES (3, 'behind the incident')")
    server.restart()
    server.execute("INSERT INTO d.t VALUES (4, 'behind the restart')")


def _killed(server: Server, folder: Path) -> Marked:
    """Kill it, keep the log it was writing, and start it again."""
    server.kill()
    last = max(server.datadir.glob("binlog.0*"))
    killed = folder / last.name
    killed.write_bytes(last.read_bytes())
    server.start()
    return Marked(server, tuple(sorted(server.datadir.glob("binlog.0*"))), killed)


def test_every_event_is_where_and_what_its_server_says(marked: Marked) -> None:
    for path in marked.files:
        shown = marked.server.query(f"SHOW BINLOG EVENTS IN '{path.name}'")
        theirs = [(int(row[1]), _NAMES[row[2]], int(row[4])) for row in shown]
        ours = [(event.start, event.header.type_code, event.end) for event in read_events(path)]
        assert ours == theirs
        same(path, details=True)


def test_a_shutdown_ends_a_log_with_a_stop_and_a_crash_with_nothing(marked: Marked) -> None:
    """The incident began the second log, the restart the third one."""
    assert marked.types_of(2)[-1] == EventType.STOP
    last_of_killed = [event.header.type_code for event in read_events(marked.killed)][-1]
    assert last_of_killed == EventType.XID
    assert read_file_head(marked.killed).description.is_in_use
    assert not read_file_head(marked.files[1]).description.is_in_use


def test_lost_events_are_an_incident(marked: Marked, mysql_clients: Clients) -> None:
    assert marked.types_of(1)[-2:] == [EventType.INCIDENT, EventType.ROTATE]
    ledger = ledger_of_file(marked.files[0])
    assert ledger.error is None
    assert ledger.rows["kind"].to_pylist() == [*["ddl"] * 3, *["dml"] * 3, "incident"]
    [incident] = [each for each in read_transactions(marked.files[0]) if each.kind is Kind.INCIDENT]
    if marked.server.version > (8,):
        printed = _printed(mysql_clients, marked.files[0])
        assert f"GTID_NEXT= '{incident.gtid}'" in printed.partition("Incident: LOST_EVENTS")[0]
        assert printed.rindex("GTID_NEXT= '" + str(incident.gtid)) > printed.rindex("Xid = ")


def test_rows_of_version_1_are_counted_as_any_others(marked56: Marked) -> None:
    versions = {EventType.WRITE_ROWS_V1, EventType.UPDATE_ROWS_V1, EventType.DELETE_ROWS_V1}
    assert versions < set(marked56.types_of(1))
    counts = [
        (table.table, table.rows_written, table.rows_updated, table.rows_deleted)
        for each in read_transactions(marked56.files[0])
        for table in each.tables
    ]
    assert counts == [("t", 2, 0, 0), ("t", 0, 2, 0), ("t", 0, 0, 1)]


def test_transactions_without_a_gtid_stand_between_those_that_have_one(
    marked97: Marked, mysql_clients: Clients
) -> None:
    rows = [row for path in marked97.files for row in ledger_of_file(path).rows.to_pylist()]
    printed = "".join(_printed(mysql_clients, path) for path in marked97.files)
    named = re.findall(r"GTID_NEXT= '(?:[0-9a-f-]{36}:(\d+)|ANONYMOUS)'", printed)
    assert [row["gno"] for row in rows] == [int(gno) if gno else None for gno in named]
    nameless = [row for row in rows if row["gno"] is None]
    assert [row["kind"] for row in nameless] == ["dml", "ddl"]
    assert all(row["original_commit_at"] is not None for row in nameless)


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (FromPlace("binlog.000001", 4), "when @@GLOBAL.GTID_MODE = ON"),
        (AllBut(GtidSet()), "when AUTO_POSITION = 1"),
    ],
)
def test_a_server_that_went_back_to_gtids_sends_up_to_the_first_without(
    marked97: Marked, wish: Wish, words: str
) -> None:
    """It refuses in its own words; what stood before is given, and its files can be read."""
    arguments = connect_arguments(marked97.server)
    batches = ledger_of_server(arguments, wish, timeout_seconds_max=10)
    given: list[list[int]] = []
    with pytest.raises(DumpRefused, match=f"Cannot replicate anonymous transaction {words}"):
        given.extend(batch.rows["gno"].to_pylist() for batch in batches)
    assert [gno for part in given for gno in part] == list(range(1, 10))


def test_a_log_that_was_cut_gives_what_mysqlbinlog_reads_of_it(
    marked: Marked, mysql_clients: Clients, tmp_path: Path
) -> None:
    """The log of a server that was killed, as a disk may have kept it: to the middle of an event."""
    data = marked.killed.read_bytes()
    whole = list(read_transactions(marked.killed))
    assert len(whole) == 1
    begun = whole[-1].start
    for length in range(begun + 1, len(data), 7):
        path = tmp_path / f"binlog.{length:06}"
        path.write_bytes(data[:length])
        ledger = ledger_of_file(path)
        assert isinstance(ledger.error, TruncatedBinlog)
        assert ledger.error.in_use
        assert ledger.error.position <= length
        assert not any(ledger.rows["is_complete"].to_pylist())
    begun_or_not = {begun + 30: 0, len(data) - 5: 1}
    for length, count in begun_or_not.items():
        path = tmp_path / "binlog.000099"
        path.write_bytes(data[:length])
        heads = re.findall(r"GTID_NEXT= '[0-9a-f-]{36}:\d+'", _printed(mysql_clients, path))
        assert len(heads) == ledger_of_file(path).rows.num_rows == count


def _printed(clients: Clients, path: Path) -> str:
    """Return what mysqlbinlog prints; of a log that is cut it prints what stands before."""
    command = [*clients.command("mysqlbinlog"), "--base64-output=decode-rows", str(path)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    return done.stdout.decode("utf-8", errors="replace")


def test_heartbeats_have_the_form_the_server_knows(written: Written) -> None:
    """Of all but the first transaction nothing is sent but a heartbeat, which says how far it is."""
    bounds = RequestLimits.start(timeout_seconds_max=10, bytes_max=1 << 20)
    wish = Only(written.executed.first(1))
    events = dump_events(connect_arguments(written.server), wish, bounds)
    types = {event.header.type_code for event in events}
    is_old = written.server.version < (8, 0, 26)
    form = EventType.HEARTBEAT if is_old else EventType.HEARTBEAT_V2
    assert types & {EventType.HEARTBEAT, EventType.HEARTBEAT_V2} == {form}


# ---- payloads


@pytest.fixture(scope="module")
def compressing(installation97: Installation) -> Iterator[Server]:
    settings = Settings(extra=("--innodb-redo-log-capacity=256M",))
    with shapes.single(installation97, settings=settings) as server:
        server.execute(
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT PRIMARY KEY AUTO_INCREMENT, v VARBINARY(1000))",
            "CREATE TABLE d.seed (i INT PRIMARY KEY)",
            "SET cte_max_recursion_depth = 100000",
            "INSERT INTO d.seed WITH RECURSIVE n (i) AS"
            " (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000) SELECT i FROM n",
            "FLUSH BINARY LOGS",
            "SET binlog_transaction_compression = ON",
            # Bytes that do not compress, and bytes that do: 12 MB each before compression.
            "INSERT INTO d.t (v) SELECT RANDOM_BYTES(1000) FROM d.seed",
            "INSERT INTO d.t (v) SELECT REPEAT('x', 1000) FROM d.seed",
            "INSERT INTO d.t (v) VALUES ('small')",
        )
        yield server


def test_payloads_of_any_size_are_opened(compressing: Server, mysql_clients: Clients) -> None:
    path = max(compressing.datadir.glob("binlog.0*"))
    types = [event.header.type_code for event in read_events(path)]
    assert types.count(EventType.TRANSACTION_PAYLOAD) == 3
    sizes = [each.end - each.start for each in read_transactions(path)]
    assert sizes[0] > 12_000_000
    assert sizes[1] < 1_000_000
    written = [each.tables[0].rows_written for each in read_transactions(path)]
    assert written == [12_000, 12_000, 1]
    same(path, details=True)
    printed = re.findall(
        r"original_committed_timestamp=\d+.*transaction_length=(\d+)", _printed(mysql_clients, path)
    )
    assert [int(size) for size in printed] == sizes


def test_a_payload_larger_than_a_window_comes_from_a_server_as_from_its_file(
    compressing: Server,
) -> None:
    path = max(compressing.datadir.glob("binlog.0*"))
    wish = FromPlace(path.name, 4)
    for digests in (False, True):
        batches = ledger_of_server(
            connect_arguments(compressing),
            wish,
            LedgerRequest(digests=digests),
            timeout_seconds_max=60,
        )
        rows = [row for batch in batches for row in batch.rows.to_pylist()]
        assert rows == ledger_of_file(path, LedgerRequest(digests=digests)).rows.to_pylist()
    assert len({row["digest"] for row in rows}) == 3
    everything = ledger_of_server(
        connect_arguments(compressing), AllBut(GtidSet()), timeout_seconds_max=60
    )
    assert sum(batch.rows.num_rows for batch in everything) == 3 + 4

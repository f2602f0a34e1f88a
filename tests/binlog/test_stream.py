"""What only a live server can do: refuse, purge, freeze, vanish, and notice who is asking."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pymysql
import pytest
from pymysql.constants import COMMAND

from binlog.adapters import stream
from binlog.adapters.stream import ServerLogs
from binlog.adapters.stream_ledger import ledger_of_server
from binlog.adapters.stream_packets import dump_events
from binlog.adapters.stream_session import SERVER_ID_BASE, AllBut, Only
from binlog.errors import (
    BinlogMisuse,
    CorruptBinlog,
    DumpBroken,
    DumpRefused,
    DumpTimedOut,
    LimitExceeded,
)
from binlog.events import Event, Rows
from binlog.locating.places import TransactionPlace
from compose.native import shapes
from compose.native.command import Settings
from compose.native.installation import Installation
from compose.native.server import Server
from gtid import GtidSet
from tests.binlog.logs_in_memory import read_transactions
from tests.binlog.material import FOREIGN, Written
from tests.binlog.material import connect_arguments as arguments


@pytest.fixture(scope="module", params=["installation56", "installation97"])
def lone_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server of this module's own. MyISAM, so that the redo log does not bound a row."""
    installation: Installation = request.getfixturevalue(request.param)
    with shapes.single(installation) as server:
        server.execute(
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT PRIMARY KEY, b LONGTEXT) ENGINE=MyISAM",
            "CREATE USER nobody@'%' IDENTIFIED BY 'secret'",
            "SET GLOBAL max_allowed_packet = 67108864",
            "SET GLOBAL binlog_format = 'ROW'",
        )
        yield server


def _logs(server: Server, *, timeout_seconds_max: float = 30) -> ServerLogs:
    return ServerLogs(arguments(server), timeout_seconds_max=timeout_seconds_max)


def _executed(server: Server) -> GtidSet:
    return GtidSet.parse(server.value("@@GLOBAL.gtid_executed"))


def test_the_failing_view_is_found_where_the_replica_stopped(pair56: shapes.Pair) -> None:
    """The seed's case, end to end: the replica's own coordinates lead to the failing statement."""
    pair56.a.execute("CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)")
    pair56.settle()
    pair56.a.execute("SET sql_log_bin = 0", "CREATE VIEW d.v AS SELECT a FROM d.t")
    with pytest.raises(pymysql.err.OperationalError) as failed:
        pair56.a.execute("CREATE VIEW d.v AS SELECT a FROM d.t")
    assert failed.value.args[0] == 1050
    pair56.a.execute("INSERT INTO d.t VALUES (1)")
    status = _await_applier_error(pair56.b)
    [failing] = _logs(pair56.a).transactions_from(
        file=status["Relay_Source_Log_File"],
        position=int(status["Exec_Source_Log_Pos"]),
        transactions_max=1,
    )
    assert failing.error_code == 1050
    assert failing.start == int(status["Exec_Source_Log_Pos"])
    assert "VIEW `d`.`v`" in failing.statements[0].sql
    assert failing.gtid is not None
    assert failing.gtid in _executed(pair56.a)


@pytest.mark.parametrize("fixture", ["pair56", "pair97"])
def test_relay_logs_hold_what_the_replica_retrieved(
    request: pytest.FixtureRequest, fixture: str
) -> None:
    pair: shapes.Pair = request.getfixturevalue(fixture)
    pair.a.execute("CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)")
    pair.settle()
    pair.b.execute(f"STOP {'SLAVE' if fixture == 'pair56' else 'REPLICA'} SQL_THREAD")
    pair.a.execute("SET GLOBAL binlog_checksum = 'NONE'", "INSERT INTO d.t VALUES (1)")
    pair.a.execute("SET GLOBAL binlog_checksum = 'CRC32'", "INSERT INTO d.t VALUES (2)")
    wanted = pair.a.value("@@GLOBAL.gtid_executed")
    for _ in range(3000):
        retrieved = pair.b.replica_status()["Retrieved_Gtid_Set"]
        if GtidSet.parse(wanted) <= GtidSet.parse(retrieved):
            break
        threading.Event().wait(0.01)
    logs = sorted(pair.b.datadir.glob("relay.[0-9]*"))
    found = [each for path in logs for each in read_transactions(path)]
    expected = {
        each.gtid: each
        for path in sorted(pair.a.datadir.glob("binlog.[0-9]*"))
        for each in read_transactions(path)
    }
    assert {each.gtid for each in found} >= {*expected} - {None}
    assert all(each.is_complete for each in found)
    for each in found:
        original = expected[each.gtid]
        assert each.end - each.start == original.end - original.start
        assert (each.kind, each.tables, each.statements, each.original_commit_timestamp) == (
            original.kind,
            original.tables,
            original.statements,
            original.original_commit_timestamp,
        )


@pytest.mark.parametrize("fixture", ["installation56", "installation97"])
def test_a_server_without_gtids(request: pytest.FixtureRequest, fixture: str) -> None:
    installation: Installation = request.getfixturevalue(fixture)
    settings = Settings(extra=("--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"))
    with shapes.single(installation, settings=settings) as server:
        server.execute(
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT PRIMARY KEY AUTO_INCREMENT)",
            "SET binlog_format = 'STATEMENT'",
            "INSERT INTO d.t VALUES (NULL), (NULL)",
            "SET binlog_format = 'ROW'",
            "INSERT INTO d.t VALUES (NULL), (NULL)",
        )
        file, position = server.binary_log_position()
        from_file = tuple(read_transactions(server.datadir / file))
        streamed = _logs(server).transactions_from(file=file, position=4, transactions_max=99)
        with pytest.raises(DumpRefused) as refused:
            _logs(server).transactions_of(GtidSet.parse(f"{FOREIGN}:1"))
    assert streamed == from_file
    assert [each.kind.value for each in from_file] == ["ddl", "ddl", "dml", "dml"]
    assert {each.gtid for each in from_file} == {None}
    assert from_file[-1].tables[0].rows_written == 2
    assert from_file[-1].end == position
    assert refused.value.code == 1236


def _await_applier_error(server: Server) -> dict[str, Any]:
    for _ in range(3000):
        status = server.replica_status()
        if status["Last_SQL_Error"]:
            assert "different errors" in status["Last_SQL_Error"]
            return status
        threading.Event().wait(0.01)
    raise AssertionError("the replica went on")


def test_purged_transactions_are_refused_in_the_servers_words(lone_server: Server) -> None:
    before = _executed(lone_server)
    lone_server.execute("REPLACE INTO d.t VALUES (1, '')")
    wanted = _executed(lone_server) - before
    lone_server.execute("FLUSH BINARY LOGS", "REPLACE INTO d.t VALUES (1, '')")
    file, _ = lone_server.binary_log_position()
    lone_server.execute(f"PURGE BINARY LOGS TO '{file}'")
    with pytest.raises(DumpRefused) as refused:
        _logs(lone_server).transactions_of(wanted)
    assert refused.value.code == 1236
    assert "purged" in refused.value.text


def test_what_is_committed_meanwhile_is_left_out(lone_server: Server) -> None:
    before = _executed(lone_server)
    lone_server.execute("REPLACE INTO d.t VALUES (1, '')")
    executed = _executed(lone_server)
    wanted = executed - before
    # The server has it not yet when it is asked what it has, and has it when it begins to send.
    connection = pymysql.connect(**arguments(lone_server))
    ask = connection._execute_command  # type: ignore[attr-defined]

    def commit_first(command: int, sql: bytes | str) -> None:
        if command == COMMAND.COM_BINLOG_DUMP_GTID:
            lone_server.execute("REPLACE INTO d.t VALUES (1, '')")
        ask(command, sql)

    connection._execute_command = commit_first  # type: ignore[attr-defined]
    logs = ServerLogs(lambda: connection, timeout_seconds_max=30)
    unbounded = wanted | GtidSet.parse(f"{FOREIGN}:1")  # so that it does not stop at the last
    given = logs.transactions_of(unbounded)
    assert [each.gtid for each in given] == list(wanted.gtids())
    assert _executed(lone_server) - executed


def test_the_server_sends_only_what_is_wanted(lone_server: Server) -> None:
    """A megabyte lies before and behind the wanted transaction, and 100 kB are allowed."""
    megabyte = "REPLACE INTO d.t VALUES ({}, REPEAT('x', 1048576))"
    lone_server.execute(megabyte.format(1))
    before = _executed(lone_server)
    lone_server.execute("REPLACE INTO d.t VALUES (2, 'small')")
    wanted = _executed(lone_server) - before
    lone_server.execute(megabyte.format(3))
    given = _logs(lone_server).transactions_of(wanted, bytes_max=100_000)
    assert [each.gtid for each in given] == list(wanted.gtids())


def test_what_is_executed_and_in_no_log_is_not_waited_for(lone_server: Server) -> None:
    """A change made under a GTID with sql_log_bin = OFF: it is executed, not purged, and in no log."""
    before = _executed(lone_server)
    lone_server.execute(
        "REPLACE INTO d.t VALUES (1, '')",
        "SET sql_log_bin = 0",
        f"SET gtid_next = '{FOREIGN}:77'",
        "REPLACE INTO d.t VALUES (2, '')",
    )
    wanted = _executed(lone_server) - before
    there = list((wanted - GtidSet.parse(f"{FOREIGN}:77")).gtids())
    logs = _logs(lone_server)
    assert [each.gtid for each in logs.transactions_of(wanted)] == there
    assert [each.transaction.gtid for each in logs.events_of(wanted)] == there
    for wish in (Only(wanted), AllBut(before)):
        batches = ledger_of_server(arguments(lone_server), wish, timeout_seconds_max=10)
        assert [gtid for batch in batches for gtid in batch.gtids.gtids()] == there


def test_an_event_of_more_than_one_packet(lone_server: Server) -> None:
    """Packets hold 16 MiB - 1 bytes; the server sends a larger event in several."""
    before = _executed(lone_server)
    lone_server.execute("REPLACE INTO d.t VALUES (4, REPEAT('x', 33554432))")
    wanted = _executed(lone_server) - before
    [large] = _logs(lone_server).transactions_of(wanted)
    assert large.end - large.start > 33_554_432
    assert large.tables[0].rows_written == 1
    with pytest.raises(LimitExceeded):
        _logs(lone_server).transactions_of(wanted, bytes_max=20_000_000)


def test_where_a_transaction_stands_is_told_by_its_head(
    lone_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _executed(lone_server)
    lone_server.execute(*["REPLACE INTO d.t VALUES (5, REPEAT('x', 100000))"] * 3)
    wanted = _executed(lone_server) - before
    expected = [
        (each.file, TransactionPlace(each.gtid, each.start, each.end))
        for each in _logs(lone_server).transactions_of(wanted)
        if each.gtid
    ]
    read: list[Event] = []

    def noted(*given: Any, **named: Any) -> Iterator[Event]:
        for event in dump_events(*given, **named):
            read.append(event)
            yield event

    monkeypatch.setattr(stream, "dump_events", noted)
    assert list(_logs(lone_server).places_of(wanted)) == expected
    assert len(expected) == 3
    of_rows = [event for event in read if isinstance(event.body, Rows)]
    assert len(of_rows) == (3 if lone_server.version < (8, 0, 2) else 2)


def test_nobody_takes_us_for_a_replica(lone_server: Server) -> None:
    """Two at once do not end each other; none of them is listed; all are gone afterwards."""
    before = _executed(lone_server)
    lone_server.execute(*["REPLACE INTO d.t VALUES (1, '')"] * 5)
    wanted = _executed(lone_server) - before
    listed: list[Any] = []
    given: list[int] = []

    def ask() -> None:
        for _ in range(10):
            given.append(len(_logs(lone_server).transactions_of(wanted)))

    askers = [threading.Thread(target=ask) for _ in range(2)]
    for asker in askers:
        asker.start()
    hosts = "SHOW SLAVE HOSTS" if lone_server.version < (8, 0, 22) else "SHOW REPLICAS"
    while any(asker.is_alive() for asker in askers):
        listed += lone_server.query(hosts)
    assert given == [5] * 20
    assert listed == []
    assert SERVER_ID_BASE + 2**28 - 1 < 2**32


def test_a_frozen_server_costs_its_timeout(lone_server: Server) -> None:
    executed = _executed(lone_server)
    lone_server.freeze()
    try:
        with pytest.raises(DumpTimedOut):
            _logs(lone_server, timeout_seconds_max=0.3).transactions_of(executed)
    finally:
        lone_server.thaw()


def test_a_server_that_freezes_in_the_middle_costs_the_timeout(lone_server: Server) -> None:
    executed = _executed(lone_server)
    connection = pymysql.connect(**arguments(lone_server))

    def freeze_then_give() -> Any:
        lone_server.freeze()
        return connection

    try:
        with pytest.raises(DumpTimedOut, match=r"after 0\.3 s"):
            ServerLogs(freeze_then_give, timeout_seconds_max=0.3).transactions_of(executed)
    finally:
        lone_server.thaw()


def test_a_missing_privilege_is_named(lone_server: Server) -> None:
    with pytest.raises(DumpRefused) as refused:
        ServerLogs(
            {**arguments(lone_server), "user": "nobody", "password": "secret"},
            timeout_seconds_max=30,
        ).transactions_from(file="binlog.000001", position=4, transactions_max=1)
    assert refused.value.code == 1227
    assert "secret" not in str(refused.value)


def test_a_wrong_password_is_refused(lone_server: Server) -> None:
    with pytest.raises(DumpRefused) as refused:
        ServerLogs(
            {**arguments(lone_server), "password": "wrong"}, timeout_seconds_max=30
        ).transactions_from(file="binlog.000001", position=4, transactions_max=1)
    assert refused.value.code == 1045


def test_positions_a_dump_cannot_name() -> None:
    for position in (3, 2**32):
        with pytest.raises(BinlogMisuse):
            ServerLogs({}, timeout_seconds_max=1).transactions_from(
                file="f", position=position, transactions_max=1
            )
    with pytest.raises(BinlogMisuse, match="timeout"):
        ServerLogs({}, timeout_seconds_max=0).transactions_from(
            file="f", position=4, transactions_max=1
        )


def test_nobody_listens() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(DumpBroken):
        ServerLogs(
            {"host": "127.0.0.1", "port": port, "user": "root"}, timeout_seconds_max=5
        ).transactions_from(file="f", position=4, transactions_max=1)


class _FalseServer:
    """A real session until the dump, then whatever bytes the test wants the server to send."""

    def __init__(self, written: Written, answer: bytes) -> None:
        self.connection = pymysql.connect(**arguments(written.server))
        self.answer = answer

    def __call__(self) -> Any:
        connection: Any = self.connection
        original = connection._execute_command

        def execute(command: int, sql: bytes | str) -> None:
            original(command, sql)
            if isinstance(sql, bytes) and command in (0x12, 0x1E):
                here, there = socket.socketpair()
                there.sendall(self.answer)
                there.close()
                connection._sock.close()
                connection._sock, connection._rfile = here, here.makefile("rb")

        connection._execute_command = execute
        return connection


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (b"", DumpBroken, "closed the connection"),
        (b"\1\0\0", DumpBroken, "closed the connection"),
        (b"\1\0\0\7x", DumpBroken, "expected packet 1"),
        (b"\0\0\0\1", DumpBroken, "empty packet"),
        (b"\1\0\0\1\5", DumpBroken, "unknown kind 5"),
        (b"\x0d\0\0\1\xff\xd4\x04#HY000lost", DumpRefused, "1236: lost"),
        (b"\7\0\0\1\xff\xd4\x04lost", DumpRefused, "1236: lost"),
        (b"\2\0\0\1\0\0", CorruptBinlog, "a packet without an event"),
        (b"\x15\0\0\1\0" + bytes(20), CorruptBinlog, "found a length of 0"),
        (b"\x15\0\0\1\0" + bytes(9) + b"\x13" + bytes(10), CorruptBinlog, "in a packet of 20"),
        (b"\xff\xff\xff\1", LimitExceeded, "the limit of 1,000,000 bytes"),
    ],
)
def test_answers_no_server_should_give(
    written97: Written, answer: bytes, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        ServerLogs(_FalseServer(written97, answer), timeout_seconds_max=5).transactions_from(
            file="binlog.000001", position=4, transactions_max=1, bytes_max=1_000_000
        )

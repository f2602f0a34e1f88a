"""Servers the live reader cannot evaluate, and answers it cannot read: named, and nothing more.

The servers of other makers are the one thing scripted here: their answers to the first questions
are all that is needed of them.
"""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pymysql
import pytest
from pymysql.constants import CR, ER

from compose.native import shapes
from compose.native.command import Settings
from compose.native.installation import Installation
from compose.native.server import Server
from gtid import GtidSet
from topology.adapters import mysql
from topology.adapters.mysql import LostServer, MysqlReader, connect
from topology.readings.notable_settings import notable_values
from topology.readings.snapshot import ReadServer, ServerSnapshot, UnreadFact, UnreadReason, as_read
from topology.readings.target import ServerTarget, SslMode
from topology.readings.vendors import Vendor

Answer = list[dict[str, Any]] | Exception
TARGET = ServerTarget(name="a", host="db1", port=3306, user="root")
UUID_A = "aaaaaaaa-0000-0000-0000-000000000000"
IDENTITY: dict[str, Any] = {
    "gtid_owned": "",
    "gtid_purged": f"{UUID_A}:1-3",
    "gtid_executed": f"{UUID_A}:1-9",
    "server_uuid": UUID_A,
    "server_id": 1,
    "gtid_mode": "ON",
    "server_clock": datetime(2026, 1, 2, 12),  # noqa: DTZ001 - as the client library gives it
}
ANSWERS: dict[str, Answer] = {
    "@@GLOBAL.gtid_owned": [IDENTITY],
    "SELECT @@GLOBAL.version": [{"version": "9.7.4", "version_comment": "(Debian)"}],
    "SHOW REPLICA STATUS": [],
    "replication_applier_status_by_worker": [],
    "SHOW BINARY LOG STATUS": [{"File": "binlog.000002", "Position": 157}],
    "Uptime": [{"Variable_name": "Uptime", "Value": "60"}],
    "SHOW BINARY LOGS": [{"Log_name": "binlog.000002", "File_size": 157, "Encrypted": "Yes"}],
    "SHOW GLOBAL VARIABLES": [{"Variable_name": "gtid_mode", "Value": "ON"}],
    "performance_schema.variables_info": [{"name": "gtid_mode", "source": "COMPILED"}],
}
GROUP_PLUGIN: dict[str, Answer] = {
    "SHOW GLOBAL VARIABLES": [{"Variable_name": "group_replication_group_name", "Value": "g"}]
}


class Scripted:
    """A connection that answers each statement by the first words it knows in it."""

    takes_batches = False

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self._answers = answers
        self._rows: list[dict[str, Any]] = []

    @contextmanager
    def cursor(self) -> Iterator["Scripted"]:
        yield self

    @property
    def description(self) -> list[tuple[str]]:
        """The columns of the answer; an empty one has those that somebody looks for."""
        expected = ("Source_Host", "worker_id", "value")
        return [(name,) for name in (self._rows[0] if self._rows else expected)]

    def execute(self, statement: str) -> None:
        answer = next(rows for words, rows in self._answers.items() if words in statement)
        if isinstance(answer, Exception):
            raise answer
        self._rows = answer

    def fetchall(self) -> list[dict[str, Any]]:
        return self._rows

    def close(self) -> None:
        raise pymysql.err.Error("already closed")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Any:
    def once(changes: Mapping[str, Answer]) -> ServerSnapshot:
        answers = {**ANSWERS, **changes}
        monkeypatch.setattr(mysql, "connect", lambda *_, **__: Scripted(answers))
        return MysqlReader(TARGET, cluster="c", timeout_seconds_max=5.0).read(phase=1)

    return once


def version(text: str, comment: str = "") -> dict[str, Answer]:
    return {"SELECT @@GLOBAL.version": [{"version": text, "version_comment": comment}]}


def test_a_member_of_a_group_is_read_with_what_it_received(read: Any) -> None:
    own = {
        "server_uuid": UUID_A,
        "host": "db1",
        "port": 3306,
        "member_state": "ONLINE",
        "member_role": "SECONDARY",
        "is_this": 1,
        "received": f"{UUID_A}:1-9",
        "recovery_errno": None,
        "recovery_error": None,
        "view_id": "17957813433744877:3",
    }
    other = {**own, "server_uuid": UUID_A[:-1] + "b", "host": "::1", "is_this": 0, "received": ""}
    other |= {"member_state": "UNREACHABLE", "member_role": "PRIMARY"}
    worker = {
        "channel": "group_replication_applier",
        "worker_id": 1,
        "errno": 0,
        "error": "",
        "state": "Waiting for table metadata lock",
        "is_hidden": 0,
        "applying": f"{UUID_A}:9",
        "applying_seconds": 40,
        "applied": f"{UUID_A}:8",
    }
    reading = read(
        {
            **GROUP_PLUGIN,
            "replication_applier_status_by_worker": [worker, {**worker, "channel": "other"}],
            "replication_group_members": [other, own],
        }
    )
    group = reading.group
    assert group is not None
    assert (group.group_name, group.member_state, group.member_role) == ("g", "ONLINE", "SECONDARY")
    assert group.received == GtidSet.parse(f"{UUID_A}:1-9")
    assert [(each.address, each.state, each.delivers) for each in group.members] == [
        ("db1:3306", "ONLINE", True),
        ("[::1]:3306", "UNREACHABLE", False),
    ]
    [busy] = group.workers
    assert (busy.applying, busy.applying_seconds) == (GtidSet.parse(f"{UUID_A}:9"), 40)
    assert group.bootstrapped_at == datetime(2026, 11, 27, 12, 9, 3, 374487, tzinfo=UTC)
    assert replace(group, view_id="").bootstrapped_at is None


def test_an_uptime_that_wrapped_is_not_a_number_of_seconds(read: Any) -> None:
    """The clock was set back past the start: 9.7.4 prints 2^64 minus the difference."""
    [statement] = [each for each in ANSWERS if "Uptime" in each]
    reading = read({statement: [{"Variable_name": "Uptime", "Value": str(2**64 - 58)}]})
    assert reading.uptime_seconds is None
    [unread] = reading.unread
    assert (unread.fact, unread.reason) == ("uptime_seconds", UnreadReason.UNPARSEABLE)
    assert "the clock was set back past the start" in unread.detail
    assert reading.server_uuid is not None, "everything else is read"


def test_no_statement_that_may_wait_stands_between_the_clock_and_the_uptime(
    read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start is their difference: SHOW REPLICA STATUS waits for STOP REPLICA, for one."""
    sent, execute = list[str](), Scripted.execute

    def noted(connection: Scripted, statement: str) -> None:
        sent.append(statement)
        execute(connection, statement)

    monkeypatch.setattr(Scripted, "execute", noted)
    assert read({}).uptime_seconds == 60
    [clock] = [number for number, statement in enumerate(sent) if "server_clock" in statement]
    assert "Uptime" in sent[clock + 1]


def test_a_server_in_no_group_or_offline_has_no_group(read: Any) -> None:
    assert read({}).group is None  # and the question is not asked: nothing would answer it here
    assert read({**GROUP_PLUGIN, "replication_group_members": []}).group is None
    denied = pymysql.err.OperationalError(1142, "SELECT command denied")
    reading = read({**GROUP_PLUGIN, "replication_group_members": denied})
    assert [(each.fact, each.reason) for each in reading.unread] == [
        ("group", UnreadReason.PRIVILEGE)
    ]


def test_a_script_without_changes_is_a_healthy_server(read: Any) -> None:
    reading = read({})
    assert reading.unread == ()
    assert isinstance(as_read(reading), ReadServer)
    assert reading.binary_logs[0].encrypted is True


@pytest.mark.parametrize(
    ("changes", "vendor", "fact", "reason"),
    [
        (version("10.11.6-MariaDB"), Vendor.MARIADB, "gtid_executed", UnreadReason.UNSUPPORTED),
        (version("8.0.11-TiDB-v7.5.0"), Vendor.TIDB, "gtid_executed", UnreadReason.UNSUPPORTED),
        (version("8.0.40-Vitess"), Vendor.VITESS, "gtid_executed", UnreadReason.UNSUPPORTED),
        (version("5.5.62-log"), Vendor.MYSQL, "gtid_executed", UnreadReason.UNSUPPORTED),
        (version("nine"), Vendor.MYSQL, "version", UnreadReason.UNPARSEABLE),
        ({"SELECT @@GLOBAL.version": []}, None, "version", UnreadReason.UNPARSEABLE),
        (
            {"@@GLOBAL.gtid_owned": pymysql.err.OperationalError(1193, "Unknown system variable")},
            Vendor.MYSQL,
            "gtid_executed",
            UnreadReason.ERROR,
        ),
        (
            {"@@GLOBAL.gtid_owned": [IDENTITY | {"gtid_mode": "OFF_PERMISSIVE"}]},
            Vendor.MYSQL,
            "gtid_executed",
            UnreadReason.UNSUPPORTED,
        ),
    ],
    ids=[
        "MariaDB",
        "TiDB",
        "Vitess",
        "too old",
        "no version",
        "no row",
        "no such variable",
        "no GTIDs",
    ],
)
def test_a_server_that_cannot_be_evaluated_is_asked_no_further(
    read: Any, changes: dict[str, Answer], vendor: Vendor | None, fact: str, reason: UnreadReason
) -> None:
    reading: ServerSnapshot = read(changes)
    assert [(one.fact, one.reason) for one in reading.unread] == [(fact, reason)]
    assert reading.unread[0].detail
    assert reading.vendor is vendor
    assert not isinstance(as_read(reading), ReadServer)
    assert (reading.gtid_executed, reading.channels, reading.settings) == (None, None, None)


RDS: dict[str, Answer] = {
    "SELECT @@GLOBAL.version": [
        {
            "version": "8.4.5",
            "version_comment": "Source distribution",
            "basedir": "/rdsdbbin/mysql-8.4.5.R1/",
        }
    ],
}


def test_a_server_of_rds_without_gtids_shows_the_parameter(read: Any) -> None:
    """GTIDs are off by default there, so this is the first that an audit of RDS shows."""
    reading = read({**RDS, "@@GLOBAL.gtid_owned": [IDENTITY | {"gtid_mode": "OFF_PERMISSIVE"}]})
    assert reading.vendor is Vendor.RDS
    [unread] = reading.unread
    assert unread.detail.startswith("gtid_mode is OFF_PERMISSIVE")
    assert unread.detail.endswith("(RDS: turn GTIDs on in the DB parameter group (gtid-mode))")


def denied(number: int) -> Exception:
    return pymysql.err.OperationalError(number, "SELECT command denied")


@pytest.mark.parametrize(
    ("answer", "shown", "unread"),
    [
        ([{"value": "24"}], "24", []),
        ([{"value": None}], "NULL", []),
        ([], None, []),
        (denied(ER.TABLEACCESS_DENIED_ERROR), None, []),
        (denied(ER.NO_SUCH_TABLE), None, []),
        (denied(1021), None, ["log_retention"]),
    ],
)
def test_rds_shows_for_how_long_it_keeps_logs(
    read: Any, answer: Answer, shown: str | None, unread: list[str]
) -> None:
    columns = {"mysql.rds_configuration": answer}
    reading = read({**columns, **RDS})
    assert reading.setting("binlog_retention_hours") == shown
    assert [each.fact for each in reading.unread] == unread
    # No other server is asked: nothing would answer it here.
    assert read({}).setting("binlog_retention_hours") is None


def test_a_variable_shows_aurora_and_its_reader(read: Any) -> None:
    values = {"aurora_version": "3.05.2", "innodb_read_only": "ON"}
    rows = [{"Variable_name": name, "Value": value} for name, value in values.items()]
    reading = read({"SHOW GLOBAL VARIABLES": rows, "mysql.rds_configuration": []})
    assert (reading.vendor, reading.gtid_executed) == (Vendor.AURORA, None)
    assert [each.fact for each in reading.unread] == ["gtid_executed"]


@pytest.mark.parametrize("fact", ["gtid_owned", "gtid_purged", "gtid_executed", "server_uuid"])
def test_a_set_that_cannot_be_parsed_costs_only_itself(read: Any, fact: str) -> None:
    reading: ServerSnapshot = read({"@@GLOBAL.gtid_owned": [IDENTITY | {fact: "no such thing"}]})
    assert [(one.fact, one.reason) for one in reading.unread] == [(fact, UnreadReason.UNPARSEABLE)]
    assert getattr(reading, fact) is None
    assert not isinstance(as_read(reading), ReadServer)
    assert reading.channels == ()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            pymysql.err.OperationalError(ER.SPECIFIC_ACCESS_DENIED_ERROR, "Access denied"),
            UnreadFact("binary_logs", UnreadReason.PRIVILEGE, "Access denied"),
        ),
        (
            pymysql.err.InternalError(1021, "Disk full"),
            UnreadFact("binary_logs", UnreadReason.ERROR, "error 1021: Disk full"),
        ),
    ],
)
def test_an_error_costs_only_the_fact_it_is_about(
    read: Any, error: Exception, expected: UnreadFact
) -> None:
    reading: ServerSnapshot = read({"SHOW BINARY LOGS": error})
    (fact,) = reading.unread
    assert (fact, fact.reason) == (expected, expected.reason)
    assert isinstance(as_read(reading), ReadServer)
    assert reading.setting("gtid_mode") == "ON"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            pymysql.err.OperationalError(CR.CR_SERVER_LOST, "Lost connection"),
            UnreadReason.UNREACHABLE,
        ),
        (TimeoutError("timed out"), UnreadReason.TIMEOUT),
        (ConnectionResetError("reset by peer"), UnreadReason.UNREACHABLE),
        (pymysql.err.InterfaceError(0, ""), UnreadReason.UNREACHABLE),
    ],
)
def test_a_connection_lost_half_way_leaves_nothing_half_read(
    read: Any, error: Exception, reason: UnreadReason
) -> None:
    reading: ServerSnapshot = read({"SHOW REPLICA STATUS": error})
    (fact,) = reading.unread
    assert (fact.fact, fact.reason) == ("connection", reason)
    assert fact.detail.startswith("while reading channels: ")
    assert reading.gtid_executed is None


def test_what_is_lost_says_so_in_full() -> None:
    lost = LostServer(UnreadFact("connection", UnreadReason.TIMEOUT, "timed out"))
    assert str(lost) == "connection: timeout: timed out"


def test_a_certificate_that_is_not_there_is_unreachable_by_name() -> None:
    mode = SslMode.VERIFY_CA
    target = ServerTarget("a", "h", 1, "u", ssl_mode=mode, ssl_ca="/nowhere/ca.pem")
    reading = MysqlReader(target, cluster="c", timeout_seconds_max=1.0).read(phase=1)
    (fact,) = reading.unread
    assert (fact.fact, fact.reason) == ("connection", UnreadReason.UNREACHABLE)
    assert "No such file" in fact.detail


# -- on a real server -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [SslMode.REQUIRED, SslMode.PREFERRED])
def test_a_connection_is_encrypted_where_the_server_can(mysql97: Server, mode: SslMode) -> None:
    target = ServerTarget(
        name="a", host=mysql97.host, port=mysql97.port, user="root", ssl_mode=mode
    )
    connection = connect(target, timeout_seconds_max=5.0)
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
            assert (cursor.fetchone() or {})["Value"]
    finally:
        connection.close()


def test_a_server_without_a_binary_log_has_no_end_of_it(installation97: Installation) -> None:
    settings = Settings(extra=("--skip-log-bin",))
    with shapes.single(installation97, settings=settings) as server:
        target = ServerTarget(name="a", host=server.host, port=server.port, user="root")
        reader = MysqlReader(target, cluster="c", timeout_seconds_max=5.0)
        reading = reader.read(phase=1)
        assert reading.unread == ()
        assert (reading.log_end, reading.binary_logs) == (None, ())
        assert isinstance(as_read(reading), ReadServer)
        for mode in ("ON_PERMISSIVE", "OFF_PERMISSIVE"):
            server.execute(f"SET GLOBAL gtid_mode = {mode}")
            modes = {fact.reason for fact in reader.read(phase=2).unread}
            assert modes == ({UnreadReason.UNSUPPORTED} if mode.startswith("OFF") else set())
        reader.close()
        assert reading.gtid_owned == GtidSet()


@pytest.mark.parametrize("greeting", [b"\0" * 200, b"\x05\0\0\0\x0a9.7."], ids=["zeros", "cut"])
def test_a_peer_that_does_not_speak_the_protocol_is_unread(greeting: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with listener.accept()[0] as peer:
                peer.sendall(greeting)

        threading.Thread(target=answer, daemon=True).start()
        target = ServerTarget(
            name="a", host="127.0.0.1", port=listener.getsockname()[1], user="root"
        )
        reading = MysqlReader(target, cluster="c", timeout_seconds_max=2.0).read(phase=1)
    assert [fact.fact for fact in reading.unread] == ["connection"]
    assert reading.unread[0].reason is UnreadReason.UNREACHABLE


def test_filters_of_the_binary_log_are_read_with_the_settings(read: Any) -> None:
    status = {"File": "binlog.000002", "Position": 157, "Binlog_Do_DB": ""}
    answer = {"SHOW BINARY LOG STATUS": [{**status, "Binlog_Ignore_DB": "a,b;replica=c"}]}
    snapshot = read(answer)
    assert snapshot.setting("binlog_ignore_db") == "a,b;replica=c"
    assert snapshot.setting("binlog_do_db") is None
    assert notable_values(snapshot.notable_settings) == {"binlog_ignore_db": "a,b,replica=c"}

"""One contract for both readers, the live one on real servers; and what only the live one can show."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

import pytest

from compose.native import shapes
from compose.native.installation import Installation
from compose.native.server import Server
from compose.native.shapes import Pair, wait_for
from gtid import Gtid, GtidSet
from tests.snapshots import A, B, a_channel, a_server
from topology.adapters.collect import Reader
from topology.adapters.connection import SESSION, connect
from topology.adapters.mysql import MysqlReader
from topology.adapters.recorded_servers import MemoryReader, Prepared
from topology.adapters.status import parse_owned
from topology.readings.snapshot import (
    BinaryLog,
    ReadServer,
    ServerSnapshot,
    ThreadState,
    UnreadFact,
    UnreadReason,
    as_read,
)
from topology.readings.target import Secret, ServerTarget
from topology.readings.version import ServerVersion

TIMEOUT_SECONDS_MAX = 5.0
FACTS = (
    *("server_clock", "server_uuid", "server_id", "version", "version_text", "vendor"),
    *("uptime_seconds", "gtid_executed", "gtid_purged", "gtid_owned", "log_end", "channels"),
    *("binary_logs", "settings"),
)
MAY_BE_REFUSED = {"channels", "workers", "log_end", "binary_logs"}


class Case(Protocol):
    """A server of one kind, in the states the contract speaks of."""

    def healthy(self) -> Reader: ...

    def refused(self) -> Reader: ...

    def nowhere(self) -> Reader: ...

    def without_privileges(self) -> Reader: ...

    def hung(self, held: ExitStack) -> Reader: ...

    def cut(self, reader: Reader) -> None:
        """Let the connection of a reader break before its next reading."""


# -- in memory ------------------------------------------------------------------------------------

TARGET = ServerTarget(name="a", host="127.0.0.1", port=3306, user="root")


def answer() -> ServerSnapshot:
    retrieved = GtidSet.parse(f"{B}:1-9")
    return a_server(
        "another",
        A,
        f"{A}:1-20,{B}:1-9",
        gtid_purged=GtidSet.parse(f"{A}:1-10"),
        channels=(a_channel("b", B, gtid_retrieved=retrieved),),
        binary_logs=(BinaryLog("binlog.000003", 4711, encrypted=False),),
        settings=(("gtid_mode", "ON"), ("log_bin", "ON")),
    )


class InMemory:
    def __init__(self) -> None:
        self._cut: dict[int, list[Prepared]] = {}

    def _reader(self, *answers: Prepared) -> MemoryReader:
        return MemoryReader(TARGET, "c", {1: list(answers), 2: list(answers)})

    def healthy(self) -> Reader:
        answers = [Prepared(answer())]
        reader = MemoryReader(TARGET, "c", {1: answers, 2: answers})
        self._cut[id(reader)] = answers
        return reader

    def cut(self, reader: Reader) -> None:
        lost = UnreadFact("connection", UnreadReason.UNREACHABLE, "while reading version: gone")
        read_so_far = 1
        self._cut[id(reader)][:] = [
            *([Prepared(answer())] * read_so_far),
            Prepared(lost),
            Prepared(answer()),
        ]

    def refused(self) -> Reader:
        return self._reader(Prepared(UnreadFact("connection", UnreadReason.REFUSED, "denied")))

    def nowhere(self) -> Reader:
        return self._reader(Prepared(UnreadFact("connection", UnreadReason.UNREACHABLE, "no")))

    def without_privileges(self) -> Reader:
        unread = tuple(
            UnreadFact(fact, UnreadReason.PRIVILEGE, "Access denied")
            for fact in ("channels", "log_end")
        )
        return self._reader(Prepared(replace(answer(), channels=None, log_end=None, unread=unread)))

    def hung(self, held: ExitStack) -> Reader:  # noqa: ARG002 - nothing to let go here
        slow = UnreadFact("connection", UnreadReason.TIMEOUT, "timed out")
        return self._reader(Prepared(slow, after_seconds=0.01))


# -- live -----------------------------------------------------------------------------------------


def session_of(reader: MysqlReader) -> int:
    assert reader._connection is not None
    return int(reader._connection.thread_id())  # type: ignore[no-untyped-call]


@dataclass
class Live:
    pair: Pair

    def _target(self, *, user: str = "root", port: int | None = None) -> ServerTarget:
        server = self.pair.a
        return ServerTarget(name="a", host=server.host, port=port or server.port, user=user)

    def _reader(self, target: ServerTarget, timeout: float = TIMEOUT_SECONDS_MAX) -> MysqlReader:
        return MysqlReader(target, cluster="c", timeout_seconds_max=timeout)

    def healthy(self) -> Reader:
        return self._reader(self._target())

    def cut(self, reader: Reader) -> None:
        assert isinstance(reader, MysqlReader)
        self.pair.a.execute(f"KILL {session_of(reader)}")

    def refused(self) -> Reader:
        return self._reader(replace(self._target(), password=Secret("wrong-one")))

    def nowhere(self) -> Reader:
        return self._reader(self._target(port=1))

    def without_privileges(self) -> Reader:
        self.pair.a.execute("CREATE USER IF NOT EXISTS looks_on@'%'")
        return self._reader(self._target(user="looks_on"))

    def hung(self, held: ExitStack) -> Reader:
        self.pair.a.freeze()
        held.callback(self.pair.a.thaw)
        return self._reader(self._target(), timeout=1.0)


@pytest.fixture(scope="module")
def one_pair97(installation97: Installation) -> Iterator[Pair]:
    """One pair for all questions of this file: they leave it as it was."""
    with shapes.pair(installation97) as pair:
        yield pair


@pytest.fixture(params=["memory", pytest.param("live", marks=pytest.mark.mysql)])
def case(request: pytest.FixtureRequest) -> Case:
    if request.param == "memory":
        return InMemory()
    return Live(request.getfixturevalue("one_pair97"))


# -- the contract ---------------------------------------------------------------------------------


def test_a_reading_carries_who_was_asked_and_when(case: Case) -> None:
    reader = case.healthy()
    first, last, again = reader.read(phase=1), reader.read(phase=2), reader.read(phase=2)
    for reading, phase in ((first, 1), (last, 2), (again, 2)):
        assert (reading.cluster, reading.name, reading.host) == ("c", "a", "127.0.0.1")
        assert reading.phase == phase
        assert reading.read_started.utcoffset() is not None
        assert reading.read_started <= reading.read_ended
    assert first.read_ended <= last.read_started
    assert last.read_ended <= again.read_started
    reader.close()


def test_a_healthy_server_answers_everything(case: Case) -> None:
    reader = case.healthy()
    reading = reader.read(phase=1)
    reader.close()
    assert reading.unread == ()
    assert isinstance(as_read(reading), ReadServer)
    assert [fact for fact in FACTS if getattr(reading, fact) is None] == []


def test_what_is_read_keeps_its_invariants(case: Case) -> None:
    reader = case.healthy()
    reading = reader.read(phase=1)
    reader.close()
    assert reading.gtid_executed is not None
    assert reading.gtid_purged is not None
    assert reading.gtid_purged <= reading.gtid_executed
    assert reading.settings == tuple(sorted(reading.settings or ()))
    assert reading.setting("gtid_mode") == "ON"
    (channel,) = reading.channels or ()
    assert (channel.receiver, channel.applier) == (ThreadState.RUNNING, ThreadState.RUNNING)
    assert channel.auto_position
    assert not channel.has_error
    assert channel.source_uuid not in (None, reading.server_uuid)


def test_closing_is_safe_at_any_time_and_reading_opens_again(case: Case) -> None:
    reader = case.healthy()
    reader.close()
    before = reader.read(phase=1)
    reader.close()
    reader.close()
    after = reader.read(phase=2)
    reader.close()
    assert before.unread == after.unread == ()
    assert before.server_uuid == after.server_uuid


def assert_lost(reading: ServerSnapshot, reason: UnreadReason) -> None:
    (fact,) = reading.unread
    assert (fact.fact, fact.reason) == ("connection", reason)
    assert fact.detail
    assert [name for name in FACTS if getattr(reading, name) is not None] == []


def test_a_lost_connection_empties_the_reading_and_the_next_one_is_whole(case: Case) -> None:
    reader = case.healthy()
    assert reader.read(phase=2).unread == ()
    case.cut(reader)
    assert_lost(reader.read(phase=2), UnreadReason.UNREACHABLE)
    assert reader.read(phase=2).unread == ()
    reader.close()


@pytest.mark.parametrize(
    ("state", "reason"),
    [("refused", UnreadReason.REFUSED), ("nowhere", UnreadReason.UNREACHABLE)],
)
def test_a_server_that_does_not_let_us_in_is_named(
    case: Case, state: str, reason: UnreadReason
) -> None:
    reader: Reader = getattr(case, state)()
    assert_lost(reader.read(phase=1), reason)
    assert_lost(reader.read(phase=2), reason)
    reader.close()


def test_a_missing_privilege_costs_only_what_it_guards(case: Case) -> None:
    reader = case.without_privileges()
    reading = reader.read(phase=1)
    reader.close()
    assert isinstance(as_read(reading), ReadServer)
    assert {fact.reason for fact in reading.unread} == {UnreadReason.PRIVILEGE}
    unread = {fact.fact for fact in reading.unread}
    assert {"channels", "log_end"} <= unread <= MAY_BE_REFUSED
    assert reading.unread == tuple(sorted(reading.unread))
    assert {name for name in FACTS if getattr(reading, name) is None} == unread & set(FACTS)


def test_a_hung_server_is_a_timeout(case: Case) -> None:
    with ExitStack() as held:
        reader = case.hung(held)
        assert_lost(reader.read(phase=1), UnreadReason.TIMEOUT)
        reader.close()


# -- only in memory -------------------------------------------------------------------------------


def test_answers_come_in_order_and_the_last_stays() -> None:
    answers = [Prepared(replace(answer(), uptime_seconds=number)) for number in (1, 2)]
    reader = MemoryReader(TARGET, "c", {1: answers[:1], 2: answers})
    assert [reader.read(phase=phase).uptime_seconds for phase in (1, 2, 2, 2)] == [1, 1, 2, 2]


def test_a_prepared_bug_is_raised_and_nothing_prepared_is_a_misuse() -> None:
    reader = MemoryReader(TARGET, "c", {1: [Prepared(ZeroDivisionError("ours"))]})
    with pytest.raises(ZeroDivisionError, match="ours"):
        reader.read(phase=1)
    with pytest.raises(ValueError, match="a: nothing is prepared for phase 2"):
        reader.read(phase=2)
    with pytest.raises(ValueError, match="cannot take -1 seconds"):
        Prepared(answer(), after_seconds=-1)


def test_a_held_answer_comes_when_it_is_let_go() -> None:
    gate = threading.Event()
    reader = MemoryReader(TARGET, "c", {1: [Prepared(answer(), held_by=gate)]})
    readings: list[ServerSnapshot] = []
    thread = threading.Thread(target=lambda: readings.append(reader.read(phase=1)))
    thread.start()
    assert readings == []
    gate.set()
    thread.join()
    assert readings[0].unread == ()


# -- only live ------------------------------------------------------------------------------------


def statements_of(server: Server, read: Callable[[], MysqlReader]) -> list[str]:
    """Return what the server was sent, by its own general log."""
    server.execute(
        "SET GLOBAL log_output = 'TABLE'",
        "TRUNCATE mysql.general_log",
        "SET GLOBAL general_log = ON",
    )
    try:
        reader = read()
        session = session_of(reader)
    finally:
        server.execute("SET GLOBAL general_log = OFF", "SET GLOBAL log_output = 'FILE'")
    reader.close()
    rows = server.query(
        "SELECT command_type, CONVERT(argument USING utf8mb4) FROM mysql.general_log"
        " WHERE thread_id = %s",
        [session],
    )
    return [str(text) for command, text in rows if command == "Query"]


def test_the_live_reader_only_asks(one_pair97: Pair) -> None:
    server = one_pair97.a

    def read() -> MysqlReader:
        reader = MysqlReader(
            ServerTarget(name="a", host=server.host, port=server.port, user="root"),
            cluster="c",
            timeout_seconds_max=TIMEOUT_SECONDS_MAX,
        )
        for phase in (1, 2):
            assert reader.read(phase=phase).unread == ()
        return reader

    sent = statements_of(server, read)
    # The client library's, on connecting, and what our sessions set.
    own = {"SET AUTOCOMMIT = 1", SESSION}
    assert {text.split()[0] for text in sent if text not in own} == {"SELECT", "SHOW"}
    order = (
        "@@GLOBAL.gtid_owned",
        "SHOW REPLICA STATUS",
        "replication_applier_status_by_worker",
        "SHOW BINARY LOG STATUS",
    )
    places = [next(at for at, text in enumerate(sent) if word in text) for word in order]
    assert places == sorted(places)
    sets = next(text for text in sent if "@@GLOBAL.gtid_owned" in text)
    named = [sets.index(f"@@GLOBAL.gtid_{name}") for name in ("owned", "purged", "executed")]
    assert named == sorted(named)


def test_a_live_channel_shows_its_progress(one_pair97: Pair) -> None:
    source, replica = one_pair97.a, one_pair97.b
    source.execute("CREATE DATABASE progress")
    written = source.value("@@GLOBAL.gtid_executed")
    wait_for(replica, written)
    # A server-wide mode that pads the names of channels must not separate them from their rows, and
    # a limit of rows must not hide workers.
    replica.execute(
        "SET GLOBAL sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'",
        "SET GLOBAL sql_select_limit = 1",
        "SET GLOBAL max_join_size = 1",
        "SET GLOBAL max_execution_time = 1",
    )
    target = ServerTarget(name="b", host=replica.host, port=replica.port, user="root")
    try:
        with connect(target, timeout_seconds_max=10.0) as session, session.cursor() as cursor:
            cursor.execute("SELECT SLEEP(0.05) AS interrupted, @@SESSION.max_execution_time AS ms")
            assert cursor.fetchone() == {"interrupted": 0, "ms": 0}
        reading = read_once(replica)
    finally:
        names = ("sql_mode", "sql_select_limit", "max_join_size", "max_execution_time")
        replica.execute(*[f"SET GLOBAL {name} = DEFAULT" for name in names])
    assert reading.unread == ()
    (channel,) = reading.channels or ()
    assert channel.last_queued
    assert channel.last_queued <= channel.gtid_retrieved
    assert channel.last_applied >= channel.last_queued
    assert reading.server_clock is not None
    for moment in (channel.last_queued_committed_at, channel.last_applied_at):
        assert moment is not None
        assert timedelta(0) <= reading.server_clock - moment < timedelta(minutes=1)
    assert "has read all relay log" in channel.applier_state
    assert "Waiting for source" in channel.receiver_state
    assert channel.relay_applied_to is not None
    assert channel.relay_applied_to.file.startswith("relay")
    assert (channel.delay_seconds, channel.delay_remaining_seconds) == (0, None)
    assert channel.source_server_id == source.value("@@GLOBAL.server_id")
    assert len(channel.workers) == replica.value("@@GLOBAL.replica_parallel_workers") > 1
    assert {worker.applying_seconds for worker in channel.workers} == {None}
    assert all(worker.state for worker in channel.workers)
    assert reading.group is None


def read_once(server: Server) -> ServerSnapshot:
    reader = MysqlReader(
        ServerTarget(name=server.name, host=server.host, port=server.port, user="root"),
        cluster="c",
        timeout_seconds_max=TIMEOUT_SECONDS_MAX,
    )
    reading = reader.read(phase=1)
    reader.close()
    assert reading.unread == ()
    return reading


def test_an_old_server_is_read_in_its_own_words(mysql56: Server) -> None:
    reader = MysqlReader(
        ServerTarget(name="old", host=mysql56.host, port=mysql56.port, user="root"),
        cluster="c",
        timeout_seconds_max=TIMEOUT_SECONDS_MAX,
    )
    reading = reader.read(phase=1)
    reader.close()
    assert reading.unread == ()
    assert reading.version is not None
    assert reading.version < ServerVersion(5, 7, 0)
    assert reading.setting("log_replica_updates") == "ON"
    assert reading.channels == ()


def held_open(server: Server) -> None:
    mine = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
    held = [f"{mine}:5", f"{mine}:7", "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb:1"]
    if server.dialect.replica_status.startswith("SHOW REPLICA"):  # 9.7: tags too
        held.append(f"{mine}:dba:2")
    with ExitStack() as sessions:
        opened = [sessions.enter_context(server.connect()) for _ in held]
        for gtid, session in zip(held, opened, strict=True):
            with session.cursor() as cursor:
                cursor.execute(f"SET SESSION gtid_next = '{gtid}'")
        text = str(server.value("@@GLOBAL.gtid_owned"))
        assert text.count("#") == len(held)
        assert parse_owned(text) == GtidSet.of(map(Gtid.parse, held))
        for session in opened:
            with session.cursor() as cursor:
                cursor.execute("ROLLBACK")
    assert parse_owned(str(server.value("@@GLOBAL.gtid_owned"))) == GtidSet()


def test_what_a_server_owns_is_read(mysql97: Server) -> None:
    held_open(mysql97)


def test_what_an_old_server_owns_is_read(mysql56: Server) -> None:
    held_open(mysql56)

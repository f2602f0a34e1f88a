"""The steps of a history on real servers, and what the servers then show.

1. Each step that can be done by statements or signals has its function here, under the same name as
   in steps.py. A history for reality is made of these steps alone.
2. After every step both worlds come to rest and are compared: sets, rows, threads, errors.
3. Where a server differs, the simulator is wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pymysql

from compose.native.installation import Installation
from compose.native.provision import REPLICATION_USER
from compose.native.server import Server as RealServer
from compose.native.shapes import Link, Plan, Topology, running
from gtid import GtidSet
from tests.simulation import replication as act
from tests.simulation.reading import gtids
from tests.simulation.shapes import Setup
from tests.simulation.state import Channel, Gtid, Server, World, uuid_of
from tests.simulation.steps import Line, perform

SETTLE_SECONDS_MAX = 12.0
POLL_SECONDS = 0.05
TABLE = "sim.t"
Statement = str


@dataclass(slots=True)
class Twins:
    """A simulated world and real servers in the same state."""

    world: World
    topology: Topology
    stack: ExitStack
    uuids: dict[str, str] = field(default_factory=dict)  # key -> real server_uuid
    sessions: dict[str, Any] = field(default_factory=dict)  # that hold locks
    log: list[str] = field(default_factory=list)

    def real(self, name: str) -> RealServer:
        return self.topology[name]

    def gtid(self, gtid: Gtid) -> str:
        uuid, tag, number = gtid
        real = self.uuids.get(uuid) or str(uuid_of(uuid))
        return f"{real}:{tag}:{number}" if tag else f"{real}:{number}"

    def simulated(self, text: str) -> GtidSet:
        """Return a real server's set in the UUIDs of the simulated world."""
        for key, uuid in self.uuids.items():
            text = text.replace(uuid, str(uuid_of(key)))
        return GtidSet.parse(text)


def twins(installation: Installation, setup: Setup, stack: ExitStack) -> Twins:
    """Start real servers in the shape of a setup."""
    world = setup.world()
    links = tuple(
        Link(source=channel.source, replica=server.name) for server, channel in world.paths()
    )
    plan = Plan(names=tuple(sorted(world.servers)), links=links)
    topology = stack.enter_context(running(installation, plan))
    made = Twins(world, topology, stack)
    for name, server in world.servers.items():
        real = made.real(name)
        made.uuids[name] = str(real.value("@@GLOBAL.server_uuid"))
        server.server_id = real.server_id
        server.relay_log_recovery = bool(real.value("@@GLOBAL.relay_log_recovery"))
        words = real.dialect.words
        parallel = f"@@GLOBAL.{words.replica_variable_prefix}parallel_workers"
        for channel in server.channels:
            channel.workers = max(1, int(real.value(parallel)))
            channel.commit_order = True
        real.execute(
            "SET sql_log_bin = 0",
            "CREATE DATABASE sim",
            f"CREATE TABLE {TABLE} (k VARCHAR(40) PRIMARY KEY, v BIGINT)",
        )
    for name in sorted(world.servers):
        real = made.real(name)
        if real.replica_status():
            real.execute(real.dialect.stop_replica)
    for name in sorted(world.servers):
        made.real(name).execute(made.real(name).dialect.words.reset_binary_logs_and_gtids)
    for name in sorted(world.servers):
        real = made.real(name)
        if real.replica_status():
            source = world[name].channels[0].source
            real.execute(f"{real.dialect.words.reset_replica} ALL")
            change(made, name, source)
            real.execute(real.dialect.start_replica)
    return made


# -- the steps ------------------------------------------------------------------------------------

Do = Callable[..., None]
REAL: dict[str, Do] = {}


def real(name: str) -> Callable[[Do], Do]:
    def added(do: Do) -> Do:
        REAL[name] = do
        return do

    return added


def do(both: Twins, line: Line) -> bool:
    """Do one step in both worlds and let both come to rest."""
    name, *args = line
    before = both.world.copy()
    if not perform(both.world, line):
        both.world = before
        return False
    both.log.append(" ".join(map(str, line)))
    REAL[str(name)](both, *args)
    act.rest(both.world, with_delay=False)
    return True


def row_statement(world: World, kind: str, key: str) -> Statement:
    """Return the statement that changes one row."""
    value = world.works
    if kind == "insert":
        return f"INSERT INTO {TABLE} VALUES ('{key}', {value})"
    if kind == "update":
        return f"UPDATE {TABLE} SET v = {value} WHERE k = '{key}'"
    return f"DELETE FROM {TABLE} WHERE k = '{key}'"


@real("write")
@real("write-errant")
@real("write-foreign-row")
def _write(both: Twins, name: str, kind: str, key: str) -> None:
    both.real(name).execute(row_statement(both.world, kind, key))


@real("write-tagged")
def _write_tagged(both: Twins, name: str, kind: str, key: str) -> None:
    both.real(name).execute("SET gtid_next = 'AUTOMATIC:dba'", row_statement(both.world, kind, key))


@real("write-by-hand")
def _write_by_hand(  # noqa: PLR0917 - the words of a step
    both: Twins, name: str, uuid: str, number: int, kind: str, key: str
) -> None:
    begin = f"SET gtid_next = '{both.gtid((uuid, '', number))}'"
    if kind == "empty":
        both.real(name).execute(begin, "BEGIN", "COMMIT", "SET gtid_next = 'AUTOMATIC'")
    else:
        both.real(name).execute(
            begin, row_statement(both.world, kind, key), "SET gtid_next = 'AUTOMATIC'"
        )


@real("write-empty")
def _write_empty(both: Twins, name: str) -> None:
    both.real(name).execute("DROP VIEW IF EXISTS sim.nothing")


@real("create-table")
def _create_table(both: Twins, name: str) -> None:
    both.real(name).execute("CREATE TABLE sim.made (id INT PRIMARY KEY)")


@real("drift")
def _drift(both: Twins, name: str, kind: str, key: str) -> None:
    both.real(name).execute("SET sql_log_bin = 0", row_statement(both.world, kind, key))


@real("rotate")
def _rotate(both: Twins, name: str) -> None:
    both.real(name).execute("FLUSH BINARY LOGS")


@real("purge")
def _purge(both: Twins, name: str) -> None:
    # A log that an ended session still holds open survives the statement: it is repeated.
    real_server = both.real(name)
    keep = f"binlog.{both.world[name].files[0].number:06}"
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while time.monotonic() < deadline:
        real_server.execute(f"PURGE BINARY LOGS TO '{keep}'")
        if str(real_server.query("SHOW BINARY LOGS")[0][0]) == keep:
            return
        time.sleep(POLL_SECONDS)


def threads(real_server: RealServer, which: str, *, start: bool) -> Statement:
    """Return the statement that starts or stops the threads of a replica."""
    words = real_server.dialect.words
    verb = words.start_replica if start else words.stop_replica
    return verb + {"both": "", "receiver": " IO_THREAD", "applier": " SQL_THREAD"}[which]


@real("stop-replica")
def _stop(both: Twins, name: str, _channel: str, which: str) -> None:
    both.real(name).execute(threads(both.real(name), which, start=False))


@real("start-replica")
def _start(both: Twins, name: str, _channel: str, which: str) -> None:
    both.real(name).execute(threads(both.real(name), which, start=True))


@real("auto-position-on")
def _auto_position_on(both: Twins, name: str, _channel: str) -> None:
    server = both.real(name)
    statements = [server.dialect.stop_replica]
    if not server.replica_status()["Auto_Position"]:
        statements.append(server.dialect.change_source_to(auto_position=1))
    server.execute(*statements, server.dialect.start_replica)


def place_of(real_server: RealServer, file: int, entries: int) -> tuple[str, int]:
    """Return the name and offset behind so many transactions of a binary log."""
    name = f"binlog.{file:06}"
    rows = real_server.query(f"SHOW BINLOG EVENTS IN '{name}'")
    begins = [int(row[1]) for row in rows if str(row[2]).lower().startswith("gtid")]
    end = int(rows[-1][4]) if rows else 4
    if str(rows[-1][2]) == "Rotate":
        end = int(rows[-1][1])
    places = [*begins, end]
    return name, places[entries]


@real("change-by-position")
def _change_by_position(both: Twins, name: str, channel: str, file: int, entries: int) -> None:
    server, path = both.real(name), both.world[name].channel(channel)
    assert path is not None, "the step applied"
    log_file, log_pos = place_of(both.real(path.source), file, entries)
    server.execute(
        server.dialect.stop_replica,
        server.dialect.change_source_to(auto_position=0, log_file=log_file, log_pos=log_pos),
        server.dialect.start_replica,
    )


def change(both: Twins, name: str, source: str) -> None:
    """Point a stopped replica at another server, by sets."""
    here, there = both.real(name), both.real(source)
    here.execute(
        here.dialect.change_source_to(
            host=there.host,
            port=there.port,
            user=REPLICATION_USER,
            auto_position=1,
            connect_retry=1,
            retry_count=86_400,
        )
    )


@real("repoint")
def _repoint(both: Twins, name: str, _channel: str, source: str) -> None:
    here = both.real(name)
    here.execute(here.dialect.stop_replica)
    change(both, name, source)
    here.execute(here.dialect.start_replica)


@real("configure-only")
def _configure_only(both: Twins, name: str, _channel: str, source: str) -> None:
    here = both.real(name)
    here.execute(here.dialect.stop_replica)
    change(both, name, source)


@real("old-primary-returns")
def _returns(both: Twins, name: str, source: str) -> None:
    change(both, name, source)
    both.real(name).execute(both.real(name).dialect.start_replica)


@real("reset-replica")
def _reset_replica(both: Twins, name: str, _channel: str, scope: str) -> None:
    here = both.real(name)
    reset = here.dialect.words.reset_replica + (" ALL" if scope == "all" else "")
    here.execute(here.dialect.stop_replica, reset)


@real("crash")
def _crash(both: Twins, name: str, lost: int) -> None:
    assert lost == 0, "a lost tail needs a copy of the data directory: lose_tail"
    both.real(name).kill()
    start_again(both, name)


def start_again(both: Twins, name: str) -> None:
    """Start a server with the server_id that it had."""
    here = both.real(name)
    here.server_id = both.world[name].server_id
    here.start()
    both.sessions.pop(name, None)


@real("restart")
def _restart(both: Twins, name: str) -> None:
    here = both.real(name)
    if here.replica_status():
        here.execute(here.dialect.stop_replica)  # the applier saves its place
    here.kill()
    start_again(both, name)


@real("reset-binary-logs-and-gtids")
def _reset(both: Twins, name: str) -> None:
    both.real(name).execute(both.real(name).dialect.words.reset_binary_logs_and_gtids)
    for replica, channel in both.world.replicas_of(name):
        if channel.source == name:
            _receiver_again(both.real(replica.name))


def _receiver_again(server: RealServer) -> None:
    status = server.replica_status()
    if status and status["Replica_IO_Running"] != "No":
        server.execute(server.dialect.stop_receiver, server.dialect.start_receiver)


def _receivers_again(both: Twins, name: str) -> None:
    _receiver_again(both.real(name))
    for replica, _ in both.world.replicas_of(name):
        _receiver_again(both.real(replica.name))


@real("same-server-id")
def _same_server_id(both: Twins, name: str, other: str) -> None:
    del other
    both.real(name).execute(f"SET GLOBAL server_id = {both.world[name].server_id}")
    _receivers_again(both, name)


def session_of(both: Twins, name: str) -> Any:
    """Open a session that stays open until the step that ends it."""
    here = both.real(name)
    session = pymysql.connect(host=here.host, port=here.port, user="root", autocommit=True)
    both.sessions[name] = session
    both.stack.callback(lambda: session.close() if session.open else None)
    return session


@real("lock")
def _lock(both: Twins, name: str, kind: str) -> None:
    session = session_of(both, name)
    text = f"LOCK TABLES {TABLE} READ" if kind == "table" else "FLUSH TABLES WITH READ LOCK"
    with session.cursor() as cursor:
        cursor.execute(text)


@real("unlock")
def _unlock(both: Twins, name: str) -> None:
    both.sessions.pop(name).close()


@real("own-next-gtid")
def _own(both: Twins, name: str, _channel: str) -> None:
    session = session_of(both, name)
    owned = both.world[name].session_owns
    assert owned is not None, "the step applied"
    with session.cursor() as cursor:
        cursor.execute(f"SET gtid_next = '{both.gtid(owned)}'")
        cursor.execute("BEGIN")


@real("release-gtid")
def _release(both: Twins, name: str) -> None:
    both.sessions.pop(name).close()


@real("rest")
@real("wait")
def _nothing(_both: Twins, *_args: object) -> None:
    """Both worlds rest after every step."""


# -- what is compared -----------------------------------------------------------------------------


def differences(both: Twins) -> list[str]:
    """Return what differs between the simulated and the real servers, after a while at the most."""
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    found = ["not looked yet"]
    while found and time.monotonic() < deadline:
        try:
            found = list(_compared(both))
        except pymysql.err.MySQLError as error:
            found = [str(error)]
        if found:
            time.sleep(POLL_SECONDS)
    return found


def _compared(both: Twins) -> Iterator[str]:
    for name, server in both.world.servers.items():
        here = both.real(name)
        executed, purged, owned = here.query(
            "SELECT @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged, @@GLOBAL.gtid_owned"
        )[0]
        for what, text, members in (
            ("gtid_executed", executed, server.executed),
            ("gtid_purged", purged, server.purged),
        ):
            shown = both.simulated(str(text))
            if shown != gtids(members):
                yield f"{name}: {what} is {shown}, simulated {gtids(members)}"
        rows = {str(key): int(value) for key, value in here.query(f"SELECT k, v FROM {TABLE}")}
        simulated = {key: value for key, value in server.rows.items() if key != "table"}
        if rows != simulated:
            yield f"{name}: rows are {rows}, simulated {simulated}"
        if bool(owned) != bool(server.owned):
            yield f"{name}: gtid_owned is {owned!r}, simulated {server.owned}"
        status = here.replica_status()
        channel = server.channels[0] if server.channels else None
        if bool(status) != (channel is not None):
            yield f"{name}: channels differ"
        elif channel is not None:
            yield from _compared_channel(both, name, channel, status)


def _compared_channel(
    both: Twins, name: str, channel: Channel, status: dict[str, Any]
) -> Iterator[str]:
    shown = (status["Replica_IO_Running"], status["Replica_SQL_Running"])
    if shown != (channel.receiver, channel.applier):
        errors = status["Last_IO_Error"], status["Last_SQL_Error"]
        yield f"{name}: threads {shown} {errors}, simulated {channel.receiver, channel.applier}"
    expected = channel.receiver_error[0]
    if int(status["Last_IO_Errno"]) != expected and channel.receiver == "No":
        yield f"{name}: Last_IO_Errno {status['Last_IO_Errno']} {status['Last_IO_Error']}, simulated {channel.receiver_error}"
    if bool(status["Last_SQL_Errno"]) != bool(channel.applier_error[0]):
        yield f"{name}: Last_SQL_Errno {status['Last_SQL_Errno']}, simulated {channel.applier_error}"
    if bool(int(status["Auto_Position"])) != channel.auto_position:
        yield f"{name}: Auto_Position {status['Auto_Position']}, simulated {channel.auto_position}"
    retrieved = both.simulated(str(status["Retrieved_Gtid_Set"]))
    # 5.6 forgets the last transaction that it received when its receiver starts, until a source
    # sends it again: one that refuses the connection does not (seen on 5.6.24).
    if both.world[name].version < (5, 7, 0) and channel.receiver_error[0]:
        return
    if retrieved != gtids(channel.retrieved):
        yield f"{name}: Retrieved_Gtid_Set {retrieved}, simulated {gtids(channel.retrieved)}"


def lose_tail(both: Twins, name: str, lines: list[Line]) -> None:
    """Do steps on a server, let its replicas apply them, and lose them in a crash."""
    import shutil

    from compose.native.provision import copy_data_directory

    here, server = both.real(name), both.world[name]
    before = len(server.files[-1].entries)
    copy = here.folder / "before-crash"
    here.freeze()
    try:
        copy_data_directory(here.datadir, copy)
    finally:
        here.thaw()
    for line in lines:
        do(both, line)
        found = differences(both)
        assert not found, found
    lost = len(server.files[-1].entries) - before
    here.kill()
    shutil.rmtree(here.datadir)
    copy.rename(here.datadir)
    start_again(both, name)
    perform(both.world, ("crash", name, lost))
    both.log.append(f"crash {name} {lost}")
    act.rest(both.world, with_delay=False)


def is_at_rest(server: Server) -> bool:
    return not server.pending

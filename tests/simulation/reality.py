"""The steps of a history on real servers, and what the servers then show.

1. Each step that can be done by statements or signals has its function here, under the same name as
   in steps.py. A history for reality is made of these steps alone.
2. After every step both worlds come to rest and are compared: sets, rows, threads, errors.
3. Where a server differs, the simulator is wrong.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pymysql
from pymysql.cursors import DictCursor

from compose.native.command import Settings
from compose.native.installation import Installation
from compose.native.provision import REPLICATION_USER
from compose.native.server import Server as RealServer
from compose.native.server_setup import new_words
from compose.native.shapes import Topology, TopologyPlan, running
from gtid import GtidSet
from tests.simulation import replication as act
from tests.simulation.reading import gtids
from tests.simulation.shapes import Setup
from tests.simulation.state import EXTRA, Channel, Gtid, Server, World, uuid_of
from tests.simulation.steps import Line, perform

SETTLE_SECONDS_MAX = 12.0
POLL_SECONDS = 0.05
KEYS_PER_SERVER = 5
Statement = str
FIRST_SEED = "REALITY_SEED"  # repeats the histories of a night


def nightly_seed(number: int) -> int:
    """Return the seed of a history of this night: others each day, unless the variable is set."""
    first = os.environ.get(FIRST_SEED) or f"{datetime.now(tz=UTC):%Y%m%d}00"
    return int(first) + number


def repeated(seed: int, number: int) -> str:
    """Return how to do the history of a seed again, for the text of a failure."""
    return f"seed {seed}: {FIRST_SEED}={seed - number} with the same test"


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


def twins(
    installation: Installation, setup: Setup, stack: ExitStack, *, recovers: bool = False
) -> Twins:
    """Start real servers in the shape of a setup; `recovers`: with relay_log_recovery."""
    world = setup.world()
    recovery = ("--relay-log-recovery=ON",) if recovers else ()
    options = Settings(extra=(*_options(installation, setup), *recovery))
    names = tuple(sorted(world.servers))
    plan = TopologyPlan(names=names, links=(), settings=dict.fromkeys(names, options))
    topology = stack.enter_context(running(installation, plan))
    made = Twins(world, topology, stack)
    for name, server in world.servers.items():
        real = made.real(name)
        made.uuids[name] = str(real.value("@@GLOBAL.server_uuid"))
        server.server_id = real.server_id
        server.relay_log_recovery = bool(real.value("@@GLOBAL.relay_log_recovery"))
        prefix = real.dialect.words.replica_variable_prefix
        for channel in server.channels:
            channel.workers = max(1, int(real.value(f"@@GLOBAL.{prefix}parallel_workers")))
        create_tables(real, names)
    for name, server in world.servers.items():
        for channel in server.channels:
            change(made, name, channel.source, channel.name)
        if server.channels:
            made.real(name).execute(made.real(name).dialect.start_replica)
    return made


def _options(installation: Installation, setup: Setup) -> tuple[str, ...]:
    # Relay logs are kept, so that an applier may be set back in them.
    if installation.version < act.MODERN:
        return ("--relay-log-purge=0",)
    order = "ON" if setup.commit_order else "OFF"
    return (
        "--relay-log-purge=0",
        f"--replica-preserve-commit-order={order}",
        f"--replica-parallel-workers={setup.workers}",
    )


def table_of(key: str) -> str:
    """Return the table that holds one row of the toy table: filters choose by table."""
    return f"sim.{key}"


def tables_of(names: Iterable[str]) -> list[str]:
    """Return the tables of the rows that the clients of these servers write."""
    return [
        table_of(f"{name}{number}") for name in names for number in range(1, KEYS_PER_SERVER + 1)
    ]


def create_tables(server: RealServer, names: Iterable[str]) -> None:
    """Make the tables without logging it, and forget what was logged until now."""
    server.execute(
        "SET sql_log_bin = 0",
        "CREATE DATABASE sim",
        *(
            f"CREATE TABLE {each} (k VARCHAR(40) PRIMARY KEY, v BIGINT)"
            for each in tables_of(names)
        ),
    )
    server.execute(server.dialect.words.reset_binary_logs_and_gtids)


def rows_of(server: RealServer, names: Iterable[str]) -> dict[str, int]:
    """Return the rows of all tables."""
    union = " UNION ALL ".join(f"SELECT k, v FROM {each}" for each in tables_of(names))
    return {str(key): int(value) for key, value in server.query(union)}


def at(channel: str) -> Statement:
    """Return the clause that names a channel."""
    return f" FOR CHANNEL '{channel}'" if channel else ""


def status_of(server: RealServer, channel: str) -> dict[str, Any]:
    """Return the status of one channel with today's column names; empty if there is none."""
    with server.connect(cursor=DictCursor) as connection, connection.cursor() as cursor:
        cursor.execute(server.dialect.replica_status)
        rows = cursor.fetchall()
    found = [{new_words(column): value for column, value in row.items()} for row in rows]
    return next((row for row in found if row.get("Channel_Name", "") == channel), {})


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
        return f"INSERT INTO {table_of(key)} VALUES ('{key}', {value})"
    if kind == "update":
        return f"UPDATE {table_of(key)} SET v = {value} WHERE k = '{key}'"
    return f"DELETE FROM {table_of(key)} WHERE k = '{key}'"


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
    both.real(name).execute("CREATE TABLE sim.made (id INT PRIMARY KEY, v VARCHAR(100))")


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


def threads(real_server: RealServer, which: str, *, start: bool, channel: str = "") -> Statement:
    """Return the statement that starts or stops the threads of a replica."""
    words = real_server.dialect.words
    verb = words.start_replica if start else words.stop_replica
    return (
        verb + {"both": "", "receiver": " IO_THREAD", "applier": " SQL_THREAD"}[which] + at(channel)
    )


@real("stop-replica")
def _stop(both: Twins, name: str, channel: str, which: str) -> None:
    both.real(name).execute(threads(both.real(name), which, start=False, channel=channel))


@real("start-replica")
def _start(both: Twins, name: str, channel: str, which: str) -> None:
    both.real(name).execute(threads(both.real(name), which, start=True, channel=channel))


@real("auto-position-on")
def _auto_position_on(both: Twins, name: str, channel: str) -> None:
    server = both.real(name)
    statements = [server.dialect.stop_replica + at(channel)]
    if not int(status_of(server, channel)["Auto_Position"]):
        statements.append(server.dialect.change_source_to(auto_position=1) + at(channel))
    server.execute(*statements, server.dialect.start_replica + at(channel))


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
    place = server.dialect.change_source_to(auto_position=0, log_file=log_file, log_pos=log_pos)
    server.execute(
        server.dialect.stop_replica + at(channel),
        place + at(channel),
        server.dialect.start_replica + at(channel),
    )


def change(both: Twins, name: str, source: str, channel: str = "") -> None:
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
        + at(channel)
    )


@real("repoint")
def _repoint(both: Twins, name: str, channel: str, source: str) -> None:
    here = both.real(name)
    here.execute(here.dialect.stop_replica + at(channel))
    change(both, name, source, channel)
    here.execute(here.dialect.start_replica + at(channel))


@real("configure-only")
def _configure_only(both: Twins, name: str, channel: str, source: str) -> None:
    here = both.real(name)
    here.execute(here.dialect.stop_replica + at(channel))
    change(both, name, source, channel)


@real("old-primary-returns")
def _returns(both: Twins, name: str, source: str) -> None:
    change(both, name, source)
    both.real(name).execute(both.real(name).dialect.start_replica)


@real("failover")
def _failover(both: Twins, name: str) -> None:
    """Remove the channels of the new primary, and let those follow it that do in the simulator."""
    here = both.real(name)
    here.execute(here.dialect.stop_replica, here.dialect.words.reset_replica + " ALL")
    for replica, channel in both.world.replicas_of(name):
        there = both.real(replica.name)
        if int(status_of(there, channel.name)["Source_Port"]) != here.port:
            _repoint(both, replica.name, channel.name, name)


@real("reset-replica")
def _reset_replica(both: Twins, name: str, channel: str, scope: str) -> None:
    here = both.real(name)
    reset = here.dialect.words.reset_replica + (" ALL" if scope == "all" else "")
    here.execute(here.dialect.stop_replica + at(channel), reset + at(channel))


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
        _receiver_again(both.real(replica.name), channel.name)


@real("reset-with-old-purged")
def _reset_with_old_purged(both: Twins, name: str, _count: int) -> None:
    here = both.real(name)
    connected = []
    for replica, channel in both.world.replicas_of(name):
        real = both.real(replica.name)
        status = status_of(real, channel.name)
        if status and status["Replica_IO_Running"] != "No":
            connected.append((real, channel.name))
    for real, channel_name in connected:  # one that stays connected may stop with 1236
        real.execute(real.dialect.stop_receiver + at(channel_name))
    purged = ",".join(both.gtid(each) for each in sorted(both.world[name].purged))
    here.execute(
        here.dialect.stop_replica,
        here.dialect.words.reset_binary_logs_and_gtids,
        f"SET GLOBAL gtid_purged = '{purged}'",
    )
    for real, channel_name in connected:
        real.execute(real.dialect.start_receiver + at(channel_name))


def _receiver_again(server: RealServer, channel: str) -> None:
    status = status_of(server, channel)
    # A source that is reset may end the connection with this error before the receiver is stopped.
    is_ended = "could not find next log" in str(status.get("Last_IO_Error"))
    if status and (status["Replica_IO_Running"] != "No" or is_ended):
        server.execute(
            server.dialect.stop_receiver + at(channel), server.dialect.start_receiver + at(channel)
        )


def _receivers_again(both: Twins, name: str) -> None:
    for channel in both.world[name].channels:
        _receiver_again(both.real(name), channel.name)
    for replica, channel in both.world.replicas_of(name):
        _receiver_again(both.real(replica.name), channel.name)


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
    tables = ", ".join(f"{each} READ" for each in tables_of(both.world.servers))
    text = f"LOCK TABLES {tables}" if kind == "table" else "FLUSH TABLES WITH READ LOCK"
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
        rows = rows_of(here, both.world.servers)
        simulated = {
            key: value for key, value in server.rows.items() if key not in ("table", act.VIEW)
        }
        if rows != simulated:
            yield f"{name}: rows are {rows}, simulated {simulated}"
        if bool(owned) != bool(server.owned):
            yield f"{name}: gtid_owned is {owned!r}, simulated {server.owned}"
        if not server.channels and here.replica_status():
            yield f"{name}: channels differ"
        for channel in server.channels:
            status = status_of(here, channel.name)
            if not status:
                yield f"{name}: it has no channel {channel.name!r}"
            else:
                yield from _compared_channel(both, name, channel, status)


def _compared_channel(
    both: Twins, name: str, channel: Channel, status: dict[str, Any]
) -> Iterator[str]:
    _follow_refusal(both, name, channel, status)
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


def _follow_refusal(both: Twins, name: str, channel: Channel, status: dict[str, Any]) -> None:
    """Let a simulated receiver be refused as the real one, where both orders may happen.

    When a server of 5.6 starts, its receiver connects while its applier applies what is in the
    relay log. Once it has applied what a crash took from the source, the source refuses it ("more
    GTIDs", seen on 5.6.24); the simulated receiver always connects before.
    """
    replica, source = both.world[name], both.world[channel.source]
    is_refused = status["Replica_IO_Running"] == "No" and "has more GTIDs" in str(
        status["Last_IO_Error"]
    )
    if replica.version < (5, 7, 0) and is_refused and channel.receiver == "Yes":
        text = act.refusal(source, replica, channel) if channel.auto_position else ""
        if text == EXTRA:
            channel.receiver, channel.receiver_error = "No", (1236, text)


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

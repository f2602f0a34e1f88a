"""Produces the common faults of a replication topology on real servers.

1. One function per fault. It takes a running topology whose servers have caught up. It injects the
   fault by the statements and signals that cause it in production, waits until the servers show it,
   and returns what it injected. Servers have the names that the topology gives them.
2. No server is simulated, and no status is edited: an auditor reads what real servers report.
3. This module evaluates nothing. The tests state which finding a fault must lead to.
4. Each fault works in a schema of its own, so that one topology can have several. A fault that
   stops a channel must be the last.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pymysql

from compose.native.provision import copy_data_directory
from compose.native.server import Server
from compose.native.shapes import Link, Topology, wait_for

_APPEAR_SECONDS_MAX = 60.0
_POLL_SECONDS = 0.05
_UPTIME_SECONDS_MIN = 3
_CLOCK_SECONDS = 2.0  # start times are read within two seconds (topology/facts/restarts.py)
_ER_TABLE_EXISTS = 1050
_OWN_UUIDS = (
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uuid', 'group_replication_group_name')"
)

# Error numbers of a receiver whose GTID set the source refuses: the client's number up to 5.7, the
# error log's number since 8.0 (seen on 5.6.24 and 9.7.4).
SOURCE_REFUSED = frozenset({1236, 13114})


class FaultNotProduced(Exception):
    """The servers did not show the fault in time; the message is what they showed instead."""


@dataclass(frozen=True, slots=True)
class PositionBypass:
    """``replica`` never applied ``skipped`` of ``source``, and applied the later ``applied``."""

    source: Server
    replica: Server
    skipped: str
    applied: str


def position_bypass(
    topology: Topology, *, source: str = "a", replica: str = "b", skipped_count: int = 3
) -> PositionBypass:
    """Move a replica past some transactions by file position, as operators do to skip an error.

    Afterwards: AUTO_POSITION=0 on the replica, both its threads running and no error. Its
    gtid_executed has a hole that does not close; the skipped rows are missing there.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, "bypassed")
    await_uptime(there)
    there.execute(there.dialect.stop_replica)
    skipped = commit(here, *["INSERT INTO bypassed.t () VALUES ()"] * skipped_count)
    move_past(here, there)
    applied = commit(here, *["INSERT INTO bypassed.t () VALUES ()"] * 2)
    wait_for(there, applied)
    await_status(there, _both_threads_run)
    return PositionBypass(source=here, replica=there, skipped=skipped, applied=applied)


def move_past(source: Server, replica: Server) -> None:
    """Start a stopped replica at the end of its source's log: it passes what it has not read."""
    file, position = source.binary_log_position()
    replica.execute(
        replica.dialect.change_source_to(auto_position=0, log_file=file, log_pos=position),
        replica.dialect.start_replica,
    )


@dataclass(frozen=True, slots=True)
class ErrantTransaction:
    """``written_on`` committed ``errant``, which its source does not have."""

    written_on: Server
    errant: str


def errant_transaction(
    topology: Topology, *, on: str = "b", transaction_count: int = 1
) -> ErrantTransaction:
    """Write rows on a server that should not be written to.

    In a dual-primary pair the server's source also replicates from it. That channel is stopped
    first: otherwise the write replicates back. Afterwards: the server has rows and GTIDs
    of its own server_uuid that its source is missing; in a chain they flow downstream.
    """
    server = topology[on]
    for link in topology.links:
        if link.source == on and Link(source=link.replica, replica=on) in topology.links:
            topology[link.replica].execute(topology[link.replica].dialect.stop_replica)
    errant = commit(
        server,
        "CREATE DATABASE errant",
        "CREATE TABLE errant.t (id INT AUTO_INCREMENT PRIMARY KEY, note VARCHAR(40))",
        *["INSERT INTO errant.t (note) VALUES ('written on the wrong server')"] * transaction_count,
    )
    return ErrantTransaction(written_on=server, errant=errant)


@dataclass(frozen=True, slots=True)
class LostTail:
    """``source`` lost ``lost``, own transactions that ``replica`` has applied."""

    source: Server
    replica: Server
    lost: str


def lost_tail_crash(
    topology: Topology,
    *,
    source: str = "a",
    replica: str = "b",
    lost_count: int = 3,
    statements: Sequence[str] = (),
) -> LostTail:
    """Let a source crash and lose its last transactions, which its replica already has.

    It simulates a power loss exactly. The server is frozen and its data directory is copied. Then
    the server goes on and its replica reads from it. It is killed, and the copy is restored.

    Afterwards: the source runs without the lost transactions and will reuse their GTIDs; the
    replica has them, so its receiver has stopped (13114 since 8.0, 1236 before).
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, "lost")
    before_crash = here.folder / "before-crash"
    here.freeze()
    try:
        copy_data_directory(here.datadir, before_crash)
    finally:
        here.thaw()
    lost = commit(here, *(statements or ["INSERT INTO lost.t () VALUES ()"] * lost_count))
    wait_for(there, lost)
    here.kill()
    shutil.rmtree(here.datadir)
    before_crash.rename(here.datadir)
    # Clock and uptime have whole seconds, and a second may elapse between the two queries. After a
    # restart within two seconds of the lost commits, an auditor cannot prove a crash.
    time.sleep(_CLOCK_SECONDS)
    here.start()
    await_status(there, _source_refused)
    return LostTail(source=here, replica=there, lost=lost)


@dataclass(frozen=True, slots=True)
class ReusedNumbers:
    """``source`` reused the GTIDs ``reused``; ``replica`` has the lost transactions under them.

    ``later`` came after them and is the same on both.
    """

    source: Server
    replica: Server
    reused: str
    later: str


def reused_numbers(
    topology: Topology, *, source: str = "a", replica: str = "b", lost_count: int = 3
) -> ReusedNumbers:
    """Let a source that lost the end of its log write until its sets no longer show the loss.

    Afterwards: both sets are equal, both threads of the replica run without an error. The rows of
    ``lost.t`` under the reused GTIDs differ: on the replica ``note`` is NULL.
    """
    lost = lost_tail_crash(topology, source=source, replica=replica, lost_count=lost_count)
    here, there = lost.source, lost.replica
    reused = commit(here, *["INSERT INTO lost.t (note) VALUES ('after the crash')"] * lost_count)
    if reused != lost.lost:
        raise FaultNotProduced(f"{here.name} lost {lost.lost} and then wrote {reused}")
    later = commit(here, *["INSERT INTO lost.t (note) VALUES ('later')"] * 2)
    there.execute(there.dialect.start_replica)
    wait_for(there, later)
    await_status(there, _both_threads_run)
    return ReusedNumbers(source=here, replica=there, reused=reused, later=later)


@dataclass(frozen=True, slots=True)
class PurgedUnderReplica:
    """``source`` purged ``purged`` before ``replica`` had received them."""

    source: Server
    replica: Server
    purged: str


def purge_under_stopped_replica(
    topology: Topology, *, source: str = "a", replica: str = "b", purged_count: int = 3
) -> PurgedUnderReplica:
    """Purge binary logs that a stopped replica still needs, then start it.

    Afterwards: the replica's receiver has stopped (13114 since 8.0, 1236 before) and cannot catch
    up from this source; its applier runs and has nothing to do.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, "purged")
    there.execute(there.dialect.stop_replica)
    purged = commit(here, *["INSERT INTO purged.t () VALUES ()"] * purged_count)
    here.execute("FLUSH BINARY LOGS")
    purge_until_gone(here, purged)
    there.execute(there.dialect.start_replica)
    await_status(there, _source_refused)
    return PurgedUnderReplica(source=here, replica=there, purged=purged)


def purge_until_gone(server: Server, gtids: str) -> None:
    """Purge all logs before the newest, until the GTIDs are in gtid_purged.

    A log that a session still holds open is not purged, so this repeats.
    """
    current, _ = server.binary_log_position()

    def gone() -> bool:
        server.execute(f"PURGE BINARY LOGS TO '{current}'")
        return bool(server.query("SELECT GTID_SUBSET(%s, @@GLOBAL.gtid_purged)", [gtids])[0][0])

    _await(gone, lambda: f"{server.name} does not purge {gtids}")


def bypassed_and_purged(
    topology: Topology, *, source: str = "a", replica: str = "b"
) -> PositionBypass:
    """Move a replica past some transactions by file position, and purge them on its source.

    Afterwards: as after `position_bypass`, and the source has the file that the channel reads.
    """
    fault = position_bypass(topology, source=source, replica=replica)
    fault.source.execute("FLUSH BINARY LOGS")
    wait_for(fault.replica, commit(fault.source, "INSERT INTO bypassed.t () VALUES ()"))
    purge_until_gone(fault.source, fault.skipped)
    return fault


@dataclass(frozen=True, slots=True)
class FailingCreateView:
    """``failed`` failed on ``source`` with 1050, was logged, and would succeed on ``replica``."""

    source: Server
    replica: Server
    failed: str
    statement: str


def failing_create_view(
    topology: Topology, *, source: str = "a", replica: str = "b"
) -> FailingCreateView:
    """Let CREATE VIEW fail on the source (1050) where it would succeed on the replica.

    5.6 logs the failed statement with its error code (seen on 5.6.24; 8.0's atomic DDL does not).
    Afterwards: the replica's applier has stopped. Last_SQL_Errno is 0, and only the text mentions
    "different errors". The failed GTID is *in* the replica's gtid_executed.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, "viewed")
    statement = "CREATE VIEW viewed.v AS SELECT * FROM viewed.t"
    wait_for(there, commit(here, statement))
    there.execute("SET SESSION sql_log_bin = 0", "DROP VIEW viewed.v")
    failed = commit(here, statement, expected_error=_ER_TABLE_EXISTS)
    if not failed:
        raise FaultNotProduced(f"{here.version_text} does not log a statement that failed")
    await_status(there, lambda status: "different errors" in status["Last_SQL_Error"])
    return FailingCreateView(source=here, replica=there, failed=failed, statement=statement)


@dataclass(frozen=True, slots=True)
class TailGap:
    """``replica`` has applied ``applied``; the earlier ``held`` waits for a row lock."""

    source: Server
    replica: Server
    held: str
    applied: str


@contextmanager
def tail_gap(topology: Topology, *, source: str = "a", replica: str = "b") -> Iterator[TailGap]:
    """Hold back an older transaction of a parallel applier while younger ones commit.

    Inside the block: the replica applies with several workers in any commit order; a test session
    holds the row that ``held`` updates. ``held`` is in gtid_owned, not in gtid_executed; both
    threads run. After the block: the lock is released and the gap has closed. The parallel settings
    stay. Two schemas, because 5.6 distributes work over its workers by schema.
    """
    here, there = topology[source], topology[replica]
    for schema in ("gap_held", "gap_free"):
        table_on(here, there, schema)
    there.execute(
        there.dialect.stop_replica,
        *there.dialect.parallel_applier,
        "SET GLOBAL innodb_lock_wait_timeout = 3600",  # a worker must not give up and retry
        there.dialect.start_replica,
    )
    # The coordinator lets workers overtake only transactions it has seen commit since it started.
    # Without this commit the younger ones wait for the held one (seen on 9.7.4).
    wait_for(there, commit(here, "INSERT INTO gap_held.t (id) VALUES (1)"))
    with there.connect() as holder, holder.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT id FROM gap_held.t WHERE id = 1 FOR UPDATE")
        held = commit(here, "UPDATE gap_held.t SET note = 'changed' WHERE id = 1")
        applied = commit(here, *["INSERT INTO gap_free.t () VALUES ()"] * 3)
        wait_for(there, applied)
        _await(
            lambda: f"{held}#" in str(there.value("@@GLOBAL.gtid_owned")),
            lambda: f"{there.name} owns {there.value('@@GLOBAL.gtid_owned')}, not {held}",
        )
        yield TailGap(source=here, replica=there, held=held, applied=applied)
        holder.rollback()
    wait_for(there, held)


@contextmanager
def hung_server(server: Server) -> Iterator[Server]:
    """Freeze a server: the kernel accepts connections for it, but it never responds.

    After the block it continues to run.
    """
    server.freeze()
    try:
        yield server
    finally:
        server.thaw()


# ---- helpers ----------------------------------------------------------------------------------


def table_on(source: Server, replica: Server, schema: str) -> None:
    """Create the same empty table on both servers, and let the replica catch up."""
    source.execute(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT AUTO_INCREMENT PRIMARY KEY, note VARCHAR(40))",
    )
    wait_for(replica, source.value("@@GLOBAL.gtid_executed"))


def await_uptime(server: Server) -> None:
    """Wait until commits are certainly later than the startup, whose time is in whole seconds."""
    while int(server.query("SHOW GLOBAL STATUS LIKE 'Uptime'")[0][1]) < _UPTIME_SECONDS_MIN:
        time.sleep(_POLL_SECONDS)


def commit(server: Server, *statements: str, expected_error: int | None = None) -> str:
    """Run statements and return their GTIDs on this server: of its UUID, or its group's."""
    before = server.value("@@GLOBAL.gtid_executed")
    try:
        server.execute(*statements)
    except pymysql.err.MySQLError as failure:
        if failure.args[0] != expected_error:
            raise
    else:
        if expected_error is not None:
            raise FaultNotProduced(f"{statements} did not fail with {expected_error}")
    added = server.query("SELECT GTID_SUBTRACT(@@GLOBAL.gtid_executed, %s)", [before])[0][0]
    own = tuple(str(value) for _, value in server.query(_OWN_UUIDS) if value)
    parts = str(added).replace("\n", "").split(",")  # GTIDs of the peer may have arrived too
    return ",".join(part for part in parts if part.startswith(own))


def _both_threads_run(status: dict[str, Any]) -> bool:
    return (status["Replica_IO_Running"], status["Replica_SQL_Running"]) == ("Yes", "Yes")


def _source_refused(status: dict[str, Any]) -> bool:
    return status["Last_IO_Errno"] in SOURCE_REFUSED and status["Replica_IO_Running"] == "No"


def await_applier_stopped(server: Server) -> None:
    """Wait until a server's applier has stopped with an error."""
    await_status(server, lambda status: status["Replica_SQL_Running"] == "No")


def await_status(server: Server, shows: Callable[[dict[str, Any]], bool]) -> None:
    """Wait until SHOW REPLICA STATUS shows it. Raises FaultNotProduced."""
    _await(
        lambda: shows(server.replica_status()),
        lambda: f"{server.name} shows {server.replica_status()}",
    )


def _await(condition: Callable[[], bool], instead: Callable[[], str]) -> None:
    deadline = time.monotonic() + _APPEAR_SECONDS_MAX
    while not condition():
        if time.monotonic() > deadline:
            raise FaultNotProduced(instead())
        time.sleep(_POLL_SECONDS)

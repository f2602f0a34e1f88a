"""Faults of binary logs, each produced on real servers: see faults.py."""

from dataclasses import dataclass, replace

import pymysql

from compose.faults import FaultNotProduced, commit, table_on
from compose.faults_applier import await_received
from compose.native.server import Server
from compose.native.shapes import Topology, wait_for

_SCHEMA = "logs"
_FLUSHES_MAX = 2  # the first one opens the log with the highest number
_UNUSABLE = ".21474836"
_LAST_LOG_BUT_ONE = f"binlog{_UNUSABLE}46"


@dataclass(frozen=True, slots=True)
class LogClosed:
    """``server`` has ``rows_count`` rows that its replicas never get; the sets are equal."""

    server: Server
    table: str
    rows_count: int


def log_closed(
    topology: Topology, *, server: str = "a", replica: str = "b", rows_count: int = 3
) -> LogClosed:
    """Let a server fail to open its next binary log, as on a full disk, and go on without one.

    Afterwards: log_bin is ON and no log is open. Clients have committed rows on the server that
    have no GTID. 5.6.24 instead logs an incident, at which its replicas stop, and keeps its log.
    """
    there = topology[server]
    if rows_count:
        table_on(there, topology[replica], _SCHEMA)
    there.execute("SET GLOBAL binlog_error_action = IGNORE_ERROR")
    (there.datadir / _LAST_LOG_BUT_ONE).touch()
    for _ in range(_FLUSHES_MAX):
        try:
            there.execute("FLUSH BINARY LOGS")
        except pymysql.MySQLError:
            break  # reported to this session; the server goes on
    shown = there.query(there.dialect.words.show_binary_log_status)
    if shown:
        raise FaultNotProduced(f"{there.name} still writes {shown}")
    there.execute(*[f"INSERT INTO {_SCHEMA}.t () VALUES ()"] * rows_count)
    return LogClosed(server=there, table=f"{_SCHEMA}.t", rows_count=rows_count)


def restart_with_log(server: Server) -> None:
    """Remove the cause why a server cannot open its next log, and restart it."""
    server.stop()
    index = server.datadir / "binlog.index"
    usable = [line for line in index.read_text().splitlines() if _UNUSABLE not in line]
    index.write_text("".join(f"{line}\n" for line in usable))
    for file in server.datadir.glob(f"*{_UNUSABLE}*"):
        file.unlink()
    extra = (*server.settings.extra, "--binlog-error-action=ABORT_SERVER")
    server.settings = replace(server.settings, extra=extra)
    server.start()


@dataclass(frozen=True, slots=True)
class LogDeleted:
    """``source`` has deleted ``file``, which had ``waiting``; ``replica`` is stopped."""

    source: Server
    replica: Server
    file: str
    waiting: str


def log_deleted(topology: Topology, *, source: str = "a", replica: str = "b") -> LogDeleted:
    """Stop a replica, and delete the file of its source's log that it needs next (rm)."""
    here, there = topology[source], topology[replica]
    table_on(here, there, _SCHEMA)
    there.execute(there.dialect.stop_replica)
    here.execute("FLUSH BINARY LOGS")
    file = here.binary_log_position()[0]
    waiting = commit(here, *[f"INSERT INTO {_SCHEMA}.t () VALUES ()"] * 3)
    here.execute("FLUSH BINARY LOGS")
    (here.datadir / file).unlink()
    return LogDeleted(source=here, replica=there, file=file, waiting=waiting)


def delete_first_log(server: Server) -> str:
    """Delete the oldest log file of a server, and return its name."""
    file = str(server.query("SHOW BINARY LOGS")[0][0])
    (server.datadir / file).unlink()
    return file


@dataclass(frozen=True, slots=True)
class LostLog:
    """``source`` executed ``lost``, has no log with it, and ``replica`` did not receive it."""

    source: Server
    replica: Server
    lost: str


def log_lost(
    topology: Topology,
    *,
    source: str = "a",
    replica: str = "b",
    lost_count: int = 2,
    is_passed: bool = True,
) -> LostLog:
    """Delete a binary log in the middle, and its line of binlog.index, while a replica is stopped.

    Afterwards: the source has purged nothing, both threads of the replica run, and it has executed
    later transactions; unless `is_passed` is false: then it is still stopped. Other replicas
    received what was lost.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, "lost_log")
    there.execute(there.dialect.stop_replica)
    here.execute("FLUSH BINARY LOGS")
    file, _ = here.binary_log_position()
    lost = commit(here, *["INSERT INTO lost_log.t () VALUES ()"] * lost_count)
    here.execute("FLUSH BINARY LOGS")
    commit(here, "INSERT INTO lost_log.t () VALUES ()")
    for link in topology.links:
        if link.source == source and link.replica != replica:
            wait_for(topology[link.replica], lost)
    _restart_without(here, file)
    for link in topology.links:  # receivers wait for a minute before they connect again
        if link.source == source and link.replica != replica:
            other = topology[link.replica]
            other.execute(other.dialect.stop_replica, other.dialect.start_replica)
    if is_passed:
        there.execute(there.dialect.start_replica)
        wait_for(there, commit(here, "INSERT INTO lost_log.t () VALUES ()"))
    return LostLog(source=here, replica=there, lost=lost)


def log_lost_after_receipt(topology: Topology, *, source: str = "a", replica: str = "b") -> LostLog:
    """Delete a binary log whose only transaction waits in the relay log of a replica.

    Before 5.7 the receiver forgets the last GTID that it has received when it connects again, so no
    set of the replica has it. Afterwards: its receiver is connected and has received a later
    transaction; its applier is stopped.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, "lost_log")
    wait_for(there, commit(here, "INSERT INTO lost_log.t () VALUES ()"))
    there.execute(f"{there.dialect.stop_replica} SQL_THREAD")
    here.execute("FLUSH BINARY LOGS")
    file, _ = here.binary_log_position()
    lost = commit(here, "INSERT INTO lost_log.t () VALUES ()")
    await_received(there, lost)
    here.execute("FLUSH BINARY LOGS")
    _restart_without(here, file)
    there.execute(
        f"{there.dialect.stop_replica} IO_THREAD", f"{there.dialect.start_replica} IO_THREAD"
    )
    await_received(there, commit(here, "INSERT INTO lost_log.t () VALUES ()"))
    return LostLog(source=here, replica=there, lost=lost)


def _restart_without(server: Server, file: str) -> None:
    """Restart a server without one binary log and its line of binlog.index."""
    server.stop()
    index = server.datadir / "binlog.index"
    kept = [line for line in index.read_text().splitlines() if file not in line]
    index.write_text("".join(f"{line}\n" for line in kept))
    (server.datadir / file).unlink()
    server.start()

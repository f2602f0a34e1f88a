"""Faults of channels, each produced on real servers: see faults.py.

A receiver that runs and does not read, one that its source refuses, and one replica of two sources.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from compose.faults import ErrantTransaction, await_status, commit, table_on
from compose.native.command import Settings
from compose.native.installation import Installation
from compose.native.provision import REPLICATION_USER
from compose.native.server import Server
from compose.native.shapes import Link, Topology, TopologyPlan, running, wait_for

_NO_SUCH_USER = "no_such_account"
_WAITS_FOR_SPACE = "free relay log space"
_RELAY_LOG_BYTES_MAX = 20_000


@dataclass(frozen=True, slots=True)
class ReadPast:
    """``replica`` was moved past ``skipped``; its receiver has not read ``unread`` yet."""

    topology: Topology
    replica: Server
    skipped: str
    unread: str


@contextmanager
def moved_past_and_waiting(installation: Installation) -> Iterator[ReadPast]:
    """Move the last server of a chain by file position, and let its receiver wait for space.

    Inside the block: a session locks a table, and the applier waits for it. The relay log has
    reached relay_log_space_limit, and the receiver reads no further although it runs. In the middle
    server's log, `skipped` is before the file position; the first server committed it.
    """
    settings = Settings(extra=(f"--relay-log-space-limit={_RELAY_LOG_BYTES_MAX}",))
    plan = TopologyPlan(
        names=("first", "middle", "last"),
        links=(Link("first", "middle"), Link("middle", "last")),
        settings={"last": settings},
    )
    with running(installation, plan) as chain:
        first, middle, last = (chain[name] for name in plan.names)
        table_on(first, middle, "past")
        commit(first, "CREATE TABLE past.large (id INT PRIMARY KEY, content LONGBLOB)")
        chain.settle()
        last.execute(last.dialect.stop_replica)
        skipped = commit(first, *["INSERT INTO past.t () VALUES ()"] * 3)
        wait_for(middle, skipped)
        log_file, log_pos = middle.binary_log_position()
        last.execute(
            last.dialect.change_source_to(auto_position=0, log_file=log_file, log_pos=log_pos),
            last.dialect.start_replica,
        )
        with last.connect() as holder, holder.cursor() as cursor:
            cursor.execute("LOCK TABLES past.large READ")
            insert = f"INSERT INTO past.large VALUES (%s, REPEAT('x', {_RELAY_LOG_BYTES_MAX}))"
            commit(first, insert % 1)
            await_status(last, lambda status: _WAITS_FOR_SPACE in status["Replica_IO_State"])
            unread = commit(first, *(insert % number for number in (2, 3)))
            wait_for(middle, unread)
            yield ReadPast(chain, last, skipped=skipped, unread=unread)
        wait_for(last, unread)


@dataclass(frozen=True, slots=True)
class RefusedWithBacklog:
    """``replica`` cannot connect to ``source``, which has committed ``missing`` since."""

    source: Server
    replica: Server
    missing: str


def refused_with_backlog(
    topology: Topology, *, source: str = "a", replica: str = "b"
) -> RefusedWithBacklog:
    """Point a receiver at an account that its source does not have, and write on the source.

    Afterwards: the receiver retries every second, with an error; the applier is idle.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, "refused")
    there.execute(
        "STOP REPLICA IO_THREAD",
        f"CHANGE REPLICATION SOURCE TO SOURCE_USER = '{_NO_SUCH_USER}'",
        "START REPLICA IO_THREAD",
    )
    missing = commit(here, *["INSERT INTO refused.t () VALUES ()"] * 3)
    await_status(there, lambda status: bool(status["Last_IO_Errno"]))
    return RefusedWithBacklog(source=here, replica=there, missing=missing)


def errant_below_two_sources(
    star: Topology, *, other: str = "replica1", replica: str = "replica2"
) -> ErrantTransaction:
    """Let a replica receive from two servers that no channel links, and write on it.

    Afterwards: `other` is a source of its own. The replica has a running channel for each source,
    and a transaction that neither source has.
    """
    second, there = star[other], star[replica]
    star.settle()
    second.execute(second.dialect.stop_replica, second.dialect.reset_replica)
    there.execute(
        "CHANGE REPLICATION SOURCE TO"
        f" SOURCE_HOST = '{second.host}', SOURCE_PORT = {second.port},"
        f" SOURCE_USER = '{REPLICATION_USER}', SOURCE_AUTO_POSITION = 1 FOR CHANNEL 'second'",
        "START REPLICA FOR CHANNEL 'second'",
    )
    wait_for(there, commit(star["source"], "CREATE DATABASE of_the_first"))
    wait_for(there, commit(second, "CREATE DATABASE of_the_second"))
    errant = commit(there, "CREATE TABLE of_the_first.t (id INT PRIMARY KEY)")
    return ErrantTransaction(written_on=there, errant=errant)


@dataclass(frozen=True, slots=True)
class TakenOver:
    """``replica`` is stopped, with ``successor`` at the address of its source ``former``."""

    former: Server
    successor: Server
    replica: Server
    unread: str  # what the former source has committed since


def address_taken_over(star: Topology) -> TakenOver:
    """Let another replica take over the address of the source while one replica is stopped.

    Afterwards: the source listens on another port. The SOURCE_UUID of the stopped replica is still
    that of the source, and its SOURCE_PORT is the successor's.
    """
    former, successor, replica = star["source"], star["replica1"], star["replica2"]
    table_on(former, replica, "taken")
    star.settle()
    replica.execute(replica.dialect.stop_replica)
    unread = commit(former, "INSERT INTO taken.t (note) VALUES ('unread')")
    wait_for(successor, unread)
    successor.execute(successor.dialect.stop_replica, successor.dialect.reset_replica)
    former.stop()
    successor.stop()
    former.port, successor.port = successor.port, former.port
    former.start()
    successor.start()
    commit(successor, "INSERT INTO taken.t (note) VALUES ('of the successor')")
    return TakenOver(former=former, successor=successor, replica=replica, unread=unread)

"""Faults whose repair decides about data: rows behind extra, skipped and conflicting transactions.

The rules are those of faults.py: real statements on real servers, and no evaluation.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from compose.faults import (
    PositionBypass,
    await_applier_stopped,
    await_status,
    await_uptime,
    commit,
    position_bypass,
    table_on,
)
from compose.native.server import Server
from compose.native.shapes import Topology, follow, wait_for
from gtid import GtidSet


@dataclass(frozen=True, slots=True)
class ErrantRows:
    """``written_on`` committed ``errant``: rows in ``shop.t``, which every server has."""

    written_on: Server
    errant: str


def errant_rows(topology: Topology, *, source: str, on: str) -> ErrantRows:
    """Insert, update and delete rows of a shared table on a server that should be read-only.

    Afterwards: row 1 is changed, row 2 is deleted and row 10 is new there, and nowhere upstream.
    """
    here, there = topology[source], topology[on]
    table_on(here, there, "shop")
    here.execute("INSERT INTO shop.t VALUES (1, 'one'), (2, 'two'), (3, 'three')")
    for server in topology.servers.values():
        wait_for(server, here.value("@@GLOBAL.gtid_executed"))
    errant = commit(
        there,
        "UPDATE shop.t SET note = 'changed' WHERE id = 1",
        "DELETE FROM shop.t WHERE id = 2",
        "INSERT INTO shop.t VALUES (10, 'half way')",
        "UPDATE shop.t SET note = 'new' WHERE id = 10",
    )
    return ErrantRows(written_on=there, errant=errant)


@dataclass(frozen=True, slots=True)
class StoppedInRing:
    """A ring in which ``stopped`` does not receive; ``waiting`` is on its source only."""

    stopped: Server
    waiting: str


def stopped_channel_in_ring(chain: Topology) -> StoppedInRing:
    """Close a chain of three to a ring, stop the second's channel, and write on the first."""
    first, second, third = chain["first"], chain["middle"], chain["last"]
    follow(first, third)
    table_on(first, second, "ring")
    wait_for(third, first.value("@@GLOBAL.gtid_executed"))
    second.execute(second.dialect.stop_replica)
    waiting = commit(first, "INSERT INTO ring.t VALUES (1, 'one')")
    return StoppedInRing(stopped=second, waiting=waiting)


def bypass_with_newer_rows(
    topology: Topology, *, source: str = "a", replica: str = "b"
) -> PositionBypass:
    """Skip an update by file position, then let a newer version of its row arrive.

    Afterwards: if fetched again, the old update would overwrite the newer row.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, "versions")
    wait_for(there, commit(here, "INSERT INTO versions.t VALUES (1, 'first')"))
    return bypass(
        here,
        there,
        skipped=("UPDATE versions.t SET note = 'second' WHERE id = 1",),
        # A MINIMAL image finds the row only by its key, because it has no other columns.
        applied=(
            "SET SESSION binlog_row_image = 'MINIMAL'",
            "UPDATE versions.t SET note = 'third' WHERE id = 1",
        ),
    )


def bypass_with_value_taken(
    topology: Topology, *, skipped: Sequence[str], source: str = "a", replica: str = "b"
) -> PositionBypass:
    """Skip changes of ``taken.t`` by file position; the replica then gets row 9 with the word 'x'.

    ``word`` is unique. Rows 1 ('a') and 2 ('b') are on both servers before.
    """
    here, there = topology[source], topology[replica]
    here.execute(
        "CREATE DATABASE taken",
        "CREATE TABLE taken.t (id INT PRIMARY KEY, word VARCHAR(9), n INT, UNIQUE (word, n))",
        "INSERT INTO taken.t VALUES (1, 'a', 1), (2, 'b', 1)",
    )
    wait_for(there, here.value("@@GLOBAL.gtid_executed"))
    applied = ("INSERT INTO taken.t VALUES (9, 'x', 1)",)
    return bypass(here, there, skipped=skipped, applied=applied)


def bypass(
    here: Server, there: Server, *, skipped: Sequence[str], applied: Sequence[str]
) -> PositionBypass:
    """Skip the first commits of ``here`` by file position, then let the replica apply the rest."""
    await_uptime(there)
    there.execute(there.dialect.stop_replica)
    passed = commit(here, *skipped)
    log_file, log_pos = here.binary_log_position()
    later = commit(here, *applied)
    there.execute(
        there.dialect.change_source_to(auto_position=0, log_file=log_file, log_pos=log_pos),
        there.dialect.start_replica,
    )
    wait_for(there, later)
    return PositionBypass(source=here, replica=there, skipped=passed, applied=later)


def bypass_with_rows_there(
    topology: Topology, *, source: str = "a", replica: str = "b"
) -> PositionBypass:
    """Skip inserts by file position after the same rows were inserted by hand on the replica."""
    fault = position_bypass(topology, source=source, replica=replica)
    held = {row[0] for row in fault.replica.query("SELECT id FROM bypassed.t")}
    rows = [row for row in fault.source.query("SELECT id FROM bypassed.t") if row[0] not in held]
    fault.replica.execute(
        "SET SESSION sql_log_bin = 0",
        *(f"INSERT INTO bypassed.t (id) VALUES ({identifier})" for (identifier,) in rows),
    )
    return fault


@dataclass(frozen=True, slots=True)
class BothPurged:
    """Each of two servers has purged what only it has."""

    a: Server
    b: Server
    only_on_a: str
    only_on_b: str


def both_purged(topology: Topology) -> BothPurged:
    """Stop both channels of a pair, write on both servers, and purge both writes."""
    a, b = topology["a"], topology["b"]
    table_on(a, b, "apart")
    for server in (a, b):
        server.execute(server.dialect.stop_replica)
    only = [
        commit(a, "INSERT INTO apart.t VALUES (1, 'on a')"),
        commit(b, "INSERT INTO apart.t VALUES (2, 'on b')"),
    ]
    for server in (a, b):
        server.execute("FLUSH BINARY LOGS")
        current, _ = server.binary_log_position()
        # A purge leaves out files that a dump thread still reads: it ends after its receiver.
        while len(server.query("SHOW BINARY LOGS")) > 1:
            server.execute(f"PURGE BINARY LOGS TO '{current}'")
    return BothPurged(a=a, b=b, only_on_a=only[0], only_on_b=only[1])


@dataclass(frozen=True, slots=True)
class RowConflict:
    """``replica`` cannot apply ``failing``: it already has a row with its key."""

    source: Server
    replica: Server
    failing: str


def row_conflict(topology: Topology, *, source: str = "a", replica: str = "b") -> RowConflict:
    """Write a row on the replica, unlogged, and then another with the same key on the source."""
    here, there = topology[source], topology[replica]
    table_on(here, there, "clash")
    there.execute("SET SESSION sql_log_bin = 0", "INSERT INTO clash.t VALUES (1, 'on the replica')")
    failing = commit(here, "INSERT INTO clash.t VALUES (1, 'on the source')")
    behind = GtidSet.parse(commit(here, "INSERT INTO clash.t VALUES (2, 'behind it')"))
    await_status(there, lambda it: behind <= GtidSet.parse(str(it["Retrieved_Gtid_Set"])))
    return RowConflict(source=here, replica=there, failing=failing)


def violated_check(topology: Topology, *, source: str = "a", replica: str = "b") -> RowConflict:
    """Change a row on the replica, unlogged, and let a CHECK forbid what the source writes there.

    Afterwards: the applier has stopped with 3819, which is not an error number of a row conflict.
    The rows of both servers differ from what the event expects. Needs CHECK constraints (8.0.16).
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, "checked")
    wait_for(there, commit(here, "INSERT INTO checked.t VALUES (1, 'first')"))
    there.execute(
        "SET SESSION sql_log_bin = 0",
        "UPDATE checked.t SET note = 'on the replica'",
        "ALTER TABLE checked.t ADD CONSTRAINT no_source CHECK (note <> 'on the source')",
    )
    failing = commit(here, "UPDATE checked.t SET note = 'on the source'")
    commit(here, "INSERT INTO checked.t VALUES (2, 'behind it')")
    await_applier_stopped(there)
    return RowConflict(source=here, replica=there, failing=failing)


@dataclass(frozen=True, slots=True)
class BehindPosition:
    """``waiting`` of ``source`` is after the file position at which ``replica`` stopped."""

    source: Server
    replica: Server
    waiting: str


def stopped_behind_position(
    topology: Topology, *, source: str = "a", replica: str = "b", conflicts: bool = True
) -> BehindPosition:
    """Stop a channel that runs by file position, and write on the source.

    Afterwards: both threads are stopped without an error. With `conflicts`, the first waiting
    transaction conflicts with a row that only the replica has (1062) once the threads run.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, "behind")
    log_file, log_pos = here.binary_log_position()
    there.execute(
        there.dialect.stop_replica,
        there.dialect.change_source_to(auto_position=0, log_file=log_file, log_pos=log_pos),
    )
    waiting = commit(
        here,
        "INSERT INTO behind.t VALUES (1, 'on the source')",
        "UPDATE behind.t SET note = 'newer' WHERE id = 1",
    )
    if conflicts:
        there.execute(
            "SET SESSION sql_log_bin = 0", "INSERT INTO behind.t VALUES (1, 'on the replica')"
        )
    return BehindPosition(source=here, replica=there, waiting=waiting)


@dataclass(frozen=True, slots=True)
class PassedByApplier:
    """``replica`` received ``passed`` of ``source`` and will not execute it."""

    source: Server
    replica: Server
    passed: str


def skipped_by_counter(
    topology: Topology, *, source: str = "a", replica: str = "b"
) -> PassedByApplier:
    """Let the applier skip one transaction by the skip counter, which gtid_mode ON forbids."""
    here, there = topology[source], topology[replica]
    table_on(here, there, "skip")
    there.execute("SET GLOBAL gtid_mode = ON_PERMISSIVE", "STOP REPLICA SQL_THREAD")
    passed = commit(here, "INSERT INTO skip.t VALUES (1, 'skipped')")
    there.execute("SET GLOBAL sql_replica_skip_counter = 1", "START REPLICA SQL_THREAD")
    wait_for(there, commit(here, "INSERT INTO skip.t VALUES (2, 'behind it')"))
    there.execute("SET GLOBAL gtid_mode = ON")
    return PassedByApplier(source=here, replica=there, passed=passed)


def reset_on_running_replica(
    topology: Topology, *, source: str = "source", replica: str = "replica1"
) -> PassedByApplier:
    """Reset the history of a replica while its channel runs: the rows stay, the GTIDs do not."""
    here, there = topology[source], topology[replica]
    table_on(here, there, "reset_here")
    wait_for(there, commit(here, "INSERT INTO reset_here.t VALUES (1, 'before')"))
    passed = str(there.value("@@GLOBAL.gtid_executed"))
    there.execute("RESET BINARY LOGS AND GTIDS")
    wait_for(there, commit(here, "INSERT INTO reset_here.t VALUES (2, 'after')"))
    return PassedByApplier(source=here, replica=there, passed=passed)


def bypassed_and_inserted_again(topology: Topology) -> PassedByApplier:
    """Let b bypass the insert and delete of a row whose key is inserted again afterwards.

    Their net change to that row is nothing. Still b cannot apply them, because it has the later
    row.
    """
    here, there = topology["a"], topology["b"]
    table_on(here, there, "again")
    there.execute(there.dialect.stop_replica)
    passed = commit(
        here,
        "INSERT INTO again.t VALUES (1, 'missing')",
        "INSERT INTO again.t VALUES (7, 'first')",
        "DELETE FROM again.t WHERE id = 7",
    )
    log_file, log_pos = here.binary_log_position()
    later = commit(here, "INSERT INTO again.t VALUES (7, 'later')")
    there.execute(
        there.dialect.change_source_to(auto_position=0, log_file=log_file, log_pos=log_pos),
        there.dialect.start_replica,
    )
    wait_for(there, later)
    return PassedByApplier(source=here, replica=there, passed=passed)

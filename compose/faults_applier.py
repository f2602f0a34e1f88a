"""Faults of an applier: transactions that it passed without executing them, and causes of delays.

Each function leaves real servers in the state that its docstring describes.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from compose.faults import (
    FaultNotProduced,
    _await,
    await_applier_stopped,
    await_status,
    commit,
    table_on,
)
from compose.native.server import Server
from compose.native.shapes import Topology, wait_for
from compose.own_gtids import last_number

_SCHEMA = "applier"
_STARTING_SECONDS = 0.5  # time after which an applier has finished starting its threads
_INSERT = f"INSERT INTO {_SCHEMA}.t () VALUES ()"


@dataclass(frozen=True, slots=True)
class Passed:
    """``replica`` received ``passed`` and will never execute it."""

    source: Server
    replica: Server
    passed: str
    rows_are_there: bool


@dataclass(frozen=True, slots=True)
class HeldUp:
    """``replica`` has received ``held`` and does not apply it while a session holds a lock."""

    source: Server
    replica: Server
    held: str


def reset_on_replica(
    topology: Topology, *, source: str = "a", replica: str = "b", received_again: bool = True
) -> Passed:
    """Run RESET BINARY LOGS AND GTIDS on a replica whose channel runs.

    Afterwards: both threads run, gtid_executed is empty, all rows exist. With `received_again`,
    Retrieved_Gtid_Set still has what was received. Without it, the channel was restarted before,
    which empties that set.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, _SCHEMA)
    commit(here, *[_INSERT] * 3)
    executed = str(here.value("@@GLOBAL.gtid_executed"))
    wait_for(there, executed)
    if not received_again:
        _restart_empty(there)
    # A parallel applier shows its position at its next checkpoint (replica_checkpoint_period).
    await_status(there, _is_at_end)
    there.execute(there.dialect.words.reset_binary_logs_and_gtids)
    return Passed(source=here, replica=there, passed=executed, rows_are_there=True)


def _restart_empty(replica: Server) -> None:
    """Restart the channel so that nothing counts as received: CHANGE deletes the relay log."""
    words = replica.dialect.words
    replica.execute(
        replica.dialect.stop_replica,
        f"{words.change_source} {words.option_prefix}AUTO_POSITION = 1",
        f"{words.change_source} {words.option_prefix}CONNECT_RETRY = 2",
        replica.dialect.start_replica,
    )
    await_status(replica, lambda status: status["Replica_IO_Running"] == "Yes")
    received = replica.replica_status()["Retrieved_Gtid_Set"]
    if received:
        raise FaultNotProduced(f"{replica.name} still counts {received} as received")


def relay_position_moved(
    topology: Topology, *, source: str = "a", replica: str = "b", later_count: int = 0
) -> Passed:
    """Move a replica's applier to the end of its relay log, past three transactions.

    RELAY_LOG_FILE and RELAY_LOG_POS need auto-position off, and it stays off. With `later_count`,
    that many transactions come after them and are applied.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, _SCHEMA)
    words = there.dialect.words
    by_position(there)
    wait_for(there, commit(here, _INSERT))
    there.execute(there.dialect.stop_applier)
    passed = commit(here, *[_INSERT] * 3)
    await_received(there, passed)
    there.execute(there.dialect.stop_replica)
    relay_log = max(there.datadir.glob("relay.[0-9]*"), key=lambda path: path.name)
    there.execute(
        f"{words.change_source} RELAY_LOG_FILE = '{relay_log.name}',"
        f" RELAY_LOG_POS = {relay_log.stat().st_size}",
        there.dialect.start_replica,
    )
    if later_count:
        wait_for(there, commit(here, *[_INSERT] * later_count))
    time.sleep(_STARTING_SECONDS)
    return Passed(source=here, replica=there, passed=passed, rows_are_there=False)


def skipped_by_counter(
    topology: Topology, *, source: str = "a", replica: str = "b", later_count: int = 0
) -> Passed:
    """Let sql_replica_skip_counter skip one transaction, which gtid_mode ON_PERMISSIVE permits.

    Auto-position is off afterwards: with it, the counter cannot be set.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, _SCHEMA)
    by_position(there)
    wait_for(there, commit(here, _INSERT))
    there.execute(
        "SET GLOBAL gtid_mode = ON_PERMISSIVE",
        there.dialect.stop_applier,
        "SET GLOBAL sql_replica_skip_counter = 1",
        there.dialect.start_applier,
    )
    passed = commit(here, _INSERT)
    await_received(there, passed)
    if later_count:
        wait_for(there, commit(here, *[_INSERT] * later_count))
    return Passed(source=here, replica=there, passed=passed, rows_are_there=False)


def update_skipped(here: Server, there: Server) -> tuple[str, str]:
    """Let the counter skip an update with auto-position on, and a newer update of its row arrive.

    Returns:
        The GTIDs of the skipped update, and of the newer one.
    """
    table_on(here, there, "late")
    wait_for(there, commit(here, "INSERT INTO late.t (id, note) VALUES (7, 'first')"))
    there.execute(
        there.dialect.stop_applier,
        "SET GLOBAL gtid_mode = ON_PERMISSIVE",
        "SET GLOBAL sql_replica_skip_counter = 1",
        there.dialect.start_applier,
    )
    skipped = commit(here, "UPDATE late.t SET note = 'older' WHERE id = 7")
    newer = commit(here, "UPDATE late.t SET note = 'newest' WHERE id = 7")
    wait_for(there, newer)
    return skipped, newer


@contextmanager
def skipped_behind_lock(
    topology: Topology, *, source: str = "a", replica: str = "b"
) -> Iterator[tuple[Passed, HeldUp]]:
    """Let the skip counter skip one transaction, and a lock delay the next ones.

    Inside the block the counter is used up, both threads run, and the applier waits. The skipped
    transaction is below the waiting ones, as a gap or a backlog would be.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, _SCHEMA)
    by_position(there)
    wait_for(there, commit(here, _INSERT))
    there.execute("SET GLOBAL gtid_mode = ON_PERMISSIVE")
    with there.connect() as holder, holder.cursor() as cursor:
        cursor.execute("FLUSH TABLES WITH READ LOCK")
        there.execute(
            there.dialect.stop_applier,
            "SET GLOBAL sql_replica_skip_counter = 1",
            there.dialect.start_applier,
        )
        passed = commit(here, _INSERT)
        held = commit(here, *[_INSERT] * 2)
        await_received(there, held)
        _await(
            lambda: bool(there.value("@@GLOBAL.gtid_owned")),
            lambda: f"{there.name} does not wait at {held}",
        )
        yield (
            Passed(source=here, replica=there, passed=passed, rows_are_there=False),
            HeldUp(source=here, replica=there, held=held),
        )
        cursor.execute("UNLOCK TABLES")
    wait_for(there, held)


def by_position(replica: Server) -> None:
    """Switch a channel to the file position that it has reached."""
    options = replica.dialect.words.option_prefix
    replica.execute(
        replica.dialect.stop_replica,
        f"{replica.dialect.words.change_source} {options}AUTO_POSITION = 0",
        replica.dialect.start_replica,
    )


def _is_at_end(status: dict[str, object]) -> bool:
    return status["Exec_Source_Log_Pos"] == status["Read_Source_Log_Pos"]


def await_received(replica: Server, gtids: str) -> None:
    """Wait until the receiver of a replica reports these GTIDs as received."""

    def has_all(status: dict[str, object]) -> bool:
        received = str(status["Retrieved_Gtid_Set"])
        return bool(replica.query("SELECT GTID_SUBSET(%s, %s)", [gtids, received])[0][0])

    await_status(replica, has_all)


# -- causes of delays ------------------------------------------------------------------------------


PREPARED_XA = "prepared XA transaction"
OWNED_GTID = "owned GTID"  # the statement that takes it depends on the source
# The statements of the session that holds the lock, and the statement that the source then commits.
LOCKS: dict[str, tuple[tuple[str, ...], str]] = {
    OWNED_GTID: ((), _INSERT),
    "metadata lock": (
        ("BEGIN", f"SELECT * FROM {_SCHEMA}.t"),
        f"ALTER TABLE {_SCHEMA}.t ADD COLUMN later INT",
    ),
    "LOCK TABLES": ((f"LOCK TABLES {_SCHEMA}.t READ",), _INSERT),
    "FLUSH TABLES WITH READ LOCK": (("FLUSH TABLES WITH READ LOCK",), _INSERT),
    "LOCK INSTANCE FOR BACKUP": (
        ("LOCK INSTANCE FOR BACKUP",),
        f"ALTER TABLE {_SCHEMA}.t ADD COLUMN later INT",
    ),
    "row lock": (
        ("BEGIN", f"SELECT * FROM {_SCHEMA}.t WHERE id = 1 FOR UPDATE"),
        f"UPDATE {_SCHEMA}.t SET note = 'changed' WHERE id = 1",
    ),
    PREPARED_XA: (
        (
            "SET SESSION sql_log_bin = 0",
            "XA START 'held'",
            f"UPDATE {_SCHEMA}.t SET note = 'prepared' WHERE id = 1",
            "XA END 'held'",
            "XA PREPARE 'held'",
        ),
        f"UPDATE {_SCHEMA}.t SET note = 'changed' WHERE id = 1",
    ),
}


@contextmanager
def held_up(
    topology: Topology, lock: str, *, source: str = "a", replica: str = "b", count: int = 1
) -> Iterator[HeldUp]:
    """Let a session of the replica hold a lock that the applier needs; see LOCKS.

    "owned GTID" is a session that owns the GTID which the source commits next. Inside the block
    both threads run without an error. After it, the transactions have been applied. The caller may
    end the session, or the prepared transaction, earlier.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, _SCHEMA)
    wait_for(there, commit(here, f"INSERT INTO {_SCHEMA}.t (id) VALUES (1)"))
    statements, change = LOCKS[lock]
    if lock == OWNED_GTID:
        statements = (f"SET SESSION gtid_next = '{_next_gtid(here)}'",)
    with there.connect() as holder, holder.cursor() as cursor:
        if lock == PREPARED_XA:
            there.execute(*statements)  # this session ends, but its locks stay
        else:
            for statement in statements:
                cursor.execute(statement)
        held = commit(here, change, *[_INSERT] * (count - 1))
        await_received(there, held)
        yield HeldUp(source=here, replica=there, held=held)
        if lock == OWNED_GTID and there.value("@@GLOBAL.gtid_owned"):
            cursor.execute("ROLLBACK")
    if lock == PREPARED_XA and there.query("XA RECOVER"):
        there.execute("SET SESSION sql_log_bin = 0", "XA ROLLBACK 'held'")
    wait_for(there, held)


def _next_gtid(server: Server) -> str:
    return f"{server.value('@@GLOBAL.server_uuid')}:{last_number(server) + 1}"


def delayed(
    topology: Topology, *, source: str = "a", replica: str = "b", seconds: int = 3600
) -> HeldUp:
    """Set SOURCE_DELAY on a replica, and let its source commit: the transactions wait."""
    here, there = topology[source], topology[replica]
    table_on(here, there, _SCHEMA)
    words = there.dialect.words
    there.execute(
        there.dialect.stop_replica,
        f"{words.change_source} {words.option_prefix}DELAY = {seconds}",
        there.dialect.start_replica,
    )
    held = commit(here, *[_INSERT] * 3)
    await_received(there, held)
    return HeldUp(source=here, replica=there, held=held)


def reset_with_old_purged(
    topology: Topology, *, source: str = "a", replica: str = "b", later_count: int = 0
) -> Passed:
    """Reset a stopped replica, and set a gtid_purged that is missing its last two transactions.

    All rows exist. With `later_count`, the source writes that many transactions afterwards.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, _SCHEMA)
    kept = commit(here, _INSERT)
    passed = commit(here, *[_INSERT] * 2)
    wait_for(there, here.value("@@GLOBAL.gtid_executed"))
    await_status(there, _is_at_end)
    purged = there.query("SELECT GTID_SUBTRACT(@@GLOBAL.gtid_executed, %s)", [passed])[0][0]
    assert kept, "something is kept"
    there.execute(
        there.dialect.stop_replica,
        there.dialect.words.reset_binary_logs_and_gtids,
        f"SET GLOBAL gtid_purged = '{purged}'",
    )
    here.execute(*[_INSERT] * later_count)
    return Passed(source=here, replica=there, passed=passed, rows_are_there=True)


def relay_log_gone(topology: Topology, *, source: str = "a", replica: str = "b") -> HeldUp:
    """Remove the relay log file that a replica reads, while the replica is shut down.

    Afterwards: both threads run without an error, and the applier keeps looking for the file.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, _SCHEMA)
    there.execute(there.dialect.stop_applier)
    held = commit(here, *[_INSERT] * 3)
    await_received(there, held)
    there.execute(there.dialect.stop_replica)
    file = there.datadir / str(there.replica_status()["Relay_Log_File"])
    there.stop()
    file.unlink()
    there.start()
    there.execute(there.dialect.start_replica)
    await_status(there, lambda shown: shown["Replica_IO_Running"] == "Yes")
    return HeldUp(source=here, replica=there, held=held)


def relay_log_damaged(topology: Topology, *, source: str = "a", replica: str = "b") -> HeldUp:
    """Change a byte of the relay log that a replica's applier has not read yet, and start it.

    Afterwards: the applier has applied the first of the waiting transactions. It has stopped at the
    second, which it cannot read (13121, 1594 before 8.0). The receiver runs, and reports all of
    them as received.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, _SCHEMA)
    there.execute(there.dialect.stop_applier)
    first, damaged, behind = (
        commit(here, f"INSERT INTO {_SCHEMA}.t (note) VALUES ('{note}')")
        for note in ("is read", "is damaged", "is behind")
    )
    await_received(there, behind)
    there.execute(there.dialect.stop_replica)
    file = there.datadir / str(there.replica_status()["Relay_Log_File"])
    content = file.read_bytes()
    if b"is damaged" not in content:  # compressed
        raise FaultNotProduced(f"{file.name} of {there.name} does not show its rows")
    file.write_bytes(content.replace(b"is damaged", b"is DAMAGED"))
    there.execute(there.dialect.start_replica)
    await_applier_stopped(there)
    wait_for(there, first)
    await_status(there, lambda shown: shown["Replica_IO_Running"] == "Yes")
    return HeldUp(source=here, replica=there, held=f"{damaged},{behind}")

"""Faults of replication threads: stopped, refused, in error, or waiting for a lock."""

import time
from collections.abc import Callable
from dataclasses import replace

from compose import faults, faults_applier, faults_channels, faults_filters, faults_logs
from compose.faults import FaultNotProduced, await_applier_stopped, await_status
from compose.native.provision import REPLICATION_USER
from compose.native.server import Server
from compose.native.shapes import wait_for
from tests.random_faults.expectations import Expected, Extent
from tests.random_faults.kind import ALL, MODERN, ONE_WAY, PAIRS, Injected, Kind
from tests.random_faults.scene import Scene, gtids

_LOCK_SECONDS = 2
_PAST_LIMIT_SECONDS = 3.4  # by the server's whole seconds


def _behind(scene: Scene, codes: str, text: str, companions: str = "") -> Expected:
    """Return what is expected of the edge, about these GTIDs and all that wait behind them."""
    is_of_worker = codes == "A2" and _has_workers(scene.there)  # DDL is of the coordinator
    if codes in ("A2", "A1 A3") and scene.case.shape == "pair56" and not is_of_worker:
        text = ""  # only a position shows which transaction failed
    return Expected(
        codes=frozenset(codes.split()),
        source=scene.here.name,
        replica=scene.there.name,
        injected=gtids(text),
        extent=Extent.BACKLOG,
        companions=frozenset(companions.split()),
        stays=False,
    )


def _has_workers(replica: Server) -> bool:
    """Return whether the applier is parallel: after a restart, one of 5.6 is not."""
    prefix = replica.dialect.words.replica_variable_prefix
    return bool(replica.value(f"@@GLOBAL.{prefix}parallel_workers"))


def stopped(scene: Scene) -> Injected:
    """Stop the receiver, the applier or both, and commit on."""
    there = scene.there
    words = there.dialect
    statement = scene.dice.choice((words.stop_receiver, words.stop_applier, words.stop_replica))
    with scene.writers.held(scene.here.name):
        there.execute(statement)
        text = scene.work(scene.primary)
        if scene.primary is not scene.here:
            wait_for(scene.here, text)
        if statement == words.stop_applier:
            faults_applier.await_received(there, text)
    return Injected(_behind(scene, "A7", text), lambda: there.execute(there.dialect.start_replica))


def stopped_idle(scene: Scene) -> Injected:
    """Stop both threads with nothing to do."""
    there = scene.there
    with scene.quiet():
        there.execute(there.dialect.stop_replica)
    return Injected(_behind(scene, "A7", ""), lambda: there.execute(there.dialect.start_replica))


def refused(scene: Scene) -> Injected:
    """Point a receiver at an account that does not exist."""
    with scene.quiet():
        fault = faults_channels.refused_with_backlog(scene.topology, **scene.ends)
    there = scene.there

    def undo() -> None:
        there.execute(
            "STOP REPLICA IO_THREAD",
            f"CHANGE REPLICATION SOURCE TO SOURCE_USER = '{REPLICATION_USER}'",
            "START REPLICA IO_THREAD",
        )

    # What waits is a finding of its own: T3, likely.
    expected = replace(_behind(scene, "A4", fault.missing), extent=Extent.ANY)
    return Injected(expected, undo)


def conflict(scene: Scene) -> Injected:
    """Let an applier meet a row that is there already, or one that is missing."""
    there = scene.there
    scene.key += 1
    with scene.quiet():
        if scene.dice.random() < 0.5:
            there.execute(
                "SET SESSION sql_log_bin = 0",
                f"INSERT INTO work.t (id, note) VALUES ({scene.key}, 'on the replica')",
            )
            statement = f"INSERT INTO work.t (id, note) VALUES ({scene.key}, 'on the source')"
            remedy = f"DELETE FROM work.t WHERE id = {scene.key}"
        else:
            there.execute("SET SESSION sql_log_bin = 0", "DELETE FROM work.t WHERE id = 2")
            statement = scene.dice.choice(
                (
                    f"UPDATE work.t SET note = 'new {scene.key}' WHERE id = 2",
                    "DELETE FROM work.t WHERE id = 2",
                )
            )
            remedy = "INSERT INTO work.t (id, note) VALUES (2, 'two')"
        text = faults.commit(scene.primary, statement)
        later = scene.work(scene.primary, 2)
        if scene.primary is not scene.here:
            wait_for(scene.here, later)
        await_applier_stopped(there)

    def undo() -> None:
        there.execute("SET SESSION sql_log_bin = 0", remedy)
        there.execute(there.dialect.start_replica)

    return Injected(_behind(scene, "A2", text), undo)


def object_conflict(scene: Scene) -> Injected:
    """Let an applier fail at a table or a schema that is there already, or is missing."""
    there = scene.there
    scene.key += 1
    name = f"other{scene.key}"
    choices = (
        (
            f"CREATE TABLE work.{name} (id INT)",
            f"CREATE TABLE work.{name} (id INT)",
            f"DROP TABLE work.{name}",
        ),
        (f"CREATE DATABASE {name}", f"CREATE DATABASE {name}", f"DROP DATABASE {name}"),
        (
            "RENAME TABLE work.t TO work.hidden",
            "UPDATE work.t SET note = 'x' WHERE id = 1",
            "RENAME TABLE work.hidden TO work.t",
        ),
        (
            "ALTER TABLE work.t ADD COLUMN later INT",
            "ALTER TABLE work.t ADD COLUMN later INT",
            "ALTER TABLE work.t DROP COLUMN later",
        ),
    )
    on_replica, on_source, remedy = scene.dice.choice(choices)
    with scene.quiet():
        there.execute("SET SESSION sql_log_bin = 0", on_replica)
        text = faults.commit(scene.primary, on_source)
        if scene.primary is not scene.here:
            wait_for(scene.here, text)
        await_applier_stopped(there)

    def undo() -> None:
        there.execute("SET SESSION sql_log_bin = 0", remedy)
        there.execute(there.dialect.start_replica)

    return Injected(_behind(scene, "A1 A3", text), undo)


def failing_view(scene: Scene) -> Injected:
    """Let 5.6 log a CREATE VIEW that failed on the source."""
    there = scene.there
    with scene.quiet():
        # With workers the coordinator shows only that one failed (1756).
        there.execute(
            there.dialect.stop_applier,
            "SET GLOBAL slave_parallel_workers = 0",
            there.dialect.start_applier,
        )
        faults.failing_create_view(scene.topology, **scene.ends)
    expected = Expected(
        codes=frozenset({"A1"}),
        source=scene.here.name,
        replica=scene.there.name,
        extent=Extent.ANY,  # it failed, and counts as executed
    )
    return Injected(expected)


def _locked(lock: str) -> Callable[[Scene], Injected]:
    def inject(scene: Scene) -> Injected:
        is_late = scene.dice.random() < 0.6
        scene.hold(scene.there)  # its own clients would wait for the lock as well
        with scene.quiet():
            fault = scene.stack.enter_context(
                faults_applier.held_up(
                    scene.topology, lock, **scene.ends, count=scene.dice.randint(1, 3)
                )
            )
        if not is_late:
            return Injected(
                Expected(
                    codes=frozenset(), stays=False, lock_seconds_max=3600, stall_seconds_max=3600
                )
            )
        time.sleep(_PAST_LIMIT_SECONDS)
        expected = Expected(
            codes=frozenset({"A5"}),
            source=scene.here.name,
            replica=scene.there.name,
            injected=gtids(""),
            extent=Extent.BACKLOG if lock != "metadata lock" else Extent.ANY,
            stays=False,
            lock_seconds_max=_LOCK_SECONDS,
        )
        assert fault.held
        return Injected(expected, scene.stack.close)

    return inject


def relay_log_gone(scene: Scene) -> Injected:
    """Remove the relay log file that an applier reads."""
    with scene.quiet():
        fault = faults_applier.relay_log_gone(scene.topology, **scene.ends)
        time.sleep(_PAST_LIMIT_SECONDS)
    missing = scene.there.query("SELECT GTID_SUBTRACT(%s, @@GLOBAL.gtid_executed)", [fault.held])
    if not missing[0][0]:
        raise FaultNotProduced(f"{scene.there.name} had them in another file: {fault.held}")
    expected = Expected(
        codes=frozenset({"A8", "A3"}),
        source=scene.here.name,
        replica=scene.there.name,
        injected=gtids(fault.held),
        extent=Extent.BACKLOG,
        stall_seconds_max=_LOCK_SECONDS,
    )
    return Injected(expected)


def relay_log_damaged(scene: Scene) -> Injected:
    """Change a byte of the relay log that an applier has not read yet."""
    with scene.quiet():
        fault = faults_applier.relay_log_damaged(scene.topology, **scene.ends)
    # The coordinator cannot read it: no worker, and so no transaction, has failed.
    assert fault.held
    return Injected(_behind(scene, "A3", ""))


def until(scene: Scene) -> Injected:
    """Start an applier with UNTIL, and commit past that point."""
    there = scene.there
    with scene.quiet():
        fault = faults_filters.started_until(scene.topology, **scene.ends, count=scene.case.count)
    return Injected(
        _behind(scene, "A7", fault.gtids), lambda: there.execute(there.dialect.start_replica)
    )


def hung(scene: Scene) -> Injected:
    """Freeze a server."""
    server = scene.dice.choice((scene.here, scene.there))
    scene.hold(server)
    scene.stack.enter_context(faults.hung_server(server))
    expected = Expected(
        codes=frozenset({"U1"}),
        replica=server.name,
        extent=Extent.ANY,
        # Its replicas notice after some time, and what was not read is named besides.
        companions=frozenset({"A4", "J4"}),
        must_be_unknown=True,
        server_seconds_max=3.0,
        stays=False,
    )
    return Injected(expected, scene.stack.close)


def down(scene: Scene) -> Injected:
    """Kill a server, and do not start it."""
    server = scene.dice.choice((scene.here, scene.there))
    scene.hold(server)
    server.kill()
    for link in scene.topology.links:
        if link.source == server.name:
            await_status(
                scene.topology[link.replica],
                lambda status: status["Replica_IO_Running"] != "Yes",
            )
    expected = Expected(
        codes=frozenset({"U1"}),
        replica=server.name,
        extent=Extent.ANY,
        companions=frozenset({"A4", "J4", "U"}),
        stays=False,
    )
    return Injected(expected, server.start)


def log_closed(scene: Scene) -> Injected:
    """Let a server go on without a binary log."""
    scene.hold(scene.here)
    scene.settle()
    faults_logs.log_closed(scene.topology, server=scene.here.name, replica=scene.there.name)
    expected = Expected(codes=frozenset({"A9"}), replica=scene.here.name, extent=Extent.ANY)
    return Injected(expected)


def log_deleted(scene: Scene) -> Injected:
    """Delete the log file of a source that a stopped replica needs next; start it or not."""
    with scene.quiet():
        fault = faults_logs.log_deleted(scene.topology, **scene.ends)
    # The log of the source ends at the file that is gone: its contents may stay unread.
    return Injected(_behind(scene, "A7", fault.waiting, "P1 A4 U"))


KINDS = {
    "stopped": Kind(stopped, ALL, at_writers=False),
    "stopped idle": Kind(stopped_idle, ALL, at_writers=False),
    "refused": Kind(refused, MODERN),
    "row conflict": Kind(conflict, ALL, at_writers=False),
    "object conflict": Kind(object_conflict, ALL, at_writers=False),
    "failing view": Kind(failing_view, ("pair56",)),
    "relay log gone": Kind(relay_log_gone, ("pair", "star")),
    "relay log damaged": Kind(relay_log_damaged, ("pair", *ONE_WAY)),
    "until": Kind(until, (*PAIRS, *ONE_WAY)),
    "hung": Kind(hung, ALL, at_writers=False),
    "down": Kind(down, ALL, at_writers=False),
    "log closed": Kind(log_closed, MODERN),
    "log deleted": Kind(log_deleted, (*PAIRS, *ONE_WAY)),
    **{
        lock: Kind(_locked(lock), MODERN)
        for lock in (
            "row lock",
            "metadata lock",
            "LOCK TABLES",
            "FLUSH TABLES WITH READ LOCK",
            "owned GTID",
            "prepared XA transaction",
        )
    },
}

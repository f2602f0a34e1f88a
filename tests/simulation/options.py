"""The steps that change how a server logs and applies: options, modes, errors that are ignored.

As in steps.py: one row of the table each, and `do` returns False where a step does not apply. What
each does on a server was seen on 9.7.4 and 5.6.24.
"""

from __future__ import annotations

import random

from tests.simulation import replication as act
from tests.simulation.faults import restart_in_order
from tests.simulation.state import Change, Gtid, Server, World
from tests.simulation.steps import (
    Args,
    change_of,
    found,
    some_change,
    some_channel,
    some_primary,
    some_replica,
    some_server,
    start_threads,
    step,
    stop_threads,
)


def _is_modern(server: Server) -> bool:
    return server.version >= act.MODERN


@step("log-replica-updates-off", some_replica)
def log_replica_updates_off(world: World, name: str) -> bool:
    """Restart with log_replica_updates=OFF. 5.6 has no GTIDs without it."""
    server = world[name]
    if not _is_modern(server) or not server.log_replica_updates or server.lock:
        return False
    server.log_replica_updates = False
    return restart_in_order(world, server)


@step("log-bin-off", some_server)
def log_bin_off(world: World, name: str) -> bool:
    """Restart with skip_log_bin. All that was executed is purged. 5.6 has no GTIDs without it."""
    server = world[name]
    if not _is_modern(server) or not server.log_bin or server.lock:
        return False
    restart_in_order(world, server)
    server.log_bin = server.log_replica_updates = False
    server.purged = set(server.executed)
    server.files = server.files[-1:]
    return True


@step("gtid-mode-on-permissive", some_server)
def gtid_mode_on_permissive(world: World, name: str) -> bool:
    """SET GLOBAL gtid_mode = ON_PERMISSIVE, until the next restart. 5.6 does not have it.

    Receivers by sets stay connected, and are refused when they connect again (seen on 9.7.4).
    """
    server = world[name]
    if not _is_modern(server) or server.permissive:
        return False
    set_mode(world, server, permissive=True)
    return True


def set_mode(world: World, server: Server, *, permissive: bool) -> None:
    """Set gtid_mode. A change begins a new binary log (seen on 9.7.4)."""
    if server.permissive != permissive:
        server.permissive, server.gtid_mode_set_at = permissive, world.clock
        act.rotate(world, server)


@step("gtid-mode-on", some_server, is_fault=False)
def gtid_mode_on(world: World, name: str) -> bool:
    """SET GLOBAL gtid_mode = ON."""
    server = world[name]
    if not server.permissive or any(each.skip_counter for each in server.channels):
        return False
    set_mode(world, server, permissive=False)
    return True


@step("skip-counter", some_channel)
def skip_counter(world: World, name: str, channel: str) -> bool:
    """SET GLOBAL gtid_mode = ON_PERMISSIVE, sql_replica_skip_counter = 1 around STOP and START.

    Seen on 9.7.4: with gtid_mode = ON the counter may be set and nothing is skipped. In
    ON_PERMISSIVE the next transaction is, with auto-position as well. 5.6 refuses it (1858).
    """
    server, path = found(world, name, channel)
    if path is None or path.is_reset or not _is_modern(server):
        return False
    if not stop_threads(world, server, path, which="applier"):
        return False
    set_mode(world, server, permissive=True)
    start_threads(world, server, path, which="applier")
    path.skip_counter = 1
    return True


@step("idempotent", some_replica)
def idempotent(world: World, name: str) -> bool:
    """SET GLOBAL replica_exec_mode = IDEMPOTENT and restart the appliers."""
    server = world[name]
    if server.idempotent:
        return False
    for channel in server.channels:
        if channel.applier == "Yes" and not stop_threads(world, server, channel, which="applier"):
            return False
    stopped = [each for each in server.channels if each.applier == "No"]
    server.idempotent = True
    for channel in stopped:
        if not channel.is_reset:
            start_threads(world, server, channel, which="applier")
    return True


@step("skip-errors", some_replica)
def skip_errors(world: World, name: str) -> bool:
    """Restart with replica_skip_errors=all."""
    server = world[name]
    if server.skips_errors or server.lock:
        return False
    server.skips_errors = True
    return restart_in_order(world, server)


# -- statements -----------------------------------------------------------------------------------


def _choose_statement(world: World, dice: random.Random) -> Args | None:
    chosen = some_primary(world, dice)
    if chosen is None:
        return None
    server = world[str(chosen[0])]
    kind, key = some_change(server, dice)
    if kind == "insert":
        others = sorted(server.rows.keys() - {"table", act.VIEW, key})
        return (*chosen, "insert", key, dice.choice(others or ["a1"]))
    return (*chosen, "update", key, "-")


@step("write-statement", _choose_statement, is_fault=False)
def write_statement(world: World, name: str, kind: str, key: str, where: str) -> bool:
    """Commit UPDATE … WHERE, or INSERT … SELECT, in binlog_format = STATEMENT."""
    value = world.works + 1
    if kind == "insert":
        change = Change("insert-where", key, value, where)
    else:
        change = Change("update-where", key, value)
    return act.write(world, world[name], (change,)) is not None


# -- tables and GTIDs made by hand ----------------------------------------------------------------


@step("drop-table", some_server)
def drop_table(world: World, name: str) -> bool:
    """DROP TABLE of a name that other servers may not have."""
    return act.write(world, world[name], (Change("drop", "table", None),)) is not None


def _choose_hand_made_tag(world: World, dice: random.Random) -> Args | None:
    name = dice.choice(sorted(world.servers))
    uuid = dice.choice([*sorted(world.servers), "x"])
    known = [each[2] for each in world[name].executed if each[:2] == (uuid, "dba")]
    number = max(known, default=0) + dice.choice((1, 1, 2, 3, 5))
    if dice.random() < 0.3:
        return (name, uuid, number, "empty", "-")
    return (name, uuid, number, *some_change(world[name], dice))


@step("write-by-hand-tagged", _choose_hand_made_tag)
def write_by_hand_tagged(  # noqa: PLR0917 - the words of a step
    world: World, name: str, uuid: str, number: int, kind: str, key: str
) -> bool:
    """SET gtid_next = 'uuid:dba:number' and commit."""
    server = world[name]
    if not _is_modern(server):
        return False
    gtid: Gtid = (uuid, "dba", number)
    changes = () if kind == "empty" else change_of(world, kind, key)
    if act.write(world, server, changes, gtid) is None:
        return False
    world.by_hand[gtid] = name
    return True


@step("create-view", some_primary)
def create_view(world: World, name: str) -> bool:
    """CREATE VIEW. Where the view is there, 5.6 logs the statement with error 1050; 9.7 does not."""
    server = world[name]
    if act.VIEW not in server.rows:
        return act.write(world, server, (Change("create", act.VIEW, 0),)) is not None
    if _is_modern(server):
        return False
    return act.write(world, server, (Change("fails", act.VIEW, None),)) is not None


@step("view-unlogged", some_server)
def view_unlogged(world: World, name: str) -> bool:
    """CREATE VIEW, or DROP VIEW where it is there, with sql_log_bin=0."""
    rows = world[name].rows
    if act.VIEW in world[name].locked_keys:
        return False
    if act.VIEW in rows:
        del rows[act.VIEW]
    else:
        rows[act.VIEW] = 0
    world.drifted.add(act.VIEW)
    return True


# -- binary logs that are deleted by hand ---------------------------------------------------------


def _choose_log_in_the_middle(world: World, dice: random.Random) -> Args | None:
    found = [
        (name, log.number)
        for name, server in sorted(world.servers.items())
        for log in server.listed[1:-1]
        if log.entries
    ]
    return dice.choice(found) if found else None


@step("lose-log", _choose_log_in_the_middle)
def lose_log(world: World, name: str, number: int) -> bool:
    """Restart without one binary log, of which binlog.index has no line any more.

    The first log stays: gtid_purged is what its Previous_gtids event has. So does the last one,
    whose Previous_gtids event has what was lost, so gtid_executed stays the same.
    """
    server = world[name]
    log = server.file(number)
    if log is None or log not in server.listed[1:-1] or not log.entries or server.group_applier:
        return False
    if not server.log_bin or not restart_in_order(world, server):
        return False
    for each in log.entries:
        for replica, _ in world.replicas_of(name):
            act.note(world, replica, each.gtid, "lose-log")
    log.entries, log.is_lost = [], True
    if server.version < act.MODERN:
        # 5.6 computes gtid_purged from the first log that has a GTID: logs without one before the
        # lost one, as SET GLOBAL gtid_purged leaves them, do not count (seen on 5.6.24).
        first = next((each for each in server.listed if each.entries), server.listed[-1])
        server.purged |= first.previous
    return True

"""The steps that strike whole servers: crash, restart, reset, clone, restore, failover, locks.

As in steps.py: one row of the table each, and `do` returns False where a step does not apply.
"""

from __future__ import annotations

import random

from tests.simulation import replication as act
from tests.simulation.membership import is_member, leave
from tests.simulation.state import Channel, Gtid, LogFile, Server, Transaction, World
from tests.simulation.steps import (
    Args,
    some_channel,
    some_replica,
    some_server,
    start_threads,
    step,
    stop_threads,
)

# -- crash and restart ----------------------------------------------------------------------------


def _choose_crash(world: World, dice: random.Random) -> Args | None:
    return (dice.choice(sorted(world.servers)), dice.choice((0, 1, 1, 2, 4)))


@step("crash", _choose_crash)
def crash(world: World, name: str, lost: int) -> bool:
    """Lose power: the last transactions were not on disk. Recovery, and the server is back."""
    server = world[name]
    if not server.log_bin:  # what InnoDB alone loses is not simulated
        return False
    tail = server.files[-1].entries
    lost = min(lost, len(tail))
    gone = tail[len(tail) - lost :] if lost else []
    for each in list(server.pending):  # recovery commits what is in the log; no client knows
        if each not in gone:
            server.pending.remove(each)
            act.commit(server, each)
    queue = server.group_applier
    for channel in (*server.channels, *([queue] if queue is not None else [])):
        for work in list(channel.working):
            if work.logged and work.transaction not in gone:
                channel.working.remove(work)
                act.commit(server, work.transaction, is_relayed=True)
    if is_member(world, name):
        leave(world, server, is_crash=True)
    for channel in server.channels:
        act.roll_back_workers(server, channel)
        if channel.skipped_at is not None:
            channel.relay_at = min(channel.relay_at, channel.skipped_at)
            channel.skipped_at = None
    undo_tail(world, server, gone, why="crash")
    if server.version >= act.MODERN:
        roll_back_places(server, {each.gtid for each in gone})
    server.pending = []
    server.owned.clear()
    server.locked_keys.clear()
    server.session_owns = None
    back_again(world, server)
    return True


def roll_back_places(server: Server, gone: set[Gtid]) -> None:
    """Take the places of appliers back: mysql.slave_relay_log_info is written with the rows.

    5.6 keeps the place in a file (relay_log_info_repository = FILE), which no crash takes back.
    """
    for channel in server.channels:
        lost = (at for at, each in enumerate(channel.relay) if each.transaction.gtid in gone)
        channel.relay_at = min(channel.relay_at, next(lost, channel.relay_at))


def undo_tail(world: World, server: Server, gone: list[Transaction], *, why: str) -> None:
    """Take the last transactions of the log back, rows included."""
    works = {each.work for each in gone}
    kept = []
    for made, undo in reversed(server.applied):
        if made.work not in works:
            kept.append((made, undo))
            continue
        for key, old in undo:
            if old is None:
                server.rows.pop(key, None)
            else:
                server.rows[key] = old
        if made.changes:  # even a statement that changed no row was done
            server.works[made.work] -= 1
    server.applied = kept[::-1]
    for each in gone:
        server.executed.discard(each.gtid)
        world.absence[server.name, each.gtid] = why
    if gone:
        del server.files[-1].entries[-len(gone) :]


def back_again(world: World, server: Server) -> None:
    """Start the server: a new log, GTIDs searched from 1, receivers connect again."""
    server.started_at = world.clock
    server.next_free.clear()
    server.lock, server.session_owns = "", None
    server.permissive = server.idempotent = False  # SET GLOBAL does not survive a restart
    act.rotate(world, server)
    for channel in list(server.channels):
        # What performance_schema had is gone.
        channel.done_by.clear()
        channel.last_queued = None
        # replica_skip_start=OFF: threads that ran start again; so do those that had an error.
        if server.relay_log_recovery:
            channel.read_to = act.applied_place(channel)
            channel.clear_relay()
        else:
            channel.relay_at = channel.low_water
            if channel.auto_position:
                # What is in the relay logs counts as retrieved again: 5.6 had forgotten the last one
                # when a source refused its receiver (seen on 5.6.24).
                channel.retrieved |= {each.transaction.gtid for each in channel.relay}
        channel.receiver_error = channel.applier_error = (0, "")
        channel.failed = None
        channel.skip_counter = 0
        channel.ignored_keys = frozenset()  # CHANGE REPLICATION FILTER does not survive it either
        if channel.is_reset and not channel.name:
            # Seen on 9.7.4: the source is kept, and nothing starts; a named channel does. 5.6 forgets the channel.
            channel.applier = channel.receiver = "No"
            if server.version < act.MODERN:
                server.channels = []
            continue
        channel.is_reset = False
        channel.applier, channel.receiver = "Yes", "Connecting"
        act.connect(world, server, channel)
    act.disconnect_replicas(world, server)


@step("restart", some_server)
def restart(world: World, name: str) -> bool:
    """Restart the server in good order."""
    return restart_in_order(world, world[name])


def restart_in_order(world: World, server: Server) -> bool:
    """Shut a server down and start it again. Return False while a session holds a lock."""
    if server.lock:
        return False
    while server.pending:
        act.finish(world, server, server.pending[0])
    if is_member(world, server.name):
        leave(world, server)
    for channel in server.channels:
        if channel.applier == "Yes":
            act.finish_workers(world, server, channel)
    back_again(world, server)
    return True


@step("relay-log-recovery-off", some_replica)
def relay_log_recovery_off(world: World, name: str) -> bool:
    """Configure relay_log_recovery=OFF (it takes effect with the next restart)."""
    world[name].relay_log_recovery = False
    return True


# -- histories that are replaced ------------------------------------------------------------------


@step("reset-binary-logs-and-gtids", some_server)
def reset_binary_logs_and_gtids(world: World, name: str) -> bool:
    """RESET BINARY LOGS AND GTIDS; receivers of this server are restarted."""
    server = world[name]
    if server.pending or any(channel.working for channel in server.channels):
        return False
    if not server.log_bin:  # seen on 9.7.4: a restart brings a part of the GTIDs back
        return False
    for gtid in server.executed:
        world.absence[name, gtid] = "reset"
    server.executed, server.purged = set(), set()
    server.next_free.clear()
    server.files = [LogFile(1, frozenset(), world.clock)]
    for replica, channel in world.replicas_of(name):
        if channel.receiver == "Yes":
            channel.receiver = "Connecting"
            act.connect(world, replica, channel)
    return True


def _choose_old_purged(world: World, dice: random.Random) -> Args | None:
    chosen = some_replica(world, dice)
    return (*chosen, dice.choice((1, 1, 2, 4))) if chosen else None


@step("reset-with-old-purged", _choose_old_purged)
def reset_with_old_purged(world: World, name: str, count: int) -> bool:
    """STOP REPLICA; RESET BINARY LOGS AND GTIDS; SET GLOBAL gtid_purged: too old by some."""
    server = world[name]
    kept = set(server.executed) - {made.gtid for made, _ in server.applied[-count:]}
    is_busy = server.pending or server.lock or not server.log_bin
    if is_busy or not server.channels or kept == server.executed:
        return False
    for channel in server.channels:
        stop_threads(world, server, channel)
    act.disconnect_replicas(world, server)  # they connect again once gtid_purged is set
    reset_binary_logs_and_gtids(world, name)
    server.executed, server.purged = set(kept), set(kept)
    if server.version < act.MODERN:  # 5.6 begins a new binary log then, 9.7.4 does not (seen)
        server.files.append(LogFile(2, frozenset(kept), world.clock))
    for gtid in kept:
        world.absence.pop((name, gtid), None)
    for replica, channel in world.replicas_of(name):
        act.connect(world, replica, channel)
    return True


def _choose_two(world: World, dice: random.Random) -> Args | None:
    names = sorted(world.servers)
    if len(names) < 2:
        return None
    return tuple(dice.sample(names, 2))


def take_over(world: World, server: Server, image: Server) -> None:
    """Replace the data of a server by that of another: rows and gtid_executed, all of it purged."""
    server.executed = set(image.executed)
    server.purged = set(image.executed)
    server.rows, server.works = dict(image.rows), image.works.copy()
    server.applied = list(image.applied)
    server.next_free.clear()
    server.owned.clear()
    server.locked_keys.clear()
    server.pending = []
    server.files = [LogFile(1, frozenset(server.executed), world.clock)]
    server.started_at = world.clock
    server.lock, server.session_owns = "", None
    for gtid in server.executed:
        world.absence.pop((server.name, gtid), None)
    act.disconnect_replicas(world, server)


@step("clone", _choose_two)
def clone(world: World, name: str, donor: str) -> bool:
    """Clone a donor and follow it by sets; the server has a new server_uuid."""
    server, image = world[name], world[donor]
    if image.pending or any(channel.working for channel in image.channels):
        return False
    take_over(world, server, image)
    world.works += 1
    server.uuid = f"{name}{world.works}"
    channel = server.channels[0] if server.channels else Channel("", donor)
    server.channels = [channel]
    channel.source, channel.source_uuid, channel.auto_position = donor, None, True
    channel.clear_relay()
    channel.working = []
    channel.receiver = channel.applier = "No"
    channel.read_to = None
    start_threads(world, server, channel)
    return True


@step("backup", some_server, is_fault=False)
def backup(world: World, name: str) -> bool:
    """Take a backup of a server."""
    server = world[name]
    if server.pending or any(channel.working for channel in server.channels):
        return False
    world.backups = {**world.backups, name: server.copy()}
    return True


@step("restore", some_server)
def restore(world: World, name: str) -> bool:
    """Restore a server from its backup, gtid_purged as in the backup; it keeps its server_uuid."""
    image = world.backups.get(name)
    if image is None:
        return False
    server = world[name]
    lost = (server.executed | {each.gtid for each in server.pending}) - image.executed
    take_over(world, server, image)
    for gtid in lost:
        world.absence[name, gtid] = "restore"
    for channel in server.channels:
        channel.clear_relay()
        channel.working = []
        channel.read_to = None
        channel.receiver = channel.applier = "No"
        channel.receiver_error = channel.applier_error = (0, "")
        channel.failed = None
        start_threads(world, server, channel)
    return True


# -- roles ----------------------------------------------------------------------------------------


@step("failover", some_replica)
def failover(world: World, name: str) -> bool:
    """Make a replica the primary: its channels are removed, the others follow it."""
    server = world[name]
    if name in world.primaries or server.lock:
        return False
    for channel in server.channels:
        if not stop_threads(world, server, channel):
            return False
    old = {channel.source for channel in server.channels}
    server.channels = []
    world.primaries = {name}
    for replica, channel in world.paths():
        if channel.source in old and replica is not server:
            if any(each is not channel and each.source == name for each in replica.channels):
                continue
            if stop_threads(world, replica, channel):
                channel.source, channel.source_uuid = name, None
                channel.auto_position, channel.read_to = True, None
                channel.clear_relay()
                start_threads(world, replica, channel)
    return True


def _choose_return(world: World, dice: random.Random) -> Args | None:
    names = sorted(name for name, each in world.servers.items() if not each.channels)
    others = sorted(world.primaries)
    if not names or not others:
        return None
    return (dice.choice(names), dice.choice(others))


@step("old-primary-returns", _choose_return)
def old_primary_returns(world: World, name: str, source: str) -> bool:
    """Attach a server without channels to a primary, by sets."""
    server = world[name]
    if server.channels or name == source:
        return False
    channel = Channel("", source, workers=4)
    server.channels = [channel]
    world.primaries.discard(name)
    start_threads(world, server, channel)
    return True


# -- identity -------------------------------------------------------------------------------------


@step("same-server-id", _choose_two)
def same_server_id(world: World, name: str, other: str) -> bool:
    """SET GLOBAL server_id to another server's; the receivers beside it connect again."""
    server = world[name]
    if server.server_id == world[other].server_id or server.pending:
        return False
    server.server_id = world[other].server_id
    server.server_id_set_at = world.clock
    for replica, channel in ((server, each) for each in server.channels):
        act.disconnect(channel)
        act.connect(world, replica, channel)
    for replica, channel in world.replicas_of(name):
        act.disconnect(channel)
        act.connect(world, replica, channel)
    return True


@step("same-server-uuid", _choose_two)
def same_server_uuid(world: World, name: str, other: str) -> bool:
    """Restart a server with the auto.cnf of another."""
    server = world[name]
    if server.uuid == world[other].uuid or server.pending:
        return False
    if any(channel.working for channel in server.channels):
        return False
    server.uuid = world[other].uuid
    back_again(world, server)
    return True


# -- locks ----------------------------------------------------------------------------------------


def _choose_lock(world: World, dice: random.Random) -> Args | None:
    chosen = some_replica(world, dice)
    return (*chosen, dice.choice(("table", "global"))) if chosen else None


@step("lock", _choose_lock)
def lock(world: World, name: str, kind: str) -> bool:
    """LOCK TABLES, or FLUSH TABLES WITH READ LOCK, in a session that stays."""
    server = world[name]
    if server.lock or server.pending:
        return False
    server.lock, server.lock_since = kind, world.clock
    return True


@step("unlock", some_server, is_fault=False)
def unlock(world: World, name: str) -> bool:
    """End the session that holds the lock."""
    if not world[name].lock:
        return False
    world[name].lock = ""
    return True


@step("own-next-gtid", some_channel)
def own_next_gtid(world: World, name: str, channel: str) -> bool:
    """Let a session own the next GTID that the applier needs, and stay."""
    server = world[name]
    path = server.channel(channel)
    if path is None or server.session_owns is not None or path.working:
        return False
    source = world[path.source]
    waiting = [
        each.gtid
        for log in source.files
        for each in log.entries
        if each.gtid not in server.executed and each.gtid not in server.owned
    ]
    if not waiting:
        return False
    server.session_owns = waiting[0]
    server.owned.add(waiting[0])
    server.lock_since = world.clock
    return True


@step("release-gtid", some_server, is_fault=False)
def release_gtid(world: World, name: str) -> bool:
    """End the session that owns a GTID; it rolls back."""
    server = world[name]
    if server.session_owns is None:
        return False
    server.owned.discard(server.session_owns)
    server.session_owns = None
    return True

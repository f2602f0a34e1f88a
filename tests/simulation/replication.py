"""What servers do by themselves: commit, send, receive, apply, connect again.

1. Every function here is one thing that a server does under its locks, so any order of calls is a
   history that could happen. Each returns whether something changed.
2. A commit has two stages: the transaction is in the binary log first, and executed afterwards. A
   receiver reads what is in the log, executed or not.
3. An applier that meets a row conflict stops, as replication in row format does: 1062 for a key
   that is there, 1032 for one that is not, 1050 for a table that is there.
4. `rest` lets everything that can happen without clients and operators happen.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from tests.simulation.state import (
    BEYOND,
    COPY,
    DIFFERENT_ERRORS,
    EXTRA,
    NO_FILE,
    NO_LOG,
    PERMISSIVE,
    PURGED,
    SAME_ID,
    SAME_UUID,
    Acknowledged,
    Change,
    Channel,
    Group,
    Gtid,
    Key,
    LogFile,
    Place,
    Relayed,
    Server,
    Transaction,
    Work,
    World,
    has_statements,
)

_FATAL = {True: 13114, False: 1236}  # since 8.0, before
_SAME_SOURCE = {True: 13117, False: 1593}
MODERN = (8, 0, 0)
_DUPLICATE = 1062
DDL = ("create", "alter", "drop", "fails")
TABLE = "table"
VIEW = "view"
_WORKERS = "The slave coordinator and worker threads are stopped, possibly leaving data in"
ANONYMOUS: Gtid = ("", "", 0)
GROUP_APPLIER = "group_replication_applier"
UNTOUCHED: tuple[tuple[Key, int | None], ...] = ()


# -- commits of clients ---------------------------------------------------------------------------


def next_gtid(server: Server, tag: str = "", uuid: str = "") -> Gtid:
    """Draw the next automatic GTID: the smallest free one, searched from where the last was.

    sql/rpl_gtid_state.cc, get_automatic_gno: 8.0 remembers the place until the next restart, 5.6
    begins at 1 each time.
    """
    key = uuid or server.uuid
    number = server.next_free.get(tag, 1) if server.version >= MODERN and not uuid else 1
    while (key, tag, number) in server.executed or (key, tag, number) in server.owned:
        number += 1
    if not uuid:
        server.next_free[tag] = number + 1
    return (key, tag, number)


def _error_of(rows: dict[Key, int], change: Change) -> int:
    """Return the error that a change meets, or 0."""
    there = change.key in rows
    if change.kind == "create":
        return 1050 if there else 0
    if change.kind in ("insert", "insert-where"):
        return 1062 if there else 0
    if there or change.is_statement:
        return 0
    return {"drop": 1051, "alter": 1146}.get(change.kind, 1032)


def _rows_of(rows: dict[Key, int], change: Change) -> Change | None:
    """Return what a change does to the rows of a server: of a statement, what it finds there."""
    if change.kind == "update-where":
        return Change("update", change.key, change.new) if change.key in rows else None
    if change.kind == "insert-where":
        return Change("insert", change.key, change.new) if change.where in rows else None
    return None if change.kind == "fails" else change


def effect(server: Server, changes: tuple[Change, ...]) -> tuple[Change, ...]:
    """Return the rows that these changes concern here."""
    if not has_statements(changes):
        return changes
    found = (_rows_of(server.rows, each) for each in changes)
    return tuple(each for each in found if each is not None)


def conflict(server: Server, changes: tuple[Change, ...]) -> int:
    """Return the error that these changes meet here, or 0."""
    for change in effect(server, changes):
        number = _error_of(server.rows, change)
        if number:
            return number
    return 0


def applied_effect(server: Server, changes: tuple[Change, ...]) -> tuple[int, tuple[Change, ...]]:
    """Return the error at which an applier stops, or 0, and the rows that it changes.

    Seen on 9.7.4 and 5.6.24: with IDEMPOTENT an insert replaces the row that is there and is logged
    as an update, other row events without their row are ignored, DDL stops as before. With
    replica_skip_errors = all whatever fails is ignored. What is left of the transaction is logged.
    """
    done: list[Change] = []
    for change in effect(server, changes):
        number = _error_of(server.rows, change)
        if number and not server.skips_errors:
            is_row = change.kind in ("insert", "update", "delete") and change in changes
            if not (server.idempotent and is_row):
                return number, ()
            if number == _DUPLICATE:
                done.append(Change("update", change.key, change.new))
        elif not number:
            done.append(change)
    return 0, tuple(done)


def begin(
    world: World,
    server: Server,
    changes: tuple[Change, ...],
    gtid: Gtid | None = None,
    tag: str = "",
    *,
    work: int = 0,
    is_upkeep: bool = False,
) -> Transaction | None:
    """Flush stage of a client's commit: the GTID is owned, the transaction is in the log."""
    keys = {key for each in changes for key in each.keys}
    if keys & server.locked_keys or conflict(server, changes) or server.lock == "global":
        return None
    if gtid is None and not server.log_bin:
        return _commit_anonymous(world, server, changes)
    group = world.group if world.group is not None and server.name in world.group.names else None
    if group is not None and not accepts_writes(group, server):
        return None
    in_group = group is not None and server.name in group.online
    if gtid is None:
        gtid = next_gtid(server, tag, group.uuid if group is not None and in_group else "")
    elif gtid in server.executed or gtid in server.owned:
        return None
    world.works += 1
    made = Transaction(
        gtid, work or world.works, changes, server.server_id, server.name, world.clock
    )
    server.owned.add(gtid)
    server.locked_keys |= keys
    if server.log_bin:
        server.files[-1].entries.append(made)
    server.pending.append(made)
    if group is not None and in_group:
        _send_to_group(world, group, server, made)
    return made


def accepts_writes(group: Group, server: Server) -> bool:
    """Return whether a client may write on a server that is configured for a group.

    A secondary has super_read_only=ON, a new primary first applies what it has received, and an
    expelled member refuses every commit. A server that left accepts them once an operator sets
    super_read_only=OFF.
    """
    if server.name in group.expelled:
        return False
    if server.name not in group.online:
        return True
    queue = server.group_applier
    is_behind = queue is not None and (queue.working or queue.relay_at < len(queue.relay))
    return server.name == group.primary and not is_behind


def _send_to_group(world: World, group: Group, server: Server, made: Transaction) -> None:
    """Certify a transaction: all online members have it before its server commits it."""
    for name in group.online - {server.name}:
        queue = world[name].group_applier
        assert queue is not None, "an online member has a queue"
        queue.relay.append(Relayed(made, Place(0, 0)))
        queue.retrieved.add(made.gtid)


def _commit_anonymous(world: World, server: Server, changes: tuple[Change, ...]) -> Transaction:
    """Commit without a GTID: without a binary log a server draws none (seen on 9.7.4)."""
    world.works += 1
    for each in effect(server, changes):
        _change_row(server, each)
        world.drifted.add(each.key)
    return Transaction(ANONYMOUS, world.works, changes, server.server_id, server.name, world.clock)


def _change_row(server: Server, change: Change) -> None:
    if change.new is None:
        server.rows.pop(change.key, None)
    else:
        server.rows[change.key] = change.new


def finish(world: World, server: Server, made: Transaction) -> None:
    """Commit stage: rows and gtid_executed change, the client has its answer."""
    server.pending.remove(made)
    commit(server, made)
    world.acknowledged.append(Acknowledged(server.name, made))


def commit(server: Server, made: Transaction, *, is_relayed: bool = False) -> None:
    """Change rows and gtid_executed; a GTID that is in no binary log is purged at once."""
    server.owned.discard(made.gtid)
    server.executed.add(made.gtid)
    if not (server.log_bin and (server.log_replica_updates or not is_relayed)):
        server.purged.add(made.gtid)
    undo = UNTOUCHED
    if made.changes:
        changes = effect(server, made.changes)
        undo = tuple((each.key, server.rows.get(each.key)) for each in changes)
        for each in changes:
            _change_row(server, each)
        server.locked_keys -= made.keys
        server.works[made.work] += 1
    server.applied.append((made, undo))


def write(
    world: World,
    server: Server,
    changes: tuple[Change, ...],
    gtid: Gtid | None = None,
    tag: str = "",
    *,
    work: int = 0,
    is_upkeep: bool = False,
) -> Transaction | None:
    """Commit a transaction of a client, both stages; `work` is given where it is done again."""
    made = begin(world, server, changes, gtid, tag, work=work, is_upkeep=is_upkeep)
    if made is not None and made.gtid != ANONYMOUS:
        finish(world, server, made)
    return made


def rotate(world: World, server: Server) -> None:
    """Begin a new binary log."""
    if not server.log_bin:
        return
    last = server.files[-1]
    previous = last.previous | {each.gtid for each in last.entries}
    previous |= server.purged  # executed without being logged
    server.files.append(LogFile(last.number + 1, previous, world.clock))


# -- receivers ------------------------------------------------------------------------------------


def refusal(source: Server, replica: Server, channel: Channel) -> str:
    """Return why the source refuses this connection by GTID sets; empty if it does not."""
    sent = replica.executed | channel.retrieved
    own = {each for each in sent if each[0] == source.uuid}
    if not own <= source.executed | source.owned:
        return EXTRA
    if not source.purged <= sent:
        return PURGED
    if not any(log.previous <= sent for log in source.listed):
        return PURGED
    return ""


def connect(world: World, replica: Server, channel: Channel) -> bool:
    """Connect a receiver that waits for its source. A refusal stops it with an error."""
    if channel.receiver != "Connecting":
        return False
    source = world.servers[channel.source]
    if not source.is_up:
        return False
    text, number = "", _FATAL[replica.version >= MODERN]
    if source.uuid == replica.uuid:
        text, number = SAME_UUID, _SAME_SOURCE[replica.version >= MODERN]
    elif source.server_id == replica.server_id:
        text, number = SAME_ID, _SAME_SOURCE[replica.version >= MODERN]
    elif channel.auto_position and source.permissive:
        text, number = PERMISSIVE, _SAME_SOURCE[replica.version >= MODERN]
    elif not source.log_bin:
        text = NO_LOG
    elif channel.auto_position:
        last = channel.last_queued
        has_it = last is not None and last.gtid in replica.executed
        if replica.version < (5, 7, 0) and last is not None and not has_it:
            # 5.6 asks for the last transaction once more; until it comes it is not retrieved. After
            # a RESET it is applied again (seen on 5.6.24).
            channel.retrieved.discard(last.gtid)
        text = refusal(source, replica, channel)
    else:
        place = channel.read_to or Place(source.files[0].number, 0)
        log = source.file(place.file)
        if log is None:
            text = NO_FILE
        elif place.entries > len(log.entries):
            text = BEYOND
        channel.read_to = place
        if not text:
            _note_passed(world, replica, channel, source)
    channel.source_uuid, channel.source_server_id = source.uuid, source.server_id
    if text:
        channel.receiver, channel.receiver_error = "No", (number, text)
        return True
    channel.receiver, channel.receiver_error = "Yes", (0, "")
    if replica.version >= MODERN:
        _end_other_connection(world, source, replica)
    if channel.auto_position:
        sent = frozenset(replica.executed | channel.retrieved)
        channel.excluded = sent
        # Newest to oldest: the first file whose Previous_gtids the replica has all of.
        start = next(log for log in reversed(source.listed) if log.previous <= sent)
        channel.read_to = Place(start.number, 0)
    else:
        channel.excluded = frozenset()
    return True


def _note_passed(world: World, replica: Server, channel: Channel, source: Server) -> None:
    """Record what a connection by file position passes over: all before its place.

    Also where auto-position left the place, in a log that its source began again since.
    """
    assert channel.read_to is not None, "a connection by file position has a place"
    number, index = channel.read_to
    for log in source.files:
        before = log.entries if log.number < number else log.entries[:index]
        for each in before if log.number <= number else ():
            if each.gtid not in channel.retrieved:
                note(world, replica, each.gtid, "change-by-position")


def _end_other_connection(world: World, source: Server, replica: Server) -> None:
    """Let the source end the connection of another replica with the same server_uuid.

    Seen on 9.7.4: that receiver stops. 5.6 ends it without an error, and both connect again in turn,
    which is not simulated.
    """
    for other, channel in world.replicas_of(source.name):
        is_copy = other is not replica and other.uuid == replica.uuid
        if is_copy and channel.receiver == "Yes":
            channel.receiver, channel.receiver_error = "No", (13114, COPY)


def receive(world: World, replica: Server, channel: Channel) -> bool:
    """Read the next transaction of the source's binary log."""
    if channel.receiver != "Yes":
        return False
    source = world.servers[channel.source]
    assert channel.read_to is not None, "a connected receiver has a place"
    number, index = channel.read_to
    log = source.file(number)
    if log is None:
        channel.receiver, channel.receiver_error = "No", (13114, NO_FILE)
        return True
    if index >= len(log.entries):
        if log is source.files[-1]:
            return False
        channel.read_to = Place(
            next(each.number for each in source.listed if each.number > number), 0
        )
        return True
    entry = log.entries[index]
    channel.read_to = Place(number, index + 1)
    if entry.gtid in channel.excluded:
        return True
    if entry.server_id == replica.server_id:
        # The receiver drops the events of its own server_id, and Retrieved_Gtid_Set does not have
        # them (seen on 5.6.24 and 9.7.4).
        note(world, replica, entry.gtid, "same_server_id")
        return True
    channel.retrieved.add(entry.gtid)
    channel.relay.append(Relayed(entry, channel.read_to))
    channel.last_queued = entry
    return True


def disconnect(channel: Channel) -> bool:
    """Lose the connection; the receiver tries again."""
    if channel.receiver != "Yes":
        return False
    channel.receiver = "Connecting"
    return True


def note(world: World, server: Server, gtid: Gtid, step: str) -> None:
    """Record why a GTID will not come by itself: the first step, or a skip when it came again."""
    if gtid in server.executed:
        return
    if step == "skip_counter":
        world.absence[server.name, gtid] = step
    world.absence.setdefault((server.name, gtid), step)


# -- appliers -------------------------------------------------------------------------------------


def take(world: World, replica: Server, channel: Channel) -> bool:
    """Let the coordinator look at the next transaction of the relay log."""
    if channel.applier != "Yes" or channel.relay_at >= len(channel.relay):
        return False
    entry = channel.relay[channel.relay_at].transaction
    if channel.skip_counter:
        if channel.working:
            return False
        channel.skip_counter = 0
        # The place is saved with the next commit, or when the applier stops (seen on 9.7.4: after
        # a crash without relay_log_recovery the skipped transaction is applied).
        channel.skipped_at = channel.relay_at
        channel.relay_at += 1
        note(world, replica, entry.gtid, "skip_counter")
        return True
    if entry.server_id == replica.server_id and channel.name != GROUP_APPLIER:
        # received under another server_id
        channel.relay_at += 1
        note(world, replica, entry.gtid, "same_server_id")
        return True
    if entry.failed_on_source and not replica.skips_errors:
        if channel.working:
            return False
        if entry.gtid in replica.executed or VIEW not in replica.rows:
            _stop_at_other_error(replica, channel, entry)
            return True
    # What is executed already waits for SOURCE_DELAY as well (seen on 5.6.24).
    if channel.delay and world.clock < entry.at + channel.delay:
        return False
    if entry.gtid in replica.executed:
        channel.relay_at += 1
        return True
    if entry.gtid in replica.owned or len(channel.working) >= channel.workers:
        return False
    visible = _visible(channel, entry)
    keys = frozenset(entry.keys if visible is entry.changes else _keys_of(visible))
    if keys & replica.locked_keys:
        return False
    if _ignores_without_gtid(replica, visible) and not channel.working:
        channel.relay_at += 1
        note(world, replica, entry.gtid, "skip_errors")
        return True
    waits = bool(replica.lock) and bool(visible)  # for the table, or for the global read lock
    number = 0 if waits else applied_effect(replica, visible)[0]
    if number:
        if channel.working:  # the workers before it finish first
            return False
        channel.applier, channel.failed = "No", entry
        channel.applier_error = (number, f"error executing row event: {number}")
        if replica.version < MODERN and any(each.key == VIEW for each in visible):
            _log_failed_view(replica, entry)
        return True
    replica.owned.add(entry.gtid)
    replica.locked_keys |= keys
    busy = {each.worker for each in channel.working}
    worker = next(each for each in range(1, channel.workers + 1) if each not in busy)
    channel.working.append(
        Work(entry, channel.relay_at, world.clock, worker, is_checked=not waits, keys=keys)
    )
    channel.relay_at += 1
    return True


def _stop_at_other_error(replica: Server, channel: Channel, entry: Transaction) -> None:
    """Stop an applier at an event that failed on the source and does not fail here.

    Seen on 5.6.24: the statement is done and its GTID executed, then the errors are compared. Each
    further start compares again and finds no error: with the GTID executed nothing is done.
    """
    if entry.gtid not in replica.executed:
        made = entry._replace(changes=(Change("create", VIEW, 0),))
        replica.files[-1].entries.append(made)
        commit(replica, made, is_relayed=True)
    channel.applier, channel.failed = "No", entry
    channel.applier_error = (1756, _WORKERS) if channel.workers > 1 else (0, DIFFERENT_ERRORS)


def _log_failed_view(replica: Server, entry: Transaction) -> None:
    """Log a CREATE VIEW that fails in an applier: 5.6 executes its GTID (seen on 5.6.24).

    The next start of the applier goes on behind it.
    """
    made = entry._replace(changes=(Change("fails", VIEW, None),))
    replica.files[-1].entries.append(made)
    commit(replica, made, is_relayed=True)


def _ignores_without_gtid(replica: Server, changes: tuple[Change, ...]) -> bool:
    """Return whether DDL fails here and 5.6 ignores that: it does not execute the GTID.

    Seen on 5.6.24 with replica_skip_errors = all; 9.7.4 commits an empty transaction.
    """
    return (
        replica.skips_errors
        and replica.version < MODERN
        and any(each.kind in DDL and _error_of(replica.rows, each) for each in changes)
    )


def _visible(channel: Channel, entry: Transaction) -> tuple[Change, ...]:
    if not channel.ignored_keys:
        return entry.changes
    return tuple(each for each in entry.changes if each.key not in channel.ignored_keys)


def _keys_of(changes: tuple[Change, ...]) -> set[Key]:
    return {key for each in changes for key in each.keys}


def blocked(replica: Server, work: Work) -> bool:
    """Return whether a session's lock keeps a worker from its transaction."""
    changes = work.transaction.changes
    if replica.lock == "global":  # an empty transaction waits for nothing (9.7.4 and 5.6.24)
        return bool(changes) or work.transaction.is_upkeep
    return replica.lock == "table" and any(each.kind not in DDL for each in changes)


def flush(replica: Server, channel: Channel, dice: random.Random | None = None) -> bool:
    """Let a worker write its transaction to the binary log."""
    if not channel.working:
        return False
    waiting = [each for each in channel.working if not each.logged and not blocked(replica, each)]
    if channel.commit_order and waiting and waiting[0] is not channel.working[0]:
        first = next(each for each in channel.working if not each.logged)
        waiting = waiting if first is waiting[0] else []
    if not waiting:
        return False
    work = waiting[0] if channel.commit_order or dice is None else dice.choice(waiting)
    number, changes = applied_effect(replica, _visible(channel, work.transaction))
    if number:
        assert not work.is_checked, "its rows are held since they were looked at"
        channel.applier, channel.failed = "No", work.transaction
        channel.applier_error = (number, f"error executing row event: {number}")
        roll_back_workers(replica, channel)
        return True
    work.is_checked = work.logged = True
    # What a replica logs are the rows that it changed, whatever its source logged.
    if changes != work.transaction.changes and not work.transaction.failed_on_source:
        work.transaction = work.transaction._replace(changes=changes)
    if replica.log_bin and replica.log_replica_updates:
        replica.files[-1].entries.append(work.transaction)
    return True


def apply(
    world: World, replica: Server, channel: Channel, dice: random.Random | None = None
) -> bool:
    """Let a worker commit what it has logged."""
    if not channel.working:
        return False
    ready = [each for each in channel.working if each.logged]
    if not ready:
        return False
    if channel.commit_order:
        work = channel.working[0]
        if not work.logged:
            return False
    else:
        work = ready[0] if dice is None else dice.choice(ready)
    channel.working.remove(work)
    commit(replica, work.transaction, is_relayed=True)
    replica.locked_keys -= work.keys
    world.absence.pop((replica.name, work.transaction.gtid), None)
    channel.skipped_at = None
    channel.done_by[work.worker] = work.transaction
    channel.last_applied_at = world.clock
    return True


def finish_workers(world: World, replica: Server, channel: Channel) -> None:
    """Let the workers complete what they hold: an applier is being stopped."""
    while channel.working and (flush(replica, channel) or apply(world, replica, channel)):
        pass
    roll_back_workers(replica, channel)
    channel.skipped_at = None


def roll_back_workers(replica: Server, channel: Channel) -> None:
    """End the workers; what is not logged is rolled back, and the coordinator returns to it."""
    if not channel.working:
        return
    channel.relay_at = channel.low_water
    for each in channel.working:
        replica.owned.discard(each.transaction.gtid)
        replica.locked_keys -= each.keys
    channel.working = []


def applied_place(channel: Channel) -> Place | None:
    """Return where the source's log continues behind what is applied."""
    at = channel.low_water
    if at >= len(channel.relay):
        return channel.read_to
    if at > 0:
        return channel.relay[at - 1].end
    first = channel.relay[0].end
    return first._replace(entries=first.entries - 1)


# -- time -----------------------------------------------------------------------------------------


def moves_of(world: World, dice: random.Random) -> list[Callable[[], bool]]:
    """Return what may happen next by itself, each as a call."""
    moves: list[Callable[[], bool]] = []
    for server in world.servers.values():
        if server.pending:
            moves.append(partial(_finish_any, world, server, dice))
        for channel in server.channels:
            moves += (
                partial(receive, world, server, channel),
                partial(connect, world, server, channel),
                partial(take, world, server, channel),
                partial(flush, server, channel, dice),
                partial(apply, world, server, channel, dice),
            )
        if server.group_applier is not None:
            moves.append(partial(_apply_of_group, world, server, dice))
    return moves


def _apply_of_group(world: World, server: Server, dice: random.Random | None = None) -> bool:
    """Let a member's group applier do one thing. A member whose applier fails leaves (ERROR)."""
    queue, group = server.group_applier, world.group
    if queue is None or group is None:
        return False
    moved = (
        apply(world, server, queue, dice)
        or flush(server, queue, dice)
        or take(world, server, queue)
    )
    if queue.applier_error[1]:
        roll_back_workers(server, queue)
        server.group_applier = None
        group.online.discard(server.name)
        group.expelled.add(server.name)
    return moved


def _finish_any(world: World, server: Server, dice: random.Random) -> bool:
    if not server.pending:
        return False
    finish(world, server, dice.choice(server.pending))
    return True


def flow(world: World, count: int, dice: random.Random) -> None:
    """Let replication go on for so many moments."""
    moves = moves_of(world, dice)
    if not moves:
        return
    for _ in range(count):
        world.clock += 1
        dice.choice(moves)()


def rest(world: World, *, with_delay: bool = True) -> None:
    """Let everything happen that happens without clients and operators."""
    while True:
        moved = False
        for server in world.servers.values():
            while server.pending:
                finish(world, server, server.pending[0])
                moved = True
            for channel in server.channels:
                while (
                    connect(world, server, channel)
                    or receive(world, server, channel)
                    or take(world, server, channel)
                    or flush(server, channel)
                    or apply(world, server, channel)
                ):
                    moved = True
            while server.group_applier is not None and _apply_of_group(world, server):
                moved = True
        if moved:
            continue
        later = [
            channel.relay[channel.relay_at].transaction.at + channel.delay
            for _, channel in world.paths()
            if channel.delay and channel.applier == "Yes" and channel.relay_at < len(channel.relay)
        ]
        due = [at for at in later if at > world.clock]
        if not due or not with_delay:
            return
        world.clock = min(due)


def disconnect_replicas(world: World, source: Server) -> None:
    """End the connections of all receivers of a server."""
    for _, channel in world.replicas_of(source.name):
        disconnect(channel)

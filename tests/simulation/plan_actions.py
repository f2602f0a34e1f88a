"""The actions of a plan on the true world: what the statements of each script do there.

1. An action is done as MySQL does it, with the world's own rules. Nothing of repair/model/replication_model.py is
   used: the model is what is checked.
2. A script refuses where its preconditions do not hold: most of them are in plan_guards.py. `Refused`
   means that nothing was changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gtid import GtidSet
from repair.content.row_versions import RowVersions
from repair.model.actions import (
    AppendPurged,
    AutoPositionOn,
    InjectEmpty,
    MakeRowsAlike,
    MovePast,
    RedoTransactions,
    ResetAndPurge,
    StartChannel,
    StopChannel,
    UndoRows,
)
from repair.scripts.steps import Step
from tests.simulation import replication as act
from tests.simulation.plan_guards import Refused, has_begun, is_before
from tests.simulation.reading import gtids
from tests.simulation.state import (
    Channel,
    Gtid,
    Key,
    LogFile,
    Place,
    Server,
    Transaction,
    World,
    uuid_of,
)
from tests.simulation.steps import start_threads, stop_threads
from tests.simulation.toy_table import key_of, value_of

NUMBERS_MAX = 500


class NotSimulated(Exception):
    """An action that the simulated world does not know."""


def members(world: World, gtid_set: GtidSet) -> set[Gtid]:
    """Return the GTIDs of a set in the terms of the world."""
    keys = {server.uuid for server in world.servers.values()}
    keys |= world.servers.keys()  # what a server that has another UUID by now had first
    keys |= {each.transaction.gtid[0] for each in world.acknowledged}
    for server in world.servers.values():
        keys |= {each[0] for each in server.executed}
        for channel in server.channels:
            keys |= {each[0] for each in channel.retrieved}
        if server.group_applier is not None:
            keys |= {each[0] for each in server.group_applier.retrieved}
    by_uuid = {uuid_of(key): key for key in keys}
    found: set[Gtid] = set()
    for each in gtid_set.gtids():
        found.add((by_uuid[each.tsid.uuid], each.tsid.tag, each.gno))
        if len(found) > NUMBERS_MAX:
            raise NotSimulated("too many transactions")
    return found


def run_step(world: World, step: Step) -> None:
    """Run the script of one step whose guards hold. Raises Refused, or NotSimulated."""
    action = step.effect
    do = _EFFECTS.get(type(action))
    if do is None:
        raise NotSimulated(type(action).__name__)
    server = world[action.server]
    if server.lock or server.session_owns is not None:
        raise Refused("the script waits for a session that holds a lock")
    if world.group is not None and not act.accepts_writes(world.group, server):
        raise Refused("super_read_only is ON")
    _check_rows(server, step)
    do(world, server, action)
    act.rest(world)


def _check_rows(server: Server, step: Step) -> None:
    """Refuse where the script looks at rows once more, and they are not as the plan saw them."""
    action = step.effect
    if not any("@fit" in statement for statement in step.procedure.statements):
        return
    executed = gtids(server.executed)
    fit = True
    if isinstance(action, StartChannel):
        if _channel(server, action.channel).runs or has_begun(server, action.waiting):
            return
    elif isinstance(action, AutoPositionOn):
        fit = action.compared_at is None or executed <= action.compared_at
    else:
        return
    if not (fit and all(is_before(server, row) for row in action.rows)):
        raise Refused("transactions were applied, or rows changed, since they were compared")


def _channel(server: Server, name: str) -> Channel:
    channel = server.channel(name)
    if channel is None:
        raise Refused(f"{server.name} has no channel {name!r}")
    return channel


def _inject(world: World, server: Server, action: InjectEmpty) -> None:
    wanted = members(world, action.gtids)
    if wanted & server.owned:
        raise Refused("a transaction under way owns one of the GTIDs")
    for gtid in sorted(wanted):
        act.write(world, server, (), gtid)


def _append(world: World, server: Server, action: AppendPurged) -> None:
    wanted = members(world, action.gtids)
    if wanted & server.owned:
        raise Refused("a transaction under way owns one of the GTIDs")
    missing = wanted - server.executed
    act.rotate(world, server)
    server.executed |= missing
    server.purged |= missing


def _reset(world: World, server: Server, action: ResetAndPurge) -> None:
    if gtids(server.executed) != action.executed:
        raise Refused("gtid_executed is not what the plan was made for")
    for channel in server.channels:
        stop_threads(world, server, channel)
    goal = server.executed | members(world, action.gtids)
    server.executed, server.purged = set(goal), set(goal)
    server.next_free.clear()
    server.files = [LogFile(1, frozenset(goal), world.clock)]
    for _, channel in world.replicas_of(server.name):
        act.disconnect(channel)
    for name in action.restart:
        start_threads(world, server, _channel(server, name))


def _auto_position(world: World, server: Server, action: AutoPositionOn) -> None:
    channel = _channel(server, action.channel)
    if not members(world, action.filled) <= server.executed:
        raise Refused("fill the gap first")
    if not stop_threads(world, server, channel):
        raise Refused("the applier waits for a lock")
    if not channel.auto_position or channel.is_reset:
        channel.auto_position = True
    channel.clear_relay()
    channel.is_reset = False
    start_threads(world, server, channel)


def _start(world: World, server: Server, action: StartChannel) -> None:
    start_threads(world, server, _channel(server, action.channel))


def _stop(world: World, server: Server, action: StopChannel) -> None:
    if not stop_threads(world, server, _channel(server, action.channel)):
        raise Refused("the applier waits for a lock")


def _move(world: World, server: Server, action: MovePast) -> None:
    """Go on behind an event, by file position."""
    channel = _channel(server, action.channel)
    end = action.event.end
    if not stop_threads(world, server, channel):
        raise Refused("the applier waits for a lock")
    channel.auto_position = channel.is_reset = False
    channel.clear_relay()
    channel.read_to = Place(end.sequence, (end.position - 200) // 100)
    start_threads(world, server, channel)


def _write_rows(server: Server, rows: tuple[RowVersions, ...]) -> None:
    """Write rows with sql_log_bin=0, where each is as the plan saw it, or as it should be."""
    wanted = {key_of(row): (value_of(row.replica), value_of(row.source)) for row in rows}
    if any(server.rows.get(key) not in values for key, values in wanted.items()):
        raise Refused("a row is not as the plan saw it")
    for key, (_, goal) in wanted.items():
        if goal is None:
            server.rows.pop(key, None)
        else:
            server.rows[key] = goal


def _alike(world: World, server: Server, action: MakeRowsAlike) -> None:
    if action.until_executed and members(world, action.until_executed) <= server.executed:
        return
    _write_rows(server, action.rows)


def _undo(world: World, server: Server, action: UndoRows) -> None:
    wanted = members(world, action.gtids)
    if not wanted <= server.executed:
        raise Refused("a transaction is not executed here")
    _write_rows(server, action.rows)
    for made, undo in server.applied:
        if made.gtid in wanted and undo:
            server.works[made.work] = 0


def _redo(world: World, server: Server, action: RedoTransactions) -> None:
    """Do transactions again; each one stops the script unless it finds its rows as they were."""
    for each in action.transactions:
        made, before = _version(world, int(each.label))
        if made.gtid in server.executed:
            continue
        if made.gtid in server.owned:
            raise Refused("a transaction under way owns one of the GTIDs")
        if any(server.rows.get(key) != old for key, old in before.items()):
            raise Refused("a row is not as the transaction found it")
        if act.write(world, server, made.changes, made.gtid, work=made.work) is None:
            raise Refused("a transaction cannot be done")


def _version(world: World, work: int) -> tuple[Transaction, dict[Key, int | None]]:
    """Return a transaction by its work, and its rows as it found them where it was done first."""
    for server in world.servers.values():
        for made, undo in server.applied:
            if made.work == work and (undo or not made.changes):
                return made, dict(undo)
    raise NotSimulated("no server applied it")


_EFFECTS: dict[type[Any], Callable[[World, Server, Any], None]] = {
    InjectEmpty: _inject,
    AppendPurged: _append,
    ResetAndPurge: _reset,
    AutoPositionOn: _auto_position,
    StartChannel: _start,
    StopChannel: _stop,
    MovePast: _move,
    MakeRowsAlike: _alike,
    UndoRows: _undo,
    RedoTransactions: _redo,
}

"""The guards of a plan's scripts, as conditions on the true world: who refuses to run, and why.

1. A script sees one server: its own. What must hold elsewhere is a check that runs before it
   (repair/scripts/other_servers.py). No guard looks at a server that neither of them is run on.
2. A guard counts only if the script or the check has it: it is found by its message. What it does
   is written here once more, from its text; nothing of repair/sql/script.py is used.
3. Names are addresses here: the host of a channel's source is the name of a server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gtid import GtidSet
from repair.content.transaction_content import NetRow
from repair.model.actions import (
    AppendPurged,
    AutoPositionOn,
    InjectEmpty,
    MovePast,
    RedoTransactions,
    ResetAndPurge,
    StartChannel,
    StopChannel,
    UndoRows,
)
from repair.scripts.steps import Step
from repair.sql.guard import Guard
from tests.simulation.reading import gtids, moment
from tests.simulation.state import Server, World, uuid_of
from tests.simulation.toy_table import key_in, key_of, value_of
from topology.readings.snapshot import (
    START_SLACK,
    ChannelSnapshot,
    ClusterSnapshot,
    ServerSnapshot,
    ThreadState,
)

Asked = Callable[[str], bool]


class Refused(Exception):
    """A guard of the script does not hold: nothing was changed."""


def check_guards(world: World, snapshot: ClusterSnapshot, step: Step) -> None:
    """Refuse where the world is not what the plan of this snapshot was made for."""
    action = step.effect
    readings = {each.name: each for each in snapshot.last if each.gtid_executed is not None}
    reading, server = readings[action.server], world[action.server]
    has = _asked(step.procedure.preconditions)
    if has("this is another server") and uuid_of(server.uuid) != reading.server_uuid:
        raise Refused(f"{server.name}: another server_uuid")
    _check_channels(server, reading, has)
    if has("gtid_executed lost") and not (reading.gtid_executed or GtidSet()) <= gtids(
        server.executed
    ):
        raise Refused(f"{server.name}: gtid_executed lost transactions")
    began = reading.started_at
    is_known = began is not None and moment(server.started_at) <= began + START_SLACK
    if has("it was restarted since") and not is_known:
        raise Refused(f"{server.name}: it was restarted since the plan was made")
    if isinstance(action, AutoPositionOn) and has("was committing when the plan was made"):
        channel = server.channel(action.channel)
        source = readings.get(_channel_of(reading, action.channel).source_host)
        owned = (source.gtid_owned if source is not None else None) or GtidSet()
        is_on = channel is not None and channel.auto_position
        if not (is_on or owned <= gtids(server.executed)):
            raise Refused(f"{server.name}: it lacks what its source was committing")
    if isinstance(action, InjectEmpty | AppendPurged | ResetAndPurge):
        _check_other_servers(world, readings, step, action)
    if isinstance(action, AutoPositionOn | StartChannel):
        _check_below(world, readings, step, action)
    if isinstance(action, RedoTransactions):
        _check_fits_elsewhere(world, readings, step, action)
    if isinstance(action, UndoRows):
        _check_still_lacking(world, readings, step, action)
    if has("committed transactions of its own"):
        _check_writes_nothing(server, reading)
    if isinstance(action, StartChannel) and has("sets gtid_next by hand"):
        channel = server.channel(action.channel)
        if channel is None or not channel.runs:
            _check_not_by_hand(server, action.waiting)
    if isinstance(action, StartChannel) and has("that the plan did not see"):
        _check_knows_all(server, reading, step, action)
    if isinstance(action, AutoPositionOn | StartChannel | StopChannel | MovePast):
        _check_channel(server, readings, action, has)


def _check_channel(
    server: Server,
    readings: dict[str, ServerSnapshot],
    action: AutoPositionOn | StartChannel | StopChannel | MovePast,
    has: Asked,
) -> None:
    reading = readings[action.server]
    seen = _channel_of(reading, action.channel)
    channel = server.channel(action.channel)
    if channel is None:
        raise Refused(f"{server.name}: no such channel")
    source = readings.get(seen.source_host)
    expected = source.server_uuid if source is not None else seen.source_uuid
    known = None if channel.source_uuid is None else uuid_of(channel.source_uuid)
    if has("another source now") and None not in (expected, known) and expected != known:
        raise Refused(f"{server.name}: the channel has another source")
    errors = {0, seen.applier_errno, *(worker.errno for worker in seen.workers)}
    if has("the applier stopped since") and channel.applier_error[0] not in errors:
        raise Refused(f"{server.name}: the applier stopped since the plan was made")
    if has("the applier's error was cleared") and not (channel.runs or channel.applier_error[0]):
        raise Refused(f"{server.name}: the applier's error was cleared")
    if has("auto-position was switched off") and not channel.auto_position:
        raise Refused(f"{server.name}: auto-position was switched off")
    if has("auto-position was switched on") and channel.auto_position:
        raise Refused(f"{server.name}: auto-position was switched on")
    executed = gtids(server.executed)
    if has("gtid_executed is empty now") and not executed:
        raise Refused(f"{server.name}: gtid_executed is empty now")


def _asked(guards: Iterable[Guard]) -> Asked:
    """Return a function that finds a guard by a part of its message."""
    messages = [guard.message for guard in guards]
    return lambda words: any(words in message for message in messages)


def _check_channels(server: Server, reading: ServerSnapshot, has: Asked) -> None:
    seen = sorted((each.name, each.source_host) for each in reading.channels or ())
    if has("its channels changed") and seen != sorted(
        (each.name, each.source) for each in server.channels
    ):
        raise Refused(f"{server.name}: its channels changed")


def _channel_of(reading: ServerSnapshot, name: str) -> ChannelSnapshot:
    return next(each for each in reading.channels or () if each.name == name)


def _check_other_servers(
    world: World,
    readings: dict[str, ServerSnapshot],
    step: Step,
    action: InjectEmpty | AppendPurged | ResetAndPurge,
) -> None:
    """Look at the servers that hold the transactions alone: none may have committed more."""
    everything = GtidSet.union_of(each.gtid_executed or GtidSet() for each in readings.values())
    for check in step.checks:
        name, reading = check.server, readings[check.server]
        has = _asked(check.guards)
        held = (reading.gtid_executed or GtidSet()) & action.gtids
        _check_channels(world[name], reading, has)
        if has("it has lost transactions") and not held <= gtids(world[name].executed):
            raise Refused(f"{name} has lost transactions")
        if not has("it has committed more"):
            continue
        if uuid_of(world[name].uuid) != reading.server_uuid:
            raise Refused(f"{name}: another server_uuid")
        there = gtids(world[name].executed)
        more = there - everything
        more |= there.from_uuid(uuid_of(world[name].uuid)) - (reading.gtid_executed or GtidSet())
        for source in _upstream(readings, name):
            if (uuid := readings[source].server_uuid) is not None:  # else it was not read
                more = more.without_uuid(uuid)
        for channel in reading.channels or ():
            if channel.source_uuid is not None:
                more = more.without_uuid(channel.source_uuid)
        if more:
            raise Refused(f"{name} has committed more: {more}")


def _check_below(
    world: World,
    readings: dict[str, ServerSnapshot],
    step: Step,
    action: AutoPositionOn | StartChannel,
) -> None:
    """Look at the servers to which the transactions go on: history and rows as they were read."""
    before = {each.server: GtidSet.parse(each.gtid_executed) for each in step.before}
    after = {each.server: GtidSet.parse(each.gtid_executed) for each in step.after}
    for check in step.checks:
        reading, server = readings[check.server], world[check.server]
        has = _asked(check.guards)
        if has("this is another server") and uuid_of(server.uuid) != reading.server_uuid:
            raise Refused(f"{server.name}: another server_uuid")
        history = reading.gtid_executed or GtidSet()
        if has("gtid_executed lost") and not history <= gtids(server.executed):
            raise Refused(f"{server.name}: gtid_executed lost transactions")
        if has("committed transactions of its own"):
            _check_writes_nothing(server, reading)
        if has("it has executed more transactions since"):
            modelled = (before.get(each, GtidSet()) for each in (action.server, server.name))
            known = GtidSet.union_of((history, *modelled))
            _check_gained_nothing(server, known, but=readings[action.server])
        arriving = after.get(server.name, GtidSet()) - before.get(server.name, GtidSet())
        if has("sets gtid_next by hand"):
            _check_not_by_hand(server, arriving)
        if has("a row of") and not all(is_before(server, row) for row in action.rows):
            raise Refused(f"{server.name}: rows are not as the plan saw them")


def _check_still_lacking(
    world: World, readings: dict[str, ServerSnapshot], step: Step, action: UndoRows
) -> None:
    """Look at the servers that did not have what is undone: it must not have arrived there."""
    for check in step.checks:
        reading, server = readings[check.server], world[check.server]
        has = _asked(check.guards)
        there = action.gtids & gtids(server.executed)
        own = there.from_uuid(uuid_of(server.uuid)) - (reading.gtid_executed or GtidSet())
        if has("it has used the GTIDs") and own:
            raise Refused(f"{server.name}: its GTIDs were given to other transactions")
        arrived = any(server.rows.get(key_of(row)) == value_of(row.replica) for row in action.rows)
        if has("has received the transactions since") and there and arrived:
            raise Refused(f"{server.name}: the transactions have arrived")


def _check_fits_elsewhere(
    world: World, readings: dict[str, ServerSnapshot], step: Step, action: RedoTransactions
) -> None:
    """Look at the servers that receive what is done again, or have it."""
    for check in step.checks:
        reading, server = readings[check.server], world[check.server]
        has = _asked(check.guards)
        if has("this is another server") and uuid_of(server.uuid) != reading.server_uuid:
            raise Refused(f"{server.name}: another server_uuid")
        if has("committed transactions of its own"):
            _check_writes_nothing(server, reading)
        held = action.gtids & (reading.gtid_executed or GtidSet())
        if has("gtid_executed lost") and not held <= gtids(server.executed):
            raise Refused(f"{server.name}: gtid_executed lost transactions")
        had = bool(held)
        begun = bool(action.gtids & gtids(server.executed))
        if has("its replication runs now") and not begun and _runs_by_now(server, reading):
            raise Refused(f"{server.name}: its replication runs now")
        if has("would differ from what is redone") and (had or not begun):
            fits = _is_after if had else is_before
            if not all(fits(server, row) for row in action.rows or ()):
                raise Refused(f"{server.name}: rows are not as the plan saw them")


def _runs_by_now(server: Server, reading: ServerSnapshot) -> bool:
    """Return whether a channel runs that was stopped when it was read."""
    stopped = [
        each.name
        for each in reading.channels or ()
        if ThreadState.STOPPED in (each.receiver, each.applier)
    ]
    found = (server.channel(name) for name in stopped)
    return any(each is not None and each.receiver == each.applier == "Yes" for each in found)


def _is_after(server: Server, row: NetRow) -> bool:
    return server.rows.get(key_in(row.key_image)) == value_of(row.after)


def _check_writes_nothing(server: Server, reading: ServerSnapshot) -> None:
    own = gtids(each for each in server.executed if each[0] == server.uuid)
    if not own <= (reading.gtid_executed or GtidSet()):
        raise Refused(f"{server.name}: it has committed transactions of its own")


def _check_knows_all(
    server: Server, reading: ServerSnapshot, step: Step, action: StartChannel
) -> None:
    there = gtids(server.executed)
    if has_begun(server, action.waiting):
        return
    modelled = (GtidSet.parse(each.gtid_executed) for each in step.before)
    own = next(modelled)  # this step's server is the first
    known = GtidSet.union_of((reading.gtid_executed or GtidSet(), own, action.waiting))
    for channel in reading.channels or ():
        if channel.name != action.channel and channel.source_uuid is not None:
            there = there.without_uuid(channel.source_uuid)
    if not there <= known:
        raise Refused(f"{server.name}: it has executed what the plan did not see")


def _check_not_by_hand(server: Server, arriving: GtidSet) -> None:
    if arriving & gtids(server.executed):
        raise Refused(f"{server.name}: it has executed some of the arriving transactions")


def has_begun(server: Server, arriving: GtidSet) -> bool:
    """Return whether a server has executed the first of what arrives, of any origin."""
    return any(
        arriving.from_tsid(tsid).first(1) <= gtids(server.executed) for tsid in arriving.tsids
    )


def _check_gained_nothing(server: Server, known: GtidSet, *, but: ServerSnapshot) -> None:
    assert but.server_uuid is not None, "a step is on a server that was read"
    if not gtids(server.executed).without_uuid(but.server_uuid) <= known:
        raise Refused(f"{server.name}: it has executed more transactions")


def is_before(server: Server, row: NetRow) -> bool:
    """Return whether a row is as it was before the transactions of the plan."""
    return server.rows.get(key_in(row.key_image)) == value_of(row.before)


def _upstream(readings: dict[str, ServerSnapshot], name: str) -> set[str]:
    found: set[str] = set()
    frontier = [name]
    while frontier:
        for channel in readings[frontier.pop()].channels or ():
            source = channel.source_host
            if source in readings and source not in found:
                found.add(source)
                frontier.append(source)
    return found

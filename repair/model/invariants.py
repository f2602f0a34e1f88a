"""What no step may ever do: a table of checks on the model before and after.

A broken invariant is not an error of the program. It is the reason why a strategy is refused, and
the plan reports it to the operator who selected it.

How it works
------------
actions.py predicts the effect of an action, and the checks below compare the model before it with
the model after it. The state of a server is small:

    executed, purged    gtid_executed and gtid_purged; purged <= executed
    per channel         source, running, auto_position, retrieved (Retrieved_Gtid_Set), and the sets
                        that it will not deliver: bypassed, passed, dropped

`simulate(model, action)` has two parts (actions.py). The action changes the server on which it
runs: its `effect`. Then `settle` lets every running channel deliver, round after round, until no
channel delivers anything. It ends, because executed sets only grow, a stuck applier stays stuck,
and no GTIDs are created. One delivery is

    coming = what the source can send (executed - purged) + what the relay log already holds
           - what the replica has - what the channel passed, dropped or bypassed

The set is empty if the source would refuse the connection: `refused` (auto-position errors 1789 and
1885), `can_connect` (no binary log, gtid_mode) and `is_same_server` (equal UUID or server_id).

Example: a → b → c. a has a:1-10 and has purged a:1-2, b has a:1-8 and its channel runs, c has a:1-5
and its channel is stopped.

    initial model    b delivers itself: a:1-10                c stays at a:1-5
    StartChannel(c)  b has purged nothing that c is missing   c: a:1-10
    if b had purged a:1-6, `refused` is a:6: the start is refused by `what_is_started_connects`

The model has no time. It shows the state in which replication comes to rest, because gtid-audit
cannot predict when a delayed, blocked or slow applier catches up. `due` keeps what an applier had
not applied when it was read, so checks that depend on time can exclude it.

Two simpler models fail. Without `settle`, the planner would inject an empty transaction on b and c
although the one on a reaches both. With `settle` but without `refused`, it would rely on deliveries
that never come, and declare too little. The scripts check the real state again (guards), so they
stop if a prediction was wrong.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from gtid import GtidSet
from repair.model.actions import (
    Action,
    AppendPurged,
    AutoPositionOn,
    ChangeDefinition,
    InjectEmpty,
    MakeRowsAlike,
    MovePast,
    RedoTransactions,
    ResetAndPurge,
    StartChannel,
    UndoRows,
    added_by,
)
from repair.model.emptied_servers import nothing_on_an_emptied_server
from repair.model.passed_elsewhere import nothing_passed_arrives_elsewhere
from repair.model.replication_model import Model, below, is_same_server, refused
from repair.model.semi_sync import until_committed

Invariant: TypeAlias = Callable[[Model, Model, Action], Iterator[str]]


def purged_is_executed(before: Model, after: Model, _action: Action) -> Iterator[str]:
    """Require gtid_purged <= gtid_executed of each server that changes."""
    for server in map(after.__getitem__, after.changed_since(before)):
        if server.purged and not server.purged <= server.executed:
            yield f"{server.name} would have purged what it has not executed"


def nothing_is_lost(before: Model, after: Model, _action: Action) -> Iterator[str]:
    """Require before.executed <= after.executed; a RESET must restore what was there."""
    for name in after.changed_since(before):
        lost = before[name].executed - after[name].executed
        if lost:
            yield f"{name} would lose {lost.shortened()} from gtid_executed"


def reset_restores_exactly(before: Model, _after: Model, action: Action) -> Iterator[str]:
    """Refuse a reset that would restore anything but what the server has."""
    if isinstance(action, ResetAndPurge) and action.executed != before[action.server].executed:
        yield f"{action.server} would get another history than it has"


def only_missing_is_added(before: Model, _after: Model, action: Action) -> Iterator[str]:
    """Require added & executed == {} on the server where GTIDs are added."""
    if isinstance(action, InjectEmpty) and action.may_be_executed:
        return
    there = added_by(action) & before[action.server].executed
    if there:
        yield f"{action.server} already has {there.shortened()}"


def no_future_numbers(before: Model, after: Model, action: Action) -> Iterator[str]:
    """Use up no GNO that its owner will assign later.

    A server assigns the smallest free GNO of its own UUID (sql/rpl_gtid_state.cc,
    get_automatic_gno). If another server used up such a GNO, the replicas would skip the owner's
    later transaction. On the owner itself, a GNO above the run leaves a gap from which it assigns
    first. That is harmful if another server has executed a GNO of the gap. A GTID set with
    gtid_next (H7) has no such gap.
    """
    added = added_by(action)
    uuids = set(added.uuids)
    if not uuids:
        return
    for owner in before.servers.values():
        if owner.server_uuid not in uuids:
            continue
        own = added.from_uuid(owner.server_uuid)
        if owner.name == action.server:
            holes = after[owner.name].executed.from_uuid(owner.server_uuid).holes()
            new_holes = holes - owner.executed.from_uuid(owner.server_uuid).holes()
            held = GtidSet.union_of(each.executed for each in before.servers.values())
            if not (own and new_holes & held):
                continue
            if committing := new_holes & owner.committing:
                yield (
                    f"{owner.name} is committing {committing.shortened()} now (gtid_owned): a"
                    f" session holds it. {until_committed(owner)}"
                )
            else:
                yield (f"{owner.name} would have a gap in its own GTIDs: {new_holes.shortened()}")
        elif own - owner.executed:
            yield (
                f"{owner.name} has not used {(own - owner.executed).shortened()} yet;"
                f" {action.server} would skip what {owner.name} later commits under these GTIDs"
            )


def no_channel_is_refused(before: Model, after: Model, _action: Action) -> Iterator[str]:
    """Require that no channel that could connect with auto-position is then refused (1236)."""
    changed = {*after.changed_since(before)}
    receiving = (each.name for name in changed for each, _ in after.replicas_of(name))
    for name in sorted({*changed, *receiving}):
        server = after[name]
        for channel in server.channels:
            if channel.source is None or channel.source not in after.servers:
                continue
            if not changed & {channel.source, server.name}:
                continue  # refused before as well, or not at all
            was = before[server.name].channel(channel.name)
            assert was is not None, "no action creates a channel"
            could = not refused(before[channel.source], before[server.name], was)
            absent = refused(after[channel.source], server, channel)
            if absent and could:
                yield (
                    f"{server.name} would get error 1236 from {channel.source}:"
                    f" {absent.shortened()}"
                )


def what_is_started_connects(_before: Model, after: Model, action: Action) -> Iterator[str]:
    """Start no channel that the source would refuse.

    A reset stops the channels of its server and starts them again. The source may no longer accept
    a receiver that is still connected.
    """
    server = after[action.server]
    for name in _started(action):
        channel = server.channel(name)
        assert channel is not None, "strategies refer to existing channels"
        source = after.servers.get(channel.source or "")
        if source is not None and is_same_server(source, server):
            yield f"{source.name} and {server.name} have the same server_id or server_uuid"
        if source is not None and channel.auto_position and not source.sends_by_sets:
            yield f"gtid_mode is not ON on {source.name}: no channel can use auto-position with it"
        if channel.lost_place and not channel.auto_position:
            yield channel.lost_place
        absent = refused(source, server, channel) if source is not None else GtidSet()
        if source is not None and absent:
            yield f"{source.name} would refuse {server.name} with error 1236: {absent.shortened()}"


def no_failing_receiver_is_started(before: Model, _after: Model, action: Action) -> Iterator[str]:
    """Start no receiver whose error shows that a start does not help.

    If two replicas have one server_uuid, a source serves the one that connected last: they
    disconnect each other in turn (sql/rpl_source.cc, kill_zombie_dump_threads).
    """
    if isinstance(action, AutoPositionOn | StartChannel | MovePast):
        channel = before[action.server].channel(action.channel)
        assert channel is not None, "strategies refer to existing channels"
        if channel.fails:
            yield f"{action.server}: {channel.fails}"


def nothing_without_gtid_is_left_out(before: Model, _after: Model, action: Action) -> Iterator[str]:
    """Let no channel request by sets what only a file position delivers, or stop at it.

    A source that was OFF or OFF_PERMISSIVE has transactions without a GTID in its log. With
    auto-position it begins in the newest file that can have a missing GTID, and sends none of those
    in older files; no set and no thread shows it. With a file position the receiver stops at one
    where gtid_mode of the source is ON (1236), and the applier where that of its server is.
    """
    if not isinstance(action, AutoPositionOn | StartChannel):
        return
    channel = before[action.server].channel(action.channel)
    assert channel is not None, "strategies refer to existing channels"
    by_sets = isinstance(action, AutoPositionOn) or channel.auto_position
    names = {channel.source or "", action.server} & before.servers.keys()
    ends = [before[name] for name in names]
    if channel.without_gtid_at and (by_sets or any(each.sends_by_sets for each in ends)):
        effect = (
            "with auto-position it is never sent"
            if by_sets
            else "the channel would stop there, because gtid_mode is ON"
        )
        yield (
            f"the log of {channel.source} has a transaction without a GTID at"
            f" {channel.without_gtid_at}, which {action.server} has not applied: {effect}. Set"
            f" gtid_mode = ON_PERMISSIVE on both, let {action.server} apply the transaction by file"
            " position (SOURCE_AUTO_POSITION = 0), set gtid_mode = ON again, then audit and plan"
            " again"
        )


def nothing_is_dropped(before: Model, _after: Model, action: Action) -> Iterator[str]:
    """Commit nothing upstream of a server that drops it: events carry the committer's server_id.

    This is independent of the GTID. The downstream receiver reads past it, and it is permanently
    missing there (H8).
    """
    if not isinstance(action, InjectEmpty | RedoTransactions):
        return
    here = before[action.server]
    for name in below(before, action.server):
        other = before[name]
        if None not in (here.server_id, other.server_id) and other.server_id == here.server_id:
            absent = action.gtids - other.executed
            if absent:
                yield (
                    f"{name} has the server_id of {action.server} and would drop"
                    f" {absent.shortened()}, which {action.server} commits: set another server_id"
                    " on one of them first"
                )


def nothing_former_is_applied(before: Model, _after: Model, action: Action) -> Iterator[str]:
    """Start no applier on what a source lost after it had sent it, in a crash or a reset.

    The source reuses these GTIDs for its next transactions, which the replica then skips. The sets
    are equal, and the rows are not.
    """
    if not isinstance(action, StartChannel):
        return
    server = before[action.server]
    channel = server.channel(action.channel)
    assert channel is not None, "strategies refer to existing channels"
    source = before.servers.get(channel.source or "")
    if source is None or not channel.may_be_former:
        return
    waiting = (channel.retrieved - server.executed).from_uuid(source.server_uuid)
    if waiting:
        yield (
            f"the relay log of {server.name} has {waiting.shortened()}, which {source.name} may"
            " have lost, in a crash or a reset, and reused for other transactions since. Save the"
            " relay log: it may be the last copy. Compare it with the log of the source, and"
            " decide which transactions are wanted; `CHANGE REPLICATION SOURCE TO"
            " SOURCE_AUTO_POSITION = 1` deletes it and fetches those of the source"
        )


def no_last_copy_is_deleted(before: Model, _after: Model, action: Action) -> Iterator[str]:
    """Delete no relay log with transactions that its source purged and its server has to apply.

    CHANGE … AUTO_POSITION = 1 deletes the relay log, and the source refuses the connection (1236).
    The model counts what running channels deliver as executed. But a delay, a lock or a long
    backlog may keep it in the relay log until after the plan.
    """
    if not isinstance(action, AutoPositionOn):
        return
    server = before[action.server]
    channel = server.channel(action.channel)
    assert channel is not None, "strategies refer to existing channels"
    source = before.servers.get(channel.source or "")
    if source is None:
        return  # what it purged is not known
    last = source.purged & server.due
    if last:
        yield (
            f"{server.name} has not applied {last.shortened()} yet, and {source.name} has purged"
            " it: the switch to auto-position would delete the relay log, its only copy, and"
            f" {source.name} would refuse {server.name} (error 1236). Wait until {server.name} has"
            " applied it, then audit and plan again"
        )


def nothing_is_skipped(before: Model, after: Model, action: Action) -> Iterator[str]:
    """Deliver nothing to a server whose applier will skip, and start no channel there.

    sql_replica_skip_counter waits for the next event group, which may be one that its sources have
    not committed yet. The transaction is received and skipped: its GTID is permanently missing
    (H8). What another channel is to deliver may arrive first.
    """
    starts = isinstance(action, AutoPositionOn | StartChannel)
    reached = {action.server, *below(after, action.server, running=True)} if starts else set()
    for server in after.servers.values():
        if not server.skips_next:
            continue
        brought = server.executed - before[server.name].executed
        if server.name == action.server:
            brought -= added_by(action)
        for channel in server.channels:
            source = channel.source or ""
            if channel.running and source in after.servers:
                brought |= after[source].executed - before[source].executed
        if brought or server.name in reached:
            yield (
                f"sql_replica_skip_counter is set on {server.name}: its applier would skip the next"
                " transaction; SET GLOBAL sql_replica_skip_counter = 0 there first"
            )


def no_channel_gets_stuck(before: Model, after: Model, _action: Action) -> Iterator[str]:
    """Require that no applier reaches an event that stops it."""
    for server in map(after.__getitem__, after.changed_since(before)):
        for channel in server.channels:
            was = before[server.name].channel(channel.name)
            assert was is not None, "no action creates a channel"
            if channel.is_stuck and not was.is_stuck:
                yield f"{server.name} would stop again at {channel.doomed.shortened()}"


def groups_are_left_alone(before: Model, _after: Model, action: Action) -> Iterator[str]:
    """Refuse to write on a member of a group, or on any server under the UUID of a known group.

    A member may have received a transaction of its group and not applied it yet. An empty
    transaction under its GTID would replace it permanently, and the group would not detect it.
    """
    changes = isinstance(
        action,
        InjectEmpty
        | AppendPurged
        | ResetAndPurge
        | RedoTransactions
        | UndoRows
        | MakeRowsAlike
        | ChangeDefinition,
    )
    member = before[action.server]
    if changes and member.group_name is not None:
        yield (
            f"{member.name} is a member of the group {member.group_name}: the group controls its"
            " GTID sets and rows; repair it through the group (let it catch up, or clone it from"
            " another member)"
        )
    for other in before.servers.values():
        if other.group_name is not None and added_by(action).from_uuid(other.group_name):
            yield (
                f"{other.group_name} is the UUID of the group of {other.name}: a GTID of a group"
                " must not be used up by hand"
            )


INVARIANTS: tuple[Invariant, ...] = (
    purged_is_executed,
    nothing_is_lost,
    reset_restores_exactly,
    only_missing_is_added,
    no_future_numbers,
    no_channel_is_refused,
    what_is_started_connects,
    no_failing_receiver_is_started,
    nothing_without_gtid_is_left_out,
    nothing_is_dropped,
    nothing_former_is_applied,
    no_last_copy_is_deleted,
    nothing_is_skipped,
    nothing_passed_arrives_elsewhere,
    no_channel_gets_stuck,
    groups_are_left_alone,
    nothing_on_an_emptied_server,
)


def broken_invariants(before: Model, after: Model, action: Action) -> tuple[str, ...]:
    """Return what an action would break, as text; empty if it is permitted."""
    return tuple(text for check in INVARIANTS for text in check(before, after, action))


def _started(action: Action) -> tuple[str, ...]:
    match action:
        case AutoPositionOn() | StartChannel():
            return (action.channel,)
        case ResetAndPurge():
            return action.restart
        case _:
            return ()

"""From one finding and one strategy to actions, or to the reason why not.

1. One function for each strategy, in the table at the end, keyed as in topology/strategies.py.
2. A strategy proposes; it does not simulate. The planner does, and an invariant may still refuse.
3. What is not planned yet is in by_hand.py, with what a person would do.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from gtid import GtidSet
from repair.actions import (
    Action,
    AppendPurged,
    AutoPositionOn,
    InjectEmpty,
    MovePast,
    ResetAndPurge,
    StartChannel,
    StopChannel,
)
from repair.case import Case, Outcome, Proposal, Refusal
from repair.data_repair import data_repair
from repair.model import Model, ModelServer, refused
from topology.dialect import dialect_of

# Three lines each: what one script may hold and a person may still look through.
INJECTED_PER_SCRIPT_MAX = 1_000
# Beyond it, and before 8.0, somebody should look for another way.
INJECTED_GTIDS_MAX = 100_000


Planner = Callable[[Case], Outcome]


def position_bypass(case: Case) -> Outcome:
    """Move past the event, fill the hole, switch auto-position on: in this order."""
    event, replica, channel = case.event, case.replica, case.channel
    if replica is None or channel is None:
        return Refusal("the replica, or its channel, could not be read")
    if event is None:
        return Refusal(
            "the failing event has not been read from the source, and a position must not be"
            " guessed; give the planning account the privilege to read the source's log"
        )
    skipped = event.before - replica.executed
    if skipped:
        return Refusal(
            f"{skipped.shortened()} stand before the failing event in the log and are not executed:"
            " the parallel applier left gaps; close them first (START … UNTIL SQL_AFTER_MTS_GAPS)"
        )
    gtid = GtidSet.of(event.gtid)
    return Proposal(
        (
            MovePast(replica.name, channel.name, event),
            InjectEmpty(replica.name, gtid, may_be_executed=True),
            AutoPositionOn(replica.name, channel.name, filled=gtid),
        )
    )


def refetch(case: Case) -> Outcome:
    """Let the source send again what is lacking."""
    replica, channel, source = case.replica, case.channel, case.source
    if replica is None or channel is None:
        return Refusal("the replica, or its channel, could not be read")
    if source is None:
        return Refusal("the source is not a server of this snapshot: nobody knows what it purged")
    if channel.is_stuck:
        return Refusal("the applier is stopped by an event; repair that first")
    gone = case.finding.gtid_set - replica.executed - source.available
    if case.is_hole and gone:
        return Refusal(f"{source.name} can no longer send {gone.shortened()}")
    if case.event is None:
        return Proposal((AutoPositionOn(replica.name, channel.name, filled=GtidSet()),))
    # Fetched again, this one would stop the applier; the others of the hole are wanted.
    event, doomed = case.event, GtidSet.of(case.event.gtid)
    return Proposal(
        (
            InjectEmpty(replica.name, doomed),
            AutoPositionOn(replica.name, channel.name, filled=doomed),
        ),
        (
            (
                f"{event.gtid} was logged on {source.name} with error {event.error_code} and would"
                f" stop the applier again; it is left empty on {replica.name}: compare what it did"
            ),
        ),
    )


def start_channel(case: Case) -> Outcome:
    """Start what is configured and stopped: the channel itself, or the way back."""
    finding = case.finding
    if finding.code in ("E1", "E2"):
        starting, sending, name = case.source, case.replica, None
    else:
        starting, sending, name = case.replica, case.source, finding.channel
    if starting is None:
        return Refusal("no channel is named, or its server could not be read: configure it by hand")
    channels = [
        channel
        for channel in starting.channels
        if (name is None or channel.name == name)
        and channel.source == (sending.name if sending is not None else None)
    ]
    if not channels:
        return Refusal(f"{starting.name} has no channel to start")
    channel = channels[0]
    # By file position a channel that brings extra transactions home might pass them by.
    by_sets = finding.code in ("E1", "E2") and not channel.auto_position
    if sending is not None:
        lacking = refused(
            sending, starting, replace(channel, auto_position=by_sets or channel.auto_position)
        )
        if lacking:
            return Refusal(
                f"{sending.name} would refuse {starting.name} with error 1236:"
                f" {lacking.shortened()}"
            )
        undelivered = finding.gtid_set & sending.purged
        if finding.code in ("E1", "E2") and undelivered:
            return Refusal(f"{sending.name} would not send {undelivered.shortened()}")
    if by_sets:
        return Proposal((AutoPositionOn(starting.name, channel.name, filled=GtidSet()),))
    return Proposal((StartChannel(starting.name, channel.name),))


def inject_empty(case: Case) -> Outcome:
    """Commit empty transactions where they are lacking; replicas first, the source last."""
    targets = _targets(case)
    if isinstance(targets, Refusal):
        return targets
    unseen = _unseen_content(case)
    if unseen is not None:
        return unseen
    most = max((gtids.gtid_count for _, gtids in targets), default=0)
    if most > INJECTED_GTIDS_MAX:
        return Refusal(f"{most:,} empty transactions are too many ({INJECTED_GTIDS_MAX:,})")
    appendable = all(dialect_of(server.version).has_purged_append for server, _ in targets)
    if most > INJECTED_PER_SCRIPT_MAX and appendable and not case.is_chosen:
        return Refusal(
            f"{most:,} transactions are more than {INJECTED_PER_SCRIPT_MAX:,}:"
            " gtid_purged_append does it in one statement"
        )
    actions = [
        InjectEmpty(server.name, part)
        for server, gtids in targets
        for part in _portions(gtids, INJECTED_PER_SCRIPT_MAX)
    ]
    return Proposal((*actions, *_way_home(case)), _content_warnings(case))


def gtid_purged_append(case: Case) -> Outcome:
    """Append to gtid_purged where they are lacking; the ends of the chain first."""
    targets = _targets(case)
    if isinstance(targets, Refusal):
        return targets
    unseen = _unseen_content(case)
    if unseen is not None:
        return unseen
    if case.unread:
        return Refusal(f"{_listed(case.unread)} could not be read, and may depend on the range")
    old = [server for server, _ in targets if not dialect_of(server.version).has_purged_append]
    if old:
        return Refusal(f"{old[0].name} runs {old[0].version}: gtid_purged cannot be appended to")
    actions = [AppendPurged(server.name, gtids) for server, gtids in targets]
    return Proposal((*actions, *_way_home(case)), _content_warnings(case))


def reset_and_purge(case: Case) -> Outcome:
    """Delete the history of one server and write it anew; its replicas are stopped meanwhile."""
    server = case.replica if case.is_hole else case.source
    if server is None:
        return Refusal("the server to reset could not be read")
    if dialect_of(server.version).has_purged_append:
        return Refusal(f"{server.name} runs {server.version}: gtid_purged_append does it without")
    if not case.is_chosen:
        return Refusal("it deletes binary logs, and is only planned when asked for by name")
    if case.unread:
        return Refusal(f"{_listed(case.unread)} could not be read, and may replicate from it")
    if server.executed != case.snapshot_executed[server.name]:
        return Refusal(
            f"{server.name} is still receiving transactions: stop all writes, wait, plan again"
        )
    below = case.model.replicas_of(server.name)
    by_position = [replica.name for replica, channel in below if not channel.auto_position]
    if by_position:
        return Refusal(
            f"{_listed(by_position)} replicates from it by file position, which a reset invalidates"
        )
    goal = server.executed | case.finding.gtid_set
    behind = [replica.name for replica, _ in below if not goal <= replica.executed]
    if behind:
        return Refusal(f"{_listed(behind)} lacks some of what only its binary logs could send")
    running = [(replica, channel) for replica, channel in below if channel.running]
    restart = tuple(channel.name for channel in server.channels if channel.running)
    actions: list[Action] = [StopChannel(each.name, channel.name) for each, channel in running]
    actions.append(
        ResetAndPurge(server.name, case.finding.gtid_set, server.executed, restart=restart)
    )
    actions.extend(StartChannel(each.name, channel.name) for each, channel in running)
    return Proposal((*actions, *_way_home(case)), _content_warnings(case))


def _targets(case: Case) -> list[tuple[ModelServer, GtidSet]] | Refusal:
    """Return where which GTIDs are lacking, in the order in which to add them.

    A hole concerns its replica. Extra transactions concern their source, and whoever else will not
    get them from a server that can still send them.
    """
    wanted = case.finding.gtid_set
    if case.is_hole:
        servers = [case.replica] if case.replica is not None else []
    elif case.source is None:
        servers = []
    else:
        held = {name for name, each in case.model.servers.items() if wanted <= each.available}
        distance = _distances(case.model, case.source.name)
        others = [
            each
            for name, each in case.model.servers.items()
            if name in distance
            and name != case.source.name
            and not held & _upstream(case.model, name)
        ]
        others.sort(key=lambda each: (-distance[each.name], each.name))
        servers = [*others, case.source]
    if not servers:
        return Refusal("the server that lacks them could not be read")
    tagged = any(tsid.tag for tsid in wanted.tsids)
    for server in servers:
        if tagged and not dialect_of(server.version).has_tags:
            return Refusal(f"{server.name} runs {server.version}, which knows no tags")
    return [(server, wanted - server.executed) for server in servers if wanted - server.executed]


def _unseen_content(case: Case) -> Refusal | None:
    """Refuse to declare content unneeded, unasked, that nobody can look at or that is wanted."""
    if case.is_chosen:
        return None
    if case.finding.code == "H1":
        return Refusal(
            "the source still has the content; ask for this by name if it was skipped on purpose"
        )
    if case.meant_to_arrive:
        return Refusal(
            f"{case.finding.source} was meant to have them: answer"
            f" {_listed(case.meant_to_arrive)} first, or ask for this by name after comparing the"
            " data"
        )
    holder = case.source if case.is_hole else case.replica
    gone = case.finding.gtid_set - holder.available if holder is not None else GtidSet()
    if gone:
        return Refusal(
            f"nobody can see any more what {gone.shortened()} did; ask for this by name after"
            " comparing the data"
        )
    return None


def _distances(model: Model, source: str) -> dict[str, int]:
    """Return how many channels lie between a server and each that receives from it."""
    distance = {source: 0}
    frontier = [source]
    while frontier:
        name = frontier.pop(0)
        for replica, _ in model.replicas_of(name):
            if replica.name not in distance:
                distance[replica.name] = distance[name] + 1
                frontier.append(replica.name)
    return distance


def _upstream(model: Model, name: str) -> set[str]:
    """Return every server a server receives from, through channels running or stopped."""
    found: set[str] = set()
    frontier = [name]
    while frontier:
        for channel in model[frontier.pop()].channels:
            source = channel.source
            if source is not None and source in model.servers and source not in found:
                found.add(source)
                frontier.append(source)
    return found


def _way_home(case: Case) -> tuple[Action, ...]:
    """Return what brings the channel concerned back, once the sets agree.

    For a hole the bypassed channel, to auto-position. For extra transactions the channel that would
    have brought them to the source, if it is stopped: the extra ones are why nobody reports it.
    """
    channel = case.channel
    if not case.is_hole and case.source is not None and case.replica is not None:
        then = replace(case.source, executed=case.source.executed | case.finding.gtid_set)
        return tuple(
            StartChannel(then.name, back.name)
            for back in then.channels
            if back.source == case.replica.name
            and not back.running
            and back.auto_position
            and not refused(case.replica, then, back)
        )
    if not case.is_hole or channel is None or case.replica is None or channel.auto_position:
        return ()
    return (AutoPositionOn(case.replica.name, channel.name, filled=case.finding.gtid_set),)


def _content_warnings(case: Case) -> tuple[str, ...]:
    count = case.finding.gtid_set.gtid_count
    lacking, holding = case.finding.replica, case.finding.source
    if not case.is_hole:
        lacking, holding = holding, lacking
    return (
        (
            f"the sets will agree, the data may not: what {count:,} transaction(s) did on {holding}"
            f" is declared unneeded on {lacking}; compare the tables they touch first"
        ),
    )


def _portions(gtids: GtidSet, count: int) -> list[GtidSet]:
    portions = []
    while gtids:
        part = gtids.first(count)
        portions.append(part)
        gtids -= part
    return portions


def _listed(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(names)


PLANNERS: Mapping[str, Planner] = {
    "position_bypass": position_bypass,
    "refetch": refetch,
    "auto_position_on": refetch,
    "inject_empty": inject_empty,
    "gtid_purged_append": gtid_purged_append,
    "reset_and_purge": reset_and_purge,
    "start_channel": start_channel,
    "data_repair": data_repair,
}

# Which findings a strategy can answer at all, whether or not the catalogue proposes it.
ANSWERS: Mapping[str, frozenset[str]] = {
    "position_bypass": frozenset({"A1"}),
    "refetch": frozenset({"H1", "C3"}),
    "auto_position_on": frozenset({"H1", "C3"}),
    "inject_empty": frozenset({"H1", "H4", "H5", "E1", "E2"}),
    "gtid_purged_append": frozenset({"H1", "H4", "H5", "E1", "E2"}),
    "reset_and_purge": frozenset({"H1", "H4", "H5", "E1", "E2"}),
    "start_channel": frozenset({"A7", "E1"}),
    "data_repair": frozenset({"E4"}),
}
assert ANSWERS.keys() == PLANNERS.keys()

"""The strategies that leave transactions out: inject_empty, gtid_purged_append, reset_and_purge.

declaring.py has what they share, undecided.py why none of them is a default.
"""

from collections.abc import Iterator

from gtid import GtidSet
from repair.doubts.forgotten_below import forgotten_below
from repair.doubts.rows_there import is_there_already, rows_now
from repair.doubts.undecided import undecided_default
from repair.model.actions import (
    Action,
    AppendPurged,
    InjectEmpty,
    ResetAndPurge,
    StartChannel,
    StopChannel,
)
from repair.model.missing_on import passed_on_by_group, roots
from repair.model.replication_model import ModelServer, below
from repair.model.strategy_case import Case, Outcome, Refusal
from repair.model.unseen_replicas import refused_for, unseen_below
from repair.strategies.declaring import declared, not_to_declare, targets_to_declare
from topology.readings.dialect import dialect_of

# Three lines each: the size of one script that an operator can still read.
INJECTED_PER_SCRIPT_MAX = 1_000
# Above this number, only a selected strategy is planned.
INJECTED_UNASKED_MAX = 10 * INJECTED_PER_SCRIPT_MAX
# Above this number, nothing is planned.
INJECTED_GTIDS_MAX = 100_000


def inject_empty(case: Case) -> Outcome:
    """Plan empty transactions where they are missing; sources first.

    They are logged, so replication delivers them to every running replica. The planner omits what
    has arrived by then.
    """
    targets = targets_to_declare(case)
    if isinstance(targets, Refusal):
        return targets
    targets = [*forgotten_below(case), *roots(case, targets[::-1])]
    undecided = undecided_default(case, targets)
    if undecided is not None:
        return undecided
    names = [server.name for server, _ in targets]
    if (why := passed_on_by_group(case.model, names, case.wanted)) is not None:
        return Refusal(why)
    most = max((gtids.gtid_count for _, gtids in targets), default=0)
    if most > INJECTED_GTIDS_MAX:
        return Refusal(
            f"{most:,} empty transactions are too many (the limit is {INJECTED_GTIDS_MAX:,})"
        )
    if most > INJECTED_UNASKED_MAX and not case.is_chosen:
        return Refusal(
            f"{most:,} empty transactions are more than {INJECTED_UNASKED_MAX:,}; select"
            " gtid_purged_append (one statement, 8.0 and later) or inject_empty with --strategy"
        )
    content = case.content
    rows_are_there = (
        is_there_already(case)
        and content is not None
        and bool(content.needing_decision(case.wanted))
    )
    actions = [
        InjectEmpty(
            server.name,
            part,
            rows_are_there=rows_are_there,
            rows=rows_now(content, server.name) if rows_are_there and content is not None else (),
        )
        for server, gtids in targets
        for part in _portions(gtids, INJECTED_PER_SCRIPT_MAX)
    ]
    return declared(case, targets, actions)


def gtid_purged_append(case: Case) -> Outcome:
    """Plan to append to gtid_purged where they are missing; the ends of the chain first."""
    if not case.is_chosen:
        return Refusal("it declares the transactions purged: only planned when selected")
    targets = targets_to_declare(case)
    if isinstance(targets, Refusal):
        return targets
    if case.unread:
        names = ", ".join(case.unread)
        return Refusal(f"{names} could not be read, and may still need these transactions")
    if (why := refused_for(case.unseen_below)) is not None:
        return Refusal(why)
    old = [server for server, _ in targets if not dialect_of(server.version).has_purged_append]
    if old:
        return Refusal(f"{old[0].name} runs {old[0].version}, which cannot append to gtid_purged")
    if (late := _late_below(case, targets)) is not None:
        return late
    return declared(case, targets, [AppendPurged(server.name, gtids) for server, gtids in targets])


def _late_below(case: Case, targets: list[tuple[ModelServer, GtidSet]]) -> Refusal | None:
    """Refuse to purge upstream of a server that is to receive the transactions from elsewhere.

    A lock may hold up that channel, or its applier may skip them. Then the server can never get
    them from here, and is refused (1236) at its next connection.
    """
    added = {server.name: gtids for server, gtids in targets}
    late = {
        name
        for server, gtids in targets
        for name in below(case.model, server.name)
        if (gtids & case.model[name].executed) - case.was_there(name) - added.get(name, GtidSet())
    }
    if not late:
        return None
    return Refusal(
        f"{', '.join(sorted(late))} had not applied {case.wanted.shortened()} when the servers were"
        " read, and cannot get it from a server that has purged it. Wait until it has arrived"
        " there, then audit and plan again"
    )


def reset_and_purge(case: Case) -> Outcome:
    """Plan to delete and rewrite the history of one server, while its replicas are stopped."""
    server = case.target
    if server is None:
        return Refusal("the server to reset could not be read")
    if dialect_of(server.version).has_purged_append:
        return Refusal(f"{server.name} runs {server.version}: gtid_purged_append needs no reset")
    if (why := not_to_declare(case)) is not None:
        return Refusal(why)
    if not case.is_chosen:
        return Refusal("it deletes binary logs: only planned when selected")
    if case.unread:
        return Refusal(f"{', '.join(case.unread)} could not be read, and may replicate from it")
    if (why := refused_for(unseen_below(case.unseen, case.model, [server.name]))) is not None:
        return Refusal(why)
    if server.executed != case.snapshot_executed[server.name]:
        return Refusal(
            f"{server.name} is still receiving transactions: stop all writes, wait, and plan again"
        )
    below = case.model.replicas_of(server.name)
    by_position = [replica.name for replica, channel in below if not channel.auto_position]
    if by_position:
        return Refusal(
            f"{', '.join(by_position)} replicates from it by file position, which a reset"
            " invalidates"
        )
    goal = server.executed | case.wanted
    # A receiver may drop what the model lets arrive: only what was read counts.
    behind = [
        replica.name
        for replica, _ in below
        if not goal <= replica.executed & case.was_there(replica.name)
    ]
    if behind:
        return Refusal(
            f"{', '.join(behind)} still needs transactions that are only in the binary logs of"
            f" {server.name}"
        )
    running = [(replica, channel) for replica, channel in below if channel.running]
    restart = tuple(channel.name for channel in server.channels if channel.running)
    actions: list[Action] = [StopChannel(each.name, channel.name) for each, channel in running]
    actions.append(ResetAndPurge(server.name, case.wanted, server.executed, restart=restart))
    actions.extend(StartChannel(each.name, channel.name) for each, channel in running)
    return declared(case, [(server, case.wanted)], actions)


def _portions(gtids: GtidSet, count: int) -> Iterator[GtidSet]:
    while gtids:
        part = gtids.first(count)
        yield part
        gtids -= part

"""Strategies that declare transactions unneeded: empty transactions, gtid_purged, and the reset.

How it works
------------
Each of them requires three conditions, unless the operator selected the strategy:

1. The content was read, and every transaction is empty or harmless (transaction_content.py), or its
   rows are already on the target. There is no default for data: the refusal lists tables, rows,
   times and the choices.
2. No channel would deliver the transactions if it were repaired and started. Delivery has priority:
   an empty transaction must not replace one that can arrive.
3. No other finding explains why they are missing on a server that should have them.

A selected strategy is planned, and its warnings list what is lost. If a log still has the content,
the plan saves it as SQL in a file next to the scripts. Invariants may still refuse the strategy.
"""

from collections.abc import Iterator, Sequence

from gtid import GtidSet
from repair.actions import (
    Action,
    AppendPurged,
    InjectEmpty,
    ResetAndPurge,
    StartChannel,
    StopChannel,
    simulate,
)
from repair.conflicts import behind_later_ones, not_to_go_on
from repair.forgotten_below import forgotten_below
from repair.missing_on import not_all_read, not_reached, roots, targets_without, unfinished
from repair.model import ModelServer, below, upstream, with_all_channels_repaired
from repair.needed import needed
from repair.offered import offered
from repair.replay_texts import CannotSave, saved_content
from repair.rows_there import is_there_already, is_there_by_later_ones, not_decided_by_rows
from repair.strategy_case import Case, Outcome, Proposal, Refusal, SavedContent
from repair.transaction_content import RowState, described
from repair.unshown import no_longer_shown
from repair.way_home import fetches_again, misfits_at_home, way_home
from repair.xa_halves import halves_left_out
from topology.dialect import dialect_of
from topology.findings import Grade
from topology.transaction_class import ContentClass

# Three lines each: the size of one script that an operator can still read.
INJECTED_PER_SCRIPT_MAX = 1_000
# Above this number, only a selected strategy is planned.
INJECTED_UNASKED_MAX = 10 * INJECTED_PER_SCRIPT_MAX
# Above this number, nothing is planned.
INJECTED_GTIDS_MAX = 100_000
ONLY_SELECTED = "it leaves the transactions out: only planned when selected"


def inject_empty(case: Case) -> Outcome:
    """Plan empty transactions where they are missing; sources first.

    They are logged, so replication delivers them to every running replica. The planner omits what
    has arrived by then.
    """
    targets = _targets(case)
    if isinstance(targets, Refusal):
        return targets
    targets = [*forgotten_below(case), *roots(case, targets[::-1])]
    undecided = _undecided(case, targets)
    if undecided is not None:
        return undecided
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
        InjectEmpty(server.name, part, rows_are_there=rows_are_there)
        for server, gtids in targets
        for part in _portions(gtids, INJECTED_PER_SCRIPT_MAX)
    ]
    return _declared(case, targets, actions)


def gtid_purged_append(case: Case) -> Outcome:
    """Plan to append to gtid_purged where they are missing; the ends of the chain first."""
    if not case.is_chosen:
        return Refusal("it declares the transactions purged: only planned when selected")
    targets = _targets(case)
    if isinstance(targets, Refusal):
        return targets
    if case.unread:
        names = _listed(list(case.unread))
        return Refusal(f"{names} could not be read, and may still need these transactions")
    old = [server for server, _ in targets if not dialect_of(server.version).has_purged_append]
    if old:
        return Refusal(f"{old[0].name} runs {old[0].version}, which cannot append to gtid_purged")
    if (late := _late_below(case, targets)) is not None:
        return late
    return _declared(case, targets, [AppendPurged(server.name, gtids) for server, gtids in targets])


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
        f"{_listed(sorted(late))} had not applied {case.wanted.shortened()} when the servers were"
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
    if (why := not_to_go_on(case)) is not None:
        return Refusal(why)
    if not case.is_chosen:
        return Refusal("it deletes binary logs: only planned when selected")
    if case.unread:
        return Refusal(f"{_listed(list(case.unread))} could not be read, and may replicate from it")
    if server.executed != case.snapshot_executed[server.name]:
        return Refusal(
            f"{server.name} is still receiving transactions: stop all writes, wait, and plan again"
        )
    below = case.model.replicas_of(server.name)
    by_position = [replica.name for replica, channel in below if not channel.auto_position]
    if by_position:
        return Refusal(
            f"{_listed(by_position)} replicates from it by file position, which a reset invalidates"
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
            f"{_listed(behind)} still needs transactions that are only in the binary logs of"
            f" {server.name}"
        )
    running = [(replica, channel) for replica, channel in below if channel.running]
    restart = tuple(channel.name for channel in server.channels if channel.running)
    actions: list[Action] = [StopChannel(each.name, channel.name) for each, channel in running]
    actions.append(ResetAndPurge(server.name, case.wanted, server.executed, restart=restart))
    actions.extend(StartChannel(each.name, channel.name) for each, channel in running)
    return _declared(case, [(server, case.wanted)], actions)


def _targets(case: Case) -> list[tuple[ModelServer, GtidSet]] | Refusal:
    """Return the servers where GTIDs are missing, with these GTIDs, in the order to add them.

    A gap concerns its replica. Extra transactions concern every linked server that does not have
    them and will not get them from a server that can still send them.
    """
    wanted = case.wanted
    if not wanted:
        return Refusal(
            "the transactions could not be identified; audit again, or read the error log"
        )
    if (why := not_to_go_on(case)) is not None:
        return Refusal(why)
    if case.is_hole:
        if case.replica is None:
            return Refusal("the server on which they are missing could not be read")
        there = (wanted & case.replica.executed) - case.declared_on(case.replica.name)
        coming = there - case.snapshot_executed[case.replica.name]
        if coming or (there and wanted <= case.replica.executed):
            return Refusal(_comes_anyway(case, case.replica, coming or there))
        found = [(case.replica, wanted - case.replica.executed)]
    else:
        targets = targets_without(case)
        if isinstance(targets, Refusal):
            return targets
        held = {name for name, each in case.model.servers.items() if wanted <= each.available}
        found = [
            (server, gtids)
            for server, gtids in targets
            if server == case.source or not held & upstream(case.model, server.name)
        ]
    tagged = any(tsid.tag for tsid in wanted.tsids)
    for server, _ in found:
        if tagged and not dialect_of(server.version).has_tags:
            return Refusal(f"{server.name} runs {server.version}, which does not support GTID tags")
    return [(server, gtids) for server, gtids in found if gtids]


def _comes_anyway(case: Case, replica: ModelServer, coming: GtidSet) -> str:
    """Return what to do about transactions of a gap that another channel is to deliver."""
    content = case.content
    if content is not None and content.state_on(replica.name).state is RowState.AS_AFTER:
        return (
            f"another channel of {replica.name} will deliver {coming.shortened()}, whose rows are"
            " already there: that channel would stop or duplicate data. Stop the receivers of"
            f" {replica.name}, audit and plan again"
        )
    return (
        f"replication will deliver {coming.shortened()} to {replica.name}: wait until it has"
        " arrived, then audit and plan again"
    )


def _goes_on(case: Case) -> Refusal | None:
    """Refuse while the holder of errant transactions commits more of them.

    What it committed between the readings is not confirmed yet. Once it is, one finding covers all
    of them, and their content may need a decision.
    """
    replica, source = case.replica, case.source
    if replica is None or source is None or replica.name in upstream(case.model, source.name):
        return None
    own = (replica.executed - source.executed - case.wanted).from_uuid(replica.server_uuid)
    if not own:
        return None
    return Refusal(
        f"{replica.name} still commits transactions that {source.name} does not have"
        f" ({own.shortened()}): stop all writes to {replica.name}, then audit and plan again"
    )


def _undecided(case: Case, targets: list[tuple[ModelServer, GtidSet]]) -> Refusal | None:
    """Refuse what needs a decision that the operator has not made."""
    if case.is_chosen:
        return None
    if case.finding.code[0] in "AP":
        return Refusal(ONLY_SELECTED)
    if case.meant_to_arrive:
        return Refusal(
            f"{case.finding.source} should have received them: repair"
            f" {_listed(case.meant_to_arrive)} first, or compare the data and select a strategy"
        )
    if case.finding.grade is not Grade.PROVED and (why := not_decided_by_rows(case)) is not None:
        return Refusal(why)
    if case.is_hole and case.channel is not None and case.channel.may_be_former:
        return Refusal(
            f"{case.finding.source} may have reused the GTIDs after a reset or a crash: what"
            f" {case.finding.replica} received may be other transactions than those that were read"
        )
    if (why := not_all_read(case)) is not None:
        return Refusal(why)
    if is_there_already(case):
        return None
    undecided = _needs_decision(case) or no_longer_shown(case)
    if undecided is not None:
        return undecided
    unreached = None if case.is_hole else _goes_on(case) or not_reached(case, targets)
    if unreached is not None:
        return unreached
    deliverable = _deliverable(case, targets)
    if deliverable:
        return Refusal(
            f"a channel can still deliver {deliverable.shortened()}: repair and start"
            " replication first, then plan again"
        )
    return None


def _needs_decision(case: Case) -> Refusal | None:
    wanted, content = case.wanted, case.content
    if content is None:
        return Refusal(
            f"the content of {wanted.shortened()} has not been read, and unread content must not"
            " be declared unneeded"
        )
    if not content.needing_decision(wanted):
        return None
    return Refusal(
        f"its content needs a decision by the operator ({described(content, wanted)}). Nothing is"
        f" done by default: choose with {offered(case)}"
    )


def _deliverable(case: Case, targets: list[tuple[ModelServer, GtidSet]]) -> GtidSet:
    """Return what would arrive on a target if every channel were repaired and started."""
    repaired = with_all_channels_repaired(case.model)
    return GtidSet.union_of(gtids & repaired[server.name].executed for server, gtids in targets)


def _declared(
    case: Case, targets: list[tuple[ModelServer, GtidSet]], actions: Sequence[Action]
) -> Outcome:
    """Return the proposal, with a list of what is lost and the file that saves it."""
    if (first := fetches_again(case)) is not None:
        return first
    saved, problems = _saved(case)
    warnings = (
        *_content_warnings(case, targets, actions),
        *problems,
        *behind_later_ones(case),
        *misfits_at_home(case, actions),
        *unfinished(case, [server.name for server, _ in targets]),
    )
    return Proposal((*actions, *way_home(case)), warnings, saved)


def _saved(case: Case) -> tuple[tuple[SavedContent, ...], tuple[str, ...]]:
    """Return the content as a file next to the scripts, or why it could not be saved."""
    content, wanted = case.content, case.wanted
    needing = wanted if content is None else content.needing_decision(wanted)
    if not needing or is_there_already(case):
        return (), ()
    try:
        return (saved_content(case.finding, content),), ()
    except CannotSave as problem:
        return (), (f"the content of {needing.shortened()} is NOT saved: {problem}",)


def _content_warnings(
    case: Case, targets: list[tuple[ModelServer, GtidSet]], actions: Sequence[Action]
) -> Iterator[str]:
    content, wanted = case.content, case.wanted
    names = _listed(_receiving(case, targets, actions)) or "no server"
    if content is not None and not content.needing_decision(wanted):
        return
    if is_there_already(case):
        as_now = f"later transactions of {case.finding.source} left them there"
        how = as_now if is_there_by_later_ones(case) else "the transactions left them"
        yield (
            f"the rows of {wanted.shortened()} are already on {names}, as {how}. The plan commits"
            " empty transactions instead, and replication delivers these to replicas. A replica of"
            f" {names} that is not in this snapshot and does not have the rows never gets them:"
            " add it to the audit"
        )
        return
    what = "its content was not read" if content is None else described(content, wanted)
    yield (
        f"the GTID sets will agree and the data will NOT: what {wanted.shortened()} did is left"
        f" out permanently on {names} ({what})"
    )
    if content is not None:
        yield from halves_left_out(content, names)
    unread = wanted if content is None else wanted & content.of_class(ContentClass.UNREAD)
    if unread:
        yield (
            f"no log shows what {unread.shortened()} did: compare the data of {names} with a server"
            " that has it before you run this (a checksum tool, or a dump of both)"
        )
    deliverable = _deliverable(case, targets)
    if deliverable:
        yield (
            f"replication could still deliver {deliverable.shortened()} to {names}: this strategy"
            " prevents it"
        )


def _receiving(
    case: Case, targets: list[tuple[ModelServer, GtidSet]], actions: Sequence[Action]
) -> list[str]:
    """Return the targets, and the servers that receive the empty transactions by replication."""
    after = case.model
    for action in actions:
        left = needed(after, action)
        after = after if left is None else simulate(after, left)
    others = (
        name
        for name, server in case.model.servers.items()
        if case.wanted & (after[name].executed - server.executed)
    )
    return list(dict.fromkeys((*(server.name for server, _ in targets), *others)))


def _portions(gtids: GtidSet, count: int) -> Iterator[GtidSet]:
    while gtids:
        part = gtids.first(count)
        yield part
        gtids -= part


def _listed(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(names)

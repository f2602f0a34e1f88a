"""What strategies share that declare transactions unneeded: where, the warnings, what is saved.

How it works
------------
The strategies are in leaving_out.py. Unless the operator selected one, there are three conditions
(undecided.py):

1. The content was read, and every transaction is empty or harmless (transaction_content.py), or its
   rows are already on the target. There is no default for data: the refusal lists tables, rows,
   times and the choices.
2. No channel would deliver the transactions if it were repaired and started. Delivery has priority:
   an empty transaction must not replace one that can arrive.
3. No other finding explains why they are missing on a server that should have them.

A selected strategy is planned, and its warnings list what is lost. One exception: while servers
that were not read may still deliver the transactions, nothing is declared, as nothing is redone or
undone. The empty transaction would keep out what arrives afterwards, and the sets would agree: no
later audit of the same servers shows the loss. If a log still has the content,
the plan saves it as SQL in a file next to the scripts. Invariants may still refuse the strategy.
"""

from collections.abc import Iterator, Sequence

from gtid import GtidSet
from repair.content.transaction_content import RowState, described
from repair.doubts.rows_there import is_there_already, is_there_by_later_ones
from repair.doubts.undecided import deliverable_to
from repair.doubts.xa_halves import halves_left_out
from repair.model.actions import Action, simulate
from repair.model.missing_on import may_be_on_their_way, targets_without, unfinished
from repair.model.remaining_action import remaining_part
from repair.model.replication_model import ModelServer, upstream
from repair.model.strategy_case import (
    LEFT_OUT,
    MAY_DIFFER,
    Case,
    Outcome,
    Proposal,
    Refusal,
    Saved,
)
from repair.scripts.replay_texts import CannotSave, saved_content, streamed_content
from repair.strategies.conflicts import behind_later_ones, not_to_go_on
from repair.strategies.resuming import fetches_again, misfits_when_resumed, resuming_actions
from topology.readings.content_class import ContentClass
from topology.readings.dialect import dialect_of


def targets_to_declare(case: Case) -> list[tuple[ModelServer, GtidSet]] | Refusal:
    """Return the servers where GTIDs are missing, with these GTIDs, in the order to add them.

    A gap concerns its replica. Extra transactions concern every linked server that does not have
    them and will not get them from a server that can still send them.
    """
    wanted = case.wanted
    if not wanted:
        return Refusal(
            "the transactions could not be identified; audit again, or read the error log"
        )
    if (why := not_to_declare(case)) is not None:
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


def not_to_declare(case: Case) -> str | None:
    """Return why the transactions must not be declared executed, or need not be; None if neither.

    This holds for selected strategies as well.
    """
    if case.is_executed_since:
        return (
            f"{case.wanted.shortened()} is executed on {case.finding.replica}: to declare it"
            " changes nothing, and the applier continues after it when it is started"
        )
    return may_be_on_their_way(case) or not_to_go_on(case)


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


def declared(
    case: Case, targets: list[tuple[ModelServer, GtidSet]], actions: Sequence[Action]
) -> Outcome:
    """Return the proposal, with a list of what is lost and the file that saves it."""
    if (first := fetches_again(case)) is not None:
        return first
    names = _receiving(case, targets, actions)
    saved, problems = _saved(case) if names else ((), ())
    warnings = (
        *(_content_warnings(case, targets, ", ".join(names)) if names else _nothing_left(case)),
        *problems,
        *behind_later_ones(case),
        *misfits_when_resumed(case, actions, leaves_out=True),
        *unfinished(case, [server.name for server, _ in targets]),
    )
    return Proposal((*actions, *resuming_actions(case)), warnings, saved)


def _saved(case: Case) -> tuple[tuple[Saved, ...], tuple[str, ...]]:
    """Return the content as a file next to the scripts, or why it could not be saved.

    What cannot be part of the plan's text is streamed from the log. Only what no log has, or what
    no SQL can express, is not saved.
    """
    content, wanted = case.content, case.wanted
    needing = wanted if content is None else content.needing_decision(wanted)
    if not needing or is_there_already(case):
        return (), ()
    try:
        return (saved_content(case.finding, wanted, content),), ()
    except CannotSave as problem:
        why = str(problem)
    server = case.model.servers.get(content.read_from or "") if content is not None else None
    if content is None or server is None:
        return (), (_not_saved(needing, why),)
    there = needing & server.available
    if not there:
        return (), (_not_saved(needing, why),)
    if content.unwritable:
        return (), (_not_saved(needing, content.unwritable, server.name),)
    left = needing - there
    problems = (_not_saved(left, f"it is in no binary log of {server.name}"),) if left else ()
    return (streamed_content(case.finding, server.name, there),), problems


def _not_saved(gtids: GtidSet, why: str, server: str = "") -> str:
    keep = f". Copy the binary logs of {server} that have it before you run this" if server else ""
    return f"the content of {gtids.shortened()} is NOT saved: {why}{keep}"


def _nothing_left(case: Case) -> Iterator[str]:
    """Yield that the steps for other findings leave nothing to declare: their warnings hold."""
    finding = case.finding
    channel = f", channel {finding.channel}" if finding.channel else ""
    yield (
        f"{finding.code} {finding.source} → {finding.replica}{channel}: the other steps of this"
        f" plan already leave {case.wanted.shortened()} out. For this finding nothing more is left"
        " out"
    )


def _content_warnings(
    case: Case, targets: list[tuple[ModelServer, GtidSet]], names: str
) -> Iterator[str]:
    """Yield what is left out on the servers `names`, and what that means for their rows."""
    content, wanted = case.content, case.wanted
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
        if is_there_by_later_ones(case):
            assert content is not None, "its rows were compared"
            tables = ", ".join(f"{each.schema}.{each.table}" for each in content.tables)
            yield (
                f"later transactions changed rows of {wanted.shortened()} in {tables} again. They"
                f" were equal on {names} and {case.finding.source} when the plan was made, and the"
                " scripts look for these values. If clients have changed them since, a script"
                " stops: then audit and plan again"
            )
            yield (
                f"audits with --content may report E4 for {wanted.shortened()}, and for the later"
                f" transactions that changed these rows: the logs of {names} and"
                f" {case.finding.source} show different contents, and no step changes a log."
                " `repair check-data` shows whether the rows are equal"
            )
        return
    what = "its content was not read" if content is None else described(content, wanted)
    yield (
        f"{LEFT_OUT}what {wanted.shortened()} did is left out permanently on {names} ({what})."
        " Later changes of the rows that differ then stop an applier, or replace them on the"
        " servers that have them"
    )
    if content is not None:
        yield from halves_left_out(content, names)
    unread = wanted if content is None else wanted & content.of_class(ContentClass.UNREAD)
    if unread:
        yield (
            f"{MAY_DIFFER}THE DATA WAS NOT CHECKED: no log shows what {unread.shortened()} did."
            f" Compare the rows of {names} with a server that has it before you run this"
            " (`gtid-audit repair check-data --as-they-are`)"
        )
    unlogged = _unlogged_above(case) - unread
    if unlogged:
        yield (
            f"{MAY_DIFFER}{case.finding.source} has {unlogged.shortened()} in no binary log, so"
            f" audits compare nothing there with the empty transactions of {names}"
        )
    deliverable = deliverable_to(case, targets)
    if deliverable:
        yield (
            f"replication could still deliver {deliverable.shortened()} to {names}: this strategy"
            " prevents it"
        )


def _unlogged_above(case: Case) -> GtidSet:
    """Return what the source of the finding has, and no audit compares along its channel."""
    source = case.model.servers.get(case.finding.source or "")
    if source is None:
        return GtidSet()
    return (case.wanted & source.executed) - source.available


def _receiving(
    case: Case, targets: list[tuple[ModelServer, GtidSet]], actions: Sequence[Action]
) -> list[str]:
    """Return the targets, and the servers that receive the empty transactions by replication."""
    after = case.model
    for action in actions:
        left = remaining_part(after, action)
        after = after if left is None else simulate(after, left)
    others = (
        name
        for name, server in case.model.servers.items()
        if case.wanted & (after[name].executed - server.executed)
    )
    return list(dict.fromkeys((*(server.name for server, _ in targets), *others)))

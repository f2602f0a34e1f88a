"""The strategy that undoes transactions on the servers that have them.

1. It is never a default: only the operator can decide whether the transactions are wanted.
2. Undo sets the rows back without logging it (no new GTID), on every server that has the
   transactions. The GTIDs stay executed there, so the plan uses them up with empty transactions
   wherever they are missing. Otherwise the origin would reuse them for its next transactions, which
   these servers would skip. Rows come first: if a plan stops midway, the audit still reports the
   finding, and the next plan continues with the remaining rows.
3. What cannot be undone row by row is refused with the reason. No transaction is undone in part.
"""

from collections.abc import Iterator
from dataclasses import replace

from binlog.rows.values import ABSENT
from gtid import GtidSet
from repair.content.row_versions import RowVersions, by_table
from repair.content.transaction_content import (
    NetRow,
    RowState,
    TransactionContent,
    described,
    key_condition,
)
from repair.doubts.redo_rows import EMPTY_BY_HAND, NOT_UNASKED, may_be_there
from repair.model.actions import Action, AutoPositionOn, InjectEmpty, StartChannel, UndoRows
from repair.model.missing_on import (
    belongs_elsewhere,
    came_from_source,
    not_all_read,
    roots,
    still_receive,
    targets_without,
    unfinished,
)
from repair.model.replication_model import ModelServer
from repair.model.strategy_case import Case, Outcome, Proposal, Refusal
from repair.sql.row_literals import CannotRender
from repair.sql.row_sql import member_columns, needs_lenience, redo_row
from repair.strategies.resuming import misfits_when_resumed, resuming_actions
from topology.readings.content_class import ContentClass


def undo_on_replica(case: Case) -> Outcome:
    """Plan to set the rows back on every server with the transactions, and use up their GTIDs."""
    content, wanted = case.content, case.finding.gtid_set
    if not case.is_chosen:
        return Refusal(NOT_UNASKED)
    if case.source is not None and wanted <= case.source.executed:
        return Proposal(())  # the steps for another replica used up the GTIDs
    why = not_all_read(case) or belongs_elsewhere(case) or came_from_source(case)
    if why is not None:
        return Refusal(why)
    if content is None or content.read_from is None:
        return Refusal(f"the content could not be read: {content.unread if content else 'no log'}")
    barred = content.of_class(ContentClass.DDL, ContentClass.UNREAD) & wanted
    if barred:
        return Refusal(
            f"{described(content, wanted)}: only rows can be undone; {_undo_by_hand(case)}"
        )
    if content.rows is None:
        return Refusal(f"{content.rows_unread}; {_undo_by_hand(case)}")
    if (why := case.overtaken()) is not None:
        return Refusal(why)
    targets = targets_without(case)
    if isinstance(targets, Refusal):
        return targets
    holders = [each for each in case.model.servers.values() if wanted & each.executed]
    partial = [each.name for each in holders if not wanted <= each.executed]
    if partial:
        return Refusal(f"{', '.join(partial)} has only a part of them: repair that first")
    if reason := _stays_elsewhere(case, content, [server for server, _ in targets]):
        return Refusal(reason)
    if reason := still_receive(case, holders, {server.name for server, _ in targets}):
        return Refusal(reason)
    states = {server.name: content.state_on(server.name) for server in holders}
    barred_on = [
        f"{name}: {on.why}"
        for name, on in states.items()
        if on.is_bound or on.is_missing or on.is_unlike
    ]
    if barred_on:
        return Refusal(f"{'; '.join(barred_on)}; {_undo_by_hand(case)}")
    # An undo that stopped between two scripts leaves each row as before or as after.
    changed = [
        f"{name}: {on.why}"
        for name, on in states.items()
        if on.state is RowState.CONFLICT and not on.is_in_part
    ]
    if changed:
        return Refusal(f"rows were changed since: {'; '.join(changed)}; {_undo_by_hand(case)}")
    try:
        rows = [row for net in content.rows if (row := _undone(net)) is not None]
    except CannotRender as refusal:
        return Refusal(f"{refusal}; {_undo_by_hand(case)}")
    undone = tuple(each for server in holders for each in _undo_actions(server.name, wanted, rows))
    unused = list(roots(case, targets[::-1]))
    actions: list[Action] = [
        *undone,
        *(InjectEmpty(server.name, gtids, undone=undone) for server, gtids in unused),
    ]
    left = unfinished(case, [server.name for server, _ in unused])
    unfit = misfits_when_resumed(case, actions)
    return Proposal((*actions, *_resumed(case)), (*_undo_warnings(case, content), *left, *unfit))


def _resumed(case: Case) -> Iterator[StartChannel | AutoPositionOn]:
    """Yield the starts at the end; each requires that the source has not reused its lost GTIDs."""
    source = case.source
    for step in resuming_actions(case):
        own = case.finding.gtid_set.from_uuid(source.server_uuid) if source else GtidSet()
        channel = case.model[step.server].channel(step.channel)
        is_its = source is not None and channel is not None and channel.source == source.name
        yield replace(step, used_up=own) if is_its and isinstance(step, StartChannel) else step


def _stays_elsewhere(
    case: Case, content: TransactionContent, without_gtids: list[ModelServer]
) -> str:
    """Return why rows may stay on a server without the GTIDs; "" if they are not there.

    An undo covers the servers that have the GTIDs. If another server has the rows without a GTID,
    or under others, the servers would differ afterwards.
    """
    for server in without_gtids:
        if not content.state_on(server.name).is_absent and (
            reason := may_be_there(case, content, server)
        ):
            return f"{reason}. An undo would remove the rows only from the other servers"
    return ""


def _undo_by_hand(case: Case) -> str:
    """Return how an operator undoes what no script can, in full or in part.

    Unlogged, because a logged undo would be errant as well. And the GTIDs are used up, because the
    source would reuse its own for other transactions, which servers that have them skip.
    """
    wanted = case.finding.gtid_set
    holders = [each.name for each in case.model.servers.values() if wanted & each.executed]
    targets = targets_without(case)
    others = [] if isinstance(targets, Refusal) else [server.name for server, _ in targets]
    return (
        f"by hand, on {', '.join(holders)}: `gtid-audit binlog show '{wanted}' SERVER --undo"
        " --schema-from SERVER` (SERVER is its DSN) writes what can be undone; run that script"
        " after `SET SESSION sql_log_bin = 0`, in the same session. Then use up each of the GTIDs"
        f" on {', '.join(others) or 'every other server'}: {EMPTY_BY_HAND}"
    )


def _undone(net: NetRow) -> RowVersions | None:
    """Return what sets a row back; None if nothing is needed. Raises CannotRender."""
    if net.before is None and net.after is None:
        return None
    if net.before is None or net.after is None:
        incomplete = net.before is not None and ABSENT in net.before
    else:
        incomplete = any(
            old is ABSENT and new is not ABSENT
            for old, new in zip(net.before, net.after, strict=True)
        )
    where = key_condition(net.table, net.key_image)
    member_columns(net.table)  # the script can compare them
    if incomplete:
        raise CannotRender(
            f"{net.table.name}, {where}: the log does not contain the whole row (binlog_row_image"
            " is not FULL)"
        )
    row = RowVersions(net.table, where, source=net.before, replica=net.after, differing=())
    if needs_lenience(row.table, row.change):
        raise CannotRender(f"{net.table.name}, {where}: an ENUM has the error value ''")
    return row if redo_row(row.table, row.change) is not None else None


def _undo_actions(server: str, wanted: GtidSet, rows: list[RowVersions]) -> Iterator[UndoRows]:
    for of_table in by_table(rows):
        yield UndoRows(server, wanted, of_table)


def _undo_warnings(case: Case, content: TransactionContent) -> Iterator[str]:
    if case.finding.code == "E3":
        yield (
            f"stop all writes on {case.finding.source} before you make the plan, until its last"
            " script is done (`SET GLOBAL super_read_only = ON`, on 5.6 `read_only`): what clients"
            " commit under the lost GTIDs never arrives on its replicas. The scripts stop if"
            f" {case.finding.source} has committed anything since the plan was made"
        )
    yield (
        f"this plan undoes: {described(content, case.finding.gtid_set)}. The binary logs still"
        " contain the transactions: a server that is restored from a backup and these logs has the"
        " rows again"
    )

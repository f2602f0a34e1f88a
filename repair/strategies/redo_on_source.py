"""The strategy that redoes transactions where they are missing, under their original GTIDs.

1. It is never a default: only the operator can decide whether the transactions are wanted.
2. Every other server either gets the transactions by replication, or skips them because it has
   them.
3. What a script cannot check, or what would happen twice, is refused with the reason.
"""

from collections.abc import Iterator

from gtid import GtidSet
from repair.content.transaction_content import TransactionContent, described
from repair.doubts.acting_again import acts_again, unguarded_statements
from repair.doubts.logged_form import left_out_of_log, logged_otherwise
from repair.doubts.no_rollback import takes_gtid_with_first_row
from repair.doubts.other_columns import columns_not_compared, other_columns
from repair.doubts.redo_rows import (
    EMPTY_BY_HAND,
    NOT_UNASKED,
    behind_later_work,
    changed_since,
    compared,
    may_be_there,
    redone_rows_may_come_back,
    stops_below,
)
from repair.model.actions import Action, RedoTransactions, simulate
from repair.model.missing_on import (
    belongs_elsewhere,
    came_from_source,
    not_all_read,
    other_sources,
    others_left_out,
    passed_on_by_group,
    where_to_redo,
)
from repair.model.replication_model import ModelServer
from repair.model.strategy_case import Case, Outcome, Proposal, Refusal
from repair.scripts.replay_texts import CannotSave, check_plain
from repair.strategies.resuming import misfits_when_resumed, resuming_actions
from topology.readings.content_class import ContentClass
from topology.readings.dialect import dialect_of


def redo_on_source(case: Case) -> Outcome:
    """Plan to redo the transactions on the source, under their GTIDs."""
    content, source = case.content, case.source
    if not case.is_chosen:
        return Refusal("; ".join((NOT_UNASKED, *others_left_out(case))))
    why = not_all_read(case) or belongs_elsewhere(case) or came_from_source(case)
    if why is not None:
        return Refusal(why)
    if source is None:
        return Refusal("the source could not be read")
    missing = case.finding.gtid_set - source.executed
    if content is None or content.read_from is None:
        return Refusal(f"the content could not be read: {content.unread if content else 'no log'}")
    if any(tsid.tag for tsid in missing.tsids) and not dialect_of(source.version).has_tags:
        return Refusal(f"{source.name} runs {source.version}, which does not support GTID tags")
    redone = tuple(each for each in content.redo if each.gtid is not None and each.gtid in missing)
    unread = missing - GtidSet.of(each.gtid for each in redone if each.gtid is not None)
    if idle := unread & content.of_class(ContentClass.EMPTY, ContentClass.HARMLESS):
        return Refusal(
            f"{idle.shortened()} is empty or harmless (FLUSH, heartbeats), and is not redone: use"
            f" up these GTIDs on {source.name} ({EMPTY_BY_HAND}), and plan again"
        )
    if unread:
        above = "" if content.redo else content.rows_unread  # a limit: then there is no SQL at all
        why = content.unread or above or "too many"
        return Refusal(
            f"{unread.shortened()} was not read as SQL: {why}. Where a log has it, redo it by hand:"
            f" `gtid-audit binlog show '{unread}' SERVER --redo --keep-gtids --schema-from SERVER >"
            f" FILE` (SERVER is the DSN of {content.read_from}) writes SQL of any size; its first"
            f" lines show how to run it on {source.name}"
        )
    try:
        check_plain(redone)
    except CannotSave as problem:
        return Refusal(str(problem))
    if not redone:
        return Proposal(())
    reason = unguarded_statements(redone, source.name) or acts_again(redone) or case.overtaken()
    if reason:
        return Refusal(reason)
    where = where_to_redo(case, redone)
    if reason := passed_on_by_group(case.model, [where.name], missing):
        return Refusal(reason)
    if reason := takes_gtid_with_first_row(content, where.name, redone):
        return Refusal(reason)
    reason = may_be_there(case, content, where) or behind_later_work(case, content, where)
    reason = reason or changed_since(case, content, where)
    reason = reason or other_columns(content, where) or left_out_of_log(content, where)
    reason = reason or logged_otherwise(content, where)
    reason = reason or stops_below(case, content, where, redone)
    if reason := reason or _by_hand_in_group(where, missing, str(content.read_from)):
        return Refusal(reason)
    rows = compared(case, content, where)
    actions = RedoTransactions(where.name, redone, rows), *resuming_actions(case)
    return Proposal(
        actions,
        (
            f"this plan redoes: {described(content, missing)}. {_where_it_stops(content, missing)}",
            *redone_rows_may_come_back(case, content, where),
            *columns_not_compared(content, where),
            *_not_reached(case, actions),
            *misfits_when_resumed(case, actions[:1]),
        ),
    )


def _not_reached(case: Case, actions: tuple[Action, ...]) -> Iterator[str]:
    after = case.model
    for action in actions:
        after = simulate(after, action)
    left = [name for name in other_sources(case) if case.finding.gtid_set - after[name].executed]
    if left:
        yield (
            f"{', '.join(left)}, from which {case.finding.replica} replicates as well, does not get"
            " these transactions, and no later audit reports that: write there by hand what belongs"
            " to its tables, with `sql_log_bin = 0`"
        )


def _where_it_stops(content: TransactionContent, redone: GtidSet) -> str:
    has_rows = content.of_class(ContentClass.DATA) & redone
    has_more = content.of_class(ContentClass.DDL) & redone
    texts = (
        "Rows must be as the transactions found them" if has_rows else "",
        "What is created or added must not be there yet" if has_more else "",
    )
    stops = "otherwise the script stops and the transaction is not done"
    return "; ".join(filter(None, (*texts, stops)))


def _by_hand_in_group(where: ModelServer, missing: GtidSet, holder: str) -> str:
    """Return how to redo on a member of a group, on which no plan writes; "" if it is none.

    Not under the UUID of the group: another member may have received those transactions and not
    applied them yet. Invariants refuse that without a way by hand (groups_are_left_alone).
    """
    if where.group_name is None or missing.from_uuid(where.group_name):
        return ""
    return (
        f"{where.name} is a member of the group {where.group_name}, and gtid-audit writes on no"
        " member. If the rows are wanted, redo them by hand on the primary of the group:"
        f" `gtid-audit binlog show '{missing}' SERVER --redo --keep-gtids --schema-from SERVER >"
        f" FILE` (SERVER is the DSN of {holder}); its first lines show how to run it. The group"
        " sends them to its members"
    )

"""Whether a step delivers what earlier steps of the plan redo, or changes rows that they write.

Rows are compared once, before the plan. If a step sets a row (A2, E4), nothing shows whether
another transaction that changes the same row fits afterwards, there or on another server:

    a    UPDATE row 2, which stops the applier of b     its own channel is stopped
    b    DELETE row 2, which waits for a                step 1 sets row 2 for the UPDATE

Once a is started as well, row 2 is only on b. So the second choice is refused: the first is run
alone, and then another audit shows what is left.
"""

from gtid import GtidSet
from repair.content.transaction_content import TransactionContent, key_condition
from repair.model.actions import MakeRowsAlike
from repair.model.replication_model import Model
from repair.model.strategy_case import Case
from repair.sql.row_literals import CannotRender


def meets_earlier_steps(case: Case, after: Model, content: TransactionContent | None) -> str | None:
    """Return why what a start delivers depends on earlier steps of the plan; None if it does not.

    A start that was not selected is about rows that it has compared on each server that receives
    something: there, only steps on these servers count.

    Args:
        case: the finding, and the servers after the steps so far.
        after: the servers after the start.
        content: what waits on its channel; None if no log was read.
    """
    arriving = {
        name: after[name].executed - case.model[name].executed
        for name in after.changed_since(case.model)
    }
    delivered = GtidSet.union_of(arriving.values())
    if again := case.redone & delivered:
        return (
            f"it would also deliver {again.shortened()}, which earlier steps of this plan redo:"
            " the rows were not compared for this. Run these steps alone, then audit and plan"
            " again"
        )
    for step in case.rows_written:
        if case.is_chosen or arriving.get(step.server):
            why = changes_written_rows(step, content, delivered)
            if why is not None:
                return why
    return None


def changes_written_rows(
    step: MakeRowsAlike, content: TransactionContent | None, gtids: GtidSet
) -> str | None:
    """Return why transactions may change rows that an earlier step writes; None if they do not.

    The step writes the rows for some transactions itself (A2): these fit.

    Args:
        step: the earlier step.
        content: what the transactions did; None if no log was read.
        gtids: the transactions.
    """
    gtids -= step.until_executed
    if content is not None:
        gtids = content.needing_decision(gtids)
    if not gtids:
        return None
    met = "may change rows"
    if content is not None and gtids <= content.wanted:
        rows = content.rows if content.rows is not None else content.rows_beside_created
        try:
            places = {
                (row.table.name, key_condition(row.table, row.key_image)) for row in rows or ()
            }
        except CannotRender:
            rows, places = None, set()
        shared = sorted(places & {(row.table.name, row.where) for row in step.rows})
        if rows is not None and not shared:
            return None
        if shared:
            met = f"changes the row {shared[0][1]} of {shared[0][0]}"
    return (
        f"it would deliver {gtids.shortened()}, which {met} that earlier steps of this plan write"
        f" on {step.server}: the rows were compared without these steps. Run these steps alone,"
        " then audit and plan again"
    )

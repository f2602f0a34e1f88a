"""Rows that only transactions change which a plan leaves out: they are no doubt about the others.

What waits on a channel is read as a whole, and its rows are folded to one change for each row. A
plan that declares the first transaction executed leaves it out, and delivers the others:

    A:8  inserts row 60, which exists: the applier stopped. It is committed empty.
    A:9  updates row 30, which is as A:9 expects

Row 60 is not as A:8 expects, and A:9 does not touch it. So the state of A:9 is that of row 30. If
A:9 touches row 60 as well, its net change differs from that of A:8 alone. Then row 60 counts in any
state: A:9 expects it as A:8 would have left it.
"""

from collections.abc import Mapping
from dataclasses import replace

from repair.content.transaction_content import (
    NetRow,
    RowsOn,
    RowState,
    TransactionContent,
    first_of,
)
from repair.model.replication_model import Model
from repair.model.strategy_case import Case


def without_left_out(case: Case, after: Model) -> Mapping[tuple[str, str], TransactionContent]:
    """Return what waits on each channel, without rows that only the left out transactions change.

    `after` is the model in which the finding's transactions are executed, without their content. It
    does not have every server that was asked about: servers with one server_uuid are not in it.
    """
    left_out = case.content
    if left_out is None or not left_out.rows:
        return case.arrivals
    return {
        (name, channel): _without(content, left_out, name)
        if name in after.servers and left_out.wanted <= content.wanted & after[name].executed
        else content
        for (name, channel), content in case.arrivals.items()
    }


def _without(
    content: TransactionContent, left_out: TransactionContent, name: str
) -> TransactionContent:
    """Return content with the state of only those rows on a server that others change as well."""
    state = content.state_on(name)
    is_before = state.state is RowState.AS_BEFORE
    if content.rows is None or (state.off is None and not is_before):
        return content  # its rows were not compared one by one
    skipped = {row.place: _net(row) for row in left_out.rows or ()}
    others = tuple(row for row in content.rows if skipped.get(row.place) != _net(row))
    expected = {row.place for row in state.off or ()} | skipped.keys()
    off = tuple(row for row in others if row.place in expected)
    named = first_of([row.name for row in off])
    why = f"without {left_out.wanted.shortened()}, row {named} is not as expected"
    now = RowsOn(RowState.AS_BEFORE)
    if off:
        now = replace(state, why=why, off=off)
        now = replace(now, state=RowState.CONFLICT) if is_before else now
    return replace(content, rows=others, rows_on={**content.rows_on, name: now})


def _net(row: NetRow) -> tuple[object, ...]:
    """Return the net change of a row, without the definition of its table."""
    return row.before, row.after, row.between

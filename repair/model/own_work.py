"""Later transactions of a server that may have changed rows of what it is to get.

How it works
------------
Rows can be in their state before the waiting transactions for two reasons. No other transaction
changed them, or the receiving server changed them and changed them back:

    source    INSERT row 2                                       waits on a stopped channel
    replica                 INSERT row 2    DELETE row 2         the newest version: no row 2

Applied now, the older INSERT would restore row 2. It is the same where a gap is fetched again, and
where an errant transaction is redone on a source whose later work the replica has yet to get: then
the replica ends with the newer version, and the source with the older one. So gtid-audit also reads
the transactions that the server has and the other side does not (content_questions.py). If they
changed one of the rows, or if that is unknown, the rows count as changed. All text keys count as
equal, because a collation may treat different bytes as equal ('m' and 'M').
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

from binlog.rows.values import Value
from gtid import GtidSet
from repair.content.transaction_content import NetRow, RowsOn, RowState, TransactionContent
from topology.readings.content_class import ContentClass

# A table and a key in it; None represents a text.
Place: TypeAlias = tuple[str, str, "tuple[Value | None, ...]"]


def disturbed(
    content: TransactionContent, own: Iterable[tuple[str, GtidSet, TransactionContent]]
) -> TransactionContent:
    """Return content whose rows count as changed where a server's own transactions may affect them.

    `own` lists servers, what only they have executed, and what their logs show of that.
    """
    rows_on, later_work = dict(content.rows_on), dict[str, str]()
    for name, gtids, other in own:
        if not (why := met(content, gtids, other)):
            continue
        later_work[name] = f"{gtids.shortened()}, which the other side does not have, {why}"
        if content.state_on(name).state is RowState.AS_BEFORE:
            rows_on[name] = RowsOn(RowState.CONFLICT, later_work[name])
    return replace(content, rows_on=rows_on, later_work=later_work)


def met(content: TransactionContent, gtids: GtidSet, other: TransactionContent) -> str:
    """Return why rows of `content` may have been changed by other transactions; "" if not."""
    working = gtids - other.of_class(ContentClass.EMPTY, ContentClass.HARMLESS)
    if not working:
        return ""
    rows = other.rows if other.rows is not None else other.rows_beside_created
    if rows is None or working - other.of_class(ContentClass.DATA, ContentClass.DDL):
        return f"may have changed them: {other.rows_unread or other.unread or 'not read'}"
    if _places(content.rows_of_old_tables) & _places(rows):
        return "changed the same rows"
    return ""


def _places(rows: Iterable[NetRow]) -> set[Place]:
    return {(row.table.schema, row.table.table, _key(row)) for row in rows}


def _key(row: NetRow) -> tuple[Value | None, ...]:
    columns = row.table.columns
    return tuple(None if columns[at].is_string else row.key_image[at] for at in row.table.key or ())

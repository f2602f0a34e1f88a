"""Whether the rows of every server allow a redo: it duplicates none and does not stop replication.

Each function returns the reason why not, or an empty text. Rows are those read with the plan; the
script compares the rows of its own server again.
"""

from collections.abc import Iterator

from gtid import GtidSet
from repair.content.transaction_content import NetRow, RowState, TransactionContent
from repair.doubts.rows_there import may_come_back
from repair.model.replication_model import ModelServer, below
from repair.model.strategy_case import Case
from repair.sql.replay import Replayed
from topology.catalogue.findings import Grade
from topology.facts.declared_sets import DECLARED
from topology.readings.content_class import ContentClass
from topology.readings.dialect import dialect_of

NOT_UNASKED = (
    "the operator must decide whether these transactions are wanted: only planned when selected"
)
EMPTY_BY_HAND = (
    "`SET SESSION gtid_next = '(the GTID)'`, `BEGIN`, `COMMIT`, `SET SESSION gtid_next ="
    " 'AUTOMATIC'`"
)


def may_be_there(case: Case, content: TransactionContent, where: ModelServer) -> str:
    """Return why rows are on the server already, or cannot be; "" if nothing shows it.

    A server that lost GTIDs may have kept the rows: RESET BINARY LOGS AND GTIDS removes only the
    GTIDs, and before 8.0.17 so does a crash with sync_binlog other than 1. In a redo, rows with a
    key stop the script, and rows without one are duplicated.
    """
    state = content.state_on(where.name)
    if state.is_created:
        return (
            f"{where.name} already has what they create ({state.why}). Compare the definitions. If"
            " they are equal, only the GTIDs are missing there. Use up each of these there without"
            f" a change: {EMPTY_BY_HAND}"
        )
    if not content.of_class(ContentClass.DATA):
        return ""
    if state.state is RowState.AS_AFTER:
        return (
            f"the rows are already on {where.name}: only their GTIDs are missing there. Use up"
            f" each of these there without a change of rows: {EMPTY_BY_HAND}"
        )
    if state.is_in_part and state.has_some:
        return (
            f"some of the rows are already on {where.name}, and some are not ({state.why}): compare"
            " both servers, and decide row by row"
        )
    if state.is_missing:
        return (
            f"{where.name} does not have (or does not show to this account) all of their tables:"
            f" {state.why}. They may belong to another source"
        )
    if _may_have_kept(case, where) and state.state is RowState.UNREAD:
        return (
            f"the rows may still be on {where.name}, and were not compared ({state.why}): compare"
            " them first (`gtid-audit binlog show SET SERVER` lists them)"
        )
    return ""


def behind_later_work(case: Case, content: TransactionContent, where: ModelServer) -> str:
    """Return that the replica has yet to get later changes of the same rows; "" if it has not.

    The server of the redo would end with the older version, and the replica with the newer one.
    """
    replica, why = case.finding.replica, content.later_work.get(where.name)
    if why is None:
        return ""
    return (
        f"on {where.name} {why}: redone now, the transactions would write an older version"
        f" there, and {replica} would get the newer one. Let {replica} execute the later ones"
        " first, or compare the rows and decide for each, then audit and plan again"
    )


def redone_rows_may_come_back(
    case: Case, content: TransactionContent, where: ModelServer
) -> Iterator[str]:
    """Yield a warning that missing rows may have been deleted since, and not lost.

    What a server committed after them is in no log after RESET BINARY LOGS AND GTIDS, or if it logs
    nothing. No set shows whether it had them; a proved crash (E3) also lost the rows.
    """
    is_lost = case.finding.code == "E3" and not _may_have_kept(case, where)
    if is_lost or not content.of_class(ContentClass.DATA):
        return
    yield may_come_back(where.name, content.wanted, "done")


def _may_have_kept(case: Case, where: ModelServer) -> bool:
    """Return whether a server that lost GTIDs may have kept their rows, as after a reset."""
    if any(fact.fact == DECLARED for fact in case.finding.evidence):
        return True
    has_gtids_in_innodb = dialect_of(where.version).has_gtids_in_innodb
    is_certain = case.finding.grade is Grade.PROVED and has_gtids_in_innodb
    return case.finding.code in ("E3", "E6") and not is_certain


def changed_since(case: Case, content: TransactionContent, where: ModelServer) -> str:
    """Return which servers with the transactions have different rows now; "" if none.

    A redo elsewhere does not change their rows, so the servers would differ afterwards.
    """
    wanted = case.finding.gtid_set
    changed = [
        f"{server.name}: {state.why or state.state.value}"
        for server in case.model.servers.values()
        if server.name != where.name and wanted & server.executed
        if (state := content.state_on(server.name)).state in (RowState.CONFLICT, RowState.AS_BEFORE)
        and not state.is_created
    ]
    if not changed:
        return ""
    return (
        "rows were changed since on servers that have the transactions, so a redo would make the"
        f" others differ from them: {'; '.join(changed)}"
    )


def stops_below(
    case: Case, content: TransactionContent, where: ModelServer, redone: tuple[Replayed, ...]
) -> str:
    """Return the servers where replication would deliver the transactions to unfit rows."""
    gtids = GtidSet.of(each.gtid for each in redone if each.gtid is not None)
    receiving = below(case.model, where.name, running=True)
    unfit = [
        f"{name}: {state.why or state.state.value}"
        for name in receiving
        if gtids - case.model[name].executed
        if (state := content.state_on(name)).state in (RowState.CONFLICT, RowState.AS_AFTER)
    ]
    unfit += [
        f"{name}: {content.unlike_on[name]}"
        for name in receiving
        if gtids - case.model[name].executed and name in content.unlike_on
    ]
    if not unfit:
        return ""
    return (
        "replication would deliver them to servers whose rows are not as the transactions found"
        f" them, and stop the applier there: {'; '.join(unfit)}. Compare these rows first"
    )


def compared(
    case: Case, content: TransactionContent, where: ModelServer
) -> tuple[NetRow, ...] | None:
    """Return the rows of the transactions; None if they were not compared where it matters."""
    if not content.of_class(ContentClass.DATA):
        return ()
    receiving = below(case.model, where.name, running=True)
    for name, server in case.model.servers.items():
        has_them = bool(content.wanted & server.executed)
        if name == where.name or (name not in receiving and not has_them):
            continue
        expected = RowState.AS_AFTER if has_them else RowState.AS_BEFORE
        if content.state_on(name).state is not expected:
            return None
    return content.rows_of_old_tables

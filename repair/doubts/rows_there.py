"""Whether the rows of a gap are already on its replica, so that only the GTIDs are missing.

How it works
------------
Either the rows are as the transactions left them. Or later transactions changed them again, on both
servers, and the rows are as they are on the source now:

    source    INSERT row 2    UPDATE row 2 to 5      row 2 is 5
    replica   (forgotten)     UPDATE row 2 to 5      row 2 is 5

The second form requires more: nothing else of the source may be missing on the replica when the
rows are read (`RowsOn.is_like_source`). What is on its way may change the row, and then it is equal
on both only by chance. For example, a row that was never inserted looks like one that the source
has since deleted. And the source's log must show how its rows came to be as they are
(repair/adapters/states_on_servers.py): they may have been changed there without a log.
"""

from collections.abc import Iterator

from gtid import GNO_END, GtidSet
from repair.content.transaction_content import NetRow, RowsOn, RowState, TransactionContent
from repair.model.holes import depends_on_a_hole
from repair.model.own_work import met
from repair.model.replication_model import ModelChannel, ModelServer, below
from repair.model.strategy_case import Case
from topology.catalogue.findings import Grade
from topology.facts.reset_signs import has_earlier
from topology.readings.content_class import ContentClass
from topology.rules.passed import IS_BEHIND


def is_there_already(case: Case) -> bool:
    """Return whether the rows of a gap were compared and all are already on the replica.

    They must also be on each downstream server that does not have the transactions. It receives
    them empty from there, even if it would drop others (they are logged with the replica's own
    server_id), and perhaps before another channel delivers them. Rows that another gap changes show
    nothing: a row that was never inserted looks deleted.
    """
    content, replica = case.content, case.replica
    if not case.is_hole or content is None or replica is None:
        return False
    if not case.wanted <= content.of_class(
        ContentClass.EMPTY, ContentClass.HARMLESS, ContentClass.DATA
    ):
        return False
    return not own_rows(case) and _are_on_all(case, content, replica)


def there_by_own_work(case: Case) -> str | None:
    """Return whose transactions made rows of a gap present on the replica alone, or None."""
    content, replica, own = case.content, case.replica, own_rows(case)
    if not (case.is_hole and content is not None and replica is not None and own):
        return None
    if not _are_on_all(case, content, replica):
        return None
    return (
        f"the rows of {case.wanted.shortened()} are on {replica.name}, and {own.shortened()}, which"
        f" only {replica.name} has, may have written them: if that is taken back later, they are"
        " lost. Answer these first, then audit and plan again"
    )


def _are_on_all(case: Case, content: TransactionContent, replica: ModelServer) -> bool:
    return not depends_on_a_hole(case, content) and all(
        _is_there(case, content.state_on(name))
        for name in (replica.name, *below(case.model, replica.name))
        if case.wanted - case.was_there(name)
    )


def own_rows(case: Case) -> GtidSet:
    """Return what only the replica has, and that may have written the rows of a gap there.

    The row is then there by an errant transaction. If it is taken back later, the row is lost, and
    the empty transaction hides that.
    """
    content = case.content
    if content is None:
        return GtidSet()
    return GtidSet.union_of(
        each.gtids
        for each in case.extras
        if each.content is None or met(content, each.gtids, each.content)
    )


def not_decided_by_rows(case: Case) -> str | None:
    """Return why an unproved cause makes a difference; None if all rows are already present.

    The causes of a certainly passed gap (H8) differ in what they mean for the rows.
    """
    is_behind = any(each.fact == IS_BEHIND for each in case.finding.evidence)
    if not (is_behind and is_there_already(case)):
        return f"{case.finding.code} is not proved: nothing is left out by default"
    first = _may_come_before(case)
    if not first:
        return None
    return (
        f"{first.shortened()} has not arrived on {case.finding.replica} yet and may change these"
        " rows: wait for it, then audit and plan again"
    )


def _may_come_before(case: Case) -> GtidSet:
    """Return what is still to arrive and may be before a gap in its source's log.

    What the source logged before a gap arrived before it, if the current transactions were
    received. A source that was reset may have reused the GTIDs since. Rows may then only look as
    these left them:

        source    INSERT row 2    DELETE row 2 (a:1, reused)
        replica   (to come)       (missing: it received another a:1)    there is no row 2

    Higher GNOs of the same origin arrive later.
    """
    replica = case.replica
    assert replica is not None, "the caller has compared its rows"
    there = case.snapshot_executed.get(case.finding.source or "", GtidSet())
    coming = there - case.snapshot_executed[replica.name] - case.wanted
    coming -= GtidSet.union_of(hole.gtids for hole in case.holes)
    coming = later = coming.without_uuid(replica.server_uuid)
    for tsid in case.wanted.tsids:
        highest = case.wanted.highest(tsid)
        assert highest is not None, "the set has GTIDs of it"
        later &= GtidSet.from_intervals([(tsid, highest + 1, GNO_END)])
    return coming - later


def is_there_by_later_ones(case: Case) -> bool:
    """Return whether rows that are present are as later transactions left them on a server."""
    return case.content is not None and any(
        on.is_like_source and on.state is not RowState.AS_AFTER
        for on in case.content.rows_on.values()
    )


def rows_now(content: TransactionContent, name: str) -> tuple[NetRow, ...]:
    """Return the rows with what they are on a server where they are present.

    They are as the transactions left them, or as later ones of the source did (`is_like_source`).
    """
    on = content.state_on(name)
    return on.now if on.state is not RowState.AS_AFTER else content.rows or ()


def _is_there(case: Case, on: RowsOn) -> bool:
    """Return whether rows are present; not every source is comparable.

    It may still be committing. Or its own applier has stopped: a row conflict shows that a row was
    changed there without a log, and then a missing row is no later state.
    """
    if on.state is RowState.AS_AFTER or not on.is_like_source or case.source is None:
        return on.state is RowState.AS_AFTER
    has_them = case.wanted <= case.snapshot_executed[case.source.name]
    return has_them and not any(each.is_stuck for each in case.source.channels)


def gaps_may_come_back(
    case: Case, replica: ModelServer, channel: ModelChannel, arriving: GtidSet
) -> Iterator[str]:
    """Yield the effect of a reset on rows that are not present, if it may be the cause of a gap.

    A channel with a file position goes past them as well (H1), and auto-position then fetches them.
    There was no reset if that position is proved to be the cause, or if the replica's logs still
    have earlier transactions of their origins.
    """
    if case.finding.code == "H1" and case.finding.grade is Grade.PROVED:
        return
    contents = (case.content, *(content for _, content in case.beside))
    data = GtidSet.union_of(
        each.of_class(kind)
        for each in contents
        if each
        for kind in (ContentClass.DATA, ContentClass.DDL)
    )
    gaps = (channel.passed | channel.bypassed) - replica.executed
    if case.finding.code in ("H1", "H8"):
        gaps |= arriving
    changing = data & gaps
    if case.finding.code != "H8" and has_earlier(replica.available, changing):
        return
    if changing:
        yield may_come_back(replica.name, changing, "fetched")


def may_come_back(name: str, gtids: GtidSet, done: str) -> str:
    """Return that absent rows may have been deleted since, and not left out.

    `done`: what restores them ("fetched", "done").
    """
    return (
        f"if {name} had {gtids.shortened()} before and lost these GTIDs (RESET BINARY LOGS AND"
        " GTIDS), rows, tables or views that are not there may have been deleted or changed since,"
        f" and no log shows that: {done} again, they come back. Compare the data first"
    )

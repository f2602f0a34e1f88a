"""The strategy for rows that differ under one GTID (E4): the source's version, when selected.

No GTID statement helps: the sets are equal. No log shows which version is right. So gtid-audit
shows both, and plans nothing until the operator has chosen. Steps write only on the replica: the
servers below it that may keep the replaced version are found for the whole plan
(repair/replaced_below.py).
"""

from collections.abc import Iterator

from gtid import GtidSet
from repair.content.row_versions import RowVersions, by_table
from repair.model.actions import MakeRowsAlike
from repair.model.replication_model import upstream
from repair.model.strategy_case import Case, Outcome, Proposal, Refusal
from repair.sql.row_literals import CannotRender
from repair.sql.row_sql import member_columns, needs_lenience, redo_row

CHOICE = "--strategy E4=data_repair"


def data_repair(case: Case) -> Outcome:
    """Plan to make the replica's rows equal to the source's, table by table."""
    read, finding = case.rows, case.finding
    if case.replica is None or case.source is None:
        return Refusal("one of the two servers could not be read")
    if read is None:
        return Refusal("the rows that they changed were not read")
    if not read.rows and read.unread:
        return Refusal(f"the rows that they changed could not be read: {'; '.join(read.unread)}")
    if not case.is_chosen and not read.rows:
        return Refusal(
            "the rows that they changed are equal on both servers now: there is nothing to write"
        )
    if not case.is_chosen:
        return Refusal(
            f"rows that they changed differ now ({len(read.rows)} in total); the operator must"
            f" decide which version is right. {CHOICE} writes the version of {finding.source} on"
            f" {finding.replica}. To keep the version of {finding.replica}, write it on"
            f" {finding.source} and its other replicas by hand, with sql_log_bin=0: if it were"
            f" logged, it would stop {finding.replica}, which already has it"
        )
    source, replica = case.source.name, case.replica.name
    if (why := case.overtaken(source, replica)) is not None:
        return Refusal(why)
    if (why := _is_late(case, source, replica) or _is_ahead(case, source, replica)) is not None:
        return Refusal(why)
    if source in case.written:
        return Refusal(
            f"an earlier step writes rows on {source}, whose version this would write on {replica}:"
            " run that step alone, then audit and plan again"
        )
    problems = [problem for row in read.rows if (problem := _problem(row)) is not None]
    if problems:
        return Refusal("; ".join(problems))
    changed = [row for row in read.rows if redo_row(row.table, row.change) is not None]
    return Proposal(
        tuple(_actions(replica, source, changed)),
        tuple(_warnings(case)),
        stays=tuple(f"not read, and not repaired: {reason}" for reason in read.unread),
    )


def _is_late(case: Case, source: str, replica: str) -> str | None:
    """Return why the source's rows are ahead of the replica's by more than the reading interval.

    If a waiting transaction changes a row, the script would write the row in its state after that
    change. A waiting DELETE or UPDATE then does not find the row and stops the applier, or sets an
    older version.
    """
    first = case.first_executed.get(source, GtidSet())
    late = first - case.snapshot_executed[replica]
    if not late:
        return None
    return (
        f"{replica} has not applied {late.shortened()} of {source} (SOURCE_DELAY, a backlog, a"
        f" stopped channel, a gap): if these change the same rows, the version of {source} is"
        f" ahead of {replica}, and they would stop its applier or overwrite rows."
        f" {_way_out(case, source, replica)}"
    )


def _is_ahead(case: Case, source: str, replica: str) -> str | None:
    """Return why the replica's rows are ahead of the source's by more than the reading interval.

    The source's version would replace what a waiting transaction of the replica has written. The
    source then applies that one, and the rows differ the other way round.
    """
    first = case.first_executed.get(replica, GtidSet())
    # If a step redoes them on the source first, a check stops this step where they changed a row.
    ahead = first - case.snapshot_executed[source] - case.redone
    if not ahead:
        return None
    is_fed = replica in upstream(case.model, source)
    return (
        f"{source} does not have {ahead.shortened()} of {replica}: if these changed the same rows,"
        f" the version of {replica} is newer, and {source} would get it later."
        f" {'Wait until they have arrived, or repair' if is_fed else 'Repair'} that first, then"
        " audit and plan again"
    )


def _way_out(case: Case, source: str, replica: str) -> str:
    """Return what to do about transactions that a replica does not have yet."""
    if source in upstream(case.model, replica):
        return "Wait until they have arrived, then audit and plan again"
    return (
        f"No channel brings them to {replica}: if the version of {source} is right, reclone"
        f" {replica} from it"
    )


def _actions(replica: str, source: str, changed: list[RowVersions]) -> Iterator[MakeRowsAlike]:
    for rows in by_table(changed):
        yield MakeRowsAlike(replica, source, rows)


def _problem(row: RowVersions) -> str | None:
    """Return why a row cannot be written; None if it can."""
    if needs_lenience(row.table, row.change):
        return f"{row.table.name}, {row.where}: an ENUM has the error value ''"
    try:
        member_columns(row.table)
        redo_row(row.table, row.change)
    except CannotRender as refusal:
        return f"{row.table.name}, {row.where}: {refusal}"
    return None


def _warnings(case: Case) -> Iterator[str]:
    assert case.rows is not None, "the caller has checked"
    yield (
        "only the rows that these transactions changed are made equal, not what"
        f" {case.finding.replica} has derived from them since: compare the tables afterwards"
    )
    assert case.replica is not None, "the caller has checked"
    assert case.source is not None, "the caller has checked"
    executed = case.snapshot_executed
    waiting = executed[case.source.name] - executed[case.replica.name]
    if waiting:
        yield (
            f"{case.replica.name} had not applied {waiting.shortened()} of {case.source.name} when"
            " the servers were read. If these change the same rows, the version that is written"
            f" here is ahead of {case.replica.name}: it may stop the applier or overwrite rows."
            " Wait until they have arrived, then plan again"
        )

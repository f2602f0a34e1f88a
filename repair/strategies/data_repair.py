"""The strategies for rows that differ under one GTID (E4): one server's version, when selected.

No GTID statement helps: the sets are equal. No log shows which version is right. So gtid-audit
shows both, and plans nothing until the operator has chosen: `data_repair` writes the version of the
source on the replica, `data_repair_on_source` that of the replica on the source. Steps write on
that one server only: the servers below it that may keep the replaced version are found for the
whole plan (repair/replaced_below.py).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gtid import GtidSet
from repair.content.row_versions import RowVersions, by_table
from repair.model.actions import MakeRowsAlike
from repair.model.replication_model import upstream
from repair.model.strategy_case import Case, Outcome, Proposal, Refusal
from repair.sql.row_literals import CannotRender
from repair.sql.row_sql import member_columns, needs_lenience, redo_row

CHOICE = "--strategy E4=data_repair"


@dataclass(frozen=True, slots=True)
class _Direction:
    """Whose version is written, and where: `of` and `to` are names of servers."""

    of: str
    to: str
    rows: tuple[RowVersions, ...]  # `source` is the version that is written


def data_repair(case: Case) -> Outcome:
    """Plan to make the replica's rows equal to the source's, table by table."""
    if case.replica is None or case.source is None or case.rows is None:
        return _unread(case)
    return _written(case, _Direction(case.source.name, case.replica.name, case.rows.rows))


def data_repair_on_source(case: Case) -> Outcome:
    """Plan to make the source's rows equal to the replica's, table by table.

    It is not logged either: the replica has this version already, and would stop at a change of it.
    """
    if case.replica is None or case.source is None or case.rows is None:
        return _unread(case)
    rows = tuple(row.reversed for row in case.rows.rows)
    return _written(case, _Direction(case.replica.name, case.source.name, rows))


def _unread(case: Case) -> Refusal:
    if case.rows is None and None not in (case.replica, case.source):
        return Refusal("the rows that they changed were not read")
    return Refusal("one of the two servers could not be read")


def _written(case: Case, way: _Direction) -> Outcome:
    read, finding = case.rows, case.finding
    assert read is not None, "the caller has checked"
    if not read.rows and read.unread:
        return Refusal(f"the rows that they changed could not be read: {'; '.join(read.unread)}")
    if not case.is_chosen and not read.rows:
        return Refusal(
            "the rows that they changed are equal on both servers now: there is nothing to write"
        )
    if not case.is_chosen:
        writes = f"writes the version of {way.of} on {way.to}"
        if way.to == finding.source:
            return Refusal(f"{CHOICE}_on_source {writes}")
        return Refusal(
            f"rows that they changed differ now ({len(read.rows)} in total); the operator must"
            f" decide which version is right. {CHOICE} {writes}"
        )
    if (why := case.overtaken(way.of, way.to)) is not None:
        return Refusal(why)
    if (why := _is_late(case, way) or _is_ahead(case, way)) is not None:
        return Refusal(why)
    if way.of in case.written:
        return Refusal(
            f"an earlier step writes rows on {way.of}, whose version this would write on {way.to}:"
            " run that step alone, then audit and plan again"
        )
    problems = [problem for row in way.rows if (problem := _problem(row)) is not None]
    if problems:
        return Refusal("; ".join(problems))
    changed = [row for row in way.rows if redo_row(row.table, row.change) is not None]
    return Proposal(
        tuple(MakeRowsAlike(way.to, way.of, rows) for rows in by_table(changed)),
        tuple(_warnings(case, way)),
        stays=tuple(f"not read, and not repaired: {reason}" for reason in read.unread),
    )


def _is_late(case: Case, way: _Direction) -> str | None:
    """Return why the rows to write are ahead of the other server by more than the reading interval.

    If a waiting transaction changes a row, the script would write the row in its state after that
    change. A waiting DELETE or UPDATE then does not find the row and stops the applier, or sets an
    older version.
    """
    first = case.first_executed.get(way.of, GtidSet())
    late = first - case.snapshot_executed[way.to]
    if not late:
        return None
    return (
        f"{way.to} has not applied {late.shortened()} of {way.of} (SOURCE_DELAY, a backlog, a"
        f" stopped channel, a gap): if these change the same rows, the version of {way.of} is"
        f" ahead of {way.to}, and they would stop its applier or overwrite rows."
        f" {_way_out(case, way)}"
    )


def _is_ahead(case: Case, way: _Direction) -> str | None:
    """Return why the rows to replace are ahead by more than the reading interval.

    The written version would replace what a waiting transaction of that server has written. The
    other server then applies that one, and the rows differ the other way round.
    """
    first = case.first_executed.get(way.to, GtidSet())
    # If a step redoes them on the source first, a check stops this step where they changed a row.
    ahead = first - case.snapshot_executed[way.of] - case.redone
    if not ahead:
        return None
    is_fed = way.to in upstream(case.model, way.of)
    return (
        f"{way.of} does not have {ahead.shortened()} of {way.to}: if these changed the same rows,"
        f" the version of {way.to} is newer, and {way.of} would get it later."
        f" {'Wait until they have arrived, or repair' if is_fed else 'Repair'} that first, then"
        " audit and plan again"
    )


def _way_out(case: Case, way: _Direction) -> str:
    """Return what to do about transactions that the server to write on does not have yet."""
    if way.of in upstream(case.model, way.to):
        return "Wait until they have arrived, then audit and plan again"
    return (
        f"No channel brings them to {way.to}: if the version of {way.of} is right, reclone"
        f" {way.to} from it"
    )


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


def _warnings(case: Case, way: _Direction) -> Iterator[str]:
    yield (
        "only the rows that these transactions changed are made equal, not what"
        f" {way.to} has derived from them since: compare the tables afterwards"
    )
    executed = case.snapshot_executed
    waiting = executed[way.of] - executed[way.to]
    if waiting:
        yield (
            f"{way.to} had not applied {waiting.shortened()} of {way.of} when the servers were"
            " read. If these change the same rows, the version that is written here is ahead of"
            f" {way.to}: it may stop the applier or overwrite rows. Wait until they have arrived,"
            " then plan again"
        )

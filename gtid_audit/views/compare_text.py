"""Shows a comparison of two logs, as a document and to the operator."""

from collections.abc import Iterator
from typing import Any, Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gtid.counted_nouns import counted
from gtid_audit.views.content_text import content_record, remark_lines, result_of
from gtid_audit.views.logs_compared import LogsCompared
from gtid_audit.views.report_parts import QUIET, line_of, rest_of
from gtid_audit.views.report_text import headline, show, unknown_parts
from repair.adapters.affected_rows import AffectedRow, AffectedRows, Row
from topology.documents.records import finding_to_record, time_to_text, unknown_to_record
from topology.readings.contents import ContentDifference, TransactionVersion

DIFFERENCES_SHOWN_MAX: Final = 20
ROWS_SHOWN_MAX: Final = 20
_VALUE_CHARACTERS_MAX: Final = 40


def document_of(done: LogsCompared) -> dict[str, Any]:
    """Return the comparison as a JSON document."""
    return {
        "verdict": done.verdict.value,
        "compared": content_record(done.reading),
        "gtid_count": done.compared.gtids.gtid_count,
        "is_cut": done.compared.is_cut,
        "differences": [_difference(each) for each in done.reading.differences],
        "rows": _rows(done.rows),
        "findings": [finding_to_record(each) for each in done.findings],
        "unknown": [unknown_to_record(each) for each in done.unknown],
    }


def _difference(each: ContentDifference) -> dict[str, Any]:
    return {
        "gtid": str(each.gtid),
        "difference": each.difference.value,
        "proved": each.is_proved,
        "reason": each.reason,
        "versions": [_version(version) for version in (each.source, each.replica)],
    }


def _version(version: TransactionVersion) -> dict[str, Any]:
    moment = version.committed_at
    return {
        "server": version.server,
        "place": version.place,
        "committed_at": time_to_text(moment) if moment is not None else None,
        "logged_at": time_to_text(version.logged_at),
        "content": version.content,
    }


def _rows(rows: AffectedRows | None) -> dict[str, Any] | None:
    if rows is None:
        return None
    return {
        "rows": [
            {
                "table": each.table,
                "key": each.key,
                "differs": each.differs,
                "left": each.left,
                "right": each.right,
            }
            for each in rows.rows
        ],
        "unread": list(rows.unread),
    }


def show_comparison(done: LogsCompared, *, left: str, right: str) -> None:
    """Show the comparison to the operator."""
    said = compare_headline(done, left=left, right=right)
    parts: list[RenderableType] = [headline(done.verdict, said)]
    for finding in done.findings:
        title = f"{finding.code} {finding.name}, {finding.severity.value}, {finding.grade.value}"
        parts += [Text(), Text(title, style="bold"), line_of(finding.explanation)]
    if done.reading.differences:
        parts += [Text(), *_shown_differences(done)]
    if done.rows is not None:
        parts += [Text(), *_shown_rows(done.rows, left=left, right=right)]
    parts += unknown_parts(done.unknown, name_cluster=False)
    if not done.unknown:
        parts += [line_of(line) for line in remark_lines(done.reading)]
    show(*parts)


def compare_headline(done: LogsCompared, *, left: str, right: str) -> str:
    """Return what stands after the verdict."""
    return f"{left} · {right} · {result_of(done.reading)}"


def _shown_differences(done: LogsCompared) -> Iterator[RenderableType]:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style=QUIET)
    for heading in ("server", "place", "committed", "content"):
        table.add_column(heading, overflow="fold")
    for each in done.reading.differences[:DIFFERENCES_SHOWN_MAX]:
        table.add_row(Text(str(each.gtid), style="bold"), Text(), Text(), line_of(each.reason))
        for version in (each.source, each.replica):
            moment = version.committed_at or version.logged_at
            table.add_row(
                line_of(version.server),
                line_of(version.place),
                Text(f"{moment:%Y-%m-%d %H:%M:%S.%f}"),
                line_of(version.content),
            )
    yield Padding(table, (0, 0, 0, 2))
    yield from rest_of(len(done.reading.differences), DIFFERENCES_SHOWN_MAX, "GTIDs")


def _shown_rows(rows: AffectedRows, *, left: str, right: str) -> Iterator[RenderableType]:
    differing = [row for row in rows.rows if row.differs]
    equal = len(rows.rows) - len(differing)
    yield Text(
        f"Changed rows, as they are now: {counted(len(differing), 'row')} not the same,"
        f" {equal:,} equal",
        style="bold",
    )
    if differing:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style=QUIET)
        for heading in ("table", "row", "column", left, right):
            table.add_column(heading, overflow="fold")
        for row in differing[:ROWS_SHOWN_MAX]:
            for cells in _cells(row):
                table.add_row(*map(line_of, cells))
        yield Padding(table, (0, 0, 0, 2))
        yield from rest_of(len(differing), ROWS_SHOWN_MAX, "rows")
    for reason in rows.unread:
        yield Padding(line_of(f"not read: {reason}"), (0, 0, 0, 2))


def _cells(row: AffectedRow) -> Iterator[tuple[str, ...]]:
    for number, column in enumerate(row.differing()):
        where = ("", "") if number else (row.table, row.key)
        yield (*where, column, _cell(row.left, column), _cell(row.right, column))


def _cell(row: Row | None, column: str) -> str:
    if row is None:
        return "(no such row)"
    value = row.get(column)
    text = "NULL" if value is None else value
    return text if len(text) <= _VALUE_CHARACTERS_MAX else text[:_VALUE_CHARACTERS_MAX] + "…"

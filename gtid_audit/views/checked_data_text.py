"""Shows the result of a data check, and makes its JSON document."""

from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from gtid.counted_nouns import counted
from gtid_audit.views.report_parts import QUIET, line_of, rest_of
from gtid_audit.views.report_text import VERDICT_STYLE, show
from repair.data_check.checked_data import CheckedData, CheckedTableResult
from topology.catalogue.findings import Verdict
from topology.documents.document_version import versioned

_ROWS_SHOWN_MAX: Final = 10
_NOTES_SHOWN_MAX: Final = 10


def show_checked_data(found: CheckedData) -> None:
    """Show the verdict, and each table that is not the same."""
    rows = sum(each.rows for each in found.tables)
    head = Text(f" {found.verdict.value} ", style=VERDICT_STYLE[found.verdict])
    head.append(
        f"  {found.left} and {found.right} · {counted(len(found.tables), 'table')}"
        f" · {counted(rows, 'row')} compared",
        "default",
    )
    parts: list[RenderableType] = [head]
    if found.earlier_parts:
        earlier = f"{counted(found.earlier_parts, 'part')} as recorded by an earlier run"
        parts.append(Text(earlier, QUIET))
    if found.apart:
        waits = f"Compared as they are, without waiting. {found.apart}. Rows of these may differ."
        parts += [Text(), line_of(waits)]
    if found.unread:
        parts += [Text(), line_of(f"not read: {found.unread}")]
    for table in found.tables:
        if table.verdict is not Verdict.OK:
            parts += [Text(), *map(line_of, _lines(table, found))]
    if notes := [each for each in found.tables if each.note and each.verdict is Verdict.OK]:
        parts += [
            Text(),
            *(
                line_of(f"{each.schema}.{each.table}: {each.note}")
                for each in notes[:_NOTES_SHOWN_MAX]
            ),
            *rest_of(len(notes), _NOTES_SHOWN_MAX, "tables"),
        ]
    same = sum(each.verdict is Verdict.OK for each in found.tables)
    if same and same < len(found.tables):
        parts += [Text(), Text(f"{counted(same, 'other table')}: all rows are the same", QUIET)]
    show(*parts)


def _lines(table: CheckedTableResult, found: CheckedData) -> list[str]:
    name = f"{table.schema}.{table.table}"
    if table.missing_on:
        return [f"{name}: {table.missing_on} does not have it"]
    if table.unread:
        return [f"{name}: not compared: {table.unread}"]
    lines = []
    if table.different and table.key:
        lines.append(f"{name}: {counted(table.different, 'row')} of {table.rows:,} differ")
    elif table.different:
        lines.append(f"{name}: its rows differ; it has no key that shows which")
    if table.unsettled or not table.is_whole:
        lines.append(f"{name}: {counted(table.unsettled, 'part')} of {table.parts} not compared")
    for row in table.listed[:_ROWS_SHOWN_MAX] if table.key else ():
        where = {"ONLY_LEFT": f"only on {found.left}", "ONLY_RIGHT": f"only on {found.right}"}
        what = where.get(row.state.name, row.state.value)
        lines.append(f"  {table.key} {', '.join(row.key)}: {what}")
    if table.key and table.different > _ROWS_SHOWN_MAX:
        lines.append(f"  … and {table.different - _ROWS_SHOWN_MAX:,} more")
    return lines + [f"  {each}" for each in (*table.whys, table.note) if each]


def checked_data_document(found: CheckedData) -> dict[str, Any]:
    """Return the JSON document."""
    return versioned(
        {
            "verdict": found.verdict.value,
            "servers": [found.left, found.right],
            "unread": found.unread or None,
            "earlier_parts": found.earlier_parts,
            "apart": found.apart or None,
            "tables": [
                {
                    "database": each.schema,
                    "table": each.table,
                    "verdict": each.verdict.value,
                    "missing_on": each.missing_on or None,
                    "unread": each.unread or None,
                    "key": each.key or None,
                    "rows": each.rows,
                    "parts": each.parts,
                    "parts_unsettled": each.unsettled,
                    "rows_different": each.different,
                    "different": [
                        {"key": [*row.key], "state": row.state.name.lower()}
                        for row in each.listed
                        if each.key
                    ],
                    "reasons": [one for one in (*each.whys, each.note) if one],
                }
                for each in found.tables
            ],
        }
    )

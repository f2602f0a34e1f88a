"""Shows tracked definitions to the operator, and as documents to programs. It evaluates nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from rich.table import Table
from rich.text import Text

from binlog.adapters.schema_following import Followers
from binlog.adapters.schema_store import SchemaStore
from binlog.schema.documents import definition_document, entry_document
from binlog.schema.table_definitions import Column, Key, TableDefinition
from binlog.schema.table_history import Entry, TableKey, explain
from gtid_audit.output import printable, write_line
from gtid_audit.views.report_text import show
from topology.adapters.compare_definitions import DefinitionComparison, View, is_marked
from topology.catalogue.verdict_table import entry_of

_MARK = "≠"
MISFIT = "S3"
_UNKNOWN_SHOWN_MAX = 20


def listing_document(
    store: SchemaStore,
    server: UUID,
    entries: Sequence[Entry],
    staged: Sequence[Entry],
) -> dict[str, Any]:
    """Return the document of `list`."""
    followed = store.followed(server)
    return {
        "server": str(server),
        "followed_to": str(followed.place) if followed else None,
        "tables": [
            {**entry_document(entry), "backups": store.backup_count(server, entry.key)}
            for entry in entries
        ],
        "staged": [entry_document(entry) for entry in staged],
    }


def show_listing(document: dict[str, Any], entries: Sequence[Entry], *, is_detailed: bool) -> None:
    """Show the tables of a server: one line each, or each with its columns."""
    place = document["followed_to"] or "no position yet"
    write_line(f"server {document['server']}, followed to {place}")
    if not entries:
        write_line("no tables")
        return
    if is_detailed:
        for entry in entries:
            _show_entry(entry)
    else:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in ("table", "state", "columns", "since", "by"):
            table.add_column(name, overflow="fold")
        for entry in entries:
            table.add_row(*map(Text, _line(entry)))
        show(table)
    for waiting in document["staged"]:
        name = f"{waiting['schema']}.{waiting['table']}"
        write_line(printable(f"{name}: an update is staged for the next `follow`"))


def _line(entry: Entry) -> tuple[str, ...]:
    count = str(entry.definition.column_count) if entry.definition else ""
    key = printable(str(entry.key))
    state = entry.state.value if not entry.why else f"{entry.state.value}: {printable(entry.why)}"
    return key, state, count, str(entry.place), entry.source.value


def _show_entry(entry: Entry) -> None:
    write_line("")
    write_line(printable(f"{entry.key}: {explain(entry)} (by {entry.source.value})"))
    if entry.statement:
        write_line(f"  {printable(' '.join(entry.statement.split()))}")
    if entry.definition is None:
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("#", "column", "type", "character set", "NULL", ""):
        table.add_column(name, overflow="fold")
    for at, column in enumerate(entry.definition.columns, 1):
        table.add_row(*map(Text, (str(at), *_cells(column))))
    show(table)
    for line in _keys(entry.definition):
        write_line(printable(line))


def _cells(column: Column) -> tuple[str, ...]:
    extra = [column.is_generated.value] if column.is_generated else []
    extra += ["invisible"] if column.is_invisible else []
    nullable = "yes" if column.is_nullable else "no"
    texts = (column.name, column.type_text, column.charset or "", nullable, ", ".join(extra))
    return tuple(map(printable, texts))


def _keys(definition: TableDefinition) -> list[str]:
    lines = []
    if definition.primary_key:
        lines.append(f"primary key ({', '.join(definition.primary_key)})")
    lines += [_key(key) for key in definition.unique_keys]
    if not definition.is_complete:
        lines.append("from logged metadata: other keys and generated columns are not known")
    return lines


def _key(key: Key) -> str:
    inexact = "" if key.is_exact else ", with prefixes or expressions"
    return f"unique key {key.name} ({', '.join(key.columns)}{inexact})"


def comparison_document(comparison: DefinitionComparison) -> dict[str, Any]:
    """Return the document of `compare`."""
    return {
        "table": str(comparison.key),
        "at": str(comparison.place) if comparison.place else None,
        "verdict": comparison.verdict.value,
        "code": MISFIT if comparison.is_misfit else None,
        "views": {view.name.replace(" ", "_"): _view(view) for view in comparison.views},
        "differing_positions": [
            at for at, row in enumerate(comparison.rows, 1) if is_marked(row, comparison.views)
        ],
        "explanation": list(comparison.explanation),
    }


def _view(view: View) -> dict[str, Any]:
    return {
        "columns": [{"name": name, "type": kind} for name, kind in view.columns],
        "why_not": view.why or None,
        "definition": definition_document(view.definition) if view.definition else None,
    }


def show_comparison(comparison: DefinitionComparison) -> None:
    """Show the four definitions side by side; a mark at the line's beginning shows a difference."""
    where = f" at {comparison.place}" if comparison.place else ""
    code = f"{MISFIT} {entry_of(MISFIT).name}: " if comparison.is_misfit else ""
    write_line(printable(f"{comparison.verdict.value}: {code}{comparison.key}{where}"))
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    table.add_column("#", justify="right")
    for view in comparison.views:
        table.add_column(view.name, overflow="fold", ratio=1)
    for at, row in enumerate(comparison.rows, 1):
        differs = is_marked(row, comparison.views)
        style = "bold yellow" if differs else ""
        cells = [Text(printable(" ".join(cell)) if cell else "", style=style) for cell in row]
        table.add_row(Text(_MARK if differs else "", style=style), Text(str(at)), *cells)
    show(table)
    for view in comparison.views:
        if view.why:
            write_line(printable(f"{view.name}: {view.why}"))
    for line in comparison.explanation:
        write_line(printable(line))


def comparison_lines(comparison: DefinitionComparison) -> Iterator[str]:
    """Yield the four definitions as plain lines, for standard error beside a script."""
    name = entry_of(MISFIT).name
    yield f"{MISFIT} {name}: {comparison.key} at {comparison.place}: {comparison.explanation[0]}"
    lines = [["", "#", *(view.name for view in comparison.views)]]
    for at, row in enumerate(comparison.rows, 1):
        mark = _MARK if is_marked(row, comparison.views) else ""
        lines.append([mark, str(at), *(" ".join(cell) if cell else "" for cell in row)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for cells in lines:
        texts = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        yield "  ".join(texts).rstrip()
    for view in comparison.views:
        if view.why:
            yield f"{view.name}: {view.why}"
    yield from comparison.explanation[1:]


def follow_document(done: Followers) -> dict[str, Any]:
    """Return the document of `follow`."""
    return {
        "server": str(done.server),
        "begun_at": str(done.report.begun_at),
        "followed_to": str(done.report.ended_at),
        "entries": done.report.entry_count,
        "staged_put": [str(entry.key) for entry in done.staged],
        "taken_from_server": [str(entry.key) for entry in done.asked],
        "unknown": [
            {"table": str(entry.key), "since": str(entry.place), "why": entry.why}
            for entry in done.unknown
        ],
    }


def show_follow(done: Followers) -> None:
    """Show the result of `follow`, and what is still unknown."""
    report = done.report
    write_line(
        f"server {done.server}: followed from {report.begun_at} to {report.ended_at},"
        f" {report.entry_count:,} changed definitions"
    )
    _names("staged updates that were applied", [entry.key for entry in done.staged])
    _names("read from the server, unchanged since", [entry.key for entry in done.asked])
    for entry in done.unknown[:_UNKNOWN_SHOWN_MAX]:
        write_line(printable(f"unknown: {entry.key} since {entry.place}: {entry.why}"))
    if len(done.unknown) > _UNKNOWN_SHOWN_MAX:
        write_line(f"… and {len(done.unknown) - _UNKNOWN_SHOWN_MAX:,} more")


def _names(what: str, keys: Sequence[TableKey]) -> None:
    if keys:
        write_line(printable(f"{what}: {', '.join(map(str, keys))}"))


def change_document(what: str, server: UUID, entries: Sequence[Entry]) -> dict[str, Any]:
    """Return the document of `update` or `delete`."""
    return {
        "done": what,
        "server": str(server),
        "entries": [entry_document(entry) for entry in entries],
    }

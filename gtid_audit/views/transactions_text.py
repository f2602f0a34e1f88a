"""Shows the contents of transactions to the operator: statements, and how rows changed.

1. An update is shown by its key and its changed columns, before beside after; unchanged columns are
   counted. Written or deleted rows are shown as a table if they fit the terminal.
2. It fits the terminal: long values are cut with an ellipsis, many rows are counted. `--json` has
   everything.
3. If names or signs are not known, that is reported once for each table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from binlog.event_types import RowKind
from binlog.events import Event, Query, RowsQuery
from binlog.log_times import MICROSECONDS, moment_text
from binlog.rows.tables import INTEGERS, Origin, RowTable
from binlog.rows.value_text import value_text
from binlog.rows.values import ABSENT, Image, RowChange, RowChanges
from binlog.scan import EventGroup
from gtid.counted_nouns import counted
from gtid_audit.output import printable
from gtid_audit.views.report_parts import QUIET, rest_of
from gtid_audit.views.report_text import console
from gtid_audit.views.transactions_json import label_of
from topology.readings.hidden_passwords import without_secrets

EVENTS_SHOWN_MAX: Final = 2_000
ROWS_SHOWN_MAX: Final = 20
VALUE_CHARACTERS_MAX: Final = 200
STATEMENT_CHARACTERS_MAX: Final = 2_000
_WORDS: Final = {
    RowKind.WRITE: ("inserted into", "green"),
    RowKind.UPDATE: ("updated in", "yellow"),
    RowKind.DELETE: ("deleted from", "red"),
}
_INDENT: Final = (0, 0, 0, 4)
_GAP: Final = 2


def transaction_parts(
    group: EventGroup, items: Iterable[RowChanges | Event], *, notes: set[str]
) -> Iterator[RenderableType]:
    """Yield the parts of one transaction. `notes` has the notes that were shown already."""
    yield from _head(group)
    for number, item in enumerate(items):
        if number == EVENTS_SHOWN_MAX:
            counts = group.transaction.tables
            rows = sum(each.rows_written + each.rows_updated + each.rows_deleted for each in counts)
            rest = f"… the rest is not shown; the transaction changed {rows:,} rows; --json has all"
            yield Padding(Text(rest, style=QUIET), _INDENT)
            return
        if isinstance(item, RowChanges):
            yield from _rows(item, notes)
        elif isinstance(item.body, Query):
            yield from _statement(item.body)
        elif isinstance(item.body, RowsQuery):
            text = item.body.sql.decode("utf-8", errors="backslashreplace")
            sql = _shortened(without_secrets(text))
            yield Padding(Text(printable(sql), style=QUIET), _INDENT)


def _head(group: EventGroup) -> Iterator[RenderableType]:
    transaction = group.transaction
    name = str(transaction.gtid) if transaction.gtid else "anonymous"
    facts = [
        f"{transaction.file}:{transaction.start}-{transaction.end}",
        _moment(transaction.original_commit_timestamp, transaction.timestamp_seconds),
        f"server {transaction.server_id}",
        transaction.kind.value,
    ]
    if not transaction.is_complete:
        facts.append("its end is missing")
    line = Text(name, style="bold")
    line.append("  " + " · ".join(map(printable, facts)), style=QUIET)
    yield line


def _moment(microseconds: int | None, seconds: int) -> str:
    """Return when it was first committed; before 8.0.1, when it was logged."""
    if microseconds is None:
        return f"{moment_text(seconds * MICROSECONDS, form='%Y-%m-%d %H:%M:%S UTC')}"
    return f"{moment_text(microseconds, form='%Y-%m-%d %H:%M:%S.%f UTC')}"


def _statement(query: Query) -> Iterator[RenderableType]:
    sql = without_secrets(query.sql.decode("utf-8", errors="backslashreplace"))
    if sql in {"BEGIN", "COMMIT"}:
        return
    if len(sql) > STATEMENT_CHARACTERS_MAX:
        sql = sql[: STATEMENT_CHARACTERS_MAX - 1] + "…"
    where = f"in {query.schema}" if query.schema else ""
    failed = f"ended with error {query.error_code} on its server" if query.error_code else ""
    note = " · ".join(filter(None, (where, failed)))
    if note:
        yield Text(f"  {printable(note)}", style="red" if failed else QUIET)
    yield Padding(Text(printable(sql)), _INDENT)


def _rows(changes: RowChanges, notes: set[str]) -> Iterator[RenderableType]:
    table, count = changes.table, len(changes.rows)
    word, style = _WORDS[changes.kind]
    yield Text(f"  {counted(count, 'row')} {word} {printable(table.name)}", style=style)
    for note in _notes(table):
        if note not in notes:
            notes.add(note)
            yield Padding(Text(printable(note), style="magenta"), _INDENT)
    shown = changes.rows[:ROWS_SHOWN_MAX]
    if changes.kind is RowKind.UPDATE:
        yield Padding(_updates(table, shown), _INDENT)
    else:
        images = [image for row in shown if (image := row.before or row.after) is not None]
        yield Padding(_listed(table, images), _INDENT)
    yield from rest_of(count, ROWS_SHOWN_MAX, "rows")


def _notes(table: RowTable) -> Iterator[str]:
    if table.mismatch:
        yield f"{table.name}: the given definition is not used: {table.mismatch}"
    if table.origin is Origin.NOWHERE:
        yield (
            f"{table.name}: column names are not logged (binlog_row_metadata is not FULL). @1 is"
            " the first column. For names, use --definitions, --store or --schema-from"
        )
    if any(column.is_unsigned is None for column in table.columns if column.type_code in INTEGERS):
        yield f"{table.name}: it is not known which integers are unsigned"
    if any(column.charset is None for column in table.columns if column.is_string):
        yield f"{table.name}: character sets are not known; text other than ASCII is hexadecimal"


def _updates(table: RowTable, rows: Iterable[RowChange]) -> RenderableType:
    grid = _grid(4)
    grid.add_row("", "", Text("before"), Text("after"), style=QUIET)
    for number, row in enumerate(rows, start=1):
        assert row.before is not None
        assert row.after is not None
        first = True
        same = 0
        for at, (before, after) in enumerate(zip(row.before, row.after, strict=True)):
            is_key = at in (table.key or ())
            if after is ABSENT and before is ABSENT:
                continue
            is_same = after is ABSENT or before == after
            if is_same and not is_key:
                same += 1
                continue
            grid.add_row(
                Text(str(number) if first else "", style=QUIET),
                Text(printable(label_of(table, at)), style="bold" if is_key else ""),
                _cell(table, at, row.before),
                Text("") if is_same else _cell(table, at, row.after),
            )
            first = False
        if same:
            grid.add_row("", Text(f"{counted(same, 'column')} unchanged", style=QUIET), "", "")
    return grid


def _listed(table: RowTable, images: list[Image]) -> RenderableType:
    """Show rows as a table if every column fits, otherwise one column per line."""
    present = [
        at for at in range(len(table.columns)) if any(image[at] is not ABSENT for image in images)
    ]
    widths = [
        max(
            len(label_of(table, at)),
            *(len(_cell(table, at, image).plain) for image in images),
        )
        for at in present
    ]
    if sum(widths) + _GAP * len(widths) + _INDENT[3] <= console().width:
        grid = _grid(len(present))
        grid.add_row(*(_label(table, at) for at in present))
        for image in images:
            grid.add_row(*(_cell(table, at, image) for at in present))
        return grid
    grid = _grid(3)
    for number, image in enumerate(images, start=1):
        for place, at in enumerate(present):
            mark = Text(str(number) if place == 0 else "", style=QUIET)
            grid.add_row(mark, _label(table, at), _cell(table, at, image))
    return grid


def _grid(columns: int) -> Table:
    grid = Table.grid(padding=(0, _GAP, 0, 0))
    for _ in range(columns):
        grid.add_column(overflow="ellipsis", no_wrap=True)
    return grid


def _label(table: RowTable, at: int) -> Text:
    style = "bold" if at in (table.key or ()) else QUIET
    return Text(printable(label_of(table, at)), style=style)


def _cell(table: RowTable, at: int, image: Image) -> Text:
    value = image[at]
    text = _shortened(value_text(table.columns[at], value))
    return Text(printable(text), style=QUIET if value is None or value is ABSENT else "")


def _shortened(text: str) -> str:
    """Put a text on one line, and cut it."""
    line = (
        text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
        if ("\n" in text or "\t" in text)
        else text
    )
    if len(line) <= VALUE_CHARACTERS_MAX:
        return line
    return f"{line[: VALUE_CHARACTERS_MAX - 1]}…"

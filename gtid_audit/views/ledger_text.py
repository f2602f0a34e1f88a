"""Shows the result of `binlog scan`: a document, lines of JSON, or a page for the operator.

1. The verdict is OK, or UNKNOWN if something could not be read. A scan evaluates nothing else.
2. A page is short: long lists are counted. Sizes are in units of 1,000.
3. This module reads no log; ledger_summary.py makes what it shows.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from binlog.ledger.ledger_summary import FileSummary, LedgerSummary
from binlog.log_times import moment, moment_text
from gtid.counted_nouns import counted
from gtid_audit.output import warn
from gtid_audit.views.locate_text import error_document, error_parts
from gtid_audit.views.report_parts import QUIET, line_of, rest_of
from gtid_audit.views.report_text import VERDICT_STYLE, labelled, show
from topology.catalogue.findings import Verdict

if TYPE_CHECKING:
    import pyarrow as pa

FILES_SHOWN_MAX: Final = 20
TABLES_SHOWN_MAX: Final = 10
CELLS_MAX: Final = 60
LINES_AT_ONCE: Final = 10_000

_LEVELS: Final = " ▁▂▃▄▅▆▇█"
_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB", "PB")
_UNIT: Final = 1000


def verdict_of(summary: LedgerSummary) -> Verdict:
    """Return OK if everything was read, else UNKNOWN."""
    return Verdict.UNKNOWN if summary.errors else Verdict.OK


def document_of(summary: LedgerSummary, *, source: str, out: str | None) -> dict[str, Any]:
    """Return a summary as a JSON document."""
    gtids, span = summary.gtids, summary.span
    return {
        "verdict": verdict_of(summary).value,
        "source": source,
        "out": out,
        "transactions": summary.transactions,
        "bytes": summary.bytes,
        "gtid_set": str(gtids),
        "gtid_count": gtids.gtid_count,
        "anonymous": summary.anonymous,
        "incomplete": summary.incomplete,
        "with_errors": summary.with_errors,
        "first_at": _time(span and _moment(span[0])),
        "last_at": _time(span and _moment(span[1])),
        "kinds": {
            kind: {"transactions": each.transactions, "bytes": each.bytes}
            for kind, each in sorted(summary.kinds.items())
        },
        "largest": [
            {
                "gtid": each.gtid,
                "file": each.file,
                "start": each.start,
                "bytes": each.bytes,
                "kind": each.kind,
            }
            for each in summary.largest
        ],
        "tables": [
            {"schema": schema, "table": table, **rows}
            for schema, table, rows in summary.rows_by_table()
        ],
        "files": [_file_document(each) for each in summary.files],
    }


def _file_document(each: FileSummary) -> dict[str, Any]:
    previous = each.previous_gtids
    return {
        "file": each.file,
        "server_version": each.server_version,
        "checksum": each.checksum,
        "previous_gtids": None if previous is None else str(previous),
        "gtid_set": str(each.gtids),
        "gtid_count": each.gtids.gtid_count,
        "transactions": each.transactions,
        "bytes": each.bytes,
        "end": each.end,
        "first_at": _time(_moment(each.first_at)),
        "last_at": _time(_moment(each.last_at)),
        "error": None if each.error is None else error_document(each.error),
    }


def lines_of(rows: "pa.Table") -> Iterator[str]:
    """Yield ledger rows as JSON lines, some thousands of lines at a time."""
    for batch in rows.to_batches(max_chunksize=LINES_AT_ONCE):
        columns = {name: _values(batch.column(name)) for name in batch.schema.names}
        names = tuple(columns)
        yield "".join(
            json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n"
            for row in zip(*columns.values(), strict=True)
        )


def _values(column: "pa.Array") -> list[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_timestamp(column.type):  # in microseconds, with a Z
        values: list[Any] = pc.strftime(column, format="%Y-%m-%dT%H:%M:%SZ").to_pylist()
        return values
    values = column.to_pylist()
    if pa.types.is_uint64(column.type):  # a digest; JSON readers round numbers above 2^53
        return [None if value is None else f"{value:016x}" for value in values]
    return values


def show_summary(summary: LedgerSummary, *, source: str, out: str | None) -> None:
    """Show a summary to the operator."""
    parts: list[RenderableType] = [_headline(summary, source)]
    if summary.transactions:
        parts += [Text(), labelled(_facts(summary))]
    if summary.tables:
        parts += [Text(), _tables(summary)]
    parts += [Text(), _files(summary)]
    parts += rest_of(len(summary.files), FILES_SHOWN_MAX, "files")
    parts += error_parts(summary.errors)
    if out is not None:
        parts += [Text(), line_of(f"{counted(summary.transactions, 'row')} written to {out}")]
    show(*parts)


def warn_of_errors(summary: LedgerSummary) -> None:
    """Print on standard error what could not be read: JSON lines have no field for it."""
    for error in summary.errors:
        warn(str(error))


def show_verdict(summary: LedgerSummary, *, source: str) -> None:
    """Show only the first line."""
    show(_headline(summary, source))


def _headline(summary: LedgerSummary, source: str) -> Text:
    verdict = verdict_of(summary)
    line = Text(f" {verdict.value} ", style=VERDICT_STYLE[verdict])
    said = [
        source,
        counted(len(summary.files), "file"),
        counted(summary.transactions, "transaction"),
        size_of(summary.bytes),
    ]
    if summary.errors:
        said.append(counted(len(summary.errors), "file") + " not read to the end")
    line.append("  ")
    return line.append_text(line_of(" · ".join(said)))


def _facts(summary: LedgerSummary) -> Iterator[tuple[str, RenderableType]]:
    yield "GTIDs", Text(summary.gtids.shortened() or "none")
    if summary.span is not None:
        first, last = summary.span
        first_at, last_at = (
            moment_text(each, form="%Y-%m-%d %H:%M:%S UTC") for each in (first, last)
        )
        yield "time", Text(f"{first_at} … {last_at}")
        yield from _pictures(summary)
    yield "kinds", _kinds(summary)
    yield "largest", _largest(summary)
    remarks = {
        "without GTID": summary.anonymous,
        "whose end is not in the same file": summary.incomplete,
        "with a statement that ended in an error on its source": summary.with_errors,
    }
    for what, count in remarks.items():
        if count:
            yield "note", Text(f"{counted(count, 'transaction')} {what}", style="yellow")


def _pictures(summary: LedgerSummary) -> Iterator[tuple[str, RenderableType]]:
    cells = summary.timeline.cells(CELLS_MAX)
    if len(cells) < 2:  # noqa: PLR2004 - one column shows no course
        return
    each = timedelta(seconds=summary.timeline.cell_seconds(CELLS_MAX))
    counts, sizes = zip(*cells, strict=True)
    for number, values in enumerate((counts, sizes)):
        peak = f"{max(counts):,} transactions" if number == 0 else size_of(max(sizes))
        line = Text(bars(values), style="green")
        yield "" if number else "over time", line.append(f"  up to {peak}", style=QUIET)
    yield "", Text(f"one column is {each}", style=QUIET)


def bars(values: Iterable[int]) -> str:
    """Draw one column per value; its height is relative to the largest. 0 is empty."""
    values = tuple(values)
    highest = max(values, default=0)
    steps = len(_LEVELS) - 1
    return "".join(_LEVELS[-(-value * steps // highest) if highest else 0] for value in values)


def _kinds(summary: LedgerSummary) -> Text:
    kinds = sorted(summary.kinds.items(), key=lambda each: (-each[1].transactions, each[0]))
    said = [f"{kind} {each.transactions:,} ({size_of(each.bytes)})" for kind, each in kinds]
    return Text(" · ".join(said))


def _largest(summary: LedgerSummary) -> RenderableType:
    grid = _grid(right={"bytes"}, columns=("bytes", "kind", "where", "GTID"))
    shorten = _shortener(summary.files)
    for each in summary.largest:
        where = line_of(f"{shorten(each.file)}:{each.start}")
        grid.add_row(size_of(each.bytes), each.kind, where, each.gtid or "")
    return grid


def _files(summary: LedgerSummary) -> RenderableType:
    """Show a line for each file; a column without any value is left out."""
    shorten = _shortener(summary.files)
    shown = summary.files[:FILES_SHOWN_MAX]
    columns: dict[str, list[Text]] = {
        "file": [line_of(shorten(each.file)) for each in shown],
        "server": [line_of(each.server_version or "") for each in shown],
        "transactions": [Text(f"{each.transactions:,}") for each in shown],
        "bytes": [Text(size_of(each.bytes)) for each in shown],
        "from": [Text(_short_time(each.first_at)) for each in shown],
        "to": [Text(_short_time(each.last_at)) for each in shown],
        "": [
            Text(f"stops at byte {each.end:,}" if each.error else "", style="magenta")
            for each in shown
        ],
    }
    columns = {name: cells for name, cells in columns.items() if any(map(str, cells))}
    grid = _grid(right={"transactions", "bytes"}, columns=columns)
    grid.add_row(*columns, style=QUIET)
    for row in zip(*columns.values(), strict=True):
        grid.add_row(*row)
    return Padding(grid, (0, 0, 0, 2))


def _tables(summary: LedgerSummary) -> RenderableType:
    columns = ("table", "rows written", "updated", "deleted")
    grid = _grid(right=set(columns[1:]), columns=columns)
    grid.add_row(*columns, style=QUIET)
    found = summary.rows_by_table()
    for schema, table, rows in found[:TABLES_SHOWN_MAX]:
        grid.add_row(line_of(f"{schema}.{table}"), *(f"{count:,}" for count in rows.values()))
    if len(found) > TABLES_SHOWN_MAX or summary.tables_left_out:
        more = f"{len(found) - TABLES_SHOWN_MAX:,}" + (" or more" * summary.tables_left_out)
        grid.add_row(Text(f"… and {more} others", style=QUIET))
    return Padding(grid, (0, 0, 0, 2))


def _grid(*, right: set[str], columns: Iterable[str]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for name in columns:
        grid.add_column(justify="right" if name in right else "left", overflow="fold")
    return grid


def _shortener(files: Iterable[FileSummary]) -> Callable[[str], str]:
    """Return a function that displays file names: without the folder, if all are in one."""
    folders = {PurePath(each.file).parent for each in files}
    return (lambda file: PurePath(file).name) if len(folders) == 1 else str


def size_of(count: int) -> str:
    """Return a size as text: "12 bytes", "1.2 GB"."""
    size, unit = float(count), 0
    while size >= _UNIT - 0.05 and unit + 1 < len(_UNITS):
        size, unit = size / _UNIT, unit + 1
    if not unit:
        return counted(count, "byte")
    return f"{size:.1f} {_UNITS[unit]}"


def _moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else moment(microseconds)


def _time(at: datetime | None) -> str | None:
    return None if at is None else f"{at:%Y-%m-%dT%H:%M:%S.%f}Z"


def _short_time(microseconds: int | None) -> str:
    return "" if microseconds is None else moment_text(microseconds, form="%m-%d %H:%M:%S")

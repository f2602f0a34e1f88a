"""Shows trends to the operator, as small pictures in tables, and writes them as a document.

It requests as many rows as fit on a page; `--json` has all.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gtid.counted_nouns import counted
from gtid_audit.output import printable
from gtid_audit.views import report_text
from gtid_audit.views.report_parts import QUIET
from topology.documents.json_items import document_pieces
from topology.documents.records import Record, time_to_text

if TYPE_CHECKING:  # PySpark is imported only where it is used
    from pyspark.sql import DataFrame

    from spark_audit.adapters.trends import Trends
    from spark_audit.trends_frames import TrendPolicy

ROWS_SHOWN_MAX: Final = 20
SPARKS_MAX: Final = 24  # the newest points; the table needs space for other columns
_SPARKS: Final = "▁▂▃▄▅▆▇█"


def trend_document(trends: "Trends") -> Iterator[str]:
    """Return the JSON document, in pieces."""
    head: Record = {
        "first_run": time_to_text(trends.runs[0].moment),
        "last_run": time_to_text(trends.runs[-1].moment),
        "runs": len(trends.runs),
    }
    return document_pieces(head, trends.items())


def show_trends(trends: "Trends", *, policy: "TrendPolicy") -> None:
    """Show the three trends, each with its limits."""
    span = " … ".join(
        report_text.moment_of(run.moment) for run in (trends.runs[0], trends.runs[-1])
    )
    parts: list[RenderableType] = [
        Text(f"{counted(len(trends.runs), 'run')}: {span}", style="bold")
    ]
    parts += _section(
        f"Fragmentation (F1): intervals of each server's set; limit {policy.intervals_max:,}",
        ("cluster", "server", "intervals", "", "per day", "limit reached"),
        [_interval_cells(row) for row in _page(trends.intervals)],
        nothing="no set was read",
    )
    parts += _section(
        f"UUIDs that could be retired (F2): unchanged on every server in the last"
        f" {policy.quiet_runs} runs, and the server_uuid of no server",
        ("cluster", "uuid", "transactions", "servers"),
        [_retirement_cells(row) for row in _page(trends.retirable)],
        nothing=f"none, or fewer than {policy.quiet_runs} runs",
    )
    findings = [] if trends.findings is None else _page(trends.findings)
    parts += _section(
        "Findings over time",
        ("code", "cluster", "where", "since", "transactions", "", "per hour", "clear at"),
        [_finding_cells(row) for row in findings],
        nothing="none"
        if trends.findings is not None
        else "no results here; `audit --out` stores them",
    )
    report_text.show(*parts)


def sparks(counts: Sequence[int]) -> str:
    """Draw counts as a line of bars, relative to their lowest and highest.

    >>> sparks([1, 2, 9]), sparks([5, 5]), sparks([])
    ('▁▁█', '▁▁', '')
    """
    shown = counts[-SPARKS_MAX:]
    low = min(shown, default=0)
    span = max(shown, default=0) - low
    steps = len(_SPARKS) - 1
    return "".join(_SPARKS[(count - low) * steps // span if span else 0] for count in shown)


def _page(frame: "DataFrame") -> list[dict[str, Any]]:
    from spark_audit.adapters.trends import first_rows

    return first_rows(frame, ROWS_SHOWN_MAX + 1)  # one more shows that there are more


def _section(
    title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], *, nothing: str
) -> list[RenderableType]:
    parts: list[RenderableType] = [Text(), Text(title, style="bold")]
    if not rows:
        return [*parts, Padding(Text(nothing, style=QUIET), (0, 0, 0, 2))]
    table = Table(box=None, padding=(0, 2, 0, 0), header_style=QUIET)
    for heading in headings:
        table.add_column(heading)
    for row in rows[:ROWS_SHOWN_MAX]:
        table.add_row(*(Text(printable(cell)) for cell in row))
    parts.append(Padding(table, (0, 0, 0, 2)))
    if len(rows) > ROWS_SHOWN_MAX:
        parts.append(Text("  … and more; --json has all", style=QUIET))
    return parts


def _interval_cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["cluster"],
        row["server"],
        f"{row['interval_count']:,}" + (" !" if row["is_fragmented"] else ""),
        sparks([point["count"] for point in row["points"]]),
        _rate(row["intervals_per_day"]),
        _day(row["fragmented_at"]),
    )


def _retirement_cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (row["cluster"], row["uuid"], f"{row['gtid_count']:,}", str(row["servers"]))


def _finding_cells(row: dict[str, Any]) -> tuple[str, ...]:
    ends = [name for name in (row["source"], row["replica"]) if name]
    return (
        row["code"],
        row["cluster"],
        " → ".join(ends) + ("" if row["is_open"] else " (gone)"),
        _day(row["first_seen"]),
        f"{row['gtid_count']:,}",
        sparks([point["count"] for point in row["points"]]),
        _rate(row["gtids_per_hour"]),
        _day(row["clears_at"]),
    )


def _rate(value: float | None) -> str:
    return "" if value is None else f"{value:+,.1f}"


def _day(moment: str | None) -> str:
    return "" if moment is None else moment[:16].replace("T", " ")

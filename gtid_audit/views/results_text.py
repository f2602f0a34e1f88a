"""Shows the results of stored snapshots, from either engine: counts, the worst, and the directory.

1. It requests as many rows as fit on a page, and holds no more.
2. The parts are those of report_text.py; only their source differs.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gtid.counted_nouns import counted
from gtid_audit.operands.servers_in_commands import NamedInCommands, not_reachable
from gtid_audit.output import printable
from gtid_audit.views import report_text
from gtid_audit.views.audit_counts import AuditCounts
from gtid_audit.views.next_steps import next_parts
from gtid_audit.views.report_parts import QUIET, line_of, rest_of
from spark_audit.summary import FleetSummary, WorstCluster
from topology.catalogue.findings import Finding, Severity, Unknown, Verdict


class Page(Protocol):
    """The results of a run, of either engine, in memory or in files."""

    @property
    def place(self) -> str:
        """Return the directory of the run."""

    @property
    def summary(self) -> FleetSummary:
        """Return the counts and the worst clusters."""

    def worst_findings(self, limit: int) -> tuple[Finding, ...]:
        """Return at most `limit` findings above severity INFO, the worst first."""

    def accepted_findings(self, limit: int) -> tuple[Finding, ...]:
        """Return at most `limit` findings that the policy accepts, in order."""

    def first_unknown(self, limit: int) -> tuple[Unknown, ...]:
        """Return at most `limit` facts that were not read, in order."""

    def report_items(self) -> dict[str, Iterator[str]]:
        """Return the three lists of a report as items (json_items.py), in order, in pieces."""


def show_results(results: Page, *, kept: bool, named: NamedInCommands = not_reachable) -> None:
    """Show a results run, and its directory if it is stored. `named` is as in report_text.py."""
    summary = results.summary
    parts: list[RenderableType] = [verdict_line(summary)]
    if summary.worst:
        parts += [Text(), _clusters(summary)]
    loud_count = AuditCounts.of_summary(summary).loud_count
    loud = results.worst_findings(report_text.FINDINGS_SHOWN_MAX) if loud_count else ()
    for finding in loud:
        parts += report_text.finding_parts(finding, None, name_cluster=True)
    parts += rest_of(loud_count, report_text.FINDINGS_SHOWN_MAX, "findings")
    quiet = any(each.severity is Severity.INFO for each in summary.findings)
    accepted = results.accepted_findings(report_text.FINDINGS_SHOWN_MAX) if quiet else ()
    parts += report_text.accepted_parts(accepted, count=len(accepted))
    if len(accepted) == report_text.FINDINGS_SHOWN_MAX:
        parts.append(Text("  … and perhaps more; --json has all", style=QUIET))
    unknown: Sequence[Unknown] = ()
    if summary.unknown_count:
        # Two readings of one fact are shown as one line: request twice as many.
        unknown = results.first_unknown(2 * report_text.UNKNOWN_SHOWN_MAX)
        more = summary.unknown_count - len(unknown)
        parts += report_text.unknown_parts(unknown, name_cluster=True, more=more)
    parts += next_parts(loud, unknown, named=named, snapshots={})
    if kept:
        parts += [Text(), line_of(f"Results: {results.place}")]
    report_text.show(*parts)


def verdict_line(summary: FleetSummary) -> Text:
    """Return the verdict and the counts, on one line."""
    read = f"read {report_text.moment_of(summary.audited_at)}"
    said = [*AuditCounts.of_summary(summary).words(), read]
    return report_text.headline(summary.verdict, " · ".join(said))


def _clusters(summary: FleetSummary) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style=QUIET)
    for heading in ("cluster", "verdict", "servers", "found"):
        table.add_column(heading)
    for each in summary.worst:
        table.add_row(
            Text(printable(each.cluster)),
            Text(f" {each.verdict.value} ", style=report_text.VERDICT_STYLE[each.verdict]),
            Text(str(each.server_count)),
            Text(_found(each)),
        )
    counts = dict(summary.clusters)
    others = summary.cluster_count - counts[Verdict.OK] - len(summary.worst)
    parts: list[RenderableType] = [table]
    if others:
        parts.append(Text(f"… and {others:,} more that are not OK", style=QUIET))
    if counts[Verdict.OK]:
        parts.append(Text(f"the other {counts[Verdict.OK]:,} OK", style=QUIET))
    return Padding(Group(*parts), (0, 0, 0, 2))


def _found(cluster: WorstCluster) -> str:
    counts = (
        (cluster.critical_count, "critical"),
        (cluster.warning_count, "warning"),
        (cluster.info_count, "info"),
    )
    said = [f"{count:,} {word}" for count, word in counts if count]
    if cluster.unknown_count:
        said.append(counted(cluster.unknown_count, "fact") + " not read")
    return ", ".join(said)

"""Shows a report to the operator: the verdict first, then each finding, its proof and what to do.

1. It fits the terminal and is short: long lists are counted, and `--json` has them complete.
2. Every part is made printable where it is printed (`show`), and no markup in it is interpreted.
3. This module evaluates nothing and reads no server.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from gtid.counted_nouns import counted
from gtid_audit.global_options import GLOBAL_OPTIONS
from gtid_audit.operands.servers_in_commands import NamedInCommands, not_reachable
from gtid_audit.output import printable, write
from gtid_audit.views.audit_counts import AuditCounts, label_words
from gtid_audit.views.cluster_pictures import is_loud, picture_of, topology_parts
from gtid_audit.views.failing_rows import short_explanation, shown_value
from gtid_audit.views.next_steps import next_parts
from gtid_audit.views.report import AuditReport
from gtid_audit.views.report_parts import QUIET, explained, line_of, rest_of
from topology.catalogue.findings import (
    ClusterAudit,
    Evidence,
    Finding,
    Grade,
    Severity,
    Strategy,
    Unknown,
    Verdict,
)
from topology.documents.label_records import Labels
from topology.facts.accepted_findings import is_accepted
from topology.readings.snapshot import ClusterSnapshot

WIDTH_WITHOUT_TERMINAL: Final = 100
FINDINGS_SHOWN_MAX: Final = 20
CLUSTERS_SHOWN_MAX: Final = 50
UNKNOWN_SHOWN_MAX: Final = 20
EVIDENCE_CHARACTERS_MAX: Final = 600

VERDICT_STYLE: Final = {
    Verdict.OK: "bold black on green",
    Verdict.WARNING: "bold black on yellow",
    Verdict.CRITICAL: "bold white on red",
    Verdict.UNKNOWN: "bold white on magenta",
}
_SEVERITY_STYLE: Final = {
    Severity.CRITICAL: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.INFO: "cyan",
}


@dataclass(frozen=True, slots=True)
class _Printable:
    """A part without control characters, wherever in it a text of a server is."""

    part: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for each in console.render(self.part, options):
            yield Segment(printable(each.text), each.style)


_recorders: list[Console] = []  # what prints instead of standard output, the last one first


@contextmanager
def printing_on(recorder: Console) -> Iterator[None]:
    """Let `show` print on another console until the end of the block."""
    _recorders.append(recorder)
    try:
        yield
    finally:
        _recorders.pop()


def console() -> Console:
    """Return the console of standard output; colours only on a terminal, and not with NO_COLOR."""
    if _recorders:
        return _recorders[-1]
    known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return Console(
        file=sys.stdout,
        highlight=False,
        markup=False,
        emoji=False,
        width=None if known else WIDTH_WITHOUT_TERMINAL,
        no_color=None if GLOBAL_OPTIONS.has_color else True,
    )


def show(*parts: RenderableType) -> None:
    """Print on standard output. Raises ReaderGone."""
    printer = console()
    if _recorders:
        printer.print(*map(_Printable, parts), sep="\n", crop=False)
        return
    with printer.capture() as captured:
        printer.print(*map(_Printable, parts), sep="\n", crop=False)
    # Rich pads table cells to the full width, which is not useful in a file or a ticket.
    lines = captured.get().splitlines()
    write("".join(f"{line.rstrip()}\n" for line in lines))


def show_report(
    report: AuditReport,
    *,
    snapshots: Iterable[ClusterSnapshot] = (),
    named: NamedInCommands = not_reachable,
) -> None:
    """Show a report; if its snapshots are given, also pictures of them.

    `named` is how commands name the servers.
    """
    taken = {snapshot.cluster: snapshot for snapshot in snapshots}
    parts: list[RenderableType] = [verdict_line(report)]
    labels = report.labels
    if len(report.audits) == 1:
        parts += topology_parts(taken.get(report.audits[0].cluster), report.audits[0])
    elif report.verdict is not Verdict.OK:
        parts += [Text(), _clusters(report)]
    loud = [each for each in report.findings if is_loud(each)]
    loud.sort(key=lambda finding: finding.severity is not Severity.CRITICAL)
    for finding in loud[:FINDINGS_SHOWN_MAX]:
        parts += finding_parts(
            finding,
            taken.get(finding.cluster),
            name_cluster=len(report.audits) > 1,
            labels=labels.get(finding.cluster, ()),
        )
    parts += rest_of(len(loud), FINDINGS_SHOWN_MAX, "findings")
    accepted = [each for each in report.findings if is_accepted(each)]
    parts += accepted_parts(accepted, count=len(accepted))
    quiet = [each for each in report.findings if each.severity is Severity.INFO]
    quiet = [each for each in quiet if not is_accepted(each)]
    if len(report.audits) == 1 and quiet:
        parts += [Text(), labelled((each.code, line_of(each.explanation)) for each in quiet)]
    parts += unknown_parts(report.unknown, name_cluster=len(report.audits) > 1)
    parts += next_parts(loud, report.unknown, named=named, snapshots=taken)
    show(*parts)


def headline(verdict: Verdict, text: str) -> Text:
    """Return the first line of an answer: its verdict, and a summary.

    With --quiet it is the answer, and one line however wide it is.
    """
    line = Text(overflow="ignore" if GLOBAL_OPTIONS.is_quiet else None)
    line.append(f" {verdict.value} ", style=VERDICT_STYLE[verdict])
    return line.append(f"  {printable(text)}")


def verdict_line(report: AuditReport) -> Text:
    """Return the verdict and its subject, on one line."""
    said = [*AuditCounts.of_report(report).words(), f"read {moment_of(report.audited_at)}"]
    return headline(report.verdict, " · ".join(said))


def accepted_parts(findings: Sequence[Finding], *, count: int) -> list[RenderableType]:
    """Show accepted findings in short: where, how many transactions, until when, and why.

    `findings` are the first of `count`. They are shown for every number of clusters: an accepted
    fault is not gone.
    """
    if not count:
        return []
    rows = [
        (
            each.code,
            Group(where_of(each, name_cluster=True), line_of(each.explanation)),
        )
        for each in findings[:FINDINGS_SHOWN_MAX]
    ]
    title = Text(f"Accepted, and so only info: {counted(count, 'finding')}", style="bold cyan")
    return [Text(), title, labelled(rows), *rest_of(count, FINDINGS_SHOWN_MAX, "accepted findings")]


def _clusters(report: AuditReport) -> RenderableType:
    order = (Verdict.CRITICAL, Verdict.UNKNOWN, Verdict.WARNING)
    loud = [audit for audit in report.audits if audit.verdict is not Verdict.OK]
    loud.sort(key=lambda audit: order.index(audit.verdict))
    table = Table(box=None, padding=(0, 2, 0, 0), header_style=QUIET)
    for heading in ("cluster", "verdict", "servers", "found"):
        table.add_column(heading)
    for audit in loud[:CLUSTERS_SHOWN_MAX]:
        table.add_row(
            Text(printable(f"{audit.cluster}{label_words(audit.labels)}")),
            Text(f" {audit.verdict.value} ", style=VERDICT_STYLE[audit.verdict]),
            Text(str(len(audit.servers))),
            Text(_codes(audit)),
        )
    parts = [table, *rest_of(len(loud), CLUSTERS_SHOWN_MAX, "clusters")]
    if len(loud) < len(report.audits):
        parts.append(Text(f"the other {len(report.audits) - len(loud):,} OK", style=QUIET))
    return Padding(Group(*parts), (0, 0, 0, 2))


def _codes(audit: ClusterAudit) -> str:
    counts: dict[str, int] = {}
    for finding in audit.findings:
        if finding.code != "U1":  # counted as facts below
            counts[finding.code] = counts.get(finding.code, 0) + 1
    said = [code if count == 1 else f"{count} {code}" for code, count in counts.items()]
    if audit.unknown:
        said.append(counted(len(audit.unknown), "fact") + " not read")
    return ", ".join(said)


def finding_parts(
    finding: Finding,
    snapshot: ClusterSnapshot | None,
    *,
    name_cluster: bool,
    labels: Labels = (),
) -> list[RenderableType]:
    """Show one finding: where, what, its proof, what to do, and since when if history is known."""
    title = finding_title(finding.code, finding.name, finding.severity, finding.grade)
    where = where_of(finding, name_cluster=name_cluster, labels=labels)
    rows: list[tuple[str, RenderableType]] = [("where", where)]
    explanation = short_explanation(finding)
    rows.append(("what", explained(explanation)))
    if finding.gtid_set:
        rows.append(("set", Text(finding.gtid_set.shortened())))
    picture = picture_of(finding, snapshot)
    if picture is not None:
        rows.append(("", picture))
    rows.append(("proof", _evidence(finding.evidence, explanation)))
    if finding.strategies:
        rows.append(("do", _strategies(finding.strategies)))
    if finding.first_seen < finding.last_seen:
        rows.append(("since", Text(moment_of(finding.first_seen))))
    if finding.deadline is not None:
        rows.append(("until", Text(moment_of(finding.deadline), style="bold")))
    rows.append(("id", Text(finding.id, style=QUIET)))
    return [Text(), Rule(title, align="left", characters="─", style=QUIET), labelled(rows)]


def finding_title(code: str, name: str, severity: Severity, grade: Grade) -> Text:
    """Return the heading of a finding: what it is, how severe and how certain."""
    title = Text(f"{code} {name}", style=_SEVERITY_STYLE[severity])
    return title.append(f"  {severity.value}, {grade.value}", style=QUIET)


def where_of(finding: Finding, *, name_cluster: bool, labels: Labels = ()) -> Text:
    """Return the servers, the channel and the number of transactions of a finding."""
    ends = [name for name in (finding.source, finding.replica) if name is not None]
    said = [" → ".join(ends)] if ends else []
    if finding.channel:
        said.append(f"channel {finding.channel}")
    if name_cluster or not said:
        said.insert(0, f"cluster {finding.cluster}{label_words(labels)}")
    if finding.gtid_set:
        said.append(counted(finding.gtid_set.gtid_count, "transaction"))
    return line_of(" · ".join(said))


def _evidence(evidence: Iterable[Evidence], explanation: str) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for each in evidence:
        value = printable(shown_value(each.fact, each.value, explanation))
        if len(value) > EVIDENCE_CHARACTERS_MAX:
            value = value[:EVIDENCE_CHARACTERS_MAX] + "… (--json has the whole text)"
        line = Text(f"{each.fact}: ")
        line.append(value, style="bold")
        said_by = f"  {printable(each.read_from)}, {each.read_at:%H:%M:%S}"
        grid.add_row(line.append(said_by, style=QUIET))
    return grid


def _strategies(strategies: Iterable[Strategy]) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    for strategy in strategies:
        line = line_of(strategy.why[:1].upper() + strategy.why[1:] + ".")
        if strategy.risk != "none":
            line.append(f" Risk: {strategy.risk}.", style=QUIET)
        grid.add_row(Text(strategy.name, style="bold"), line)
    return grid


def unknown_parts(
    unknown: Sequence[Unknown], *, name_cluster: bool, more: int = 0
) -> Iterator[RenderableType]:
    """Show what was not read; `more` is the number of facts that are not in `unknown`."""
    if not unknown:
        return
    # The two readings usually fail for the same reason: one line for both.
    seen = dict.fromkeys((each.cluster, each.server, each.fact, each.reason) for each in unknown)
    yield Text()
    yield Text(
        "Not read, so what depends on it was not evaluated (gtid-audit explain U1):",
        style="bold magenta",
    )
    grid = Table.grid(padding=(0, 2, 0, 0))
    for cluster, server, fact, reason in list(seen)[:UNKNOWN_SHOWN_MAX]:
        name = f"{cluster}/{server}" if name_cluster else server
        grid.add_row(line_of(name), Text(fact, style="bold"), line_of(reason))
    yield Padding(grid, (0, 0, 0, 2))
    yield from rest_of(len(seen) + more, UNKNOWN_SHOWN_MAX, "facts")


def labelled(rows: Iterable[tuple[str, RenderableType]]) -> RenderableType:
    """Put labels into a dim column before their contents."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(style=QUIET, no_wrap=True)
    grid.add_column(overflow="fold")
    for label, content in rows:
        grid.add_row(label, content)
    return Padding(grid, (0, 0, 0, 2))


def moment_of(moment: datetime | None) -> str:
    """Return a time as text, to the second."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC" if moment is not None else "never"

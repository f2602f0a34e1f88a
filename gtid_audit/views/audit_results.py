"""The answer of an audit, from memory or from files: a verdict, a document, a page.

1. The audits of a small fleet are in memory. Those of a large one are in Parquet, with a summary in
   memory. The code that prints does not distinguish the two.
2. The document is written piece by piece, with the same bytes from either source.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gtid_audit.operands.servers_in_commands import NamedInCommands, not_reachable
from gtid_audit.output import printable, write_line
from gtid_audit.views.audit_counts import (
    FINDINGS_NAMED_MAX,
    UNREAD_CODE,
    UNREAD_NAMED_MAX,
    AuditCounts,
)
from gtid_audit.views.content_text import content_lines
from gtid_audit.views.definition_text import Definitions, definition_lines
from gtid_audit.views.report import AuditReport, Contents, DocumentParts, Engine
from topology.catalogue.findings import Severity, Verdict
from topology.readings.snapshot import ClusterSnapshot

if TYPE_CHECKING:
    from gtid_audit.views.results_text import Page
    from gtid_audit.views.verdict_answers import VerdictAnswer


@dataclass(frozen=True, slots=True)
class InMemory:
    """A report with its sources: snapshots if available (for pictures), and compared contents.

    `place` is the directory of the results; empty if they are not stored. `named` is how commands
    name the servers.
    """

    report: AuditReport
    snapshots: tuple[ClusterSnapshot, ...] = ()
    contents: Contents = None
    place: str = ""
    definitions: Definitions = None
    named: NamedInCommands = not_reachable

    @property
    def verdict(self) -> Verdict:
        """Return the verdict over all clusters."""
        return self.report.verdict

    def document(self) -> Iterator[str]:
        """Return the JSON document of the contract, in pieces."""
        return self.report.document_pieces(self.contents, self.definitions)

    def lines(self) -> Iterator[str]:
        """Return the JSON lines."""
        return self.report.parts(self.contents, self.definitions).lines()

    def plugin_line(self) -> str:
        """Return the line of a monitoring plugin."""
        return _plugin_line(self.report)

    def show_verdict(self) -> None:
        """Show only the first line."""
        _show_verdict(self.report)

    def show(self) -> None:
        """Show the outcome to the operator."""
        from gtid_audit.views.report_text import show_report

        show_report(self.report, snapshots=self.snapshots, named=self.named)
        if self.place:
            write_line(f"Results: {printable(self.place)}")
        _show_contents(self.contents, is_stored=False)
        _show_definitions(self.definitions)


@dataclass(frozen=True, slots=True)
class InResults:
    """Results of a run. `kept`: they outlive this process."""

    results: "Page"
    engine: Engine
    kept: bool
    contents: Contents = None
    is_stored: bool = False
    definitions: Definitions = None
    named: NamedInCommands = not_reachable

    @property
    def verdict(self) -> Verdict:
        """Return the verdict over all clusters."""
        return self.results.summary.verdict

    def document(self) -> Iterator[str]:
        """Return the JSON document of the contract, in pieces."""
        return self._parts().document()

    def lines(self) -> Iterator[str]:
        """Return the JSON lines."""
        return self._parts().lines()

    def plugin_line(self) -> str:
        """Return the line of a monitoring plugin."""
        counts = AuditCounts.of_summary(self.results.summary)
        worst = self.results.worst_findings(FINDINGS_NAMED_MAX) if counts.loud_count else ()
        unread = self.results.first_unknown(UNREAD_NAMED_MAX) if counts.unknown_count else ()
        return counts.plugin_line(self.verdict, worst, unread)

    def _parts(self) -> DocumentParts:
        return DocumentParts(
            self.engine,
            audited_at=self.results.summary.audited_at,
            verdict=self.verdict,
            items=self.results.report_items(),
            contents=self.contents,
            definitions=self.definitions,
        )

    def show_verdict(self) -> None:
        """Show only the first line."""
        from gtid_audit.views.report_text import show
        from gtid_audit.views.results_text import verdict_line

        show(verdict_line(self.results.summary))

    def show(self) -> None:
        """Show the outcome to the operator."""
        from gtid_audit.views.results_text import show_results

        show_results(self.results, kept=self.kept, named=self.named)
        _show_contents(self.contents, is_stored=self.is_stored)
        _show_definitions(self.definitions)


@dataclass(frozen=True, slots=True)
class Refused:
    """A stored run that was not evaluated: every cluster is UNKNOWN, for the same reason."""

    report: AuditReport
    reason: str

    @property
    def verdict(self) -> Verdict:
        """Return UNKNOWN."""
        return Verdict.UNKNOWN

    def document(self) -> Iterator[str]:
        """Return the JSON document of the contract, in pieces."""
        return self.report.document_pieces(None)

    def lines(self) -> Iterator[str]:
        """Return the JSON lines."""
        return self.report.parts().lines()

    def plugin_line(self) -> str:
        """Return the line of a monitoring plugin."""
        counts = AuditCounts.of_report(self.report)
        return counts.plugin_line(self.verdict, (), (), note=f"not evaluated: {self.reason}")

    def show_verdict(self) -> None:
        """Show only the first line."""
        _show_verdict(self.report)

    def show(self) -> None:
        """Show the verdict and the reason."""
        from gtid_audit.views.report_parts import line_of
        from gtid_audit.views.report_text import show, verdict_line

        show(verdict_line(self.report), line_of(f"Not evaluated: {self.reason}."))


def naming(answer: "VerdictAnswer", named: NamedInCommands) -> "VerdictAnswer":
    """Return an answer whose next steps name the servers of live readings."""
    return replace(answer, named=named) if isinstance(answer, InMemory | InResults) else answer


def _show_verdict(report: AuditReport) -> None:
    from gtid_audit.views.report_text import show, verdict_line

    show(verdict_line(report))


def _plugin_line(report: AuditReport) -> str:
    loud = [each for each in report.findings if each.severity is not Severity.INFO]
    loud = [each for each in loud if each.code != UNREAD_CODE]
    loud.sort(key=lambda finding: finding.severity is not Severity.CRITICAL)
    return AuditCounts.of_report(report).plugin_line(report.verdict, loud, report.unknown)


def _show_definitions(definitions: Definitions) -> None:
    for line in definition_lines(definitions):
        write_line(printable(line))


def _show_contents(contents: Contents, *, is_stored: bool) -> None:
    for line in content_lines(contents, is_stored=is_stored):
        write_line(printable(line))

"""The counts of an audit, for its first line and for monitoring. Pure; it imports no Rich."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gtid.counted_nouns import counted
from gtid_audit.views.plugin_line import PerformanceCount, PluginLine
from gtid_audit.views.report import AuditReport
from topology.catalogue.findings import Finding, Severity, Unknown, Verdict
from topology.documents.label_records import Labels

if TYPE_CHECKING:
    from spark_audit.summary import FleetSummary

UNREAD_CODE: Final = "U1"  # of unread facts, which have their own count
# In the line of a plugin.
FINDINGS_NAMED_MAX: Final = 3
UNREAD_NAMED_MAX: Final = 2
REASON_CHARACTERS_MAX: Final = 120
LABEL_CHARACTERS_MAX: Final = 120  # of all labels of a cluster


@dataclass(frozen=True, slots=True)
class AuditCounts:
    """What an audit found, in numbers. `severities` has every severity; accepted ones are info.

    `labels` are those of its clusters, as far as they are in memory.
    """

    subject: str
    cluster_count: int
    server_count: int
    severities: dict[Severity, int]
    unknown_count: int
    labels: Mapping[str, Labels] = field(default_factory=dict)

    @classmethod
    def of_report(cls, report: AuditReport) -> "AuditCounts":
        """Count the findings of a report."""
        found = [each.severity for each in report.findings if each.code != UNREAD_CODE]
        audits = report.audits
        return cls(
            subject=f"{audits[0].cluster}{label_words(audits[0].labels)}"
            if len(audits) == 1
            else counted(len(audits), "cluster"),
            cluster_count=len(audits),
            server_count=sum(len(audit.servers) for audit in audits),
            severities={each: found.count(each) for each in Severity},
            unknown_count=len(report.unknown),
            labels=report.labels,
        )

    @classmethod
    def of_summary(cls, summary: "FleetSummary") -> "AuditCounts":
        """Take the counts of results that are not in memory."""
        severities = dict.fromkeys(Severity, 0)
        for each in summary.findings:
            if each.code != UNREAD_CODE:
                severities[each.severity] += each.findings
        return cls(
            subject=counted(summary.cluster_count, "cluster"),
            cluster_count=summary.cluster_count,
            server_count=summary.server_count,
            severities=severities,
            unknown_count=summary.unknown_count,
        )

    @property
    def loud_count(self) -> int:
        """Return the number of findings above info."""
        return sum(
            count for severity, count in self.severities.items() if severity is not Severity.INFO
        )

    def words(self) -> list[str]:
        """Return the parts of an audit's first line, without the time of its reading."""
        said = [self.subject, counted(self.server_count, "server")]
        said += [
            f"{self.severities[each]:,} {each.value}"
            for each in (Severity.CRITICAL, Severity.WARNING)
            if self.severities[each]
        ]
        if self.unknown_count:
            said.append(counted(self.unknown_count, "fact") + " not read")
        return said

    def plugin_line(
        self,
        verdict: Verdict,
        worst: Sequence[Finding],
        unread: Sequence[Unknown],
        *,
        note: str = "",
    ) -> str:
        """Return the line of a plugin.

        `worst` are the first findings above info, worst first; `unread` the first facts that were
        not read.
        """
        named = [self._about(each) for each in worst[:FINDINGS_NAMED_MAX]]
        rest = self.loud_count - len(named)
        if rest > 0 and named:
            named.append(f"{rest:,} more")
        facts = [self._unread(each) for each in unread[:UNREAD_NAMED_MAX]]
        if (rest := self.unknown_count - len(facts)) > 0 and facts:
            facts.append(f"{rest:,} more not read")
        notes = [note] if note else []
        summary = "; ".join([", ".join(self.words()), *notes, *named, *facts])
        severities = self.severities
        numbers = (
            PerformanceCount("critical", severities[Severity.CRITICAL], critical=0),
            PerformanceCount("warning", severities[Severity.WARNING], warning=0),
            PerformanceCount("info", severities[Severity.INFO]),
            PerformanceCount("unknown", self.unknown_count),
            PerformanceCount("clusters", self.cluster_count),
            PerformanceCount("servers", self.server_count),
        )
        return str(PluginLine(verdict, summary, numbers))

    def _unread(self, unknown: Unknown) -> str:
        """Return one fact that was not read. The reason may have the whole error of a server."""
        reason = " ".join(unknown.reason.split())
        if len(reason) > REASON_CHARACTERS_MAX:
            reason = f"{reason[: REASON_CHARACTERS_MAX - 1]}…"
        place = ", ".join(self._place(unknown.cluster, unknown.server))
        return f"not read: {place}, {unknown.fact} ({reason})"

    def _about(self, finding: Finding) -> str:
        ends = " → ".join(name for name in (finding.source, finding.replica) if name is not None)
        said = self._place(finding.cluster, ends)
        if finding.channel:
            said.append(f"channel {finding.channel}")
        if finding.gtid_set:
            said.append(counted(finding.gtid_set.gtid_count, "transaction"))
        return f"{finding.code} {finding.name} ({', '.join(said)})"

    def _place(self, cluster: str, servers: str) -> list[str]:
        """Return the servers, and of several clusters that with its labels: who is to act."""
        found = [servers] if servers else []
        labels = label_words(self.labels.get(cluster, ())) if self.cluster_count > 1 else ""
        if labels or not servers:
            found.append(f"cluster {cluster}{labels}")
        return found


def label_words(labels: Labels) -> str:
    """Return the labels of a cluster behind its name, cut; "" without any."""
    text = ", ".join(f"{name}={value}" for name, value in labels)
    if len(text) > LABEL_CHARACTERS_MAX:
        text = f"{text[: LABEL_CHARACTERS_MAX - 1]}…"
    return f" ({text})" if text else ""

"""The result of `binlog compare`: what is printed of two logs."""

from dataclasses import dataclass

from binlog.content.compare import Agreement, Comparison
from binlog.content.reuse import Compared
from repair.adapters.affected_rows import AffectedRows
from topology.catalogue.findings import Finding, Unknown, Verdict, verdict_of
from topology.readings.contents import ContentReading


@dataclass(frozen=True, slots=True)
class LogsCompared:
    """What two logs hold under the same GTIDs, and its evaluation."""

    compared: Compared
    reading: ContentReading
    findings: tuple[Finding, ...]
    unknown: tuple[Unknown, ...]
    # None if nothing differs, or if not both servers are live.
    rows: AffectedRows | None

    @property
    def verdict(self) -> Verdict:
        """Return the verdict."""
        return verdict_of(findings=self.findings, unknown=self.unknown)

    @property
    def differing(self) -> tuple[Comparison, ...]:
        """Return the comparisons that found a difference, in order of GTID."""
        return tuple(
            each for each in self.compared.comparisons if each.agreement is not Agreement.UNKNOWN
        )

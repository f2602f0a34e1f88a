"""The latest result of each cluster: what metrics, the API and the web page are made of.

1. A result is a value. The service replaces it as a whole, so a reader never sees half of an audit.
2. `audit` and what belongs to it are of the last audit that ended well. An attempt that failed by a
   defect of ours leaves them, and is counted.
3. This module knows neither threads nor HTTP.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from gtid_audit.service.audit_series import AuditSeries
from gtid_audit.service.finding_changes import OpenFinding
from gtid_audit.views.audited_now import AuditedNow
from topology.catalogue.findings import ClusterAudit
from topology.documents.label_records import Labels

# Two intervals and a grace period: one audit may be slow, or fail, before an operator is paged.
INTERVALS_UNTIL_STALE: Final = 2
GRACE_SECONDS: Final = 30.0


def seconds_until_stale(interval_seconds: float) -> float:
    """Return the age in seconds from which on a result does not show the present state."""
    return INTERVALS_UNTIL_STALE * interval_seconds + GRACE_SECONDS


@dataclass(frozen=True, slots=True)
class EndedAudit:
    """The end of the last audit that ended well."""

    audited: AuditedNow
    series: AuditSeries  # what the metrics show of the sets: computed once, not in each scrape
    at: datetime  # by the wall clock, for readers
    monotonic_seconds: float  # for ages
    duration_seconds: float
    # Findings of earlier audits that this one could not look for, because something was not read.
    lasting: tuple[OpenFinding, ...] = ()

    @property
    def audit(self) -> ClusterAudit:
        """Return the audit."""
        return self.audited.audit

    @property
    def shown(self) -> tuple[OpenFinding, ...]:
        """Return every finding that readers see."""
        return (*self.audit.findings, *self.lasting)


@dataclass(frozen=True, slots=True)
class ClusterResult:
    """One cluster of the fleet, and its last audit.

    `audits_total` counts the audits that ended well, `failures_total` those that a defect of ours
    or an unusable file ended. Both begin at 0 when the process starts.
    """

    cluster: str
    servers: tuple[str, ...]  # in the fleet file, in order of name
    labels: Labels
    since_monotonic_seconds: float  # when the cluster joined the fleet of this process
    ended: EndedAudit | None = None  # None before the first audit
    audits_total: int = 0
    failures_total: int = 0
    failure: str | None = None  # why the last attempt failed; None if it did not

    @property
    def is_attempted(self) -> bool:
        """Return whether an audit has ended, well or not."""
        return self.audits_total + self.failures_total > 0

    def age_seconds(self, now_monotonic_seconds: float) -> float:
        """Return the seconds since the last audit ended well; before it, since the cluster came."""
        since = self.since_monotonic_seconds if self.ended is None else self.ended.monotonic_seconds
        return now_monotonic_seconds - since

    def with_end(self, ended: EndedAudit) -> "ClusterResult":
        """Return the result after an audit that ended well."""
        return replace(self, ended=ended, audits_total=self.audits_total + 1, failure=None)

    def with_failure(self, reason: str) -> "ClusterResult":
        """Return the result after an attempt that failed: the last audit stays."""
        return replace(self, failures_total=self.failures_total + 1, failure=reason)


@dataclass(frozen=True, slots=True)
class ConfigurationState:
    """What is in use of the fleet file, the tokens and the certificate, and since when."""

    loaded_at: datetime  # of the fleet
    problem: str | None = None  # what could not be loaded again, and why; None if all could


@dataclass(frozen=True, slots=True)
class ServiceResults:
    """All that the service knows at one moment: results in order of cluster name."""

    clusters: Sequence[ClusterResult]
    configuration: ConfigurationState
    interval_seconds: float
    now_monotonic_seconds: float

    @property
    def not_attempted(self) -> tuple[str, ...]:
        """Return the clusters of which no audit has ended."""
        return tuple(each.cluster for each in self.clusters if not each.is_attempted)

    @property
    def stale(self) -> tuple[ClusterResult, ...]:
        """Return the clusters whose last audit is too old."""
        return tuple(each for each in self.clusters if self.is_stale(each))

    def show_the_same_as(self, earlier: "ServiceResults") -> bool:
        """Return whether nothing has changed since but ages: a changed result is another object."""
        return (
            self.configuration == earlier.configuration
            and self.interval_seconds == earlier.interval_seconds
            and len(self.clusters) == len(earlier.clusters)
            and all(
                each is other and self.is_stale(each) == earlier.is_stale(other)
                for each, other in zip(self.clusters, earlier.clusters, strict=True)
            )
        )

    def is_stale(self, result: ClusterResult) -> bool:
        """Return whether the last audit of a cluster is too old to show its present state."""
        limit = seconds_until_stale(self.interval_seconds)
        return result.age_seconds(self.now_monotonic_seconds) > limit

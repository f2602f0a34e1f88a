"""What the metrics know of a cluster: its latest finished audit, and what its schedule counted.

1. The service makes one `ClusterState` for each cluster, and metrics.py prints it. Each cluster may
   have a clock of its own, so each has its own finish time, duration and counters.
2. A cluster that was never audited has a state without `latest`: its counters exist, its findings
   do not.
3. This module holds no snapshot: what the metrics need of one is computed once, when the audit has
   finished (audit_series.py), so that no scrape has to compare sets.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from gtid_audit.service.audit_series import AuditSeries, series_of
from gtid_audit.service.finding_changes import OpenFinding
from topology.catalogue.findings import ClusterAudit
from topology.documents.label_records import Labels
from topology.policy import Policy
from topology.readings.snapshot import ClusterSnapshot


@dataclass(frozen=True, slots=True)
class LatestAudit:
    """The latest finished audit of one cluster, as the metrics show it."""

    audit: ClusterAudit
    series: AuditSeries
    finished_at: datetime  # UTC
    duration_seconds: float
    lasting: tuple[OpenFinding, ...] = ()  # found before, and not looked for by this audit
    is_stale: bool = False  # too old to show the present state


@dataclass(frozen=True, slots=True)
class Schedule:
    """How a cluster is audited repeatedly, and what was counted since the process started."""

    interval_seconds: float
    audits: int  # that finished
    failures: int  # that ended with a defect, and left no result


@dataclass(frozen=True, slots=True)
class ClusterState:
    """One cluster: its latest audit, and its schedule if it has one (a single audit has none)."""

    cluster: str
    labels: Labels
    latest: LatestAudit | None
    schedule: Schedule | None

    def __post_init__(self) -> None:
        if self.latest is not None and self.latest.audit.cluster != self.cluster:
            raise ValueError(f"{self.cluster}: the audit is of {self.latest.audit.cluster}")


@dataclass(frozen=True, slots=True)
class MeasuredAudit:
    """The audit of a cluster with its series, and how long its servers were read."""

    audit: ClusterAudit
    series: AuditSeries
    reading_seconds: float


def measured_audits(
    audits: Iterable[ClusterAudit], snapshots: Iterable[ClusterSnapshot], policy: Policy
) -> tuple[MeasuredAudit, ...]:
    """Compute the series of audits, each of which has its snapshot. In order of the audits."""
    read: Mapping[str, ClusterSnapshot] = {each.cluster: each for each in snapshots}
    return tuple(
        MeasuredAudit(
            audit, series_of(audit, read[audit.cluster], policy), _seconds(read[audit.cluster])
        )
        for audit in audits
    )


def _seconds(snapshot: ClusterSnapshot) -> float:
    """Return the time from the begin of the first reading to the end of the last one."""
    if not snapshot.first or snapshot.read_ended is None:
        return 0.0
    begun = min(each.read_started for each in snapshot.first)
    return (snapshot.read_ended - begun).total_seconds()

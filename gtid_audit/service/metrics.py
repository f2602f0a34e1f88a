"""Prometheus metrics, derived from the latest finished audit of each cluster, without own state.

1. What does not exist has no series: a finding that ended, a cluster that left the fleet, a cluster
   that was never audited (its counters exist).
2. What exists and could not be read is NaN (audit_series.py has the rule).
3. A cluster whose latest audit is too old is UNKNOWN here as in the API: no code is 0, and no
   server is up. What was found stays.
4. With `zeros`, every code that can be reported has a series for every cluster, so that "none" is 0
   and not a missing series. If a cluster was not read completely, codes without a finding are NaN.
5. The table METRICS has every name. The alert rules and the dashboards use these names, and tests
   run each expression against a Prometheus.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from gtid_audit import __version__
from gtid_audit.service.audit_series import NOT_KNOWN, Series
from gtid_audit.service.cluster_state import ClusterState, LatestAudit
from topology.catalogue.findings import Verdict
from topology.catalogue.verdict_table import CATALOGUE
from topology.documents.label_records import Labels


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric: its help text and label names; a counter if its name ends in `_total`."""

    text: str
    labels: tuple[str, ...]

    @property
    def is_of_cluster(self) -> bool:
        """Return whether its series have the labels that the fleet file gives to a cluster."""
        return "cluster" in self.labels


_CLUSTER: Final = ("cluster",)
_SERVER: Final = ("cluster", "server")
_EDGE: Final = ("cluster", "source", "replica", "channel")
_FINDING: Final = ("cluster", "code", "severity", "source", "replica", "channel")

METRICS: Final[Mapping[str, MetricRow]] = {
    "gtid_audit_build_info": MetricRow("1; the label has the version.", ("version",)),
    "gtid_audit_verdict": MetricRow(
        "State set: 1 for the verdict, 0 for the others. UNKNOWN if the latest audit is too old.",
        ("cluster", "verdict"),
    ),
    "gtid_audit_findings": MetricRow(
        "Findings by code. NaN: not known, because something could not be read.",
        ("cluster", "code", "severity"),
    ),
    "gtid_audit_finding_transactions": MetricRow(
        "One series for each finding: how many transactions it is about. 0: about none.", _FINDING
    ),
    "gtid_audit_finding_first_seen_timestamp_seconds": MetricRow(
        "Unix time of the first audit that found it; of the latest one without --history.", _FINDING
    ),
    "gtid_audit_finding_last_seen_timestamp_seconds": MetricRow(
        "Unix time of the latest audit that found it; later ones could not look for it.", _FINDING
    ),
    "gtid_audit_finding_deadline_timestamp_seconds": MetricRow(
        "Earliest Unix time at which a binary log that its repair needs can be deleted.", _FINDING
    ),
    "gtid_audit_missing_transactions": MetricRow(
        "Transactions that the source has and the replica has not executed.", _EDGE
    ),
    "gtid_audit_hole_transactions": MetricRow(
        "Of the missing transactions, those that the channel does not deliver any more.", _EDGE
    ),
    "gtid_audit_hole_first_seen_timestamp_seconds": MetricRow(
        "Unix time of the first audit that found a hole of this source and replica.", _EDGE
    ),
    "gtid_audit_errant_transactions": MetricRow(
        "Transactions that only the replica has, and that the source will not receive.", _EDGE
    ),
    "gtid_audit_runway_seconds": MetricRow(
        "How long the source keeps what the replica needs from its binary logs; what it writes"
        " next, if the replica needs nothing. +Inf: for ever.",
        _EDGE,
    ),
    "gtid_audit_server_up": MetricRow(
        "1 if the server answered the latest audit, 0 if not. NaN for 1 if that audit is too old.",
        _SERVER,
    ),
    "gtid_audit_unread_facts": MetricRow("Facts that could not be read.", _SERVER),
    "gtid_audit_server_executed_transactions": MetricRow("Transactions in gtid_executed.", _SERVER),
    "gtid_audit_server_purged_transactions": MetricRow("Transactions in gtid_purged.", _SERVER),
    "gtid_audit_server_executed_intervals": MetricRow("Intervals in gtid_executed.", _SERVER),
    "gtid_audit_server_executed_tsids": MetricRow(
        "UUIDs, with their tags, in gtid_executed.", _SERVER
    ),
    "gtid_audit_server_gno_headroom": MetricRow(
        "GTIDs that the server can still assign under its own server_uuid.", _SERVER
    ),
    "gtid_audit_last_audit_timestamp_seconds": MetricRow(
        "Unix time at which the latest audit of the cluster finished.", _CLUSTER
    ),
    "gtid_audit_audit_duration_seconds": MetricRow(
        "Duration of the latest audit of the cluster.", _CLUSTER
    ),
    "gtid_audit_interval_seconds": MetricRow(
        "Time between the starts of two audits of the cluster.", _CLUSTER
    ),
    "gtid_audit_audits_total": MetricRow(
        "Audits of the cluster that finished since the process started.", _CLUSTER
    ),
    "gtid_audit_audit_failures_total": MetricRow(
        "Audits of the cluster that failed by a defect and left no result.", _CLUSTER
    ),
}
_EVALUATED: Final = tuple(
    (entry.code, entry.severity.value) for entry in CATALOGUE.values() if entry.has_rule
)


class AuditCollector(Collector):
    """Reports the latest finished audit of each cluster. Holds no state and queries no server."""

    def __init__(self, states: Callable[[], Iterable[ClusterState]], *, zeros: bool = True) -> None:
        self._states = states
        self._zeros = zeros

    def describe(self) -> Iterator[Metric]:
        """Yield the metrics without values, for the registry."""
        yield from (_family(name, ()) for name in METRICS)

    def collect(self) -> Iterator[Metric]:
        """Yield every metric that has a series."""
        states = sorted(self._states(), key=lambda state: state.cluster)
        names = tuple(sorted({label for state in states for label, _ in state.labels}))
        series = [(state.labels, _series(state, zeros=self._zeros)) for state in states]
        for name, row in METRICS.items():
            if not row.is_of_cluster:
                family = _family(name, ())
                family.add_metric((__version__,), 1.0)
            else:
                family = _family(name, names)
                for labels, by_metric in series:
                    _add(family, by_metric.get(name, {}), labels, names)
            if family.samples:
                yield family


def _series(state: ClusterState, *, zeros: bool) -> Mapping[str, Series]:
    """Return all series of one cluster, by metric."""
    own = (state.cluster,)
    found: dict[str, Series] = {}
    if (schedule := state.schedule) is not None:
        found["gtid_audit_interval_seconds"] = {own: schedule.interval_seconds}
        found["gtid_audit_audits_total"] = {own: float(schedule.audits)}
        found["gtid_audit_audit_failures_total"] = {own: float(schedule.failures)}
    if (latest := state.latest) is not None:
        found |= latest.series
        found["gtid_audit_verdict"] = _verdict(latest)
        found["gtid_audit_findings"] = _findings(latest, zeros=zeros)
        if latest.is_stale:
            found["gtid_audit_server_up"] = {
                labels: NOT_KNOWN if value else value
                for labels, value in latest.series["gtid_audit_server_up"].items()
            }
        found["gtid_audit_last_audit_timestamp_seconds"] = {own: latest.finished_at.timestamp()}
        found["gtid_audit_audit_duration_seconds"] = {own: latest.duration_seconds}
    return found


def _verdict(latest: LatestAudit) -> Series:
    now = Verdict.UNKNOWN if latest.is_stale else latest.audit.verdict
    return {(latest.audit.cluster, each.value): float(each is now) for each in Verdict}


def _findings(latest: LatestAudit, *, zeros: bool) -> Series:
    audit = latest.audit
    shown = (*audit.findings, *latest.lasting)
    counts = Counter((finding.code, finding.severity.value) for finding in shown)
    is_whole = not (audit.unknown or latest.is_stale)
    series: dict[tuple[str, ...], float] = {}
    for code, severity in sorted({*(_EVALUATED if zeros else ()), *counts}):
        count = counts[code, severity]
        # That a fact was not read is itself known, so U codes are never NaN.
        known = bool(count) or is_whole or (code.startswith("U") and not latest.is_stale)
        series[audit.cluster, code, severity] = float(count) if known else NOT_KNOWN
    return series


def _family(name: str, more: tuple[str, ...]) -> GaugeMetricFamily | CounterMetricFamily:
    row = METRICS[name]
    labels = [*row.labels, *more]
    if name.endswith("_total"):
        return CounterMetricFamily(name.removesuffix("_total"), row.text, labels=labels)
    return GaugeMetricFamily(name, row.text, labels=labels)


def _add(
    family: GaugeMetricFamily | CounterMetricFamily,
    series: Series,
    labels: Labels,
    names: tuple[str, ...],
) -> None:
    """Add the series of a cluster, each with the labels of the cluster.

    All series of a metric have the same label names. A cluster without one of them has the empty
    value, which Prometheus treats like an absent label.
    """
    own = dict(labels)
    values = tuple(own.get(name, "") for name in names)
    for places, value in series.items():
        family.add_metric((*places, *values), value)

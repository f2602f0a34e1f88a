"""Prometheus metrics, derived from the last finished audit, without any state of their own.

1. Clusters that are not in the last report have no series: a cluster that left the fleet
   disappears.
2. Every code that can be reported has a series for every cluster, so that "none" is 0 and not a
   missing series. If a cluster was not read completely, codes without a finding are NaN.
3. The table METRICS has every name. Tests compare the dashboard and the alert rules with it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from gtid_audit.exits import status_of
from gtid_audit.service.repeated_audit import Finished
from topology.catalogue.findings import ClusterAudit
from topology.catalogue.verdict_table import CATALOGUE

METRICS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "mysql_gtid_findings": (
        "Findings by code. NaN: not known, because something could not be read.",
        ("cluster", "code", "severity"),
    ),
    "mysql_gtid_finding_first_seen_timestamp_seconds": (
        "Unix time of the first audit that found it; of the last one without --history.",
        ("cluster", "source", "replica", "channel", "code"),
    ),
    "mysql_gtid_verdict": ("0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.", ("cluster",)),
    "mysql_gtid_transactions": (
        "Transactions in findings, by source and replica.",
        ("cluster", "source", "replica", "code"),
    ),
    "mysql_gtid_unread_facts": ("Facts that could not be read.", ("cluster", "server")),
    "mysql_gtid_audit_timestamp_seconds": ("Unix time at which the last audit finished.", ()),
    "mysql_gtid_audit_duration_seconds": ("Duration of the last audit in seconds.", ()),
}
_NOT_KNOWN: Final = float("nan")
_EVALUATED: Final = tuple(
    (entry.code, entry.severity.value) for entry in CATALOGUE.values() if entry.has_rule
)


class AuditCollector(Collector):
    """Reports the last finished audit. Holds no state and queries no server."""

    def __init__(self, latest: Callable[[], Finished | None]) -> None:
        self._latest = latest

    def describe(self) -> Iterator[Metric]:
        """Yield the metrics without values, for the registry."""
        yield from (_family(name) for name in METRICS)

    def collect(self) -> Iterator[Metric]:
        """Yield the values of the last audit; none before the first one."""
        finished = self._latest()
        if finished is None:
            return
        audits = finished.report.audits
        yield _filled("mysql_gtid_findings", audits, _findings)
        yield _filled("mysql_gtid_finding_first_seen_timestamp_seconds", audits, _first_seen)
        yield _filled("mysql_gtid_verdict", audits, _verdict)
        yield _filled("mysql_gtid_transactions", audits, _transactions)
        yield _filled("mysql_gtid_unread_facts", audits, _unread)
        timestamp = _family("mysql_gtid_audit_timestamp_seconds")
        timestamp.add_metric((), finished.ended_at.timestamp())
        yield timestamp
        duration = _family("mysql_gtid_audit_duration_seconds")
        duration.add_metric((), finished.duration_seconds)
        yield duration


Series = dict[tuple[str, ...], float]


def _findings(audit: ClusterAudit) -> Series:
    counts = Counter((finding.code, finding.severity.value) for finding in audit.findings)
    series: Series = {}
    for code, severity in sorted({*_EVALUATED, *counts}):
        count = counts[code, severity]
        # That a fact was not read is itself known, so U codes are never NaN.
        known = bool(count) or not audit.unknown or code.startswith("U")
        series[audit.cluster, code, severity] = float(count) if known else _NOT_KNOWN
    return series


def _first_seen(audit: ClusterAudit) -> Series:
    series: Series = {}
    for finding in audit.findings:
        places = (finding.source or "", finding.replica or "", finding.channel or "")
        series[audit.cluster, *places, finding.code] = finding.first_seen.timestamp()
    return series


def _verdict(audit: ClusterAudit) -> Series:
    return {(audit.cluster,): float(status_of(audit.verdict))}


def _transactions(audit: ClusterAudit) -> Series:
    series: Series = {}
    for finding in audit.findings:
        if finding.gtid_set:
            key = (audit.cluster, finding.source or "", finding.replica or "", finding.code)
            series[key] = series.get(key, 0.0) + float(finding.gtid_set.gtid_count)
    return series


def _unread(audit: ClusterAudit) -> Series:
    facts = Counter(
        server for server, _ in {(unknown.server, unknown.fact) for unknown in audit.unknown}
    )
    return {
        (audit.cluster, server): float(facts[server]) for server in sorted({*audit.servers, *facts})
    }


def _family(name: str, more: Sequence[str] = ()) -> GaugeMetricFamily:
    text, labels = METRICS[name]
    return GaugeMetricFamily(name, text, labels=[*labels, *more])


def _filled(
    name: str, audits: Sequence[ClusterAudit], series_of: Callable[[ClusterAudit], Series]
) -> GaugeMetricFamily:
    """Return the series of every cluster, each with the labels of its cluster.

    All series of a metric have the same label names. A cluster without one of them has the empty
    value, which Prometheus treats like an absent label.
    """
    names = sorted({label for audit in audits for label, _ in audit.labels})
    family = _family(name, names)
    for audit in audits:
        own = dict(audit.labels)
        values = tuple(own.get(label, "") for label in names)
        for labels, value in series_of(audit).items():
            family.add_metric((*labels, *values), value)
    return family

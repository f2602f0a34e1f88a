"""The metrics of some clusters, read as Prometheus would read them."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from gtid_audit.service.cluster_state import ClusterState, LatestAudit, Schedule, measured_audits
from gtid_audit.service.metrics import METRICS, AuditCollector
from tests.snapshots import NOON
from topology.audit_cluster import audit_cluster
from topology.policy import Policy
from topology.readings.snapshot import ClusterSnapshot

Samples = dict[tuple[str, ...], float]


def states_of(
    *snapshots: ClusterSnapshot,
    labels: dict[str, tuple[tuple[str, str], ...]] | None = None,
    policy: Policy | None = None,
) -> list[ClusterState]:
    """Audit clusters; each finished two seconds after noon, and took 1.5 s."""
    given = policy or Policy()
    audits = [
        replace(audit_cluster(each, given), labels=(labels or {}).get(each.cluster, ()))
        for each in snapshots
    ]
    ended = NOON + timedelta(seconds=2)
    return [
        ClusterState(
            each.audit.cluster,
            each.audit.labels,
            LatestAudit(each.audit, each.series, ended, 1.5),
            Schedule(60.0, audits=7, failures=1),
        )
        for each in measured_audits(audits, snapshots, given)
    ]


def text_of(states: Iterable[ClusterState], *, zeros: bool = True) -> str:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(AuditCollector(lambda: states, zeros=zeros))
    return generate_latest(registry).decode()


def scrape(states: Iterable[ClusterState], *, zeros: bool = True) -> dict[str, Samples]:
    """Return the samples of each metric, by the values of its labels in their order."""
    found: dict[str, Samples] = {}
    for family in text_string_to_metric_families(text_of(states, zeros=zeros)):
        for sample in family.samples:
            labels = tuple(sample.labels[label] for label in METRICS[sample.name].labels)
            found.setdefault(sample.name, {})[labels] = sample.value
    return found

import math
from datetime import timedelta

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from gtid_audit.service.metrics import METRICS, AuditCollector
from gtid_audit.service.repeated_audit import Finished
from gtid_audit.views.report import Engine, report_of
from tests.gtid_audit.build import half_read, healthy, holed
from tests.snapshots import NOON
from topology.audit_cluster import audit_cluster
from topology.catalogue.verdict_table import CATALOGUE
from topology.readings.snapshot import ClusterSnapshot

Samples = dict[tuple[str, ...], float]


def finished(*snapshots: ClusterSnapshot) -> Finished:
    report = report_of(Engine.LOCAL, map(audit_cluster, snapshots))
    return Finished(report, NOON + timedelta(seconds=2), 17.0, 1.5)


def scrape(latest: Finished | None) -> dict[str, Samples]:
    """Read the metrics as Prometheus would: by the text, with the labels in their order."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(AuditCollector(lambda: latest))
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {
        family.name: {
            tuple(sample.labels[label] for label in METRICS[family.name][1]): sample.value
            for sample in family.samples
        }
        for family in families
    }


def test_nothing_before_the_first_audit() -> None:
    assert scrape(None) == {}


def test_a_healthy_cluster_has_every_evaluated_code_at_zero() -> None:
    found = scrape(finished(healthy("x")))
    assert set(found) == set(METRICS)
    evaluated = {code for code, entry in CATALOGUE.items() if entry.has_rule}
    assert {code for _, code, _ in found["mysql_gtid_findings"]} == evaluated
    assert set(found["mysql_gtid_findings"].values()) == {0.0}
    assert found["mysql_gtid_verdict"] == {("x",): 0.0}
    assert found["mysql_gtid_transactions"] == {}
    assert found["mysql_gtid_unread_facts"] == {("x", "a"): 0.0, ("x", "b"): 0.0}
    assert found["mysql_gtid_audit_timestamp_seconds"] == {(): NOON.timestamp() + 2}
    assert found["mysql_gtid_audit_duration_seconds"] == {(): 1.5}


def test_findings_are_counted_by_cluster_and_code() -> None:
    found = scrape(finished(healthy("x"), holed("y")))
    assert found["mysql_gtid_verdict"] == {("x",): 0.0, ("y",): 2.0}
    assert found["mysql_gtid_findings"]["y", "H1", "critical"] == 1.0
    assert found["mysql_gtid_findings"]["y", "E1", "critical"] == 0.0
    assert found["mysql_gtid_findings"]["x", "H1", "critical"] == 0.0
    assert found["mysql_gtid_transactions"] == {("y", "a", "b", "H1"): 3.0}


def test_what_is_not_known_is_not_zero() -> None:
    found = scrape(finished(half_read("z")))
    assert found["mysql_gtid_verdict"] == {("z",): 3.0}
    assert math.isnan(found["mysql_gtid_findings"]["z", "H1", "critical"])
    assert not math.isnan(found["mysql_gtid_findings"]["z", "U1", "warning"])
    assert found["mysql_gtid_unread_facts"] == {("z", "a"): 0.0, ("z", "b"): 1.0}


def test_series_vanish_with_what_they_are_about() -> None:
    registry = CollectorRegistry(auto_describe=False)
    latest = finished(healthy("x"), holed("y"))
    registry.register(AuditCollector(lambda: latest))
    assert b'cluster="y"' in generate_latest(registry)
    latest = finished(healthy("x"))
    assert b'cluster="y"' not in generate_latest(registry)


def test_names_in_labels_are_escaped() -> None:
    name = 'a"b\\c\nd'
    found = scrape(finished(healthy(name)))
    assert found["mysql_gtid_verdict"] == {(name,): 0.0}

"""What metrics, API and page show while a server hangs, or while no audit ends."""

import math
import re
from datetime import timedelta

import jsonschema
import pytest

from gtid_audit import clock
from gtid_audit.monitoring.alert_table import OF_THE_AUDIT, alerts
from gtid_audit.service.api_documents import clusters_document, findings_document
from gtid_audit.service.api_schemas import schemas
from gtid_audit.service.procedure_source import ProceduresRead
from gtid_audit.service.query_parameters import Parameters
from gtid_audit.service.repeated_audit import AuditService
from gtid_audit.service.web_page import page
from tests.gtid_audit.build import half_read, holed
from tests.gtid_audit.scraped import scrape
from tests.gtid_audit.served import a_fleet, audited
from tests.snapshots import NOON
from topology.adapters.history_file import Episode
from topology.catalogue.findings import Severity

NO_FILTER = Parameters.of((), [])


class Ticks:
    """A clock that goes on when a test says so."""

    def __init__(self) -> None:
        self.seconds = 1000.0


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> Ticks:
    own = Ticks()
    monkeypatch.setattr(clock, "monotonic_seconds", lambda: own.seconds)
    return own


def hangs_after_a_hole(ticks: Ticks) -> AuditService:
    """Return a service that has found a hole, and whose replica hangs now."""
    snapshots = [holed(), half_read()]
    service = AuditService(
        a_fleet(), lambda _fleet, _cluster: audited(snapshots.pop(0)), interval_seconds=60
    )
    service.audit_next()
    ticks.seconds += 70
    assert service.audit_next()
    return service


def test_an_alert_does_not_end_because_a_server_hangs(ticks: Ticks) -> None:
    service = hangs_after_a_hole(ticks)
    found = scrape(service.states())
    place = ("pair", "H1", "critical", "a", "b", "")
    assert found["gtid_audit_finding_transactions"][place] == 3.0
    assert found["gtid_audit_findings"]["pair", "H1", "critical"] == 1.0
    assert place in found["gtid_audit_finding_first_seen_timestamp_seconds"]
    assert place in found["gtid_audit_finding_last_seen_timestamp_seconds"]
    assert found["gtid_audit_verdict"]["pair", "UNKNOWN"] == 1.0
    document = clusters_document(service.results(), NO_FILTER)
    jsonschema.validate(document, schemas(is_closed=True)["Clusters"])
    [cluster] = document["clusters"]
    [lasting] = cluster["not_seen_again"]
    assert (cluster["verdict"], lasting["code"]) == ("UNKNOWN", "H1")
    assert cluster["findings"]["critical"] == 1
    shown = findings_document(service.results(), NO_FILTER)["findings"]
    assert lasting["id"] in {each["id"] for each in shown}
    html = page(service.results(), ProceduresRead())
    assert "last seen" in html
    assert "something was not read since" in html


def test_what_another_process_found_fires_without_a_number() -> None:
    """Its history has no set: NaN, which no comparison is true for."""
    at = NOON - timedelta(hours=1)
    episode = Episode(
        id="1",
        first_seen=at,
        last_seen=at,
        ended_at=None,
        ending=None,
        code="H1",
        name="a hole",
        severity=Severity.CRITICAL,
        cluster="pair",
        source="a",
        replica="b",
        channel="",
    )
    service = AuditService(
        a_fleet(),
        lambda _fleet, _cluster: audited(half_read()),
        interval_seconds=60,
        open_before=lambda _cluster: (episode,),
    )
    assert service.audit_next()
    found = scrape(service.states())
    place = ("pair", "H1", "critical", "a", "b", "")
    assert math.isnan(found["gtid_audit_finding_transactions"][place])
    assert found["gtid_audit_findings"]["pair", "H1", "critical"] == 1.0
    last_seen = found["gtid_audit_finding_last_seen_timestamp_seconds"]
    assert last_seen[place] == at.timestamp()
    for each in alerts():
        if each not in OF_THE_AUDIT:
            assert re.fullmatch(r"\w+\{[^}]*\}", each.expr), "a comparison with NaN is false"
    [cluster] = clusters_document(service.results(), NO_FILTER)["clusters"]
    assert [each["id"] for each in cluster["not_seen_again"]] == ["1"]


def test_a_stale_cluster_is_unknown_in_the_metrics_too(ticks: Ticks) -> None:
    service = AuditService(a_fleet(), lambda _f, _c: audited(holed()), interval_seconds=60)
    service.audit_next()
    fresh = scrape(service.states())
    assert fresh["gtid_audit_verdict"]["pair", "CRITICAL"] == 1.0
    assert fresh["gtid_audit_server_up"] == {("pair", "a"): 1.0, ("pair", "b"): 1.0}
    ticks.seconds += 151
    stale = scrape(service.states())
    [cluster] = clusters_document(service.results(), NO_FILTER)["clusters"]
    assert stale["gtid_audit_verdict"]["pair", cluster["verdict"]] == 1.0
    assert cluster["verdict"] == "UNKNOWN"
    assert all(map(math.isnan, stale["gtid_audit_server_up"].values()))
    assert stale["gtid_audit_findings"]["pair", "H1", "critical"] == 1.0, "what was found stays"
    assert math.isnan(stale["gtid_audit_findings"]["pair", "H8", "critical"])
    place = ("pair", "H1", "critical", "a", "b", "")
    assert stale["gtid_audit_finding_transactions"][place] == 3.0

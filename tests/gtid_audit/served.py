"""A service without servers: clusters that a function audits, and a web server in front of it."""

import http.client
import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gtid_audit.service.access import Access
from gtid_audit.service.listening import Address
from gtid_audit.service.metrics import AuditCollector
from gtid_audit.service.procedure_metrics import ServiceCollector
from gtid_audit.service.procedure_source import ProcedureSource
from gtid_audit.service.repeated_audit import AuditService
from gtid_audit.service.web import WebServer
from gtid_audit.service.web_app import ShownFacts, WebApp
from gtid_audit.views.audited_now import AuditedNow
from tests.gtid_audit.build import healthy
from topology.adapters.collect import CollectLimits
from topology.adapters.inventory.fleet import Cluster, Fleet
from topology.audit_cluster import audit_cluster
from topology.policy import Policy
from topology.readings.snapshot import ClusterSnapshot
from topology.readings.target import ServerTarget

SOON = 30.0


def a_cluster_to_read(name: str = "pair", servers: tuple[str, ...] = ("a", "b")) -> Cluster:
    return Cluster(
        name, tuple(ServerTarget(each, "192.0.2.1", 3306, "auditor") for each in servers)
    )


def a_fleet(*clusters: Cluster, connections_max: int = 64) -> Fleet:
    limits = CollectLimits()
    return Fleet(clusters or (a_cluster_to_read(),), limits, connections_max, Policy())


def audited(snapshot: ClusterSnapshot) -> AuditedNow:
    policy = Policy()
    return AuditedNow(audit_cluster(snapshot, policy), snapshot, policy)


def all_healthy(_fleet: Fleet, cluster: Cluster) -> AuditedNow:
    return audited(healthy(cluster.name))


def service_of(
    *snapshots: ClusterSnapshot, audit: Callable[[Fleet, Cluster], AuditedNow] | None = None
) -> AuditService:
    """Return a service whose clusters are always read as in these snapshots."""
    read = {each.cluster: each for each in snapshots}
    clusters = [
        a_cluster_to_read(each.cluster, tuple(server.name for server in each.last))
        for each in sorted(snapshots, key=lambda each: each.cluster)
    ]
    return AuditService(
        a_fleet(*clusters),
        audit or (lambda _fleet, cluster: audited(read[cluster.name])),
        interval_seconds=60,
    )


def audit_all(service: AuditService) -> AuditService:
    while service.audit_next():
        pass
    return service


@contextmanager
def web_server(
    service: AuditService,
    *,
    access: Access | None = None,
    journal: Path | None = None,
    tls: ssl.SSLContext | None = None,
    defects: list[str] | None = None,
) -> Iterator[tuple[WebServer, WebApp]]:
    source = ProcedureSource(journal)
    source.read()
    collectors = (
        AuditCollector(service.states),
        ServiceCollector(source.latest, lambda: service.results().configuration),
    )
    facts = ShownFacts(service.results, service.health, source, collectors)
    app = WebApp(facts, access or Access(None, is_loopback=True))
    server = WebServer(Address("127.0.0.1", 0), tls=tls)
    found: list[str] = [] if defects is None else defects
    server.start(app, report_defect=found.append)
    try:
        yield server, app
    finally:
        server.stop()
        assert defects is not None or found == []


def ask(
    server: WebServer, path: str, *, method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.address.port, timeout=SOON)
    connection.request(method, path, headers={"Accept": "*/*", **headers})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, dict(answer.getheaders()), body


def document(server: WebServer, path: str, *, status: int = 200) -> dict[str, Any]:
    found, headers, body = ask(server, path)
    assert found == status, body
    expected = "application/json" if status == 200 else "application/problem+json"
    assert headers["content-type"] == expected
    loaded: dict[str, Any] = json.loads(body)
    return loaded

import http.client
import threading
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gtid_audit import clock
from gtid_audit.exits import UsageProblem
from gtid_audit.service.cluster_state import MeasuredAudit, Schedule, measured_audits
from gtid_audit.service.metrics import METRICS
from gtid_audit.service.repeated_audit import GRACE_SECONDS, AuditService
from gtid_audit.service.web import Address, WebServer, parse_address
from tests.gtid_audit.build import healthy
from tests.snapshots import NOON
from topology.audit_cluster import audit_cluster
from topology.policy import Policy

SOON = 30.0


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> Clock:
    own = Clock()
    monkeypatch.setattr(clock, "monotonic_seconds", own.monotonic)
    monkeypatch.setattr(clock, "now", lambda: NOON)
    return own


def report() -> tuple[MeasuredAudit, ...]:
    return measured_audits([audit_cluster(healthy())], [healthy()], Policy())


def test_health_follows_the_age_of_the_last_audit(ticks: Clock) -> None:
    service = AuditService(report, interval_seconds=60)
    ticks.seconds += 5
    assert not service.health().is_well
    assert "no audit finished in 5 s" in service.health().reason
    service.audit_once()
    assert service.health().is_well
    ticks.seconds += 120 + GRACE_SECONDS
    assert service.health().is_well
    ticks.seconds += 1
    assert not service.health().is_well
    assert "finished 151 s ago, more than 150 s" in service.health().reason


def test_a_failed_audit_keeps_the_last_report_and_is_told(ticks: Clock) -> None:
    fails = False
    said: list[str] = []

    def audit() -> tuple[MeasuredAudit, ...]:
        ticks.seconds += 2
        if fails:
            raise RuntimeError("boom")
        return report()

    service = AuditService(audit, interval_seconds=10, report_failure=said.append)
    service.audit_once()
    first = service.latest()
    assert first is not None
    assert (first.ended_at, first.duration_seconds) == (NOON, 2.0)
    fails = True
    service.audit_once()
    assert service.latest() is first
    assert service.health().is_well
    assert "the last attempt failed: RuntimeError: boom" in service.health().reason
    assert said == ["RuntimeError: boom"]
    [state] = service.states()
    assert state.schedule == Schedule(interval_seconds=10, audits=1, failures=1)
    assert state.latest is not None
    assert (state.latest.finished_at, state.latest.duration_seconds) == (NOON, 2.0)
    fails = False
    service.audit_once()
    assert "failed" not in service.health().reason


def test_audits_follow_each_other_until_stopped() -> None:
    third = threading.Event()
    count = 0

    def audit() -> tuple[MeasuredAudit, ...]:
        nonlocal count
        count += 1
        if count == 3:
            third.set()
        return report()

    service = AuditService(audit, interval_seconds=0.01)
    service.start()
    assert third.wait(SOON)
    service.stop(wait_seconds_max=SOON)
    stopped_at = count
    assert service.latest() is not None
    threading.Event().wait(0.05)
    assert count == stopped_at


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        ("[::1]:9717", Address("::1", 9717)),
        ("localhost:65535", Address("localhost", 65535)),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert str(address) == text


@pytest.mark.parametrize("text", ["", "x", ":1", "h:", "h:65536", "h:-1", "h:x", "h:\u0661"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageProblem, match="HOST:PORT"):
        parse_address(text)


@pytest.fixture
def served() -> Iterator[tuple[AuditService, WebServer]]:
    service = AuditService(report, interval_seconds=60)
    server = WebServer(Address("127.0.0.1", 0), service)
    thread = threading.Thread(target=server.serve)
    thread.start()
    yield service, server
    server.stop()
    thread.join(SOON)
    assert not thread.is_alive()


def ask(
    server: WebServer, path: str, *, method: str = "GET", accept: str = "*/*"
) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.address.port, timeout=SOON)
    connection.request(method, path, headers={"Accept": accept})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, dict(answer.getheaders()), body


def test_metrics_and_health_over_http(served: tuple[AuditService, WebServer]) -> None:
    service, server = served
    assert ask(server, "/healthz")[0] == 503
    body = ask(server, "/metrics")[2]
    assert {family.name for family in text_string_to_metric_families(body)} == {
        "gtid_audit_build_info"
    }
    service.audit_once()
    status, _, body = ask(server, "/healthz")
    assert status == 200
    assert body.startswith("the last audit finished 0 s ago")
    status, headers, body = ask(server, "/metrics?x=1")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain")
    found = {family.name for family in text_string_to_metric_families(body)}
    of_findings = {name for name in METRICS if "finding_" in name or "hole_first" in name}
    assert found == {name.removesuffix("_total") for name in METRICS} - of_findings
    assert "Python" not in headers["Server"]


def test_openmetrics_is_spoken_to_those_who_ask(served: tuple[AuditService, WebServer]) -> None:
    service, server = served
    service.audit_once()
    _, headers, body = ask(server, "/metrics", accept="application/openmetrics-text; version=1.0.0")
    assert headers["Content-Type"].startswith("application/openmetrics-text")
    assert body.endswith("# EOF\n")


def test_other_paths_and_methods(served: tuple[AuditService, WebServer]) -> None:
    _, server = served
    assert ask(server, "/")[0] == 404
    assert "/metrics, /runbook, /healthz" in ask(server, "/")[2]
    assert ask(server, "/metrics", method="HEAD")[2] == ""
    assert ask(server, "/metrics", method="POST")[0] == 501


def test_a_taken_port_is_said(served: tuple[AuditService, WebServer]) -> None:
    service, server = served
    with pytest.raises(UsageProblem, match=r"cannot listen on 127\.0\.0\.1:"):
        WebServer(server.address, service)

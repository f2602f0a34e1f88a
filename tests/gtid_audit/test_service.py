"""The service without HTTP: when it audits, what it keeps, and what it says of its health."""

import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest

from gtid_audit import clock
from gtid_audit.service.cluster_results import GRACE_SECONDS, ClusterResult
from gtid_audit.service.cluster_state import Schedule
from gtid_audit.service.finding_changes import FindingChange
from gtid_audit.service.repeated_audit import AuditService
from gtid_audit.views.audited_now import AuditedNow
from tests.gtid_audit.build import healthy, holed
from tests.gtid_audit.served import (
    SOON,
    a_cluster_to_read,
    a_fleet,
    all_healthy,
    audit_all,
    audited,
)
from tests.snapshots import NOON
from topology.adapters.inventory.fleet import Cluster, Fleet
from topology.catalogue.findings import Verdict
from topology.readings.target import Secret, ServerTarget


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


class Seen:
    """A watcher that remembers."""

    def __init__(self) -> None:
        self.events: list[tuple[str, ...]] = []

    def audited(self, result: ClusterResult, changes: Sequence[FindingChange]) -> None:
        self.events += [(each.kind.value, result.cluster, each.finding.code) for each in changes]

    def failed(self, result: ClusterResult) -> None:
        self.events.append(("failed", result.cluster, str(result.failure)))

    def left(self, cluster: str) -> None:
        self.events.append(("left", cluster))


def test_health_follows_the_age_of_the_last_audit(ticks: Clock) -> None:
    service = AuditService(a_fleet(), all_healthy, interval_seconds=60)
    ticks.seconds += 5
    assert service.health().is_well, "a process that has just begun must not be restarted"
    assert "no audit finished in 5 s" in service.health().reason
    ticks.seconds += 120 + GRACE_SECONDS
    assert not service.health().is_well
    audit_all(service)
    assert service.health().is_well
    assert "finished 0 s ago" in service.health().reason
    ticks.seconds += 120 + GRACE_SECONDS
    assert service.health().is_well
    ticks.seconds += 1
    assert not service.health().is_well
    assert "finished 151 s ago, more than 150 s" in service.health().reason


def test_a_failed_audit_keeps_the_last_result_and_is_reported(ticks: Clock) -> None:
    fails, seen = False, Seen()

    def audit(_fleet: Fleet, cluster: Cluster) -> AuditedNow:
        ticks.seconds += 2
        if fails:
            raise RuntimeError("boom with s3cret")
        return audited(healthy(cluster.name))

    target = ServerTarget("a", "192.0.2.1", 3306, "u", Secret("s3cret"))
    fleet = a_fleet(Cluster("pair", (target,)))
    service = AuditService(fleet, audit, interval_seconds=10, watcher=seen)
    assert service.audit_next()
    [first] = service.results().clusters
    assert first.ended is not None
    assert (first.ended.at, first.ended.duration_seconds) == (NOON, 2.0)
    fails = True
    ticks.seconds += 20
    assert service.audit_next()
    [failed] = service.results().clusters
    assert failed.ended is first.ended
    assert (failed.audits_total, failed.failures_total) == (1, 1)
    assert seen.events == [("failed", "pair", "RuntimeError: boom with …")]
    assert "the last attempt failed: RuntimeError: boom" in service.health().reason
    fails = False
    ticks.seconds += 20
    assert service.audit_next()
    [again] = service.results().clusters
    assert (again.failure, again.audits_total) == (None, 2)
    assert "failed" not in service.health().reason


def test_a_hung_cluster_delays_no_other() -> None:
    released, count = threading.Event(), 0
    enough = threading.Event()

    def audit(_fleet: Fleet, cluster: Cluster) -> AuditedNow:
        nonlocal count
        if cluster.name == "hung":
            assert released.wait(SOON)
        else:
            count += 1
            if count == 5:
                enough.set()
        return audited(healthy(cluster.name))

    fleet = a_fleet(a_cluster_to_read("hung"), a_cluster_to_read("well"))
    service = AuditService(fleet, audit, interval_seconds=0.01)
    service.start()
    assert enough.wait(SOON)
    results = {each.cluster: each for each in service.results().clusters}
    assert (results["hung"].is_attempted, results["well"].audits_total >= 4) == (False, True)
    assert service.results().not_attempted == ("hung",)
    released.set()
    service.stop(wait_seconds_max=SOON)
    stopped_at = count
    threading.Event().wait(0.05)
    assert count == stopped_at


def test_a_stale_cluster_is_named_among_healthy_ones(ticks: Clock) -> None:
    fleet = a_fleet(a_cluster_to_read("hung"), a_cluster_to_read("well"))
    service = AuditService(fleet, all_healthy, interval_seconds=60)
    audit_all(service)
    service.use_fleet(a_fleet(a_cluster_to_read("well"), a_cluster_to_read("young")))
    ticks.seconds += 1 / 1024  # before the second audit of any cluster, which is at random
    audit_all(service)
    assert service.results().stale == ()
    ticks.seconds += 150
    assert [each.cluster for each in service.results().stale] == ["well"]


def test_changes_are_reported_and_first_seen_stays(ticks: Clock) -> None:
    snapshots = {"pair": holed()}
    seen = Seen()
    service = AuditService(
        a_fleet(),
        lambda _fleet, cluster: audited(snapshots[cluster.name]),
        interval_seconds=1,
        watcher=seen,
    )
    audit_all(service)
    came = list(seen.events)
    assert ("came", "pair", "H1") in came
    ticks.seconds += 2
    audit_all(service)
    assert seen.events == came
    snapshots["pair"] = healthy()
    ticks.seconds += 2
    audit_all(service)
    assert sorted(seen.events[len(came) :]) == sorted(("gone", *each[1:]) for each in came)


def test_what_another_process_left_open_does_not_come_again() -> None:
    known = audited(holed()).audit.findings
    seen, asked = Seen(), []

    def open_before(cluster: str) -> Sequence[object]:
        asked.append(cluster)
        return known

    service = AuditService(
        a_fleet(),
        lambda _fleet, _cluster: audited(holed()),
        interval_seconds=60,
        watcher=seen,
        open_before=open_before,  # type: ignore[arg-type]
    )
    audit_all(service)
    assert (seen.events, asked) == ([], ["pair"])


def test_a_new_fleet_is_audited_at_once_and_what_left_it_has_no_result(ticks: Clock) -> None:
    seen = Seen()
    fleet = a_fleet(a_cluster_to_read("a"), a_cluster_to_read("b"))
    service = AuditService(fleet, all_healthy, interval_seconds=60, watcher=seen)
    audit_all(service)
    ticks.seconds += 1
    moved = a_cluster_to_read("b", ("a", "b", "c"))
    service.use_fleet(a_fleet(moved, a_cluster_to_read("c")))
    assert seen.events == [("left", "a")]
    kept, new = service.results().clusters
    assert (kept.cluster, kept.servers, kept.audits_total) == ("b", ("a", "b", "c"), 1)
    assert (new.cluster, new.is_attempted) == ("c", False)
    audit_all(service)
    assert [each.audits_total for each in service.results().clusters] == [2, 1]
    service.use_fleet(a_fleet(moved, a_cluster_to_read("c")))
    audit_all(service)
    assert [each.audits_total for each in service.results().clusters] == [2, 1], "as scheduled"
    policy = replace(fleet.policy, intervals_max=500)
    service.use_fleet(replace(a_fleet(moved, a_cluster_to_read("c")), policy=policy))
    audit_all(service)
    assert [each.audits_total for each in service.results().clusters] == [3, 2], "a new policy"


def test_an_audit_that_ends_after_its_cluster_left_leaves_nothing() -> None:
    began, go_on = threading.Event(), threading.Event()

    def audit(_fleet: Fleet, cluster: Cluster) -> AuditedNow:
        began.set()
        assert go_on.wait(SOON)
        return audited(holed(cluster.name))

    seen = Seen()
    service = AuditService(a_fleet(), audit, interval_seconds=60, watcher=seen)
    thread = threading.Thread(target=service.audit_next)
    thread.start()
    assert began.wait(SOON)
    service.use_fleet(a_fleet(a_cluster_to_read("other")))
    go_on.set()
    thread.join(SOON)
    assert [each.cluster for each in service.results().clusters] == ["other"]
    assert seen.events == [("left", "pair")]


def test_the_states_of_the_metrics(ticks: Clock) -> None:
    snapshots = {"a": holed("a"), "b": healthy("b")}
    fleet = a_fleet(a_cluster_to_read("a"), a_cluster_to_read("b"))
    service = AuditService(
        fleet, lambda _fleet, cluster: audited(snapshots[cluster.name]), interval_seconds=60
    )
    assert [(each.cluster, each.latest) for each in service.states()] == [("a", None), ("b", None)]
    audit_all(service)
    a, b = service.states()
    assert a.latest is not None
    assert b.latest is not None
    assert [each.latest.audit.verdict for each in (a, b) if each.latest is not None] == [
        *(Verdict.CRITICAL, Verdict.OK)
    ]
    assert (a.latest.finished_at, a.schedule) == (NOON, Schedule(60, audits=1, failures=0))
    assert not a.latest.is_stale
    ticks.seconds += 151
    assert [each.latest.is_stale for each in service.states() if each.latest] == [True, True]

"""Audits every cluster of a fleet repeatedly, each on its own clock, and keeps the last results.

1. audit_schedule.py decides which cluster is next. Threads, at most one for each connection, audit
   one cluster at a time. A cluster that hangs keeps its own thread and nothing else.
2. If an audit fails by a defect of ours, the last result stays and becomes stale. The failure is
   counted and reported. The next audit of the cluster runs as scheduled.
3. `use_fleet` replaces the fleet at any time. A cluster that has left it has no result any more,
   not even from an audit that was running then.
4. This module knows neither HTTP nor metrics nor files.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Protocol

from gtid_audit import clock
from gtid_audit.service.audit_schedule import AuditSchedule
from gtid_audit.service.audit_series import series_of
from gtid_audit.service.cluster_results import (
    ClusterResult,
    ConfigurationState,
    EndedAudit,
    ServiceResults,
    seconds_until_stale,
)
from gtid_audit.service.cluster_state import ClusterState, LatestAudit, Schedule
from gtid_audit.service.finding_changes import (
    FindingChange,
    OpenFinding,
    SeenWithout,
    compared_with,
)
from gtid_audit.views.audited_now import AuditedNow
from topology.adapters.inventory.fleet import Cluster, Fleet

_WAIT_SECONDS_MAX: Final = 1.0  # no wait without an end, whatever a clock or a notification does


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the service works, and if not, why."""

    is_well: bool
    reason: str


class Watcher(Protocol):
    """What is called after each audit: it writes the log."""

    def audited(self, result: ClusterResult, changes: Sequence[FindingChange]) -> None:
        """Take over the result of an audit that ended well, and what it changed."""

    def failed(self, result: ClusterResult) -> None:
        """Take over the reason why an attempt failed."""

    def left(self, cluster: str) -> None:
        """Forget a cluster that has left the fleet."""


AuditCluster = Callable[[Fleet, Cluster], AuditedNow]
OpenBefore = Callable[[str], Sequence[OpenFinding]]


class AuditService:
    """Threads that audit the clusters of a fleet, and the last result of each."""

    def __init__(
        self,
        fleet: Fleet,
        audit: AuditCluster,
        *,
        interval_seconds: float,
        watcher: Watcher | None = None,
        open_before: OpenBefore = lambda _cluster: (),
    ) -> None:
        """`open_before` returns the findings that another process left open in a cluster."""
        assert interval_seconds > 0, "checked where it was typed"
        self._audit = audit
        self._open_before = open_before
        self._interval_seconds = interval_seconds
        self._watcher = watcher
        self._stopped = False
        self._changed = threading.Condition()  # guards everything below
        self._schedule = AuditSchedule(
            interval_seconds=interval_seconds, connections_max=fleet.connections_max
        )
        self._fleet = fleet
        self._clusters: dict[str, Cluster] = {}
        self._results: dict[str, ClusterResult] = {}
        # By cluster, since its first audit.
        self._open: dict[str, Sequence[OpenFinding]] = {}
        self._seen_without: dict[str, SeenWithout] = {}
        self._state = ConfigurationState(clock.now())
        self._threads: list[threading.Thread] = []
        self._is_started = False
        self._begun = clock.monotonic_seconds()
        self.use_fleet(fleet)

    # -- the fleet ---------------------------------------------------------------------------------

    def use_fleet(self, fleet: Fleet) -> None:
        """Audit the clusters of this fleet from now on; new and changed ones at once."""
        now = clock.monotonic_seconds()
        with self._changed:
            everything = (fleet.policy, fleet.limits) != (self._fleet.policy, self._fleet.limits)
            changed = frozenset(
                each.name
                for each in fleet.clusters
                if everything or self._clusters.get(each.name) not in (None, each)
            )
            gone = self._results.keys() - {each.name for each in fleet.clusters}
            for name in gone:
                self._open.pop(name, None)
                self._seen_without.pop(name, None)
            self._fleet = fleet
            self._clusters = {each.name: each for each in fleet.clusters}
            self._results = {
                each.name: _carried(self._results.get(each.name), each, now)
                for each in fleet.clusters
            }
            self._schedule.set_fleet(
                {each.name: each.server_count for each in fleet.clusters},
                changed=changed,
                connections_max=fleet.connections_max,
                now=now,
            )
            self._changed.notify_all()
        for name in sorted(gone):
            if self._watcher is not None:
                self._watcher.left(name)
        if self._is_started:
            self._add_threads()

    def set_configuration(self, loaded_at: datetime | None, problem: str | None) -> None:
        """Show when the fleet was loaded (None: as before), and what could not be loaded."""
        with self._changed:
            self._state = ConfigurationState(loaded_at or self._state.loaded_at, problem)

    # -- the threads -------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the threads, which begin the first audits at once."""
        self._begun = clock.monotonic_seconds()
        self._is_started = True
        self._add_threads()

    def stop(self, *, wait_seconds_max: float) -> None:
        """Begin no further audit, and wait for running ones up to a limit."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        until = clock.monotonic_seconds() + wait_seconds_max
        for thread in self._threads:
            thread.join(max(0.0, until - clock.monotonic_seconds()))

    def audit_next(self) -> bool:
        """Audit the cluster that is due, and keep its result. Return whether one was due."""
        with self._changed:
            turn = self._schedule.take(clock.monotonic_seconds())
            if turn is None:
                return False
            fleet, cluster = self._fleet, self._clusters[turn.cluster]
            known = self._open.get(turn.cluster)
            before = self._seen_without.get(turn.cluster)
            last = self._results[turn.cluster].ended
        compared, failure = None, ""
        try:
            if known is None:
                known = self._open_before(turn.cluster)
            audited = self._audit(fleet, cluster)
            compared = compared_with(audited.audit, known, before)
            audited = replace(audited, audit=compared.audit)
            series = series_of(
                audited.audit,
                audited.snapshot,
                audited.policy,
                lasting=compared.lasting,
                earlier=None if last is None else last.series,
            )
        except Exception as defect:  # noqa: BLE001 - the result and the log have it; audits go on
            failure = f"{type(defect).__name__}: {defect}"
            for target in cluster.targets:
                failure = target.password.hidden_in(failure)
        at, now = clock.now(), clock.monotonic_seconds()
        took = now - turn.begun_at
        with self._changed:
            is_slow = took >= fleet.limits.server_seconds_max
            self._schedule.ended(turn, now=now, is_slow=is_slow)
            result = self._results.get(turn.cluster)
            if result is not None:
                if compared is None:
                    result = result.with_failure(failure)
                else:
                    ended = EndedAudit(audited, series, at, now, took, compared.lasting)
                    result = result.with_end(ended)
                    self._open[turn.cluster] = compared.open
                    self._seen_without[turn.cluster] = compared.seen_without
                self._results[turn.cluster] = result
            self._changed.notify_all()
        if result is not None and self._watcher is not None:
            if compared is None:
                self._watcher.failed(result)
            else:
                self._watcher.audited(result, compared.changes)
        return True

    def _add_threads(self) -> None:
        wanted = min(len(self._fleet.clusters), self._fleet.connections_max)
        for number in range(len(self._threads), wanted):
            thread = threading.Thread(target=self._work, name=f"auditor {number}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        while not self._stopped:
            if self.audit_next():
                continue
            with self._changed:
                if not self._stopped:
                    due = self._schedule.seconds_until_due(clock.monotonic_seconds())
                    self._changed.wait(_WAIT_SECONDS_MAX if due is None else min(due, 1.0))

    # -- what is known -----------------------------------------------------------------------------

    def results(self) -> ServiceResults:
        """Return the last result of every cluster, in order of name."""
        with self._changed:
            return ServiceResults(
                tuple(self._results.values()),
                self._state,
                self._interval_seconds,
                clock.monotonic_seconds(),
            )

    def states(self) -> tuple[ClusterState, ...]:
        """Return what the metrics show of each cluster, in order of name."""
        results = self.results()
        return tuple(
            _state(each, results.interval_seconds, is_stale=results.is_stale(each))
            for each in results.clusters
        )

    def health(self) -> Health:
        """Evaluate whether the process works: whether any audit has ended well lately."""
        results = self.results()
        limit = seconds_until_stale(self._interval_seconds)
        if self._is_started and not all(each.is_alive() for each in self._threads):
            return Health(is_well=False, reason="a thread that audits has ended")
        if not results.clusters:
            return Health(is_well=True, reason="the fleet has no cluster")
        failures = [each.failure for each in results.clusters if each.failure is not None]
        failed = f"; the last attempt failed: {failures[0]}" if failures else ""
        ages = [
            each.age_seconds(results.now_monotonic_seconds)
            for each in results.clusters
            if each.ended is not None
        ]
        if not ages:
            waited = results.now_monotonic_seconds - self._begun
            reason = f"no audit finished in {waited:.0f} s{failed}"
            return Health(is_well=waited <= limit, reason=reason)
        reason = f"the last audit finished {min(ages):.0f} s ago"
        if min(ages) > limit:
            return Health(is_well=False, reason=f"{reason}, more than {limit:.0f} s{failed}")
        return Health(is_well=True, reason=reason + failed)


def _carried(before: ClusterResult | None, cluster: Cluster, now: float) -> ClusterResult:
    """Return the result of a cluster after its fleet was loaded again."""
    servers = tuple(sorted(target.name for target in cluster.targets))
    if before is None:
        return ClusterResult(cluster.name, servers, cluster.labels, now)
    return replace(before, servers=servers, labels=cluster.labels)


def _state(result: ClusterResult, interval_seconds: float, *, is_stale: bool) -> ClusterState:
    ended = result.ended
    latest = (
        None
        if ended is None
        else LatestAudit(
            ended.audit,
            ended.series,
            ended.at,
            ended.duration_seconds,
            lasting=ended.lasting,
            is_stale=is_stale,
        )
    )
    schedule = Schedule(interval_seconds, result.audits_total, result.failures_total)
    return ClusterState(result.cluster, result.labels, latest, schedule)

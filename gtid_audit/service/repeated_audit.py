"""Audits repeatedly in a thread, and keeps the last finished report.

1. An audit begins every `interval_seconds`. One that takes longer delays the next; none overlap.
2. If an audit fails by a defect of ours, the last report stays and becomes stale. /healthz then
   reports that, with the reason. The next audit runs as scheduled.
3. This module knows neither HTTP nor metrics.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gtid_audit import clock
from gtid_audit.service.cluster_state import ClusterState, LatestAudit, MeasuredAudit, Schedule

# Two intervals and a grace period: one audit may be slow, or fail, before an operator is paged.
INTERVALS_UNTIL_STALE: Final = 2
GRACE_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Finished:
    """One finished audit of all clusters."""

    audits: tuple[MeasuredAudit, ...]
    ended_at: datetime
    ended_monotonic_seconds: float
    duration_seconds: float


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the service works, and if not, why."""

    is_well: bool
    reason: str


class AuditService:
    """A thread that audits, and its last result."""

    def __init__(
        self,
        audit: Callable[[], tuple[MeasuredAudit, ...]],
        *,
        interval_seconds: float,
        report_failure: Callable[[str], None] = lambda _text: None,
    ) -> None:
        assert interval_seconds > 0, "checked where it was typed"
        self._audit = audit
        self._interval_seconds = interval_seconds
        self._report_failure = report_failure
        self._stop = threading.Event()
        self._latest: Finished | None = None
        self._failure: str | None = None
        self._audits = self._failures = 0
        self._began = clock.monotonic_seconds()
        self._thread = threading.Thread(target=self._work, name="audits", daemon=True)

    def start(self) -> None:
        """Start the thread, which begins the first audit at once."""
        self._began = clock.monotonic_seconds()
        self._thread.start()

    def stop(self, *, wait_seconds_max: float) -> None:
        """Begin no further audit, and wait for a running one up to a limit."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(wait_seconds_max)

    def latest(self) -> Finished | None:
        """Return the last finished audit; None before the first."""
        return self._latest

    def states(self) -> tuple[ClusterState, ...]:
        """Return what the metrics show of each cluster; nothing before the first audit."""
        finished = self._latest
        if finished is None:
            return ()
        schedule = Schedule(self._interval_seconds, self._audits, self._failures)
        return tuple(
            ClusterState(
                each.audit.cluster,
                each.audit.labels,
                LatestAudit(each.audit, each.series, finished.ended_at, finished.duration_seconds),
                schedule,
            )
            for each in finished.audits
        )

    def health(self) -> Health:
        """Evaluate the age of the last finished audit."""
        finished, failure = self._latest, self._failure
        limit = INTERVALS_UNTIL_STALE * self._interval_seconds + GRACE_SECONDS
        failed = f"; the last attempt failed: {failure}" if failure is not None else ""
        if finished is None:
            waited = clock.monotonic_seconds() - self._began
            return Health(is_well=False, reason=f"no audit finished in {waited:.0f} s{failed}")
        age = clock.monotonic_seconds() - finished.ended_monotonic_seconds
        reason = f"the last audit finished {age:.0f} s ago"
        if age > limit:
            return Health(is_well=False, reason=f"{reason}, more than {limit:.0f} s{failed}")
        return Health(is_well=True, reason=reason + failed)

    def audit_once(self) -> None:
        """Run one audit and keep its result."""
        begun = clock.monotonic_seconds()
        try:
            audits = self._audit()
        except Exception as defect:  # noqa: BLE001 - /healthz and the log report it; audits go on
            self._failures += 1
            self._failure = f"{type(defect).__name__}: {defect}"
            self._report_failure(self._failure)
            return
        ended = clock.monotonic_seconds()
        self._failure = None
        self._audits += 1
        self._latest = Finished(audits, clock.now(), ended, ended - begun)

    def _work(self) -> None:
        while not self._stop.is_set():
            begun = clock.monotonic_seconds()
            self.audit_once()
            spent = clock.monotonic_seconds() - begun
            self._stop.wait(max(0.0, self._interval_seconds - spent))

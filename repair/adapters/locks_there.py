"""Queries the servers of a plan for the sessions that block an applier (A5, A8).

The question itself is that of `gtid-audit locks` (topology/adapters/lock_reads.py). The audit does
not ask it: only a plan needs the id of a session.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from repair.content.locks_read import LocksRead
from repair.strategies.blocking_sessions import BLOCKED
from topology.adapters.lock_reads import read_locks

if TYPE_CHECKING:
    from topology.catalogue.findings import Finding
    from topology.readings.target import ServerTarget


def read_blocking_locks(
    findings: Iterable[Finding], targets: Mapping[str, ServerTarget], *, seconds_max: float
) -> dict[str, LocksRead]:
    """Return the locks of each server of which an applier waits, by name."""
    waiting = {each.replica for each in findings if each.code in BLOCKED}
    return {
        name: _locks(targets[name], seconds_max=seconds_max)
        for name in sorted(targets.keys() & waiting)
    }


def _locks(target: ServerTarget, *, seconds_max: float) -> LocksRead:
    read_at = datetime.now(UTC)
    reading, unread = read_locks(target, seconds_max=seconds_max)
    return LocksRead(
        read_at,
        reading,
        tuple((each.fact, f"{each.reason.value}: {each.detail}") for each in unread),
    )

"""The operator's policy: differences that are not faults in this fleet.

This module accesses no servers: it converts configuration to a value.
"""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from topology.facts.accepted import AcceptedRepair
from topology.facts.accepted_findings import AcceptedFinding

# Lower limits would depend on how long a reading takes. The fleet audit decides clean clusters by
# these values, whatever the policy is.
CLOCK_SECONDS_LEAST: Final = 1
INTERVALS_LEAST: Final = 100
DEAD_UUIDS_LEAST: Final = 4
OUTAGE_SECONDS_MOST: Final = 7 * 86_400

# The names of the limits: numbers that a fleet file may set.
LIMITS: Final = (
    *("lock_wait_seconds_max", "stall_seconds_max", "runway_seconds_min", "outage_seconds_max"),
    *("clock_seconds_max", "intervals_max", "dead_uuids_max", "ddl_wait_seconds_max"),
)
_NOT_NEGATIVE: Final = (
    *("lock_wait_seconds_max", "stall_seconds_max", "runway_seconds_min", "outage_seconds_max"),
    "ddl_wait_seconds_max",
)


@dataclass(frozen=True, slots=True)
class Policy:
    """What the rules permit in one fleet or cluster."""

    allowed_uuids: frozenset[UUID] = frozenset()  # extra transactions of these are never errant
    # An applier that waits for a lock, or that makes no progress, is no finding for this long.
    lock_wait_seconds_max: int = 10
    stall_seconds_max: int = 60
    # A binary log that another server needs, and that expires earlier than this, is a finding (P3).
    runway_seconds_min: int = 86_400
    # A source keeps its binary logs for at least as long as a replica may be down (C8).
    outage_seconds_max: int = 86_400
    clock_seconds_max: int = 5  # between two clocks, beyond the time that reading them took (C13)
    intervals_max: int = 1_000  # of one gtid_executed (F1)
    dead_uuids_max: int = DEAD_UUIDS_LEAST  # of servers that no longer exist (F2)
    # DDL that a replica has not applied after this time is a warning (S1).
    ddl_wait_seconds_max: int = 300
    definitions: bool = False  # audits read and compare definitions (S1, S2)
    # The severity of remarks on configuration and hygiene (C and F), where the fleet has its own.
    levels: tuple[tuple[str, str], ...] = ()
    # Addresses (host:port) of sources that the operator excludes from the audit. A channel from one
    # of them is not reported as unknown.
    external_sources: frozenset[str] = frozenset()
    # Repairs that left transactions empty by decision: E4 about these is only info.
    accepted: tuple[AcceptedRepair, ...] = ()
    # The strategies that `reconcile --yes` may apply where a plan takes them by default.
    reconcile: tuple[str, ...] = ()
    # Findings that are reported at severity info, as long as they stay within these limits.
    accepted_findings: tuple[AcceptedFinding, ...] = ()

    def __post_init__(self) -> None:
        for name in _NOT_NEGATIVE:
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative")
        if self.clock_seconds_max < CLOCK_SECONDS_LEAST:
            raise ValueError(f"clock_seconds_max must be at least {CLOCK_SECONDS_LEAST}")
        if self.intervals_max < INTERVALS_LEAST:
            raise ValueError(f"intervals_max must be at least {INTERVALS_LEAST}")
        if self.dead_uuids_max < DEAD_UUIDS_LEAST:
            raise ValueError(f"dead_uuids_max must be at least {DEAD_UUIDS_LEAST}")
        if self.outage_seconds_max > OUTAGE_SECONDS_MOST:
            raise ValueError(f"outage_seconds_max must be at most {OUTAGE_SECONDS_MOST:,}")

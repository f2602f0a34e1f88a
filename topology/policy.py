"""The operator's policy: differences that are not faults in this fleet.

This module accesses no servers: it converts configuration to a value.
"""

from dataclasses import dataclass
from uuid import UUID

from topology.facts.accepted import AcceptedRepair


@dataclass(frozen=True, slots=True)
class Policy:
    """What the rules permit in one fleet or cluster."""

    allowed_uuids: frozenset[UUID] = frozenset()  # extra transactions of these are never errant
    # An applier that waits for a lock, or that makes no progress, is no finding for this long.
    lock_wait_seconds_max: int = 10
    stall_seconds_max: int = 60
    # A binary log that another server needs, and that expires earlier than this, is a finding (P3).
    runway_seconds_min: int = 86_400
    # Addresses (host:port) of sources that the operator excludes from the audit. A channel from one
    # of them is not reported as unknown.
    external_sources: frozenset[str] = frozenset()
    # Repairs that left transactions empty by decision: E4 about these is only info.
    accepted: tuple[AcceptedRepair, ...] = ()

    def __post_init__(self) -> None:
        for name in ("lock_wait_seconds_max", "stall_seconds_max", "runway_seconds_min"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative")

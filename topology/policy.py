"""What an operator permits: differences that are not faults here.

This file knows no servers; it is configuration turned into a value.
"""

from dataclasses import dataclass
from uuid import UUID

from topology.accepted import AcceptedRepair


@dataclass(frozen=True, slots=True)
class Policy:
    """What the rules take for granted in one fleet or cluster."""

    allowed_uuids: frozenset[UUID] = frozenset()  # extra transactions of these are never errant
    # An applier that waits for a lock, or that applies nothing, is no finding for this long.
    lock_wait_seconds_max: int = 10
    stall_seconds_max: int = 60
    # Addresses (host:port) of sources that this fleet does not audit on purpose: a channel from
    # one of them is not reported as unknown.
    external_sources: frozenset[str] = frozenset()
    # Repairs that left transactions empty by decision: E4 about these is information.
    accepted: tuple[AcceptedRepair, ...] = ()

    def __post_init__(self) -> None:
        for name in ("lock_wait_seconds_max", "stall_seconds_max"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative")

"""What an operator permits: differences that are not faults here.

This file knows no servers; it is configuration turned into a value.
"""

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Policy:
    """What the rules take for granted in one fleet or cluster."""

    allowed_uuids: frozenset[UUID] = frozenset()  # extra transactions of these are never errant

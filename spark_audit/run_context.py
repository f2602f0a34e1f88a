"""What is known of the clusters of a run beside their rows: what has to travel to the executors.

1. `contents` is what was compared of the transactions of some clusters. None of a cluster: nobody
   looked, or there was nothing to see.
2. `gaps` are servers that the fleet file names and the run has no reading of, or has a reading of
   another address of. An audit must not be OK about a server that was not read.
3. A cluster that is named here goes to the rules, however clean its columns are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from topology.contents import ContentReading
from topology.findings import Unknown

Contents: TypeAlias = Mapping[str, ContentReading]
Gaps: TypeAlias = Mapping[str, tuple[Unknown, ...]]


@dataclass(frozen=True, slots=True)
class Beside:
    """What rows do not hold, by cluster."""

    contents: Contents = field(default_factory=dict)
    gaps: Gaps = field(default_factory=dict)

    @classmethod
    def telling(cls, contents: Contents | None, gaps: Gaps | None = None) -> "Beside":
        """Keep what an evaluation depends on: contents that differ or could not be read, and gaps.

        None as `contents`: nothing was compared.
        """
        differing = {
            cluster: reading
            for cluster, reading in (contents or {}).items()
            if reading.differences or reading.unread
        }
        return cls(differing, dict(gaps or {}))

    @property
    def clusters(self) -> list[str]:
        """Return the clusters of which something is known, in order of name."""
        return sorted({*self.contents, *self.gaps})


NOTHING: Final = Beside()

"""Facts about the clusters of a run that are not in its rows and must reach the executors.

1. `contents` is the result of comparing the transactions of some clusters. A cluster without an
   entry was not compared, or has no result that an evaluation needs.
2. `gaps` are servers of the fleet file for which the run has no reading, or a reading of another
   address. An audit must not be OK about a server that was not read.
3. `consumers` are the readings of the programs and backups that read the logs of some clusters.
4. `labels` are names that the operator gave the clusters. They are in the results, and no rule
   reads them.
5. A cluster with such facts, other than labels, goes to the rules, even if its columns are clean.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from topology.catalogue.findings import Unknown
from topology.documents.label_records import Labels
from topology.readings.consumers import ConsumerReading
from topology.readings.contents import ContentReading

Contents: TypeAlias = Mapping[str, ContentReading]
Gaps: TypeAlias = Mapping[str, tuple[Unknown, ...]]
Consumers: TypeAlias = Mapping[str, tuple[ConsumerReading, ...]]


@dataclass(frozen=True, slots=True)
class Beside:
    """Facts beside the rows, by cluster."""

    contents: Contents = field(default_factory=dict)
    gaps: Gaps = field(default_factory=dict)
    consumers: Consumers = field(default_factory=dict)
    labels: Mapping[str, Labels] = field(default_factory=dict)

    @classmethod
    def telling(
        cls,
        contents: Contents | None,
        gaps: Gaps | None = None,
        consumers: Consumers | None = None,
        labels: Mapping[str, Labels] | None = None,
    ) -> "Beside":
        """Keep the facts that an evaluation needs; contents only if they differ or are unread.

        None as `contents`: no contents were compared.
        """
        differing = {
            cluster: reading
            for cluster, reading in (contents or {}).items()
            if reading.differences or reading.unread
        }
        return cls(differing, dict(gaps or {}), dict(consumers or {}), dict(labels or {}))

    @property
    def clusters(self) -> list[str]:
        """Return the clusters with facts that rules need, in order of name."""
        return sorted({*self.contents, *self.gaps, *self.consumers})


NOTHING: Final = Beside()

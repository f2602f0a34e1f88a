"""Facts about the clusters of a run that are not in its rows and must reach the executors.

1. `contents` is the result of comparing the transactions of some clusters. A cluster without an
   entry was not compared, or has no result that an evaluation needs.
2. `gaps` are servers of the fleet file for which the run has no reading, or a reading of another
   address. An audit must not be OK about a server that was not read.
3. `consumers` are the readings of the programs and backups that read the logs of some clusters.
4. `labels` are names that the operator gave the clusters. They are in the results, and no rule
   reads them.
5. `definitions` is the result of comparing the definitions of some clusters.
6. A cluster with such facts, other than labels, goes to the rules, even if its columns are clean.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from topology.catalogue.findings import Unknown
from topology.documents.label_records import Labels
from topology.readings.consumers import ConsumerReading
from topology.readings.contents import ContentReading
from topology.readings.definition_reading import DefinitionReading

Contents: TypeAlias = Mapping[str, ContentReading]
Gaps: TypeAlias = Mapping[str, tuple[Unknown, ...]]
Consumers: TypeAlias = Mapping[str, tuple[ConsumerReading, ...]]
Definitions: TypeAlias = Mapping[str, DefinitionReading]


@dataclass(frozen=True, slots=True)
class Beside:
    """Facts beside the rows, by cluster."""

    contents: Contents = field(default_factory=dict)
    gaps: Gaps = field(default_factory=dict)
    consumers: Consumers = field(default_factory=dict)
    labels: Mapping[str, Labels] = field(default_factory=dict)
    definitions: Definitions = field(default_factory=dict)

    @classmethod
    def telling(
        cls,
        contents: Contents | None,
        gaps: Gaps | None = None,
        consumers: Consumers | None = None,
        labels: Mapping[str, Labels] | None = None,
        definitions: Definitions | None = None,
    ) -> "Beside":
        """Keep the facts that an evaluation needs: not contents and definitions that are alike.

        None as `contents` or `definitions`: these were not compared.
        """
        differing = {
            cluster: reading
            for cluster, reading in (contents or {}).items()
            if reading.differences or reading.unread
        }
        audible = {
            cluster: reading
            for cluster, reading in (definitions or {}).items()
            if not reading.is_silent
        }
        return cls(differing, dict(gaps or {}), dict(consumers or {}), dict(labels or {}), audible)

    @property
    def clusters(self) -> list[str]:
        """Return the clusters with facts that rules need, in order of name."""
        return sorted({*self.contents, *self.gaps, *self.consumers, *self.definitions})


NOTHING: Final = Beside()

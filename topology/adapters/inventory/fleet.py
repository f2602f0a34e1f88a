"""A fleet as values: its clusters, their servers, and the limits.

1. A `Roster` has the contents of a fleet file. A `Fleet` is the same with every account looked up.
2. This module reads nothing: fleet_file.py makes both from a file. It imports no large modules,
   because every executor that reads servers imports it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final, Protocol, TypeVar

from gtid.counted_nouns import counted
from topology.adapters.collect import CollectLimits
from topology.adapters.consumer_source import ConsumerSource
from topology.adapters.inventory.accounts import ServerEntry
from topology.adapters.inventory.problem import InventoryProblem
from topology.documents.label_records import Labels
from topology.policy import Policy
from topology.readings.target import ServerTarget


@dataclass(frozen=True, slots=True)
class Cluster:
    """One cluster to audit: servers in order of name."""

    name: str
    targets: tuple[ServerTarget, ...]
    consumers: tuple[ConsumerSource, ...] = ()  # in order of name
    labels: Labels = ()

    @property
    def server_count(self) -> int:
        """Return the number of servers."""
        return len(self.targets)


@dataclass(frozen=True, slots=True)
class ClusterEntry:
    """One cluster whose accounts are not looked up yet: servers in order of name."""

    name: str
    servers: tuple[ServerEntry, ...]
    consumers: tuple[ConsumerSource, ...] = ()  # in order of name
    labels: Labels = ()

    @property
    def server_count(self) -> int:
        """Return the number of servers."""
        return len(self.servers)


@dataclass(frozen=True, slots=True)
class Fleet:
    """The contents of a fleet file: clusters in order of name."""

    clusters: tuple[Cluster, ...]
    limits: CollectLimits
    connections_max: int
    policy: Policy
    is_listed: bool = False  # a command listed some of its servers: another time it may list others
    is_partial: bool = False  # some clusters were selected; the fleet has others

    @property
    def labels(self) -> dict[str, Labels]:
        """Return the labels of each cluster that has some."""
        return {each.name: each.labels for each in self.clusters if each.labels}

    def only(self, name: str | None) -> "Fleet":
        """Return the fleet with one cluster; the whole fleet for None. Raises InventoryProblem."""
        if name is None:
            return self
        kept = _named(self.clusters, name)
        return replace(self, clusters=kept, is_partial=len(kept) < len(self.clusters))


@dataclass(frozen=True, slots=True)
class Roster:
    """The contents of a fleet file without passwords: clusters in order of name."""

    clusters: tuple[ClusterEntry, ...]
    limits: CollectLimits
    connections_max: int
    policy: Policy

    @property
    def labels(self) -> dict[str, Labels]:
        """Return the labels of each cluster that has some."""
        return {each.name: each.labels for each in self.clusters if each.labels}

    def only(self, name: str | None) -> "Roster":
        """Return the roster with one cluster; all of it for None. Raises InventoryProblem."""
        return self if name is None else replace(self, clusters=_named(self.clusters, name))


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Kind = TypeVar("_Kind", bound=_Named)
_NAMES_MAX: Final = 8  # listed where a cluster is not in the file


def _named(clusters: Sequence[_Kind], name: str) -> tuple[_Kind, ...]:
    kept = tuple(cluster for cluster in clusters if cluster.name == name)
    if not kept:
        names = [cluster.name for cluster in clusters]
        near = get_close_matches(name, names, n=1)
        listed = ", ".join(names[:_NAMES_MAX])
        more = len(names) - _NAMES_MAX
        others = f"it has {listed}" + (f" and {counted(more, 'other')}" if more > 0 else "")
        hint = f"did you mean {near[0]}?" if near else others
        raise InventoryProblem(f"no cluster with that name in the fleet file; {hint}")
    return kept

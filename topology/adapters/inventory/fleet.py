"""A fleet as values: which clusters there are, of which servers, and within which limits.

It knows no file: fleet_file.py makes these from one. Nothing heavy is imported here, because every
executor that reads servers imports it.
"""

from dataclasses import dataclass, replace
from difflib import get_close_matches

from topology.adapters.collect import CollectLimits
from topology.adapters.inventory.problem import InventoryProblem
from topology.policy import Policy
from topology.target import ServerTarget


@dataclass(frozen=True, slots=True)
class Cluster:
    """One cluster to audit: servers in order of name."""

    name: str
    targets: tuple[ServerTarget, ...]


@dataclass(frozen=True, slots=True)
class Fleet:
    """Everything a fleet file says: clusters in order of name."""

    clusters: tuple[Cluster, ...]
    limits: CollectLimits
    connections_max: int
    policy: Policy

    def only(self, name: str | None) -> "Fleet":
        """Return the fleet with one cluster left; as it is for None. Raises InventoryProblem."""
        if name is None:
            return self
        kept = tuple(cluster for cluster in self.clusters if cluster.name == name)
        if not kept:
            names = [cluster.name for cluster in self.clusters]
            near = get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {len(names)} others"
            raise InventoryProblem(f"no cluster of that name in the fleet file; {hint}")
        return replace(self, clusters=kept)

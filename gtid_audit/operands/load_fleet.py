"""Reads a fleet file with this process's environment and standard error."""

from pathlib import Path

from gtid_audit.operands.cluster_to_read import ClusterToRead
from gtid_audit.output import warn
from topology.adapters.inventory.fleet import Fleet, Roster
from topology.adapters.inventory.fleet_file import load_fleet, load_roster
from topology.adapters.inventory.secrets import environment


def load(path: Path, cluster: str | None) -> Fleet:
    """Read a fleet file; keep only one cluster if `cluster` is given. Raises InventoryProblem."""
    return load_fleet(path, environment=environment(), warn=warn, cluster=cluster)


def cluster_to_read(path: Path, cluster: str) -> ClusterToRead:
    """Return one cluster of a fleet file, with the limits and the policy of the file.

    Raises InventoryProblem.
    """
    fleet = load(path, cluster)
    [found] = fleet.clusters
    return ClusterToRead(
        found.name, found.targets, fleet.limits, fleet.policy, consumers=found.consumers
    )


def load_without_accounts(path: Path) -> Roster:
    """Read a fleet file without looking up accounts or servers. Raises InventoryProblem."""
    return load_roster(path, environment=environment())

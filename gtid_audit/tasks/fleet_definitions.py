"""Compares the definitions of the clusters of a fleet, if it was asked for.

A defect of ours in one cluster makes that cluster UNKNOWN, and does not affect the others.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeAlias

from gtid_audit.operands.cluster_to_read import ClusterToRead
from gtid_audit.tasks.cluster_definitions import look_at_definitions
from topology.adapters.collect_fleet import Say
from topology.adapters.inventory.fleet import Cluster, Fleet
from topology.audit_cluster import EVERY_SERVER
from topology.readings.definition_reading import DefinitionReading, UnreadDefinitions
from topology.readings.snapshot import ClusterSnapshot

# By cluster; None: not asked for.
Definitions: TypeAlias = Mapping[str, DefinitionReading] | None

# Clusters that are compared at the same time: the work is waiting for servers.
DEFINITIONS_AT_ONCE: Final = 16


def compare_definitions(
    fleet: Fleet,
    snapshots: Sequence[ClusterSnapshot],
    chosen: bool | None,
    *,
    say: Say | None = None,
) -> Definitions:
    """Compare the definitions of every cluster; None if it was not asked for.

    `chosen`: --definitions, --no-definitions, or None for what the policy of the fleet says.
    """
    if not (fleet.policy.definitions if chosen is None else chosen):
        return None
    clusters = {cluster.name: cluster for cluster in fleet.clusters}

    def look(snapshot: ClusterSnapshot) -> DefinitionReading:
        return _look(snapshot, clusters[snapshot.cluster], fleet, say=say)

    with ThreadPoolExecutor(DEFINITIONS_AT_ONCE) as pool:
        readings = pool.map(look, snapshots)
        return {each.cluster: found for each, found in zip(snapshots, readings, strict=True)}


def _look(
    snapshot: ClusterSnapshot, cluster: Cluster, fleet: Fleet, *, say: Say | None
) -> DefinitionReading:
    """Compare the definitions of one cluster. Never raises."""

    def say_here(text: str) -> None:
        if say is not None:
            say(f"{snapshot.cluster}: {text}")

    to_read = ClusterToRead(cluster.name, cluster.targets, fleet.limits, fleet.policy)
    try:
        return look_at_definitions(snapshot, to_read, say=say_here)
    except Exception as error:  # noqa: BLE001 - it is reported for this cluster
        reason = f"defect of the auditor: {type(error).__name__}: {error}"
        for target in cluster.targets:
            reason = target.password.hidden_in(reason)
        moment = max(server.read_ended for server in snapshot.last)
        return DefinitionReading(moment, (), (UnreadDefinitions(EVERY_SERVER, "all", reason),))

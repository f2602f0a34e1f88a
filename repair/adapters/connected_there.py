"""Queries the servers of a plan for what is connected to them as a replica now.

The question itself is that of discovery (topology/adapters/neighbours.py). A server that was not
read is not asked: nothing is planned on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from topology.adapters.neighbours import read_connected
from topology.readings.dialect import dialect_of, privileges_to_list_replicas

if TYPE_CHECKING:
    from topology.readings.connected_replica import ConnectedReplica
    from topology.readings.snapshot import ClusterSnapshot
    from topology.readings.target import ServerTarget


def read_connected_replicas(
    snapshot: ClusterSnapshot, targets: Mapping[str, ServerTarget], *, seconds_max: float
) -> tuple[dict[str, tuple[ConnectedReplica, ...]], dict[str, str]]:
    """Return what is connected to each server, by name, and why that was not read.

    A server in both listed its registered replicas, but not its dump threads.
    """
    connected: dict[str, tuple[ConnectedReplica, ...]] = {}
    unread: dict[str, str] = {}
    for server in sorted(snapshot.last, key=lambda each: each.name):
        if server.name not in targets or server.version is None:
            continue
        dialect = dialect_of(server.version)
        connected[server.name], facts = read_connected(
            targets[server.name], dialect, seconds_max=seconds_max
        )
        if facts:
            reasons = "; ".join(f"{fact.reason.value}: {fact.detail}" for fact in facts)
            needs = privileges_to_list_replicas(dialect)
            unread[server.name] = f"{reasons} (the account needs {needs})"
    return connected, unread

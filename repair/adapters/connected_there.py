"""Queries the servers of a plan for what is connected to them as a replica now.

The question itself is that of discovery (topology/adapters/neighbours.py). A server that was not
read is not asked: nothing is planned on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from topology.adapters.neighbours import read_connected
from topology.readings.dialect import dialect_of, privileges_to_list_replicas

if TYPE_CHECKING:
    from topology.readings.connected_replica import ConnectedReplica
    from topology.readings.snapshot import ClusterSnapshot, UnreadFact
    from topology.readings.target import ServerTarget

_CONNECTIONS_MAX: Final = 16


def read_connected_replicas(
    snapshot: ClusterSnapshot, targets: Mapping[str, ServerTarget], *, seconds_max: float
) -> tuple[dict[str, tuple[ConnectedReplica, ...]], dict[str, str]]:
    """Return what is connected to each server, by name, and why that was not read.

    A server in both listed its registered replicas, but not its dump threads.
    """
    dialects = {
        server.name: dialect_of(server.version)
        for server in sorted(snapshot.last, key=lambda each: each.name)
        if server.name in targets and server.version is not None
    }

    def ask(name: str) -> tuple[tuple[ConnectedReplica, ...], tuple[UnreadFact, ...]]:
        return read_connected(targets[name], dialects[name], seconds_max=seconds_max)

    with ThreadPoolExecutor(_CONNECTIONS_MAX) as pool:
        answers = dict(zip(dialects, pool.map(ask, dialects), strict=True))
    unread = {
        name: f"{_reasons(facts)} (the account needs {privileges_to_list_replicas(dialects[name])})"
        for name, (_, facts) in answers.items()
        if facts
    }
    return {name: found for name, (found, _) in answers.items()}, unread


def _reasons(facts: Iterable[UnreadFact]) -> str:
    return "; ".join(f"{fact.reason.value}: {fact.detail}" for fact in facts)

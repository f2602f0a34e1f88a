"""Which servers belong together: those that channels link, and those that share a server_uuid."""

from collections.abc import Set as AbstractSet
from uuid import UUID

from topology.facts.graph import Graph
from topology.readings.snapshot import ClusterSnapshot


def twins_of(snapshot: ClusterSnapshot) -> tuple[tuple[str, ...], ...]:
    """Return the groups of servers that share a server_uuid."""
    by_uuid: dict[UUID, list[str]] = {}
    for server in snapshot.last:
        if server.server_uuid is not None:
            by_uuid.setdefault(server.server_uuid, []).append(server.name)
    groups = (tuple(sorted(names)) for names in by_uuid.values() if len(names) > 1)
    return tuple(sorted(groups))


def islands_of(
    snapshot: ClusterSnapshot,
    graph: Graph,
    *,
    same: tuple[tuple[str, str], ...],
    torn: AbstractSet[str],
) -> tuple[tuple[str, ...], ...]:
    """Return the groups of servers that channels link.

    A server whose channels were not read, or whose identity changed between the readings, may be
    linked to any other server, so it joins all groups.
    """
    group_of = {server.name: {server.name} for server in snapshot.last}

    def join(left: str, right: str) -> None:
        smaller, larger = sorted((group_of[left], group_of[right]), key=len)
        if smaller is not larger:
            larger |= smaller
            group_of.update(dict.fromkeys(smaller, larger))

    for edge in graph.edges:
        join(edge.source, edge.replica)
    for group in (*graph.together, *same):
        for name in group[1:]:
            join(group[0], name)
    unsure = [
        server.name for server in snapshot.last if server.channels is None or server.name in torn
    ]
    for name in unsure:
        for other in group_of:
            join(name, other)
    groups = {id(group): group for group in group_of.values()}
    return tuple(sorted(tuple(sorted(group)) for group in groups.values()))

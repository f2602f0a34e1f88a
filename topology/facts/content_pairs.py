"""Which two servers of a cluster are compared with each other, by the contents of their logs.

    a ──▶ b      two servers with a channel between them
    a     b      members of a group: each with the next by name
    a     o      a server that no channel links, with one that it could join

The last is for a former source that returns with other transactions under GTIDs that the servers in
use have from it. Its sets allow it to join, so only the contents show that (E4).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final
from uuid import UUID

from gtid import GtidSet
from topology.facts.graph import Graph, build_graph
from topology.facts.islands import islands_of
from topology.facts.memberships import uuid_of_group
from topology.readings.one_server import same_servers
from topology.readings.snapshot import ClusterSnapshot, ReadServer

_TWO: Final = 2


def linked_pairs(snapshot: ClusterSnapshot) -> list[tuple[str, str]]:
    """Return the pairs of servers that a channel links, each once; of two servers, these two.

    Members of a group have no channels between them, so each is compared with the next by name. If
    two members differ in a GTID, two neighbours in that order differ in it too.
    """
    names = tuple(server.name for server in snapshot.last)
    if len(names) == _TWO:
        return [(names[0], names[1])]
    edges = build_graph(snapshot).edges
    found = {(min(e.source, e.replica), max(e.source, e.replica)) for e in edges}
    members: dict[UUID, list[str]] = {}
    for server in snapshot.last:
        group = uuid_of_group(server.setting("group_replication_group_name") or "")
        if group is not None:
            members.setdefault(group, []).append(server.name)
    return sorted(found.union(*(pairwise(sorted(each)) for each in members.values())))


def only_source(snapshot: ClusterSnapshot, names: Sequence[str]) -> str | None:
    """Return which of two servers is the source of the other; None if both are, or neither is."""
    edges = build_graph(snapshot).edges
    found = {each.source for each in edges if {each.source, each.replica} == set(names)}
    return next(iter(found)) if len(found) == 1 else None


def unlinked_pairs(snapshot: ClusterSnapshot) -> dict[tuple[str, str], str]:
    """Return pairs of one server of the largest part and one that would have to join it.

    The pairs are in order of name; the value is the one that would join. Of two servers there are
    none: `linked_pairs` has these two.

    Of the largest part it is the server with which it has the most GTIDs in common, if possible one
    that has no source: the others are compared with their sources.
    """
    if len(snapshot.last) == _TWO:
        return {}
    graph, same = build_graph(snapshot), same_servers(snapshot)
    islands = islands_of(snapshot, graph, same=same, torn=frozenset())
    servers = snapshot.last_read
    main = max(islands, key=lambda part: (len(part), _executed(servers, part)), default=())
    sources = {name for part in islands for name in _entrances(part, graph)}
    found: dict[tuple[str, str], str] = {}
    for part in islands:
        for name in _entrances(part, graph) if part != main else ():
            common = {
                other: _in_common(servers, name, other).gtid_count
                for other in main
                if name in servers and other in servers
            }
            best = max(common, key=lambda each: (common[each], each in sources), default=None)
            if best is not None and common[best]:
                found[min(name, best), max(name, best)] = name
    return found


def _entrances(part: tuple[str, ...], graph: Graph) -> tuple[str, ...]:
    """Return the servers of a part that have no source in it; of a ring, one."""
    without = tuple(name for name in part if not graph.upstream_of(name, stopped_too=True))
    return without or part[:1]


def _executed(servers: dict[str, ReadServer], part: tuple[str, ...]) -> int:
    found = (servers[name].gtid_executed for name in part if name in servers)
    return GtidSet.union_of(found).gtid_count


def _in_common(servers: dict[str, ReadServer], one: str, other: str) -> GtidSet:
    return servers[one].gtid_executed & servers[other].gtid_executed

"""GTIDs that two replicas of one source have both executed and their source has not.

Each replica got them by other means than the channel. Two sessions may have committed different
transactions under one GTID (a copied auto.cnf, or gtid_next). The sets only show that both have
extra GTIDs; the contents decide. GTIDs that another source of either has arrived on a channel.
"""

from itertools import combinations
from typing import Final

from gtid import GtidSet
from topology.facts.graph import Edge, Graph, build_graph
from topology.readings.snapshot import ClusterSnapshot, ReadServer

# The maximum for two replicas: sessions commit few transactions under one GTID.
GTIDS_MAX: Final = 1_000


def held_by_siblings(snapshot: ClusterSnapshot) -> dict[tuple[str, str], GtidSet]:
    """Return, by pair of replicas of one source, the GTIDs that only the replicas have.

    It uses the replicas' first readings and their sources' last, so that transactions that are
    still on their way are excluded.
    """
    graph = build_graph(snapshot)
    first, last = snapshot.first_read, snapshot.last_read
    replicas: dict[str, set[str]] = {}
    for edge in graph.edges:
        if edge.source in last and edge.replica in first and edge.replica in last:
            replicas.setdefault(edge.source, set()).add(edge.replica)
    linked = {frozenset((edge.source, edge.replica)) for edge in graph.edges}
    pairs = {pair for names in replicas.values() for pair in combinations(sorted(names), 2)}
    found: dict[tuple[str, str], GtidSet] = {}
    for one, other in sorted(pair for pair in pairs if frozenset(pair) not in linked):
        both = first[one].gtid_executed & first[other].gtid_executed
        for name in (one, other):
            both = _beyond_sources(both, name, graph, last)
        if both:
            found[one, other] = both.first(GTIDS_MAX)
    return found


def _beyond_sources(
    gtids: GtidSet, name: str, graph: Graph, last: dict[str, ReadServer]
) -> GtidSet:
    """Return what no source of a replica has, and no source is about to list as its own."""
    for channel in last[name].channels or ():
        if channel.source_uuid is not None:
            gtids = gtids.without_uuid(channel.source_uuid)
    return gtids - GtidSet.union_of(_of_source(edge, last) for edge in graph.into(name))


def _of_source(edge: Edge, last: dict[str, ReadServer]) -> GtidSet:
    source = last.get(edge.source)
    return GtidSet() if source is None else source.gtid_executed | source.gtid_owned

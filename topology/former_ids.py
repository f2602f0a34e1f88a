"""What a replica drops because it carries the replica's own server_id, under another UUID.

A server that was cloned or restored keeps its server_id and has a new server_uuid. Transactions
that it committed under its former UUID may come back to it. Its receiver takes them for its own and
drops them, without an error (sql/rpl_replica.cc, queue_event). No present server has that UUID, so
only the server_id in a binary log shows it.
"""

from collections.abc import Mapping

from gtid import GtidSet
from topology.graph import Edge, Graph
from topology.history_evidence import ends_of, intervals_of
from topology.snapshot import ServerSnapshot
from topology.unseen import group_uuids


def of_unknown_uuids(
    edge: Edge, *, graph: Graph, servers: Mapping[str, ServerSnapshot]
) -> dict[str, GtidSet]:
    """Return, by a server upstream that logs it, what the replica does not have of unknown UUIDs.

    An unknown UUID is that of no server and of no group of this audit. The source comes first: what
    it has logged already is what it sends.
    """
    replica = servers[edge.replica]
    known = {server.server_uuid for server in servers.values()} | group_uuids(servers.values())
    rest = (replica.gtid_executed or GtidSet()) | (replica.gtid_owned or GtidSet())
    found: dict[str, GtidSet] = {}
    upstream = graph.upstream_of(edge.source, stopped_too=True) - {edge.source}
    for name in (edge.source, *sorted(upstream)):
        server = servers[name]
        held = (server.gtid_executed or GtidSet()) - (server.gtid_purged or GtidSet()) - rest
        for uuid in known:
            if uuid is not None:
                held = held.without_uuid(uuid)
        if held:
            found[name] = held
            rest |= held
    return found


def with_own_server_id(
    edge: Edge, *, graph: Graph, servers: Mapping[str, ServerSnapshot]
) -> GtidSet:
    """Return what of it carries the replica's server_id in a binary log, as far as that was read.

    Both ends of an interval stand for the whole.
    """
    if all(server.history_evidence is None for server in servers.values()):
        return GtidSet()
    own_id = servers[edge.replica].server_id
    ids = {
        (name, record.gtid): record.server_id
        for name, server in servers.items()
        if server.history_evidence is not None
        for record in server.history_evidence.commits
    }
    return GtidSet.union_of(
        part
        for name, held in of_unknown_uuids(edge, graph=graph, servers=servers).items()
        for part in intervals_of(held)
        if all(ids.get((name, end)) == own_id for end in ends_of(part))
    )

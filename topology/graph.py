"""Who replicates from whom: edges from the channels, and what can flow along them.

1. An edge is a channel whose source is a server of the same snapshot. It is found by the source's
   server_uuid, and only where the channel does not know it yet, by host and port.
2. A server has several names and addresses, so another address alone does not make it another
   server. Two servers with one server_uuid (a copied auto.cnf) are separated by the server_id that
   the channel reports of its source. What is not separated: a copy that has the same server_id too,
   and a channel whose server_id of the source was not read.
3. This file knows sets of servers, not sets of GTIDs.
"""

from dataclasses import dataclass
from uuid import UUID

from topology.snapshot import ChannelSnapshot, ClusterSnapshot, ServerSnapshot, ThreadState


@dataclass(frozen=True, slots=True)
class Edge:
    """A channel between two servers of the cluster: `source` → `replica`, by server name."""

    source: str
    replica: str
    channel: ChannelSnapshot  # as read last

    @property
    def is_open(self) -> bool:
        """Tell whether what the source commits is meant to arrive.

        A receiver that was stopped by hand (no error) carries nothing until somebody starts it. One
        that stopped with an error is a fault with a finding of its own, and its backlog is not a
        difference of another kind.
        """
        stopped_by_hand = (
            self.channel.receiver is ThreadState.STOPPED
            and not self.channel.receiver_errno
            and not self.channel.receiver_error
        )
        return not stopped_by_hand


@dataclass(frozen=True, slots=True)
class Graph:
    """The edges of one cluster, and the channels whose source is not in it."""

    edges: tuple[Edge, ...]
    outside: tuple[tuple[str, ChannelSnapshot], ...]  # (replica name, channel)
    peers: tuple[tuple[str, ...], ...] = ()  # members of one group: they deliver to each other

    def upstream_of(self, name: str, *, stopped_too: bool = False) -> frozenset[str]:
        """Return every server whose transactions arrive at `name` by open edges, however many.

        With `stopped_too`, those as well whose transactions would arrive if nobody had stopped a
        channel by hand.
        """
        found: set[str] = set()
        frontier = {name}
        while frontier:
            frontier = {
                edge.source
                for edge in self.edges
                if (edge.is_open or stopped_too)
                and edge.replica in frontier
                and edge.source not in found
            } | {
                peer
                for group in self.peers
                if frontier & set(group)
                for peer in group
                if peer not in found and peer not in frontier
            }
            found |= frontier
        return frozenset(found)


def build_graph(snapshot: ClusterSnapshot) -> Graph:
    """Match every channel to its source. Same snapshot, same order."""
    by_uuid: dict[UUID, ServerSnapshot] = {}
    by_address: dict[tuple[str, int], ServerSnapshot] = {}
    for server in snapshot.last:
        if server.server_uuid is not None:
            by_uuid.setdefault(server.server_uuid, server)
        by_address.setdefault((server.host, server.port), server)
    edges: list[Edge] = []
    outside: list[tuple[str, ChannelSnapshot]] = []
    for replica in snapshot.last:
        for channel in replica.channels or ():
            source = _source_of(channel, replica, by_uuid=by_uuid, by_address=by_address)
            if source is None:
                outside.append((replica.name, channel))
            else:
                edges.append(Edge(source.name, replica.name, channel))
    edges.sort(key=lambda edge: (edge.source, edge.replica, edge.channel.name))
    outside.sort(key=lambda item: (item[0], item[1].name))
    return Graph(tuple(edges), tuple(outside))


def _source_of(
    channel: ChannelSnapshot,
    replica: ServerSnapshot,
    *,
    by_uuid: dict[UUID, ServerSnapshot],
    by_address: dict[tuple[str, int], ServerSnapshot],
) -> ServerSnapshot | None:
    at_address = by_address.get((channel.source_host, channel.source_port))
    if channel.source_uuid is None:
        return at_address
    # With a duplicate server_uuid the address is the better witness of the two; of a server that
    # did not say its own it is the only one.
    if at_address is not None and at_address.server_uuid in (channel.source_uuid, None):
        return at_address
    found = by_uuid.get(channel.source_uuid)
    if found is None or found is replica or is_another(channel, found):
        return None
    return found


def is_another(channel: ChannelSnapshot, server: ServerSnapshot) -> bool:
    """Return whether the channel's source is not this server although the UUIDs are the same.

    The address decides if it is the same; then the server_id may have been changed since the
    receiver connected. At another address a different server_id is another server.
    """
    if (channel.source_host, channel.source_port) == (server.host, server.port):
        return False
    ids = (channel.source_server_id, server.server_id)
    return None not in ids and ids[0] != ids[1]

"""Which server replicates from which: edges from the channels, and what can flow along them.

1. An edge is a channel whose source is a server of the same snapshot. The source's server_uuid
   identifies it. Host and port identify it only where the channel does not know the UUID yet.
2. A server has several names and addresses, so another address alone does not make it another
   server. Two servers with one server_uuid (a copied auto.cnf) are distinguished by the server_id
   that the channel reports for its source. Two cases are not distinguished: a copy that has the
   same server_id as well, and a channel for which the source's server_id was not read.
3. Only a connected receiver proves which server is its source. Any other receiver connects to its
   address when it starts, and its SOURCE_UUID is that of the server to which it was last connected
   (seen on 9.7.4). If another server has taken over the address, the source is that server.
4. This module handles sets of servers, not sets of GTIDs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias
from uuid import UUID

from topology.facts.last_result import keep_last_result
from topology.facts.memberships import Membership, uuid_of_group
from topology.readings.snapshot import ChannelSnapshot, ClusterSnapshot, ServerSnapshot, ThreadState


@dataclass(frozen=True, slots=True)
class Edge:
    """A channel between two servers of the cluster: `source` → `replica`, by server name."""

    source: str
    replica: str
    channel: ChannelSnapshot  # as read last
    # Why the channel may have received from another server than `source`; "" if nothing shows it.
    # `is_moved`: the address is the source's, and the channel received from another server.
    doubt: str = ""
    is_moved: bool = False

    @property
    def is_open(self) -> bool:
        """Return whether what the source commits is expected to arrive.

        A receiver that an operator stopped (no error) receives nothing until an operator starts it.
        A receiver that stopped with an error has a finding of its own, and its backlog is not
        reported as another kind of difference.
        """
        stopped_by_hand = (
            self.channel.receiver is ThreadState.STOPPED
            and not self.channel.receiver_errno
            and not self.channel.receiver_error
        )
        return not stopped_by_hand


# The servers that receive, and those that send to all of them.
_Delivery: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)  # without slots: it keeps an index of its edges
class Graph:
    """The edges of one cluster, and the channels whose source is not in it."""

    edges: tuple[Edge, ...]
    outside: tuple[tuple[str, ChannelSnapshot], ...]  # (replica name, channel)
    memberships: tuple[Membership, ...] = ()  # the replication groups
    together: tuple[tuple[str, ...], ...] = ()  # configured for one group, members of it or not

    @cached_property
    def _by_replica(self) -> Mapping[str, tuple[Edge, ...]]:
        return _grouped((edge.replica, edge) for edge in self.edges)

    def into(self, replica: str) -> tuple[Edge, ...]:
        """Return the edges to a replica, in the order of `edges`."""
        return self._by_replica.get(replica, ())

    @cached_property
    def _by_source(self) -> Mapping[str, tuple[Edge, ...]]:
        return _grouped((edge.source, edge) for edge in self.edges)

    def out_of(self, source: str) -> tuple[Edge, ...]:
        """Return the edges from a source, in the order of `edges`."""
        return self._by_source.get(source, ())

    def below(self, name: str) -> tuple[str, ...]:
        """Return every other server that receives from a server, over any hops, running or not."""
        found: dict[str, None] = {}
        frontier = [name]
        while frontier:
            for edge in self.out_of(frontier.pop()):
                if edge.replica not in found and edge.replica != name:
                    found[edge.replica] = None
                    frontier.append(edge.replica)
        return tuple(found)

    @property
    def group_uuids(self) -> frozenset[UUID]:
        """Return the UUIDs under which groups commit: they belong to no single server."""
        found = (uuid_of_group(each.name) for each in self.memberships)
        return frozenset(uuid for uuid in found if uuid is not None)

    @property
    def peers(self) -> tuple[tuple[str, ...], ...]:
        """Return the servers that deliver to each other now, as members of one group.

        Where the members are not known, all that are configured for the group may deliver. Galera
        nodes always do.
        """
        found: list[tuple[str, ...]] = []
        of_groups = set()
        for each in self.memberships:
            found += [each.configured] if each.doubt else each.parts
            of_groups.add(each.configured)
        return (*found, *(each for each in self.together if each not in of_groups))

    def upstream_of(
        self,
        name: str,
        *,
        stopped_too: bool = False,
        only_extra: bool = False,
        not_through: str | None = None,
    ) -> frozenset[str]:
        """Return every server whose transactions arrive at `name` over open edges and any hops.

        With `stopped_too`, include servers whose transactions would arrive if no operator had
        stopped a channel, or Group Replication. `only_extra`: of these, only those that would
        deliver what the receiving server does not have. A group refuses a server that has
        transactions which no member has (error 3092), so its members receive nothing from it.
        What arrives only by way of the server `not_through` does not count, except its own.
        """
        groups = self._startable(only_extra=only_extra) if stopped_too else _both_ways(self.peers)
        found: set[str] = set()
        frontier = {name}
        while frontier:
            frontier = {
                edge.source
                for name in frontier
                for edge in self.into(name)
                if (edge.is_open or stopped_too) and edge.source not in found
            } | {
                peer
                for receivers, senders in groups
                if frontier & set(receivers)
                for peer in senders
                if peer not in found and peer not in frontier
            }
            found |= frontier
            frontier -= {not_through}
        return frozenset(found)

    def _startable(self, *, only_extra: bool) -> tuple[_Delivery, ...]:
        """Return who receives from whom once Group Replication runs on all of a group."""
        known = {each.configured: each for each in self.memberships if each.is_known}
        found: list[_Delivery] = []
        for group in self.together:
            one = known.get(group)
            if one is None or not one.outside or not only_extra:
                found.append((group, group))
            else:
                found += [(one.parts[0], one.parts[0]), (one.outside, group)]
        return tuple(found)


def _both_ways(groups: tuple[tuple[str, ...], ...]) -> tuple[_Delivery, ...]:
    return tuple((each, each) for each in groups)


def _grouped(edges: Iterable[tuple[str, Edge]]) -> Mapping[str, tuple[Edge, ...]]:
    found: dict[str, list[Edge]] = {}
    for name, edge in edges:
        found.setdefault(name, []).append(edge)
    return {name: tuple(each) for name, each in found.items()}


@keep_last_result
def build_graph(snapshot: ClusterSnapshot) -> Graph:
    """Match every channel to its source. The same snapshot gives the same order."""
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
                edges.append(_edge(source, replica, channel, by_uuid))
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
    # If servers share a server_uuid, the address is the better evidence. If a server did not report
    # its UUID, the address is the only evidence.
    if at_address is not None and at_address.server_uuid in (channel.source_uuid, None):
        return at_address
    if at_address not in (None, replica) and channel.receiver is not ThreadState.RUNNING:
        return at_address
    found = by_uuid.get(channel.source_uuid)
    if found is None or found is replica or is_another(channel, found):
        return None
    return found


def _edge(
    source: ServerSnapshot,
    replica: ServerSnapshot,
    channel: ChannelSnapshot,
    by_uuid: dict[UUID, ServerSnapshot],
) -> Edge:
    """Return the edge, with the reason for doubt about it.

    Hosts have several names, so only the port shows that an address is not the source's. It must be
    neither the port at which the source was read nor the one at which the source listens.
    """
    uuid = channel.source_uuid
    if uuid is None or channel.receiver is ThreadState.RUNNING:
        return Edge(source.name, replica.name, channel)
    address = f"{channel.source_host}:{channel.source_port}"
    former = by_uuid.get(uuid)
    # If a server did not report its UUID, it is another server if an audited server has this UUID.
    if source.server_uuid != uuid and not (source.server_uuid is None and former is None):
        name = "" if former is None else f" ({former.name})"
        doubt = (
            f"The receiver of {replica.name} was last connected to the server with the server_uuid"
            f" {uuid}{name}, and its address, {address}, is now that of {source.name}: when it is"
            f" started, it connects to {source.name}. Its relay log and its positions are those of"
            " the former source."
        )
        return Edge(source.name, replica.name, channel, doubt, is_moved=True)
    if str(channel.source_port) in (str(source.port), source.setting("port")):
        return Edge(source.name, replica.name, channel)
    doubt = (
        f"The receiver of {replica.name} is not connected, and its address, {address}, has neither"
        f" the port at which {source.name} was read nor the port of {source.name} itself: another"
        " server may be there now, and the receiver connects to it when it is started."
    )
    return Edge(source.name, replica.name, channel, doubt)


def same_link(server: ServerSnapshot, channel: ChannelSnapshot) -> ChannelSnapshot | None:
    """Return a channel in another reading of its replica; None if its source was changed."""
    link = (channel.name, channel.source_host, channel.source_port, channel.source_uuid)
    for other in server.channels or ():
        if link == (other.name, other.source_host, other.source_port, other.source_uuid):
            return other
    return None


def is_at_address(channel: ChannelSnapshot, server: ServerSnapshot) -> bool:
    """Return whether a server was read at the address of a channel."""
    return (channel.source_host, channel.source_port) == (server.host, server.port)


def is_another(channel: ChannelSnapshot, server: ServerSnapshot) -> bool:
    """Return whether the channel's source is not this server although the UUIDs are the same.

    An equal address decides that it is this server: its server_id may have been changed since the
    receiver connected. At another address, a different server_id means another server.
    """
    if is_at_address(channel, server):
        return False
    ids = (channel.source_server_id, server.server_id)
    return None not in ids and ids[0] != ids[1]

"""Parts of a topology that an audit does not read: outside sources, groups, unknown members.

How it works
------------
An audit reads some servers of a topology. What the others hold or deliver is unknown, so three
kinds of servers limit the conclusions:

* **A source outside the snapshot.** A channel refers to it; nothing was read from it. What "no
  server has" may be there, and a transaction that a server "does not receive" may be on its way
  through it. Example: in the ring a → b → c → a only a and b are audited. A transaction of b
  reaches a through c, and on the edge a → b it looks exactly like an errant transaction.
* **A member of a group (Group Replication)** that was not read, or whose members are not known
  (memberships.py). Members deliver to each other without a channel between servers.
* **A Galera node.** Its write sets have no MySQL GTID order; this version evaluates no such node.

`unseen_sources` lists the servers that the audit does not read and whose transactions may reach a
server over any number of hops. An empty answer means that every path into the server was read. Only
then can "it will never arrive" be proved.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from topology.facts.graph import Graph
from topology.facts.memberships import group_name_of, is_galera
from topology.policy import Policy
from topology.readings.group_view import GROUP_CHANNELS
from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot
from topology.readings.vendors import INNODB_READ_ONLY, is_reader_of_volume, row_of

AN_AURORA_READER: Final = "an Aurora reader"


def address_of(channel: ChannelSnapshot) -> str:
    """Return host:port of a channel's source."""
    host = f"[{channel.source_host}]" if ":" in channel.source_host else channel.source_host
    return f"{host}:{channel.source_port}"


def outside_channels(graph: Graph) -> Iterator[tuple[str, ChannelSnapshot]]:
    """Yield the channels whose source was not read, except those of Group Replication."""
    for name, channel in graph.outside:
        if channel.name not in GROUP_CHANNELS:
            yield name, channel


def undeclared_channels(
    graph: Graph, policy: Policy, *, read: Collection[str]
) -> Iterator[tuple[str, ChannelSnapshot]]:
    """Yield the channels whose source was not read and is not declared external.

    `read` are addresses at which a server answered with another UUID, which has its own finding.
    """
    for name, channel in outside_channels(graph):
        address = address_of(channel)
        if address not in policy.external_sources and address not in read:
            yield name, channel


def unseen_sources(
    name: str, *, graph: Graph, servers: Mapping[str, ServerSnapshot]
) -> tuple[str, ...]:
    """Return the unread servers from which transactions may still reach a server, in order.

    A stopped channel counts as well, because an operator may start it.
    """
    reached = {name} | graph.upstream_of(name, stopped_too=True)
    found = {address_of(channel) for end, channel in outside_channels(graph) if end in reached}
    for end in reached:
        found.update(_unread_members(servers[end], graph))
    return tuple(sorted(found))


def unevaluated_kind(server: ServerSnapshot) -> str | None:
    """Return the kind of a server if this version does not evaluate that kind; else None."""
    if is_galera(server):
        return "a Galera node"
    if is_aurora_reader(server):
        return AN_AURORA_READER
    return row_of(server.vendor).unevaluated or None


def is_aurora_reader(server: ServerSnapshot) -> bool:
    """Return whether a server shows that it reads the volume of another one."""
    settings = dict(server.settings or ())
    return INNODB_READ_ONLY in settings and is_reader_of_volume(server.vendor, settings)


def _unread_members(server: ServerSnapshot, graph: Graph) -> Iterator[str]:
    """Yield the members that may deliver to a server; of any group if its settings are unread."""
    name = group_name_of(server)
    if is_galera(server):
        yield "the other nodes of the Galera cluster"
    for each in graph.memberships:
        may_be_member = not name and server.settings is None
        if may_be_member or (each.name == name.lower() and not each.is_known):
            yield f"the other members of the group {each.name}"

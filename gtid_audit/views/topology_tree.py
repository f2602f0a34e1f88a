"""Who replicates from whom, as a tree with the state of each server and channel. Pure.

How it works
------------
A replica is below its source. Roots are, in this order: replication groups, with their members
below them; servers that replicate from no other one; sources outside the cluster; and of a ring
that no such server leads into, its first server by name. Each server's replicas are shown once, at
its first place. Where it is named again (a ring, a second source), the line says `above`.

    db1                          db1  H1                  group 5f2e…
    ├─▶ db2                      └─▶ db2                  ├── db1  ONLINE PRIMARY
    │   └─✗▶ db4  stopped            └─▶ db1  above       │   └─▶ dr
    └─▶ db3                                               └── db2  RECOVERING

A source with many replicas shows those with a state or a replica of their own, and counts the rest.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from topology.facts.cluster_readings import readings_of
from topology.facts.graph import Edge, Graph
from topology.facts.memberships import Membership
from topology.facts.unseen import address_of, outside_channels
from topology.policy import Policy
from topology.readings.group_view import GROUP_CHANNELS
from topology.readings.snapshot import ChannelSnapshot, ClusterSnapshot, ServerSnapshot, ThreadState
from topology.readings.vendors import Vendor

LIKE_MAX: Final = 6  # replicas of one source that run, and have nothing to report


_PLAIN_VENDORS: Final = (Vendor.MYSQL, Vendor.PERCONA)  # not worth a word on each line


class TreeLink(Enum):
    """How a line is linked to the line above it."""

    ROOT = ""
    FLOWS = "─▶ "
    BROKEN = "─✗▶ "
    MEMBER = "── "


@dataclass(frozen=True, slots=True)
class TreeLine:
    """One line: its indentation, its link, a server, and its state."""

    indent: str
    link: TreeLink
    name: str
    state: tuple[str, ...] = ()


def tree_of(
    snapshot: ClusterSnapshot, found: Mapping[str, Sequence[str]] | None = None
) -> tuple[TreeLine, ...]:
    """Return the topology of the last reading; `found` are the codes of findings, by server."""
    return tuple(_Tree(snapshot, found or {}).lines())


@dataclass(frozen=True, slots=True)
class _Child:
    """A server below another one, or a member below its group."""

    name: str
    link: TreeLink
    remarks: tuple[str, ...] = ()


class _Tree:
    def __init__(self, snapshot: ClusterSnapshot, found: Mapping[str, Sequence[str]]) -> None:
        self._servers = {each.name: each for each in snapshot.last}
        self._graph: Graph = readings_of(snapshot, Policy()).graph
        self._found = found
        self._below: dict[str, list[_Child]] = {}
        self._above: set[str] = set()
        for edge in self._graph.edges:
            if edge.channel.name not in GROUP_CHANNELS:
                self._add(edge.source, edge)
        self._outside: dict[str, list[_Child]] = {}
        for name, channel in outside_channels(self._graph):
            source = address_of(channel)
            self._outside.setdefault(source, []).append(_child(Edge(source, name, channel)))
        self._members = {name for each in self._graph.memberships for name in each.configured}
        self._shown: set[str] = set()

    def _add(self, source: str, edge: Edge) -> None:
        self._below.setdefault(source, []).append(_child(edge))
        self._above.add(edge.replica)

    def lines(self) -> Iterator[TreeLine]:
        """Yield each root with what is below it."""
        for group in self._graph.memberships:
            yield from self._group(group)
        outside = {child.name for children in self._outside.values() for child in children}
        for name in self._servers:
            if name not in self._above | self._members | outside:
                yield from self._server(name, "", "", TreeLink.ROOT)
        for source, children in sorted(self._outside.items()):
            yield TreeLine("", TreeLink.ROOT, source, ("outside this cluster",))
            yield from self._children(children, "")
        for name in self._servers:
            if name not in self._shown:
                yield from self._server(name, "", "", TreeLink.ROOT)

    def _group(self, group: Membership) -> Iterator[TreeLine]:
        doubt = (f"its members are not known: {group.doubt}",) if group.doubt else ()
        yield TreeLine("", TreeLink.ROOT, f"group {group.name}", doubt)
        members = [_Child(name, TreeLink.MEMBER) for name in group.configured]
        absent = [
            _Child(each.address, TreeLink.MEMBER, (*_words(each.state, each.role), "not read"))
            for each in group.absent
        ]
        yield from self._children([*members, *absent], "")

    def _children(self, children: Sequence[_Child], inside: str) -> Iterator[TreeLine]:
        shown, like = self._shortened(children)
        for number, child in enumerate(shown):
            is_last = number == len(shown) - 1 and not like
            indent = f"{inside}{'└' if is_last else '├'}"
            below = f"{inside}{' ' if is_last else '│'}   "
            yield from self._server(child.name, indent, below, child.link, child.remarks)
        if like:
            names = f"{like:,} more, running"
            yield TreeLine(f"{inside}└", TreeLink.FLOWS, names)

    def _shortened(self, children: Sequence[_Child]) -> tuple[list[_Child], int]:
        """Return the children to show, and the number of the others, which are all alike."""
        alike = [each for each in children if self._is_plain(each)]
        left_out = {id(each) for each in alike[LIKE_MAX:]}
        if len(left_out) == 1:
            left_out = set()  # its own line is as short as the one that counts it
        self._shown |= {each.name for each in children if id(each) in left_out}
        return [each for each in children if id(each) not in left_out], len(left_out)

    def _is_plain(self, child: _Child) -> bool:
        if child.link is not TreeLink.FLOWS or child.remarks or self._below.get(child.name):
            return False
        return not self._state_of(child.name)

    def _server(
        self, name: str, indent: str, below: str, link: TreeLink, remarks: tuple[str, ...] = ()
    ) -> Iterator[TreeLine]:
        children = self._below.get(name, [])
        if name in self._shown:
            again = ("above",) if children else ()
            yield TreeLine(indent, link, name, (*remarks, *again))
            return
        self._shown.add(name)
        is_alone = link is TreeLink.ROOT and not children
        alone = self._alone(name) if is_alone else ()
        state = (*self._vendor(name), *self._state_of(name), *remarks, *alone)
        yield TreeLine(indent, link, name, state)
        yield from self._children(children, below)

    def _state_of(self, name: str) -> tuple[str, ...]:
        server = self._servers.get(name)
        if server is None:
            return ()
        codes = (" ".join(self._found[name]),) if self._found.get(name) else ()
        unread = ("not read",) if server.gtid_executed is None else ()
        return (*self._membership(server), *codes, *unread)

    def _vendor(self, name: str) -> tuple[str, ...]:
        """Return the service that runs a server, or another kind of server."""
        vendor = self._servers[name].vendor if name in self._servers else None
        return () if vendor is None or vendor in _PLAIN_VENDORS else (vendor.value,)

    def _membership(self, server: ServerSnapshot) -> tuple[str, ...]:
        if server.group is not None:
            return _words(server.group.member_state, server.group.member_role)
        return ("not a member now",) if server.name in self._members else ()

    def _alone(self, name: str) -> tuple[str, ...]:
        server = self._servers[name]
        if server.channels is None:
            return () if server.gtid_executed is None else ("channels not read",)
        return ("no channels",)


def _words(state: str, role: str) -> tuple[str, ...]:
    return (f"{state} {role}".strip(),)


def _child(edge: Edge) -> _Child:
    channel = edge.channel
    flows = channel.receiver is ThreadState.RUNNING and channel.applier is ThreadState.RUNNING
    return _Child(edge.replica, TreeLink.FLOWS if flows else TreeLink.BROKEN, _remarks(channel))


def _remarks(channel: ChannelSnapshot) -> tuple[str, ...]:
    said = [f"channel {channel.name}"] if channel.name else []
    if channel.receiver is not ThreadState.RUNNING:
        said.append("receiver " + _thread(channel.receiver, failed=bool(channel.receiver_errno)))
    if channel.applier is not ThreadState.RUNNING:
        failed = bool(channel.applier_errno or channel.applier_error)
        said.append("applier " + _thread(channel.applier, failed=failed))
    if not channel.auto_position:
        said.append("auto-position off")
    if channel.lag_seconds is not None and channel.lag_seconds > 0:
        said.append(f"{channel.lag_seconds:,} s behind")
    return tuple(said)


def _thread(state: ThreadState, *, failed: bool) -> str:
    if state is ThreadState.CONNECTING:
        return "connecting"
    return "stopped by an error" if failed else "stopped"

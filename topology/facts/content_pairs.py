"""Which two servers of a cluster are compared with each other, by the contents of their logs.

    a ──▶ b      two servers with a channel between them; members of a group: each with the next
    a     o      servers of two parts that no channel links
    a ──▶ r ──▶ b, and r does not log what it receives: a and b as well
    a ──▶ r ──▶ b, and r does not have yet what a and b have: made by hand on one of them (H7)

The second and the third are for a former source that returns with other transactions under GTIDs
that the servers in use have from it. Its sets allow it to join, so only the contents show that
(E4).

How it works
------------
If two servers have other contents under a GTID, any row of compared pairs between them has a pair
that differs in it, as long as each server of the row has the GTID in its logs. So not every pair is
compared. `_Shown` has, of each two servers, the GTIDs for which there is such a row. It begins with
the channels. As long as two servers have more in common than that, the pair with the most is
compared too.

    logs        a: A:1-9    b: A:1-9    o: A:5-9 (its first logs are purged)    a ──▶ b
    a, o        A:5-9 is in no row yet: compared; b and o need not be, because a has A:5-9

What two servers with a channel between them purged is not looked for elsewhere: a source that
keeps its logs for a short time is usual.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Final
from uuid import UUID

from gtid import GtidSet
from topology.facts.graph import Graph, build_graph
from topology.facts.islands import islands_of
from topology.facts.memberships import uuid_of_group
from topology.facts.unlogged import logs_received
from topology.readings.one_server import same_servers
from topology.readings.snapshot import ClusterSnapshot, ReadServer

# With more servers, each part is compared with the largest one only: rows of pairs take the cube.
SERVERS_SEARCHED_MAX: Final = 16
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


def other_pairs(snapshot: ClusterSnapshot) -> dict[tuple[str, str], str | None]:
    """Return the pairs that are compared besides `linked_pairs`; of two servers there are none.

    The pairs are in order of name. The value is the server that would join the other one, or None
    if both are of one part.
    """
    if len(snapshot.last) == _TWO:
        return {}
    parts = _Parts.of(snapshot)
    last = snapshot.last_read
    logs = {
        name: server.logged if _sends(last[name]) else GtidSet()
        for name, server in snapshot.first_read.items()
        if name in last
    }
    hiding = {name for name, server in last.items() if not _logs_received(server)}
    if len(logs) > SERVERS_SEARCHED_MAX:
        return {pair: parts.joining(pair) for pair in _to_the_largest(parts, logs)}
    shown = _Shown.nothing(logs)
    for pair in linked_pairs(snapshot):
        if {*pair} <= logs.keys():
            shown.add(*pair, _compared(snapshot, pair, hiding))
    found: dict[tuple[str, str], str | None] = {}
    while best := _most_hidden(shown, logs, parts.sources):
        found[best] = parts.joining(best)
        shown.add(*best, logs[best[0]] & logs[best[1]])
    return found


def _most_hidden(
    shown: "_Shown", logs: Mapping[str, GtidSet], sources: AbstractSet[str]
) -> tuple[str, str] | None:
    """Return the two servers with the most GTIDs that no row of pairs shows; None if none is."""
    counts = {
        (one, other): (logs[one] & logs[other] - shown.between(one, other)).gtid_count
        for one, other in combinations(sorted(logs), 2)
    }
    hidden = (pair for pair, count in counts.items() if count)
    return max(hidden, key=lambda pair: (counts[pair], len(sources & {*pair})), default=None)


@dataclass(slots=True)
class _Shown:
    """Of each two servers, the GTIDs for which a row of compared pairs leads to the other."""

    by_pair: dict[tuple[str, str], GtidSet]

    @classmethod
    def nothing(cls, names: Collection[str]) -> "_Shown":
        return cls({(one, other): GtidSet() for one in names for other in names if one != other})

    def between(self, one: str, other: str) -> GtidSet:
        return self.by_pair[one, other]

    def add(self, one: str, other: str, gtids: GtidSet) -> None:
        """Add a compared pair, and the rows that lead over it."""
        names = {name for name, _ in self.by_pair}
        to_one = {name: self.by_pair.get((name, one), gtids) & gtids for name in names}
        to_other = {name: self.by_pair.get((name, other), gtids) & gtids for name in names}
        for left, right in self.by_pair:
            over = (to_one[left] & to_other[right]) | (to_other[left] & to_one[right])
            self.by_pair[left, right] |= over


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of a cluster that no channel links, in order of size."""

    order: tuple[tuple[str, ...], ...]  # the largest last: by servers, then by transactions
    sources: frozenset[str]  # servers without a source in their part; of a ring, one

    @classmethod
    def of(cls, snapshot: ClusterSnapshot) -> "_Parts":
        graph, servers = build_graph(snapshot), snapshot.last_read
        same = same_servers(snapshot)
        islands = islands_of(snapshot, graph, same=same, torn=frozenset())
        order = sorted(islands, key=lambda part: (len(part), _executed(servers, part)))
        sources = frozenset(name for part in islands for name in _entrances(part, graph))
        return cls(tuple(order), sources)

    def joining(self, pair: tuple[str, str]) -> str | None:
        """Return the server of the smaller part; None if both are of one."""
        rank = {name: number for number, part in enumerate(self.order) for name in part}
        one, other = pair
        return None if rank[one] == rank[other] else min(pair, key=rank.__getitem__)


def _to_the_largest(parts: _Parts, logs: Mapping[str, GtidSet]) -> Iterator[tuple[str, str]]:
    """Yield each server that would join the largest part, and the one of it with most in common."""
    *others, largest = parts.order
    for name in (each for part in others for each in part if each in parts.sources & logs.keys()):
        common = {
            other: (logs[name] & logs[other]).gtid_count for other in largest if other in logs
        }
        best = max(common, key=lambda each: (common[each], each in parts.sources), default=None)
        if best is not None and common[best]:
            yield min(name, best), max(name, best)


def _compared(
    snapshot: ClusterSnapshot, pair: tuple[str, str], hiding: AbstractSet[str]
) -> GtidSet:
    """Return what two servers with a channel compare; what they purged counts."""
    servers = snapshot.last_read
    one, other = pair
    both = servers[one].gtid_executed & servers[other].gtid_executed
    for name in hiding & {*pair}:
        both &= servers[name].logged if _sends(servers[name]) else GtidSet()
    return both


def _sends(server: ReadServer) -> bool:
    """Return whether a server can send by GTID what its binary logs have."""
    return bool(server.binary_logs) and server.setting("gtid_mode") in (None, "ON")


def _logs_received(server: ReadServer) -> bool:
    return bool(server.binary_logs) and logs_received(server)


def _entrances(part: tuple[str, ...], graph: Graph) -> tuple[str, ...]:
    without = tuple(name for name in part if not graph.upstream_of(name, stopped_too=True))
    return without or part[:1]


def _executed(servers: Mapping[str, ReadServer], part: tuple[str, ...]) -> int:
    found = (servers[name].gtid_executed for name in part if name in servers)
    return GtidSet.union_of(found).gtid_count

"""Selects which servers are compared: each replica with its sources, and what no channel connects.

1. A channel makes a pair: its source and its replica, if both were read. In a dual-primary pair
   each is the other's source; the two are one pair, in the order of the operands.
2. Servers that no channel connects, such as two replicas of a source that is not an operand, are
   compared with the first server of the first group.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class ConnectedServer:
    """A server that was read: its name, its UUID, and those of the sources of its channels."""

    name: str
    server_uuid: UUID
    source_uuids: tuple[UUID, ...] = ()
    unknown_sources: tuple[str, ...] = ()  # host:port of channels that have never been connected


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """Two servers to compare, by name."""

    source: str
    replica: str
    has_channel: bool = True
    is_mutual: bool = False  # each is a source of the other
    # Whether a transaction of the replica's own can reach the source: over channels, or over
    # servers that were not read.
    may_return: bool = True
    # Whether the source has sources itself: what the replica has from there may reach it later.
    source_receives: bool = False


def pairs_of(servers: Sequence[ConnectedServer]) -> tuple[ComparedPair, ...]:
    """Return the pairs to compare, in the order of the servers."""
    by_uuid = {each.server_uuid: each for each in servers}
    order = {each.name: at for at, each in enumerate(servers)}
    pairs: list[ComparedPair] = []
    for replica in servers:
        for uuid in replica.source_uuids:
            source = by_uuid.get(uuid)
            if source is None or source is replica:
                continue
            is_mutual = replica.server_uuid in source.source_uuids
            if not is_mutual or order[source.name] < order[replica.name]:
                pairs.append(
                    ComparedPair(
                        source.name,
                        replica.name,
                        is_mutual=is_mutual,
                        may_return=_may_receive(source, replica, by_uuid),
                        source_receives=bool(source.source_uuids or source.unknown_sources),
                    )
                )
    groups = _groups([each.name for each in servers], pairs)
    pairs += [ComparedPair(groups[0][0], group[0], has_channel=False) for group in groups[1:]]
    return tuple(dict.fromkeys(pairs))


def _may_receive(
    server: ConnectedServer, origin: ConnectedServer, by_uuid: Mapping[UUID, ConnectedServer]
) -> bool:
    """Return whether channels lead from `origin` to a server, or from a server that is not read."""
    seen: set[UUID] = set()
    left = [server]
    while left:
        one = left.pop()
        if one.unknown_sources:
            return True
        for uuid in one.source_uuids:
            source = by_uuid.get(uuid)
            if source is None or source is origin:
                return True
            if uuid not in seen:
                seen.add(uuid)
                left.append(source)
    return False


def _groups(names: Sequence[str], pairs: Iterable[ComparedPair]) -> list[list[str]]:
    """Return the servers that pairs connect, as groups; the root of each group comes first."""
    group_of = {name: [name] for name in names}
    for pair in pairs:
        one, other = group_of[pair.source], group_of[pair.replica]
        if one is not other:
            one += other
            for name in other:
                group_of[name] = one
    order = {name: at for at, name in enumerate(names)}
    unique = {id(group): group for group in group_of.values()}
    replicas = {pair.replica for pair in pairs if not pair.is_mutual}
    for group in unique.values():
        group.sort(key=lambda name: (name in replicas, order[name]))
    return sorted(unique.values(), key=lambda group: min(order[name] for name in group))

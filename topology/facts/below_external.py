"""What servers below sources that the policy declares external do not have: pure.

How it works
------------
The policy declares that a source is not read. It does not declare that all of it arrives, nor that
no client writes below it:

    a ──▶ (external) ──▶ b          a, b and c are audited, and what they have can be compared:
              └────────▶ c          not what the external source has, nor how it delivers it

1. **passed**: b has later GTIDs of the same origin in both readings. The source sent them without
   these; one that applies out of order may still send them.
2. **stands**: of an origin of which b has some, nothing came between the readings, and b does not
   have what another server had at first. The external source may apply late (SOURCE_DELAY), or not
   at all. Of a server that is below the same source, its own transactions count although b has none
   of them: the external source may not have them either.
3. **own**: b committed it, and a does not have it. b has what a committed, so it follows a, which
   has no source and nothing of b: nothing delivers that to a. If a has some of b's, it received
   that once: it was detached (joining.py).

A stopped thread of b has a finding of its own. All of it is `likely`, and a warning.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from gtid import GtidSet
from topology.facts.graph import Graph
from topology.facts.unseen import address_of, outside_channels
from topology.policy import Policy
from topology.readings.read_once import is_read_once
from topology.readings.snapshot import ChannelSnapshot, ReadServer, ReadTwice, ThreadState


class Sign(Enum):
    """What shows that transactions may never arrive."""

    PASSED = "missing, and later ones are there"
    STANDS = "missing, and nothing of the same origin arrived between the readings"
    OWN = "committed here"


@dataclass(frozen=True, slots=True)
class BelowExternal:
    """Transactions that one server has, and another one does not, with an external source between.

    `server` has the channel; `holder` has what is missing on it. Of its own work, `holder` is the
    server that does not have it.
    """

    server: str
    channel: ChannelSnapshot
    gtids: GtidSet
    holder: str
    sign: Sign


def missing_below_external(
    graph: Graph, policy: Policy, fully_read: Mapping[str, ReadTwice]
) -> Iterator[BelowExternal]:
    """Yield what is missing on servers whose sources are declared external, and none was read."""
    below = {
        name: channel
        for name, channel in outside_channels(graph)
        if address_of(channel) in policy.external_sources
        and name in fully_read
        and not graph.into(name)
    }
    known = _Known(graph, policy, fully_read, below)
    for name in below:
        yield from _of_one(name, known)


@dataclass(frozen=True, slots=True)
class _Known:
    graph: Graph
    policy: Policy
    fully_read: Mapping[str, ReadTwice]
    below: Mapping[str, ChannelSnapshot]  # the channel from an external source, by server


def _of_one(name: str, known: _Known) -> Iterator[BelowExternal]:
    graph, policy, fully_read, below = known.graph, known.policy, known.fully_read, known.below
    channel = below[name]
    first, last = fully_read[name].first, fully_read[name].last
    gaps = _gaps(first.gtid_executed) & _gaps(last.gtid_executed)
    gaps -= last.gtid_retrieved | last.gtid_owned
    gaps = gaps.without_uuid(last.server_uuid)
    others = sorted(fully_read)
    passed = next(
        ((found, other) for other in others if (found := gaps & _at_first(other, fully_read))), None
    )
    if passed is not None:
        yield BelowExternal(name, channel, *passed, Sign.PASSED)
    is_running = ThreadState.STOPPED not in (channel.receiver, channel.applier)
    is_running = is_running and not is_read_once(last)  # else nothing is known about progress
    apart = [each for each in others if name not in graph.upstream_of(each, stopped_too=True)]
    for other in apart if is_running else ():
        is_beside = other in below and address_of(below[other]) == address_of(channel)
        beside = fully_read[other].last.server_uuid if is_beside else None
        left = _allowed(_at_first(other, fully_read) - _held(last) - gaps, policy)
        standing = GtidSet.union_of(
            left.from_uuid(uuid)
            for uuid in left.uuids
            if uuid != last.server_uuid
            and not _came(uuid, first, last)
            and (uuid == beside or last.gtid_executed.from_uuid(uuid))
        )
        if standing:
            yield BelowExternal(name, channel, standing, other, Sign.STANDS)
            break
    own = _allowed(first.gtid_executed.from_uuid(last.server_uuid), policy)
    for other in others:
        there = fully_read[other].last
        follows = bool(last.gtid_executed.from_uuid(there.server_uuid))
        fed = bool((there.gtid_executed | there.gtid_owned).from_uuid(last.server_uuid))
        if own and follows and not fed and not there.channels:
            yield BelowExternal(name, channel, own, other, Sign.OWN)
            break


def _at_first(name: str, fully_read: Mapping[str, ReadTwice]) -> GtidSet:
    return fully_read[name].first.gtid_executed


def _held(server: ReadServer) -> GtidSet:
    return server.gtid_executed | server.gtid_retrieved | server.gtid_owned


def _came(uuid: UUID, first: ReadServer, last: ReadServer) -> bool:
    """Return whether anything of an origin arrived between the readings."""
    return _held(first).from_uuid(uuid) != _held(last).from_uuid(uuid)


def _allowed(gtids: GtidSet, policy: Policy) -> GtidSet:
    for uuid in policy.allowed_uuids:
        gtids = gtids.without_uuid(uuid)
    return gtids


def _gaps(executed: GtidSet) -> GtidSet:
    return executed.filled() - executed

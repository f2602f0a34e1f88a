"""The facts of one cluster: the differences of every edge, losses, and parts without a channel.

1. edge_facts.py compares the two ends of each channel. `LostFacts` compares every two servers,
   because a server without a channel can also hold what another one lost.
2. Facts are algebra on the readings (cluster_readings.py). The rules decide what they mean.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from gtid import GtidSet
from topology.facts.below_external import Sign, missing_below_external
from topology.facts.cluster_readings import ClusterReadings, readings_of
from topology.facts.edge_facts import EdgeFacts, edge_facts
from topology.facts.group_facts import GroupFacts, group_facts, severe_group_differences
from topology.facts.islands import islands_of
from topology.facts.kept_inputs import inputs_of
from topology.facts.kept_results import NOTHING_KEPT, KeptResults
from topology.facts.last_result import keep_last_result
from topology.facts.memberships import group_uuids
from topology.facts.progress import perhaps_skipped, stalls_of
from topology.facts.since_reading import undecided
from topology.policy import Policy
from topology.readings.one_server import same_servers
from topology.readings.snapshot import ChannelSnapshot, ClusterSnapshot, ReadServer


@dataclass(frozen=True, slots=True)
class LostFacts:
    """Transactions that a server once committed and no longer has, and another server holds."""

    origin: str
    holder: str
    lost: GtidSet  # the origin neither executed nor owned it, in a reading after the holder's
    leading: GtidSet  # owned by the origin now: being committed
    # Of an origin that was read once: lost, or committed since (topology/facts/since_reading.py).
    undecided: GtidSet = GtidSet()  # noqa: RUF009 - immutable


@dataclass(frozen=True, slots=True)
class ClusterFacts(ClusterReadings):
    """All facts of one cluster, and the readings from which they are computed."""

    edges: tuple[EdgeFacts, ...]
    lost: tuple[LostFacts, ...]
    islands: tuple[tuple[str, ...], ...]  # groups of servers; no channel links two groups
    same: tuple[tuple[str, str], ...]  # names of one server: a configuration error
    groups: tuple[GroupFacts, ...] = ()  # replication groups of which the members are known

    def channels(self) -> Iterator[tuple[str | None, str, ChannelSnapshot]]:
        """Yield every channel with its source, if that is a server of this cluster, and replica."""
        for edge in self.graph.edges:
            yield edge.source, edge.replica, edge.channel
        for name, channel in self.graph.outside:
            yield None, name, channel

    def edges_into(self, replica: str) -> tuple[EdgeFacts, ...]:
        """Return the compared edges to a replica, in the order of `edges`."""
        return _edges_by_replica(self).get(replica, ())


@keep_last_result
def gather_facts(
    snapshot: ClusterSnapshot, policy: Policy, kept: KeptResults = NOTHING_KEPT
) -> ClusterFacts:
    """Compute the facts of one cluster; `kept` has those of an earlier version of it."""
    readings = readings_of(snapshot, policy, kept)
    inputs = {} if kept is NOTHING_KEPT else inputs_of(readings, kept)
    same = same_servers(snapshot) if readings.twins else ()
    torn = {name for name, _ in readings.torn}
    return ClusterFacts(
        snapshot=snapshot,
        policy=policy,
        graph=readings.graph,
        first=readings.first,
        last=readings.last,
        fully_read=readings.fully_read,
        twins=readings.twins,
        torn=readings.torn,
        appliers=readings.appliers,
        edges=tuple(
            kept.get(
                ("edge", edge.source, edge.replica, edge.channel.name),
                (inputs.get(edge.replica),),
                partial(edge_facts, edge, readings),
            )
            for edge in readings.graph.edges
            if {edge.source, edge.replica} <= readings.fully_read.keys()
        ),
        lost=tuple(_lost(readings, kept)),
        islands=islands_of(snapshot, readings.graph, same=same, torn=torn),
        same=same,
        groups=group_facts(readings),
    )


@keep_last_result
def _edges_by_replica(facts: ClusterFacts) -> dict[str, tuple[EdgeFacts, ...]]:
    found: dict[str, list[EdgeFacts]] = {}
    for edge in facts.edges:
        found.setdefault(edge.replica, []).append(edge)
    return {name: tuple(each) for name, each in found.items()}


def severe_differences(facts: ClusterFacts) -> tuple[object, ...]:
    """Return the differences that are severe and cheap to read again.

    Backlogs need no confirmation. A loss, an errant transaction, a bypass or a purge is reported
    only when another reading shows the same. So is what an external source does not pass on. And
    what an applier with nothing left to do may have skipped: the set was read before its state.
    """
    edges = (
        (edge.source, edge.replica, edge.channel.name, part)
        for edge in facts.edges
        for part in _severe_parts(edge)
        if part
    )
    stalls = stalls_of(facts.appliers, facts.policy)
    below = missing_below_external(facts.graph, facts.policy, facts.fully_read)
    stands = (each for each in below if each.sign is Sign.STANDS)
    groups = severe_group_differences(facts.groups)
    skipped = perhaps_skipped(facts.appliers, facts.last)
    return (*facts.lost, *edges, *stalls, *stands, *skipped, *groups)


def _severe_parts(edge: EdgeFacts) -> tuple[GtidSet, ...]:
    return edge.errant, edge.bypassed, edge.purged, edge.passed, edge.ignored


def _lost(readings: ClusterReadings, kept: KeptResults) -> Iterator[LostFacts]:
    """Yield what each server has lost or is committing, by another server that holds it."""
    groups = group_uuids(readings.last.values())
    holders: dict[UUID, list[str]] = {}  # by UUID, the servers that hold any of its transactions
    for name, each in readings.fully_read.items():
        first = each.first
        uuids = kept.get(("uuids", name), (first,), partial(_uuids_held, first))
        for uuid in uuids:
            holders.setdefault(uuid, []).append(name)
    for name, origin in readings.fully_read.items():
        if origin.last.server_uuid in groups:
            continue  # a group's transactions belong to no server
        for other in holders.get(origin.last.server_uuid, ()):
            if other == name:
                continue
            holder = readings.fully_read[other].first
            found = kept.get(
                ("lost", name, other),
                (origin.last, holder),
                partial(_lost_facts, origin=origin.last, holder=holder),
            )
            if found is not None:
                yield found


def _lost_facts(*, origin: ReadServer, holder: ReadServer) -> LostFacts | None:
    beyond = _held(holder).from_uuid(origin.server_uuid) - origin.gtid_executed
    if not beyond:
        return None
    # gtid_owned was read before gtid_executed, so a commit in between is in at least one of them.
    leading = beyond & origin.gtid_owned
    open_yet = undecided(origin, beyond - leading)
    return LostFacts(
        origin=origin.name,
        holder=holder.name,
        lost=beyond - leading - open_yet,
        leading=leading,
        undecided=open_yet,
    )


def _held(server: ReadServer) -> GtidSet:
    return server.gtid_executed | server.gtid_retrieved  # a relay log holds them as well


def _uuids_held(server: ReadServer) -> tuple[UUID, ...]:
    return _held(server).uuids

"""What a replica is missing compared with its source, and what it has in addition.

How it works
------------
Every server is read twice, and all first readings end before any last reading begins
(adapters/collect.py). For an edge source → replica:

    missing = what the source had in its first reading - what the replica has in its last one
    extra   = what the replica had in its first reading - what the source has in its last one

gtid_executed only grows (torn_readings.py excludes a server that was reset or restarted between the
readings). So each difference can only shrink with time, and the order of reading cannot create one.

`missing` is divided by the question where each GTID is now. Each step takes its part from what the
previous steps left, so the parts are disjoint:

    dropped_same_server_id   it carries the replica's server_id: the receiver drops it
    applying                 a session or worker of the replica owns it
    passed                   received, and the applier has left it behind (applier_facts.py)
    queued                   any other GTID in Retrieved_Gtid_Set
    purged                   not received, and the source can no longer send it
    ignored                  not received: IGNORE_SERVER_IDS of the channel drops it
    bypassed                 not received, and the receiver's position is after it
    expected                 the rest: the receiver will fetch it

A transaction that arrived only in part counts as not received (half_received.py). `applying` and
`queued` are split at the replica's highest GTID of the TSID: above it is the normal backlog, below
it a gap. Example: the source has A:1-100, the replica A:1-40:60-70, received A:1-90, owns A:41:

    applying_below A:41    queued_below A:42-59    queued_above A:71-90    expected A:91-100

From `extra`, the module removes what another channel of the replica explains, and what is still on
its way to the source (errant.py). It also removes what the policy allows. The rest is `errant`.

A server's own UUID is handled separately. GTIDs of the replica's UUID are not in `missing`, because
its receiver drops them. GTIDs of the source's UUID that only a replica has are not errant: the
source is still committing them, or has lost them. `LostFacts` (cluster_facts.py) compares every two
servers, because a server without a channel can also hold them.
"""

from dataclasses import dataclass

from gtid import GtidSet
from topology.facts.applier_facts import permits_skips
from topology.facts.channel_places import bypassed_by, searched, still_purged
from topology.facts.cluster_readings import ClusterReadings
from topology.facts.errant import being_applied, errant_of, held_by
from topology.facts.former_ids import with_own_server_id
from topology.facts.former_logs import sign_of_former_log, sign_of_reset_source, waits_in_former_log
from topology.facts.graph import Edge, Graph
from topology.facts.half_received import half_received
from topology.facts.ignored_servers import ignored_by
from topology.facts.other_versions import with_other_version
from topology.facts.progress import behind_appliers, same_server_id
from topology.facts.unlogged import received_unlogged, without_event
from topology.facts.unseen import unseen_sources
from topology.readings.snapshot import (
    ChannelSnapshot,
    ReadServer,
    ReadTwice,
    ThreadState,
)


@dataclass(frozen=True, slots=True)
class EdgeFacts:
    """What is missing on a replica compared with its source, and what the replica has in addition.

    Invariant: applying_below, applying_above, queued_below, queued_above, passed, purged, bypassed,
    expected, ignored and dropped_same_server_id are disjoint. Together with `own_lost` (what the
    replica itself once committed) they are `missing`, except what this channel ignores and another
    channel delivers.
    """

    edge: Edge
    applying_below: GtidSet  # a thread or worker of the replica owns it; below its highest GTID
    applying_above: GtidSet  # owned, above the highest GTID: the normal next transaction
    queued_below: GtidSet  # in the relay log, below the highest applied GTID: gaps
    queued_above: GtidSet  # in the relay log, above the highest applied GTID: backlog
    passed: GtidSet  # received, and passed by the applier (applier_facts.py, or the source's log)
    passed_is_proved: bool
    behind: GtidSet  # before the channel's position in the source's log; in passed or bypassed
    ahead: GtidSet  # after that position: still to be sent
    purged: GtidSet  # not received, and the source has purged it
    bypassed: GtidSet  # not received, and the receiver has gone past it
    bypass_is_proved: bool
    other_log: str  # evidence that the receiver's position is in a former log; "" if there is none
    expected: GtidSet  # not received, or not completely, and still to be sent
    dropped_same_server_id: GtidSet  # carries the replica's server_id: never applied
    ignored: GtidSet  # not received: the receiver drops it because of IGNORE_SERVER_IDS
    errant: GtidSet  # extra on the replica, without an explanation
    allowed: GtidSet  # extra on the replica, and permitted by the policy
    way_back_is_stopped: bool  # channels would deliver all of `errant`, but an operator stopped one
    # What may still deliver `errant` to the source: servers outside, and those whose set is unread.
    unseen: tuple[str, ...] = ()
    own_id: GtidSet = GtidSet()  # noqa: RUF009 - immutable. Upstream, with the replica's server_id

    @property
    def source(self) -> str:
        """Return the name of the source."""
        return self.edge.source

    @property
    def replica(self) -> str:
        """Return the name of the replica."""
        return self.edge.replica

    @property
    def channel(self) -> ChannelSnapshot:
        """Return the replica's channel, as read last."""
        return self.edge.channel


def edge_facts(edge: Edge, readings: ClusterReadings) -> EdgeFacts:
    """Compare the two ends of an edge. Both were fully read."""
    source, replica = readings.fully_read[edge.source], readings.fully_read[edge.replica]
    graph, last = readings.graph, readings.last
    executed, retrieved = replica.last.gtid_executed, replica.last.gtid_retrieved
    behind, passed_is_proved = behind_appliers(
        edge, graph=graph, first=readings.first, appliers=readings.appliers
    )
    before, ahead = searched(edge, source=source.last, replica=replica.first)
    if edge.channel.applier is ThreadState.STOPPED:
        behind -= ahead  # the source's log is better evidence than two equal positions
    applier = readings.appliers[edge.replica, edge.channel.name]
    overtaken = applier.overtaken | _still_committed(edge, source=source, replica=replica)
    begun = _begun(edge, readings) & (behind | overtaken)
    missing = _from_others((source.first.gtid_executed | begun) - executed, replica.last, graph)
    own_id = with_own_server_id(edge, missing, graph=graph, servers=last)
    dropped = missing & (same_server_id(replica.last, last) | own_id)
    dropped -= _purged(source) - retrieved  # it sends none of these
    missing -= dropped
    half = missing & half_received(replica.last, edge.channel, log_end=source.first.log_end)
    before -= half
    applying = missing & (replica.last.gtid_owned | being_applied(replica.last)) - half
    passed_is_proved = passed_is_proved and not (before & missing & retrieved) - behind
    passed = (missing & (behind | (before & retrieved))) - applying - half
    queued = (missing & retrieved) - applying - passed - half
    absent = (missing - retrieved - applying) | half
    purged = still_purged(absent & _purged(source), edge, replica.last)
    ignored, elsewhere = ignored_by(edge, absent - purged, graph=graph, last=last)
    absent -= ignored | elsewhere
    other_log = sign_of_former_log(edge, before=replica.first, source=source.last)
    reset = sign_of_reset_source(edge, before=replica.first, source=source.last)
    is_former, places = bool(reset), {"before": before, "ahead": ahead}
    bypassed, proved = bypassed_by(
        absent - purged, edge=edge, source=source.first, is_former=is_former, **places
    )
    if waits_in_former_log(edge, before=replica.first, source=source.last):
        bypassed = GtidSet()  # the next connection requests all that is missing
    bypassed |= without_event(absent - purged - bypassed, source.last)  # it never sends these
    extra, allowed = _extra(edge, readings, source=source.last, replica=replica)
    errant, way_back_is_stopped = errant_of(extra, edge, graph, last, readings.appliers)
    reach = executed.filled()
    facts = EdgeFacts(
        edge=edge,
        applying_below=applying & reach,
        applying_above=applying - reach,
        queued_below=queued & reach,
        queued_above=queued - reach,
        passed=passed,
        passed_is_proved=passed_is_proved,
        behind=before & (passed | bypassed),
        ahead=ahead,
        purged=purged,
        bypassed=bypassed,
        bypass_is_proved=proved and not other_log,
        other_log=other_log,
        expected=absent - purged - bypassed,
        dropped_same_server_id=dropped,
        ignored=ignored,
        errant=errant,
        allowed=allowed,
        way_back_is_stopped=way_back_is_stopped,
        unseen=_unseen(edge, readings) if errant else (),
        own_id=own_id,
    )
    assert not facts.errant & source.last.gtid_executed
    assert not (facts.bypassed | facts.passed) & executed
    return facts


def _begun(edge: Edge, readings: ClusterReadings) -> GtidSet:
    """Return what an applier may have passed although the source had not executed it at first.

    The log of the source already has what the source is still committing. A transaction that the
    source lost and will receive again was received from the source before.
    """
    source = readings.fully_read[edge.source]
    upstream = readings.graph.upstream_of(edge.source) - {edge.replica}
    received = held_by(upstream, readings.first) & edge.channel.gtid_retrieved
    return source.first.gtid_owned | source.last.gtid_executed | received


def _still_committed(edge: Edge, *, source: ReadTwice, replica: ReadTwice) -> GtidSet:
    """Return what a replica had received at first, and its source commits until the last reading.

    A source sends what is in its log, before gtid_executed has it: its own commit may wait, for a
    semi-synchronous replica or the disk. Only where an applier may skip it: else it is applied.
    """
    if not permits_skips(replica.last, edge.channel):
        return GtidSet()
    committing = source.last.gtid_owned - source.last.gtid_executed
    return committing & replica.first.gtid_retrieved


def _purged(source: ReadTwice) -> GtidSet:
    """Return what a source had purged when it was read first.

    A server that does not log a transaction adds it to gtid_purged at commit. The first reading may
    have coincided with that commit.
    """
    return source.first.gtid_purged | received_unlogged(source.first, source.last.gtid_purged)


def _from_others(missing: GtidSet, replica: ReadServer, graph: Graph) -> GtidSet:
    """Return the part of `missing` that a server did not commit itself.

    A server's own transactions never come back to it from a replica, because its receiver drops
    events with its own server_id. If they are missing, that is not a backlog: see LostFacts. A
    group may have any UUID as its name, also that of a replica below it (seen on 9.7.4): in that
    case other servers committed them.
    """
    if replica.server_uuid in graph.group_uuids:
        return missing
    return missing.without_uuid(replica.server_uuid)


def _extra(
    edge: Edge, readings: ClusterReadings, *, source: ReadServer, replica: ReadTwice
) -> tuple[GtidSet, GtidSet]:
    """Return the extra GTIDs that no other channel of the replica explains, and the allowed ones.

    The source of another channel is the server to which it was last connected, and the server at
    its address. A server that was cloned has another server_uuid until the receiver has
    reconnected.
    """
    last = readings.last
    extra = replica.first.gtid_executed - source.gtid_executed - source.gtid_owned
    if source.server_uuid not in readings.graph.group_uuids:
        extra = extra.without_uuid(source.server_uuid)  # these are a lead or a loss: LostFacts
    unlike = extra & with_other_version(edge, graph=readings.graph, servers=last)
    for channel in replica.last.channels or ():
        if channel.name == edge.channel.name:
            continue
        extra -= channel.gtid_retrieved
        sources = {
            other.source
            for other in readings.graph.into(edge.replica)
            if other.channel.name == channel.name
        }
        if channel.source_uuid is not None:
            extra = extra.without_uuid(channel.source_uuid)
            sources |= {
                each.name for each in last.values() if each.server_uuid == channel.source_uuid
            }
        for other in (last[name] for name in sorted(sources)):
            extra -= (other.gtid_executed or GtidSet()) | (other.gtid_owned or GtidSet())
            if edge.replica in readings.graph.upstream_of(other.name):
                extra = GtidSet()  # arrives there, or is missing on an edge of its own
    extra, allowed = extra | unlike, GtidSet()
    for uuid in sorted(readings.policy.allowed_uuids):
        allowed |= extra.from_uuid(uuid)
    return extra - allowed, allowed


def _unseen(edge: Edge, readings: ClusterReadings) -> tuple[str, ...]:
    """Return the servers that may deliver an errant set to a source and were not read."""
    graph, last = readings.graph, readings.last
    upstream = graph.upstream_of(edge.source, stopped_too=True)
    unread = (name for name in sorted(upstream) if last[name].gtid_executed is None)
    return (*unseen_sources(edge.source, graph=graph, servers=last), *unread)

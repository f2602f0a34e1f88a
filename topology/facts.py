"""Computes the differences between the GTID sets of a cluster, edge by edge: set algebra only.

How it works
------------
Every server is read twice, and all first readings end before any last reading begins
(adapters/collect.py). For an edge source → replica:

    missing = what the source had in its first reading - what the replica has in its last one
    extra   = what the replica had in its first reading - what the source has in its last one

gtid_executed only grows (tearing.py excludes a server that was reset or restarted between the
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
source is still committing them (`leading`), or has lost them (`lost`). `LostFacts` compares every
two servers, because a server without a channel can also hold them.
"""

from dataclasses import dataclass, replace

from gtid import GtidSet
from topology.applier_facts import permits_skips
from topology.channel_places import bypassed_by, searched
from topology.errant import being_applied, errant_of, held_by
from topology.former_ids import with_own_server_id
from topology.former_logs import sign_of_former_log, sign_of_reset_source, waits_in_former_log
from topology.graph import Edge, Graph, build_graph
from topology.half_received import half_received
from topology.ignored_servers import ignored_by
from topology.islands import islands_of, twins_of
from topology.latest import keep_latest
from topology.one_server import same_servers
from topology.other_versions import with_other_version
from topology.policy import Policy
from topology.progress import Appliers, appliers_of, behind_appliers, same_server_id, stalls_of
from topology.snapshot import ClusterSnapshot, ServerSnapshot, ThreadState
from topology.tearing import sign_of_tearing
from topology.unlogged import received_unlogged
from topology.unseen import group_peers, group_uuids, unseen_sources


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


@dataclass(frozen=True, slots=True)
class LostFacts:
    """Transactions that a server once committed and no longer has, and another server holds."""

    origin: str
    holder: str
    lost: GtidSet  # the origin neither executed nor owned it, in a reading after the holder's
    leading: GtidSet  # owned by the origin now: being committed


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """All facts of one cluster, and the readings from which they are computed."""

    snapshot: ClusterSnapshot
    policy: Policy
    graph: Graph
    first: dict[str, ServerSnapshot]
    last: dict[str, ServerSnapshot]
    fully_read: frozenset[str]  # both readings have the facts that every evaluation needs
    twins: tuple[tuple[str, ...], ...]  # servers that share a server_uuid
    torn: tuple[tuple[str, str], ...]  # (server, sign of a restart or reset between the readings)
    edges: tuple[EdgeFacts, ...]
    lost: tuple[LostFacts, ...]
    islands: tuple[tuple[str, ...], ...]  # groups of servers; no channel links two groups
    appliers: Appliers  # by replica and channel
    same: tuple[tuple[str, str], ...] = ()  # names of one server: a configuration error


@keep_latest
def gather_facts(snapshot: ClusterSnapshot, policy: Policy) -> ClusterFacts:
    """Compute the facts of one cluster."""
    first = {server.name: server for server in snapshot.first}
    last = {server.name: server for server in snapshot.last}
    graph = replace(build_graph(snapshot), peers=group_peers(last.values()))
    twins = twins_of(snapshot)
    twin_names = {name for group in twins for name in group}
    torn = tuple(
        (name, sign)
        for name in first
        if (sign := sign_of_tearing(first[name], last[name])) is not None
    )
    set_aside = twin_names | {name for name, _ in torn}
    fully_read = frozenset(
        name
        for name in first
        if first[name].is_fully_read and last[name].is_fully_read and name not in set_aside
    )
    groups = group_uuids(last.values())
    lost = tuple(
        facts
        for origin in sorted(fully_read)
        if last[origin].server_uuid not in groups  # a group's transactions belong to no server
        for holder in sorted(fully_read - {origin})
        if (facts := _lost_facts(origin=last[origin], holder=first[holder])) is not None
    )
    appliers = appliers_of(snapshot, fully_read=fully_read)
    edges = tuple(
        _edge_facts(edge, graph=graph, first=first, last=last, policy=policy, appliers=appliers)
        for edge in graph.edges
        if edge.source in fully_read and edge.replica in fully_read
    )
    same = same_servers(snapshot) if twins else ()
    return ClusterFacts(
        snapshot=snapshot,
        policy=policy,
        graph=graph,
        first=first,
        last=last,
        fully_read=fully_read,
        twins=twins,
        torn=torn,
        edges=edges,
        lost=lost,
        islands=islands_of(snapshot, graph, same=same, torn={name for name, _ in torn}),
        same=same,
        appliers=appliers,
    )


def severe_differences(facts: ClusterFacts) -> tuple[object, ...]:
    """Return the differences that are severe and cheap to read again.

    Backlogs need no confirmation. A loss, an errant transaction, a bypass or a purge is reported
    only when another reading shows the same.
    """
    edges = (
        (facts_of.edge.source, facts_of.edge.replica, facts_of.edge.channel.name, part)
        for facts_of in facts.edges
        for part in _severe_parts(facts_of)
        if part
    )
    stalls = stalls_of(facts.appliers, facts.policy)
    return (*facts.lost, *edges, *stalls)


def _severe_parts(edge: EdgeFacts) -> tuple[GtidSet, ...]:
    return edge.errant, edge.bypassed, edge.purged, edge.passed, edge.ignored


def _edge_facts(
    edge: Edge,
    *,
    graph: Graph,
    first: dict[str, ServerSnapshot],
    last: dict[str, ServerSnapshot],
    policy: Policy,
    appliers: Appliers,
) -> EdgeFacts:
    source, replica = first[edge.source], last[edge.replica]
    assert None not in (source.server_uuid, replica.server_uuid), "only of fully_read servers"
    executed, retrieved = _set(replica.gtid_executed), replica.gtid_retrieved
    behind, passed_is_proved = behind_appliers(edge, graph=graph, first=first, appliers=appliers)
    before, ahead = searched(edge, first=first, last=last)
    if edge.channel.applier is ThreadState.STOPPED:
        behind -= ahead  # the source's log is better evidence than two equal positions
    begun = _begun(edge, graph=graph, first=first, last=last)
    overtaken = _overtaken(edge, appliers) | _still_committed(edge, first=first, last=last)
    committed = _set(source.gtid_executed) | (begun & (behind | overtaken))
    missing = _from_others(committed - executed, replica, last)
    own_id = with_own_server_id(edge, graph=graph, servers=last)
    dropped = missing & (same_server_id(replica, last) | own_id)
    dropped -= _purged(source, later=last[edge.source]) - retrieved  # it sends none of these
    missing -= dropped
    half = missing & half_received(replica, edge.channel, log_end=source.log_end)
    before -= half
    applying = missing & (_set(replica.gtid_owned) | being_applied(replica)) - half
    passed_is_proved = passed_is_proved and not (before & missing & retrieved) - behind
    passed = (missing & (behind | (before & retrieved))) - applying - half
    queued = (missing & retrieved) - applying - passed - half
    absent = (missing - retrieved - applying) | half
    purged = absent & _purged(source, later=last[edge.source])
    ignored, elsewhere = ignored_by(edge, absent - purged, graph=graph, last=last)
    absent -= ignored | elsewhere
    other_log = sign_of_former_log(edge, before=first[edge.replica], source=last[edge.source])
    reset = sign_of_reset_source(edge, before=first[edge.replica], source=last[edge.source])
    bypassed, proved = bypassed_by(
        absent - purged, edge=edge, source=source, before=before, ahead=ahead, is_former=bool(reset)
    )
    if _asks_again(edge, first=first, last=last):
        bypassed = GtidSet()
    extra, allowed = _extra(edge, graph=graph, first=first, last=last, policy=policy)
    errant, way_back_is_stopped = errant_of(extra, edge, graph, last, appliers)
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
        unseen=_unseen(edge, graph=graph, last=last) if errant else (),
        own_id=own_id,
    )
    assert not facts.errant & _set(last[edge.source].gtid_executed)
    assert not (facts.bypassed | facts.passed) & executed
    return facts


def _asks_again(
    edge: Edge, *, first: dict[str, ServerSnapshot], last: dict[str, ServerSnapshot]
) -> bool:
    """Return whether the next connection of a receiver requests all that the replica is missing."""
    return waits_in_former_log(edge, before=first[edge.replica], source=last[edge.source])


def _overtaken(edge: Edge, appliers: Appliers) -> GtidSet:
    applier = appliers.get((edge.replica, edge.channel.name))
    return applier.overtaken if applier is not None else GtidSet()


def _begun(
    edge: Edge,
    *,
    graph: Graph,
    first: dict[str, ServerSnapshot],
    last: dict[str, ServerSnapshot],
) -> GtidSet:
    """Return what an applier may have passed although the source had not executed it at first.

    The log of the source already has what the source is still committing. A transaction that the
    source lost and will receive again was received from the source before.
    """
    above = held_by(graph.upstream_of(edge.source) - {edge.replica}, first)
    owned = _set(first[edge.source].gtid_owned)
    return owned | _set(last[edge.source].gtid_executed) | above & edge.channel.gtid_retrieved


def _still_committed(
    edge: Edge, *, first: dict[str, ServerSnapshot], last: dict[str, ServerSnapshot]
) -> GtidSet:
    """Return what a replica had received at first, and its source commits until the last reading.

    A source sends what is in its log, before gtid_executed has it: its own commit may wait, for a
    semi-synchronous replica or the disk. Only where an applier may skip it: else it is applied.
    """
    source = last[edge.source]
    if not permits_skips(last[edge.replica], edge.channel):
        return GtidSet()
    committing = _set(source.gtid_owned) - _set(source.gtid_executed)
    return committing & first[edge.replica].gtid_retrieved


def _purged(source: ServerSnapshot, *, later: ServerSnapshot) -> GtidSet:
    """Return what a source had purged when it was read first.

    A server that does not log a transaction adds it to gtid_purged at commit. The first reading may
    have coincided with that commit.
    """
    return _set(source.gtid_purged) | received_unlogged(source, _set(later.gtid_purged))


def _from_others(
    missing: GtidSet, replica: ServerSnapshot, last: dict[str, ServerSnapshot]
) -> GtidSet:
    """Return the part of `missing` that a server did not commit itself.

    A server's own transactions never come back to it from a replica, because its receiver drops
    events with its own server_id. If they are missing, that is not a backlog: see _lost_facts. A
    group may have any UUID as its name, also that of a replica below it (seen on 9.7.4): in that
    case other servers committed them.
    """
    assert replica.server_uuid is not None, "only fully read servers have edge facts"
    if replica.server_uuid in group_uuids(last.values()):
        return missing
    return missing.without_uuid(replica.server_uuid)


def _extra(
    edge: Edge,
    *,
    graph: Graph,
    first: dict[str, ServerSnapshot],
    last: dict[str, ServerSnapshot],
    policy: Policy,
) -> tuple[GtidSet, GtidSet]:
    """Return the extra GTIDs that no other channel of the replica explains, and the allowed ones.

    The source of another channel is the server to which it was last connected, and the server at
    its address. A server that was cloned has another server_uuid until the receiver has
    reconnected.
    """
    source, replica = last[edge.source], first[edge.replica]
    assert source.server_uuid is not None, "only fully read servers have edge facts"
    extra = _set(replica.gtid_executed) - _set(source.gtid_executed) - _set(source.gtid_owned)
    extra = extra.without_uuid(source.server_uuid)  # these are a lead or a loss: _lost_facts
    unlike = extra & with_other_version(edge, graph=graph, servers=last)
    for channel in last[edge.replica].channels or ():
        if channel.name == edge.channel.name:
            continue
        extra -= channel.gtid_retrieved
        sources = {
            other.source
            for other in graph.edges
            if (other.replica, other.channel.name) == (edge.replica, channel.name)
        }
        if channel.source_uuid is not None:
            extra = extra.without_uuid(channel.source_uuid)
            sources |= {
                each.name for each in last.values() if each.server_uuid == channel.source_uuid
            }
        for other in (last[name] for name in sorted(sources)):
            extra -= (other.gtid_executed or GtidSet()) | (other.gtid_owned or GtidSet())
    extra, allowed = extra | unlike, GtidSet()
    for uuid in sorted(policy.allowed_uuids):
        allowed |= extra.from_uuid(uuid)
    return extra - allowed, allowed


def _unseen(edge: Edge, *, graph: Graph, last: dict[str, ServerSnapshot]) -> tuple[str, ...]:
    """Return the servers that may deliver an errant set to a source and were not read."""
    upstream = graph.upstream_of(edge.source, stopped_too=True)
    unread = (name for name in sorted(upstream) if last[name].gtid_executed is None)
    return (*unseen_sources(edge.source, graph=graph, servers=last), *unread)


def _lost_facts(*, origin: ServerSnapshot, holder: ServerSnapshot) -> LostFacts | None:
    assert origin.server_uuid is not None, "only fully read servers are compared"
    held = _set(holder.gtid_executed) | holder.gtid_retrieved  # a relay log holds them as well
    beyond = held.from_uuid(origin.server_uuid) - _set(origin.gtid_executed)
    if not beyond:
        return None
    # gtid_owned was read before gtid_executed, so a commit in between is in at least one of them.
    leading = beyond & _set(origin.gtid_owned)
    return LostFacts(origin=origin.name, holder=holder.name, lost=beyond - leading, leading=leading)


def _set(gtid_set: GtidSet | None) -> GtidSet:
    assert gtid_set is not None, "only fully read servers are compared"
    return gtid_set

"""Which transactions a planner must read, from which servers, and where it compares their rows.

How it works
------------
A plan depends on two kinds of content:

1. Of a finding: the transactions that are extra on a server, or missing on it. They are read from
   servers that still have them. Their rows are compared on the servers that the finding concerns.
   So is what a server has that the other side has yet to get (`own`): later changes of these rows.
2. Of a stopped channel (`arrivals`): what a start delivers to its server, and from there to every
   server that receives from it. There, rows of several writers may conflict, and so may rows whose
   GTIDs a RESET BINARY LOGS AND GTIDS removed. In the order of one source's log nothing conflicts.
   Then the start does not depend on rows that could not be compared (`is_in_order`). All of the
   following must hold:

       no receiving server has a transaction that the source's side does not have
       no receiving server committed one that the source logged behind what waits, or beside it:
           in a ring or a dual-primary pair both may have changed a row (`beside`)
       no transaction arrives after a later one of the same origin (no gap is filled)
       no downstream server has only some of them: it may have other transactions under these GTIDs
       every origin is a server that was read: a rebuilt server drops what it once committed itself
       every receiving server logged an earlier transaction of each origin: one whose history was
           set (gtid_purged after RESET BINARY LOGS AND GTIDS, a backup) may have the rows already
       every receiving server has one channel

This module uses sets and channels only. repair/adapters/transactions_for_plan.py reads logs and
rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from gtid import GtidSet
from topology.catalogue.findings import Finding
from topology.facts.graph import Edge, Graph, build_graph
from topology.facts.memberships import group_uuids
from topology.facts.reset_signs import has_earlier, logged_as_received
from topology.readings.notable_settings import may_ignore_errors
from topology.readings.snapshot import ChannelSnapshot, ClusterSnapshot, ServerSnapshot, ThreadState

# What is extra on the replica, what is missing on it, and where the applier stopped.
EXTRA = ("E1", "E2", "E3", "E6", "H7", "J3")
HOLES = ("H1", "H3", "H4", "H5", "H8", "P1")
MISSING = (*HOLES, "C3")
STOPPED = ("A2", "A3")


@dataclass(frozen=True, slots=True)
class ContentQuestion:
    """Transactions, the servers that may still have them, and where their rows are compared."""

    wanted: GtidSet
    holders: tuple[str, ...]  # read from the first of those that have most of them
    servers: tuple[str, ...]
    # What arrives follows in the order of one source's log: see `arrives_in_order`.
    is_in_order: bool = False
    source: str = ""  # of the channel
    # What receiving servers committed, and the source still has in its log.
    beside: GtidSet = GtidSet()  # noqa: RUF009 - immutable
    # By server, what it has and the other side has not executed: it may have changed the same rows
    # later. If the source's side may ignore errors, also what the server had from elsewhere.
    own: tuple[tuple[str, GtidSet], ...] = ()

    def arrives_in_order(self, logged_before: GtidSet) -> bool:
        """Return whether rows need not be comparable: the order of one log shows that they match.

        `logged_before` is what the source logged before the file in which `wanted` begins.
        """
        return self.is_in_order and self.beside <= logged_before


@dataclass(frozen=True, slots=True)
class _Servers:
    """The last readings of a cluster, and whose UUIDs are in their sets."""

    by_name: Mapping[str, ServerSnapshot]
    by_uuid: Mapping[UUID, tuple[str, ...]]
    places: Mapping[str, int]  # in the order of the snapshot
    groups: frozenset[UUID]

    @classmethod
    def of(cls, snapshot: ClusterSnapshot) -> "_Servers":
        by_name = {server.name: server for server in snapshot.last}
        by_uuid: dict[UUID, tuple[str, ...]] = {}
        for name, server in by_name.items():
            if server.server_uuid is not None:
                by_uuid[server.server_uuid] = (*by_uuid.get(server.server_uuid, ()), name)
        places = {name: place for place, name in enumerate(by_name)}
        return cls(by_name, by_uuid, places, group_uuids(by_name.values()))


def question_of(
    finding: Finding, snapshot: ClusterSnapshot, *, failing: GtidSet | None = None
) -> ContentQuestion | None:
    """Return what must be read for a finding; None if nothing.

    `failing` is the transaction that stopped an applier (A2, A3): only its log shows it.
    """
    code = finding.code
    if code not in (*EXTRA, *MISSING, *STOPPED):
        return None
    servers = _Servers.of(snapshot)
    ends = tuple(each for each in (finding.replica, finding.source) if each is not None)
    concerned = ends
    wanted = finding.gtid_set
    if code in STOPPED:
        wanted = failing or GtidSet()
    elif code in EXTRA:
        concerned = tuple(servers.by_name)
    else:
        if code == "C3":  # auto-position fetches all that is missing
            wanted = _missing(finding, servers)
        concerned = (*ends, *build_graph(snapshot).below(finding.replica or ""))
    if not wanted:
        return None
    first = ends if code in EXTRA else ends[::-1]
    holders = _holders(finding.gtid_set, first, servers)
    if code in MISSING:  # the source's version is what is missing there
        above = (name for name in ends[1:] if name in servers.by_name)
        holders = tuple(dict.fromkeys((*above, *holders)))
    if code == "H5":  # the source has lost its log of them
        holders = tuple(each for each in holders if each != finding.source)
    return ContentQuestion(
        wanted,
        holders,
        tuple(dict.fromkeys(name for name in concerned if name in servers.by_name)),
        own=_own_beside(finding, snapshot, servers),
    )


def _own_beside(
    finding: Finding, snapshot: ClusterSnapshot, known: _Servers
) -> tuple[tuple[str, GtidSet], ...]:
    """Return what servers have that are to get transactions, and the holder of these has not.

    Of a gap, what its receivers committed: in a dual-primary pair the other channel may be stopped,
    or behind. Of extra transactions, what the replica has yet to get from above. A row that was
    changed and changed back there looks as before. Where an applier stopped, what its source has
    yet to get of the replica's work: it may have changed the row first, and last on the source.
    """
    source, replica, graph = finding.source or "", finding.replica or "", build_graph(snapshot)
    if source not in known.by_name or replica not in known.by_name:
        return ()
    if finding.code in STOPPED:
        senders = sorted(graph.upstream_of(source, stopped_too=True))
        coming = GtidSet.union_of(_executed(known.by_name[name]) for name in senders)
        ahead = _executed(known.by_name[replica]) & coming - _executed(known.by_name[source])
        return ((replica, ahead),) if ahead else ()
    if finding.code in EXTRA:
        above = {source, *graph.upstream_of(replica, stopped_too=True)} - {replica}
        has = _executed(known.by_name[replica])
        newer = ((name, _executed(known.by_name[name]) - has) for name in sorted(above))
        return tuple((name, gtids) for name, gtids in newer if gtids)
    sent = _executed(known.by_name[source])
    receivers = (replica, *(name for name in graph.below(replica) if name != source))
    own = ((name, _own_work(known.by_name[name], sent, known, graph)) for name in receivers)
    return tuple((name, gtids) for name, gtids in own if gtids)


def arrivals(snapshot: ClusterSnapshot) -> Mapping[tuple[str, str], ContentQuestion]:
    """Return what must be read before a stopped channel is started, by server and channel."""
    graph, servers = build_graph(snapshot), _Servers.of(snapshot)
    return {
        (edge.replica, edge.channel.name): question
        for edge in graph.edges
        if _is_stopped(edge.channel) and (question := _arriving(servers, graph, edge)) is not None
    }


def _is_stopped(channel: ChannelSnapshot) -> bool:
    return ThreadState.STOPPED in (channel.receiver, channel.applier) or bool(channel.until)


def _arriving(known: _Servers, graph: Graph, edge: Edge) -> ContentQuestion | None:
    source, replica = edge.source, edge.replica
    servers = known.by_name
    side = graph.upstream_of(source, stopped_too=True) - {replica}
    # What the source itself has not received yet comes later, in the order of its log.
    sent = _executed(servers[source]) | edge.channel.gtid_retrieved
    there = GtidSet.union_of((sent, *(_executed(servers[name]) for name in sorted(side))))
    here = servers[replica]
    wanted = _from_others(sent - _executed(here), here, known)
    receivers = (replica, *(name for name in graph.below(replica) if name != source))
    # In a ring a server is on both sides: what it has and the source does not, it committed itself.
    given = {name: sent if name in side else there for name in receivers}
    # What a server committed under its UUID may have other content, if a group has that name. A
    # server that ignores errors does not stop at rows that differ: it overwrites them.
    is_in_order = here.server_uuid not in known.groups and not any(
        _may_conflict(servers[name], wanted, given[name], known)
        or (name not in side and _has_a_part(servers[name], wanted))
        or may_ignore_errors(servers[name].notable_settings)
        for name in receivers
    )
    own = {name: _own_work(servers[name], sent, known, graph) for name in receivers}
    committed = {name: _committed(servers[name]) for name in receivers if name != source}
    beside = available(servers[source]) & GtidSet.union_of(committed.values())
    if any(may_ignore_errors(servers[name].notable_settings) for name in (source, *side)):
        # There a change to one row on both sides did not stop the applier (C15).
        for name in committed:
            done = _executed(servers[name])
            if len(servers[name].channels or ()) <= 1:  # it has nothing that came over others
                done = _made_apart(done, servers[name], known, graph)
            own[name] |= done & _executed(servers[source])
    if not wanted:
        return None
    if is_in_order and edge.channel.filters and not beside:
        # Rows of filtered tables are never as the source's log has them, and need not be compared.
        return ContentQuestion(wanted, (), (), is_in_order, source, beside)
    concerned = dict.fromkeys((replica, source, *receivers))
    # The source's log has them in the order in which they will arrive.
    holders = dict.fromkeys((source, *_holders(wanted, (), known)))
    return ContentQuestion(
        wanted,
        tuple(holders),
        tuple(concerned),
        is_in_order,
        source,
        beside,
        tuple((name, gtids) for name, gtids in own.items() if gtids),
    )


def _own_work(server: ServerSnapshot, sent: GtidSet, known: _Servers, graph: Graph) -> GtidSet:
    """Return what a receiving server has, and the source of its channel has not executed yet.

    In the log of the source it comes behind what waits. With several channels, what a server above
    committed may come over another one.
    """
    own = _executed(server) - sent
    return own if len(server.channels or ()) <= 1 else _made_apart(own, server, known, graph)


def _made_apart(gtids: GtidSet, server: ServerSnapshot, known: _Servers, graph: Graph) -> GtidSet:
    """Return what no server committed from which this one receives."""
    above = graph.upstream_of(server.name, stopped_too=True) - {server.name}
    for uuid in gtids.uuids:
        if above.intersection(known.by_uuid.get(uuid, ())):
            gtids = gtids.without_uuid(uuid)
    return gtids


def _may_conflict(
    server: ServerSnapshot,
    wanted: GtidSet,
    there: GtidSet,
    known: _Servers,
) -> bool:
    """Return whether transactions may conflict with rows on a server."""
    here = _executed(server)
    arriving = of_no_server = wanted - here
    for uuid in arriving.uuids:
        if uuid in known.by_uuid:
            of_no_server = of_no_server.without_uuid(uuid)
    return bool(
        here - there
        or (here and not has_earlier(logged_as_received(server), arriving))
        or arriving & here.filled()
        or of_no_server
        or len(server.channels or ()) > 1
    )


def _committed(server: ServerSnapshot) -> GtidSet:
    own = server.server_uuid
    return GtidSet() if own is None else _executed(server).from_uuid(own)


def _has_a_part(server: ServerSnapshot, wanted: GtidSet) -> bool:
    """Return whether a server has some of what is to arrive, but not all; its own do not count."""
    wanted = wanted.without_uuid(server.server_uuid) if server.server_uuid is not None else wanted
    return bool(wanted & _executed(server)) and bool(wanted - _executed(server))


def _holders(gtids: GtidSet, first: tuple[str, ...], known: _Servers) -> tuple[str, ...]:
    """Return the possible holders of transactions: the origins, then `first`, then all others.

    If a GTID was set with gtid_next, its origin may have another transaction under it.
    """
    of_uuids = {name for uuid in gtids.uuids for name in known.by_uuid.get(uuid, ())}
    origins = sorted(of_uuids, key=known.places.__getitem__)
    named = (name for name in (*origins, *first) if name in known.by_name)
    return tuple(dict.fromkeys((*named, *known.by_name)))


def _missing(finding: Finding, known: _Servers) -> GtidSet:
    servers = known.by_name
    source, replica = servers.get(finding.source or ""), servers.get(finding.replica or "")
    if source is None or replica is None:
        return GtidSet()
    return _from_others(available(source) - _executed(replica), replica, known)


def _from_others(gtids: GtidSet, server: ServerSnapshot, known: _Servers) -> GtidSet:
    """Return what a server did not commit itself: its own transactions never come back to it.

    A group may have its UUID as its name (seen on 9.7.4): then the members committed them.
    """
    if server.server_uuid is None or server.server_uuid in known.groups:
        return gtids
    return gtids.without_uuid(server.server_uuid)


def available(server: ServerSnapshot) -> GtidSet:
    """Return what a server's binary logs still held when it was read."""
    return _executed(server) - (server.gtid_purged or GtidSet())


def _executed(server: ServerSnapshot) -> GtidSet:
    return server.gtid_executed or GtidSet()

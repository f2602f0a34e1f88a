"""What a replica drops because it carries the replica's own server_id, under another UUID.

A server that was cloned or restored keeps its server_id and has a new server_uuid. Transactions
that it committed under its former UUID may come back to it. Its receiver treats them as its own and
drops them, without an error (sql/rpl_replica.cc, queue_event). No current server has that UUID, so
only the server_id in a binary log shows it. The same applies to a group's UUID: any member may have
committed a transaction, including one that lost it in a crash and now receives from another server.
And a session of the replica may have set gtid_next to a GTID of another server's UUID: two signs
show this before the transaction is missing on the replica (`maybe_by_hand`).
"""

from collections.abc import Iterator, Mapping
from uuid import UUID

from gtid import GtidSet
from topology.facts.applier_workers import is_without_work
from topology.facts.graph import Edge, Graph
from topology.facts.last_result import keep_last_result
from topology.facts.memberships import group_uuids
from topology.readings.history_evidence import ends_of, intervals_of
from topology.readings.snapshot import ServerSnapshot


def of_unknown_uuids(
    edge: Edge, *, graph: Graph, servers: Mapping[str, ServerSnapshot]
) -> dict[str, GtidSet]:
    """Return what is upstream of a replica under unknown UUIDs, by a server that logs it.

    An unknown UUID is that of no server and no group of this audit. It may also be that of a group
    in which the replica, or another server with its server_id, commits. The source is queried
    first, because it sends what it has logged. Another server may have logged what the source is
    still committing. What the replica has, or has received, carries another server_id.
    """
    replica = servers[edge.replica]
    known = {server.server_uuid for server in servers.values()} | group_uuids(servers.values())
    known -= _own_groups(replica, servers)
    rest = (replica.gtid_executed or GtidSet()) | (replica.gtid_owned or GtidSet())
    rest |= edge.channel.gtid_retrieved  # a received transaction was not dropped
    found: dict[str, GtidSet] = {}
    upstream = graph.upstream_of(edge.source, stopped_too=True) - {edge.source}
    for name in (edge.source, *sorted(upstream)):
        server = servers[name]
        # The log may already have what the server is committing; reading the log decides that.
        held = (server.gtid_executed or GtidSet()) | (server.gtid_owned or GtidSet())
        held -= (server.gtid_purged or GtidSet()) | rest
        for uuid in known:
            if uuid is not None:
                held = held.without_uuid(uuid)
        if held:
            found[name] = held
            rest |= by_state(server, held)[0]
    # What waits in upstream relay logs is sent next. A server that has logged it shows its
    # server_id.
    waiting = _waiting_above(edge, graph=graph, servers=servers)
    if not waiting:
        return found
    for uuid in filter(None, known):
        waiting = waiting.without_uuid(uuid)
    for name in sorted(servers.keys() - upstream - {edge.source, edge.replica}):
        if held := servers[name].logged & waiting - rest:
            found[name] = held
            rest |= held
    return found


def of_no_server(gtids: GtidSet, servers: Mapping[str, ServerSnapshot]) -> GtidSet:
    """Return the part of a set under UUIDs that no server and no group of the audit has."""
    for uuid in {each.server_uuid for each in servers.values()} | group_uuids(servers.values()):
        gtids = gtids.without_uuid(uuid) if uuid is not None else gtids
    return gtids


def _waiting_above(edge: Edge, *, graph: Graph, servers: Mapping[str, ServerSnapshot]) -> GtidSet:
    """Return what waits in the relay logs of a replica's source and of the servers above it.

    If an applier has read all of it, it has passed what is missing (a RESET): nothing is sent. A
    member also applies what its group has sent it. What a worker executes, the log of its server
    does not show yet, and before 5.7 Retrieved_Gtid_Set may not either.
    """
    upstream = graph.upstream_of(edge.source, stopped_too=True) - {edge.source}
    above = [servers[name] for name in (edge.source, *sorted(upstream))]
    return GtidSet.union_of(
        received - (server.gtid_executed or GtidSet())
        for server in above
        for received in (
            *(each.gtid_retrieved for each in server.channels or () if not is_without_work(each)),
            *(() if server.group is None else (server.group.received,)),
            of_no_server(server.gtid_owned or GtidSet(), servers),
        )
    )


def may_need_all_logs(edge: Edge, *, graph: Graph, servers: Mapping[str, ServerSnapshot]) -> bool:
    """Return whether facts of an edge may need more logs than those of its ends and above them.

    Another server with the replica's server_id may have committed what any server holds. What waits
    above the replica may be in any log.
    """
    own_id = servers[edge.replica].server_id
    if own_id is None or len(servers_by_id(servers).get(own_id, ())) > 1:
        return True
    return bool(_waiting_above(edge, graph=graph, servers=servers))


def maybe_by_hand(
    edge: Edge, *, graph: Graph, servers: Mapping[str, ServerSnapshot]
) -> dict[str, GtidSet]:
    """Return what a session of the replica may have committed under another server's UUID.

    By the server that logs it: the server with that UUID, which received it, or a server that
    received it from the replica. The replica has lost it since. Not included are the UUID of the
    replica itself (topology/facts/lost.py) and those of groups.
    """
    replica = servers[edge.replica]
    others = _uuids_of_others(replica, servers)
    has = (replica.gtid_executed or GtidSet()) | (replica.gtid_owned or GtidSet())
    has |= edge.channel.gtid_retrieved  # a received transaction was not dropped
    found: dict[str, GtidSet] = {}
    upstream = graph.upstream_of(edge.source, stopped_too=True) - {edge.source}
    for name in (edge.source, *sorted(upstream)):
        server, made = servers[name], GtidSet()
        for channel in server.channels or ():
            is_from_replica = channel.source_uuid == replica.server_uuid
            whose = others if is_from_replica else others & {server.server_uuid}
            made |= GtidSet.union_of(map(channel.gtid_retrieved.from_uuid, whose))
        made &= server.logged | (server.gtid_owned or GtidSet())
        if made := made - has:
            found[name] = made
            has |= by_state(server, made)[0]
    return found


def under_uuids_of_others(
    gtids: GtidSet, replica: ServerSnapshot, servers: Mapping[str, ServerSnapshot]
) -> GtidSet:
    """Return the part of `gtids` that has the UUID of another server, and of no group."""
    return GtidSet.union_of(map(gtids.from_uuid, _uuids_of_others(replica, servers)))


def _uuids_of_others(
    replica: ServerSnapshot, servers: Mapping[str, ServerSnapshot]
) -> frozenset[UUID]:
    others = (each.server_uuid for each in servers.values() if each.server_uuid is not None)
    return frozenset(others) - {replica.server_uuid} - group_uuids(servers.values())


def to_look_up(
    edge: Edge, *, graph: Graph, servers: Mapping[str, ServerSnapshot]
) -> Iterator[tuple[str, GtidSet]]:
    """Yield what may carry the replica's server_id, by the server whose log shows it."""
    for asked in (of_unknown_uuids, maybe_by_hand):
        for name, held in asked(edge, graph=graph, servers=servers).items():
            for state in by_state(servers[name], held):
                yield name, state


def by_state(server: ServerSnapshot, held: GtidSet) -> tuple[GtidSet, GtidSet]:
    """Return what a server has executed, and what it is committing, which its log may not have."""
    executed = held & (server.gtid_executed or GtidSet())
    return executed, held - executed


def with_own_server_id(
    edge: Edge, missing: GtidSet, *, graph: Graph, servers: Mapping[str, ServerSnapshot]
) -> GtidSet:
    """Return which of these GTIDs carry the replica's server_id in a log, as far as it was read.

    Both ends of an interval represent the whole interval. Under the UUID of a group each GTID is
    evaluated alone, in the log of the source and where it waits above: a member that was not read
    may have the replica's server_id. What is `missing` on the replica and was made by hand is not
    included: that is H8 or T3.
    """
    own_id, ids = servers[edge.replica].server_id, _ids_in_logs(servers)
    if own_id not in _distinct_ids(servers):
        return GtidSet()
    looked_up = tuple(to_look_up(edge, graph=graph, servers=servers))
    former = (
        part
        for name, state in looked_up
        for part in intervals_of(state)
        if all(ids.get((name, end)) == own_id for end in ends_of(part))
    )
    has = (servers[edge.replica].gtid_executed or GtidSet()) | edge.channel.gtid_retrieved
    groups = group_uuids(servers.values())
    of_groups = (
        gtid
        for (name, gtid), server_id in ids.items()
        if (name == edge.source or any(gtid <= held for of, held in looked_up if of == name))
        and server_id == own_id
        and {each.uuid for each in gtid.tsids} <= groups
    )
    found = GtidSet.union_of((*former, *(gtid - has for gtid in of_groups)))
    return found - under_uuids_of_others(found & missing, servers[edge.replica], servers)


def maybe_own_server_id(
    edge: Edge, *, graph: Graph, servers: Mapping[str, ServerSnapshot]
) -> GtidSet:
    """Return which of these GTIDs no log shows with another server_id than the replica's.

    The members of a group commit alternately under one UUID, so only GTIDs that were read count.
    """
    own_id, ids = servers[edge.replica].server_id, _ids_in_logs(servers)
    groups = _own_groups(servers[edge.replica], servers)

    def is_anothers(name: str, part: GtidSet) -> bool:
        ends = ends_of(part)
        is_whole = len(ends) == part.gtid_count or not groups & {tsid.uuid for tsid in part.tsids}
        return is_whole and all(ids.get((name, end), own_id) != own_id for end in ends)

    parts = [
        (part, is_anothers(name, part))
        for name, held in of_unknown_uuids(edge, graph=graph, servers=servers).items()
        for state in by_state(servers[name], held)
        for part in intervals_of(state)
    ]
    of_others = GtidSet.union_of(part for part, is_known in parts if is_known)
    return GtidSet.union_of(part for part, _ in parts) - of_others


def shown_with_own_server_id(edge: Edge, *, servers: Mapping[str, ServerSnapshot]) -> GtidSet:
    """Return what the source's log shows with the replica's server_id under any other UUID.

    A server that was cloned may have left its former UUID to a copy of it (auto.cnf), so that the
    UUID is known. Or a session set gtid_next on the replica, and the replica lost the transaction.
    """
    own_id = servers[edge.replica].server_id
    shown = (
        gtid
        for (name, gtid), server_id in _ids_in_logs(servers).items()
        if name == edge.source and server_id == own_id
    )
    return GtidSet.union_of(shown) if own_id else GtidSet()


def _own_groups(replica: ServerSnapshot, servers: Mapping[str, ServerSnapshot]) -> frozenset[UUID]:
    """Return the groups whose transactions may carry the replica's server_id."""
    same = (each for each in servers.values() if each.server_id == replica.server_id is not None)
    return group_uuids((replica, *same))


@keep_last_result
def _ids_in_logs(servers: Mapping[str, ServerSnapshot]) -> dict[tuple[str, GtidSet], int]:
    """Return the server_ids that were read, by the server whose log was read and the GTID."""
    return {
        (name, record.gtid): record.server_id
        for name, server in servers.items()
        if server.history_evidence is not None
        for record in server.history_evidence.commits
    }


@keep_last_result
def servers_by_id(
    servers: Mapping[str, ServerSnapshot],
) -> dict[int, tuple[ServerSnapshot, ...]]:
    """Return the servers whose server_id was read, by server_id, in order."""
    found: dict[int, list[ServerSnapshot]] = {}
    for server in servers.values():
        if server.server_id is not None:
            found.setdefault(server.server_id, []).append(server)
    return {server_id: tuple(each) for server_id, each in found.items()}


@keep_last_result
def _distinct_ids(servers: Mapping[str, ServerSnapshot]) -> frozenset[int | None]:
    """Return the server_ids in the logs, and None if any log was read: a server may have no id."""
    if all(server.history_evidence is None for server in servers.values()):
        return frozenset()
    return frozenset((*_ids_in_logs(servers).values(), None))

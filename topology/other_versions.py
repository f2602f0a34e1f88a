"""GTIDs under which two servers have two transactions, as far as commit times and ids show it.

How it works
------------
**A replica's own, at another of its sources.** What one source of a replica does not have, another
one may have sent: it is not errant then. A replica's own transactions are no such case. Its sources
have them only where they received them from it, now or before a failover, or where a session set
gtid_next there by hand:

    c receives from a and from b, and commits c:1. A session on b commits another c:1 by hand.
    a has no c:1. The sets of b and c are equal, so b seems to have sent it.

The sets do not separate the failover from the session. The logs of b and c do: replicas keep the
server_id and the time of the first commit. Two transactions with one GTID differ in one of them,
and what c committed is then errant on c as far as a is concerned. Where a channel leads from c to b
nothing is asked: b received it. What is in no log any more cannot be separated, and counts as sent.

**A source's own, at a replica that does not receive.** The source was reset, or lost the end of its
log, and used the GTIDs again. A receiver that connects meanwhile is refused. One that was stopped
all the time, or was configured anew, has no error, also when it is connected later; the sets look
as if it were merely behind, and what waits does not fit its rows. The lowest and the highest GTID
that both have in their logs show it: the first commit of one transaction has one time.

**A source's own, that waits on a stopped applier.** The receiver may have got it before a crash in
which the source lost it, and the source may have given its GTID to another transaction since. The
relay log then has the former one, and no set and no place shows that. It needs a start of the
source between the commits of what both have executed last and of the last one that waits.
"""

from collections.abc import Mapping

from gtid import GtidSet
from topology.graph import Edge, Graph, build_graph
from topology.history_evidence import CommitRecord, ends_of
from topology.reset_signs import logged
from topology.snapshot import (
    START_SLACK,
    ChannelSnapshot,
    ClusterSnapshot,
    ServerSnapshot,
    ThreadState,
)


def own_at_other_sources(
    edge: Edge, *, graph: Graph, servers: Mapping[str, ServerSnapshot]
) -> dict[str, GtidSet]:
    """Return, by another source, which of the replica's own GTIDs it logs and this one has not.

    Only sources to which nothing leads from the replica.
    """
    replica, source = servers[edge.replica], servers[edge.source]
    if replica.server_uuid is None:
        return {}
    own = logged(replica).from_uuid(replica.server_uuid)
    own -= (source.gtid_executed or GtidSet()) | (source.gtid_owned or GtidSet())
    others = {each.source for each in graph.edges if each.replica == edge.replica}
    found = {
        name: own & logged(servers[name])
        for name in sorted(others - {edge.source})
        if edge.replica not in graph.upstream_of(name, stopped_too=True)
    }
    return {name: each for name, each in found.items() if each}


def with_other_version(
    edge: Edge, *, graph: Graph, servers: Mapping[str, ServerSnapshot]
) -> GtidSet:
    """Return which of them are two transactions, as far as their commits were read."""
    if servers[edge.replica].history_evidence is None:
        return GtidSet()
    return GtidSet.union_of(
        end
        for name, held in own_at_other_sources(edge, graph=graph, servers=servers).items()
        for end in ends_of(held)
        if _are_two(_record(servers[edge.replica], end), _record(servers[name], end))
    )


def with_other_versions(snapshot: ClusterSnapshot) -> GtidSet:
    """Return all of a cluster, so that their contents are compared."""
    graph = build_graph(snapshot)
    servers = {server.name: server for server in snapshot.last}
    return GtidSet.union_of(
        with_other_version(edge, graph=graph, servers=servers) for edge in graph.edges
    )


def own_of_stopped_source(edge: Edge, *, servers: Mapping[str, ServerSnapshot]) -> GtidSet:
    """Return the lowest and highest own GTID of a source that a stopped replica has logged too."""
    source, replica = servers[edge.source], servers[edge.replica]
    if not _is_stopped(edge.channel) or source.server_uuid is None:
        return GtidSet()
    both = (logged(source) & logged(replica)).from_uuid(source.server_uuid)
    ends = list(ends_of(both))
    return GtidSet.union_of((*ends[:1], *ends[-1:]))


def _is_stopped(channel: ChannelSnapshot) -> bool:
    """Return whether a start lets a channel go on. It does not end the error of an applier."""
    if channel.receiver is ThreadState.STOPPED:
        return True
    failed = channel.applier_errno or channel.applier_error
    return channel.applier is ThreadState.STOPPED and not failed


def given_again(edge: Edge, *, servers: Mapping[str, ServerSnapshot]) -> GtidSet:
    """Return which of them are two transactions, as far as their commits were read."""
    source, replica = servers[edge.source], servers[edge.replica]
    return GtidSet.union_of(
        end
        for end in ends_of(own_of_stopped_source(edge, servers=servers))
        if _are_two(_record(source, end), _record(replica, end))
    )


def around_start_samples(edge: Edge, *, servers: Mapping[str, ServerSnapshot]) -> GtidSet:
    """Return the highest own GTIDs of a source that a stopped applier has applied, and has not."""
    source, replica = servers[edge.source], servers[edge.replica]
    waiting, applied = _waiting(edge, source=source, replica=replica), _applied(source, replica)
    return _newest(waiting) | _newest(applied) if waiting and applied else GtidSet()


def received_around_start(edge: Edge, *, servers: Mapping[str, ServerSnapshot]) -> GtidSet:
    """Return what of a source waits on a stopped applier, if the source was started meanwhile.

    Empty where the commits show that the start was before, or after all of it, where the source has
    had one log only, and where the replica has applied nothing of it: every new server was started.
    """
    source, replica = servers[edge.source], servers[edge.replica]
    waiting, applied = _waiting(edge, source=source, replica=replica), _applied(source, replica)
    newest, started_at = _record(source, _newest(waiting)), source.started_at
    if not applied or newest is None or started_at is None:
        return GtidSet()
    if newest.committed_at < started_at - START_SLACK:
        return GtidSet()
    last = _record(source, _newest(applied))
    if last is not None and last.committed_at > started_at + START_SLACK:
        return GtidSet()
    if not source.gtid_purged and len(source.binary_logs or ()) == 1:
        return GtidSet()  # each start begins another log
    return waiting


def _newest(gtids: GtidSet) -> GtidSet:
    return GtidSet.union_of(list(ends_of(gtids))[-1:])


def _applied(source: ServerSnapshot, replica: ServerSnapshot) -> GtidSet:
    assert source.server_uuid is not None, "only servers that were read are linked"
    return logged(source).from_uuid(source.server_uuid) & (replica.gtid_executed or GtidSet())


def _waiting(edge: Edge, *, source: ServerSnapshot, replica: ServerSnapshot) -> GtidSet:
    assert source.server_uuid is not None, "only servers that were read are linked"
    if edge.channel.applier is not ThreadState.STOPPED:
        return GtidSet()
    waiting = edge.channel.gtid_retrieved.from_uuid(source.server_uuid) & logged(source)
    return waiting - (replica.gtid_executed or GtidSet())


def _record(server: ServerSnapshot, gtid: GtidSet) -> CommitRecord | None:
    return None if server.history_evidence is None else server.history_evidence.commit_of(gtid)


def _are_two(ours: CommitRecord | None, theirs: CommitRecord | None) -> bool:
    """Return whether two records are of two commits."""
    if ours is None or theirs is None:
        return False
    is_timed = ours.is_exact and theirs.is_exact
    return ours.server_id != theirs.server_id or (
        is_timed and ours.committed_at != theirs.committed_at
    )

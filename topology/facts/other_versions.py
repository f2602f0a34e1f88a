"""GTIDs under which two servers have different transactions, as commit times and ids show.

How it works
------------
**A replica's own GTIDs on another of its sources.** If one source of a replica is missing a
transaction, another source may have sent it. Then it is not errant. This does not apply to a
replica's own transactions. Its sources have them only if they received them from the replica, now
or before a failover, or if a session there set gtid_next:

    c receives from a and from b, and commits c:1. A session on b commits another c:1 (gtid_next).
    a has no c:1. The sets of b and c are equal, so b seems to have sent it.

The sets do not distinguish the failover from the session. The logs of b and c do, because replicas
preserve the server_id and the time of the first commit. Two transactions with one GTID differ in
one of these values. In that case the transaction that c committed is errant on c with respect to a.
If a channel leads from c to b, no log is read: b received the transaction. A transaction that is in
no log cannot be distinguished, and counts as sent.

**A source's own GTIDs on a replica that does not receive.** The source was reset, or lost the end
of its log, and reused the GTIDs. It refuses a receiver that connects in between. A receiver that
was stopped during all of it, or was configured again, has no error, even when it connects later.
The sets look as if the replica were merely behind, and the waiting transactions do not match its
rows. The lowest and the highest GTID that both have in their logs show it, because the first commit
of one transaction has one time.

**A source's own GTIDs that wait in a relay log.** The receiver may have received a transaction
before a crash in which the source lost it, or before an older copy of the source was restored. The
source may have reused its GTID since. The relay log then has the former transaction, and no set or
position shows that. This is possible only if the source restarted between two commits: that of the
last transaction that both have executed, and that of the last one that waits. An applier that is
stopped, delayed (SOURCE_DELAY) or far behind may have such a relay log. If its lag is shorter than
the source's uptime, it applies what was committed since the restart. The source may have purged
either one. The replica's log has the first. Of the last one nothing shows the time then: it is
doubted unless the source has not restarted since the first.
"""

from collections.abc import Mapping

from gtid import GtidSet
from topology.facts.graph import Edge, Graph, build_graph
from topology.readings.history_evidence import CommitRecord, ends_of
from topology.readings.snapshot import (
    START_SLACK,
    ChannelSnapshot,
    ClusterSnapshot,
    ServerSnapshot,
    ThreadState,
)


def own_at_other_sources(
    edge: Edge, *, graph: Graph, servers: Mapping[str, ServerSnapshot]
) -> dict[str, GtidSet]:
    """Return which of the replica's own GTIDs another source logs and this one has not, by source.

    Only sources to which no channel leads from the replica are considered.
    """
    replica, source = servers[edge.replica], servers[edge.source]
    others = {each.source for each in graph.into(edge.replica)} - {edge.source}
    if replica.server_uuid is None or not others:
        return {}
    own = replica.logged.from_uuid(replica.server_uuid)
    own -= (source.gtid_executed or GtidSet()) | (source.gtid_owned or GtidSet())
    found = {
        name: own & servers[name].logged
        for name in sorted(others)
        if edge.replica not in graph.upstream_of(name, stopped_too=True)
    }
    return {name: each for name, each in found.items() if each}


def with_other_version(
    edge: Edge, *, graph: Graph, servers: Mapping[str, ServerSnapshot]
) -> GtidSet:
    """Return which of them are two different transactions, as far as their commits were read."""
    if servers[edge.replica].history_evidence is None:
        return GtidSet()
    return GtidSet.union_of(
        end
        for name, held in own_at_other_sources(edge, graph=graph, servers=servers).items()
        for end in ends_of(held)
        if shows_two_commits(commit_on(servers[edge.replica], end), commit_on(servers[name], end))
    )


def with_other_versions(snapshot: ClusterSnapshot) -> GtidSet:
    """Return all such GTIDs of a cluster, so that their contents are compared."""
    graph = build_graph(snapshot)
    servers = {server.name: server for server in snapshot.last}
    return GtidSet.union_of(
        with_other_version(edge, graph=graph, servers=servers) for edge in graph.edges
    )


def own_of_stopped_source(edge: Edge, *, servers: Mapping[str, ServerSnapshot]) -> GtidSet:
    """Return a source's lowest and highest own GTID that a stopped replica has logged as well."""
    source, replica = servers[edge.source], servers[edge.replica]
    if not is_stopped(edge.channel) or source.server_uuid is None:
        return GtidSet()
    both = (source.logged & replica.logged).from_uuid(source.server_uuid)
    ends = list(ends_of(both))
    return GtidSet.union_of((*ends[:1], *ends[-1:]))


def is_stopped(channel: ChannelSnapshot) -> bool:
    """Return whether START REPLICA resumes a channel. It does not clear an applier's error."""
    if channel.receiver is ThreadState.STOPPED:
        return True
    failed = channel.applier_errno or channel.applier_error
    return channel.applier is ThreadState.STOPPED and not failed


def given_again(edge: Edge, *, servers: Mapping[str, ServerSnapshot]) -> GtidSet:
    """Return which of them are two different transactions, as far as their commits were read."""
    source, replica = servers[edge.source], servers[edge.replica]
    return GtidSet.union_of(
        end
        for end in ends_of(own_of_stopped_source(edge, servers=servers))
        if shows_two_commits(commit_on(source, end), commit_on(replica, end))
    )


def around_start_samples(
    edge: Edge, *, servers: Mapping[str, ServerSnapshot]
) -> tuple[tuple[str, GtidSet], ...]:
    """Return a source's highest own GTIDs that an applier has, and has not, applied.

    By the server whose log has them: the source may have purged both.
    """
    source, replica = servers[edge.source], servers[edge.replica]
    waiting, applied = _waiting(edge, source=source, replica=replica), _applied(source, replica)
    if not waiting or not applied:
        return ()
    last = _newest(applied)
    return (
        (edge.source, (_newest(waiting) | last) & source.logged),
        (edge.replica, (last & replica.logged) - source.logged),
    )


def received_around_start(edge: Edge, *, servers: Mapping[str, ServerSnapshot]) -> GtidSet:
    """Return what waits for an applier, if the source restarted between the commits.

    Return an empty set where the commits show that the restart was before or after all of it, where
    the source has had one log only, and where the replica has applied none of it, or no log has
    what it applied last: every new server was started once.
    """
    source, replica = servers[edge.source], servers[edge.replica]
    waiting, applied = _waiting(edge, source=source, replica=replica), _applied(source, replica)
    newest, started_at = commit_on(source, _newest(waiting)), source.started_at
    if not applied or not waiting or started_at is None:
        return GtidSet()
    if newest is None and _newest(waiting) <= source.logged:
        return GtidSet()  # it was not read
    if newest is not None and newest.committed_at < started_at - START_SLACK:
        return GtidSet()
    last = commit_on(source, _newest(applied)) or commit_on(replica, _newest(applied))
    if last is None and not _newest(applied) <= source.logged:
        return GtidSet()
    if last is not None and last.committed_at > started_at + START_SLACK:
        return GtidSet()
    if not source.gtid_purged and len(source.binary_logs or ()) == 1:
        return GtidSet()  # each restart begins another log
    return waiting


def _newest(gtids: GtidSet) -> GtidSet:
    return GtidSet.union_of(list(ends_of(gtids))[-1:])


def _applied(source: ServerSnapshot, replica: ServerSnapshot) -> GtidSet:
    assert source.server_uuid is not None, "only servers that were read are linked"
    own = (source.gtid_executed or GtidSet()).from_uuid(source.server_uuid)
    return own & (replica.gtid_executed or GtidSet())


def _waiting(edge: Edge, *, source: ServerSnapshot, replica: ServerSnapshot) -> GtidSet:
    assert source.server_uuid is not None, "only servers that were read are linked"
    if not _may_precede_start(edge.channel, source):
        return GtidSet()
    own = (source.gtid_executed or GtidSet()).from_uuid(source.server_uuid)
    return (edge.channel.gtid_retrieved & own) - (replica.gtid_executed or GtidSet())


def _may_precede_start(channel: ChannelSnapshot, source: ServerSnapshot) -> bool:
    """Return whether what waits may have been received before the source's last restart."""
    lag, uptime = channel.lag_seconds, source.uptime_seconds
    if channel.applier is ThreadState.STOPPED or lag is None or uptime is None:
        return True
    return lag < 0 or lag + START_SLACK.total_seconds() >= uptime


def commit_on(server: ServerSnapshot, gtid: GtidSet) -> CommitRecord | None:
    """Return what the log of a server shows of one GTID; None if it was not read."""
    return None if server.history_evidence is None else server.history_evidence.commit_of(gtid)


def shows_two_commits(ours: CommitRecord | None, theirs: CommitRecord | None) -> bool:
    """Return whether two records show two different commits."""
    if ours is None or theirs is None:
        return False
    is_timed = ours.is_exact and theirs.is_exact
    return ours.server_id != theirs.server_id or (
        is_timed and ours.committed_at != theirs.committed_at
    )

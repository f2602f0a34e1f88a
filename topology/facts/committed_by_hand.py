"""GTIDs of other servers that a session of a replica committed (gtid_next), as two logs show.

How it works
------------
An operator skips a transaction with an empty one, and uses a wrong number. The applier of b stopped
before A:8, and the operator commits A:9:

    a   A:1-10
    b   A:1-7:9, received A:1-10, applier stopped

The sets look like a gap that parallel workers left (H2), and like a source that lost A:9 and reused
it. The logs separate the three, because an applier logs a transaction with the server_id and the
time of its first commit, and a session with the server_id of its own server:

    in the log of b                                A:9 was
    another server_id than that of b               applied by a worker, so A:8 is a gap of workers
    the server_id of b, and on a another commit    committed by hand: A:8 is the next to be applied

The applier skips a GTID that was committed by hand: the replica never gets what the source has
under it (E4). What is below decides whether that is all. If it is one commit on both servers, then
the histories agreed until the session. If it is two commits, then the source has lost or reused
GTIDs as well (other_versions.py).

An operator may also commit empty transactions for all that waits: nothing is above a gap then, and
the sets of both servers are equal. While the applier is before them, its position in the log of the
source shows that it has not applied the newest that the replica has. So these are looked up as
well, and searched for (questions/log_searches.py). What is before the position did not wait: a
repair may have committed it empty, because its rows are there.

Only an applier that is stopped, or that SOURCE_DELAY holds back, leaves these questions, so only
then the logs are read. Once the applier has passed them, only a comparison of contents shows it.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from gtid import GtidSet
from topology.facts.channel_places import place_behind_receiver
from topology.facts.graph import Edge, build_graph
from topology.facts.other_versions import commit_on, given_again, is_stopped, shows_two_commits
from topology.readings.history_evidence import CommitRecord, samples_of_gap
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot, ThreadState

# Of each TSID: how many transactions are looked up below a gap, or of the newest that are done.
BELOW_MAX: Final = 4


def asked_of_logs(edge: Edge, *, servers: Mapping[str, ServerSnapshot]) -> GtidSet:
    """Return which transactions both logs are asked for; empty if there is no question."""
    return around_gaps(edge, servers=servers) | newest_done(edge, servers=servers)


def newest_done(edge: Edge, *, servers: Mapping[str, ServerSnapshot]) -> GtidSet:
    """Return the newest that the replica has logged of what a held back applier received.

    Empty unless the applier is before what its receiver has read: otherwise it has applied them, or
    passed them.
    """
    channel, replica = edge.channel, servers[edge.replica]
    is_held_back = (
        channel.applier is ThreadState.STOPPED or channel.delay_remaining_seconds is not None
    )
    if not is_held_back or place_behind_receiver(channel) is None or replica.server_uuid is None:
        return GtidSet()
    done = channel.gtid_retrieved & replica.logged & servers[edge.source].logged
    done = done.without_uuid(replica.server_uuid)
    return GtidSet.union_of(_newest(done.from_tsid(tsid)) for tsid in done.tsids)


def around_gaps(edge: Edge, *, servers: Mapping[str, ServerSnapshot]) -> GtidSet:
    """Return which transactions both logs are asked for: above what waits, and just below it.

    Above it, all that the replica has logged; of a long range both ends. Without any there is no
    question.
    """
    if not (is_stopped(edge.channel) or edge.channel.applier is ThreadState.STOPPED):
        return GtidSet()
    above, below = _sides(edge, servers=servers)
    return samples_of_gap(above) | below if above else GtidSet()


def committed_by_hand(edge: Edge, *, servers: Mapping[str, ServerSnapshot]) -> GtidSet:
    """Return which of these the replica committed itself, and the source otherwise."""
    own_id = servers[edge.replica].server_id
    return GtidSet.union_of(
        gtid
        for gtid, ours, theirs in _read(edge, servers=servers)
        if own_id is not None
        and ours.server_id == own_id != theirs.server_id
        # A replayed binary log keeps the time of the first commit, and not the server_id.
        and not (ours.is_exact and theirs.is_exact and ours.committed_at == theirs.committed_at)
    )


def made_while_waiting(edge: Edge, *, servers: Mapping[str, ServerSnapshot]) -> GtidSet:
    """Return which of the newest a session committed after the source had.

    They waited then, if the applier is before them (`EdgeFacts.ahead`). What a session committed
    before the source was no answer to what waits (H7, E3): once the source has reached that GTID,
    contents are compared (questions/contents_to_compare.py).
    """
    newest = newest_done(edge, servers=servers) & committed_by_hand(edge, servers=servers)
    return newest - GtidSet.union_of(
        gtid
        for gtid, ours, theirs in _read(edge, servers=servers)
        if ours.committed_at < theirs.committed_at
    )


def applied_above(edge: Edge, *, servers: Mapping[str, ServerSnapshot]) -> GtidSet:
    """Return which of the transactions above a gap an applier has committed, as the log shows."""
    replica = servers[edge.replica]
    above, _ = _sides(edge, servers=servers)
    if replica.history_evidence is None or replica.server_id is None:
        return GtidSet()
    return GtidSet.union_of(
        record.gtid
        for record in replica.history_evidence.commits
        if record.gtid <= above and record.server_id != replica.server_id
    )


def only_by_hand_above(
    edge: Edge, gap: GtidSet, *, servers: Mapping[str, ServerSnapshot]
) -> GtidSet:
    """Return the part of a gap above which the replica has nothing but what a session committed."""
    executed = servers[edge.replica].gtid_executed or GtidSet()
    return gap - (executed - committed_by_hand(edge, servers=servers)).filled()


def explains_other_versions(edge: Edge, *, servers: Mapping[str, ServerSnapshot]) -> bool:
    """Return whether the two logs differ only in commits by hand, as far as they were read.

    A transaction below them must be one commit on both servers.
    """
    by_hand = committed_by_hand(edge, servers=servers)
    if not by_hand or not given_again(edge, servers=servers) <= by_hand:
        return False
    numbers = {tsid: start for tsid, start, _ in reversed([*by_hand.intervals()])}
    anchored = set()
    for gtid, ours, theirs in _read(edge, servers=servers):
        if gtid <= by_hand:
            continue
        if shows_two_commits(ours, theirs):
            return False
        [(tsid, number, _)] = gtid.intervals()
        if number < numbers.get(tsid, 0):
            anchored.add(tsid)
    return anchored == numbers.keys()


def source_reused(edge: Edge, *, servers: Mapping[str, ServerSnapshot]) -> bool:
    """Return whether logs show two commits under a GTID of the source, none made by the replica."""
    own_id, uuid = servers[edge.replica].server_id, servers[edge.source].server_uuid
    return any(
        shows_two_commits(ours, theirs) and own_id is not None and ours.server_id != own_id
        for gtid, ours, theirs in _read(edge, servers=servers)
        if gtid.uuids == (uuid,)
    )


def every_by_hand(snapshot: ClusterSnapshot) -> GtidSet:
    """Return all such GTIDs of a cluster, so that their contents are compared."""
    servers = {server.name: server for server in snapshot.last}
    edges = build_graph(snapshot).edges
    return GtidSet.union_of(committed_by_hand(edge, servers=servers) for edge in edges)


def _sides(edge: Edge, *, servers: Mapping[str, ServerSnapshot]) -> tuple[GtidSet, GtidSet]:
    """Return what a replica has logged above what waits, and the newest that both have below it."""
    source, replica = servers[edge.source], servers[edge.replica]
    logged, executed = replica.logged, replica.gtid_executed or GtidSet()
    waiting = edge.channel.gtid_retrieved - executed
    if replica.server_uuid is not None:  # its own never come back to it
        waiting = waiting.without_uuid(replica.server_uuid)
        logged = logged.without_uuid(replica.server_uuid)
    lowest = {tsid: start for tsid, start, _ in reversed([*waiting.intervals()])}
    above, below = GtidSet(), GtidSet()
    for tsid, start in lowest.items():
        of_tsid = logged.from_tsid(tsid)
        until = GtidSet.from_intervals([(tsid, 1, start)]) if start > 1 else GtidSet()
        above |= of_tsid - until
        below |= _newest(source.logged & of_tsid & until)
    return above, below


def _newest(of_tsid: GtidSet) -> GtidSet:
    """Return the last few GTIDs of a set of one TSID."""
    return of_tsid - of_tsid.first(max(of_tsid.gtid_count - BELOW_MAX, 0))


def _read(
    edge: Edge, *, servers: Mapping[str, ServerSnapshot]
) -> Iterator[tuple[GtidSet, CommitRecord, CommitRecord]]:
    """Yield what both logs show of a transaction that is around a gap."""
    source, replica = servers[edge.source], servers[edge.replica]
    if source.history_evidence is None or replica.history_evidence is None:
        return
    wanted = asked_of_logs(edge, servers=servers)
    for record in replica.history_evidence.commits if wanted else ():
        theirs = commit_on(source, record.gtid)
        if record.gtid <= wanted and theirs is not None:
            yield record.gtid, record, theirs

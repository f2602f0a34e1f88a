"""In which order a source logged transactions of other servers, compared with what a replica has.

How it works
------------
A server logs its own transactions in ascending GNO order, and received ones in the order in which
its applier committed them. So a gap in what a replica has of a third server proves nothing alone:
with parallel workers the source may have logged a:7 before a:6. The source's log has both commit
times, of the last transaction of the gap and of the one that follows it
(immediate_commit_timestamp, 8.0.1 and later). If the gap was logged first, and the replica commits
in the order of what it receives, the replica has passed the gap.

    a fails, b is promoted. c skipped a:3 before, has a:4-9, and now receives a:3 from b

This holds only where no other channel of the replica can have delivered the later one. Before 8.0.1
a log has no such times, and nothing is concluded.
"""

from collections.abc import Iterator

from gtid import GtidSet
from topology.facts.applier_workers import commits_in_order
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.edge_facts import EdgeFacts
from topology.facts.memberships import group_uuids
from topology.readings.history_evidence import CommitRecord, intervals_of
from topology.readings.snapshot import ServerSnapshot

_GAPS_MAX = 8  # looked up in the log: a skipped gap is one or two


def gaps_of_others(facts: ClusterFacts, edge: EdgeFacts) -> GtidSet:
    """Return the missing GTIDs of servers other than the source, below what the replica has.

    Return an empty set where gaps are expected: a parallel applier without commit order, a group.
    """
    source, replica = facts.last[edge.source], facts.last[edge.replica]
    if source.server_uuid is None or not commits_in_order(replica):
        return GtidSet()
    absent = (edge.expected | edge.queued_below).without_uuid(source.server_uuid)
    for uuid in sorted(group_uuids(facts.last.values())):
        absent = absent.without_uuid(uuid)
    return absent & brought_by(edge, replica).filled()


def order_samples(facts: ClusterFacts, edge: EdgeFacts) -> GtidSet:
    """Return the last transaction of each gap, and the one that follows it."""
    return GtidSet.union_of(each for pair in _pairs(facts, edge) for each in pair[1:])


def logged_before(facts: ClusterFacts, edge: EdgeFacts) -> GtidSet:
    """Return the gaps that the source logged before what the replica already has."""
    return GtidSet.union_of(
        gap
        for gap, last, following in _pairs(facts, edge)
        if _is_before(_record(facts, edge, last), _record(facts, edge, following))
    )


def _pairs(facts: ClusterFacts, edge: EdgeFacts) -> Iterator[tuple[GtidSet, GtidSet, GtidSet]]:
    replica = facts.last[edge.replica]
    gaps = gaps_of_others(facts, edge)
    for _, gap in zip(range(_GAPS_MAX), intervals_of(gaps), strict=False):
        [(tsid, _, end)] = gap.intervals()
        last = GtidSet.from_intervals([(tsid, end - 1, end)])
        following = GtidSet.from_intervals([(tsid, end, end + 1)])
        if following <= brought_by(edge, replica):
            yield gap, last, following


def brought_by(edge: EdgeFacts, replica: ServerSnapshot) -> GtidSet:
    """Return what the replica has that no other current channel has delivered."""
    executed, channel = replica.gtid_executed or GtidSet(), edge.channel
    others = [each for each in replica.channels or () if each.name != channel.name]
    if not others:
        return executed
    return (executed & channel.gtid_retrieved) - GtidSet.union_of(
        each.gtid_retrieved for each in others
    )


def received_by(edge: EdgeFacts, replica: ServerSnapshot) -> GtidSet:
    """Return what only this channel can have delivered.

    A server itself commits under its own UUID, even where a group has that UUID as its name.
    """
    brought = brought_by(edge, replica)
    return brought if replica.server_uuid is None else brought.without_uuid(replica.server_uuid)


def _record(facts: ClusterFacts, edge: EdgeFacts, gtid: GtidSet) -> CommitRecord | None:
    found = facts.last[edge.source].history_evidence
    return None if found is None else found.commit_of(gtid)


def _is_before(left: CommitRecord | None, right: CommitRecord | None) -> bool:
    if left is None or right is None or left.logged_at is None or right.logged_at is None:
        return False
    return left.logged_at < right.logged_at

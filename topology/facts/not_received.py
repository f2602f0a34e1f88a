"""GTIDs that a replica executed but did not receive at their place in its source's log.

How it works
------------
With auto-position, a source sends everything that the replica is missing, in the order of its log.
So a gap between two intervals of Retrieved_Gtid_Set contains GTIDs that the replica already had
when its receiver reached them. It executed these GTIDs by other means. The same is true of GTIDs
that it executed above the last interval. For example, a session set gtid_next to a GTID that is the
newest of its origin. The source has these GTIDs as well. So two different transactions may have one
GTID, and the sets never show it:

    a executes `SET gtid_next = 'B:20'; INSERT …` while its channel is stopped
    b writes B:1-30
    the channel of a: Retrieved_Gtid_Set B:1-19:21-30, gtid_executed of both servers B:1-30

* harmful: a session set gtid_next to the GTID and committed a transaction, or injected an empty
  one; a session that owned the GTID committed it.
* harmless: another channel, since removed, delivered the transaction; a script executed it again
  under its GTID; a backup or gtid_purged provided the rest of the history. A channel that still
  exists explains the gap by its own Retrieved_Gtid_Set. A server's own transactions never come back
  to it.

The sets do not distinguish these causes, so gtid-audit concludes nothing from them. It compares the
contents of these GTIDs and reports only a difference (E4). GTIDs that were executed before the
first interval, or after a RESET of the channel, are in no gap: a new relay log begins with an empty
set. What the replica has purged cannot be compared, and is reported as such (unlogged.py).
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from gtid import GNO_END, GtidSet, Tsid
from topology.facts.graph import Edge, build_graph
from topology.readings.snapshot import ClusterSnapshot, ReadServer, ServerSnapshot

# The maximum for one channel. A gap from gtid_next is small; one that another channel filled may be
# large.
GTIDS_MAX: Final = 1_000


def not_received(snapshot: ClusterSnapshot) -> GtidSet:
    """Return the GTIDs of a cluster that replicas executed and did not receive in log order."""
    first = {server.name: server for server in snapshot.first}
    return GtidSet.union_of(
        _not_received(edge, source=source, before=first[replica.name], replica=replica)
        for edge, source, replica in _by_sets(snapshot)
    )


def purged_instead(snapshot: ClusterSnapshot) -> dict[str, GtidSet]:
    """Return, by replica, what it did not receive in log order and has in gtid_purged.

    Its source has these GTIDs in its logs; the replica cannot show what it executed under them.
    """
    found: dict[str, GtidSet] = {}
    first = {server.name: server for server in snapshot.first}
    for edge, source, replica in _by_sets(snapshot):
        if not replica.gtid_purged:
            continue
        by_other_means = _by_other_means(edge, before=first[replica.name], replica=replica)
        instead = by_other_means & source.logged & replica.gtid_purged
        found[edge.replica] = found.get(edge.replica, GtidSet()) | instead
    return found


def _by_sets(snapshot: ClusterSnapshot) -> Iterator[tuple[Edge, ReadServer, ReadServer]]:
    """Yield the edges with auto-position, each with the last readings of its source and replica."""
    last = snapshot.last_read
    for edge in build_graph(snapshot).edges:
        if edge.channel.auto_position and {edge.source, edge.replica} <= last.keys():
            yield edge, last[edge.source], last[edge.replica]


def _not_received(
    edge: Edge, *, source: ReadServer, before: ServerSnapshot, replica: ReadServer
) -> GtidSet:
    by_other_means = _by_other_means(edge, before=before, replica=replica)
    return (by_other_means & source.logged & replica.logged).first(GTIDS_MAX)


def _by_other_means(edge: Edge, *, before: ServerSnapshot, replica: ReadServer) -> GtidSet:
    """Return what a replica executed, or will pass, without receiving it from a channel."""
    retrieved = edge.channel.gtid_retrieved
    # Executed in the first reading and not received in the last: the channel did not deliver it.
    ahead = (before.gtid_executed or GtidSet()) & _behind(retrieved)
    return _own_way(edge, replica, _holes(retrieved) | ahead)


def _own_way(edge: Edge, replica: ReadServer, holes: GtidSet) -> GtidSet:
    """Return what a channel did not receive in log order and no other channel explains."""
    holes = holes.without_uuid(replica.server_uuid)
    for channel in replica.channels or ():
        if channel.name != edge.channel.name:
            holes -= channel.gtid_retrieved
    return holes


def _holes(gtid_set: GtidSet) -> GtidSet:
    """Return the gaps between the intervals of a set, by TSID."""
    holes: list[tuple[Tsid, int, int]] = [
        (tsid, end, start)
        for (tsid, _, end), (other, start, _) in pairwise(gtid_set.intervals())
        if tsid == other
    ]
    return GtidSet.from_intervals(holes)


def _behind(gtid_set: GtidSet) -> GtidSet:
    """Return all GTIDs above the highest of each TSID of a set."""
    highest = {tsid: end for tsid, _, end in gtid_set.intervals()}
    return GtidSet.from_intervals(
        (tsid, end, GNO_END) for tsid, end in highest.items() if end < GNO_END
    )

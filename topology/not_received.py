"""GTIDs that a replica executed and did not receive where its source has them in its log.

How it works
------------
With auto-position on, a source sends in the order of its log all that the replica does not have. So
a hole between two intervals of Retrieved_Gtid_Set is what the replica had when its receiver came
there: it executed these GTIDs by other means. So is what it executed behind the last interval: a
GTID made by hand that is the newest of its origin. The source has them as well. Two transactions
may stand behind one GTID then, and the sets never show it:

    a executes `SET gtid_next = 'B:20'; INSERT …` while its channel is stopped
    b writes B:1-30
    the channel of a: Retrieved_Gtid_Set B:1-19:21-30, gtid_executed of both servers B:1-30

* malign: a GTID made by hand; an empty transaction that was injected; a session that owned the GTID
  and committed it.
* benign: another channel, since removed, brought the transaction; a script did it again under its
  GTID; the rest of the history came by a backup or gtid_purged. A channel that still exists
  explains it by its own Retrieved_Gtid_Set, and a server's own transactions never come back to it.

The sets do not separate these, so nothing is concluded from them: the contents of these GTIDs are
compared, and only a difference is reported (E4). What was executed before the first interval, or
after a RESET of the channel, is in no hole: a new relay log begins with an empty set. What the
replica has purged cannot be compared, and is reported as such (unlogged.py).
"""

from itertools import pairwise
from typing import Final

from gtid import GNO_END, GtidSet, Tsid
from topology.graph import Edge, build_graph
from topology.snapshot import ClusterSnapshot, ServerSnapshot

# Of one channel: a hole made by hand is small, one that another channel filled may be large.
GTIDS_MAX: Final = 1_000


def not_received(snapshot: ClusterSnapshot) -> GtidSet:
    """Return the GTIDs of a cluster that replicas executed and did not receive in their place."""
    first = {server.name: server for server in snapshot.first}
    last = {server.name: server for server in snapshot.last}
    return GtidSet.union_of(
        _not_received(
            edge, source=last[edge.source], before=first[edge.replica], replica=last[edge.replica]
        ).first(GTIDS_MAX)
        for edge in build_graph(snapshot).edges
        if edge.channel.auto_position
        and last[edge.source].is_judgeable
        and last[edge.replica].is_judgeable
    )


def purged_instead(snapshot: ClusterSnapshot) -> dict[str, GtidSet]:
    """Return, by replica, what it did not receive in its place and has in gtid_purged.

    Its source has them in its logs; the replica cannot show what it executed under them.
    """
    last = {server.name: server for server in snapshot.last}
    found: dict[str, GtidSet] = {}
    for edge in build_graph(snapshot).edges:
        source, replica = last[edge.source], last[edge.replica]
        if edge.channel.auto_position and source.is_judgeable and replica.is_judgeable:
            holes = _own_way(edge, replica, _holes(edge.channel.gtid_retrieved))
            instead = holes & _logged(source) & (replica.gtid_purged or GtidSet())
            found[edge.replica] = found.get(edge.replica, GtidSet()) | instead
    return found


def _not_received(
    edge: Edge, *, source: ServerSnapshot, before: ServerSnapshot, replica: ServerSnapshot
) -> GtidSet:
    retrieved = edge.channel.gtid_retrieved
    # Executed in the first reading and not received in the last: it did not arrive in between.
    ahead = (before.gtid_executed or GtidSet()) & _behind(retrieved)
    own_way = _own_way(edge, replica, _holes(retrieved) | ahead)
    return own_way & _logged(source) & _logged(replica)


def _own_way(edge: Edge, replica: ServerSnapshot, holes: GtidSet) -> GtidSet:
    """Return what a channel did not receive in its place, and no other channel explains."""
    assert replica.server_uuid is not None, "only servers with all facts are compared"
    holes = holes.without_uuid(replica.server_uuid)
    for channel in replica.channels or ():
        if channel.name != edge.channel.name:
            holes -= channel.gtid_retrieved
    return holes


def _holes(gtid_set: GtidSet) -> GtidSet:
    """Return what is between the intervals of a set, by TSID."""
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


def _logged(server: ServerSnapshot) -> GtidSet:
    return (server.gtid_executed or GtidSet()) - (server.gtid_purged or GtidSet())

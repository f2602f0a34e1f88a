"""Which GTIDs a server declared executed while they waited in its relay log.

How it works
------------
RESET BINARY LOGS AND GTIDS keeps channels and their relay logs. If an operator then sets
gtid_purged to what the source has executed, it has more than the applier has applied:

    replica   received A:8-9, and its applier waits for SOURCE_DELAY before A:8
              RESET BINARY LOGS AND GTIDS; SET GLOBAL gtid_purged = 'A:1-9'
    sets      A:1-9 on both servers; nothing is missing, and nothing waits
    places    the applier is before A:8 in the log of the source

The applier passes A:8-9 without applying them, as what is executed already. Until it has passed
them, its position shows that. A restored dump or copy that has the rows looks the same, if the
channel was kept, so the result is `likely`.

1. `in_relay_log` returns what is in gtid_purged and may wait, from sets and positions only: the
   applier was behind its receiver in both readings, and the newest GTID of an origin that the
   channel received is in gtid_purged. On a healthy replica that is behind, the newest ones are not
   executed, and what is purged is older than what is in the logs.
2. A search in the log of the source (topology/questions/log_searches.py) separates what is after
   the applier's position. Workers execute transactions that are after it; these are in the log of
   the replica, and not in gtid_purged, unless it does not log what it applies.
"""

from collections.abc import Iterator
from typing import Final

from gtid import GtidSet, Tsid
from topology.facts.channel_places import place_behind_receiver
from topology.facts.graph import Edge, build_graph, same_link
from topology.readings.dialect import BINARY_LOG
from topology.readings.notable_settings import notable_values
from topology.readings.snapshot import ClusterSnapshot, LogPosition, ServerSnapshot

GTIDS_MAX: Final = 128  # the newest of an origin are searched for
_LOGS_NOT_ALL: Final = frozenset({"log_replica_updates", "log_bin", BINARY_LOG})


def in_relay_log(snapshot: ClusterSnapshot) -> Iterator[tuple[Edge, LogPosition, GtidSet]]:
    """Yield what may wait although it is in gtid_purged: by edge, with the applier's position."""
    first, last = {each.name: each for each in snapshot.first}, snapshot.last_read
    for edge in build_graph(snapshot).edges:
        if not {edge.source, edge.replica} <= last.keys():
            continue
        before = same_link(first[edge.replica], edge.channel)
        replica = last[edge.replica]
        if before is None or not _logs_all(replica):
            continue
        place = place_behind_receiver(before)
        if place is None or place_behind_receiver(edge.channel) is None:
            continue
        received = before.gtid_retrieved & edge.channel.gtid_retrieved
        purged = (first[edge.replica].gtid_purged or GtidSet()) & replica.gtid_purged
        done = (received & replica.gtid_executed).without_uuid(replica.server_uuid)
        newest = _newest(done, purged)
        if waits := newest & last[edge.source].logged:
            yield edge, place, waits


def _logs_all(replica: ServerSnapshot) -> bool:
    """Return whether a replica logs what it applies; if not, gtid_purged has all of that."""
    if replica.notable_settings is None:
        return False
    return not _LOGS_NOT_ALL & notable_values(replica.notable_settings).keys()


def _newest(done: GtidSet, purged: GtidSet) -> GtidSet:
    """Return the end of what is done and purged, of origins of which that is the newest GTID."""
    highest = {tsid: end - 1 for tsid, _, end in done.intervals()}
    parts: dict[Tsid, tuple[Tsid, int, int]] = {}
    for tsid, start, end in (done & purged).intervals():
        if end - 1 == highest[tsid]:
            parts[tsid] = (tsid, max(start, end - GTIDS_MAX), end)
    return GtidSet.from_intervals(parts.values())

"""Which transactions a channel has passed: searches in the log of its source.

A search asks the source for the missing transactions, in the order of its log, up to the position
of the channel. The channel has passed what ends at that position or before. The server sends the
first missing transaction, and nothing else if that lies after the position. So a replica that is
merely stopped costs one transaction. The position is the applier's for what is in the relay log and
for what a stopped receiver will request again. It is the receiver's for the rest. Both are from the
first reading: what lies before them was applied, or received, before the last reading. From the
last reading are two positions:

* of a receiver that is stopped: it continues there, and CHANGE REPLICATION SOURCE between the
  readings may have moved it.
* of an applier that was idle in the first reading, at the position of its receiver, for what had
  been received by then. A receiver that reconnects with auto-position begins again at the start of
  a file, and until the next heartbeat the position of an idle applier is there, too (see
  applier_movement.py). The position in the first reading then lies before transactions that the
  applier had passed long ago. In the last one it may lie after them again. Nothing of these was
  waiting in the first reading, so an applier that just applied one of them is no other explanation.

gtid-audit searches if the channel is stopped, or uses a file position. It searches if
sql_replica_skip_counter may skip (gtid_mode is not ON) or may have skipped (the applier did not
move). It searches if a crash may have left the applier's position after what the crash lost (before
8.0.17, relay_log_recovery off). And it searches if the replica's binary logs have no earlier
transaction of the same origin (a RESET, or a replica that has just been provisioned).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gtid import GtidSet
from topology.facts.applier_workers import is_without_work
from topology.facts.channel_places import logged_above, place_behind_receiver
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.committed_by_hand import newest_done
from topology.facts.declared_waiting import in_relay_log
from topology.facts.edge_facts import EdgeFacts
from topology.facts.graph import same_link
from topology.facts.reset_signs import has_earlier, logged_as_received
from topology.facts.skipping import can_have_skipped, crash_may_leave_place, may_skip
from topology.readings.snapshot import ChannelSnapshot, LogPosition, ThreadState


@dataclass(frozen=True, slots=True)
class Search:
    """Which of `wanted` are in a server's log before a position of a replica's channel."""

    replica: str
    channel: str
    place: LogPosition
    wanted: GtidSet


def searches_of(facts: ClusterFacts, edge: EdgeFacts) -> Iterator[Search]:
    """Yield the searches for one edge."""
    replica, channel = facts.last[edge.replica], edge.channel
    before = same_link(facts.first[edge.replica], channel)
    if before is None:
        return
    received = edge.queued_below | edge.queued_above
    # A gap in both readings may have been skipped under another gtid_mode than the current one.
    stays = bool(edge.queued_below & before.gtid_retrieved)
    absent = edge.expected if channel.auto_position else edge.expected | edge.bypassed
    is_stopped = ThreadState.STOPPED in (channel.receiver, channel.applier)
    if channel.applier is ThreadState.STOPPED:
        received |= edge.passed  # equal positions prove little: the receiver may have reconnected
        # Workers left a gap if they applied what is after the position, too (rules/crash_gaps.py).
        gap = received & (replica.gtid_executed or GtidSet()).filled()
        received |= logged_above(gap, replica, facts.last[edge.source])
    # For an applier that stands still, or that SOURCE_DELAY holds back, nothing else shows its
    # position. It may have skipped while gtid_mode permitted it. Before 5.7.6, changing gtid_mode
    # needs a restart.
    stays = stays or _stands(facts, edge) or crash_may_leave_place(replica)
    # A receiver that is not connected will request everything after the applier's position again.
    asks_again = channel.auto_position and channel.receiver is not ThreadState.RUNNING
    is_asked_of_applier = is_stopped or stays or may_skip(facts, edge.edge)
    kept = logged_as_received(replica)
    done = received & before.gtid_retrieved if _was_done(before, channel) else GtidSet()
    for gtids, place, is_asked in (
        (done, channel.applied_to, is_asked_of_applier),
        (received - done, before.applied_to, is_asked_of_applier),
        (
            absent,
            before.applied_to if asks_again else _read_to(before, channel),
            is_stopped or not channel.auto_position,
        ),
    ):
        if gtids and place is not None and (is_asked or not has_earlier(kept, gtids)):
            yield Search(replica.name, channel.name, place, gtids)


def searches_of_done(facts: ClusterFacts) -> Iterator[tuple[str, Search]]:
    """Yield, by source, what may wait in a relay log although the replica has executed it.

    It is in gtid_purged, or among the newest that a session may have committed.
    """
    for edge, place, waits in in_relay_log(facts.snapshot):
        if {edge.source, edge.replica} <= facts.fully_read.keys():
            yield edge.source, Search(edge.replica, edge.channel.name, place, waits)
    for each in facts.edges:
        newest = newest_done(each.edge, servers=facts.last)
        before = same_link(facts.first[each.replica], each.channel) if newest else None
        at = place_behind_receiver(before) if before is not None else None
        if at is not None:
            yield each.source, Search(each.replica, each.channel.name, at, newest)


def _stands(facts: ClusterFacts, edge: EdgeFacts) -> bool:
    replica, channel = facts.last[edge.replica], edge.channel
    return can_have_skipped(replica) and not facts.appliers[replica.name, channel.name].moved


def _was_done(before: ChannelSnapshot, channel: ChannelSnapshot) -> bool:
    """Return whether an applier was idle in the first reading, at the position of its receiver.

    And whether the position has moved on since: only then does the last reading show more.
    """
    first, last = before.applied_to, channel.applied_to
    is_at_end = first is not None and first == before.received_to and is_without_work(before)
    return is_at_end and last is not None and first is not None and first < last


def _read_to(before: ChannelSnapshot, channel: ChannelSnapshot) -> LogPosition | None:
    """Return the position up to which the receiver had read, if it is still the same connection.

    For a stopped receiver, return the position at which it continues.
    """
    if channel.receiver is ThreadState.STOPPED:
        return channel.received_to
    is_the_same = before.receiver is channel.receiver and (
        before.received_to is not None
        and channel.received_to is not None
        and before.received_to <= channel.received_to
    )
    return before.received_to if is_the_same else None

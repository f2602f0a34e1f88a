"""What a channel's positions in its source's log show about transactions missing on the replica.

1. The positions of every channel are known. The position of a transaction in the log is known only
   as far as the log was searched (topology/questions/log_questions.py). Otherwise the end of the
   log is used.
2. A position in a former log of the source shows nothing: see topology/facts/former_logs.py.
"""

from gtid import GNO_END, GtidSet, Tsid
from topology.facts.applier_workers import is_without_work
from topology.facts.former_logs import sign_of_reset_source
from topology.facts.graph import Edge
from topology.readings.history_evidence import samples_of_gap
from topology.readings.read_once import is_read_once
from topology.readings.snapshot import (
    ChannelSnapshot,
    LogPosition,
    ReadServer,
    ServerSnapshot,
    ThreadState,
)


def searched(edge: Edge, *, source: ReadServer, replica: ReadServer) -> tuple[GtidSet, GtidSet]:
    """Return what the source's log shows before the channel's position, and what it shows after it.

    Return empty sets if the position may be in a former log of the source. `source` is its last
    reading, `replica` the first reading of the replica.
    """
    if source.history_evidence is None or sign_of_reset_source(edge, before=replica, source=source):
        return GtidSet(), GtidSet()
    # The applier's position is after the transaction that it applied last. If no log of the source
    # has that transaction, log file numbers may have begun again (a clone replaced the source).
    # Then the position may be one from before that.
    if _is_before_its_logs(edge, replica=replica, source=source):
        return GtidSet(), GtidSet()
    found = [
        search
        for search in source.history_evidence.searches
        if (search.replica, search.channel) == (edge.replica, edge.channel.name)
    ]
    before = GtidSet.union_of(search.before for search in found)
    return before, GtidSet.union_of(search.wanted for search in found) - before


def place_behind_receiver(channel: ChannelSnapshot) -> LogPosition | None:
    """Return the applier's position, if it is before that of its receiver.

    Workers write theirs every 300 ms: one that is idle has nothing left.
    """
    applied, received = channel.applied_to, channel.received_to
    if applied is None or received is None or not applied < received:
        return None
    return None if is_without_work(channel) else applied


def _is_before_its_logs(edge: Edge, *, replica: ReadServer, source: ReadServer) -> bool:
    """Return whether no log of the source has the transaction that the applier applied last.

    `source` is the last reading of the source, `replica` the first reading of the replica. A
    transaction that the applier applied since may not have been committed when the source was read
    last. Of those, only purged GTIDs count.
    """
    held = source.logged | source.gtid_owned
    earlier = (each for each in replica.channels or () if each.name == edge.channel.name)
    if any(not each.last_applied <= held for each in earlier):
        return True
    return bool(edge.channel.last_applied) and edge.channel.last_applied <= source.gtid_purged


def logged_above(gap: GtidSet, replica: ServerSnapshot, source: ServerSnapshot) -> GtidSet:
    """Return what both servers have logged above a gap, by GNO; of a long range both ends."""
    lowest = {tsid: start for tsid, start, _ in reversed([*gap.intervals()])}
    above = GtidSet.from_intervals((tsid, start, GNO_END) for tsid, start in lowest.items())
    return samples_of_gap(above & replica.logged & source.logged)


def bypassed_by(
    absent: GtidSet,
    *,
    edge: Edge,
    source: ReadServer,
    before: GtidSet,
    ahead: GtidSet,
    is_former: bool,
) -> tuple[GtidSet, bool]:
    """Return what the receiver has gone past, and whether that is proved.

    `before` and `ahead` are what the source's log shows before and after the channel's position.
    The log decides, where it was read. `is_former`: the source began its history again, and a
    position at which auto-position stopped is in the former log.

    The source's log position was read after its gtid_executed, so all of `absent` lies before it.
    If a receiver has read that far and GTIDs are still missing, this connection will never send
    them. Before that position, a file position decides only about the source's own transactions.
    Their GNOs ascend in the order of its log, so a GNO below the highest that arrived on this
    channel was passed. GTIDs that the source itself received may be in its log in any order.
    """
    channel = edge.channel
    if channel.receiver is not ThreadState.RUNNING and channel.auto_position:
        # The next connection requests exactly these. But an applier whose position is at the end of
        # the source's log has passed them before: the server executed and forgot them (RESET BINARY
        # LOGS AND GTIDS), or the applier skipped them.
        was_behind = (
            not is_former
            and not (channel.applier_errno or channel.applier_error)
            and channel.applied_to is not None
            and source.log_end is not None
            and channel.applied_to >= source.log_end
        )
        return (absent if was_behind else absent & before), False
    has_read_past = (
        channel.received_to is not None
        and source.log_end is not None
        and channel.received_to >= source.log_end
    )
    if has_read_past:
        return absent, True
    if channel.auto_position:
        return absent & before, False
    below = absent & _below_received(channel.gtid_retrieved, source) - ahead
    return below | (absent & before), below <= before


def still_purged(purged: GtidSet, edge: Edge, replica: ReadServer) -> GtidSet:
    """Return what a replica did not fetch in time: not what it may have fetched since it was read.

    What lies in a gap was passed. A running receiver that was read once may have the rest now.
    """
    if not is_read_once(replica) or edge.channel.receiver is ThreadState.STOPPED:
        return purged
    return purged & (replica.gtid_executed | replica.gtid_retrieved).filled()


def _below_received(received: GtidSet, source: ReadServer) -> GtidSet:
    """Return what the source logged before the last of its own GTIDs that a receiver has.

    This holds only within one run of its own GTIDs. A GTID that was set with gtid_next is in the
    log before lower ones, and an isolated GTID shows nothing about the GNOs below it.
    """
    below: list[tuple[Tsid, int, int]] = []
    for tsid, start, end in source.gtid_executed.intervals():
        if tsid.uuid == source.server_uuid:
            run = GtidSet.from_intervals([(tsid, start, end)])
            highest = (received & run).highest(tsid)
            if highest is not None:
                below.append((tsid, start, highest))
    return GtidSet.from_intervals(below)

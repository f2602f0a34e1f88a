"""What the places of a channel in its source's log show of transactions that the replica misses.

1. The places are known of every channel. Where a transaction lies in the log is known only as far
   as the log was searched (topology/log_questions.py); otherwise the end of the log stands for it.
2. A place in a former log of the source shows nothing: topology/former_logs.py.
"""

from collections.abc import Mapping

from gtid import GtidSet, Tsid
from topology.former_logs import sign_of_reset_source
from topology.graph import Edge
from topology.snapshot import ServerSnapshot, ThreadState


def searched(
    edge: Edge, *, first: Mapping[str, ServerSnapshot], last: Mapping[str, ServerSnapshot]
) -> tuple[GtidSet, GtidSet]:
    """Return what the source's log shows before the channel's place, and what it shows beyond it.

    Nothing, where the place may be one of a former log of the source.
    """
    source, replica = last[edge.source], first[edge.replica]
    if source.history_evidence is None or sign_of_reset_source(edge, before=replica, source=source):
        return GtidSet(), GtidSet()
    # The applier's place is behind what it applied last. If no log of the source has that any more,
    # the place may be one before the log numbers began again (a clone replaced the source).
    if _is_before_its_logs(edge, replica=replica, source=source):
        return GtidSet(), GtidSet()
    found = [
        search
        for search in source.history_evidence.searches
        if (search.replica, search.channel) == (edge.replica, edge.channel.name)
    ]
    before = GtidSet.union_of(search.before for search in found)
    return before, GtidSet.union_of(search.wanted for search in found) - before


def _is_before_its_logs(edge: Edge, *, replica: ServerSnapshot, source: ServerSnapshot) -> bool:
    """Return whether what the applier applied last is in no log of the source.

    `source` is its last reading, `replica` its first. What the applier applied since may not have
    been committed when the source was read last: of that only purged GTIDs count.
    """
    purged = source.gtid_purged or GtidSet()
    held = ((source.gtid_executed or GtidSet()) - purged) | (source.gtid_owned or GtidSet())
    earlier = (each for each in replica.channels or () if each.name == edge.channel.name)
    if any(not each.last_applied <= held for each in earlier):
        return True
    return bool(edge.channel.last_applied) and edge.channel.last_applied <= purged


def bypassed_by(
    absent: GtidSet,
    *,
    edge: Edge,
    source: ServerSnapshot,
    before: GtidSet,
    ahead: GtidSet,
    is_former: bool,
) -> tuple[GtidSet, bool]:
    """Return what the receiver has gone past, and whether that is proved.

    `before` and `ahead` are what the source's log shows before the channel's place, and beyond it:
    the log decides, where it was read. `is_former`: the source began its history again, and a place
    where auto-position stopped is one of the former log.

    The source's log position was read after its gtid_executed, so all of `absent` lies before it. A
    receiver that has read that far and still lacks them will never get them on this connection.
    Short of that, a file position tells for the source's own transactions only: their numbers are
    drawn in the order of its log, so one below the highest that came by this channel is past. What
    the source itself received may be in its log in any order.
    """
    channel = edge.channel
    if channel.receiver is not ThreadState.RUNNING and channel.auto_position:
        # The next connection asks for exactly these. But an applier whose place is at the end of
        # the source's log has been behind them before: executed and forgotten (RESET BINARY LOGS
        # AND GTIDS), or skipped.
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


def _below_received(received: GtidSet, source: ServerSnapshot) -> GtidSet:
    """Return what the source logged before the last of its own that a receiver has.

    Only within one run of its own GTIDs: one that was given by hand is in the log before lower
    ones, and an isolated GTID shows nothing of the numbers below it.
    """
    assert source.server_uuid is not None, "only judgeable servers have edge facts"
    below: list[tuple[Tsid, int, int]] = []
    for tsid, start, end in (source.gtid_executed or GtidSet()).intervals():
        if tsid.uuid == source.server_uuid:
            run = GtidSet.from_intervals([(tsid, start, end)])
            highest = (received & run).highest(tsid)
            if highest is not None and highest > start:
                below.append((tsid, start, highest))
    return GtidSet.from_intervals(below)

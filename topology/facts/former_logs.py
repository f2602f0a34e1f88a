"""Whether a receiver's file position belongs to the current binary logs of its source.

RESET BINARY LOGS AND GTIDS restarts the log file numbers, so positions before and after it cannot
be compared. A running receiver has read in the current log, and only up to the end of that log. A
stopped receiver may have stopped before the reset. Its position proves nothing if the source
refused it, or if the source no longer has all of its own transactions. One case is not detected: an
operator stopped the receiver, and the source was reset and has reached the same file numbers again.

With auto-position a receiver does not request a position. But a receiver that stays connected while
its source is reset waits at a position that the new log does not have, and receives nothing more.
No error reports this until the new log has grown to that position. The source then refuses with an
I/O error (tried on 9.7.4). A source of 5.6.24 with another file number refuses at its next commit
(1236). With the same number it sends nothing, as long as its heartbeats keep the connection; while
it commits more often than these are due, the receiver connects again after replica_net_timeout.
"""

from collections.abc import Iterator

from topology.catalogue.error_texts import row_of
from topology.facts.graph import Edge
from topology.readings.snapshot import LogPosition, ReadServer, ThreadState


def sign_of_former_log(edge: Edge, *, before: ReadServer, source: ReadServer) -> str:
    """Return the evidence that a file position may be in a former log of the source; "" if none.

    `source` is its last reading, `before` the replica's first. So a position after the source's end
    of log cannot come from the order of the readings.
    """
    channel = edge.channel
    if channel.auto_position or channel.received_to is None:
        return ""
    if channel.receiver is ThreadState.STOPPED and channel.receiver_errno:
        return _beyond_end(edge, before=before, source=source) or (
            f"the receiver stopped with error {channel.receiver_errno}"
        )
    return sign_of_reset_source(edge, before=before, source=source)


def sign_of_reset_source(edge: Edge, *, before: ReadServer, source: ReadServer) -> str:
    """Return the evidence that the position is of an earlier log or server; "" if there is none."""
    channel = edge.channel
    if edge.doubt:
        return "the channel may have received from another server"
    beyond = _beyond_end(edge, before=before, source=source)
    if beyond or channel.receiver is ThreadState.RUNNING:
        return beyond
    refused = row_of(channel.receiver_error)
    if refused is not None and refused.code == "E3":
        return "the source had fewer of its own transactions than the replica"
    held = before.gtid_executed | channel.gtid_retrieved
    gone = held.from_uuid(source.server_uuid) - source.gtid_executed - source.gtid_owned
    return "the source does not have all of its own transactions" if gone else ""


def waits_in_former_log(edge: Edge, *, before: ReadServer, source: ReadServer) -> bool:
    """Return whether a connected receiver waits at a position after the end of its source's log.

    `source` is its last reading, `before` the replica's first.
    """
    return edge.channel.auto_position and waits_beyond_end(edge, before=before, source=source)


def waits_beyond_end(edge: Edge, *, before: ReadServer, source: ReadServer) -> bool:
    """Return the same for a channel by file position as well.

    If something is missing on that one, it may have gone past it before the reset (H1).
    """
    channel, end = edge.channel, source.log_end
    if channel.receiver is not ThreadState.RUNNING or end is None:
        return False
    places = [
        other.received_to
        for other in before.channels or ()
        if (other.name, other.source_uuid) == (channel.name, channel.source_uuid)
    ]
    return (
        places == [channel.received_to]
        and channel.received_to is not None
        and channel.received_to > end
    )


def places_beyond_end(
    edge: Edge, *, before: ReadServer, source: ReadServer
) -> Iterator[LogPosition]:
    """Yield the positions of a channel that its source's log does not have.

    `source` is its last reading, `before` the replica's first.
    """
    channel, end = edge.channel, source.log_end
    for other in before.channels or ():
        is_same = (other.name, other.source_uuid) == (channel.name, channel.source_uuid)
        if is_same and end is not None:
            for place in (other.received_to, other.applied_to):
                if place is not None and place > end:
                    yield place


def _beyond_end(edge: Edge, *, before: ReadServer, source: ReadServer) -> str:
    is_beyond = any(places_beyond_end(edge, before=before, source=source))
    return f"the source's log ends at {source.log_end}" if is_beyond else ""

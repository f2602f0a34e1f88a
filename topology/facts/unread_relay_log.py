"""A running applier that reads nothing because the relay log file at its position does not exist.

This affects 8.0 and later. No thread reports it: both run without an error. A server of 5.6.24
continues with the next file.
"""

from typing import Final

from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot
from topology.readings.worker import IDLE_WORKER

_LOG_HEADER_BYTES: Final = 4  # BIN_LOG_HEADER_SIZE: the first event of a file begins after them


def has_had_no_work(channel: ChannelSnapshot) -> bool:
    """Return whether no worker has had a transaction since it started although some wait."""
    return bool(channel.workers) and all(
        IDLE_WORKER.match(worker.state)
        and not (worker.applying or worker.last_applied)
        and worker.applying_seconds is not None
        for worker in channel.workers
    )


def seconds_without_work(
    channel: ChannelSnapshot, before: ChannelSnapshot | None, server: ServerSnapshot
) -> int | None:
    """Return for how long an applier has started none of the waiting transactions, or None.

    A coordinator whose relay log file does not exist looks for it continuously. Its state changes
    and its time is always 0 (seen on 9.7.4). Only one fact lasts: its workers have had no work
    since they started. That is also true of an applier that has just received its first
    transaction. So a second fact is required. Either the applier's position is the start of a file
    (it has not even read the header), or the newest waiting transaction was committed that long
    ago.
    """
    if before is None or not (has_had_no_work(before) and has_had_no_work(channel)):
        return None
    seconds = min(worker.applying_seconds or 0 for worker in channel.workers)
    place, committed_at = channel.relay_applied_to, channel.last_queued_committed_at
    if place is not None and place.position <= _LOG_HEADER_BYTES:
        return seconds
    if committed_at is None or server.server_clock is None:
        return None
    return max(0, min(seconds, int((server.server_clock - committed_at).total_seconds())))

"""What the workers of an applier execute, and which part of the source's log they have passed.

1. A worker is idle, or executes a transaction. An applier is without work if it has read everything
   received and every worker is idle.
2. The coordinator hands out transactions in the order of the relay log. A GNO that no worker holds,
   and that is below the GNO of each busy worker, was handed out earlier. This requires that the
   source logged the GNOs in ascending order.
"""

import re
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from gtid import GtidSet, Tsid
from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot
from topology.readings.worker import IDLE_WORKER, WorkerSnapshot

_NOTHING: Final = GtidSet()
# "Slave has read all relay log; waiting for the slave I/O thread to update it" (5.6), "Replica has
# read all relay log; waiting for more updates" (8.0.26 and later), and the forms between.
_HAS_READ_ALL = re.compile("has read all relay log", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SourceLog:
    """What the log of a channel's source had in the first reading; empty if it was not read.

    `in_order` also has what the source itself committed since. A worker that is there has passed
    what the source committed before.
    """

    in_order: GtidSet = _NOTHING  # logged in ascending GNO order
    out_of_order: GtidSet = _NOTHING  # perhaps logged in another order
    purged: GtidSet = _NOTHING  # was in the log before everything that the log still has
    ascending: UUID | None = None  # the source's own server_uuid, if its numbers ascend in the log

    def and_received(self, received: GtidSet) -> "SourceLog":
        """Return this log with what a receiver has received from it since the first reading.

        A busy source is at higher numbers by the time its replica is read.
        """
        if self.ascending is None or not received:
            return self
        return replace(self, in_order=self.in_order | received.from_uuid(self.ascending))


def is_without_work(channel: ChannelSnapshot) -> bool:
    """Return whether the applier has read everything received and no worker is busy."""
    return has_read_all(channel.applier_state) and all(map(worker_is_idle, channel.workers))


def has_read_all(state: str) -> bool:
    """Return whether a state shows that nothing is left in the relay log."""
    return bool(_HAS_READ_ALL.search(state))


def worker_is_idle(worker: WorkerSnapshot) -> bool:
    """Return whether a worker has no transaction and waits for one."""
    return not worker.applying and bool(
        IDLE_WORKER.match(worker.state) or has_read_all(worker.state)
    )


def states_are_seen(channel: ChannelSnapshot) -> bool:
    """Return whether the state of every worker was read; if not, no worker is known to be busy."""
    return all(worker.state for worker in channel.workers)


def commits_in_order(server: ServerSnapshot, channel: ChannelSnapshot | None = None) -> bool:
    """Return whether the channel's applier commits in receive order; without one, any applier."""
    if channel is not None and channel.workers:
        is_single = len(channel.workers) == 1
    else:
        is_single = server.setting("replica_parallel_workers") in ("0", "1")
    return is_single or server.setting("replica_preserve_commit_order") in ("ON", "1")


def behind_applier(channel: ChannelSnapshot, log: SourceLog) -> GtidSet:
    """Return what the workers of one reading have passed of what the source's log had first."""
    return behind_workers(channel, log.in_order) | behind_kept(channel, log)


def behind_workers(channel: ChannelSnapshot, run: GtidSet) -> GtidSet:
    """Return what was handed out of `run` and is not held by any worker."""
    reached = [worker.applying or worker.last_applied for worker in channel.workers]
    busy = [
        gtids
        for worker, gtids in zip(channel.workers, reached, strict=True)
        if not worker_is_idle(worker)
    ]
    handed_out = GtidSet.union_of(reached)
    if not handed_out:
        return GtidSet()
    behind: list[tuple[Tsid, int, int]] = []
    for tsid, start, end in run.intervals():
        within = GtidSet.from_intervals([(tsid, start, end)])
        numbers = [(gtids & within).highest(tsid) for gtids in (handed_out, *busy)]
        known = [number for number in numbers if number is not None]
        if len(known) == len(numbers):
            behind.append((tsid, start, min(known)))
    return GtidSet.from_intervals(behind)


def behind_kept(channel: ChannelSnapshot, log: SourceLog) -> GtidSet:
    """Return what the source has purged, if all busy workers execute what it has not purged.

    All of it that was received was handed out earlier: a server purges its oldest files first.
    """
    busy = [worker.applying for worker in channel.workers if not worker_is_idle(worker)]
    is_behind = bool(busy) and all(gtids and not gtids & log.purged for gtids in busy)
    return log.purged if is_behind else GtidSet()


def behind_all_workers(readings: tuple[ChannelSnapshot, ...], run: GtidSet) -> GtidSet:
    """Return what the workers have passed of `run` in each reading in which a worker is busy."""
    behind = readings[0].gtid_retrieved & run
    for channel in readings:
        if behind and not is_without_work(channel):
            behind &= behind_workers(channel, run) if channel.workers else GtidSet()
    return behind

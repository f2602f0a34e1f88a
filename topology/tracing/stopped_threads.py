"""Which threads of a server ended with an error, and on which transaction.

How it works
------------
SHOW REPLICA STATUS has one error for the receiver and one for the applier. What that error contains
depends on the version and on the workers:

    8.0 and later, with workers   errno of a worker, a text that quotes the GTID; the cause is in
                                  the worker's own row of performance_schema
    8.0 and later, without        the cause; the row of worker 0 has the GTID
    5.6 without workers           the cause, and no GTID: the position in the source's log has it
    5.6 with workers              the cause, and the GTID; or only 1756 (A1, where the worker
                                  reports nothing): the position is a low-water mark

With commit order, workers stop because another worker did (3030). They are listed after the worker
that stopped first, and their transactions are not those that failed.

A GTID is read from the row of the worker, then from the texts. Nothing is guessed: without either,
`place` is where the applier stopped in its source's log, and `is_low_water` whether the failing
transaction may be a later one.

Sources: sql/rpl_rli_pdb.cc (the text of a worker), sql/rpl_replica.cc; seen on 9.7.4 and 5.6.24.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from gtid import GtidSet
from topology.facts.failed_transactions import FOLLOWED, quoted_as_failed
from topology.facts.memberships import group_name_of
from topology.readings.snapshot import (
    ChannelSnapshot,
    LogPosition,
    ServerSnapshot,
    ThreadState,
    UnreadFact,
    UnreadReason,
)
from topology.readings.worker import WorkerSnapshot

# A single worker is one of a parallel applier: its position is that of the last checkpoint.
_SERIAL: Final = "0"


class ReplicationThread(Enum):
    """A thread of a channel, as an operator calls it."""

    RECEIVER = "receiver"
    APPLIER = "applier"


@dataclass(frozen=True, slots=True)
class StoppedThread:
    """A thread of a channel that ended with an error."""

    replica: str  # the server's name
    channel: ChannelSnapshot
    thread: ReplicationThread
    # The workers in error; those that only followed another one come last.
    workers: tuple[WorkerSnapshot, ...] = ()
    gtids: GtidSet = GtidSet()  # noqa: RUF009 - immutable. Those that failed, one for each worker
    # In the source's log, where no GTID is known: the transaction begins here, or later if
    # `is_low_water`.
    place: LogPosition | None = None
    is_low_water: bool = False

    @property
    def errno(self) -> int:
        """Return MySQL's error number; 0 if the thread has only a text (A1 on 5.6)."""
        own = self._of_channel[0]
        return self.workers[0].errno if self.workers and own in (0, *_VAGUE) else own

    @property
    def text(self) -> str:
        """Return the text of SHOW REPLICA STATUS."""
        return self._of_channel[1]

    @property
    def cause_text(self) -> str:
        """Return the text that has the cause: that of the first worker, else the channel's."""
        return self.workers[0].error if self.workers else self.text

    @property
    def failed_at(self) -> str:
        """Return when, as the server prints it: local time, `YYMMDD HH:MM:SS`; may be empty."""
        is_receiver = self.thread is ReplicationThread.RECEIVER
        return self.channel.receiver_error_at if is_receiver else self.channel.applier_error_at

    @property
    def state(self) -> ThreadState:
        """Return the state of the thread now: a receiver may be connecting again."""
        is_receiver = self.thread is ReplicationThread.RECEIVER
        return self.channel.receiver if is_receiver else self.channel.applier

    @property
    def _of_channel(self) -> tuple[int, str]:
        if self.thread is ReplicationThread.RECEIVER:
            return self.channel.receiver_errno, self.channel.receiver_error
        return self.channel.applier_errno, self.channel.applier_error


# Numbers that report only that a worker stopped: ER_MTA_INCONSISTENT_DATA.
_VAGUE: Final = (1756,)


def stopped_threads(server: ServerSnapshot) -> tuple[StoppedThread, ...]:
    """Return the threads with an error, in the order of channels, appliers first."""
    found: list[StoppedThread] = []
    for channel in server.channels or ():
        workers = _in_error(channel.workers)
        if channel.applier_errno or channel.applier_error or workers:
            found.append(_applier(server, channel, workers))
        if channel.receiver_errno or channel.receiver_error:
            found.append(StoppedThread(server.name, channel, ReplicationThread.RECEIVER))
    return tuple(found)


def idle_threads(server: ServerSnapshot) -> tuple[tuple[ChannelSnapshot, ReplicationThread], ...]:
    """Return the threads that are stopped without an error."""
    found = []
    for channel in server.channels or ():
        if channel.has_error:
            continue
        if channel.receiver is ThreadState.STOPPED:
            found.append((channel, ReplicationThread.RECEIVER))
        if channel.applier is ThreadState.STOPPED:
            found.append((channel, ReplicationThread.APPLIER))
    return tuple(found)


def _in_error(workers: Iterable[WorkerSnapshot]) -> tuple[WorkerSnapshot, ...]:
    failed = [each for each in workers if each.errno or each.error]
    return tuple(sorted(failed, key=lambda each: (each.errno == FOLLOWED, each.worker_id)))


def _applier(
    server: ServerSnapshot, channel: ChannelSnapshot, workers: tuple[WorkerSnapshot, ...]
) -> StoppedThread:
    first = [each for each in workers if each.errno != FOLLOWED]
    gtids = GtidSet.union_of(each.applying or quoted_as_failed(each.error) for each in first)
    gtids = gtids or quoted_as_failed(channel.applier_error)
    is_parallel = server.setting("replica_parallel_workers") != _SERIAL
    return StoppedThread(
        server.name,
        channel,
        ReplicationThread.APPLIER,
        workers,
        gtids,
        place=None if gtids else channel.applied_to,
        is_low_water=is_parallel and not gtids,
    )


def channels_not_followed(server: ServerSnapshot) -> tuple[UnreadFact, ...]:
    """Return that the channels of a server outside its group may have errors that are not followed.

    A member whose applier or recovery fails leaves the group; an ONLINE member has no such error.
    """
    group = group_name_of(server)
    if not group or (server.group is not None and server.group.member_state == "ONLINE"):
        return ()
    detail = (
        f"it is not ONLINE in the group {group}; trace does not follow group_replication_applier"
        " and group_replication_recovery, gtid-audit audit reports their errors"
    )
    return (UnreadFact("channels of the group", UnreadReason.UNSUPPORTED, detail),)

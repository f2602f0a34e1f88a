"""Transactions of which a replica has received only a part: the receiver must deliver the rest.

How it works
------------
An applier begins a transaction before all of it has arrived. If the connection then fails, or the
disk with the relay log is full, both threads run without an error for hours. The transaction looks
like one that is being applied: a worker has it, or (5.6) Retrieved_Gtid_Set lists it from its first
event on. Two facts distinguish the cases. The applier has read all of the relay log, and the thread
that has the transaction waits for more of it. The receiver's position is before the end of the
source's log, where the transactions executed at the source's first reading end at the latest.

* 8.0 and later: a worker has it, waits for its coordinator (an applier without workers: for the
  receiver), and Retrieved_Gtid_Set, which has whole transactions only, does not list it. A
  transaction that is received and executed between these two reads is listed by then, or no worker
  has it.
* 5.6: it is the only transaction that is received and not executed. All workers are shown (or there
  are none) and none is busy. The applier's position in the source's log, where its next transaction
  begins, is before the receiver's.
* 5.7 does not show a worker's transaction, so nothing is concluded.
"""

from typing import Final

from gtid import GtidSet
from topology.facts.applier_workers import has_read_all, is_without_work
from topology.readings.dialect import dialect_of
from topology.readings.snapshot import ChannelSnapshot, LogPosition, ServerSnapshot, ThreadState
from topology.readings.version import ServerVersion
from topology.readings.worker import IDLE_WORKER

WHOLE_TRANSACTIONS: Final = ServerVersion(5, 7, 0)  # Retrieved_Gtid_Set lists only these


def half_received(
    replica: ServerSnapshot, channel: ChannelSnapshot, *, log_end: LogPosition | None
) -> GtidSet:
    """Return the transaction of which a channel has received only a part; empty if none is known.

    `log_end` is the source's, after all that is compared. A receiver that has read up to there has
    whole transactions.
    """
    received = channel.received_to
    if received is None or log_end is None or not received < log_end:
        return GtidSet()
    if channel.applier is not ThreadState.RUNNING or not has_read_all(channel.applier_state):
        return GtidSet()
    if replica.version is None:
        return GtidSet()
    if dialect_of(replica.version).has_applying_transaction:
        at = (worker.applying for worker in channel.workers if _waits_for_more(worker.state))
        return GtidSet.union_of(at) - replica.gtid_retrieved
    is_seen = bool(channel.workers) or replica.setting("replica_parallel_workers") == "0"
    if replica.version >= WHOLE_TRANSACTIONS or not (is_seen and is_without_work(channel)):
        return GtidSet()
    if channel.applied_to is None or not channel.applied_to < received:
        return GtidSet()
    rest = channel.gtid_retrieved - (replica.gtid_executed or GtidSet())
    return rest if rest.gtid_count == 1 else GtidSet()


def asks_for_last_again(replica: ServerSnapshot, channel: ChannelSnapshot) -> bool:
    """Return whether the next connection requests the last received transaction again.

    Before 5.7 Retrieved_Gtid_Set may list it when only a part has arrived, so the receiver does not
    report it as received (seen on 5.6.24).
    """
    is_old = replica.version is not None and replica.version < WHOLE_TRANSACTIONS
    return is_old and channel.auto_position and channel.receiver is not ThreadState.RUNNING


def may_be_half_received(
    replica: ServerSnapshot, channel: ChannelSnapshot, *, log_end: LogPosition | None
) -> bool:
    """Return whether an unread fact would show if a transaction was received only in part."""
    is_known = None not in (replica.version, channel.received_to, log_end)
    is_at_end = channel.applier is ThreadState.RUNNING and has_read_all(channel.applier_state)
    return is_at_end and not is_known


def _waits_for_more(state: str) -> bool:
    return bool(IDLE_WORKER.match(state)) or has_read_all(state)

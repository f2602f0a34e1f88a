"""Transactions of which a replica has received a part: what comes next is the receiver's work.

How it works
------------
An applier begins a transaction before all of it has arrived. If the connection dies then, or the
disk under the relay log is full, both threads run without an error for hours, and the transaction
looks like one that is being applied: a worker has it, or (5.6) Retrieved_Gtid_Set lists it from its
first event on. What separates the two: the applier has read all of the relay log, and the thread
that has the transaction waits for more of it.

* 8.0 and later: a worker has it, waits for its coordinator (an applier without workers: for the
  receiver), and Retrieved_Gtid_Set, which has whole transactions only, does not list it. What is
  received and executed in the moment between is listed by then, or in no worker's hands.
* 5.6: it is the only one that is received and not executed, no worker is at work, and the place of
  the applier in the source's log, the beginning of what it does next, is before the receiver's.
* 5.7 shows no transaction of a worker: nothing is known.
"""

from typing import Final

from gtid import GtidSet
from topology.applier_workers import has_read_all, is_without_work
from topology.dialect import dialect_of
from topology.snapshot import IDLE_WORKER, ChannelSnapshot, ServerSnapshot, ThreadState
from topology.version import ServerVersion

_WHOLE_TRANSACTIONS: Final = ServerVersion(5, 7, 0)  # Retrieved_Gtid_Set has no others


def half_received(replica: ServerSnapshot, channel: ChannelSnapshot) -> GtidSet:
    """Return the transaction of which a channel has received a part; empty if none is known."""
    if channel.applier is not ThreadState.RUNNING or not has_read_all(channel.applier_state):
        return GtidSet()
    if replica.version is None:
        return GtidSet()
    if dialect_of(replica.version).has_applying_transaction:
        at = (worker.applying for worker in channel.workers if _waits_for_more(worker.state))
        return GtidSet.union_of(at) - replica.gtid_retrieved
    if replica.version >= _WHOLE_TRANSACTIONS or not is_without_work(channel):
        return GtidSet()
    applied, received = channel.applied_to, channel.received_to
    if applied is None or received is None or not applied < received:
        return GtidSet()
    rest = channel.gtid_retrieved - (replica.gtid_executed or GtidSet())
    return rest if rest.gtid_count == 1 else GtidSet()


def _waits_for_more(state: str) -> bool:
    return bool(IDLE_WORKER.match(state)) or has_read_all(state)

"""How far the applier of a channel has come: what it has passed, if it moves, what it waits for.

No severity, no words, no thresholds: rules/backlogs.py has them.

How it works
------------
"In the relay log and not executed" is true of a transaction that the applier will apply in a
moment, and of one that it will never apply: it was executed here and a RESET forgot it, or the
applier was moved past it (RELAY_LOG_POS), or skipped it (sql_replica_skip_counter). Only the
applier's place separates the two. `passed` is what the applier certainly left behind.

The proof by idleness. In one reading the server is asked, in this order, for

    t0  Retrieved_Gtid_Set     t1  the applier's state     t2  the state of each worker

(t0 < t1 in one row of SHOW REPLICA STATUS: sql/rpl_replica.cc, show_slave_status_cmd). If the state
at t1 is "Replica has read all relay log", every transaction retrieved at t0 was applied, skipped,
or handed to a worker before t1. A worker hands nothing back; if it waits for an event from the
coordinator at t2, its queue is empty, and what it was handed before t1 is done. So everything
retrieved at t0 is behind the applier at t2. What of it is missing in gtid_executed of a *later*
reading will not come by itself. A transaction that some session owns is left out: it is not
decided. Exceptions, each of which needs more:

* 5.6 counts a transaction as retrieved when its first event has arrived, and a coordinator may hold
  this event without an owner. It also shows its workers only with the privilege PROCESS. So the
  place in the source's log must agree as well: applied_to >= received_to, which is not so in the
  middle of a transaction.
* Where nothing shows the workers, both readings must be so, with nothing applied between them.

A stopped applier left behind whatever was received if its place in the source's log is the
receiver's, in both readings. That is `likely` only: an operator may have moved either place.

The proof by order, for an applier that is never idle. A source logs its own transactions in the
order of their numbers (one TSID, no number given by hand between them), the coordinator hands them
out in this order, and each worker finishes them in this order. So a number is behind the applier if
a higher number of the same run was handed out, and every worker is either without work or at (or
done with) a higher number. Runs are those of the source's gtid_executed, so that an isolated number
counts for nothing. The workers are not seen at one instant: both readings have to show it, and a
difference of this kind is looked at again (facts.grave_differences).

The proof by order of commit. An applier with one worker, or with replica_preserve_commit_order,
commits in the order of its relay log and never leaves a gap. So what it committed between the
readings shows its place: everything received before that transaction is behind the applier, and so
are the lower numbers of the same run. `likely` only: the setting counts from the start of the
applier, it does not hold for tables without transactions, and a session may commit a received GTID.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gtid import GtidSet, Tsid
from topology.applier_workers import (
    SourceLog,
    behind_all_workers,
    behind_kept,
    behind_workers,
    commits_in_order,
    has_read_all,
    is_without_work,
    worker_is_idle,
)
from topology.half_received import WHOLE_TRANSACTIONS
from topology.notable_settings import notable_values
from topology.snapshot import (
    ROW_LOCK_RETRY,
    ROW_LOCK_WAIT,
    ChannelSnapshot,
    ServerSnapshot,
    ThreadState,
)
from topology.unread_relay_log import seconds_without_work
from topology.version import ServerVersion

_DELAYED = re.compile("Waiting until (?:MASTER|SOURCE)_DELAY", re.IGNORECASE)
# sql/mdl.cc ("Waiting for … metadata lock", "Waiting for commit lock", "Waiting for backup lock"),
# sql/lock.cc ("Waiting for global read lock"), "Waiting for table level lock", "Waiting for table
# flush"; a session that owns the GTID: "Waiting for GTID to be committed", in 5.6 "waiting for GTID
# to be written to binary log".
_LOCK_WAIT = re.compile(
    r"Waiting for (?:[a-z ]+ )?(?:lock|flush)\b|Waiting for GTID to be"
    rf"|{ROW_LOCK_WAIT}|{ROW_LOCK_RETRY}",
    re.IGNORECASE,
)
_START_TIMES = ServerVersion(8, 0, 0)  # a worker shows since when it applies its transaction


@dataclass(frozen=True, slots=True)
class ApplierWait:
    """A thread of the applier that is at work, or waits, in the last reading."""

    gtids: GtidSet  # what it applies; empty where the server does not show it
    state: str
    seconds: int | None  # since it began; an estimate by the lag where `is_exact` is false
    is_exact: bool
    is_lock: bool


@dataclass(frozen=True, slots=True)
class ApplierFacts:
    """What two readings of one channel show of its applier."""

    channel: ChannelSnapshot  # as read last
    passed: GtidSet  # received before the first reading ended, and behind the applier
    passed_is_proved: bool
    backlog: GtidSet  # received, not executed, not passed
    overtaken: GtidSet  # of the backlog: received before something that was committed
    is_same: bool  # the channel was not changed between the readings: their places compare
    is_started: bool  # between the readings: an operator may have moved it as well
    moved: bool  # something was applied, or a thread came further, between the readings
    is_delayed: bool  # SOURCE_DELAY holds the next transaction back
    waits: tuple[ApplierWait, ...]  # the longest first

    @property
    def lock_wait(self) -> ApplierWait | None:
        """Return the longest wait for a lock."""
        return next((wait for wait in self.waits if wait.is_lock), None)

    @property
    def longest(self) -> ApplierWait | None:
        """Return what the applier has been at for the longest time."""
        return self.waits[0] if self.waits else None


def gather_applier_facts(
    first: ServerSnapshot,
    last: ServerSnapshot,
    channel: ChannelSnapshot,
    log: SourceLog,
) -> ApplierFacts:
    """Compute the facts of one channel of a replica that was read twice."""
    before = _same_channel(first, channel)
    executed = last.gtid_executed or GtidSet()
    # Places of a channel that was changed between the readings show no progress.
    moved = before is not None and _moved(before, channel, first=first, last=last)
    passed, proved, overtaken = GtidSet(), False, GtidSet()
    owned_last = _owned(last)
    owned = _owned(first) | owned_last
    if before is not None and _runs(before) and _runs(channel):
        passed, proved = _passed(before, channel, first=first, moved=moved, log=log)
        left = _behind_commits(before, channel, first=first, last=last, log=log)
        forgotten = _forgotten(before, executed)
        left = (left | forgotten) - passed
        proved = proved and not left
        passed = (passed | left) - owned
        committed = _committed(channel, first=first, last=last)
        if forgotten or committed - before.gtid_retrieved:
            overtaken = before.gtid_retrieved - executed - passed - owned_last
        below = behind_all_workers((before, channel), log.out_of_order)
        overtaken |= below - executed - passed - owned_last
        if _permits_skips(first, before) or _permits_skips(last, channel):
            overtaken |= (
                (before.gtid_retrieved & executed.filled()) - executed - passed - owned_last
            )
    elif before is not None and is_stopped_at_end(before) and is_stopped_at_end(channel):
        passed = before.gtid_retrieved - owned
    return ApplierFacts(
        channel=channel,
        passed=passed,
        passed_is_proved=proved,
        backlog=channel.gtid_retrieved - executed - passed,
        overtaken=overtaken,
        is_same=before is not None,
        is_started=before is not None and not _runs(before) and _runs(channel),
        moved=moved,
        is_delayed=bool(_DELAYED.match(channel.applier_state)),
        waits=tuple(_waits(channel, before, last)),
    )


def _permits_skips(server: ServerSnapshot, channel: ChannelSnapshot) -> bool:
    """Return whether sql_replica_skip_counter skips, as far as was read: it leaves a gap."""
    mode = notable_values(server.notable_settings).get("gtid_mode")
    return bool(channel.skip_counter) or mode is not None


def may_hide_received(server: ServerSnapshot) -> bool:
    """Return whether a relay log may hold a transaction that no set shows.

    Where the applier is at the place of the receiver, and has no work, nothing is left there. The
    place alone may be an equal one of another log, which the receiver has begun since.
    """
    return any(
        is_last_uncounted(server, channel)
        or (counts_loosely(server) and not has_read_all(channel.applier_state))
        for channel in server.channels or ()
    )


def counts_loosely(server: ServerSnapshot) -> bool:
    """Return whether a server forgets the last transaction it received when its receiver starts.

    Retrieved_Gtid_Set then lacks it although the relay log has it (seen on 5.6.24).
    """
    return server.version is not None and server.version < WHOLE_TRANSACTIONS


def is_last_uncounted(server: ServerSnapshot, channel: ChannelSnapshot) -> bool:
    """Return whether what waits in a relay log may end with a transaction that is not counted."""
    return counts_loosely(server) and channel.applied_to != channel.received_to


# -- the proof by idleness ------------------------------------------------------------------------


def _same_channel(server: ServerSnapshot, channel: ChannelSnapshot) -> ChannelSnapshot | None:
    """Return the channel as it was in another reading; None if it is not the same link."""
    for other in server.channels or ():
        if other.name == channel.name:
            same = (other.source_host, other.source_port, other.source_uuid, other.auto_position)
            is_same = same == (
                channel.source_host,
                channel.source_port,
                channel.source_uuid,
                channel.auto_position,
            )
            return other if is_same and other.gtid_retrieved <= channel.gtid_retrieved else None
    return None


def _runs(channel: ChannelSnapshot) -> bool:
    return channel.applier is ThreadState.RUNNING


def _passed(
    before: ChannelSnapshot,
    after: ChannelSnapshot,
    *,
    first: ServerSnapshot,
    moved: bool,
    log: SourceLog,
) -> tuple[GtidSet, bool]:
    """Return what of the first reading's retrieved set is behind the applier, and if proved."""
    has_whole = first.version is not None and first.version >= WHOLE_TRANSACTIONS
    if not has_whole or not before.workers:
        still = is_without_work(before) and is_without_work(after) and not moved
        return (before.gtid_retrieved if still and _has_applied_all(before) else GtidSet()), still
    if is_without_work(before):
        return before.gtid_retrieved, _is_at_end(before, after)
    behind = behind_workers(before, log.in_order) | behind_kept(before, log)
    if not is_without_work(after):
        behind &= behind_workers(after, log.in_order) | behind_kept(after, log)
    return before.gtid_retrieved & behind, False


def _behind_commits(
    before: ChannelSnapshot,
    after: ChannelSnapshot,
    *,
    first: ServerSnapshot,
    last: ServerSnapshot,
    log: SourceLog,
) -> GtidSet:
    """Return what an applier left behind that commits in the order of its relay log.

    `last.gtid_executed` was read before the channel, so what is in it was committed before. What
    the source has purged was in its log before all that it has kept.
    """
    in_order = all(
        commits_in_order(server, channel) for channel, server in ((before, first), (after, last))
    )
    if not in_order:
        return GtidSet()
    committed = _committed(after, first=first, last=last)
    if not committed:
        return GtidSet()
    if committed - before.gtid_retrieved:
        return before.gtid_retrieved
    lower: list[tuple[Tsid, int, int]] = []
    for tsid, start, end in log.in_order.intervals():
        highest = (committed & GtidSet.from_intervals([(tsid, start, end)])).highest(tsid)
        if highest is not None and highest > start:
            lower.append((tsid, start, highest))
    behind = GtidSet.from_intervals(lower)
    if committed - log.purged:
        behind |= log.purged
    return before.gtid_retrieved & behind


def _forgotten(before: ChannelSnapshot, executed: GtidSet) -> GtidSet:
    """Return what a worker applied last in the first reading, and the server no longer has.

    A server shows it after the commit, so only a RESET has removed it since. Not proved: after a
    restart of the applier the servers of some versions may go on showing it.
    """
    applied = (worker.last_applied for worker in before.workers)
    return (GtidSet.union_of((before.last_applied, *applied)) & before.gtid_retrieved) - executed


def _committed(channel: ChannelSnapshot, *, first: ServerSnapshot, last: ServerSnapshot) -> GtidSet:
    """Return what this channel alone can have committed between the readings."""
    if last.group is not None or last.server_uuid is None:
        return GtidSet()
    committed = (last.gtid_executed or GtidSet()) - (first.gtid_executed or GtidSet())
    committed = (committed & channel.gtid_retrieved).without_uuid(last.server_uuid)
    for other in last.channels or ():
        if other.name != channel.name:
            committed -= other.gtid_retrieved
    return committed


def _has_applied_all(channel: ChannelSnapshot) -> bool:
    """Return whether the applier's place in the source's log is the receiver's."""
    applied, received = channel.applied_to, channel.received_to
    return applied is not None and received is not None and applied >= received


def is_stopped_at_end(channel: ChannelSnapshot) -> bool:
    """Return whether an applier stopped behind all that was received.

    Its place in the source's log is then that of the lowest transaction it has not finished
    (sql/rpl_rli_pdb.cc, mts_checkpoint_routine): at the receiver's place there is none. Beyond that
    place there may be some: the receiver has connected again since, and has not come as far.
    """
    is_stopped = channel.applier is ThreadState.STOPPED
    failed = channel.applier_errno or channel.applier_error
    # A receiver that connects again by sets reads its source's log from the beginning of a file.
    place = channel.applied_to
    is_at_end = place is not None and place == channel.received_to
    # Before all transactions of a log: of another log than what was received.
    is_at_end = is_at_end and not (place is not None and place.is_before_all)
    return is_stopped and not failed and is_at_end


def _is_at_end(before: ChannelSnapshot, after: ChannelSnapshot) -> bool:
    """Return whether the places in the logs confirm that the applier has nothing left to do.

    Those of a parallel applier follow at its next checkpoint (replica_checkpoint_period).
    """
    stays = (
        before.relay_applied_to is not None and before.relay_applied_to == after.relay_applied_to
    )
    applied, received = after.applied_to, before.received_to
    return stays or (applied is not None and received is not None and applied >= received)


def _owned(server: ServerSnapshot) -> GtidSet:
    """Return what any session or worker of a server was at.

    A worker that has stopped shows where it failed, and has rolled that back.
    """
    applying = (channel.gtid_applying for channel in server.channels or () if _runs(channel))
    return GtidSet.union_of((server.gtid_owned or GtidSet(), *applying))


# -- movement and waits ---------------------------------------------------------------------------


def _moved(
    before: ChannelSnapshot,
    after: ChannelSnapshot,
    *,
    first: ServerSnapshot,
    last: ServerSnapshot,
) -> bool:
    applied = (last.gtid_executed or GtidSet()) - (first.gtid_executed or GtidSet())
    if (before.applied_to, before.relay_applied_to) != (after.applied_to, after.relay_applied_to):
        return True
    # Of workers that could be read once only, nothing is known to have changed.
    are_read_twice = bool(before.workers) is bool(after.workers)
    return bool(applied & after.gtid_retrieved) or (
        are_read_twice and _at_work(before) != _at_work(after)
    )


def _at_work(channel: ChannelSnapshot) -> tuple[GtidSet, GtidSet]:
    return channel.last_applied, channel.gtid_applying


def _waits(
    channel: ChannelSnapshot, before: ChannelSnapshot | None, server: ServerSnapshot
) -> Iterator[ApplierWait]:
    """Yield what each thread of a running applier is at, the longest first."""
    if not _runs(channel):
        return
    has_times = server.version is not None and server.version >= _START_TIMES
    earlier = {worker.worker_id: worker.state for worker in before.workers} if before else {}
    found = []
    for worker in channel.workers:
        if worker_is_idle(worker) or not worker.state or _DELAYED.match(worker.state):
            continue
        seconds, is_exact = worker.applying_seconds, has_times
        if seconds is None:  # it waits before it begins, as for a GTID that a session owns
            stays = earlier.get(worker.worker_id) == worker.state
            seconds, is_exact = channel.lag_seconds if stays else None, False
        found.append(_wait(worker.applying, worker.state, seconds, is_exact=is_exact))
    state = channel.applier_state
    if not found and state and not has_read_all(state) and not _DELAYED.match(state):
        # An applier without workers in 5.6, or a coordinator that is itself at work.
        ages = [channel.lag_seconds, seconds_without_work(channel, before, server)]
        seconds = max((age for age in ages if age is not None), default=None)
        found.append(_wait(GtidSet(), state, seconds, is_exact=False))
    yield from sorted(found, key=lambda wait: (-(wait.seconds or 0), wait.state, str(wait.gtids)))


def _wait(gtids: GtidSet, state: str, seconds: int | None, *, is_exact: bool) -> ApplierWait:
    is_lock = bool(_LOCK_WAIT.search(state))
    return ApplierWait(gtids, state, seconds, is_exact=is_exact, is_lock=is_lock)

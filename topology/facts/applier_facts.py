"""How far a channel's applier has come: what it has passed, whether it moves, what it waits for.

This module has no severities, texts or thresholds: rules/backlogs.py has them.

How it works
------------
A transaction that is "in the relay log and not executed" may be one that the applier is about to
apply. It may also be one that the applier will never apply. In that case the server executed it and
a RESET forgot it, an operator moved the applier past it (RELAY_LOG_POS), or the applier skipped it
(sql_replica_skip_counter). Only the applier's position distinguishes the two. `passed` is the set
that the applier certainly left behind.

The proof by idleness. One reading queries the server for the following, in this order:

    t0  Retrieved_Gtid_Set     t1  the applier's state     t2  the state of each worker

(t0 < t1 in one row of SHOW REPLICA STATUS: sql/rpl_replica.cc, show_slave_status_cmd). If the state
at t1 is "Replica has read all relay log", every transaction retrieved at t0 was applied, skipped,
or handed to a worker before t1. A worker returns nothing to the coordinator. If the worker waits
for an event from the coordinator at t2, its queue is empty, and it has finished what it was handed
before t1. So the applier has passed everything retrieved at t0 by t2. Any of it that is missing
from gtid_executed of a *later* reading will not be applied without intervention. A transaction that
a session owns is excluded, because its outcome is open. Two exceptions need more evidence:

* 5.6 counts a transaction as retrieved when its first event has arrived. A coordinator may hold
  this event while no session owns the GTID. 5.6 also shows its workers only to an account with the
  PROCESS privilege. So the position in the source's log must agree as well: applied_to >=
  received_to, which is false in the middle of a transaction.
* Where nothing shows the workers, both readings must show this state, with nothing applied between
  them: the position in the relay log is the same. If the position in the source's log has moved,
  the receiver is sent nothing of what it has (auto-position), and this is only `likely`.

A stopped applier has passed everything received if its position in the source's log equals the
receiver's, in both readings. That is only `likely`: an operator may have moved either position.

The proof by order, for an applier that is never idle. A source logs its own transactions in
ascending GNO order, within one TSID and where no GNO between them was set with gtid_next. The
coordinator hands them out in this order, and each worker finishes them in this order. So the
applier has passed a GNO if two conditions hold. A higher GNO of the same run was handed out. Every
worker is idle, or at (or done with) a higher GNO. Runs are those of the source's gtid_executed,
with the source's own GTIDs that the receiver has received since. So an isolated GNO proves nothing.
The workers are not read at one instant, so both readings must show it, and such a difference is
checked again (facts.severe_differences).

The proof by order of commit. An applier with one worker, or with replica_preserve_commit_order,
commits in the order of its relay log and never leaves a gap. So a transaction that it committed
between the readings shows its position. The applier has passed everything received before that
transaction, and the lower GNOs of the same run. That is only `likely`: the setting takes effect
when the applier starts, it does not apply to nontransactional tables, and a session may commit a
received GTID.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gtid import GtidSet, Tsid
from topology.facts.applier_movement import applied_nothing, has_moved
from topology.facts.applier_workers import (
    SourceLog,
    behind_all_workers,
    behind_applier,
    commits_in_order,
    has_read_all,
    is_without_work,
    worker_is_idle,
)
from topology.facts.graph import same_link
from topology.facts.half_received import WHOLE_TRANSACTIONS
from topology.facts.unread_relay_log import seconds_without_work
from topology.readings.notable_settings import notable_values
from topology.readings.read_once import is_read_once
from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot, ThreadState
from topology.readings.version import ServerVersion
from topology.readings.worker import ROW_LOCK_RETRY, ROW_LOCK_WAIT

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
_START_TIMES = ServerVersion(8, 0, 0)  # workers report when they began to apply


@dataclass(frozen=True, slots=True)
class ApplierWait:
    """An applier thread that is working or waiting in the last reading."""

    gtids: GtidSet  # what it applies; empty where the server does not show it
    state: str
    seconds: int | None  # since it began; an estimate from the lag if not `is_exact`
    is_exact: bool
    is_lock: bool
    ahead_seconds: int = 0  # its event is dated in the future: no age; 0 if its state changed


@dataclass(frozen=True, slots=True)
class ApplierFacts:
    """What two readings of one channel show about its applier."""

    channel: ChannelSnapshot  # as read last
    passed: GtidSet  # received before the first reading ended, and behind the applier
    passed_is_proved: bool
    backlog: GtidSet  # received, not executed, not passed by the applier
    overtaken: GtidSet  # of the backlog: received before a transaction that was committed
    is_same: bool  # the channel was not changed between the readings: positions compare
    is_started: bool  # started between the readings: an operator may also have moved it
    moved: bool  # it applied a transaction, or a thread advanced, between the readings
    is_delayed: bool  # SOURCE_DELAY holds the next transaction back
    waits: tuple[ApplierWait, ...]  # the longest first
    is_once: bool = False  # read once, so nothing is known about progress

    @property
    def lock_wait(self) -> ApplierWait | None:
        """Return the longest wait for a lock."""
        return next((wait for wait in self.waits if wait.is_lock), None)

    @property
    def longest(self) -> ApplierWait | None:
        """Return the operation that has occupied the applier for the longest time."""
        return self.waits[0] if self.waits else None


def gather_applier_facts(
    first: ServerSnapshot,
    last: ServerSnapshot,
    channel: ChannelSnapshot,
    log: SourceLog,
) -> ApplierFacts:
    """Compute the facts of one channel from two readings of its replica."""
    before = None if is_read_once(last) else _same_channel(first, channel)
    executed = last.gtid_executed or GtidSet()
    moved = before is not None and has_moved(before, channel, first=first, last=last)
    passed, proved, overtaken = GtidSet(), False, GtidSet()
    owned_last = _owned(last)
    owned = _owned(first) | owned_last
    if before is not None and _runs(before) and _runs(channel):
        log = log.and_received(channel.gtid_retrieved - before.gtid_retrieved)
        stays = applied_nothing(before, channel, first=first, last=last)
        passed, proved = _passed(before, channel, first=first, moved=moved, stays=stays, log=log)
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
        if permits_skips(first, before) or permits_skips(last, channel):
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
        is_once=is_read_once(last),
        is_started=before is not None and not _runs(before) and _runs(channel),
        moved=moved,
        is_delayed=is_delayed(channel),
        waits=tuple(waits_of(channel, before, last)),
    )


def is_delayed(channel: ChannelSnapshot) -> bool:
    """Return whether SOURCE_DELAY holds the next transaction back."""
    return bool(_DELAYED.match(channel.applier_state))


def permits_skips(server: ServerSnapshot, channel: ChannelSnapshot) -> bool:
    """Return whether sql_replica_skip_counter may skip, as far as was read; a skip leaves a gap."""
    mode = notable_values(server.notable_settings).get("gtid_mode")
    return bool(channel.skip_counter) or mode is not None


def may_hide_received(server: ServerSnapshot) -> bool:
    """Return whether a relay log may hold a transaction that no set shows.

    An idle applier at the receiver's position has nothing left to apply. The position alone proves
    nothing: it may belong to another log, which the receiver has begun since.
    """
    return any(may_end_uncounted(server, channel) for channel in server.channels or ())


def may_end_uncounted(server: ServerSnapshot, channel: ChannelSnapshot) -> bool:
    """Return whether a relay log may end with a transaction that no set shows, as above."""
    is_at_end = channel.applied_to == channel.received_to and has_read_all(channel.applier_state)
    return counts_loosely(server) and not is_at_end


def counts_loosely(server: ServerSnapshot) -> bool:
    """Return whether a server forgets the last received transaction when its receiver restarts.

    Retrieved_Gtid_Set then omits it although the relay log has it (seen on 5.6.24).
    """
    return server.version is not None and server.version < WHOLE_TRANSACTIONS


# -- the proof by idleness ------------------------------------------------------------------------


def _same_channel(server: ServerSnapshot, channel: ChannelSnapshot) -> ChannelSnapshot | None:
    """Return the channel from an earlier reading; None if it was changed or begun again since."""
    other = same_link(server, channel)
    if other is None or other.auto_position is not channel.auto_position:
        return None
    missing = other.gtid_retrieved - channel.gtid_retrieved
    if not missing or (missing.gtid_count == 1 and _waits_uncounted(server, other, channel)):
        return other
    return None


def _waits_uncounted(
    server: ServerSnapshot, before: ChannelSnapshot, after: ChannelSnapshot
) -> bool:
    """Return whether a receiver of 5.6 connected again, and the applier stayed at its place.

    Then the last one is not counted until it comes again (seen on 5.6.24).
    """
    place = before.relay_applied_to
    stays = place is not None and place == after.relay_applied_to
    return counts_loosely(server) and stays and before.applied_to == after.applied_to


def _runs(channel: ChannelSnapshot) -> bool:
    return channel.applier is ThreadState.RUNNING


def _passed(
    before: ChannelSnapshot,
    after: ChannelSnapshot,
    *,
    first: ServerSnapshot,
    moved: bool,
    stays: bool,
    log: SourceLog,
) -> tuple[GtidSet, bool]:
    """Return what the applier has passed of the set first retrieved, and whether that is proved."""
    has_whole = first.version is not None and first.version >= WHOLE_TRANSACTIONS
    if not has_whole or not before.workers:
        still = is_without_work(before) and is_without_work(after)
        still = still and (not moved or stays)
        passed = before.gtid_retrieved if still and _has_applied_all(before) else GtidSet()
        return passed, still and not moved
    if is_without_work(before):
        return before.gtid_retrieved, _is_at_end(before, after)
    behind = behind_applier(before, log)
    if not is_without_work(after):
        behind &= behind_applier(after, log)
    return before.gtid_retrieved & behind, False


def _behind_commits(
    before: ChannelSnapshot,
    after: ChannelSnapshot,
    *,
    first: ServerSnapshot,
    last: ServerSnapshot,
    log: SourceLog,
) -> GtidSet:
    """Return what an applier has passed if it commits in the order of its relay log.

    `last.gtid_executed` was read before the channel, so its transactions were committed earlier.
    What the source has purged was logged before everything that its log still has.
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
        if highest is not None:
            lower.append((tsid, start, highest))
    behind = GtidSet.from_intervals(lower)
    if committed - log.purged:
        behind |= log.purged
    return before.gtid_retrieved & behind


def _forgotten(before: ChannelSnapshot, executed: GtidSet) -> GtidSet:
    """Return what a worker applied last in the first reading and the server no longer has.

    A server shows the transaction after its commit, so only a RESET can have removed it since. This
    is not a proof: some versions may continue to show it after a restart of the applier.
    """
    applied = (worker.last_applied for worker in before.workers)
    return (GtidSet.union_of((before.last_applied, *applied)) & before.gtid_retrieved) - executed


def _committed(channel: ChannelSnapshot, *, first: ServerSnapshot, last: ServerSnapshot) -> GtidSet:
    """Return what only this channel can have committed between the readings."""
    if last.group is not None or last.server_uuid is None:
        return GtidSet()
    committed = (last.gtid_executed or GtidSet()) - (first.gtid_executed or GtidSet())
    committed = (committed & channel.gtid_retrieved).without_uuid(last.server_uuid)
    for other in last.channels or ():
        if other.name != channel.name:
            committed -= other.gtid_retrieved
    return committed


def _has_applied_all(channel: ChannelSnapshot) -> bool:
    """Return whether the applier's position in the source's log equals the receiver's."""
    applied, received = channel.applied_to, channel.received_to
    return applied is not None and received is not None and applied >= received


def is_stopped_at_end(channel: ChannelSnapshot) -> bool:
    """Return whether an applier stopped after applying all that was received.

    Its position in the source's log is then that of the lowest transaction that it has not finished
    (sql/rpl_rli_pdb.cc, mts_checkpoint_routine). At the receiver's position there is no such
    transaction. The applier may be ahead of a receiver that has reconnected since.
    """
    is_stopped = channel.applier is ThreadState.STOPPED
    failed = channel.applier_errno or channel.applier_error
    # A receiver that reconnects with auto-position reads its source's log from the start of a file.
    place = channel.applied_to
    is_at_end = place is not None and place == channel.received_to
    # Before all transactions of a log: the position is in another log than the received events.
    is_at_end = is_at_end and not (place is not None and place.is_before_all)
    return is_stopped and not failed and is_at_end


def _is_at_end(before: ChannelSnapshot, after: ChannelSnapshot) -> bool:
    """Return whether the log positions confirm that the applier has nothing left to do.

    A multithreaded applier updates them at its next checkpoint (replica_checkpoint_period).
    """
    stays = (
        before.relay_applied_to is not None and before.relay_applied_to == after.relay_applied_to
    )
    applied, received = after.applied_to, before.received_to
    return stays or (applied is not None and received is not None and applied >= received)


def _owned(server: ServerSnapshot) -> GtidSet:
    """Return what sessions and workers were executing; a stopped worker shows its failed one."""
    applying = (channel.gtid_applying for channel in server.channels or () if _runs(channel))
    return GtidSet.union_of((server.gtid_owned or GtidSet(), *applying))


# -- waits ----------------------------------------------------------------------------------------


def waits_of(
    channel: ChannelSnapshot, before: ChannelSnapshot | None, server: ServerSnapshot
) -> Iterator[ApplierWait]:
    """Yield what each thread of a running applier is executing, the longest first."""
    if not _runs(channel):
        return
    has_times = server.version is not None and server.version >= _START_TIMES
    earlier = {worker.worker_id: worker.state for worker in before.workers} if before else {}
    found = []
    for worker in channel.workers:
        if worker_is_idle(worker) or not worker.state or _DELAYED.match(worker.state):
            continue
        seconds, is_exact = worker.applying_seconds, has_times
        stays = earlier.get(worker.worker_id) == worker.state
        if seconds is None:  # it waits before it begins, as for an owned GTID
            seconds, is_exact = channel.lag_seconds if stays else None, False
        found.append(_wait(worker.applying, worker.state, seconds, is_exact=is_exact, stays=stays))
    state = channel.applier_state
    if not found and state and not has_read_all(state) and not _DELAYED.match(state):
        # An applier without workers in 5.6, or a coordinator that is itself busy.
        ages = [channel.lag_seconds, seconds_without_work(channel, before, server)]
        seconds = max((age for age in ages if age is not None), default=None)
        stays = before is not None and before.applier_state == state
        found.append(_wait(GtidSet(), state, seconds, is_exact=False, stays=stays))
    yield from sorted(found, key=lambda wait: (-(wait.seconds or 0), wait.state, str(wait.gtids)))


def _wait(
    gtids: GtidSet, state: str, seconds: int | None, *, is_exact: bool, stays: bool
) -> ApplierWait:
    is_lock = bool(_LOCK_WAIT.search(state))
    ahead = max(0, -(seconds or 0))
    seconds = None if ahead else seconds
    return ApplierWait(gtids, state, seconds, is_exact, is_lock, ahead if stays else 0)

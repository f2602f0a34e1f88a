"""Evidence that a server's GTID history was not reset, and not lost in a crash.

RESET BINARY LOGS AND GTIDS removes every transaction from gtid_executed. A server that still has an
earlier transaction in its binary logs was not reset since. A purged transaction proves nothing: SET
GLOBAL gtid_purged may have restored it after the reset.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from gtid import GtidSet, Tsid
from topology.facts.applier_workers import commits_in_order
from topology.readings.dialect import dialect_of
from topology.readings.history_evidence import CommitRecord, ends_of
from topology.readings.notable_settings import may_ignore_errors, notable_values
from topology.readings.snapshot import START_SLACK, ChannelSnapshot, ServerSnapshot

_SECOND = timedelta(seconds=1)


def keeps_gtids(server: ServerSnapshot) -> bool:
    """Return whether a crash keeps rows and their GTIDs together: InnoDB has both (8.0.17)."""
    return server.version is not None and dialect_of(server.version).has_gtids_in_innodb


def has_earlier(executed: GtidSet | None, hole: GtidSet) -> bool:
    """Return whether a server has a transaction below the gap, for every TSID of the gap.

    A RESET would have removed it as well.
    """
    below = (hole.filled() - hole) & (executed or GtidSet())
    return all(
        any(tsid == other and start < lowest for other, start, _ in below.intervals())
        for tsid, lowest in _lowest(hole)
    )


def logged_as_received(server: ServerSnapshot) -> GtidSet:
    """Return what the logs of a server show that it may have received.

    With log_replica_updates = OFF they have only what its own sessions committed.
    """
    is_silent = "log_replica_updates" in notable_values(server.notable_settings)
    return GtidSet() if is_silent else server.logged


def excludes_reset(server: ServerSnapshot, hole: GtidSet) -> bool:
    """Return whether the GNOs in a server's logs are evidence against a reset after a gap.

    This requires that the GNOs ascend in the log; was_not_reset checks that order. A server that
    ignores errors (replica_skip_errors, IDEMPOTENT) may have received the earlier transactions
    again with their GTIDs, failed at each row, and logged them without it. Unread settings exclude
    nothing. Nor do logs without what was received (log_replica_updates = OFF), nor is a reset
    excluded for GTIDs of the server's own UUID, which it reuses from the lowest on.
    """
    if server.server_uuid is None or hole.from_uuid(server.server_uuid):
        return False
    kept = logged_as_received(server)
    return not may_ignore_errors(server.notable_settings) and has_earlier(kept, hole)


def may_have_rows(server: ServerSnapshot, arriving: GtidSet) -> bool:
    """Return whether a server may already hold the rows of what it would receive.

    If a server's binary logs have nothing earlier, it has just been created or provisioned. Or
    RESET BINARY LOGS AND GTIDS removed its history (and SET GLOBAL gtid_purged restored part of
    it), or a dump was loaded without its GTID set. If it has no schema of its own, it is new.
    """
    if not arriving or excludes_reset(server, arriving):
        return False
    schemas = server.history_evidence.schemas_count if server.history_evidence else None
    return not (schemas == 0 and not server.gtid_executed)


def was_not_reset(
    replica: ServerSnapshot, hole: GtidSet, *, source: ServerSnapshot, received: GtidSet
) -> bool:
    """Return whether a replica was certainly not reset after a gap in what its source has.

    `received` is what it can have executed by this channel alone. Either of two facts proves it:

    1. Its first binary log was begun before the first transaction of the gap was committed. A RESET
       begins the logs again.
    2. It has logged a transaction that its source logged before all of the gap. The GNO alone does
       not show that: a GTID set with gtid_next may be in the source's log before lower ones, or in
       the replica's log after the reset. The source's order alone does not show it either, if the
       replica applies in another order (replica_preserve_commit_order = OFF). It may have applied
       the gap first, then was reset, and the earlier transaction was sent again. That is excluded
       if the replica logged it before the gap was committed. Nor is it shown if the gap has the
       replica's server_id: after a reset everything earlier is sent again, and the gap is dropped.
    """
    if has_log_from_before(replica, hole, source):
        return True
    if _has_id_of(replica, hole, source):
        return False
    kept = logged_as_received(replica) & received
    return excludes_reset(replica, hole) and all(
        _is_earlier(sample, hole.from_tsid(tsid), source)
        and not _is_made_here(sample, replica)
        and (not _may_reorder(replica) or _is_logged_before(sample, hole, replica, source))
        for tsid, sample in _samples(kept, hole, source)
    )


def earlier_samples(
    replica: ServerSnapshot, hole: GtidSet, *, source: ServerSnapshot, received: GtidSet
) -> GtidSet:
    """Return the transactions whose position in the source's log excludes a reset of a replica."""
    found = _samples(logged_as_received(replica) & received, hole, source)
    return GtidSet.union_of(sample for _, sample in found) & source.logged


def _samples(
    kept: GtidSet, hole: GtidSet, source: ServerSnapshot
) -> Iterator[tuple[Tsid, GtidSet]]:
    """Yield, by TSID, the oldest transaction below the gap; purged GTIDs are the oldest."""
    purged = source.gtid_purged or GtidSet()
    for tsid in hole.tsids:
        part = hole.from_tsid(tsid)
        below = (part.first(1).filled() - part) & kept
        yield tsid, (below & purged).first(1) or (below & source.logged).first(1)


def _is_made_here(sample: GtidSet, replica: ServerSnapshot) -> bool:
    """Return whether a replica's log shows that one of its sessions committed a transaction first.

    A transaction that a session executed after a reset has its own server's server_id.
    """
    found = replica.history_evidence
    here = None if found is None else found.commit_of(sample)
    return here is not None and here.server_id == replica.server_id


def _has_id_of(replica: ServerSnapshot, hole: GtidSet, source: ServerSnapshot) -> bool:
    """Return whether the source's log shows part of the gap with the replica's server_id."""
    found = source.history_evidence
    records = [] if found is None else [found.commit_of(end) for end in ends_of(hole)]
    return any(each is not None and each.server_id == replica.server_id for each in records)


def _is_earlier(sample: GtidSet, hole: GtidSet, source: ServerSnapshot) -> bool:
    """Return whether a source logged one transaction before all of a gap."""
    purged = source.gtid_purged or GtidSet()
    if sample and sample <= purged and not hole & purged:
        is_read = source.notable_settings is not None
        return is_read and "log_replica_updates" not in notable_values(source.notable_settings)
    found = source.history_evidence
    first = None if found is None else found.commit_of(sample)
    if found is None or first is None:
        return False
    others = [found.commit_of(end) for end in ends_of(hole)]
    return all(each is not None and _is_before(first, each, source) for each in others)


def _is_before(left: CommitRecord, right: CommitRecord, source: ServerSnapshot) -> bool:
    """Return whether a source logged the transaction with the lower GNO first. Both have one TSID.

    Before 8.0.1 its log has whole seconds. It logs its own commits in ascending GNO order.
    """
    if left.logged_at is not None and right.logged_at is not None:
        return left.logged_at < right.logged_at
    ids = {left.server_id, right.server_id}
    if ids == {source.server_id} and {*left.gtid.uuids} == {source.server_uuid}:
        return left.committed_at <= right.committed_at
    return left.committed_at < right.committed_at


def has_log_from_before(replica: ServerSnapshot, hole: GtidSet, source: ServerSnapshot) -> bool:
    """Return whether a replica has a binary log that is older than all of a gap."""
    log = None if replica.history_evidence is None else replica.history_evidence.first_log
    committed = _first_commit(hole, source)
    if log is None or committed is None or replica.clock_ahead is None:
        return False
    return log.begun_at - replica.clock_ahead + _SECOND < committed


def _may_reorder(replica: ServerSnapshot) -> bool:
    """Return whether a replica may apply transactions in another order than it receives them."""
    is_parallel = replica.setting("replica_parallel_workers") not in (None, "0", "1")
    return replica.settings is None or (is_parallel and not commits_in_order(replica))


def _is_logged_before(
    sample: GtidSet, hole: GtidSet, replica: ServerSnapshot, source: ServerSnapshot
) -> bool:
    """Return whether a replica logged a transaction before the first of a gap was committed."""
    found, committed = replica.history_evidence, _first_commit(hole, source)
    here = None if found is None else found.commit_of(sample)
    logged_at = None if here is None else here.logged_at
    if logged_at is None or committed is None or replica.clock_ahead is None:
        return False
    return logged_at - replica.clock_ahead + _SECOND < committed


def _lowest(gtid_set: GtidSet) -> Iterator[tuple[object, int]]:
    seen: set[object] = set()
    for tsid, start, _ in gtid_set.intervals():
        if tsid not in seen:
            seen.add(tsid)
            yield tsid, start


def runs_since_before(server: ServerSnapshot, gtids: GtidSet, source: ServerSnapshot) -> bool:
    """Return whether a server has been running since before its source committed these.

    In that case a crash of the server cannot have lost them. The uptime is a difference of whole
    seconds, so the start may be up to a second later. Each clock was compared with the auditor's
    when it was read.
    """
    committed = _first_commit(gtids, source)
    if server.uptime_seconds is None or committed is None:
        return False
    started_before = server.read_ended - timedelta(seconds=server.uptime_seconds)
    return started_before + _SECOND < committed


def received_present_ones(
    replica: ServerSnapshot, channel: ChannelSnapshot, received: GtidSet, source: ServerSnapshot
) -> bool:
    """Return whether what was received is what its source has now under these GTIDs.

    Retrieved_Gtid_Set survives a RESET of the replica, and one of the source. It then lists what a
    former history of the source had under the same GTIDs. Either of two facts excludes that:

    1. They are exactly the transaction that the receiver queued last, with the time of the commit
       that the source has now.
    2. The replica was started after the first log of the source was begun, with relay_log_recovery
       on. Retrieved_Gtid_Set was empty then, and a RESET begins the logs again.
    """
    found = source.history_evidence
    record = None if found is None else found.commit_of(received)
    if record is not None and record.is_exact and channel.last_queued == received:
        return record.committed_at == channel.last_queued_committed_at
    log = None if found is None else found.first_log
    started_at, ahead = replica.started_at, replica.clock_ahead
    if log is None or started_at is None or ahead is None or source.clock_ahead is None:
        return False
    is_later = started_at - ahead - START_SLACK > log.begun_at - source.clock_ahead + _SECOND
    return is_later and replica.setting("relay_log_recovery") in ("1", "ON")


def may_have_had(source: ServerSnapshot, gtids: GtidSet) -> GtidSet:
    """Return which of some extra GTIDs a source may have executed, as far as its sets show it.

    It has purged others of the same TSID: its set may have been set by hand. With
    log_replica_updates = OFF it counts all that it receives as purged.
    """
    purged = source.gtid_purged or GtidSet()
    if "log_replica_updates" in notable_values(source.notable_settings):
        return GtidSet()
    return GtidSet.union_of(gtids.from_tsid(tsid) for tsid in gtids.tsids if tsid in purged.tsids)


def _first_commit(gtids: GtidSet, source: ServerSnapshot) -> datetime | None:
    """Return when the first of these was committed, by the auditor's clock; None if not known."""
    found = source.history_evidence
    if source.clock_ahead is None or found is None:
        return None
    records = [found.commit_of(end) for end in ends_of(gtids)]
    known = [each.committed_at for each in records if each is not None]
    if not known or len(known) < len(records):
        return None
    return min(known) - source.clock_ahead

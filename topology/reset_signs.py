"""What excludes that a server's GTID history was reset, or lost in a crash.

RESET BINARY LOGS AND GTIDS removes every transaction from gtid_executed. A server that still has an
earlier one in its binary logs was not reset since. What it has purged proves nothing: SET GLOBAL
gtid_purged may have put it back after the reset.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from gtid import GtidSet
from topology.dialect import dialect_of
from topology.history_evidence import CommitRecord, ends_of
from topology.notable_settings import notable_values
from topology.snapshot import ServerSnapshot

_SECOND = timedelta(seconds=1)


def logged(server: ServerSnapshot) -> GtidSet:
    """Return what a server has in its binary logs."""
    return (server.gtid_executed or GtidSet()) - (server.gtid_purged or GtidSet())


def goes_back_beyond(commit: CommitRecord, origin: ServerSnapshot, lost: datetime | None) -> bool:
    """Return whether an origin made one of its transactions before it made those that it lacks.

    What it committed behind them, or received from a session elsewhere, came after a reset as well.
    """
    is_own = origin.server_id is None or commit.server_id == origin.server_id
    return is_own and (lost is None or commit.committed_at <= lost)


def keeps_gtids(server: ServerSnapshot) -> bool:
    """Return whether a crash leaves no rows without their GTIDs: InnoDB has both (8.0.17)."""
    return server.version is not None and dialect_of(server.version).has_gtids_in_innodb


def has_earlier(executed: GtidSet | None, hole: GtidSet) -> bool:
    """Return whether a server has a transaction below the hole, under every TSID of the hole.

    A RESET would have removed it as well.
    """
    below = (hole.filled() - hole) & (executed or GtidSet())
    return all(
        any(tsid == other and start < lowest for other, start, _ in below.intervals())
        for tsid, lowest in _lowest(hole)
    )


def excludes_reset(server: ServerSnapshot, hole: GtidSet) -> bool:
    """Return whether a server's binary logs show that it was not reset behind a hole.

    One that ignores errors (replica_skip_errors, IDEMPOTENT) may have taken the earlier ones again,
    with their GTIDs: each stopped at its row, and was logged without it. Nor does its log exclude
    one for numbers of its own UUID, which it gives again from the lowest on.
    """
    if server.server_uuid is None or hole.from_uuid(server.server_uuid):
        return False
    ignores = {"replica_skip_errors", "replica_exec_mode"} & notable_values(
        server.notable_settings
    ).keys()
    return not ignores and has_earlier(logged(server), hole)


def _lowest(gtid_set: GtidSet) -> Iterator[tuple[object, int]]:
    seen: set[object] = set()
    for tsid, start, _ in gtid_set.intervals():
        if tsid not in seen:
            seen.add(tsid)
            yield tsid, start


def runs_since_before(server: ServerSnapshot, gtids: GtidSet, source: ServerSnapshot) -> bool:
    """Return whether a server has been running since before its source committed these.

    A crash of the server cannot have lost them then. The uptime is a difference of whole seconds,
    so the start may be up to a second later. Each clock is compared with ours when it was read.
    """
    uptime, ahead, evidence = server.uptime_seconds, source.clock_ahead, source.history_evidence
    if uptime is None or ahead is None or evidence is None:
        return False
    records = [evidence.commit_of(end) for end in ends_of(gtids)]
    if not records or None in records:
        return False
    committed = min(each.committed_at for each in records if each is not None) - ahead
    started_before = server.read_ended - timedelta(seconds=uptime)
    return started_before + _SECOND < committed

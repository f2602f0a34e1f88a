"""Which GTIDs of other servers a server received unlogged while it was already in service.

How it works
------------
A server that was provisioned from a backup or a clone has in gtid_purged what the backup holds, and
logs what comes later. An operator can extend gtid_purged of a server in service as well. SET GLOBAL
gtid_purged = '+…' with the GTIDs of a replica's own writes makes the sets equal, and the rows are
missing on the source. Within one UUID the GNOs show it (topology/facts/unlogged.py). Here the
server has logged no GTID of that UUID, so only the order of two origins can show it:

    b's log   a:4, b:1         b received a:4 before it committed b:1
    a's log   a:1-4            a committed a:4 itself, so it was in service before b:1 was there
    a has b:1 in gtid_purged: no backup that holds b:1 and not a:4 was ever taken of b

    server    has `gtids` of the holder's UUID in gtid_purged; the holder has them in its logs
    earlier   a transaction that both have in their logs: the oldest of the server's own, or else
              of another origin

A GTID is reported if the holder logged `earlier` before it. Two cases are excluded:

* `earlier` is another transaction with the same GTID (the server was reset): the first commits of
  one transaction have one time on both servers.
* `earlier` is of a third server, and the backup was taken where it arrived late: the server itself
  must have logged it before the GTID was committed, by the clocks of both (as in declared.py).

The start of the server's first log excludes that the server logged the GTIDs itself and purged them
(topology/facts/unlogged.py). Two cases are not visible. Servers before 8.0.1 have no exact times in
their logs (and gtid_purged accepts no addition there). GTIDs, or an `earlier`, that only purged
logs held cannot be read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gtid import GtidSet
from topology.facts.declared import DOUBT, GTIDS_MAX
from topology.facts.unlogged import logs_received
from topology.readings.history_evidence import CommitRecord, intervals_of
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot

_INTERVALS_MAX: Final = 4  # the newest are checked: an operator declares one or two


@dataclass(frozen=True, slots=True)
class Unordered:
    """What one server may have declared executed after it had logged `earlier`."""

    server: str
    holder: str  # the server that committed the GTIDs
    earlier: GtidSet  # exactly one GTID
    intervals: tuple[GtidSet, ...]

    @property
    def samples(self) -> tuple[GtidSet, ...]:
        """Return the GTIDs to read in the holder's log; those of one set are close together."""
        return tuple(part for each in self.intervals for part in (each.first(1), _newest(each)))


def unordered(snapshot: ClusterSnapshot) -> Iterator[Unordered]:
    """Yield what the sets alone cannot decide: other servers' GTIDs that are only in gtid_purged.

    Few servers have any. A server that does not log what it applies has all of them there.
    """
    servers = snapshot.last_read.values()
    for server in servers:
        if not server.gtid_purged or not server.binary_logs or not logs_received(server):
            continue
        for holder in servers:
            if holder.name == server.name:
                continue
            declared = server.gtid_purged.from_uuid(holder.server_uuid) & holder.logged
            both = (server.logged & holder.logged).without_uuid(holder.server_uuid)
            if declared and both:
                intervals = tuple(intervals_of(declared))[-_INTERVALS_MAX:]
                earlier = (both.from_uuid(server.server_uuid) or both).first(1)
                yield Unordered(server.name, holder.name, earlier, intervals)


def declared_later(snapshot: ClusterSnapshot) -> Mapping[str, GtidSet]:
    """Return, by server, GTIDs that it got after it had logged a transaction that precedes them."""
    servers = {server.name: server for server in snapshot.last}
    found: dict[str, GtidSet] = {}
    for each in unordered(snapshot):
        later = GtidSet.union_of(
            _later_part(interval, each, servers[each.server], servers[each.holder])
            for interval in each.intervals
        )
        if later:
            found[each.server] = found.get(each.server, GtidSet()) | later
    return found


def _later_part(
    interval: GtidSet, pair: Unordered, server: ServerSnapshot, holder: ServerSnapshot
) -> GtidSet:
    """Return the end of an interval that the holder committed after `earlier`.

    The holder commits its own transactions in ascending GNO order: what follows a later one is
    later as well.
    """
    here, there = _record(server, pair.earlier), _record(holder, pair.earlier)
    if here is None or there is None or not _are_one(here, there):
        return GtidSet()
    is_own = server.server_uuid in pair.earlier.uuids
    for gtid in (interval.first(1), *_each(_newest(interval))):
        record = _record(holder, gtid)
        if record is None or not _is_before(there, record):
            continue
        if is_own or _was_logged_before(here, server, record, holder):
            return interval - (gtid.filled() - gtid)
    return GtidSet()


def _was_logged_before(
    here: CommitRecord, server: ServerSnapshot, record: CommitRecord, holder: ServerSnapshot
) -> bool:
    """Return whether a server logged one transaction before another server committed another."""
    ahead, ahead_there = server.clock_ahead, holder.clock_ahead
    if here.logged_at is None or ahead is None or ahead_there is None:
        return False
    return here.logged_at - ahead + DOUBT < record.committed_at - ahead_there


def _is_before(left: CommitRecord, right: CommitRecord) -> bool:
    if left.logged_at is None or right.logged_at is None:
        return False
    return left.logged_at < right.logged_at


def _are_one(left: CommitRecord, right: CommitRecord) -> bool:
    is_exact = left.is_exact and right.is_exact
    return is_exact and left.committed_at == right.committed_at


def _newest(interval: GtidSet) -> GtidSet:
    [(tsid, start, end)] = interval.intervals()
    return GtidSet.from_intervals([(tsid, max(start, end - GTIDS_MAX), end)])


def _each(interval: GtidSet) -> Iterator[GtidSet]:
    for gtid in interval.gtids():
        yield GtidSet.of(gtid)


def _record(server: ServerSnapshot, gtid: GtidSet) -> CommitRecord | None:
    return None if server.history_evidence is None else server.history_evidence.commit_of(gtid)

"""Which GTIDs a server declared executed before their origin committed them.

How it works
------------
If a server has never purged a log, its gtid_purged was set by a dump, by a clone, or manually (SET
GLOBAL gtid_purged). A dump and a clone hold what was committed before. A manually set value may be
too large. Then the origin reaches the GTIDs, the channel skips them, both sets are equal, and the
rows are missing. The sets show it before the origin reaches the GTIDs (H7, E3), and never
afterwards.

Timestamps show it. The server writes each SET GLOBAL gtid_purged to its error log, with both values
(MY-010916, ER_GTID_PURGED_WAS_UPDATED; seen on 9.7.4). performance_schema.error_log keeps the
message from 8.0.22 on. Suppose the origin's log has a later commit of a GTID that was added. Then
the GTID was declared too early, or the origin reused it for another transaction after a crash, a
reset or a restored copy. In each case the server does not have what the origin committed.

The result is `likely`: a clock may have been wrong at that time. gtid-audit compares each server's
current clock with its own, and allows `DOUBT` for the error. It cannot see servers before 8.0.22,
and messages that the table no longer holds (it holds 5 MB). It excludes servers that have purged a
log since, because their gtid_purged may come from that. If the account may not read the table, the
result is UNKNOWN.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from gtid import GtidSet, Tsid
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot

GTIDS_MAX: Final = 8  # the newest ones are queried: the others were committed before them
DOUBT: Final = timedelta(seconds=2)  # allowance for two clocks, and for reading them


@dataclass(frozen=True, slots=True)
class Declared:
    """What one server had in its GTID set before its origin committed it."""

    server: str
    origin: str
    gtids: GtidSet
    set_at: datetime  # the last change that added them, by the server's clock


def newest_set(snapshot: ClusterSnapshot) -> Mapping[tuple[str, str], GtidSet]:
    """Return, by server and origin, the newest GTIDs that were set and that the origin has logged.

    Only servers that have never purged a log are considered: their gtid_purged was set.
    """
    found: dict[tuple[str, str], GtidSet] = {}
    servers = snapshot.last_read.values()
    for server in servers:
        if not server.gtid_purged or not has_its_first_log(server):
            continue
        for origin in servers:
            # Of its own gtid_purged a server has logged nothing, so it is no origin of its set.
            set_here = server.gtid_purged.from_uuid(origin.server_uuid)
            if both := set_here & origin.logged:
                found[server.name, origin.name] = _newest(both)
    return found


def declared_early(snapshot: ClusterSnapshot) -> Iterator[Declared]:
    """Yield what was set before its origin committed it, as far as the logs were read."""
    servers = {server.name: server for server in snapshot.last}
    for (name, origin_name), asked in sorted(newest_set(snapshot).items()):
        server, origin = servers[name], servers[origin_name]
        if server.history_evidence is None or origin.history_evidence is None:
            continue
        ahead, ahead_there = server.clock_ahead, origin.clock_ahead
        if ahead is None or ahead_there is None:
            continue
        early, latest = GtidSet(), datetime.min.replace(tzinfo=UTC)
        for change in server.history_evidence.purged_changes or ():
            added = GtidSet.union_of(
                record.gtid
                for record in origin.history_evidence.commits
                if record.is_exact
                and record.gtid <= asked & change.added
                and change.at - ahead + DOUBT < record.committed_at - ahead_there
            )
            if added:
                early, latest = early | added, max(latest, change.at)
        if early:
            yield Declared(name, origin_name, early, latest)


def unread_changes(snapshot: ClusterSnapshot) -> Mapping[str, GtidSet]:
    """Return what was set on servers whose error log could not be read."""
    servers = {server.name: server for server in snapshot.last}
    found: dict[str, GtidSet] = {}
    for (name, _), asked in newest_set(snapshot).items():
        evidence = servers[name].history_evidence
        if evidence is not None and evidence.purged_changes is None:
            found[name] = found.get(name, GtidSet()) | asked
    return found


def has_its_first_log(server: ServerSnapshot) -> bool:
    """Return whether a server never purged a log: then its gtid_purged was set."""
    names = [log.name for log in server.binary_logs or ()]
    return bool(names) and names[0].rpartition(".")[2].lstrip("0") == "1"


def _newest(gtid_set: GtidSet) -> GtidSet:
    """Return the end of the last interval of each TSID."""
    last: dict[Tsid, tuple[Tsid, int, int]] = {}
    for tsid, start, end in gtid_set.intervals():
        last[tsid] = (tsid, max(start, end - GTIDS_MAX), end)
    return GtidSet.from_intervals(last.values())

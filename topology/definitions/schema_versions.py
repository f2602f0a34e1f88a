"""The schema version of each server: the last DDL that it has received, and that it has applied.

1. A version is a DDL transaction. A server has applied it if its GTID is in gtid_executed, and
   received it if it is in gtid_executed or in what a channel has retrieved.
2. The DDL comes from the logs of all servers of a cluster: a transaction that is only in a relay
   log of a replica is in the binary log of its source.
3. How far servers are apart is the number of DDL transactions that at least one of them has
   executed and this one has not. It is exact if all these transactions were searched.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import Verdict, worst_verdict
from topology.definitions.ddl_searches import DdlSearch, NewestDdl
from topology.definitions.schema_objects import ServerObjects
from topology.readings.logged_ddl import LoggedDdl
from topology.readings.snapshot import UnreadFact, UnreadReason

# More DDL transactions apart than this is a warning, and so is one that waits for longer.
APART_MAX: Final = 1
WAITING_MAX: Final = timedelta(minutes=5)
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class VersionFacts:
    """What was read of one server."""

    server: str
    executed: GtidSet
    retrieved: GtidSet
    objects: ServerObjects | None
    digest: str = ""  # of all definitions; "" if they were not read
    unread: tuple[UnreadFact, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerSchemaVersion:
    """The versions of one server; None: none was found in the logs that were searched."""

    facts: VersionFacts
    applied: LoggedDdl | None
    received: LoggedDdl | None
    missing: tuple[LoggedDdl, ...]  # DDL that another server has executed, oldest first
    older_than: str = ""  # the oldest log that was searched, if `applied` is None

    def waits(self, now: datetime) -> timedelta | None:
        """Return for how long the oldest missing DDL has been waiting; None if it is not known."""
        times = [each.committed_at for each in self.missing if each.committed_at is not None]
        return now - min(times) if times else None


@dataclass(frozen=True, slots=True)
class ClusterVersions:
    """The versions of all servers of a cluster."""

    servers: tuple[ServerSchemaVersion, ...]
    unknown: tuple[tuple[str, UnreadFact], ...]
    read_at: datetime
    why_incomplete: str = ""  # why not all transactions that servers are apart by were searched

    @property
    def digests_differ(self) -> bool:
        """Return whether two servers have different definitions."""
        return len({each.facts.digest for each in self.servers if each.facts.digest}) > 1

    @property
    def verdict(self) -> Verdict:
        """Return UNKNOWN if a fact is missing, else WARNING if servers differ by too much."""
        is_apart = any(self.is_behind(each) for each in self.servers)
        return worst_verdict(
            [
                Verdict.WARNING if is_apart or self.digests_differ else Verdict.OK,
                Verdict.UNKNOWN if self.unknown or self.why_incomplete else Verdict.OK,
            ]
        )

    def is_behind(self, server: ServerSchemaVersion) -> bool:
        """Return whether a server is more than one DDL apart, or waits for one for too long."""
        waits = server.waits(self.read_at)
        return len(server.missing) > APART_MAX or (waits is not None and waits > WAITING_MAX)


def apart(facts: Sequence[VersionFacts]) -> tuple[GtidSet, GtidSet]:
    """Return what not all servers have executed, received ones included, and what all have."""
    known = GtidSet.union_of(each.executed | each.retrieved for each in facts)
    common = facts[0].executed if facts else GtidSet()
    for each in facts:
        common &= each.executed
    return known - common, common


def versions_of(
    facts: Sequence[VersionFacts],
    searches: Sequence[DdlSearch],
    newest: NewestDdl,
    *,
    unknown: Iterable[tuple[str, UnreadFact]],
    read_at: datetime,
) -> ClusterVersions:
    """Return the versions, from searches of what servers are apart by and of the newest logs."""
    notes = list(unknown)
    if newest.failure:
        notes.append((newest.server, UnreadFact("binary logs", UnreadReason.ERROR, newest.failure)))
    found = {
        each.gtid: each
        for each in (*newest.found, *(ddl for search in searches for ddl in search.found))
        if each.defines
    }
    ordered = sorted(found.values(), key=_age)
    wanted, _ = apart(facts)
    searched = GtidSet.union_of(each.searched for each in searches)
    reasons = [each.why_unread for each in searches if each.why_unread]
    return ClusterVersions(
        tuple(_version_of(each, ordered, facts, newest) for each in facts),
        tuple(notes),
        read_at,
        "" if wanted <= searched else (reasons[0] if reasons else "no log was searched"),
    )


def _version_of(
    one: VersionFacts,
    ordered: Sequence[LoggedDdl],
    facts: Sequence[VersionFacts],
    newest: NewestDdl,
) -> ServerSchemaVersion:
    executed_anywhere = GtidSet.union_of(each.executed for each in facts)
    applied = [each for each in ordered if each.gtid in one.executed]
    received = [each for each in ordered if each.gtid in one.executed | one.retrieved]
    missing = tuple(
        each for each in ordered if each.gtid in executed_anywhere and each.gtid not in one.executed
    )
    return ServerSchemaVersion(
        one,
        applied[-1] if applied else None,
        received[-1] if received else None,
        missing,
        "" if applied else newest.oldest_log,
    )


def _age(ddl: LoggedDdl) -> tuple[datetime, str, int]:
    return (ddl.committed_at or _NEVER, str(ddl.gtid.tsid), ddl.gtid.gno)

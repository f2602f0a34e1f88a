"""Decides which transactions an audit compares. Cheap to evaluate, and to import.

How it works
------------
Two servers may hold different transactions under one GTID, and their sets do not show it. To
compare all transactions would read all logs of both servers in every audit. But a GTID gets a
second content only in a few situations, and a reading shows these:

1. Restarts (`looked_back`): GTIDs are reused after a server lost the end of its log, and that
   happens when it stops without warning. So an audit compares around every restart since it last
   compared that server. It also compares around every restart of the last day: so a difference
   stays in the report that long.
2. Suspects (`suspects_in`): an earlier audit found GTIDs on one server only that should not be
   there (SUSPECTED). Other content may since have been committed elsewhere. Examples: an origin
   reached a GTID that a client had set by hand; an operator injected an empty transaction for a
   lost GTID. They are compared as soon as two servers have them (`held_by_two`).
3. This reading (`suspects_now`), in every audit. GTIDs that a replica executed but did not receive,
   although its source has them in its log (topology/facts/not_received.py): another transaction may
   have them. GTIDs that two replicas have and their source has not (topology/facts/siblings.py).
   GTIDs of a replica under which one of its sources has another commit
   (topology/facts/other_versions.py). GTIDs that a replica with a stopped applier committed itself
   (topology/facts/committed_by_hand.py).
4. Groups (`bootstraps_due`): the first transactions after a bootstrap.
5. Known differences (known_differences.py), in every audit: they remain until an
   operator says that the rows are equal. Purging the logs repairs nothing, nor does a RESET. What a
   comparison does not show any more is reported as it was found.

Example for rule 1. The last comparison was 14 days ago. The server restarted 10 days ago, so its
uptime is 10 days, which is less than 14 days: the restart is due. After this audit the memory has
today's time, and tomorrow the uptime of 11 days exceeds one day: nothing is due.

Both are durations. The server's clock measures its uptime, and ours the time since the last audit.
So a server clock that was changed together with a restart does not hide the restart. `_SLACK`
allows for uptimes in whole seconds.

Without a memory of earlier audits (an audit without --history and --out, a new server) the last day
is compared: there is no better bound.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from gtid import GtidSet
from topology.catalogue.findings import Finding
from topology.facts.committed_by_hand import every_by_hand
from topology.facts.gtid_waits import waits_for_gtid
from topology.facts.memberships import uuid_of_group
from topology.facts.not_received import not_received
from topology.facts.other_versions import with_other_versions
from topology.facts.siblings import held_by_siblings
from topology.readings.contents import (
    ContentDifference,
    ContentReading,
    Difference,
    UnreadContent,
)
from topology.readings.snapshot import ClusterSnapshot, ReadServer
from topology.rules.failed_appliers import FAILED_AND_EXECUTED

RECENT: Final = timedelta(hours=24)
# For one query to one server, including the connection.
QUERY_SECONDS_MAX: Final = 10.0
# Uptimes are in whole seconds, and are counted from an early moment of the server's startup.
_SLACK: Final = timedelta(seconds=2)
# Findings about transactions on one server whose GTIDs may get other content elsewhere. That also
# holds for an applier that waits for a session which owns the GTID: the session may commit it.
SUSPECTED: Final = frozenset({"E1", "E2", "E3", "E6", "H7", "J1", "J3", "T4"})
# Differences after which rows may be missing or different: they do not clear.
LASTING: Final = frozenset(
    {
        Difference.CONTENT,
        Difference.DRIFT,
        Difference.SKIPPED,
        Difference.ADDED,
        Difference.EMPTY,
    }
)
IN_TURN_MAX: Final = 1_000  # GTIDs
_NEVER: Final[Mapping[UUID, datetime]] = {}


@dataclass(frozen=True, slots=True)
class Looked:
    """The result of comparing the contents of a cluster, or of two servers."""

    reading: ContentReading | None  # None if no two servers were compared
    # Servers with a restart that could not be compared now, and may be comparable later.
    look_again: frozenset[str] = frozenset()
    settled: GtidSet = field(default_factory=GtidSet)  # suspects that need no further comparison
    # The GTIDs that were compared with an answer, by pair of servers (in order of name).
    answered: Mapping[tuple[str, str], GtidSet] = field(default_factory=dict)

    def with_unread(self, unread: Iterable[UnreadContent], snapshot: ClusterSnapshot) -> "Looked":
        """Return the result with what could not be compared in addition."""
        reading = self.reading if self.reading is not None else nothing_compared(snapshot)
        more = tuple(sorted({*reading.unread, *unread}))
        return replace(self, reading=replace(reading, unread=more))


def nothing_compared(snapshot: ClusterSnapshot) -> ContentReading:
    """Return the result of comparing nothing of a cluster, when it was read."""
    return ContentReading(max(server.read_ended for server in snapshot.last), 0, (), (), ())


@dataclass(frozen=True, slots=True)
class KnownDifference:
    """A difference that an audit proved, with the server_uuids of its source and its replica.

    A server that was rebuilt has another server_uuid.
    """

    difference: ContentDifference
    server_uuids: tuple[UUID, UUID]


@dataclass(frozen=True, slots=True)
class Remembered:
    """What one audit keeps for the next.

    `looks`: by server_uuid, when an audit last compared a server, by our clock. `suspects`: by
    cluster, the GTIDs to compare once two servers have them. `differences`: by cluster. The name
    that a cluster had at that time has no influence. `reported`: by the server_uuid of the server
    that has them (reported_losses.py).
    """

    looks: Mapping[UUID, datetime] = field(default_factory=dict)
    suspects: Mapping[str, GtidSet] = field(default_factory=dict)
    differences: Mapping[str, tuple[KnownDifference, ...]] = field(default_factory=dict)
    reported: Mapping[UUID, GtidSet] = field(default_factory=dict)

    @property
    def every_difference(self) -> tuple[KnownDifference, ...]:
        """Return the differences of all clusters."""
        return tuple(each for found in self.differences.values() for each in found)


def looked_back(
    snapshot: ClusterSnapshot, chosen: bool | None, seen: Mapping[UUID, datetime] = _NEVER
) -> dict[str, timedelta | None]:
    """Return how far back the restarts of which servers are compared; None: to the oldest log.

    Args:
        snapshot: the cluster as it was just read.
        chosen: True for --content, False for --no-content, None if neither was given.
        seen: by server_uuid, when a server's restarts were last compared, by our clock.
    """
    if chosen is False:
        return {}
    servers = snapshot.last_read.values()
    if chosen:
        return {server.name: None for server in servers}
    return {server.name: back for server in servers if (back := _since_start(server, seen))}


def _since_start(server: ReadServer, seen: Mapping[UUID, datetime]) -> timedelta | None:
    """Return how far back to compare; None if the server has not restarted within that time."""
    if server.uptime_seconds is None:
        return None  # the audit reports it
    back = RECENT
    if server.server_uuid in seen:
        back = max(back, server.read_ended - seen[server.server_uuid] + _SLACK)
    return back if timedelta(seconds=server.uptime_seconds) < back else None


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """The start of a group, in whose logs GTIDs may have been used again."""

    server: str  # a member; each may have other transactions under the group's GTIDs
    uuid: UUID  # under which the group commits
    at: datetime


def bootstraps_due(
    snapshot: ClusterSnapshot, chosen: bool | None, seen: Mapping[UUID, datetime] = _NEVER
) -> tuple[Bootstrap, ...]:
    """Return the groups that were bootstrapped lately; the arguments are those of looked_back.

    A group that was bootstrapped from a member without its last transactions uses their GTIDs
    again. No server need have restarted for that. What is the first one since the bootstrap in the
    log of that member is an older one in the log of another.
    """
    if chosen is False:
        return ()
    found = []
    for server in snapshot.last_read.values():
        group = server.group
        uuid = uuid_of_group(group.group_name) if group is not None else None
        at = group.bootstrapped_at if group is not None else None
        if uuid is None or at is None:
            continue
        back = RECENT
        if server.server_uuid in seen:
            back = max(back, server.read_ended - seen[server.server_uuid] + _SLACK)
        if chosen or (server.server_clock or server.read_ended) - at < back:
            found.append(Bootstrap(server.name, uuid, at))
    return tuple(found)


def suspects_in(snapshot: ClusterSnapshot, findings: Iterable[Finding]) -> GtidSet:
    """Return the GTIDs of findings that must be compared once two servers have them."""
    result = GtidSet()
    for finding in findings:
        if finding.code in SUSPECTED or waits_for_gtid(finding):
            result |= gtids_apart(snapshot, finding)
        for fact in finding.evidence:
            if fact.fact == FAILED_AND_EXECUTED:
                result |= GtidSet.parse(fact.value)
    return result


def gtids_apart(snapshot: ClusterSnapshot, finding: Finding) -> GtidSet:
    """Return the GTIDs of a finding; of J1 and J3, what only one of the two servers has.

    An operator may give either side's GTIDs to the other server, with or without their content.
    What a candidate has beyond `IN_TURN_MAX` is its work since a copy was taken or an old primary
    was left, and is fetched.
    """
    if finding.code not in ("J1", "J3"):
        return finding.gtid_set
    executed = {each.name: each.gtid_executed or GtidSet() for each in snapshot.last}
    server, candidate = executed.get(finding.replica or ""), executed.get(finding.source or "")
    if server is None or candidate is None:
        return finding.gtid_set
    in_turn = candidate - server
    extra = finding.gtid_set if finding.code == "J3" else GtidSet()
    return extra | (in_turn if in_turn.gtid_count <= IN_TURN_MAX else GtidSet())


def suspects_now(snapshot: ClusterSnapshot, chosen: bool | None) -> GtidSet:
    """Return the GTIDs that this reading makes suspect; `chosen` as in looked_back."""
    if chosen is False:
        return GtidSet()
    parts = (not_received(snapshot), with_other_versions(snapshot), every_by_hand(snapshot))
    return GtidSet.union_of((*parts, *held_by_siblings(snapshot).values()))


def held_by_two(snapshot: ClusterSnapshot, suspects: GtidSet) -> GtidSet:
    """Return which of the GTIDs at least two servers have executed."""
    once, twice = GtidSet(), GtidSet()
    for server in snapshot.last:
        held = suspects & (server.gtid_executed or GtidSet())
        twice |= once & held
        once |= held
    return twice

"""Decides what an audit compares: cheap to ask, and to import.

1. GTIDs are reused after a lost tail, and a tail is lost when a server stops without warning. So an
   audit compares around every restart since it last compared that server, and around every one of
   the last day besides: what was found stays in sight that long.
2. GTIDs that an earlier audit found on one server only, and should not have (SUSPECTED), may since
   have been committed elsewhere with other content: an origin that reached a GTID made by hand, an
   empty transaction under a lost GTID. They are compared as soon as both servers have them.
3. GTIDs that a replica executed and did not receive where its source has them in its log
   (topology/not_received.py) are compared in every audit: another transaction may have them. So
   are those that two replicas have and their source has not (topology/siblings.py), and those of a
   replica under which one of its sources has another commit (topology/other_versions.py).
4. GTIDs that an earlier audit proved to be different stay different until a comparison shows them
   alike: that the logs were purged since repairs nothing. They are compared in every audit, and
   where that is no longer possible the difference is reported as it was found.
5. Without a memory of earlier audits (`pair`, an audit without --out, a server not seen before) the
   last day is compared.
6. A server's uptime is measured by its own clock, the time of the last audit by ours: a clock that
   was changed together with a restart hides no restart.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from gtid import GtidSet
from topology.contents import ContentDifference, ContentReading, Difference
from topology.findings import Finding
from topology.gtid_waits import waits_for_gtid
from topology.not_received import not_received
from topology.other_versions import with_other_versions
from topology.rules.threads import FAILED_AND_EXECUTED
from topology.siblings import held_by_siblings
from topology.snapshot import ClusterSnapshot, ServerSnapshot

RECENT: Final = timedelta(hours=24)
# Uptimes are in whole seconds, and counted from early in a server's start.
_SLACK: Final = timedelta(seconds=2)
# Findings whose transactions are on one server, and which may be given other content elsewhere.
SUSPECTED: Final = frozenset({"E1", "E2", "E3", "E6", "H7", "J3", "T4"})
# Differences after which rows may be missing, or differ: they do not end by themselves.
LASTING: Final = frozenset(
    {Difference.CONTENT, Difference.DRIFT, Difference.SKIPPED, Difference.EMPTY}
)
# And of an applier that waits for a session which owns the GTID: the session may commit it.
_NEVER: Final[Mapping[UUID, datetime]] = {}


@dataclass(frozen=True, slots=True)
class Looked:
    """The result of comparing the contents of a cluster, or of two servers."""

    reading: ContentReading | None  # None if no two servers were compared
    # Servers with a restart around which nothing could be compared, and another time may be.
    look_again: frozenset[str] = frozenset()
    settled: GtidSet = field(default_factory=GtidSet)  # suspects that need no further comparison
    # What was compared, with an answer, between which two servers (in order of name).
    answered: Mapping[tuple[str, str], GtidSet] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KnownDifference:
    """A difference that an audit proved, with the server_uuids of its source and its replica.

    A server that was rebuilt has another one.
    """

    difference: ContentDifference
    server_uuids: tuple[UUID, UUID]


@dataclass(frozen=True, slots=True)
class Remembered:
    """What one audit keeps for the next.

    `looks`: by server_uuid, when an audit last compared a server, by our clock. `suspects`: by
    cluster, the GTIDs to be compared once two servers have them. `differences`: by cluster. What a
    cluster was called when they were found decides nothing.
    """

    looks: Mapping[UUID, datetime] = field(default_factory=dict)
    suspects: Mapping[str, GtidSet] = field(default_factory=dict)
    differences: Mapping[str, tuple[KnownDifference, ...]] = field(default_factory=dict)

    @property
    def every_difference(self) -> tuple[KnownDifference, ...]:
        """Return the differences of all clusters."""
        return tuple(each for found in self.differences.values() for each in found)


def looked_back(
    snapshot: ClusterSnapshot, chosen: bool | None, seen: Mapping[UUID, datetime] = _NEVER
) -> dict[str, timedelta | None]:
    """Return how far back the starts of which servers are looked at; None: as far as the logs go.

    Args:
        snapshot: the cluster as it was just read.
        chosen: --content or --no-content; None if neither was given.
        seen: by server_uuid, when the starts of a server were last looked at, by our clock.
    """
    if chosen is False:
        return {}
    servers = [server for server in snapshot.last if server.is_judgeable]
    if chosen:
        return {server.name: None for server in servers}
    return {server.name: back for server in servers if (back := _since_start(server, seen))}


def _since_start(server: ServerSnapshot, seen: Mapping[UUID, datetime]) -> timedelta | None:
    """Return how far back to look if the server has started since then."""
    assert server.server_uuid is not None, "only judgeable servers are asked about"
    if server.uptime_seconds is None:
        return None  # which the audit says
    back = RECENT
    if server.server_uuid in seen:
        back = max(back, server.read_ended - seen[server.server_uuid] + _SLACK)
    return back if timedelta(seconds=server.uptime_seconds) < back else None


def suspects_in(findings: Iterable[Finding]) -> GtidSet:
    """Return the GTIDs of findings that must be compared once two servers have them."""
    result = GtidSet()
    for finding in findings:
        if finding.code in SUSPECTED or waits_for_gtid(finding):
            result |= finding.gtid_set
        for fact in finding.evidence:
            if fact.fact == FAILED_AND_EXECUTED:
                result |= GtidSet.parse(fact.value)
    return result


def suspects_now(snapshot: ClusterSnapshot, chosen: bool | None) -> GtidSet:
    """Return the GTIDs that must be compared by what was read now; `chosen` as in looked_back."""
    if chosen is False:
        return GtidSet()
    parts = (not_received(snapshot), with_other_versions(snapshot))
    return GtidSet.union_of((*parts, *held_by_siblings(snapshot).values()))


def held_by_two(snapshot: ClusterSnapshot, suspects: GtidSet) -> GtidSet:
    """Return which of the GTIDs at least two servers have executed."""
    once, twice = GtidSet(), GtidSet()
    for server in snapshot.last:
        held = suspects & (server.gtid_executed or GtidSet())
        twice |= once & held
        once |= held
    return twice

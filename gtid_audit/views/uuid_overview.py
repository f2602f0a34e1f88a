"""Which UUIDs of a cluster differ between its servers, and who is missing how much of each. Pure.

It compares the last readings of the servers that were read. It evaluates nothing: a difference may
be on its way. The findings say what it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from gtid import GtidSet, Tsid
from gtid_audit.views.interval_map import INTERVALS_MAX
from topology.readings.snapshot import ClusterSnapshot


@dataclass(frozen=True, slots=True)
class UuidRow:
    """One TSID of which the servers do not have the same."""

    tsid: Tsid
    owner: str  # the server with this server_uuid, or ""
    transactions: int  # that any server has executed
    missing: tuple[tuple[str, int], ...]  # server, and how many it does not have; most first

    @property
    def missing_most(self) -> int:
        """Return how many the server with the fewest does not have."""
        return self.missing[0][1]


@dataclass(frozen=True, slots=True)
class UuidOverview:
    """All TSIDs of a cluster: those that differ, most missing first, and the number of the rest."""

    rows: tuple[UuidRow, ...]
    equal_count: int


def overview_of(snapshot: ClusterSnapshot) -> UuidOverview | None:
    """Return the overview of a cluster; None if there is nothing to compare, or it takes long."""
    held = {name: server.gtid_executed for name, server in snapshot.last_read.items()}
    if len(held) < 2 or sum(each.interval_count for each in held.values()) > INTERVALS_MAX:  # noqa: PLR2004 - a comparison
        return None
    union = GtidSet.union_of(held.values())
    absent = {name: union - executed for name, executed in held.items()}
    differing = GtidSet.union_of(absent.values()).tsids
    owners = {server.server_uuid: name for name, server in snapshot.last_read.items()}
    rows = [
        UuidRow(
            tsid,
            owners.get(tsid.uuid, ""),
            union.from_tsid(tsid).gtid_count,
            _counted(tsid, absent),
        )
        for tsid in differing
    ]
    rows.sort(key=lambda row: (-row.missing_most, str(row.tsid)))
    return UuidOverview(tuple(rows), len(union.tsids) - len(differing))


def _counted(tsid: Tsid, absent: Mapping[str, GtidSet]) -> tuple[tuple[str, int], ...]:
    found = ((name, gtids.from_tsid(tsid).gtid_count) for name, gtids in absent.items())
    return tuple(sorted((each for each in found if each[1]), key=lambda each: (-each[1], each[0])))

"""Keeps differences that an audit proved until a comparison shows that they are gone: pure.

How it works
------------
An audit finds two transactions under one GTID (E4). Before the next audit one of the servers purges
its log. Nothing can be compared any more, and nothing was repaired: the rows still differ. So every
audit that remembers (content_memory.py)

1. keeps each proved difference that does not end by itself (`LASTING`), with the server_uuids;
2. compares its GTID again, whatever else is due;
3. replaces it by the new answer, if both logs still hold the GTID: the same difference, or none;
4. reports it as it was found, graded likely, if they do not: a repair since then would not show;
5. forgets it if one of the two servers does not have the GTID any more.

The servers are those with the server_uuids, whatever the fleet file calls them and their cluster
now. A difference whose servers are not both there stays in the file: a server was left out, or a
name led to another server for once. It is reported again when they are. A server that was rebuilt
has another server_uuid, and none of these differences.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from gtid import GtidSet
from gtid_audit.contents_to_compare import LASTING, KnownDifference, Looked
from topology.contents import ContentDifference, ContentReading
from topology.snapshot import ClusterSnapshot

_NOT_COMPARABLE_NOW: Final = "proved by an earlier audit, and not comparable now"


def still_known(
    snapshot: ClusterSnapshot, known: Iterable[KnownDifference]
) -> tuple[KnownDifference, ...]:
    """Return which differences are between servers of a snapshot, with the names that they have."""
    named = ((each, _named(snapshot, each)) for each in known)
    return tuple(now for _, now in named if now is not None and not _is_over(snapshot, now))


def not_here(
    snapshots: Sequence[ClusterSnapshot], known: Iterable[KnownDifference]
) -> tuple[KnownDifference, ...]:
    """Return which differences are between servers that are in none of the snapshots."""
    return tuple(
        each for each in known if all(_named(snapshot, each) is None for snapshot in snapshots)
    )


def known_gtids(known: Sequence[KnownDifference]) -> GtidSet:
    """Return the GTIDs to be compared again."""
    return GtidSet.of(each.difference.gtid for each in known)


def with_known(
    looked: Looked, snapshot: ClusterSnapshot, known: Sequence[KnownDifference]
) -> tuple[Looked, tuple[KnownDifference, ...]]:
    """Return a comparison with the differences that it could not look at, and what to remember."""
    kept = [each for each in known if not _is_answered(looked, each.difference)]
    found = [] if looked.reading is None else list(looked.reading.differences)
    remembered = (*kept, *_new(snapshot, found))
    if not kept:
        return looked, remembered
    carried = tuple(
        replace(
            each.difference,
            is_proved=False,
            is_remembered=True,
            reason=f"{each.difference.reason}; {_NOT_COMPARABLE_NOW}",
        )
        for each in kept
    )
    reading = looked.reading
    if reading is None:
        moment = max(server.read_ended for server in snapshot.last)
        reading = ContentReading(moment, 0, (), (), ())
    reading = replace(reading, differences=(*reading.differences, *carried))
    return replace(looked, reading=reading), remembered


def _named(snapshot: ClusterSnapshot, known: KnownDifference) -> KnownDifference | None:
    """Return a difference with the present names of its servers; None if they are not there.

    A server whose server_uuid could not be read is taken for the one that had its name.
    """
    by_uuid = {
        each.server_uuid: each.name for each in snapshot.last if each.server_uuid is not None
    }
    unread = {each.name for each in snapshot.last if each.server_uuid is None}
    difference = known.difference
    ends = []
    for version, uuid in zip(
        (difference.source, difference.replica), known.server_uuids, strict=True
    ):
        name = by_uuid.get(uuid) or (version.server if version.server in unread else None)
        if name is None:
            return None
        ends.append(replace(version, server=name))
    source, replica = ends
    return replace(known, difference=replace(difference, source=source, replica=replica))


def _is_over(snapshot: ClusterSnapshot, known: KnownDifference) -> bool:
    """Return whether one of its servers does not have the GTID any more, as far as is known."""
    ends = {known.difference.source.server, known.difference.replica.server}
    return any(
        each.gtid_executed is not None and known.difference.gtid not in each.gtid_executed
        for each in snapshot.last
        if each.name in ends
    )


def _is_answered(looked: Looked, difference: ContentDifference) -> bool:
    one, other = sorted((difference.source.server, difference.replica.server))
    return difference.gtid in looked.answered.get((one, other), GtidSet())


def _new(
    snapshot: ClusterSnapshot, differences: Sequence[ContentDifference]
) -> Iterator[KnownDifference]:
    uuids = {server.name: server.server_uuid for server in snapshot.last}
    for each in differences:
        source, replica = uuids[each.source.server], uuids[each.replica.server]
        if each.is_proved and each.difference in LASTING:
            assert source is not None, "only servers that were read are compared"
            assert replica is not None, "only servers that were read are compared"
            yield KnownDifference(each, (source, replica))

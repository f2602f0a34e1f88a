"""Keeps differences that an audit proved until an operator says that the rows are equal. Pure.

How it works
------------
An audit finds two transactions under one GTID (E4). Before the next audit one of the servers purges
its log. The transactions can no longer be compared, but nothing was repaired: the rows still
differ. So every audit with a memory (compared_restarts.py)

1. keeps each proved difference that does not clear by itself (`LASTING`), with the server_uuids;
2. compares its GTID again, whatever else is due;
3. replaces it by the new result, if both logs still hold the GTID and show a difference;
4. otherwise reports it as it was found, graded likely: a repair since then would not be visible;
5. keeps it silently while one of the two servers does not have the GTID: a server may be reset, and
   get its former gtid_purged back, with the rows that it had.

That both logs agree by now ends nothing either. A log keeps what it has under a GTID, so one server
was reset, and received the GTID again. Two histories look the same then: its data was loaded anew
before (the rows are right), or it was not, and it still has the rows of the former transaction.

The server_uuids identify the servers, whatever names the fleet file now has for them and their
cluster. If one of them is not there, the difference stays in the file. A server may have been left
out, or a name may have led to another server. It is reported again when both are back. A server
that was rebuilt has another server_uuid, and none of these differences. But a server that is new
here may be one of them, with another server_uuid (auto.cnf was removed), or a copy with its logs.
So its first comparison includes what was reported of servers that are away (`known_of_others`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from gtid import Gtid, GtidSet
from topology.questions.contents_to_compare import (
    LASTING,
    KnownDifference,
    Looked,
    Remembered,
    held_by_two,
    nothing_compared,
)
from topology.readings.contents import ContentDifference
from topology.readings.snapshot import ClusterSnapshot

_NOT_COMPARABLE_NOW: Final = "proved by an earlier audit, and not comparable now"
_ALIKE_NOW: Final = (
    "proved by an earlier audit; both logs have the same transaction now, so one of the servers was"
    " reset since and received the GTID again, which does not remove the rows of the former one"
)


def still_known(
    snapshot: ClusterSnapshot, known: Iterable[KnownDifference]
) -> tuple[KnownDifference, ...]:
    """Return the differences between servers of a snapshot, with their present names."""
    named = ((each, _named(snapshot, each)) for each in known)
    return tuple(now for _, now in named if now is not None and not _is_absent(snapshot, now))


def not_here(
    snapshots: Sequence[ClusterSnapshot], known: Iterable[KnownDifference]
) -> tuple[KnownDifference, ...]:
    """Return the differences of which no snapshot has both servers with the GTID."""
    return tuple(
        each for each in known if not any(still_known(snapshot, (each,)) for snapshot in snapshots)
    )


def known_gtids(known: Iterable[KnownDifference]) -> GtidSet:
    """Return the GTIDs to compare again."""
    return GtidSet.of(each.difference.gtid for each in known)


def known_of_others(snapshot: ClusterSnapshot, remembered: Remembered) -> GtidSet:
    """Return what was reported of servers that are not here, if one here was never compared."""
    servers = snapshot.last_read.values()
    if all(server.server_uuid in remembered.looks for server in servers):
        return GtidSet()
    here = {server.server_uuid for server in servers}
    reported = (gtids for uuid, gtids in remembered.reported.items() if uuid not in here)
    differences = (
        each for each in remembered.every_difference if not here.issuperset(each.server_uuids)
    )
    return held_by_two(snapshot, GtidSet.union_of((*reported, known_gtids(differences))))


def with_known(
    looked: Looked, snapshot: ClusterSnapshot, known: Sequence[KnownDifference]
) -> tuple[Looked, tuple[KnownDifference, ...]]:
    """Return a comparison extended by the differences it did not show, and what to remember."""
    found = [] if looked.reading is None else list(looked.reading.differences)
    new = tuple(_new(snapshot, found))
    replaced, shown = {_place(each.difference) for each in new}, set(_lasting(found))
    kept = [each for each in known if _place(each.difference) not in replaced]
    carried = tuple(
        _carried(looked, each.difference) for each in kept if _place(each.difference) not in shown
    )
    remembered = (*kept, *new)
    if not carried:
        return looked, remembered
    reading = looked.reading if looked.reading is not None else nothing_compared(snapshot)
    instead = {_place(each) for each in carried}
    others = (each for each in reading.differences if _place(each) not in instead)
    reading = replace(reading, differences=(*others, *carried))
    return replace(looked, reading=reading), remembered


def _place(difference: ContentDifference) -> tuple[str, str, Gtid]:
    """Return between which servers a difference is, in order of name, and its GTID."""
    one, other = sorted((difference.source.server, difference.replica.server))
    return one, other, difference.gtid


def _lasting(found: Iterable[ContentDifference]) -> Iterator[tuple[str, str, Gtid]]:
    return (_place(each) for each in found if each.difference in LASTING)


def _carried(looked: Looked, difference: ContentDifference) -> ContentDifference:
    """Return a difference as an earlier audit found it, with what is known of it now."""
    now = _ALIKE_NOW if _is_answered(looked, difference) else _NOT_COMPARABLE_NOW
    return replace(
        difference, is_proved=False, is_remembered=True, reason=f"{difference.reason}; {now}"
    )


def _named(snapshot: ClusterSnapshot, known: KnownDifference) -> KnownDifference | None:
    """Return a difference with the present names of its servers; None if they are not there.

    A server whose server_uuid could not be read counts as the one that had its name.
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


def _is_absent(snapshot: ClusterSnapshot, known: KnownDifference) -> bool:
    """Return whether one of its servers is known not to have the GTID now."""
    ends = {known.difference.source.server, known.difference.replica.server}
    return any(
        each.gtid_executed is not None and known.difference.gtid not in each.gtid_executed
        for each in snapshot.last
        if each.name in ends
    )


def _is_answered(looked: Looked, difference: ContentDifference) -> bool:
    one, other, gtid = _place(difference)
    return gtid in looked.answered.get((one, other), GtidSet())


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

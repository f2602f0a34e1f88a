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
5. forgets it if a server has another server_uuid now (it was rebuilt), or does not have the GTID.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from gtid import GtidSet
from gtid_audit.content_due import LASTING, KnownDifference, Looked
from topology.contents import ContentDifference, ContentReading
from topology.snapshot import ClusterSnapshot, ServerSnapshot

_NOT_COMPARABLE_NOW: Final = "proved by an earlier audit, and not comparable now"


def still_known(
    snapshot: ClusterSnapshot, known: Sequence[KnownDifference]
) -> tuple[KnownDifference, ...]:
    """Return which differences are between the servers that are there now."""
    servers = {server.name: server for server in snapshot.last}
    return tuple(each for each in known if _is_between(servers, each))


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


def _is_between(servers: dict[str, ServerSnapshot], known: KnownDifference) -> bool:
    """Return whether both servers are the same as then, and have the GTID, as far as is known."""
    difference = known.difference
    names = difference.source.server, difference.replica.server
    for name, uuid in zip(names, known.server_uuids, strict=True):
        server = servers.get(name)
        if server is None or server.server_uuid not in (None, uuid):
            return False
        if server.gtid_executed is not None and difference.gtid not in server.gtid_executed:
            return False
    return True


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

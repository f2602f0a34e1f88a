"""Removes what audits remember of some GTIDs, once an operator knows that the rows are equal.

How it works
------------
No log shows a rebuild that kept the server_uuid, or rows that were repaired without the binary log.
So an E4 that can no longer be compared, and a lost set whose logs are purged, are reported until
the operator ends it.

The same GTIDs may differ on several servers: a source lost its tail, and each replica has it. Who
compared the source with one replica knows nothing of the other one. So it is about *servers*, whose
rows were compared with each other:

    remembered         A:7 differs between source and r1, and between source and r2
    source and r1      the first difference is forgotten
    source, r1 and r2  both
    none named         refused, with the list of these servers

Nothing need be named if it is about one pair of servers, or about one server that has the lost set.
A server is named as the last audit named it, or by its server_uuid. Suspects stay: they are only
compared, and nothing is reported of them.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

from gtid import GtidSet
from gtid_audit.exits import UsageProblem
from gtid_audit.tasks.compared_restarts import LOOKS, DirectoryMemory
from gtid_audit.tasks.history_memory import HistoryMemory
from gtid_audit.tasks.written_run import PARTIAL
from topology.adapters.history_file import HistoryFile
from topology.questions.contents_to_compare import KnownDifference, Remembered


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What is not remembered any more."""

    differences: int  # of two servers under one GTID
    lost: GtidSet  # what was reported as lost by another server
    servers: tuple[str, ...] = ()  # of which it was remembered: a name, or the server_uuid


def forget(place: Path, gtids: GtidSet, servers: Sequence[str] = ()) -> Forgotten:
    """Remove what a history file, or a directory of runs, remembers of these GTIDs.

    Audits of selected clusters (--cluster) have a directory of their own below it.

    Raises UsageProblem: it is neither, or cannot be written; it is about more servers than two, and
    none is named; a server that is named is none of them.
    """
    if place.is_dir():
        known = [each for each in (place, place / PARTIAL) if (each / LOOKS).exists()]
        if not known:
            raise UsageProblem(f"{place}: no audit has stored there what it remembers ({LOOKS})")
        memories = [DirectoryMemory(each) for each in known]
        before = [each.read() for each in memories]
        compared = _compared(before, gtids, servers)
        for memory, each in zip(memories, before, strict=True):
            memory.write(_without(each, gtids, compared))
        return _removed(before, gtids, compared)
    store = HistoryMemory(HistoryFile(place))
    remembered = store.load(looks=False)
    compared = _compared([remembered], gtids, servers)
    store.merge(remembered, _without(remembered, gtids, compared))
    return _removed([remembered], gtids, compared)


def _compared(
    before: Sequence[Remembered], gtids: GtidSet, servers: Sequence[str]
) -> frozenset[UUID]:
    """Return the servers whose rows were compared; of those that are named, or of the only two."""
    names = _names(before, gtids)
    if not servers:
        pairs = {frozenset(ends) for each in before for ends in _pairs(each, gtids)}
        if not any(names.keys() <= pair for pair in pairs) and len(names) > 1:
            listed = ", ".join(sorted(map(_label, names.items())))
            raise UsageProblem(
                f"--forget: these GTIDs are remembered of several servers: {listed}. Name those"
                " whose rows you have compared with each other: --server NAME, once for each"
            )
        return frozenset(names)
    found = {
        text: [uuid for uuid, name in names.items() if text in (name, str(uuid))]
        for text in servers
    }
    for text, uuids in found.items():
        if names and not uuids:
            listed = ", ".join(sorted(map(_label, names.items())))
            raise UsageProblem(f"--server: {text!r} is none of the servers: {listed}")
    return frozenset(uuid for uuids in found.values() for uuid in uuids)


def _names(before: Sequence[Remembered], gtids: GtidSet) -> dict[UUID, str]:
    """Return the servers of which these GTIDs are remembered, with their names, if any has one."""
    names: dict[UUID, str] = {}
    for each in before:
        for uuid, name in _involved(each, gtids):
            names[uuid] = name or names.get(uuid, "")
    return names


def _label(server: tuple[UUID, str]) -> str:
    uuid, name = server
    return f"{name} ({uuid})" if name else str(uuid)


def _pairs(remembered: Remembered, gtids: GtidSet) -> Iterator[tuple[UUID, UUID]]:
    for each in remembered.every_difference:
        if each.difference.gtid in gtids:
            yield each.server_uuids


def _involved(remembered: Remembered, gtids: GtidSet) -> Iterator[tuple[UUID, str]]:
    """Yield the servers of which these GTIDs are remembered; "" if only the server_uuid is."""
    for uuid, lost in remembered.reported.items():
        if lost & gtids:
            yield uuid, ""
    for each in remembered.every_difference:
        if each.difference.gtid in gtids:
            ends = (each.difference.source.server, each.difference.replica.server)
            yield from zip(each.server_uuids, ends, strict=True)


def _is_ended(known: KnownDifference, gtids: GtidSet, compared: Collection[UUID]) -> bool:
    return known.difference.gtid in gtids and {*known.server_uuids} <= {*compared}


def _without(remembered: Remembered, gtids: GtidSet, compared: Collection[UUID]) -> Remembered:
    differences = {
        cluster: tuple(each for each in found if not _is_ended(each, gtids, compared))
        for cluster, found in remembered.differences.items()
    }
    reported = {
        uuid: each - gtids if uuid in compared else each
        for uuid, each in remembered.reported.items()
    }
    return replace(
        remembered,
        differences={cluster: found for cluster, found in differences.items() if found},
        reported={uuid: each for uuid, each in reported.items() if each},
    )


def _removed(before: Sequence[Remembered], gtids: GtidSet, compared: Collection[UUID]) -> Forgotten:
    ended = [
        each
        for remembered in before
        for each in remembered.every_difference
        if _is_ended(each, gtids, compared)
    ]
    lost = {
        uuid: each & gtids
        for remembered in before
        for uuid, each in remembered.reported.items()
        if uuid in compared and each & gtids
    }
    names = _names(before, gtids)
    about = {uuid for each in ended for uuid in each.server_uuids} | lost.keys()
    servers = tuple(sorted(names[uuid] or str(uuid) for uuid in about))
    return Forgotten(len(ended), GtidSet.union_of(lost.values()), servers)

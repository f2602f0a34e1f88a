"""Removes what audits remember of some GTIDs, once an operator knows that the rows are equal.

No log shows a rebuild that kept the server_uuid, or rows that were repaired without the binary log.
So an E4 that can no longer be compared, and a lost set whose logs are purged, are reported until
the operator ends it. Suspects stay: they are only compared, and nothing is reported of them.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from gtid import GtidSet
from gtid_audit.exits import UsageProblem
from gtid_audit.tasks.compared_restarts import LOOKS, DirectoryMemory
from gtid_audit.tasks.history_memory import HistoryMemory
from gtid_audit.tasks.written_run import PARTIAL
from topology.adapters.history_file import HistoryFile
from topology.questions.contents_to_compare import Remembered


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What is not remembered any more."""

    differences: int  # of two servers under one GTID
    lost: GtidSet  # what was reported as lost by another server


def forget(place: Path, gtids: GtidSet) -> Forgotten:
    """Remove what a history file, or a directory of runs, remembers of these GTIDs.

    Audits of selected clusters (--cluster) have a directory of their own below it.

    Raises UsageProblem: it is neither, or cannot be written.
    """
    if place.is_dir():
        known = [each for each in (place, place / PARTIAL) if (each / LOOKS).exists()]
        if not known:
            raise UsageProblem(f"{place}: no audit has stored there what it remembers ({LOOKS})")
        found = [_forgotten_in(DirectoryMemory(each), gtids) for each in known]
        lost = GtidSet.union_of(each.lost for each in found)
        return Forgotten(sum(each.differences for each in found), lost)
    store = HistoryMemory(HistoryFile(place))
    before = store.load(looks=False)
    store.merge(before, _without(before, gtids))
    return _removed(before, gtids)


def _forgotten_in(memory: DirectoryMemory, gtids: GtidSet) -> Forgotten:
    before = memory.read()
    memory.write(_without(before, gtids))
    return _removed(before, gtids)


def _without(remembered: Remembered, gtids: GtidSet) -> Remembered:
    differences = {
        cluster: tuple(each for each in found if each.difference.gtid not in gtids)
        for cluster, found in remembered.differences.items()
    }
    reported = {uuid: each - gtids for uuid, each in remembered.reported.items()}
    return replace(
        remembered,
        differences={cluster: found for cluster, found in differences.items() if found},
        reported={uuid: each for uuid, each in reported.items() if each},
    )


def _removed(remembered: Remembered, gtids: GtidSet) -> Forgotten:
    differences = sum(each.difference.gtid in gtids for each in remembered.every_difference)
    return Forgotten(differences, GtidSet.union_of(remembered.reported.values()) & gtids)

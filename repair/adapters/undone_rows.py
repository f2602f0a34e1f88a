"""Reads whether rows that accepted plans undo are equal on the two servers that differ.

1. No log shows that an undo script ran. So an audit that is to accept its plan reads the rows
   (topology/facts/accepted.py). If no such plan is accepted, nothing is read.
2. All rows of one plan and one pair of servers must be read and equal, up to ROWS_MAX rows: a plan
   undoes no more. A plan with rows that were not read is not accepted.
3. Rows that clients are changing may differ for a moment, so they are read twice.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from gtid import GtidSet
from repair.adapters.affected_rows import look_up_rows
from repair.adapters.rows_in_place import ROWS_MAX
from repair.adapters.servers_to_read import logs_of
from topology.adapters.connection import way_to
from topology.facts.accepted import AcceptedRepair
from topology.readings.contents import ContentDifference, ContentReading
from topology.readings.target import ServerTarget

_LOOKS: Final = 2


def with_equal_rows(
    reading: ContentReading,
    accepted: Sequence[AcceptedRepair],
    targets: Iterable[ServerTarget],
    *,
    seconds_max: float,
) -> ContentReading:
    """Return the comparison, with the transactions marked whose rows are equal."""
    known = {target.name: target for target in targets}
    equal: set[ContentDifference] = set()
    for repair in accepted:
        taken_back = repair.taken_back
        pairs: dict[tuple[str, str], list[ContentDifference]] = {}
        for each in reading.differences:
            if each.gtid in taken_back and each.source.is_empty is not each.replica.is_empty:
                pairs.setdefault((each.source.server, each.replica.server), []).append(each)
        for names, differences in pairs.items():
            gtids = GtidSet.of(each.gtid for each in differences)
            if set(names) <= known.keys() and _are_equal(names, gtids, known, seconds_max):
                equal |= set(differences)
    if not equal:
        return reading
    marked = (replace(each, has_equal_rows=each in equal) for each in reading.differences)
    return replace(reading, differences=tuple(marked))


def _are_equal(
    names: tuple[str, str], gtids: GtidSet, targets: Mapping[str, ServerTarget], seconds_max: float
) -> bool:
    left, right = (way_to(targets[name], seconds_max=seconds_max) for name in names)
    ours, theirs = (logs_of(targets[name], seconds_max=seconds_max) for name in names)
    for _ in range(_LOOKS):
        found = look_up_rows(
            gtids,
            (ours.events_of, theirs.events_of),
            (left, right),
            seconds_max=seconds_max,
            transactions_max=ROWS_MAX,
            rows_max=ROWS_MAX,
            only_compare=True,
        )
        if found.unread:
            return False
        if found.rows and not any(row.differs for row in found.rows):
            return True
    return False

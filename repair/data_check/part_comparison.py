"""What three readings of a part of a table prove. Pure.

How it works
------------
Two servers are never read at one moment, and clients write meanwhile. So a difference counts only
if it is there for longer than replication needs:

1. The left server's rows are read, then its GTID set.
2. The right server has executed that set. Its rows are read, then its set.
3. The left server has executed that set. Its rows are read once more.

A row that the left server shows alike in 1 and 3 did not change in between. The right server had
all that made it, and nothing that is not on the left one. If it shows the row otherwise, the data
differ. A row that the left server shows in two ways is being written, and proves nothing: it is
read again.

A row may change and change back between 1 and 3. Then a replica that executed only the first change
in 2 would be reported wrongly. So a difference is read twice (`confirmed`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from repair.data_check.part_queries import KeyValues

# The digests of a part's rows by key. A table without a key has one "row": its checksum.
RowDigests = Mapping[KeyValues, str]


class RowDifference(Enum):
    """How a row differs."""

    ONLY_LEFT = "only on the first server"
    ONLY_RIGHT = "only on the second server"
    OTHER_VALUES = "other values"


@dataclass(frozen=True, slots=True)
class PartOutcome:
    """What one comparison of a part shows."""

    different: Mapping[KeyValues, RowDifference]
    moving: int  # rows that were written meanwhile and are not alike


def compared(first: RowDigests, right: RowDigests, again: RowDigests) -> PartOutcome:
    """Return what the readings of a part show: left, right, left once more."""
    different: dict[KeyValues, RowDifference] = {}
    moving = 0
    for key in first.keys() | right.keys() | again.keys():
        before, after, there = first.get(key), again.get(key), right.get(key)
        if there in (before, after):
            continue
        if before != after:
            moving += 1
        elif before is None:
            different[key] = RowDifference.ONLY_RIGHT
        else:
            different[key] = (
                RowDifference.ONLY_LEFT if there is None else RowDifference.OTHER_VALUES
            )
    return PartOutcome(different, moving)


def confirmed(one: PartOutcome, two: PartOutcome) -> PartOutcome:
    """Return the differences that two comparisons show alike; a row that only one shows moves."""
    both = {key: state for key, state in two.different.items() if one.different.get(key) is state}
    once = len(one.different.keys() ^ two.different.keys())
    changed = sum(key in one.different for key in two.different) - len(both)
    return PartOutcome(both, two.moving + once + changed)

"""How two GTID sets lie to each other, in MySQL Shell's words."""

from __future__ import annotations

from enum import Enum

from gtid.gtid_set import GtidSet


class SetRelation(Enum):
    """The relation of a left set to a right one. Exactly one holds."""

    EQUAL = "equal"
    CONTAINS = "contains"
    CONTAINED = "contained"
    INTERSECTS = "intersects"
    DISJOINT = "disjoint"


def relate(left: GtidSet, right: GtidSet) -> SetRelation:
    """Name the relation of `left` to `right`.

    An empty set is contained in every other, although it is disjoint from it too: a new server
    has nothing that its source lacks, which is what one asks for.
    """
    if left == right:
        return SetRelation.EQUAL
    if left >= right:
        return SetRelation.CONTAINS
    if left <= right:
        return SetRelation.CONTAINED
    return SetRelation.DISJOINT if left.is_disjoint(right) else SetRelation.INTERSECTS

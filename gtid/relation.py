"""The relation between two GTID sets, in the terms of MySQL Shell."""

from __future__ import annotations

from enum import Enum

from gtid.gtid_set import GtidSet


class SetRelation(Enum):
    """The relation of a left set to a right one. Exactly one applies."""

    EQUAL = "equal"
    CONTAINS = "contains"
    CONTAINED = "contained"
    INTERSECTS = "intersects"
    DISJOINT = "disjoint"


def relate(left: GtidSet, right: GtidSet) -> SetRelation:
    """Return the relation of `left` to `right`.

    An empty set is reported as contained in any other set, although it is also disjoint from it. A
    new server has no GTID that is missing on its source, and that is what the operator checks.
    """
    if left == right:
        return SetRelation.EQUAL
    if left >= right:
        return SetRelation.CONTAINS
    if left <= right:
        return SetRelation.CONTAINED
    return SetRelation.DISJOINT if left.is_disjoint(right) else SetRelation.INTERSECTS

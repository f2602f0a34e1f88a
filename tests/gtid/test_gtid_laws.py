"""The algebra of whole sets: its laws, and a dumb twin made of frozensets of single GTIDs."""

import pickle
from copy import deepcopy
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtid import Gtid, GtidSet, SetRelation, Tsid, relate
from tests.hypothesis_profiles import laws

pytestmark = pytest.mark.usefixtures("representation")

LAWS = laws(80)

TSIDS = [
    Tsid(uuid, tag)
    for uuid in (UUID(int=0), UUID(int=1), UUID("ffffffff-ffff-ffff-ffff-ffffffffffff"))
    for tag in ("", "_", "dba", "dbb")
]

Twin = frozenset[Gtid]

intervals = st.tuples(st.sampled_from(TSIDS), st.integers(1, 30), st.integers(0, 12)).map(
    lambda drawn: (drawn[0], drawn[1], drawn[1] + drawn[2])
)
gtid_sets = st.lists(intervals, max_size=12).map(GtidSet.from_intervals)


def twin(gtid_set: GtidSet) -> Twin:
    return frozenset(gtid_set.gtids())


def is_canonical(gtid_set: GtidSet) -> bool:
    """Strictly ascending by TSID and boundary, no interval touching the one before."""
    previous: tuple[Tsid, int] | None = None
    for tsid, start, end in gtid_set.intervals():
        if start >= end or (previous is not None and (tsid, start) <= previous):
            return False
        previous = (tsid, end)
    return True


@LAWS
@given(left=gtid_sets, right=gtid_sets)
def test_operations_are_those_of_the_twin(left: GtidSet, right: GtidSet) -> None:
    results = {
        "|": (left | right, twin(left) | twin(right)),
        "&": (left & right, twin(left) & twin(right)),
        "-": (left - right, twin(left) - twin(right)),
        "^": (left ^ right, twin(left) ^ twin(right)),
    }
    for name, (found, expected) in results.items():
        assert twin(found) == expected, name
        assert found == GtidSet.of(expected), name
        assert is_canonical(found), name
        assert found.gtid_count == len(expected), name


@LAWS
@given(left=gtid_sets, right=gtid_sets)
def test_comparisons_are_those_of_the_twin(left: GtidSet, right: GtidSet) -> None:
    ours, theirs = twin(left), twin(right)
    assert (left <= right) == (ours <= theirs)
    assert (left < right) == (ours < theirs)
    assert (left >= right) == (ours >= theirs)
    assert (left > right) == (ours > theirs)
    assert (left == right) == (ours == theirs)
    assert left.is_disjoint(right) == ours.isdisjoint(theirs)
    assert bool(left) == bool(ours)


@LAWS
@given(left=gtid_sets, right=gtid_sets)
def test_laws_of_two(left: GtidSet, right: GtidSet) -> None:
    assert left | right == right | left
    assert left & right == right & left
    assert left ^ right == (left - right) | (right - left)
    assert (left - right).is_disjoint(right)
    assert (left - right) | (left & right) == left
    assert left & right <= left <= left | right
    assert left - (left - right) == left & right
    assert (left | right).gtid_count == (
        left.gtid_count + right.gtid_count - (left & right).gtid_count
    )
    assert (left <= right) == (not left - right) == (left | right == right)
    assert left ^ right ^ right == left


@LAWS
@given(a=gtid_sets, b=gtid_sets, c=gtid_sets)
def test_laws_of_three(a: GtidSet, b: GtidSet, c: GtidSet) -> None:
    assert (a | b) | c == a | (b | c) == GtidSet.union_of([a, b, c])
    assert (a & b) & c == a & (b & c)
    assert (a ^ b) ^ c == a ^ (b ^ c)
    assert a & (b | c) == (a & b) | (a & c)
    assert a - (b | c) == (a - b) - c == (a - b) & (a - c)
    assert (a | b) - c == (a - c) | (b - c)
    if a <= b <= c:
        assert a <= c


@LAWS
@given(held=gtid_sets)
def test_laws_of_one(held: GtidSet) -> None:
    empty = GtidSet()
    assert held | held == held & held == held
    assert held - held == held ^ held == empty
    assert held | empty == held - empty == held ^ empty == held
    assert held & empty == empty - held == empty
    assert empty <= held
    assert hash(held) == hash(GtidSet.of(held.gtids()))
    assert GtidSet.of(held.gtids()) == GtidSet.from_intervals(held.intervals()) == held
    assert pickle.loads(pickle.dumps(held)) == deepcopy(held) == held
    assert list(held.gtids()) == sorted(twin(held))


@LAWS
@given(held=gtid_sets, number=st.integers(0, 60))
def test_parts_are_those_of_the_twin(held: GtidSet, number: int) -> None:
    gtids = sorted(twin(held))
    assert held.first(number) == GtidSet.of(gtids[:number])
    assert held.tsids == tuple(sorted({gtid.tsid for gtid in gtids}))
    assert held.tsid_count == len(held.tsids)
    assert held.uuids == tuple(sorted({gtid.tsid.uuid for gtid in gtids}))
    assert held.interval_count == len(list(held.intervals()))
    for tsid in TSIDS:
        ours = [gtid for gtid in gtids if gtid.tsid == tsid]
        same_uuid = [gtid for gtid in gtids if gtid.tsid.uuid == tsid.uuid]
        assert held.from_tsid(tsid) == GtidSet.of(ours)
        assert held.from_uuid(tsid.uuid) == GtidSet.of(same_uuid)
        assert held.without_uuid(tsid.uuid) == held - held.from_uuid(tsid.uuid)
        assert held.highest(tsid) == (ours[-1].gno if ours else None)
        for gno in range(1, 45):
            assert (Gtid(tsid, gno) in held) == (Gtid(tsid, gno) in ours)


@LAWS
@given(held=gtid_sets)
def test_holes_and_filling(held: GtidSet) -> None:
    holes, filled = held.holes(), held.filled()
    assert holes.is_disjoint(held)
    assert held | holes <= filled
    assert filled.holes() == GtidSet()
    assert (held | holes).holes() == GtidSet()
    for tsid in held.tsids:
        [(_, start, end)] = filled.from_tsid(tsid).intervals()
        assert (start, end - 1) == (1, held.highest(tsid))
        lowest = next(held.from_tsid(tsid).gtids()).gno
        below_first = GtidSet.from_intervals([(tsid, 1, lowest)])
        assert (filled - held - holes).from_tsid(tsid) == below_first


@LAWS
@given(left=gtid_sets, right=gtid_sets)
def test_exactly_one_relation_holds(left: GtidSet, right: GtidSet) -> None:
    mirrored = {
        SetRelation.EQUAL: SetRelation.EQUAL,
        SetRelation.CONTAINS: SetRelation.CONTAINED,
        SetRelation.CONTAINED: SetRelation.CONTAINS,
        SetRelation.INTERSECTS: SetRelation.INTERSECTS,
        SetRelation.DISJOINT: SetRelation.DISJOINT,
    }
    relation = relate(left, right)
    assert relate(right, left) is mirrored[relation]
    ours, theirs = twin(left), twin(right)
    expected = {
        SetRelation.EQUAL: ours == theirs,
        SetRelation.CONTAINS: ours > theirs,
        SetRelation.CONTAINED: ours < theirs,
        SetRelation.INTERSECTS: bool(ours & theirs and ours - theirs and theirs - ours),
        SetRelation.DISJOINT: bool(ours and theirs) and not ours & theirs,
    }
    assert [name for name, holds in expected.items() if holds] == [relation]

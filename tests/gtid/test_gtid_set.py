"""Sets, GTIDs and TSIDs one at a time: making them, refusing to, and showing them."""

import pickle
from uuid import UUID

import pytest

from gtid import (
    GNO_END,
    GNO_MAX,
    GnoOutOfRange,
    Gtid,
    GtidError,
    GtidSet,
    GtidSetTooLarge,
    MalformedBinary,
    MalformedGtid,
    MalformedGtidSet,
    MalformedInterval,
    MalformedTag,
    SetRelation,
    Tsid,
    UnknownFormatVersion,
    boundary_sequence,
    relate,
)

pytestmark = pytest.mark.usefixtures("representation")

A = UUID("3e11fa47-71ca-11e1-9e33-c80aa9429562")
B = UUID("98f81cd6-e51f-11f1-8e00-02fc00000001")


# -- TSIDs and GTIDs ----------------------------------------------------------------------------


def test_tsids_order_as_mysql_orders_them() -> None:
    ordered = [Tsid(A), Tsid(A, "_"), Tsid(A, "a"), Tsid(A, "a1"), Tsid(A, "b"), Tsid(B)]
    assert sorted([ordered[3], *ordered[4:], *ordered[:3]]) == ordered
    assert [str(tsid) for tsid in ordered] == sorted(str(tsid) for tsid in ordered)


def test_a_tag_is_folded_to_lower_case() -> None:
    assert Tsid(A, "DbA_1") == Tsid(A, "dba_1")
    assert str(Tsid(A, "DBA")) == f"{A}:dba"
    assert str(Tsid(A)) == str(A)


@pytest.mark.parametrize("tag", ["1a", "a-b", "a b", "é", "a" * 33, " ", "a\n", "²"])
def test_a_bad_tag_is_refused(tag: str) -> None:
    with pytest.raises(MalformedTag, match="expected a tag of 1 to 32") as caught:
        Tsid(A, tag)
    assert caught.value.tag == tag
    assert str(caught.value).isascii()


@pytest.mark.parametrize("gno", [0, -1, GNO_MAX + 1, 2**64])
def test_a_number_out_of_range_is_refused(gno: int) -> None:
    with pytest.raises(GnoOutOfRange, match=f"not {gno}$") as caught:
        Gtid(Tsid(A), gno)
    assert caught.value.gno == gno


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{A}:1", Gtid(Tsid(A), 1)),
        (f"{str(A).upper()}:001", Gtid(Tsid(A), 1)),
        (f" {A} : 7\t", Gtid(Tsid(A), 7)),
        (f"\n{A}\t:\v1\f", Gtid(Tsid(A), 1)),
        (f"{A}:Dba:{GNO_MAX}", Gtid(Tsid(A, "dba"), GNO_MAX)),
        (f"{A}: dba : 1", Gtid(Tsid(A, "dba"), 1)),
    ],
)
def test_a_gtid_is_read_as_gtid_next_is(text: str, expected: Gtid) -> None:
    assert Gtid.parse(text) == expected
    assert Gtid.parse(str(expected)) == expected


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("", 0, "a UUID"),
        (f",{A}:1", 0, "a UUID"),
        (f"{{{A}}}:1", 0, "a UUID"),
        (f"{A.hex}:1", 0, "a UUID"),
        (f"{A}", 36, "a colon"),
        (f"{A}:", 37, "a tag or a number"),
        (f"{A}:-1", 37, "a tag or a number"),
        (f"{A}:0", 37, f"a number from 1 to {GNO_MAX}"),
        (f"{A}:{GNO_END}", 37, f"a number from 1 to {GNO_MAX}"),
        (f"{A}:1-1", 38, "the end"),
        (f"{A}:1:2", 38, "the end"),
        (f"{A}:1,", 38, "the end"),
        (f"{A}:dba", 40, "a colon"),
        (f"{A}:dba:", 41, "a number"),
        (f"{A}:dba:b:1", 41, "a number"),
        (f"{A}:{'x' * 33}:1", 37, "a tag of 1 to 32 characters"),
    ],
)
def test_what_is_no_gtid_is_refused(text: str, position: int, expected: str) -> None:
    with pytest.raises(MalformedGtid) as caught:
        Gtid.parse(text)
    assert (caught.value.text_position, caught.value.expected) == (position, expected)


# -- making sets --------------------------------------------------------------------------------


def test_the_empty_set() -> None:
    empty = GtidSet()
    assert not empty
    assert empty == GtidSet.parse("") == GtidSet.of([]) == GtidSet.union_of([])
    assert (empty.gtid_count, empty.interval_count, empty.tsid_count) == (0, 0, 0)
    assert (empty.uuids, empty.tsids, list(empty.intervals())) == ((), (), [])
    assert (str(empty), empty.shortened(), repr(empty)) == ("", "", "<GtidSet empty>")
    assert empty.highest(Tsid(A)) is None
    assert Gtid(Tsid(A), 1) not in empty


def test_of_takes_one_or_many() -> None:
    one = Gtid(Tsid(A, "dba"), 7)
    assert str(GtidSet.of(one)) == f"{A}:dba:7"
    assert str(GtidSet.of([one, Gtid(Tsid(A), 8), Gtid(Tsid(A), 9), one])) == f"{A}:8-9:dba:7"
    assert GtidSet.of(Gtid(Tsid(A), GNO_MAX)).highest(Tsid(A)) == GNO_MAX


def test_intervals_may_come_in_any_order_and_overlap() -> None:
    made = GtidSet.from_intervals(
        [(Tsid(B), 5, 9), (Tsid(A), 10, 20), (Tsid(A), 1, 11), (Tsid(B, "x"), 3, 3)]
    )
    assert str(made) == f"{A}:1-19,{B}:5-8"


def test_the_largest_set_of_one_tsid() -> None:
    everything = GtidSet.from_intervals([(Tsid(A), 1, GNO_END)])
    assert everything.gtid_count == GNO_MAX
    assert str(everything) == f"{A}:1-{GNO_MAX}"
    both = everything | GtidSet.from_intervals([(Tsid(B), 1, GNO_END)])
    assert both.gtid_count == 2 * GNO_MAX > 2**63


@pytest.mark.parametrize(
    ("start", "end", "error"),
    [
        (0, 5, GnoOutOfRange(0)),
        (1, GNO_END + 1, GnoOutOfRange(GNO_END)),
        (5, 4, MalformedInterval(5, 4)),
    ],
)
def test_impossible_intervals_are_refused(start: int, end: int, error: GtidError) -> None:
    with pytest.raises(type(error)) as caught:
        GtidSet.from_intervals([(Tsid(A), start, end)])
    assert caught.value.args == error.args
    assert str(start) in str(caught.value) or str(end - 1) in str(caught.value)


def test_union_of_many_is_union_one_by_one() -> None:
    parts = [GtidSet.parse(f"{uuid}:{n}:{n + 2}") for n in range(1, 9) for uuid in (B, A)]
    assert str(GtidSet.union_of(iter(parts))) == f"{A}:1-10,{B}:1-10"


def test_what_changes_nothing_gives_the_set_itself() -> None:
    held = GtidSet.parse(f"{A}:1-9:dba:1-3,{B}:1-5")
    part, other = GtidSet.parse(f"{A}:1-9,{B}:1-4"), GtidSet.parse(f"{A}:20")
    assert (held | part) is (held | GtidSet()) is (GtidSet() | held) is (held - other) is held
    assert (held & held) is held.without_uuid(UUID(int=1)) is held
    assert GtidSet.union_of([GtidSet(), held, part]) is held
    assert (held - held) is (held ^ held) is (held & other) is GtidSet()
    assert str(part | held) == str(held)
    assert str(held - part) == f"{A}:dba:1-3,{B}:5"
    assert str(held ^ part) == f"{A}:dba:1-3,{B}:5"


# -- staying as it is ---------------------------------------------------------------------------


def test_a_set_cannot_be_changed() -> None:
    held = GtidSet.parse(f"{A}:1")
    with pytest.raises(AttributeError, match="immutable: cannot set _ranges"):
        held._ranges = {}
    with pytest.raises(AttributeError, match="immutable: cannot delete _ranges"):
        del held._ranges
    with pytest.raises(AttributeError, match="immutable: cannot set note"):
        held.note = "x"
    assert str(held) == f"{A}:1"
    assert {held: 1}[GtidSet.parse(f"{A}:1-1")] == 1
    assert hash(held) == hash(held)


def test_a_set_is_no_sequence_and_has_no_length() -> None:
    held = GtidSet.parse(f"{A}:1")
    with pytest.raises(TypeError):
        len(held)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        iter(held)  # type: ignore[call-overload]


@pytest.mark.parametrize("operation", ["|", "&", "-", "^", "<=", "<", ">=", ">"])
def test_operators_refuse_what_is_no_set(operation: str) -> None:
    with pytest.raises(TypeError):
        eval(f"left {operation} right", {"left": GtidSet(), "right": frozenset()})
    assert GtidSet() != frozenset()


def test_errors_survive_a_process_boundary() -> None:
    errors: list[GtidError] = [
        MalformedGtidSet.at(f"{A}:1x", position=38, expected="the end"),
        MalformedTag("1"),
        GnoOutOfRange(0),
        MalformedInterval(2, 1),
        MalformedBinary("the end", 9),
        UnknownFormatVersion(7),
        GtidSetTooLarge("GTIDs", 3, 2),
    ]
    for error in errors:
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert again.__dict__ == error.__dict__


def test_a_pickled_set_has_the_form_of_whoever_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"{A}:1:3:5:7:9"
    held = GtidSet.parse(text)
    pickled = pickle.dumps(held)
    for threshold in (1, 10_000):
        monkeypatch.setattr(boundary_sequence, "LONG_BOUNDARIES_MIN", threshold)
        again = pickle.loads(pickled)
        assert again == GtidSet.parse(text)
        assert hash(again) == hash(GtidSet.parse(text))


# -- looking at them ----------------------------------------------------------------------------


def test_gtids_one_by_one_up_to_a_limit() -> None:
    held = GtidSet.parse(f"{A}:3-4:dba:9")
    assert [str(gtid) for gtid in held.gtids(limit=3)] == [f"{A}:3", f"{A}:4", f"{A}:dba:9"]
    with pytest.raises(GtidSetTooLarge, match=r"^3 GTIDs, more than the limit of 2$"):
        held.gtids(limit=2)
    with pytest.raises(GtidSetTooLarge):
        GtidSet.parse(f"{A}:1-{GNO_MAX}").gtids()


def test_first_of_a_set_too_large_to_walk() -> None:
    held = GtidSet.parse(f"{A}:1-3:10-{GNO_MAX}, {B}:5")
    assert str(held.first(5)) == f"{A}:1-3:10-11"
    assert held.first(0) == held.first(-1) == GtidSet()
    assert held.first(10**20) == held


def test_holes_filled_and_below_the_maximum() -> None:
    executed = GtidSet.parse(f"{A}:3-5:9:dba:2")
    assert str(executed.holes()) == f"{A}:6-8"
    assert str(executed.filled()) == f"{A}:1-9:dba:1-2"
    missing = GtidSet.parse(f"{A}:6:10, {B}:1")
    assert str(missing & executed.filled()) == f"{A}:6"


def test_text_has_one_line_unless_asked() -> None:
    held = GtidSet.parse(f"{B}:1, {A}:b:1:a:2-3, {A}:5")
    assert str(held) == f"{A}:5:a:2-3:b:1,{B}:1"
    assert held.to_text(separator=",\n") == f"{A}:5:a:2-3:b:1,\n{B}:1"


def test_shortened_counts_what_it_leaves_out() -> None:
    held = GtidSet.parse(f"{A}:1:3:5:7-9:dba:1-2:4,{B}:1-100")
    assert held.shortened(ranges_max=6) == f"{A}:1:3:5:7-9:dba:1-2:4, {B}:1-100"
    assert held.shortened(ranges_max=5) == (
        f"{A}:1:3:5:7-9:dba:1-2 … (+1 more range, 1 GTID), {B}:1-100"
    )
    assert held.shortened(ranges_max=2) == f"{A}:1:3 … (+4 more ranges, 7 GTIDs), {B}:1-100"
    assert held.shortened(ranges_max=2, uuids_max=1) == (
        f"{A}:1:3 … (+4 more ranges, 7 GTIDs), … (+1 more UUID, 100 GTIDs)"
    )
    assert held.shortened(uuids_max=0) == "… (+2 more UUIDs, 109 GTIDs)"
    assert repr(GtidSet.parse(f"{A}:1")) == f"<GtidSet {A}:1>"


@pytest.mark.parametrize(
    ("left", "right", "relation"),
    [
        ("", "", SetRelation.EQUAL),
        (f"{A}:1-2", f"{A}:1:2", SetRelation.EQUAL),
        (f"{A}:1", "", SetRelation.CONTAINS),
        ("", f"{A}:1", SetRelation.CONTAINED),
        (f"{A}:1-9", f"{A}:2:4", SetRelation.CONTAINS),
        (f"{A}:2:4", f"{A}:1-9", SetRelation.CONTAINED),
        (f"{A}:1-2", f"{A}:2-3", SetRelation.INTERSECTS),
        (f"{A}:1-2", f"{A}:3-4", SetRelation.DISJOINT),
        (f"{A}:1-2", f"{A}:dba:1-2", SetRelation.DISJOINT),
    ],
)
def test_relations_have_the_words_of_mysql_shell(
    left: str, right: str, relation: SetRelation
) -> None:
    assert relate(GtidSet.parse(left), GtidSet.parse(right)) is relation

"""What counts as found, as misnamed and as a wrong promise, without servers."""

from dataclasses import replace

import pytest

from gtid import GtidSet
from tests.random_faults.cases import EDGES, drawn, shape_of
from tests.random_faults.expectations import (
    Expected,
    Extent,
    Outcome,
    Reported,
    clears_wrongly,
    not_found,
    unexpected,
    unknown_without_cause,
)
from tests.random_faults.kind import edges_by_shape
from tests.random_faults.run import KINDS

UUID = "6d1f0000-0000-4000-8000-000000000001"
NONE = GtidSet.parse("")


def gtids(numbers: str) -> GtidSet:
    return GtidSet.parse(f"{UUID}:{numbers}")


EXPECTED = Expected(codes=frozenset({"H1"}), source="a", replica="b", injected=gtids("5-7"))
RIGHT = Reported("H1", "critical", "proved", "a", "b", gtids("5-7"), "a file position")


def outcome(*findings: Reported, verdict: str = "CRITICAL", backlog: GtidSet = NONE) -> Outcome:
    return Outcome(verdict, findings, (), backlog)


def test_the_right_finding_is_found() -> None:
    assert not_found(EXPECTED, outcome(RIGHT)) == []
    other = replace(RIGHT, source="c")
    assert not_found(EXPECTED, outcome(other, RIGHT)) == [], "one of several is enough"


@pytest.mark.parametrize(
    ("reported", "why"),
    [
        (replace(RIGHT, code="H8"), "none of H1"),
        (replace(RIGHT, source="c"), "the source is c, not a"),
        (replace(RIGHT, replica=None), "the replica is None, not b"),
        (replace(RIGHT, severity="info"), "it is only info"),
        (replace(RIGHT, gtids=gtids("5-6")), f"it does not have {UUID}:7"),
        (replace(RIGHT, gtids=gtids("5-8")), f"it also has {UUID}:8"),
    ],
)
def test_a_finding_that_differs_from_the_fault_is_not_found(reported: Reported, why: str) -> None:
    [reason] = not_found(EXPECTED, outcome(reported))
    assert why in reason


def test_a_backlog_may_have_what_waits_behind_the_fault_and_no_more() -> None:
    expected = replace(EXPECTED, extent=Extent.BACKLOG)
    longer = replace(RIGHT, gtids=gtids("5-9"))
    assert not_found(expected, outcome(longer, backlog=gtids("5-20"))) == []
    [reason] = not_found(expected, outcome(longer, backlog=gtids("5-8")))
    assert f"it also has {UUID}:9" in reason
    [reason] = not_found(expected, outcome(replace(RIGHT, gtids=NONE), backlog=gtids("5-20")))
    assert "does not have" in reason
    assert not_found(replace(EXPECTED, extent=Extent.ANY), outcome(longer)) == []


def test_a_likely_finding_must_name_the_cause() -> None:
    expected = replace(EXPECTED, words=("server_id",))
    assert not_found(expected, outcome(RIGHT)) == [], "proved needs no other cause"
    [reason] = not_found(expected, outcome(replace(RIGHT, grade="likely")))
    assert "does not name the cause 'server_id'" in reason


def test_a_server_that_cannot_be_read_makes_the_verdict_unknown() -> None:
    expected = Expected(
        codes=frozenset({"U1"}), replica="b", extent=Extent.ANY, must_be_unknown=True
    )
    unread = Reported("U1", "warning", "unknown", None, "b", NONE, "")
    assert not_found(expected, outcome(unread, verdict="UNKNOWN")) == []
    assert not_found(expected, outcome(unread, verdict="OK")) == ["the verdict is OK, not UNKNOWN"]


def test_healthy_servers_need_no_finding_and_permit_none_above_info() -> None:
    healthy = Expected(codes=frozenset())
    assert not_found(healthy, outcome(verdict="OK")) == []
    behind = replace(RIGHT, code="T2", severity="info")
    assert unexpected([healthy], [RIGHT, behind]) == [RIGHT]


def test_what_the_fault_causes_besides_is_permitted() -> None:
    position = replace(RIGHT, code="C3", severity="warning", gtids=NONE)
    assert unexpected([EXPECTED], [RIGHT, position]) == [position]
    with_position = replace(EXPECTED, companions=frozenset({"C3"}))
    assert unexpected([with_position], [RIGHT, position]) == []


def test_the_code_of_a_fault_at_another_replica_is_not_permitted() -> None:
    elsewhere = replace(RIGHT, replica="c")
    assert unexpected([EXPECTED], [RIGHT, elsewhere]) == [elsewhere]
    second = replace(EXPECTED, replica="c")
    assert unexpected([EXPECTED, second], [RIGHT, elsewhere]) == []
    assert unexpected([replace(EXPECTED, replica=None)], [RIGHT, elsewhere]) == []


def test_a_fault_that_stays_must_not_be_proved_to_clear() -> None:
    clears = replace(RIGHT, code="T2", severity="info")
    assert clears_wrongly(EXPECTED, outcome(RIGHT, clears)) == [
        f"{clears} is about a fault that stays"
    ]
    for harmless in (
        replace(clears, grade="likely"),
        replace(clears, gtids=gtids("8-9")),
        replace(clears, replica="c"),
    ):
        assert clears_wrongly(EXPECTED, outcome(RIGHT, harmless)) == []
    assert clears_wrongly(replace(EXPECTED, stays=False), outcome(clears)) == []


def test_what_was_not_read_needs_a_cause() -> None:
    part = replace(outcome(RIGHT), unknown=("b: content: refused",))
    assert unknown_without_cause(EXPECTED, part) == ("b: content: refused",)
    assert unknown_without_cause(replace(EXPECTED, companions=frozenset({"U"})), part) == ()


def test_rows_in_two_images_cannot_be_compared() -> None:
    text = "b: content: the rows were logged in different forms"
    part = replace(outcome(RIGHT), unknown=(text, "b: content: refused"))
    assert unknown_without_cause(EXPECTED, part, has_row_images=True) == ["b: content: refused"]
    assert unknown_without_cause(EXPECTED, part) == part.unknown


def test_the_same_seed_and_number_give_the_same_case() -> None:
    kinds = edges_by_shape(KINDS)
    cases = [drawn(1, number, kinds) for number in range(400)]
    assert cases == [drawn(1, number, kinds) for number in range(400)]
    assert cases != [drawn(2, number, kinds) for number in range(400)]
    assert {each.shape for each in cases} == set(EDGES)
    for each in cases:
        assert each.edge in KINDS[each.kind].edges(each.shape)
        assert each.shape == shape_of(1, each.number)


def test_every_kind_can_be_asked_for() -> None:
    kinds = edges_by_shape(KINDS)
    for kind in KINDS:
        case = drawn(1, 0, kinds, kind)
        assert (case.kind, case.edge in KINDS[kind].edges(case.shape)) == (kind, True)

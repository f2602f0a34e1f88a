from hypothesis import given
from hypothesis import strategies as st

from gtid import GtidSet, Tsid
from gtid_audit.views.pictures import BAR_CELLS_MAX, Cell, arrows_of, bars_of
from tests.gtid_audit.build import half_read, healthy, holed
from tests.snapshots import A, B, a_channel, a_cluster, a_server
from topology.readings.snapshot import ThreadState


def test_a_hole_is_seen_where_it_lies() -> None:
    snapshot = holed()
    held = {each.name: each.gtid_executed or GtidSet() for each in snapshot.last}
    (bars,) = bars_of(GtidSet.parse(f"{A}:51-53"), held)
    assert bars.tsid == Tsid(A)
    assert bars.last == 100
    assert {bar.server: "".join(cell.value for cell in bar.cells) for bar in bars.bars} == {
        "a": "█" * 48,
        "b": "█" * 24 + "·▒" + "█" * 22,
    }
    assert bars.marked == {24, 25}


numbers = st.sets(st.integers(1, 300), min_size=1)


def as_set(gnos: set[int]) -> GtidSet:
    return GtidSet.from_intervals((Tsid(A), gno, gno + 1) for gno in gnos)


@given(numbers, numbers, numbers)
def test_every_cell_tells_the_truth(about: set[int], left: set[int], right: set[int]) -> None:
    (bars,) = bars_of(as_set(about), {"l": as_set(left), "r": as_set(right)})
    last = max(about | left | right)
    count = min(BAR_CELLS_MAX, last)
    spans = [
        range(cell * last // count + 1, (cell + 1) * last // count + 1) for cell in range(count)
    ]
    assert sum(map(len, spans)) == last
    for bar, held in zip(bars.bars, (left, right), strict=True):
        for cell, span in zip(bar.cells, spans, strict=True):
            has = sum(number in held for number in span)
            assert cell is (Cell.ALL if has == len(span) else Cell.SOME if has else Cell.NONE)
    assert bars.marked == {cell for cell, span in enumerate(spans) if about & set(span)}


def test_what_would_cost_time_is_not_drawn() -> None:
    fragmented = GtidSet.from_intervals((Tsid(A), gno, gno + 1) for gno in range(1, 300_001, 2))
    assert bars_of(fragmented, {"a": fragmented}) == ()


def test_arrows_say_what_is_not_as_it_should_be() -> None:
    assert [
        (arrow.source, arrow.replica, arrow.flows, arrow.remarks) for arrow in arrows_of(healthy())
    ] == [
        ("a", "b", True, ()),
        ("b", "a", True, ()),
    ]
    stopped = a_channel(
        "b",
        B,
        name="back",
        receiver=ThreadState.CONNECTING,
        receiver_errno=2003,
        applier=ThreadState.STOPPED,
        applier_error="no",
        auto_position=False,
        lag_seconds=7,
    )
    arrows = arrows_of(
        a_cluster("pair", a_server("a", A, "", channels=(stopped,)), a_server("b", B, ""))
    )
    assert [(arrow.flows, arrow.remarks) for arrow in arrows] == [
        (
            False,
            (
                "channel back",
                "receiver connecting",
                "applier stopped by an error",
                "auto-position off",
                "7 s behind",
            ),
        )
    ]


def test_sources_that_are_not_known() -> None:
    assert arrows_of(half_read())[0].remarks == ("source not read",)
    outside = a_cluster("pair", a_server("a", A, "", channels=(a_channel("elsewhere", B),)))
    assert arrows_of(outside)[0].source == "elsewhere.example:3306"
    assert arrows_of(outside)[0].remarks == ("outside this cluster",)

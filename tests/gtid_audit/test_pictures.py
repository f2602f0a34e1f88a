from hypothesis import given
from hypothesis import strategies as st

from gtid import GtidSet, Tsid
from gtid_audit.views.pictures import BAR_CELLS_MAX, Cell, bars_of
from tests.gtid_audit.build import holed
from tests.snapshots import A


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

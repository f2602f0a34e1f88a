"""The intervals of a UUID on every server: each cell tells the truth, however the axis is broken."""

from collections.abc import Iterable
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from gtid import GtidSet, Tsid
from gtid_audit.views.interval_map import CELLS_MAX, CellState, IntervalMap, MappedServer, maps_of
from tests.snapshots import A, B

T = Tsid(A)
FAR = 400_000_000


def as_set(gnos: Iterable[int]) -> GtidSet:
    return GtidSet.from_intervals((T, gno, gno + 1) for gno in gnos)


def parsed(text: str) -> GtidSet:
    return GtidSet.parse(f"{A}:{text}") if text else GtidSet()


def server(name: str, executed: str, **sets: str) -> MappedServer:
    return MappedServer(name, parsed(executed), **{key: parsed(text) for key, text in sets.items()})


def one(about: str, *servers: MappedServer) -> IntervalMap:
    [found] = maps_of(parsed(about), servers)
    return found


def lines(found: IntervalMap) -> dict[str, str]:
    return {name: "".join(cell.value for cell in cells) for name, cells in found.rows}


def test_a_hole_of_three_is_seen_among_400_million() -> None:
    found = one(
        "399999991-399999993", server("a", f"1-{FAR}"), server("b", f"1-399999990:399999994-{FAR}")
    )
    a, b = lines(found).values()
    assert a == "█" * CELLS_MAX
    assert b.count("·") == 3
    assert found.marks.strip() == "^^^"
    assert found.marks.index("^") == b.index("·")
    assert found.scale.split() == ["1", "399,999,991"]
    assert found.scale.index("399") == b.index("·")


def test_every_state_has_a_sign_of_its_own() -> None:
    states = [each.value for each in CellState]
    assert len(set(states)) == len(states)
    found = one(
        "30",
        server("a", "1-40", purged="1-10"),
        server("b", "1-20:26-29:31-36", owned="30", errant="36"),
        server("c", ""),
    )
    assert lines(found) == {
        "a": "░" * 10 + "█" * 30,
        "b": "█" * 20 + "·" * 5 + "█" * 4 + "o" + "█" * 5 + "!" + "    ",
        "c": " " * 40,
    }
    assert found.scale.startswith("1 ")


def test_the_axis_is_broken_where_sets_end() -> None:
    """Each of these numbers begins a cell, so that no cell mixes two states."""
    a = server("a", f"1-{FAR}", purged="1-77", owned=str(FAR + 9))
    b = server("b", "1-123456:200000-300000", errant="250000-250003")
    found = one("5000-5009:70000", a, b)
    ends = {78, 5000, 5010, 70000, 70001, 123457, 250000, 250004, 300001, FAR + 1, FAR + 9}
    assert ends <= set(found.breaks)
    assert all(CellState.PARTLY not in cells for _, cells in found.rows)


def test_of_many_holes_the_nearest_are_seen() -> None:
    held = as_set([*range(1, 1000, 2), *range(1000, 2001)])
    found = one("501", MappedServer("a", held))
    assert {501, 502, 503, 499} <= set(found.breaks)
    assert 3 not in found.breaks


def test_numbers_below_a_map_do_not_touch() -> None:
    found = one("10-12:14-16:18-20", server("a", "1-40"))
    assert found.scale.split()[:2] == ["1", "10"]
    assert all(found.scale.index(text) == int(text) - 1 for text in ("10", "14", "18"))
    close = one("10:12:14", server("a", "1-40"))
    assert close.scale.split()[1:3] == ["10", "14"], "12 would touch 10"


def test_what_is_partly_there_is_not_called_executed() -> None:
    """With more holes than the axis has breaks, a cell has numbers of both kinds."""
    found = one("1-1000000", MappedServer("a", as_set(range(1, 2_001, 2))), server("b", "1-2000"))
    a, b = (cells for _, cells in found.rows)
    assert CellState.PARTLY in a
    assert CellState.PARTLY not in b


numbers = st.sets(st.integers(1, 400), min_size=1)


@given(numbers, numbers, numbers, numbers)
def test_every_cell_is_what_its_numbers_are(
    about: set[int], executed: set[int], purged: set[int], owned: set[int]
) -> None:
    held = MappedServer("a", as_set(executed), as_set(purged & executed), as_set(owned - executed))
    [found] = maps_of(as_set(about), [held])
    edges = found.edges
    last = max(about | executed | (owned - executed))
    assert (edges[0], edges[-1], len(edges) - 1) == (1, last + 1, min(CELLS_MAX, last))
    [(_, cells)] = found.rows
    for number, cell in enumerate(cells):
        span = set(range(edges[number], edges[number + 1]))
        assert span, "no cell is empty"
        has = span & executed
        assert (number in found.marked) is bool(span & about)
        if span & (owned - executed):
            assert cell is CellState.OWNED
        elif not has:
            later = any(each >= edges[number] for each in executed)
            assert cell is (CellState.HOLE if later else CellState.AHEAD)
        elif has != span:
            assert cell is CellState.PARTLY
        else:
            assert cell is (CellState.PURGED if span <= purged else CellState.EXECUTED)


@given(st.lists(st.tuples(st.integers(1, 10**12), st.integers(1, 10**9)), min_size=1, max_size=30))
def test_a_map_of_any_set_fits(spans: list[tuple[int, int]]) -> None:
    about = GtidSet.union_of(
        GtidSet.from_intervals([(T, start, start + length)]) for start, length in spans
    )
    [found] = maps_of(about, [MappedServer("a", about)])
    assert len(found.edges) - 1 <= CELLS_MAX
    assert len(found.marks) <= CELLS_MAX
    assert len(found.scale) <= CELLS_MAX + 7
    assert list(found.edges) == sorted(set(found.edges))
    for text in found.scale.split():
        assert int(text.replace(",", "")) in found.edges


def test_of_many_uuids_those_with_the_most_gtids_are_drawn() -> None:
    about = GtidSet.parse(",".join(f"{UUID(int=each)}:1-{each % 7 + 1}" for each in range(1, 21)))
    found = maps_of(about, [MappedServer("a", about)])
    assert [each.tsid.uuid.int for each in found] == [6, 13, 20]


def test_each_uuid_has_a_map_and_what_would_take_long_has_none() -> None:
    about = GtidSet.parse(f"{A}:1-3,{B}:7")
    assert [each.tsid.uuid for each in maps_of(about, [server("a", "1-9")])] == [A, B]
    many = as_set(range(1, 300_001, 2))
    assert maps_of(many, [MappedServer("a", many)]) == ()
    assert maps_of(about, []) == ()

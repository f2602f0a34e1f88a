"""Small pictures of GTID sets in text: where GTIDs are missing, on an even axis.

Pure: values in, cells out. The caller adds colours.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from gtid import GtidSet, Tsid

BAR_CELLS_MAX: Final = 48
BARS_MAX: Final = 3
BAR_INTERVALS_MAX: Final = 100_000  # above this nothing is drawn: it must take less than a second


class Cell(Enum):
    """How much of a cell's numbers a server has."""

    ALL = "█"
    SOME = "▒"
    NONE = "·"


@dataclass(frozen=True, slots=True)
class Bar:
    """The numbers 1 to `last` of one TSID on one server, cut into cells of equal width."""

    server: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Bars:
    """One TSID in each set, and the cells that contain the GTIDs that the picture is about."""

    tsid: Tsid
    last: int
    bars: tuple[Bar, ...]
    marked: frozenset[int]


def bars_of(about: GtidSet, held: "dict[str, GtidSet]") -> tuple[Bars, ...]:
    """Draw each TSID of `about` on each server, up to BARS_MAX TSIDs."""
    if sum(each.interval_count for each in (about, *held.values())) > BAR_INTERVALS_MAX:
        return ()
    return tuple(_bars(tsid, about, held) for tsid in about.tsids[:BARS_MAX])


def _bars(tsid: Tsid, about: GtidSet, held: "dict[str, GtidSet]") -> Bars:
    last = max(each.highest(tsid) or 0 for each in (about, *held.values()))
    assert last > 0, "a TSID of a set has a number"
    count = min(BAR_CELLS_MAX, last)
    return Bars(
        tsid=tsid,
        last=last,
        bars=tuple(
            Bar(server, _cells(gtids.from_tsid(tsid), last=last, count=count))
            for server, gtids in held.items()
        ),
        marked=frozenset(_touched(about.from_tsid(tsid), last=last, count=count)),
    )


def _cells(gtids: GtidSet, *, last: int, count: int) -> tuple[Cell, ...]:
    """Return the cells. Cell i has the numbers i*last//count <= number < (i+1)*last//count.

    Numbers count from 0 here: GNO 1 is number 0.
    """
    held = [0] * count
    for _, start, end in gtids.intervals():
        first, beyond = start - 1, end - 1
        for cell in range(_cell_of(first, last, count), _cell_of(beyond - 1, last, count) + 1):
            low, high = cell * last // count, (cell + 1) * last // count
            held[cell] += max(0, min(high, beyond) - max(low, first))
    return tuple(
        Cell.NONE
        if not has
        else Cell.ALL
        if has == (cell + 1) * last // count - cell * last // count
        else Cell.SOME
        for cell, has in enumerate(held)
    )


def _touched(gtids: GtidSet, *, last: int, count: int) -> set[int]:
    cells = _cells(gtids, last=last, count=count)
    return {cell for cell, has in enumerate(cells) if has is not Cell.NONE}


def _cell_of(number: int, last: int, count: int) -> int:
    """Return the cell i with i*last//count <= number < (i+1)*last//count."""
    return ((number + 1) * count - 1) // last

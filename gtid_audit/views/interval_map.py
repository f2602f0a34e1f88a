"""The intervals of one UUID on every server of a cluster, as one line of cells per server. Pure.

How it works
------------
A server may have 400 million transactions of a UUID, and a hole of three. On an even axis nothing
of the hole is seen. So the axis is broken at the numbers that matter, in this order: the ends of
what the picture is about; where each server's executed and purged sets end; what is owned or
errant; other holes, the nearest first. The parts between two such numbers are the segments:

    segments    1-99,999 │ 100,000-100,002 │ 100,003-120,456     the picture is about the middle
    cells             24 │               3 │              21     by the logarithm of the length

    db1         ██████████████ ███ █████████████
    db2         ░░░░░░████████ ··· █████████████

Each segment has at least one cell, and never more cells than numbers. Inside a segment the cells
have equal widths (up to one number). With at most CELLS_MAX numbers each cell is one number.

Cells are counted, not guessed: a cell says EXECUTED only if the server has every number of it. What
a cell cannot show exactly is PARTLY. The marks below the lines are the cells with any number that
the picture is about. Every state is a character, so that a file or a ticket shows it without
colours.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from heapq import nsmallest
from itertools import pairwise
from math import log10
from typing import Final

from gtid import GtidSet, Tsid

CELLS_MAX: Final = 48
TSIDS_MAX: Final = 3
INTERVALS_MAX: Final = 100_000  # above this nothing is drawn: it must take less than a second
_BREAKS_MAX: Final = 14
_ENDS_ABOUT: Final = 6  # of what the picture is about: at most so many numbers
_GAP: Final = 1  # cells between two numbers below the map
_BEYOND: Final = 7  # cells by which the last number may exceed the map: 80 columns in all


class CellState(Enum):
    """What a server has of the numbers of one cell."""

    EXECUTED = "█"  # all of them; some may be purged
    PURGED = "░"  # all of them, and its binary logs have none
    PARTLY = "▒"  # some of them
    HOLE = "·"  # none of them, and it has later ones
    AHEAD = " "  # none of them, and none later
    OWNED = "o"  # any of them is being committed, or held by a session
    ERRANT = "!"  # any of them is errant there


# The sign of each state, and what it means.
LEGEND: Final = tuple(
    (state, state.value.strip() or "(blank)", meaning)
    for state, meaning in (
        (CellState.EXECUTED, "executed"),
        (CellState.PURGED, "purged"),
        (CellState.PARTLY, "partly executed"),
        (CellState.HOLE, "hole"),
        (CellState.AHEAD, "nothing yet"),
        (CellState.OWNED, "owned"),
        (CellState.ERRANT, "errant"),
    )
)


@dataclass(frozen=True, slots=True)
class MappedServer:
    """The sets of one server. Invariant of MySQL: purged <= executed."""

    name: str
    executed: GtidSet
    purged: GtidSet = field(default_factory=GtidSet)
    owned: GtidSet = field(default_factory=GtidSet)
    errant: GtidSet = field(default_factory=GtidSet)

    @property
    def sets(self) -> tuple[GtidSet, ...]:
        """Return all four sets."""
        return (self.executed, self.purged, self.owned, self.errant)


@dataclass(frozen=True, slots=True)
class IntervalMap:
    """One TSID: a line of cells per server, and what is below them."""

    tsid: Tsid
    last: int
    rows: tuple[tuple[str, tuple[CellState, ...]], ...]
    marked: frozenset[int]  # cells with any number that the picture is about
    edges: tuple[int, ...]  # cell i has the numbers edges[i] <= GNO < edges[i + 1]
    breaks: tuple[int, ...]  # the numbers at which segments begin

    @property
    def marks(self) -> str:
        """Return the line with a mark below each marked cell."""
        count = len(self.edges) - 1
        return "".join("^" if cell in self.marked else " " for cell in range(count)).rstrip()

    @property
    def scale(self) -> str:
        """Return numbers below the cells where they begin, if they fit: marked ones first."""
        count = len(self.edges) - 1
        starts = {number: self.edges.index(number) for number in (*self.breaks, 1)}
        first_marked = [number for number in starts if starts[number] in self.marked]
        wanted = [*sorted(first_marked), 1, *sorted(starts, reverse=True)]
        line = [" "] * (count + _BEYOND)
        for number in dict.fromkeys(wanted):
            text, at = f"{number:,}", starts[number]
            around = line[max(at - _GAP, 0) : at + len(text) + _GAP]
            if at + len(text) <= len(line) and not "".join(around).strip():
                line[at : at + len(text)] = text
        return "".join(line).rstrip()


def maps_of(about: GtidSet, servers: Sequence[MappedServer]) -> tuple[IntervalMap, ...]:
    """Return a map for each TSID of a set, up to TSIDS_MAX; none if that would take long.

    Of more TSIDs, those with the most GTIDs are drawn.
    """
    counts = (each.interval_count for server in servers for each in server.sets)
    if not servers or about.interval_count + sum(counts) > INTERVALS_MAX:
        return ()
    parts = {tsid: about.from_tsid(tsid) for tsid in about.tsids}
    drawn = sorted(parts, key=lambda tsid: -parts[tsid].gtid_count)[:TSIDS_MAX]
    return tuple(_map(tsid, parts[tsid], servers) for tsid in parts if tsid in drawn)


def _map(tsid: Tsid, about: GtidSet, servers: Sequence[MappedServer]) -> IntervalMap:
    own = [
        MappedServer(each.name, *(gtids.from_tsid(tsid) for gtids in each.sets)) for each in servers
    ]
    sets = [about, *(gtids for each in own for gtids in each.sets)]
    last = max(gtids.highest(tsid) or 0 for gtids in sets)
    assert last > 0, "a TSID of a set has a number"
    breaks = _breaks(tsid, about, own, last)
    edges = _edges([1, *breaks, last + 1])
    return IntervalMap(
        tsid=tsid,
        last=last,
        rows=tuple((each.name, tuple(_states(each, tsid, edges))) for each in own),
        marked=frozenset(cell for cell, has in enumerate(_counts(about, edges)) if has),
        edges=edges,
        breaks=breaks,
    )


# -- where the axis is broken ---------------------------------------------------------------------


def _breaks(
    tsid: Tsid, about: GtidSet, servers: Sequence[MappedServer], last: int
) -> tuple[int, ...]:
    """Return the numbers at which a segment begins, without 1: the most important ones, sorted."""
    found: dict[int, None] = {}
    for number in _that_matter(tsid, about, servers):
        if 1 < number <= last:
            found[number] = None
        if len(found) == _BREAKS_MAX:
            break
    return tuple(sorted(found))


def _that_matter(tsid: Tsid, about: GtidSet, servers: Sequence[MappedServer]) -> Iterator[int]:
    ends = [*_ends(about)]
    yield from ends[: _ENDS_ABOUT - 1]
    yield from ends[-1:]
    for each in servers:
        for gtids in (each.executed, each.purged):
            yield (gtids.highest(tsid) or 0) + 1
    for each in servers:
        yield from _ends(each.owned)
        yield from _ends(each.errant)
    others = (end for each in servers for gtids in each.sets[:2] for end in _ends(gtids))
    begin = ends[0] if ends else 1
    yield from nsmallest(_BREAKS_MAX, set(others), key=lambda end: (abs(end - begin), end))


def _ends(gtids: GtidSet) -> Iterator[int]:
    """Yield the first number of each interval, and the number after its last one."""
    for _, start, end in gtids.intervals():
        yield start
        yield end


def _edges(bounds: Sequence[int]) -> tuple[int, ...]:
    """Divide each segment into cells."""
    lengths = [end - start for start, end in pairwise(bounds)]
    edges = [
        start + number * length // cells
        for start, length, cells in zip(bounds, lengths, _shares(lengths), strict=False)
        for number in range(cells)
    ]
    return (*edges, bounds[-1])


def _shares(lengths: Sequence[int]) -> list[int]:
    """Return the cells of each segment: 1 to its length, by the logarithm of the length.

    Each further cell goes to the segment that has the fewest for its weight.
    """
    cells = [1] * len(lengths)
    weights = [1.0 + log10(length) for length in lengths]
    for _ in range(min(CELLS_MAX, sum(lengths)) - len(lengths)):
        number = min(
            (each for each in range(len(cells)) if cells[each] < lengths[each]),
            key=lambda each: (cells[each] / weights[each], each),
        )
        cells[number] += 1
    return cells


# -- what is in a cell ----------------------------------------------------------------------------


def _states(server: MappedServer, tsid: Tsid, edges: Sequence[int]) -> Iterator[CellState]:
    highest = server.executed.highest(tsid) or 0
    counted = zip(*(_counts(gtids, edges) for gtids in server.sets), strict=True)
    for cell, (executed, purged, owned, errant) in enumerate(counted):
        size = edges[cell + 1] - edges[cell]
        if errant:
            yield CellState.ERRANT
        elif owned:
            yield CellState.OWNED
        elif not executed:
            yield CellState.HOLE if edges[cell] < highest else CellState.AHEAD
        elif executed < size:
            yield CellState.PARTLY
        else:
            yield CellState.PURGED if purged == size else CellState.EXECUTED


def _counts(gtids: GtidSet, edges: Sequence[int]) -> list[int]:
    """Return how many numbers of each cell a set has."""
    held = [0] * (len(edges) - 1)
    for start, end in _spans(gtids):
        cell = bisect_right(edges, start) - 1
        while cell < len(held) and edges[cell] < end:
            held[cell] += min(edges[cell + 1], end) - max(edges[cell], start)
            cell += 1
    return held


def _spans(gtids: GtidSet) -> Iterable[tuple[int, int]]:
    return ((start, end) for _, start, end in gtids.intervals())

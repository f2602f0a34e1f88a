"""Small pictures in text: who replicates from whom, and where GTIDs are missing.

Pure: values in, cells out. The caller adds colours.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from gtid import GtidSet, Tsid
from topology.facts.graph import Edge, build_graph
from topology.readings.snapshot import ClusterSnapshot, ThreadState

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
    """One TSID on both servers of an edge, and the cells that contain the finding's GTIDs."""

    tsid: Tsid
    last: int
    bars: tuple[Bar, ...]
    marked: frozenset[int]


@dataclass(frozen=True, slots=True)
class Arrow:
    """One line of the topology: an edge, and notes on what is wrong with it."""

    source: str
    replica: str
    flows: bool
    remarks: tuple[str, ...]


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


def arrows_of(snapshot: ClusterSnapshot) -> tuple[Arrow, ...]:
    """Draw every channel of a cluster, from the last reading."""
    graph = build_graph(snapshot)
    unread = {server.name for server in snapshot.last if server.server_uuid is None}
    arrows = [
        _arrow(edge, *(("source not read",) if edge.source in unread else ()))
        for edge in graph.edges
    ]
    for replica, channel in graph.outside:
        source = f"{channel.source_host}:{channel.source_port}"
        arrows.append(_arrow(Edge(source, replica, channel), "outside this cluster"))
    return tuple(arrows)


def _arrow(edge: Edge, *remarks: str) -> Arrow:
    channel = edge.channel
    said = list(remarks)
    if channel.name:
        said.append(f"channel {channel.name}")
    if channel.receiver is not ThreadState.RUNNING:
        said.append("receiver " + _state(channel.receiver, failed=bool(channel.receiver_errno)))
    if channel.applier is not ThreadState.RUNNING:
        failed = bool(channel.applier_errno or channel.applier_error)
        said.append("applier " + _state(channel.applier, failed=failed))
    if not channel.auto_position:
        said.append("auto-position off")
    if channel.lag_seconds:
        said.append(f"{channel.lag_seconds:,} s behind")
    flows = channel.receiver is ThreadState.RUNNING and channel.applier is ThreadState.RUNNING
    return Arrow(edge.source, edge.replica, flows, tuple(said))


def _state(state: ThreadState, *, failed: bool) -> str:
    if state is ThreadState.CONNECTING:
        return "connecting"
    return "stopped by an error" if failed else "stopped"

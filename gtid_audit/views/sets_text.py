"""Shows GTID sets to the operator: what two sets do not share, and the holes in one.

1. One paragraph per TSID with a difference; the others are counted.
2. Ranges are shortened to what fits the terminal, with a count of the omitted ones.
3. It computes nothing that `sets --json` does not show.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from gtid import GtidSet, SetRelation, Tsid, relate
from gtid.counted_nouns import counted
from gtid_audit.views.pictures import Cell, bars_of
from gtid_audit.views.report_parts import QUIET
from gtid_audit.views.report_text import console, show

TSIDS_SHOWN_MAX: Final = 20
PICTURES_MAX: Final = 5
RANGES_SHOWN_MAX: Final = 12

_RELATION: Final = {
    SetRelation.EQUAL: "A and B are equal",
    SetRelation.CONTAINS: "A contains B: it has all of B, and more",
    SetRelation.CONTAINED: "A is contained in B: B has all of A, and more",
    SetRelation.INTERSECTS: "A and B intersect: each has GTIDs that the other does not have",
    SetRelation.DISJOINT: "A and B are disjoint: no GTID is in both",
}
_STYLE: Final = {
    "only A": "bold red",
    "only B": "bold yellow",
    "both": "green",
    "holes": "bold red",
}


def show_difference(a: GtidSet, b: GtidSet) -> None:
    """Show what each of two sets has and the other is missing."""
    totals = {"only A": a - b, "only B": b - a, "both": a & b}
    relation = _RELATION[relate(a, b)]
    parts: list[RenderableType] = [Text(relation, style="bold"), _totals(totals)]
    differing = sorted({*totals["only A"].tsids, *totals["only B"].tsids})
    for number, tsid in enumerate(differing[:TSIDS_SHOWN_MAX]):
        held = {"A": a.from_tsid(tsid), "B": b.from_tsid(tsid)}
        named = {name: whole.from_tsid(tsid) for name, whole in totals.items()}
        parts += [Text(), _heading(tsid), _ranges(named)]
        if number < PICTURES_MAX:
            parts += _picture(named["only A"] | named["only B"], held)
    parts += _rest(len(differing), "differ")
    parts += _counted_quietly(len({*a.tsids, *b.tsids}) - len(differing), "equal in A and B")
    show(*parts)


def show_holes(held: GtidSet) -> None:
    """Show the holes of each TSID between its first number and its last."""
    holes = held.holes()
    parts: list[RenderableType] = [_totals({"holes": holes, "held": held})]
    for number, tsid in enumerate(holes.tsids[:TSIDS_SHOWN_MAX]):
        of_tsid = held.from_tsid(tsid)
        named = {"holes": holes.from_tsid(tsid), "held": of_tsid}
        parts += [Text(), _heading(tsid), _ranges(named)]
        if number < PICTURES_MAX:
            parts += _picture(named["holes"], {"": of_tsid})
    parts += _rest(holes.tsid_count, "have holes")
    parts += _counted_quietly(held.tsid_count - holes.tsid_count, "without holes")
    show(*parts)


def _totals(parts: dict[str, GtidSet]) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column()
    for _ in ("GTIDs", "ranges", "TSIDs"):
        grid.add_column(justify="right")
    grid.add_row("", "GTIDs", "ranges", "TSIDs", style=QUIET)
    for name, part in parts.items():
        counts = (part.gtid_count, part.interval_count, part.tsid_count)
        grid.add_row(
            Text(name, style=_STYLE.get(name, QUIET) if part else QUIET),
            *(f"{number:,}" for number in counts),
        )
    return grid


def _heading(tsid: Tsid) -> Text:
    return Text(str(tsid), style="bold", overflow="fold")


def _ranges(parts: dict[str, GtidSet]) -> RenderableType:
    """Write each part of one TSID: the count, and the first ranges."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    for _ in ("indent", "name", "count"):
        grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    shown = {name: part for name, part in parts.items() if part}
    counts = {name: f"{part.gtid_count:,}" for name, part in shown.items()}
    room = console().width - 12 - max(map(len, counts.values()))
    for name, part in shown.items():
        grid.add_row(
            "",
            Text(name, style=_STYLE.get(name, QUIET)),
            Text(counts[name], justify="right"),
            Text(ranges_within(part, characters_max=room)),
        )
    return grid


def ranges_within(of_one_tsid: GtidSet, *, characters_max: int) -> str:
    """Write the ranges of one TSID, without its name: the first that fit, and a count of the rest.

    At least one range is shown.
    """
    [tsid] = of_one_tsid.tsids
    behind_name = len(str(tsid)) + 1
    ranges_max = RANGES_SHOWN_MAX
    while True:
        text = of_one_tsid.shortened(ranges_max=ranges_max)[behind_name:]
        if len(text) <= characters_max or ranges_max == 1:
            return text
        ranges_max = max(1, min(ranges_max - 1, ranges_max * characters_max // len(text)))


def _picture(about: GtidSet, held: dict[str, GtidSet]) -> Iterator[RenderableType]:
    """Draw the numbers of one TSID from 1 to the last, with those of `about` in colour."""
    for bars in bars_of(about, held):
        grid = Table.grid(padding=(0, 1))
        for bar in bars.bars:
            cells = Text()
            for index, cell in enumerate(bar.cells):
                style = "green" if cell is Cell.ALL else QUIET
                cells.append(cell.value, style="bold red" if index in bars.marked else style)
            label = f"  {bar.server}" if bar.server else " "
            grid.add_row(label, cells, Text(f"1 … {bars.last:,}", style=QUIET))
        yield grid


def _rest(count: int, what: str) -> Iterable[RenderableType]:
    if count > TSIDS_SHOWN_MAX:
        left_out = counted(count - TSIDS_SHOWN_MAX, "more TSID")
        yield Text()
        yield Text(f"… and {left_out} that {what}; --json has all", style=QUIET)


def _counted_quietly(tsid_count: int, what: str) -> Iterable[RenderableType]:
    if tsid_count:
        yield Text()
        yield Text(f"{counted(tsid_count, 'TSID')} {what}", style=QUIET)

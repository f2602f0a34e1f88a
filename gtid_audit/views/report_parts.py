"""The smallest parts of what is shown: printable lines, statements to copy, counted rests."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from gtid_audit.output import printable
from topology.definitions.canonical import QUOTED

QUIET: Final = "bright_black"
CAUSES_LISTED_MIN: Final = 3
_CAUSES: Final = "Possible causes: "
_SENTENCE_END: Final = re.compile(r"\. (?=[A-Z])")
_BETWEEN: Final = re.compile(r"; (?![^()]*\))")  # not inside of parentheses


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """A statement to copy. No line is broken: a line end inside of a literal would change it.

    If a name or a literal has a line end, the statement is not shown: its next line would begin
    like one of ours.
    """

    statement: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield the lines, indented."""
        shown = self.statement
        if any("\n" in quoted[0] for quoted in re.finditer(QUOTED, shown, re.DOTALL)):
            shown = "-- a name or a text has a line end: --json has this statement"
        for line in shown.split("\n"):
            yield Segment(f"    {line}\n")


def line_of(text: str) -> Text:
    """Return a text from a server or an operator, made printable."""
    return Text(printable(text))


def explained(text: str) -> RenderableType:
    """Return the explanation of a finding. Several possible causes are a list, one a line."""
    before, causes, rest = text.partition(_CAUSES)
    items, end, after = _listed(rest)
    if len(items) < CAUSES_LISTED_MIN:
        return line_of(text)
    grid = Table.grid(padding=(0, 1, 0, 0))
    for item in items:
        grid.add_row(Text("·"), line_of(item))
    parts: list[RenderableType] = [line_of(before + causes.rstrip()), grid]
    if after:
        parts.append(line_of(after))
    assert f"{before}{causes}{'; '.join(items)}{end}{after}" == text, "every word is shown once"
    return Group(*parts)


def _listed(text: str) -> tuple[list[str], str, str]:
    """Return the items up to the end of the sentence, that end, and the sentences behind it."""
    end = _SENTENCE_END.search(text)
    listed, after = (text, "") if end is None else (text[: end.start()], text[end.end() :])
    return _BETWEEN.split(listed), "" if end is None else end[0], after


def rest_of(count: int, shown: int, noun: str) -> list[RenderableType]:
    """Return a line with the number of omitted items, if any."""
    if count <= shown:
        return []
    return [Text(f"  … and {count - shown:,} more {noun}; --json has all", style=QUIET)]

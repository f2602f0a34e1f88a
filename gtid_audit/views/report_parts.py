"""The smallest parts of what is shown: printable lines, statements to copy, counted rests."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from gtid_audit.output import printable
from topology.definitions.canonical import QUOTED

QUIET: Final = "bright_black"


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


def rest_of(count: int, shown: int, noun: str) -> list[RenderableType]:
    """Return a line with the number of omitted items, if any."""
    if count <= shown:
        return []
    return [Text(f"  … and {count - shown:,} more {noun}; --json has all", style=QUIET)]

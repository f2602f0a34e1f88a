"""The smallest parts of what is shown to the operator: printable lines, and counted rests."""

from typing import Final

from rich.console import RenderableType
from rich.text import Text

from gtid_audit.output import printable

QUIET: Final = "bright_black"


def line_of(text: str) -> Text:
    """Return a text from a server or an operator, made printable."""
    return Text(printable(text))


def rest_of(count: int, shown: int, noun: str) -> list[RenderableType]:
    """Return a line with the number of omitted items, if any."""
    if count <= shown:
        return []
    return [Text(f"  … and {count - shown:,} more {noun}; --json has all", style=QUIET)]

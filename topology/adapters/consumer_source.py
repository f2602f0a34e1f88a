"""A consumer of the fleet file: its name, and where its GTID set is stored.

This module reads nothing: topology/adapters/consumer_reads.py does.
"""

from dataclasses import dataclass
from pathlib import Path

from gtid import GtidSet


@dataclass(frozen=True, slots=True)
class ConsumerSource:
    """A consumer of the fleet file, and where its set is: exactly one of the three."""

    name: str
    server: str | None = None
    gtid_set: GtidSet | None = None
    file: Path | None = None
    command: tuple[str, ...] = ()
    directory: Path | None = None  # in which the command runs

    def __post_init__(self) -> None:
        if (self.gtid_set is not None) + (self.file is not None) + bool(self.command) != 1:
            raise ValueError(f"{self.name}: exactly one of a set, a file and a command")

    @property
    def place(self) -> str:
        """Return where the set is, for people."""
        if self.command:
            return f"the command {printable(Path(self.command[0]).name)}"
        return "the fleet file" if self.file is None else printable(str(self.file))


def printable(text: str) -> str:
    """Return a text that every terminal and every file can hold."""
    plain = text.encode(errors="backslashreplace").decode()
    return "".join(each if each.isprintable() else " " for each in plain)

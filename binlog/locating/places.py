"""Where the GTIDs of a set are: in which files, at which bytes, and why the others are in none.

1. Plain facts; who finds them out is in adapters/heads_files.py and adapters/heads_server.py.
2. Every wanted GTID is accounted for: it is in some file, or absent for one reason.
3. Positions of single transactions are bounded (PLACES_MAX): a set may hold millions. Files, their
   GTIDs and how many there are, are always told in full.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from binlog.errors import BinlogError
from gtid import Gtid, GtidSet

# What a repair or a person looks at one by one.
PLACES_MAX: Final = 10_000


class Absence(Enum):
    """Why a GTID is in none of the files."""

    PURGED = "purged"  # the server logged it, and the file is gone (gtid_purged)
    BEFORE_FIRST = "before the first file"  # its previous GTIDs hold it
    NOT_EXECUTED = "not executed"  # the server has not committed it, or not yet
    IN_NO_FILE = "in no file"  # none of the files holds it
    UNREAD = "not read"  # it may be in a file, or a part of one, that could not be read


@dataclass(frozen=True, slots=True)
class Place:
    """One transaction in its file. `end` is exclusive."""

    gtid: Gtid
    start: int
    end: int
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class FilePlaces:
    """The wanted GTIDs of one file; `places` are the first ones, in the order of the file.

    A server's file may be known to hold GTIDs of which nobody asked for the positions.
    """

    file: str
    gtids: GtidSet
    places: tuple[Place, ...]

    def __post_init__(self) -> None:
        assert self.gtids
        assert all(place.gtid in self.gtids for place in self.places)

    @property
    def left_out(self) -> int:
        """Return how many GTIDs have no place here."""
        return self.gtids.gtid_count - len({place.gtid for place in self.places})


@dataclass(frozen=True, slots=True)
class Located:
    """The answer: files in the order of the logs, absences in the order of their enumeration.

    `errors` are about files that were looked into and could not be read to their end, or not at
    all; about heads only if their GTIDs mattered.
    """

    wanted: GtidSet
    files: tuple[FilePlaces, ...]
    absent: tuple[tuple[Absence, GtidSet], ...]
    file_count: int
    heads_read: int
    errors: tuple[BinlogError, ...] = ()

    def __post_init__(self) -> None:
        parts = [self.found, *(gtids for _, gtids in self.absent)]
        assert GtidSet.union_of(parts) == self.wanted, "every wanted GTID is accounted for"
        assert sum(part.gtid_count for part in parts) == self.wanted.gtid_count, "and once"

    @property
    def found(self) -> GtidSet:
        """Return what is in some file."""
        return GtidSet.union_of(each.gtids for each in self.files)


def absences(parts: Iterable[tuple[Absence, GtidSet]]) -> tuple[tuple[Absence, GtidSet], ...]:
    """Leave out what is empty, and order the rest."""
    order = list(Absence)
    return tuple(sorted((p for p in parts if p[1]), key=lambda part: order.index(part[0])))

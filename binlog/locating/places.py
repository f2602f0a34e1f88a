"""The result of locating GTIDs: files, positions, and the reasons why others are in no file.

1. These are plain data; adapters/heads_files.py and adapters/heads_server.py produce them.
2. Every wanted GTID is accounted for: it is in some file, or absent for exactly one reason.
3. The positions of single transactions are limited (PLACES_MAX), because a set may have millions of
   GTIDs. Files, their GTIDs and the counts are always complete.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from binlog.errors import BinlogError
from gtid import Gtid, GtidSet

# Enough for a repair, or for an operator who checks transactions one by one.
PLACES_MAX: Final = 10_000


class Absence(Enum):
    """Why a GTID is in none of the files."""

    PURGED = "purged"  # the server logged it and has purged the file (gtid_purged)
    BEFORE_FIRST = "before the first file"  # the first file's previous GTIDs contain it
    NOT_EXECUTED = "not executed"  # the server has not committed it, or not yet
    IN_NO_FILE = "in no file"  # no file contains it
    UNREAD = "not read"  # it may be in a file, or a part of one, that could not be read


@dataclass(frozen=True, slots=True)
class TransactionPlace:
    """One transaction in its file. `end` is exclusive."""

    gtid: Gtid
    start: int
    end: int
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class FilePlaces:
    """The wanted GTIDs of one file; `places` are the first ones, in the order of the file.

    On a live server, `gtids` may include GTIDs whose positions were not requested.
    """

    file: str
    gtids: GtidSet
    places: tuple[TransactionPlace, ...]

    def __post_init__(self) -> None:
        assert self.gtids
        assert all(place.gtid in self.gtids for place in self.places)

    @property
    def left_out(self) -> int:
        """Return the number of GTIDs without a place."""
        return self.gtids.gtid_count - len({place.gtid for place in self.places})


@dataclass(frozen=True, slots=True)
class Located:
    """The result: files in the order of the logs, absences in the order of `Absence`.

    `errors` are those of files that were selected and could not be read, or not to their end.
    Errors of headers are included only if their GTIDs mattered.
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
        """Return the GTIDs that are in some file."""
        return GtidSet.union_of(each.gtids for each in self.files)


def absences(parts: Iterable[tuple[Absence, GtidSet]]) -> tuple[tuple[Absence, GtidSet], ...]:
    """Drop empty sets and sort the rest in the order of `Absence`."""
    order = list(Absence)
    return tuple(sorted((p for p in parts if p[1]), key=lambda part: order.index(part[0])))

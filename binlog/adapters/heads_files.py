"""Locates GTIDs in files: a search by file headers selects files, whose ledgers are then read.

1. Of a header, the first 4 KiB are read, and more only if the previous GTIDs are longer.
2. If a header cannot be read, or has no previous GTIDs, the search treats it as unknown and uses
   other headers. If the search then selects that file, the result contains the file's error.
3. In relay logs, a transaction may begin in one file and end in a later one. Only the file after
   that lists its GTID, so the headers point to the file with the end. A GTID that is not in the
   selected files is therefore searched for in the files before, back to one that has any GTID.
4. A receiver that reconnects requests a half-received transaction again. So the beginning of a
   transaction is its place only if no file has the whole.
5. If anything was not found, all headers are read. If one of them does not list all that an earlier
   one lists, the files are those of several channels, servers or histories, or in another order.
   Then the search by headers may miss a file, and every file is searched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import pyarrow.compute as pc

from binlog.adapters.ledger_files import ledger_of_file
from binlog.adapters.previous_gtids import previous_gtids_of
from binlog.errors import BinlogError, UnreadableBinlog
from binlog.ledger.ledger_sets import gtids_of, rows_in
from binlog.locating.index import Span, first_shrunk, search_heads
from binlog.locating.places import (
    PLACES_MAX,
    Absence,
    FilePlaces,
    Located,
    TransactionPlace,
    absences,
)
from gtid import Gtid, GtidSet, Tsid

if TYPE_CHECKING:
    import pyarrow as pa

# Called with the name of each file before it is read.
Say = Callable[[str], None]


def locate_in_files(
    paths: Sequence[Path],
    wanted: GtidSet,
    *,
    places_max: int = PLACES_MAX,
    say: Say = lambda _: None,
) -> Located:
    """Find the wanted GTIDs in the files of one server; `paths` are in the order of the logs."""
    looking = _Looking(paths, wanted, places_max=places_max, say=say)
    search = search_heads(
        wanted, file_count=len(paths), previous_gtids_of=looking.previous_gtids_of
    )
    unread = GtidSet.union_of([looking.look_into(span) for span in search.spans])
    absent = wanted - (looking.found | looking.half)
    if absent and first_shrunk(map(looking.previous_gtids_of, range(len(paths)))):
        unread |= looking.look_into(Span(0, len(paths), absent))
    looking.add_halves()
    missing = wanted - search.before_first - looking.found
    may_be_unread = missing & unread
    parts = (
        (Absence.BEFORE_FIRST, search.before_first - looking.found),
        (Absence.IN_NO_FILE, missing - may_be_unread),
        (Absence.UNREAD, may_be_unread),
    )
    return Located(
        wanted=wanted,
        files=tuple(looking.places()),
        absent=absences(parts),
        file_count=len(paths),
        heads_read=search.heads_read,
        errors=tuple(looking.errors.values()),
    )


@dataclass(slots=True)
class _Looking:
    """The state of a search: the GTIDs found so far, and those without an end, by file number."""

    paths: Sequence[Path]
    wanted: GtidSet
    places_max: int
    say: Say
    found: GtidSet = field(default_factory=GtidSet)
    files: dict[int, FilePlaces] = field(default_factory=dict)
    half: GtidSet = field(default_factory=GtidSet)
    halves: dict[int, pa.Table] = field(default_factory=dict)
    looked_into: dict[int, bool] = field(default_factory=dict)
    errors: dict[int, BinlogError] = field(default_factory=dict)

    def previous_gtids_of(self, number: int) -> GtidSet | None:
        """Return the header's set; None if unreadable: the file's ledger then has the error."""
        try:
            return previous_gtids_of(self.paths[number])
        except (BinlogError, OSError):
            return None

    def look_into(self, span: Span) -> GtidSet:
        """Search the files of a span; return the GTIDs that may be in unreadable parts of them."""
        failed_before = len(self.errors)
        for number in range(span.first, span.end):
            self._look_into_file(number)
        for number in reversed(range(span.first)):
            if span.gtids <= self.found | self.half or self._look_into_file(number):
                break
        return span.gtids - self.found if len(self.errors) > failed_before else GtidSet()

    def _look_into_file(self, number: int) -> bool:
        """Search one file, once; return whether it has any transaction with a GTID."""
        if number not in self.looked_into:
            self.looked_into[number] = self._has_any(number)
        return self.looked_into[number]

    def _has_any(self, number: int) -> bool:
        path = self.paths[number]
        self.say(path.name)
        try:
            ledger = ledger_of_file(path)
        except OSError as error:
            what = error.strerror or str(error)
            self.errors[number] = UnreadableBinlog(file=path.name, what=what)
            return False
        if ledger.error is not None:
            self.errors[number] = ledger.error
        rows = ledger.rows.filter(rows_in(ledger.rows, self.wanted))
        is_whole = rows["is_complete"]
        self._add(number, rows.filter(is_whole))
        if not pc.all(is_whole).as_py():
            self.halves[number] = rows.filter(pc.invert(is_whole))
            self.half |= gtids_of(self.halves[number])
        return bool(pc.any(pc.is_valid(ledger.rows["gno"])).as_py())

    def add_halves(self) -> None:
        """Add the transactions of which no file has the whole."""
        for number, rows in self.halves.items():
            self._add(number, rows)

    def _add(self, number: int, rows: pa.Table) -> None:
        """Add the rows of one file whose GTIDs were not found before."""
        gtids = gtids_of(rows) - self.found
        if not gtids:
            return
        self.found |= gtids
        before = self.files.get(number)
        room = self.places_max - sum(len(each.places) for each in self.files.values())
        places = _places_of(rows.slice(0, max(room, 0)))
        kept = [place for place in places if place.gtid in gtids]
        if before is not None:
            gtids |= before.gtids
            kept = sorted([*before.places, *kept], key=lambda place: place.start)
        self.files[number] = FilePlaces(str(self.paths[number]), gtids, tuple(kept))

    def places(self) -> Iterator[FilePlaces]:
        """Yield the files that contain wanted GTIDs, in the order of the logs."""
        for number in sorted(self.files):
            yield self.files[number]


def _places_of(rows: pa.Table) -> tuple[TransactionPlace, ...]:
    columns = (rows[name].to_pylist() for name in ("uuid", "tag", "gno", "start", "end"))
    complete = rows["is_complete"].to_pylist()
    return tuple(
        TransactionPlace(
            Gtid(Tsid(UUID(uuid), tag or ""), gno), start, end, is_complete=is_complete
        )
        for uuid, tag, gno, start, end, is_complete in zip(*columns, complete, strict=True)
    )

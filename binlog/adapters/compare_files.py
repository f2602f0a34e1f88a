"""Log files as one side of a comparison; implements `binlog.content.reuse.ComparedLogs`.

1. A file does not state which server wrote it. But a transaction that the server committed itself
   has the server_id of the file's format description; a received one has that of its origin.
2. The ledger of a file contains the positions of its transactions. Only the transactions that are
   compared are decoded.
3. In relay logs, a transaction may begin in one file and end in a later one. The headers then point
   to the file with the end, and the ledger of the first has it without its end. So a GTID that is
   in none of the selected files is searched for in the files before them, back to one that has any
   GTID, and a transaction without an end is read on in the next files.
4. After a RESET, or of a restored backup, a header does not list all that earlier ones list. Then
   every file is searched: it may have another transaction under a GTID.
5. A copy may end with transactions that its server lost in a crash. The next header does not list
   them, and the server may have used their GTIDs again. Then the two transactions are compared.
6. The last file may end inside an event: its server was writing it. In any other file this is
   damage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from functools import cached_property
from itertools import chain, islice
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from binlog.adapters.byte_ranges import read_between
from binlog.adapters.compression import find_decompressor
from binlog.adapters.ledger_files import ledger_of_file
from binlog.adapters.log_files import FileLogs, read_events, read_file_head
from binlog.adapters.previous_gtids import previous_gtids_of
from binlog.adapters.wanted_events import is_relay_log
from binlog.content.reuse import Unread, first_of_each, gtids_in_words, last_of_each
from binlog.content.server_starts import ServerStart
from binlog.errors import BinlogMisuse, ReusedGtid, TruncatedBinlog
from binlog.ledger.ledger_columns import ROWS_ONLY, LedgerRequest
from binlog.ledger.ledger_sets import gtids_of, rows_in
from binlog.locating.index import Shrunk, first_shrunk, search_heads
from binlog.log_times import EPOCH
from binlog.scan import BYTES_MAX, EventGroup, LogHead, group_events, scan_events
from gtid import GtidSet


class FilesCompared:
    """The files of one server, in the order of the logs."""

    def __init__(self, name: str, paths: Iterable[Path]) -> None:
        self._name = name
        self._paths = tuple(paths)
        if not self._paths:
            raise BinlogMisuse("no files to compare")
        self._heads: dict[int, LogHead] = {}
        self._ledger: tuple[int, pa.Table] | None = None

    @property
    def name(self) -> str:
        """Return the name of this group of files."""
        return self._name

    @property
    def names_fold(self) -> None:
        """Return None: files do not state how their server compares table names."""

    @property
    def has_each_once(self) -> bool:
        """Return False: files from before and after a reset may be compared together."""
        return False

    def starts(self) -> Iterator[ServerStart | Unread]:
        """Yield the restarts, the latest first, and what makes the files doubtful."""
        if doubt := self.doubt():
            yield doubt
        for number in reversed(range(len(self._paths))):
            if created := self._created_at(number):
                yield ServerStart(
                    self.name, EPOCH + timedelta(seconds=created), self._paths[number].name
                )

    def own_since(self, start: ServerStart, *, sizes: Iterator[int]) -> Iterator[GtidSet]:
        """Yield the server's own transactions from a restart to the next one, file by file."""
        for left in self._own(self._number_of(start.file)):
            while left:
                window = first_of_each(left, next(sizes))
                left -= window  # noqa: PLW2901 - the rest of one file
                yield window

    def own_before(self, start: ServerStart, *, sizes: Iterator[int]) -> Iterator[GtidSet]:
        """Yield the server's last own transactions before a restart, file by file."""
        for number in reversed(range(self._number_of(start.file))):
            left = self._own_in(number)
            while left:
                window = last_of_each(left, next(sizes))
                left -= window
                yield window

    def known(self) -> GtidSet:
        """Return the GTIDs that the headers list: logged before the last file."""
        return self._known

    def unheld(self, wanted: GtidSet) -> GtidSet:
        """Return the wanted GTIDs that were logged before the first file."""
        return wanted & (self._listed[0] or GtidSet())

    def holes(self, absent: GtidSet) -> GtidSet:
        """Return those that the headers list as logged after the first file began."""
        return absent & self._known - self.unheld(absent)

    def groups_of(self, wanted: GtidSet) -> Iterator[EventGroup]:
        """Yield the wanted transactions that the files contain, with their events."""
        if self._shrunk is not None:
            for number in range(len(self._paths)):
                yield from self._groups(number, wanted)
            return
        found = search_heads(
            wanted,
            file_count=len(self._paths),
            previous_gtids_of=self._listed.__getitem__,
        )
        for span in found.spans:
            given = []
            for number in range(span.first, span.end):
                for group in self._groups(number, span.gtids):
                    given.append(group.transaction.gtid)
                    yield group
            left = span.gtids - GtidSet.of(each for each in given if each is not None)
            for number in reversed(range(span.first if left else 0)):
                yield from self._groups(number, left)
                if pc.any(pc.is_valid(self._rows(number)["gno"])).as_py():
                    break

    def ledgers(self) -> Iterator[pa.Table]:
        """Yield the ledger of each file, with the digests of its transactions."""
        for number in range(len(self._paths)):
            yield self._sound_rows(number, LedgerRequest(digests=True))

    def _groups(self, number: int, wanted: GtidSet) -> Iterator[EventGroup]:
        rows = self._rows(number)
        rows = rows.filter(pa.array(rows_in(rows, wanted)))
        path, decompress = self._paths[number], find_decompressor()
        description = next(read_events(path))
        columns = (rows[name].to_pylist() for name in ("start", "end", "is_complete"))
        for start, end, is_complete in zip(*columns, strict=True):
            events = scan_events(
                read_between(path, start, end),
                file=path.name,
                position=start,
                description=self._head(number).description,
            )
            later = () if is_complete else self._paths[number + 1 :]
            groups = group_events(
                chain((description,), events, chain.from_iterable(map(read_events, later))),
                wanted,
                decompress=decompress,
                bytes_max=BYTES_MAX,
            )
            yield from islice(groups, 1)

    def _own(self, number: int) -> Iterator[GtidSet]:
        """Yield the server's own commits, file by file, from a file to the next restart."""
        for later in range(number, len(self._paths)):
            if later > number and self._created_at(later):
                return
            yield self._own_in(later)

    def _own_in(self, number: int) -> GtidSet:
        """Return the GTIDs in one file that the server itself committed."""
        rows = self._rows(number)
        server_id = next(read_events(self._paths[number])).header.server_id
        is_own = pc.and_(pc.equal(rows["server_id"], server_id), pc.is_valid(rows["gno"]))
        return gtids_of(rows.filter(is_own))

    def _rows(self, number: int) -> pa.Table:
        """Return the ledger of one file; cache the one that was requested last."""
        if self._ledger is None or self._ledger[0] != number:
            self._ledger = number, self._sound_rows(number)
        return self._ledger[1]

    def _sound_rows(self, number: int, request: LedgerRequest = ROWS_ONLY) -> pa.Table:
        """Return the ledger of one file. Raises BinlogError if it was not read to its end."""
        ledger = ledger_of_file(self._paths[number], request)
        is_last = number == len(self._paths) - 1
        if ledger.error is not None and not (is_last and isinstance(ledger.error, TruncatedBinlog)):
            raise ledger.error
        return ledger.rows

    def doubt(self) -> Unread | None:
        """Return which file begins another history; None if none does.

        A receiver forgets what it had received, so the headers of its relay logs show no history.
        """
        if is_relay_log(self._paths[0]):
            return None
        if self._shrunk is None:
            return self._reused
        text = (
            f"{self._paths[self._shrunk.number].name} does not list"
            f" {gtids_in_words(self._shrunk.absent)}, which files before it list: GTIDs begin anew"
            " there (RESET BINARY LOGS AND GTIDS, a restored backup). Select the files of one"
            " history"
        )
        return Unread(self.name, text)

    @cached_property
    def _listed(self) -> tuple[GtidSet | None, ...]:
        """What each header lists."""
        return tuple(map(previous_gtids_of, self._paths))

    @cached_property
    def _known(self) -> GtidSet:
        return GtidSet.union_of(each for each in self._listed if each is not None)

    @cached_property
    def _shrunk(self) -> Shrunk | None:
        return first_shrunk(self._listed)

    @cached_property
    def _reused(self) -> Unread | None:
        """Return the first GTID that has two different transactions; None if none has.

        Only a file before a start can have what the next header does not list (rule 5).
        """
        for number in range(len(self._paths) - 1):
            listed = self._listed[number + 1]
            if listed is None or not self._created_at(number + 1):
                continue
            rows = self._rows(number)
            lost = gtids_of(rows.filter(rows["is_complete"])) - listed
            if not lost:
                continue
            try:
                for _ in FileLogs(self._paths).events_of(lost):
                    pass  # two different ones raise
            except ReusedGtid as error:
                return Unread(self.name, str(error))
        return None

    def _created_at(self, number: int) -> int:
        return self._head(number).description.created_at_seconds

    def _head(self, number: int) -> LogHead:
        if number not in self._heads:
            self._heads[number] = read_file_head(self._paths[number])
        return self._heads[number]

    def _number_of(self, file: str) -> int:
        return next(at for at, path in enumerate(self._paths) if path.name == file)

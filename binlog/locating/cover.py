"""Whether an archive of binary logs is complete from a GTID set on: else the hole.

How it works
------------
The header of each file lists what its server had logged before it. So whatever any header lists,
and whatever any file contains, was executed by the server that wrote the archive. What of that is
neither in the given set nor in a file is the hole:

    hole = (previous GTIDs of all files) - from - (GTIDs in all files)

A server that ran without its binary log for a while lists in no header what it executed then. Only
the numbers show it: `between` are GTIDs that are nowhere, below others of the archive. It may as
well be that no transaction has them: groups leave numbers unused.

A file that is missing in the middle shows in the headers behind it. A file that is missing at the
end shows nowhere: `end` is where the archive ends. Files of several servers may be mixed.

That holds while a GTID is one transaction. If the GTIDs of a server began anew (histories.py), the
hole is found in each history alone, and an archive without a hole is not complete: the set may be
of either history.

Transactions without a GTID are in no set. A file that could not be read to its end may hold what
seems to be missing, or be followed by nothing that shows it: then the answer is not known.

A file that was copied while its server wrote it may end inside a transaction, and inside an event
if it is marked as in use. That transaction does not count. Nothing else is unknown if the file is
the newest of its server, or a copy of a longer one. Any other file was longer than its copy: its
server had closed it when it made the next one.

A receiver does not wait for the end of a transaction before it makes a new relay log, so there
`ends_in_transaction` shows nothing. Of a transaction that is whole over several relay logs, the
first has the GTID, and each is one of its `parts` (adapters/split_transactions.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from binlog.errors import BinlogError, TruncatedBinlog
from binlog.locating.copied_files import FileCopy, distinct_files
from binlog.locating.histories import (
    ArchiveFile,
    LogOrigin,
    NewHistory,
    RepeatedGtids,
    histories_of,
    place_of,
    server_of,
)
from gtid import GtidSet


@dataclass(frozen=True, slots=True)
class ArchivedLog:
    """What one file of an archive contains."""

    file: str
    previous_gtids: GtidSet | None  # None: its header could not be read, or has none
    gtids: GtidSet
    anonymous_count: int = 0  # transactions without a GTID
    error: BinlogError | None = None
    origin: LogOrigin = LogOrigin()  # noqa: RUF009 - immutable
    has_checksums: bool = True  # False: bytes inside its transactions cannot be checked
    parts: GtidSet = field(default_factory=GtidSet)  # whole over this and other relay logs
    ends_in_transaction: bool = False  # the last transaction has no end

    def is_unread(self, *, may_be_cut: bool) -> bool:
        """Return whether something of the file is not known; `may_be_cut`: see *How it works*."""
        if self.previous_gtids is None or self.anonymous_count:
            return True
        if isinstance(self.error, TruncatedBinlog) and self.error.in_use:
            return not may_be_cut
        if self.error is not None:
            return True
        return self.ends_in_transaction and not self.origin.is_relay_log and not may_be_cut


@dataclass(frozen=True, slots=True)
class ArchiveCover:
    """The answer for one archive and one set."""

    start: GtidSet
    files: tuple[ArchivedLog, ...]  # in log order
    end: GtidSet  # what its servers had executed at its end
    hole: GtidSet
    unread: tuple[ArchivedLog, ...] = ()  # the files of which something is not known
    new_histories: tuple[NewHistory, ...] = ()  # where GTIDs begin anew
    copies: tuple[FileCopy, ...] = ()

    @property
    def unchecked(self) -> tuple[ArchivedLog, ...]:
        """Return the files with transactions and without checksums."""
        return tuple(each for each in self.files if each.gtids and not each.has_checksums)

    @property
    def needed(self) -> tuple[ArchivedLog, ...]:
        """Return the files with anything that is not in the given set, without copies."""
        copies = {each.number for each in self.copies}
        return tuple(
            each
            for number, each in enumerate(self.files)
            if (each.gtids | each.parts) - self.start and number not in copies
        )

    @property
    def beyond(self) -> GtidSet:
        """Return what the set has and the archive does not know: of later, or another server's."""
        return self.start - self.end

    @property
    def between(self) -> GtidSet:
        """Return the GTIDs below others that neither the set, nor a header, nor a file has.

        Relay logs list only what was received: there such numbers show nothing.
        """
        if all(each.origin.is_relay_log for each in self.files):
            return GtidSet()
        known = self.start | self.end
        return self.end.filled() - known


def cover_of(
    start: GtidSet, files: Sequence[ArchivedLog], repeated: Sequence[RepeatedGtids] = ()
) -> ArchiveCover:
    """Return whether files continue a set without a hole. Pure.

    `repeated` are the GTIDs that two of the files have.
    """
    inside = GtidSet.union_of(each.gtids for each in files)
    before = GtidSet.union_of(each.previous_gtids or GtidSet() for each in files)
    hole = before - start - inside
    readable = [
        ArchiveFile(number, each.file, each.origin, each.previous_gtids, each.gtids)
        for number, each in enumerate(files)
        if each.previous_gtids is not None
    ]
    distinct = distinct_files(readable, repeated)
    found = histories_of(distinct.files, repeated)
    if found.begins:
        hole |= found.hole_after(start)
    copies = {each.number for each in distinct.copies}
    may_be_cut = copies | _newest([each for each in readable if each.number not in copies])
    unread = tuple(
        each for number, each in enumerate(files) if each.is_unread(may_be_cut=number in may_be_cut)
    )
    return ArchiveCover(
        start, tuple(files), before | inside, hole, unread, found.begins, distinct.copies
    )


def _newest(files: Sequence[ArchiveFile]) -> set[int]:
    """Return the newest file of each server, and of each channel's relay logs."""
    newest: dict[tuple[LogOrigin, str], ArchiveFile] = {}
    for each in sorted(files, key=place_of):
        channel = each.name.rpartition(".")[0] if each.origin.is_relay_log else ""
        newest[server_of(each), channel] = each
    return {each.number for each in newest.values()}

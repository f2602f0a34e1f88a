"""Finds each wanted transaction of files once, and notices two of them under one GTID.

How it works
------------
A binary log can have a transaction only if its header does not list it. So once a transaction was
found, every later header lists it, and no later file is read for it:

    binlog.000002   previous 1-8    has 9-11
    binlog.000003   previous 1-11   has 12

After RESET BINARY LOGS AND GTIDS, a crash that lost the end of a log, or a restored backup, a later
header does not list it. Only then the later file may have another transaction under that GTID:

    binlog.000003   previous 1-8    has 9-12

It is read, and the two transactions are compared. The same one twice (a file that was copied, or
what a receiver received again) is found once. Two different ones are reported: no GTID shows which
of them is meant.

A receiver of 5.6 lists a transaction as soon as it has begun, and a transaction may go on in later
relay logs. So relay logs are read until all is found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from binlog.adapters.compression import find_decompressor
from binlog.adapters.previous_gtids import previous_gtids_of
from binlog.adapters.wanted_events import is_relay_log, wanted_events
from binlog.content.compare import Agreement, Version, compare_versions, each_version
from binlog.errors import BinlogError, ReusedGtid
from binlog.scan import BYTES_MAX, MakeStore, group_events
from gtid import Gtid, GtidSet

# One transaction: one commit, or two with equal content (a dump that was loaded twice).
_SAME: Final = frozenset({Agreement.SAME, Agreement.TWICE})
# Found transactions that are kept one by one: a set of them may have millions.
_LATEST_MAX: Final = 10_000
# Transactions that two files have in common are read and compared this many at a time.
_COMPARED_AT_ONCE: Final = 1_000


class OneHistory:
    """The files of one server in the order of the logs, and which wanted GTIDs were found where."""

    def __init__(
        self, paths: Sequence[Path], wanted: GtidSet, *, store: MakeStore | None = None
    ) -> None:
        self._paths = paths
        self._wanted = wanted
        self._store = store
        self._numbers = {path.name: number for number, path in enumerate(paths)}
        self._left = wanted.gtid_count
        self._listed: dict[int, GtidSet | None] = {}
        # What was found: by file, in all, and the latest, which are in neither set yet.
        self._in_file: dict[int, GtidSet] = {}
        self._found = GtidSet()
        self._latest: dict[Gtid, int] = {}
        self._different: dict[tuple[int, int], GtidSet] = {}

    @property
    def is_complete(self) -> bool:
        """Return whether all wanted transactions were found."""
        return self._left <= 0

    def has(self, gtid: Gtid) -> bool:
        """Return whether a wanted transaction was found."""
        return gtid in self._latest or gtid in self._found

    def may_have(self, number: int) -> bool:
        """Return whether a file has to be read. A file whose header cannot be read has to."""
        if not self._wanted:
            return False
        listed = self._listed_by(number)
        if listed is None or not self._wanted <= listed:
            return True
        return not self.is_complete and is_relay_log(self._paths[number])

    def is_new(self, gtid: Gtid, file: str) -> bool:
        """Note where a transaction was found; return whether it was not found before.

        Raises ReusedGtid if another transaction with this GTID was found before.
        """
        number = self._numbers[file]
        if self.has(gtid):
            before = self._place_of(gtid)
            if before != number:
                self._compare(gtid, before, number)
            return False
        self._latest[gtid] = number
        self._left -= 1
        if len(self._latest) >= _LATEST_MAX:
            self._merge()
        return True

    def _place_of(self, gtid: Gtid) -> int:
        if self._latest:
            self._merge()
        return next(number for number, gtids in self._in_file.items() if gtid in gtids)

    def _merge(self) -> None:
        by_file: defaultdict[int, list[Gtid]] = defaultdict(list)
        for gtid, number in self._latest.items():
            by_file[number].append(gtid)
        for number, gtids in by_file.items():
            self._in_file[number] = self._in_file.get(number, GtidSet()) | GtidSet.of(gtids)
        self._found = GtidSet.union_of(self._in_file.values())
        self._latest.clear()

    def _compare(self, gtid: Gtid, before: int, number: int) -> None:
        if (before, number) not in self._different:
            self._different[before, number] = self._difference(before, number)
        if gtid in self._different[before, number]:
            names = self._paths[before].name, self._paths[number].name
            raise ReusedGtid(gtid=str(gtid), files=names)

    def _difference(self, before: int, number: int) -> GtidSet:
        """Return the GTIDs under which two files have different transactions."""
        left = self._in_file[before] - (self._listed_by(number) or GtidSet())
        found: list[Gtid] = []
        while left:
            chunk = left.first(_COMPARED_AT_ONCE)
            left -= chunk
            ours = {gtid: each.lightened() for gtid, each in self._versions(before, chunk)}
            for gtid, theirs in self._versions(number, chunk):
                same = compare_versions(ours[gtid], theirs, names_fold=None).agreement in _SAME
                found += () if same else (gtid,)
        return GtidSet.of(found)

    def _versions(self, number: int, wanted: GtidSet) -> Iterator[tuple[Gtid, Version]]:
        """Yield whole transactions of one file; of a relay log, they may end in a later one."""
        later = len(self._paths) if is_relay_log(self._paths[number]) else number + 1
        groups = group_events(
            chain.from_iterable(wanted_events(each, wanted) for each in self._paths[number:later]),
            wanted,
            decompress=find_decompressor(),
            bytes_max=BYTES_MAX,
            store=self._store,
        )
        for gtid, each in each_version(groups):
            if each.transaction.is_complete and each.transaction.file == self._paths[number].name:
                yield gtid, each

    def _listed_by(self, number: int) -> GtidSet | None:
        if number not in self._listed:
            try:
                self._listed[number] = previous_gtids_of(self._paths[number])
            except (BinlogError, OSError):  # reading the file raises it
                self._listed[number] = None
        return self._listed[number]

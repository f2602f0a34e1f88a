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

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from binlog.adapters.byte_ranges import read_between
from binlog.adapters.compression import find_decompressor
from binlog.adapters.wanted_events import is_relay_log, wanted_events
from binlog.content.compare import Agreement, Version, compare_versions
from binlog.errors import BinlogError, ReusedGtid
from binlog.scan import BYTES_MAX, EventGroup, MakeStore, group_events, read_head
from gtid import Gtid, GtidSet

# One transaction: one commit, or two with equal content (a dump that was loaded twice).
_SAME: Final = frozenset({Agreement.SAME, Agreement.TWICE})


class OneHistory:
    """The files of one server in the order of the logs, and which wanted GTIDs were found where."""

    def __init__(
        self, paths: Sequence[Path], wanted: GtidSet, *, store: MakeStore | None = None
    ) -> None:
        self._paths = paths
        self._wanted = wanted
        self._store = store
        self._places: dict[Gtid, int] = {}
        self._left = wanted.gtid_count
        self._listed: dict[int, GtidSet | None] = {}

    @property
    def is_complete(self) -> bool:
        """Return whether all wanted transactions were found."""
        return self._left <= 0

    def has(self, gtid: Gtid) -> bool:
        """Return whether a wanted transaction was found."""
        return gtid in self._places

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
        number = next(at for at, path in enumerate(self._paths) if path.name == file)
        before = self._places.get(gtid)
        if before is None:
            self._places[gtid] = number
            self._left -= 1
            return True
        if before != number:
            self._compare(gtid, before, number)
        return False

    def _compare(self, gtid: Gtid, before: int, number: int) -> None:
        found = [self._version(gtid, at) for at in (before, number)]
        if compare_versions(found[0], found[1], names_fold=None).agreement not in _SAME:
            names = self._paths[before].name, self._paths[number].name
            raise ReusedGtid(gtid=str(gtid), files=names)

    def _version(self, gtid: Gtid, number: int) -> Version:
        """Read a transaction from the file in which it begins."""
        wanted = GtidSet.of([gtid])
        groups: Iterator[EventGroup] = group_events(
            chain.from_iterable(wanted_events(path, wanted) for path in self._paths[number:]),
            wanted,
            decompress=find_decompressor(),
            bytes_max=BYTES_MAX,
            store=self._store,
        )
        return Version.of(next(each for each in groups if each.transaction.is_complete))

    def _listed_by(self, number: int) -> GtidSet | None:
        if number not in self._listed:
            path = self._paths[number]
            try:
                self._listed[number] = read_head(read_between(path), file=path.name).previous_gtids
            except (BinlogError, OSError):  # reading the file raises it
                self._listed[number] = None
        return self._listed[number]

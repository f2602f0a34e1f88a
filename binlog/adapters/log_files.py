"""Binlog and relay-log files on this machine.

This file opens, reads and closes files; `binlog.scan` interprets the bytes. A server may still
write a file while it is read. Then the result ends where the file ends at that moment. An
incomplete event raises TruncatedBinlog with `in_use` set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from binlog.adapters.byte_ranges import read_between
from binlog.adapters.compression import find_decompressor
from binlog.adapters.one_history import OneHistory
from binlog.adapters.wanted_events import wanted_events
from binlog.errors import BinlogMisuse, ReusedGtid
from binlog.events import Event
from binlog.scan import (
    BYTES_MAX,
    EventGroup,
    LogHead,
    MakeStore,
    group_events,
    read_head,
    scan_events,
    whole_first,
)
from gtid import GtidSet


def read_events(path: Path) -> Iterator[Event]:
    """Yield the events of one file in order. Raises CorruptBinlog, UnsupportedBinlog, OSError."""
    return scan_events(read_between(path), file=path.name)


def read_file_head(path: Path) -> LogHead:
    """Return a file's format description and previous GTIDs; usually reads only one chunk."""
    return read_head(read_between(path), file=path.name)


class FileLogs:
    """The transactions of files, in the order of the logs; their names must be distinct."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = tuple(paths)
        if len({path.name for path in self._paths}) != len(self._paths):
            raise BinlogMisuse("two files have the same name")

    def events_of(
        self,
        wanted: GtidSet,
        *,
        bytes_max: int = BYTES_MAX,
        store: MakeStore | None = None,
        counts_rows: bool = True,
        reused: Callable[[ReusedGtid], None] | None = None,
    ) -> Iterator[EventGroup]:
        """Yield the wanted transactions with their events, one by one, in the order of the logs.

        Only one is in memory at a time. `bytes_max` limits each, with its payload decompressed
        (LimitExceeded). With `store`, the events of a longer one go to a new store; a decompressed
        payload is still in memory as a whole. `counts_rows`: see `TransactionFolder`. Transactions
        that are not in the files are omitted. Two transactions under one GTID raise ReusedGtid;
        with `reused`, it gets the error, and both are yielded. Raises CorruptBinlog,
        UnsupportedBinlog, OSError.
        """
        history = OneHistory(self._paths, wanted, store=store)
        groups = group_events(
            self._events(wanted, history),
            wanted,
            decompress=find_decompressor(),
            bytes_max=bytes_max,
            store=store,
            counts_rows=counts_rows,
        )
        for group in whole_first(groups):
            found = group.transaction
            assert found.gtid is not None, "only groups with a wanted GTID are yielded"
            try:
                if history.has(found.gtid) and not found.is_complete:
                    continue
                if found.is_complete and not history.is_new(found.gtid, found.file):
                    continue
            except ReusedGtid as error:
                if reused is None:
                    raise
                reused(error)
            yield group

    def _events(self, wanted: GtidSet, history: OneHistory) -> Iterator[Event]:
        """Yield the events of the files that may have wanted transactions."""
        for number, path in enumerate(self._paths):
            if not history.may_have(number):
                continue
            was_complete = history.is_complete
            for event in wanted_events(path, wanted):
                yield event
                if history.is_complete and not was_complete:
                    break  # no file has one GTID twice

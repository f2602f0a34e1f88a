"""Binlog and relay-log files on this machine.

This file opens, reads and closes files; `binlog.scan` interprets the bytes. A server may still
write a file while it is read. Then the result ends where the file ends at that moment. An
incomplete event raises TruncatedBinlog with `in_use` set.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from pathlib import Path

from binlog.adapters.compression import find_decompressor
from binlog.adapters.wanted_events import wanted_events
from binlog.decode import FIRST_POSITION
from binlog.errors import BinlogMisuse
from binlog.events import Event
from binlog.scan import (
    BYTES_MAX,
    TRANSACTIONS_MAX,
    EventGroup,
    LogHead,
    MakeStore,
    ReadFrom,
    first_groups,
    group_events,
    read_head,
    scan_events,
    scan_transactions,
    select_transactions,
)
from binlog.transactions import Transaction, fold_transactions
from gtid import GtidSet

CHUNK_BYTES = 1 << 20


def read_events(path: Path) -> Iterator[Event]:
    """Yield the events of one file in order. Raises CorruptBinlog, UnsupportedBinlog, OSError."""
    return scan_events(_chunks(path)(0), file=path.name)


def read_transactions(path: Path, *, position: int = FIRST_POSITION) -> Iterator[Transaction]:
    """Return the transactions of one file from `position` on; an event must start there.

    Raises CorruptBinlog, UnsupportedBinlog, BinlogMisuse, OSError.
    """
    size = path.stat().st_size
    if position > size and position != FIRST_POSITION:
        raise BinlogMisuse(f"{path.name} has {size} bytes; position {position} is past its end")
    return scan_transactions(
        _chunks(path), file=path.name, position=position, decompress=find_decompressor()
    )


def read_file_head(path: Path) -> LogHead:
    """Return a file's format description and previous GTIDs; usually reads only one chunk."""
    return read_head(_chunks(path), file=path.name)


class FileLogs:
    """A `TransactionSource` over files, in the order of the logs; their names must be distinct."""

    def __init__(self, paths: Iterable[Path]) -> None:
        paths = tuple(paths)
        self._paths: Mapping[str, Path] = {path.name: path for path in paths}
        if len(self._paths) != len(paths):
            raise BinlogMisuse("two files have the same name")

    def transactions_at(
        self, *, file: str, position: int, transactions_max: int
    ) -> tuple[Transaction, ...]:
        """See `TransactionSource`. Raises BinlogMisuse for an unknown file or position."""
        if file not in self._paths:
            raise BinlogMisuse(f"no log named {file}")
        return tuple(
            islice(read_transactions(self._paths[file], position=position), transactions_max)
        )

    def transactions_of(
        self,
        wanted: GtidSet,
        *,
        transactions_max: int = TRANSACTIONS_MAX,
        bytes_max: int = BYTES_MAX,
    ) -> tuple[Transaction, ...]:
        """See `TransactionSource`."""
        decompress = find_decompressor()
        chosen = select_transactions(
            chain.from_iterable(
                fold_transactions(_wanted(path, wanted), decompress=decompress)
                for path in self._paths.values()
            ),
            wanted,
            transactions_max=transactions_max,
            bytes_max=bytes_max,
        )
        return tuple(chosen)

    def events_of(
        self, wanted: GtidSet, *, bytes_max: int = BYTES_MAX, store: MakeStore | None = None
    ) -> Iterator[EventGroup]:
        """See `TransactionSource`."""
        decompress = find_decompressor()
        of_each_file = (
            group_events(
                _wanted(path, wanted),
                wanted,
                decompress=decompress,
                bytes_max=bytes_max,
                store=store,
            )
            for path in self._paths.values()
        )
        return first_groups(of_each_file, wanted)


def _wanted(path: Path, wanted: GtidSet) -> Iterator[Event]:
    return wanted_events(path, wanted, partial(_read, path))


def _chunks(path: Path) -> ReadFrom:
    return lambda position: _read(path, position, sys.maxsize)


def _read(path: Path, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes of a file from `start` to `end`, or to the end of the file."""
    with path.open("rb") as file:
        file.seek(start)
        left = end - start
        while left > 0 and (chunk := file.read(min(left, CHUNK_BYTES))):
            yield chunk
            left -= len(chunk)

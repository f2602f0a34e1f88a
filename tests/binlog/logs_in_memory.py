"""Logs whose bytes are in memory, and the transactions of a file, for tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from binlog.adapters.compression import find_decompressor
from binlog.adapters.log_files import read_events
from binlog.decode import Decompress
from binlog.scan import BYTES_MAX, EventGroup, MakeStore, group_events, scan_events, whole_first
from binlog.transactions import Transaction, fold_transactions
from gtid import GtidSet


def read_transactions(path: Path) -> Iterator[Transaction]:
    """Return the transactions of one file, read with the decoder."""
    return fold_transactions(read_events(path), decompress=find_decompressor())


@dataclass(frozen=True)
class MemoryLogs:
    """Logs in memory, with the interface of FileLogs; their order is that of the mapping."""

    files: Mapping[str, bytes]
    decompress: Decompress | None = None
    chunk_bytes: int = 1 << 20

    def events_of(
        self, wanted: GtidSet, *, bytes_max: int = BYTES_MAX, store: MakeStore | None = None
    ) -> Iterator[EventGroup]:
        events = chain.from_iterable(
            scan_events(self._chunks(data), file=file) for file, data in self.files.items()
        )
        groups = group_events(
            events, wanted, decompress=self.decompress, bytes_max=bytes_max, store=store
        )
        return whole_first(groups)

    def _chunks(self, data: bytes) -> Iterator[bytes]:
        for at in range(0, len(data), self.chunk_bytes):
            yield data[at : at + self.chunk_bytes]

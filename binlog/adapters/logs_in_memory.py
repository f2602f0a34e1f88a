"""Logs whose bytes are in memory: an adapter with the interface of the others, for tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice

from binlog.decode import Decompress
from binlog.errors import BinlogMisuse
from binlog.scan import (
    BYTES_MAX,
    TRANSACTIONS_MAX,
    EventGroup,
    MakeStore,
    ReadFrom,
    first_groups,
    scan_groups,
    scan_transactions,
    select_transactions,
)
from binlog.transactions import Transaction
from gtid import GtidSet


@dataclass(frozen=True)
class MemoryLogs:
    """A `TransactionSource` over bytes. The order of the mapping is the order of the logs."""

    files: Mapping[str, bytes]
    decompress: Decompress | None = None
    chunk_bytes: int = 1 << 20

    def transactions_at(
        self, *, file: str, position: int, transactions_max: int
    ) -> tuple[Transaction, ...]:
        """See `TransactionSource`. Raises BinlogMisuse for an unknown file or position."""
        return tuple(islice(self._scan(file, position), transactions_max))

    def transactions_of(
        self,
        wanted: GtidSet,
        *,
        transactions_max: int = TRANSACTIONS_MAX,
        bytes_max: int = BYTES_MAX,
    ) -> tuple[Transaction, ...]:
        """See `TransactionSource`."""
        chosen = select_transactions(
            chain.from_iterable(self._scan(file, 4) for file in self.files),
            wanted,
            transactions_max=transactions_max,
            bytes_max=bytes_max,
        )
        return tuple(chosen)

    def events_of(
        self, wanted: GtidSet, *, bytes_max: int = BYTES_MAX, store: MakeStore | None = None
    ) -> Iterator[EventGroup]:
        """See `TransactionSource`."""
        of_each_file = (
            scan_groups(
                self._reader(file),
                wanted,
                file=file,
                decompress=self.decompress,
                bytes_max=bytes_max,
                store=store,
            )
            for file in self.files
        )
        return first_groups(of_each_file, wanted)

    def _scan(self, file: str, position: int) -> Iterable[Transaction]:
        if file not in self.files:
            raise BinlogMisuse(f"no log named {file}")
        size = len(self.files[file])
        if position > size:
            raise BinlogMisuse(f"{file} has {size} bytes; position {position} is past its end")
        return scan_transactions(
            self._reader(file), file=file, position=position, decompress=self.decompress
        )

    def _reader(self, file: str) -> ReadFrom:
        data = self.files[file]

        def read_from(position: int) -> Iterable[bytes]:
            for at in range(position, len(data), self.chunk_bytes):
                yield data[at : at + self.chunk_bytes]

        return read_from

"""Transactions in memory, and their events for those that the kernels do not handle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlog.decode import FIRST_POSITION, Decompress
from binlog.events import Event, FormatDescription
from binlog.scan import scan_events

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]

_CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class TransactionBytes:
    """Transactions, by the offsets in `data` at which they begin and end.

    `description` is valid at each start. `position` is that of the first byte of `data` in `file`.
    """

    data: Bytes
    starts: Offsets
    ends: Offsets
    description: FormatDescription
    decompress: Decompress | None
    file: str = ""
    position: int = 0

    def __post_init__(self) -> None:
        assert len(self.starts) == len(self.ends)
        assert not len(self.starts) or (
            self.starts.min() >= 0 and self.ends.max() <= len(self.data)
        )

    def __len__(self) -> int:
        """Return the number of transactions."""
        return len(self.starts)

    def bytes_of(self, row: int) -> Bytes:
        """Return the bytes of one transaction."""
        return self.data[self.starts[row] : self.ends[row]]

    def at(self, rows: NDArray[np.intp]) -> TransactionBytes:
        """Return some of the transactions."""
        return replace(self, starts=self.starts[rows], ends=self.ends[rows])

    def inside(self, content: Bytes) -> TransactionBytes:
        """Return the content of a compressed payload of these bytes, as one transaction."""
        ends = np.full(1, len(content), np.int64)
        return replace(self, data=content, starts=np.zeros(1, np.int64), ends=ends)


def events_of(
    data: Bytes,
    description: FormatDescription,
    *,
    file: str = "",
    position: int = FIRST_POSITION,
) -> Iterator[Event]:
    """Return the events of bytes that begin with an event; `description` is valid there.

    `file` and `position` are used in error messages. Raises BinlogError.
    """
    return scan_events(_chunks(data), file=file, position=position, description=description)


def _chunks(data: Bytes) -> Iterator[bytes]:
    for at in range(0, len(data), _CHUNK_BYTES):
        yield data[at : at + _CHUNK_BYTES].tobytes()

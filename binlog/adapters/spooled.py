"""Keeps what is too much for memory in a file without a name, item by item.

How it works
------------
A transaction may hold more than this machine's memory, and its undo begins with its last row. So
its events, and the SQL that is made of them, go through a temporary file: each item is pickled at
the end of the file, and its offset is kept. Any item can be read again, from either end, any number
of times, and only one is in memory at a time. The file has no name from the beginning
(tempfile.TemporaryFile), so it is gone with the process, however that ends; what it holds was
written by this process, and by no other.

Up to MEMORY_BYTES_MAX nothing reaches the disk. The limit of the whole is SPOOLED_BYTES_MAX.
"""

from __future__ import annotations

import pickle
import tempfile
import weakref
from array import array
from collections.abc import Collection, Iterator
from typing import Final, Generic, TypeVar

from binlog.errors import LimitExceeded

MEMORY_BYTES_MAX: Final = 16 * 1024**2
SPOOLED_BYTES_MAX: Final = 64 * 1024**3

T = TypeVar("T")


class Spooled(Collection[T], Generic[T]):
    """Items in their order, of which one at a time is in memory."""

    def __init__(self, *, bytes_max: int = SPOOLED_BYTES_MAX) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=MEMORY_BYTES_MAX)  # noqa: SIM115 - closed with this object
        weakref.finalize(self, self._file.close)
        self._offsets = array("Q")
        self._end = 0
        self._bytes_max = bytes_max

    def append(self, item: T) -> None:
        """Keep one more item. Raises LimitExceeded, OSError."""
        data = pickle.dumps(item, pickle.HIGHEST_PROTOCOL)
        if self._end + len(data) > self._bytes_max:
            raise LimitExceeded(
                name="bytes_max", limit=self._bytes_max, what="what is kept in a temporary file"
            )
        self._file.seek(self._end)
        self._file.write(data)
        self._offsets.append(self._end)
        self._end += len(data)

    def __len__(self) -> int:
        """Return how many items there are."""
        return len(self._offsets)

    def __iter__(self) -> Iterator[T]:
        """Return the items in their order; others may be appended meanwhile."""
        return map(self._at, range(len(self)))

    def __reversed__(self) -> Iterator[T]:
        """Return the items, the last one first."""
        return map(self._at, reversed(range(len(self))))

    def __contains__(self, item: object) -> bool:
        """Return whether an item is here: every one is read."""
        return any(each == item for each in self)

    def _at(self, number: int) -> T:
        self._file.seek(self._offsets[number])
        item: T = pickle.load(self._file)  # noqa: S301 - written by `append`, in this process
        return item

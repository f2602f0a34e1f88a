"""Stores items that may exceed memory in an unnamed temporary file.

How it works
------------
A transaction may be larger than this machine's memory, and its undo begins with its last row. So
its events, and the SQL made from them, go through a temporary file. Each item is pickled at the end
of the file, and its offset is kept in an array. Any item can be read again, in either direction,
any number of times, and only one item is in memory at a time. The file never has a name
(tempfile.TemporaryFile), so it disappears with the process, even after a crash. Only this process
can have written to it, so unpickling its content is safe.

Up to MEMORY_BYTES_MAX nothing is written to disk. The limit of the whole file is SPOOLED_BYTES_MAX.
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
    """A sequence of items, of which one at a time is in memory."""

    def __init__(self, *, bytes_max: int = SPOOLED_BYTES_MAX) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=MEMORY_BYTES_MAX)  # noqa: SIM115 - closed with this object
        weakref.finalize(self, self._file.close)
        self._offsets = array("Q")
        self._end = 0
        self._bytes_max = bytes_max

    def append(self, item: T) -> None:
        """Append an item. Raises LimitExceeded, OSError."""
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
        """Return the number of items."""
        return len(self._offsets)

    def __iter__(self) -> Iterator[T]:
        """Return the items in order; items may be appended during the iteration."""
        return map(self._at, range(len(self)))

    def __reversed__(self) -> Iterator[T]:
        """Return the items in reverse order."""
        return map(self._at, reversed(range(len(self))))

    def __getitem__(self, number: int) -> T:
        """Return the item with a number, from 0."""
        return self._at(number)

    def __contains__(self, item: object) -> bool:
        """Return whether an item is stored; reads the items one by one."""
        return any(each == item for each in self)

    def _at(self, number: int) -> T:
        self._file.seek(self._offsets[number])
        item: T = pickle.load(self._file)  # noqa: S301 - written by `append`, in this process
        return item

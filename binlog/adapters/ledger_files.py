"""The ledger of binlog and relay-log files on this machine.

1. A file is mapped, not read: of a large transaction, only the first part is loaded.
2. A server may still write the file. The ledger covers the bytes that exist when it is opened. But
   no process may shorten the file during the read: accessing a truncated mapping ends this process
   with a signal. A running server never shortens a log. Crash recovery does: it truncates an
   unfinished event.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from binlog.adapters.compression import find_decompressor, find_peek
from binlog.errors import BinlogError
from binlog.events import FormatDescription
from binlog.ledger.ledger_columns import ROWS_ONLY, FileLedger, LedgerRequest
from binlog.ledger.ledger_window import WindowLedger, WindowPlace, ledger_of_window
from binlog.ledger.parallel_parts import behind, joined, starts_of_parts
from binlog.scan import LogHead, read_head

_HEAD_CHUNK_BYTES = 1 << 14
_THREADS_MAX = 4  # with more, memory bandwidth is the limit


def ledger_of_file(
    path: Path, request: LedgerRequest = ROWS_ONLY, *, threads_max: int | None = None
) -> FileLedger:
    """Return one row per transaction of one file; the result contains an error of the format.

    A large file is read by one thread for each processor available to this process, at most
    _THREADS_MAX, or by `threads_max` threads. Raises OSError.
    """
    name = _shown(path)
    with path.open("rb") as file:
        log = _Log(file.fileno(), path, request)
        head, stopped = log.head()
        threads = threads_max or min(len(os.sched_getaffinity(0)), _THREADS_MAX)
        window = log.window() if head is None else log.in_parts(head, threads)
    return FileLedger(name, head, window.rows, window.end, window.error or stopped)


class _Log:
    """An open file with its current size, and the request for its ledger."""

    def __init__(self, descriptor: int, path: Path, request: LedgerRequest) -> None:
        self._descriptor = descriptor
        self._path = path
        self._name = _shown(path)
        self._status = os.fstat(descriptor)
        self._size = self._status.st_size
        self._request = request

    def head(self) -> tuple[LogHead | None, BinlogError | None]:
        """Read the header: the events before the first transaction."""
        try:
            return read_head(_chunks(self._mapped(0, self._size)), file=self._name), None
        except BinlogError as stopped:
            return None, stopped

    def in_parts(self, head: LogHead, threads: int) -> WindowLedger:
        """Read the whole file with at most `threads` threads."""
        description = head.description
        starts = starts_of_parts(
            self._mapped(0, self._size),
            first=head.first_position,
            description=description,
            parts_max=threads,
        )
        if len(starts) == 1:
            return self.window()
        with ThreadPoolExecutor(len(starts)) as pool:
            ends = (*starts[1:], self._size)
            known = (None, *(description for _ in starts[1:]))
            parts = list(pool.map(self._part, starts, ends, known))
            window = joined(parts, starts, description)
        if window.error is not None or window.end == self._size:
            return window
        return behind(window, self.window(window.end, self._size, window.description))

    def _part(self, start: int, end: int, description: FormatDescription | None) -> WindowLedger:
        """Read one part in a thread, with its own descriptor if the path is still this file.

        Threads that share a descriptor wait for each other to update its reference count.
        """
        try:
            file = self._path.open("rb")
        except OSError:
            return self.window(start, end, description)
        with file:
            is_same = os.path.samestat(os.fstat(file.fileno()), self._status)
            return self.window(start, end, description, file.fileno() if is_same else None)

    def window(
        self,
        start: int = 0,
        end: int | None = None,
        description: FormatDescription | None = None,
        descriptor: int | None = None,
    ) -> WindowLedger:
        """Read the bytes from `start` to `end`."""
        end = self._size if end is None else end
        place = WindowPlace(
            file=self._name,
            position=start,
            description=description,
            is_last=end == self._size,
            mapped_from=self._descriptor if descriptor is None else descriptor,
        )
        return ledger_of_window(
            self._mapped(start, end),
            place,
            self._request,
            decompress=find_decompressor(),
            peek=find_peek(),
        )

    def _mapped(self, start: int, end: int) -> NDArray[np.uint8]:
        """Map the bytes from `start` to `end`. The array keeps the mapping alive."""
        if start == end:
            return np.empty(0, np.uint8)
        begin = start - start % mmap.ALLOCATIONGRANULARITY
        mapped = mmap.mmap(self._descriptor, end - begin, access=mmap.ACCESS_READ, offset=begin)
        return np.frombuffer(mapped, np.uint8)[start - begin :]


def _chunks(data: NDArray[np.uint8]) -> Iterator[bytes]:
    for at in range(0, len(data), _HEAD_CHUNK_BYTES):
        yield data[at : at + _HEAD_CHUNK_BYTES].tobytes()


def _shown(path: Path) -> str:
    """Return the name of a file; bytes that are not UTF-8 are shown in hexadecimal, after `x`."""
    return os.fsencode(path.name).decode("utf-8", errors="backslashreplace")

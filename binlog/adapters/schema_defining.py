"""The events of logs that may define or change a table: all events that a tracker needs.

1. Kernels find them at memory speed; they need numba (the extra `columns`). Without numba, and for
   a short piece of log, every event is returned. The tracker's result is the same.
2. A file is read piece by piece, so a server may still write it. Of a large row event, only the
   header is read.
3. The bytes of a dump pass through `stream_windows`, as those of a ledger do.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from importlib.util import find_spec
from itertools import chain
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Final

from binlog.adapters.compression import find_decompressor
from binlog.adapters.log_files import read_file_head
from binlog.adapters.schema_events import (
    bounds_and_wish,
    descriptions_of,
    file_events,
    open_payloads,
    position_in,
    server_events,
)
from binlog.adapters.stream_session import Connect, FromPlace, RequestLimits, never, open_dump
from binlog.errors import BinlogError
from binlog.event_types import ROW_EVENTS
from binlog.events import Event
from binlog.header import HEADER_BYTES, parse_header
from binlog.scan import scan_events
from binlog.schema.table_history import Place

if TYPE_CHECKING:
    from binlog.adapters.stream_windows import Windows
    from binlog.schema.defining_events import DefiningScan, KnownTables

WINDOW_BYTES: Final = 4 << 20
_EVENT_BYTES_MAX: Final = 1 << 30
# For fewer bytes, decoding every event takes less time than loading the kernels.
LARGE_BYTES: Final = 256 << 10


class DefiningEvents:
    """Returns events of logs. Call `forget` after a definition changed, before the next event."""

    def __init__(self, *, large_bytes: int = LARGE_BYTES, window_bytes: int = WINDOW_BYTES) -> None:
        self._large_bytes = large_bytes
        self._window_bytes = window_bytes
        self._known: KnownTables | None = None

    def forget(self) -> None:
        """Forget the known TABLE_MAPs, so that each is returned again."""
        if self._known is not None:
            self._known.forget()

    def of_files(self, paths: Sequence[Path], start: Place) -> Iterator[Event]:
        """Return the events from a place in the first file on. Raises as `file_events`."""
        if not self._is_worth_it(sum(path.stat().st_size for path in paths) - start.position):
            return file_events(paths, start)
        scan = self._scan()
        return open_payloads(
            chain.from_iterable(
                _of_file(scan, path, position_in(path, start), self._window_bytes) for path in paths
            )
        )

    def of_server(
        self, connect: Connect, start: Place, *, bytes_ahead: int, timeout_seconds_max: float
    ) -> Iterator[Event]:
        """Yield the events from a place to the end of the log, about `bytes_ahead` later.

        Raises as `server_events`.
        """
        if not self._is_worth_it(bytes_ahead):
            yield from server_events(connect, start, timeout_seconds_max=timeout_seconds_max)
            return
        bounds, wish = bounds_and_wish(start, timeout_seconds_max)
        with closing(_of_server(self._scan(), connect, wish, bounds)) as events:
            yield from open_payloads(events)

    def _is_worth_it(self, bytes_ahead: int) -> bool:
        has_kernels = all(find_spec(name) is not None for name in ("numpy", "numba"))
        return has_kernels and bytes_ahead >= self._large_bytes

    def _scan(self) -> DefiningScan:
        from binlog.schema.defining_events import DefiningScan, KnownTables

        self._known = KnownTables()
        return DefiningScan(self._known, decompress=find_decompressor())


def _of_file(scan: DefiningScan, path: Path, position: int, window_bytes: int) -> Iterator[Event]:
    import numpy as np

    head = read_file_head(path)
    yield from descriptions_of(path)
    scan.description = head.description
    at, size = max(position, head.first_position), window_bytes
    with path.open("rb") as file:
        while True:
            file.seek(at)
            data = file.read(size)
            if data:
                window = np.frombuffer(data, np.uint8)
                yield from scan.scan(window, file=path.name, place_of=partial(add, at))
                at += scan.end
            left = data[scan.end :]
            if len(data) < size:
                break
            at, size = _next_piece(
                left, at, size=window_bytes, file_bytes=os.fstat(file.fileno()).st_size
            )
    # The rest is not a whole event: the decoder raises the appropriate error.
    yield from scan_events([left], file=path.name, position=at, description=scan.description)


def _next_piece(left: bytes, at: int, *, size: int, file_bytes: int) -> tuple[int, int]:
    """Return where to continue and how many bytes to read; `left` at `at` is a partial event."""
    if len(left) < HEADER_BYTES:
        return at, size
    header = parse_header(left)
    if header.type_code in ROW_EVENTS and at + header.event_bytes <= file_bytes:
        return at + header.event_bytes, size
    return at, max(size, header.event_bytes)


def _of_server(
    scan: DefiningScan, connect: Connect, wish: FromPlace, bounds: RequestLimits
) -> Generator[Event, None, None]:
    from binlog.adapters.stream_windows import Pause, Windows

    with open_dump(connect, wish, bounds) as dump:
        windows = Windows(dump, bounds, event_bytes_max=_EVENT_BYTES_MAX, stopped=never)
        described_by = failure = None
        while failure is None:
            try:
                pause = windows.fill()
            except BinlogError as error:
                failure = error  # raised after the events before it were returned
            if windows.described_by is not None and windows.described_by is not described_by:
                described_by, scan.description = windows.described_by, windows.description
                yield described_by
            if len(windows.events):
                yield from scan.scan(
                    windows.events, file=windows.file, place_of=partial(_place_in, windows)
                )
                windows.take(scan.end)
                bounds.renew()  # the caller's own time does not count as silence of the server
            if failure is None and pause is Pause.LOG_ENDS:
                return
        raise failure


def _place_in(windows: Windows, offset: int) -> int:
    import numpy as np

    return int(windows.places(np.array([offset]))[0])

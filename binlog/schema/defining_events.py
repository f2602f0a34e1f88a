"""Selects the events of a log that may change what a tracker knows of a table.

1. The result is a subset of the log's events, in order. The skipped events certainly change nothing
   that a tracker knows: `binlog.kernels.defining` has the rules.
2. The result also includes the first events of each group in it and, at the latest at the end of a
   window, the end of the last whole group. So the place after that group is known.
3. Each TABLE_MAP is returned once. The caller calls `forget` after a definition changed: then each
   is returned again, because it may now contradict the new definition.
4. Skipped events are not decoded, so a wrong checksum in them is not detected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlog.decode import NEED_MORE_DATA, Decompress, EventDecoder, decode_event, payload_content
from binlog.errors import BinlogError, CorruptBinlog
from binlog.event_types import EventType
from binlog.events import ChecksumAlgorithm, Event, FormatDescription
from binlog.header import HEADER_BYTES, parse_header
from binlog.kernels import defining

# Above this many bytes of TABLE_MAPs, all are forgotten and returned again.
_KEPT_BYTES_MAX: Final = 64 * 1024 * 1024
# The events around a group, in the order of the log.
_FRAME: Final = (defining.FIRST_AT, defining.LAST_AT, defining.HEAD_AT, defining.BEGIN_AT)

# Returns the position in the file of the event at an offset of a window.
PlaceOf = Callable[[int], int]


class KnownTables:
    """The TABLE_MAPs that were returned since the last `forget`."""

    def __init__(self) -> None:
        self.slots = np.zeros((defining.SLOTS, 2), np.int64)
        self.kept = np.empty(1 << 16, np.uint8)
        self.forget()

    def forget(self) -> None:
        """Forget all TABLE_MAPs, so that each is returned again."""
        self._end = 0
        self.slots[:, defining.KEPT_BYTES] = defining.EMPTY_SLOT

    def keep(self, slot: int, body: NDArray[np.uint8]) -> None:
        """Store a TABLE_MAP in its slot, replacing the previous one."""
        if self._end + len(body) > _KEPT_BYTES_MAX:
            self.forget()
        while self._end + len(body) > len(self.kept):
            self.kept = np.concatenate((self.kept, np.empty_like(self.kept)))
        self.kept[self._end : self._end + len(body)] = body
        self.slots[slot] = self._end, len(body)
        self._end += len(body)


class DefiningScan:
    """Scans the windows of a log in order; each begins with an event.

    `description` is the one that is valid there. The caller sets it before the first window, and
    before each window that begins a file.
    """

    def __init__(self, known: KnownTables, *, decompress: Decompress | None) -> None:
        self.description: FormatDescription | None = None
        self.end = 0  # the offset of the first incomplete event of the last window
        self._known = known
        self._decompress = decompress
        self._is_open = False

    def scan(self, data: NDArray[np.uint8], *, file: str, place_of: PlaceOf) -> Iterator[Event]:
        """Yield the selected events of a window; a selected payload is not decompressed.

        Raises CorruptBinlog, UnsupportedBinlog, after the events before the error.
        """
        assert self.description is not None
        window = _Window(data, self.description, file=file, place_of=place_of)
        window.state[defining.IS_OPEN] = self._is_open
        try:
            yield from self._events(window)
        except BinlogError:
            yield from window.frame()
            raise
        yield from window.frame()
        self.end, self._is_open = window.at, bool(window.state[defining.IS_OPEN])

    def _events(self, window: _Window) -> Iterator[Event]:
        while (answer := window.walk(self._known)) != defining.NO_MORE:
            event = window.event(window.at)
            if answer == defining.PAYLOAD and (inside := self._passed_over(event)) is not None:
                window.end_group_with(inside)
            else:
                yield from window.frame()
                if answer == defining.TABLE_MAP:
                    window.keep(self._known)
                if isinstance(event.body, FormatDescription):
                    self.description = event.body
                    window.describe(event.body)
                yield event
            window.state[defining.AT] += event.header.event_bytes

    def _passed_over(self, payload: Event) -> _Window | None:
        """Return the walked content of a payload if none of its events must be selected.

        Otherwise return None; also if the payload cannot be read: decoding it then reports why.
        """
        try:
            content = payload_content(payload, decompress=self._decompress)
        except CorruptBinlog:
            return None
        if not content:
            return None
        assert self.description is not None
        inside = _Window(
            np.frombuffer(content, np.uint8), self.description, file=payload.file, inside=payload
        )
        is_new = False
        while (answer := inside.walk(self._known)) != defining.NO_MORE:
            if answer not in {defining.STATEMENT, defining.TABLE_MAP}:
                return None
            if answer == defining.TABLE_MAP:
                inside.keep(self._known)
            is_new = True
            inside.state[defining.AT] += inside.event_bytes(inside.at)
        return None if is_new or inside.at < len(content) else inside


class _Window:
    """Bytes, and how far they were walked. With `inside`, they are the content of a payload."""

    def __init__(
        self,
        data: NDArray[np.uint8],
        description: FormatDescription,
        *,
        file: str,
        place_of: PlaceOf | None = None,
        inside: Event | None = None,
    ) -> None:
        self._data = data
        self._file = file
        self._place_of = place_of
        self._inside = inside
        # The payload that contained the last group, if no group ended after it.
        self._before: _Window | None = None
        self.state = np.zeros(defining.STATE_SIZE, np.int64)
        self.state[list(_FRAME)] = defining.NOWHERE
        self.describe(description)

    @property
    def at(self) -> int:
        return int(self.state[defining.AT])

    def describe(self, description: FormatDescription) -> None:
        """Continue with another format description."""
        self._description = description
        self._checksum = ChecksumAlgorithm.NONE if self._inside else description.checksum
        self.state[defining.TRAILER] = self._checksum.trailer_bytes
        self.state[defining.QUERY_POST] = description.fixed_bytes(EventType.QUERY)

    def walk(self, known: KnownTables) -> int:
        data = self._data
        return int(
            defining.next_defining(data.ctypes.data, len(data), self.state, known.slots, known.kept)
        )

    def keep(self, known: KnownTables) -> None:
        """Store the TABLE_MAP at the current offset."""
        end = self.at + self.event_bytes(self.at) - self._checksum.trailer_bytes
        body = self._data[self.at + HEADER_BYTES + defining.MAP_AT : end]
        known.keep(int(self.state[defining.SLOT]), body)

    def event_bytes(self, at: int) -> int:
        return parse_header(self._data[at : at + HEADER_BYTES].tobytes()).event_bytes

    def event(self, at: int) -> Event:
        """Decode the event at an offset. Raises CorruptBinlog, UnsupportedBinlog."""
        if self._inside is not None:
            return decode_event(
                self._data[at : at + self.event_bytes(at)].tobytes(),
                file=self._file,
                start=self._inside.start,
                end=self._inside.end,
                description=self._description,
                checksum=self._checksum,
            )
        assert self._place_of is not None
        decoder = EventDecoder(
            file=self._file, position=self._place_of(at), description=self._description
        )
        # The decoder rejects an impossible length.
        decoder.receive(self._data[at : at + max(self.event_bytes(at), HEADER_BYTES)].tobytes())
        event = decoder.next_event()
        assert event is not NEED_MORE_DATA, "the walk stops at whole events only"
        return event

    def frame(self) -> Iterator[Event]:
        """Yield the skipped events around groups: the end of the last, the start of this one."""
        state = self.state
        if self._before is not None and state[defining.LAST_AT] == defining.NOWHERE:
            yield from self._before.frame()
        self._before = None
        for pending in _FRAME:
            at, state[pending] = int(state[pending]), defining.NOWHERE
            if at != defining.NOWHERE:
                yield self.event(at)

    def end_group_with(self, payload: _Window) -> None:
        """Skip a payload, which ends a group."""
        self.state[list(_FRAME)] = defining.NOWHERE
        self._before = payload

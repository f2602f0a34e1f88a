"""A dump as windows: buffers with the events of many transactions, contiguous as in a file.

1. The socket fills one buffer; the kernel `unframe` copies the events, without packet headers, to a
   second one. No Python object is created for a packet or an event, except at a file's start or
   end.
2. A window contains events of one file. A dump may omit events, so an offset in the window is not a
   position in the file; `places` converts it.
3. The buffers are as large as a window, or as the largest event if that is larger.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from binlog.adapters.stream_packets import (
    PACKET_HEAD_BYTES,
    connection_closed,
    event_in,
    out_of_sequence,
)
from binlog.adapters.stream_session import Dump, RequestLimits
from binlog.errors import CorruptBinlog, DumpBroken, LimitExceeded
from binlog.events import Event, FormatDescription
from binlog.kernels.packets import (
    CONTROL,
    END,
    EVENT,
    EXPECTED,
    FULL,
    GOES_ON,
    HERE,
    LEFT,
    MORE,
    ODD,
    POSITION,
    READ,
    RUNS,
    SEQUENCE,
    STATE_SIZE,
    THERE,
    TRAILER,
    unframe,
)
from binlog.scan import DumpDecoder

WINDOW_BYTES: Final = 4 * 1024 * 1024
RECEIVE_BYTES: Final = 512 * 1024
_RUNS_MAX: Final = 65_536
# The bytes that are read of a packet that is not an event: enough for the error message.
_WORDS_BYTES_MAX: Final = 4096
# The longest wait before `stopped` is called again, and how long received events wait for others.
_WAIT_SECONDS_MAX: Final = 0.2
_SHORT_WAIT_SECONDS: Final = 0.02
_NOWHERE: Final = -1


class Pause(Enum):
    """Why `fill` returned."""

    FULL = "full"
    FILE_ENDS = "the next event is in another file"
    SILENCE = "no event arrived for a while"
    STOPPED = "the caller stopped it"
    LOG_ENDS = "there are no more events"


class Windows:
    """The events of a dump that were received and not yet taken."""

    def __init__(
        self,
        dump: Dump,
        bounds: RequestLimits,
        *,
        event_bytes_max: int,
        stopped: Callable[[], bool],
        window_bytes: int = WINDOW_BYTES,
    ) -> None:
        connection: Any = dump.connection
        self.file = ""
        self.description: FormatDescription | None = None
        # The event of `description`: its header has the time when the file was begun.
        self.described_by: Event | None = None
        self._socket = connection._sock  # noqa: SLF001
        self._bounds = bounds
        self._stopped = stopped
        self._event_bytes_max = event_bytes_max
        self._decoder = DumpDecoder(checksum=dump.checksum)
        self._described: FormatDescription | None = None
        self._described_by: Event | None = None
        self._has_ended = False
        self._received = np.empty(RECEIVE_BYTES, np.uint8)
        self._view = self._received.data
        self._received_end = self._drain(connection._rfile)  # noqa: SLF001
        self._events = np.empty(window_bytes, np.uint8)
        self._runs = np.empty((_RUNS_MAX, 2), np.int64)
        self._state = np.zeros(STATE_SIZE, np.int64)
        self._state[TRAILER] = dump.checksum.trailer_bytes
        self._state[SEQUENCE] = connection._next_seq_id  # noqa: SLF001

    @property
    def events(self) -> NDArray[np.uint8]:
        """The whole events in the window. The bytes do not move until the next `take`."""
        return self._events[: self._whole()]

    @property
    def position(self) -> int:
        """The position that the dump has reached in `file`."""
        return int(self._state[POSITION])

    def places(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions in `file` of the events at these offsets in the window."""
        runs = self._placed_runs()
        run = np.searchsorted(runs[:, HERE], offsets, side="right") - 1
        found: NDArray[np.int64] = offsets - runs[run, HERE] + runs[run, THERE]
        return found

    def run_around(self, offset: int) -> tuple[slice, int]:
        """Return the run of events around an offset, and its position in `file`.

        The events of a run are contiguous in `file`, too. A run never divides a transaction.
        """
        runs = self._placed_runs()
        run = int(np.searchsorted(runs[:, HERE], offset, side="right")) - 1
        end = runs[run + 1, HERE] if run + 1 < len(runs) else self._whole()
        return slice(int(runs[run, HERE]), int(end)), int(runs[run, THERE])

    def _placed_runs(self) -> NDArray[np.int64]:
        """Return the runs. Raises CorruptBinlog if the dump contained no position."""
        runs = self._runs[: self._state[RUNS]]
        if not len(runs):
            what = "events of a dump that does not contain their file positions"
            raise CorruptBinlog(file=self.file, position=self.position, what=what)
        return runs

    def take(self, count: int) -> None:
        """Drop the first `count` bytes; an event must end there."""
        state = self._state
        assert 0 <= count <= self._whole()
        if not count:
            return
        runs = self._runs[: state[RUNS]]
        kept = self._events[count : state[END]]
        first = int(np.searchsorted(runs[:, HERE], count, side="right")) - 1
        left = runs[first:].copy() if count < self._whole() else runs[:0]
        left[:1, THERE] += count - left[:1, HERE]
        left[:, HERE] = np.maximum(left[:, HERE] - count, 0)
        self._runs[: len(left)] = left
        self._events[: len(kept)] = kept.copy()
        state[RUNS] = len(left)
        state[END] -= count
        state[EVENT] -= count

    def fill(self) -> Pause:
        """Receive until the caller must process the window, or until the log ends."""
        self._open_file()
        self._make_room()
        state = self._state
        while not self._has_ended:
            answer = unframe(self._received, self._received_end, self._events, self._runs, state)
            if answer == MORE:
                if (pause := self._receive()) is not None:
                    return pause
            elif answer == FULL:
                return Pause.FULL
            elif answer in {CONTROL, ODD}:
                self._look_at_event()
                if answer == ODD:
                    raise CorruptBinlog(
                        file=self.file,
                        position=self.position,
                        what="an event that cannot be placed",
                    )
                if not state[END]:
                    self._open_file()
                elif (self.file, self.description) != (self._decoder.file, self._described):
                    return Pause.FILE_ENDS
            elif (pause := self._look_at_packet()) is not None:
                return pause
        return Pause.LOG_ENDS

    # ---- leaves

    def _whole(self) -> int:
        state = self._state
        is_partial = state[LEFT] or state[GOES_ON]
        return int(state[EVENT] if is_partial else state[END])

    def _open_file(self) -> None:
        """Switch to the file that the last ROTATE and format description stated."""
        if (self.file, self.description) != (self._decoder.file, self._described):
            assert not self._whole(), "what is left of a file is taken before the next begins"
            self.file, self.description = self._decoder.file, self._described
        self.described_by = self._described_by

    def _make_room(self) -> None:
        """Enlarge the window if the caller took nothing, or only a small part of it."""
        state = self._state
        needed = int(state[END] + state[LEFT])
        if 2 * needed > len(self._events):
            if needed - int(state[EVENT]) > self._event_bytes_max:
                raise LimitExceeded(name="event_bytes_max", limit=self._event_bytes_max)
            larger = np.empty(2 * max(needed, len(self._events)), np.uint8)
            larger[: state[END]] = self._events[: state[END]]
            self._events = larger
        if 2 * state[RUNS] > len(self._runs):
            self._runs = np.concatenate((self._runs, np.empty_like(self._runs)))

    def _receive(self) -> Pause | None:
        """Wait for more bytes; return the reason if none arrived."""
        if self._stopped():
            return Pause.STOPPED
        left = self._received[self._state[READ] : self._received_end]
        self._received[: len(left)] = left.copy()
        self._received_end = len(left)
        self._state[READ] = 0
        wait = _SHORT_WAIT_SECONDS if self._state[END] else _WAIT_SECONDS_MAX
        self._socket.settimeout(min(self._bounds.seconds_left(), wait))
        try:
            count = self._socket.recv_into(self._view[self._received_end :])
        except TimeoutError:
            self._bounds.seconds_left()
            return Pause.SILENCE
        except OSError as error:
            raise DumpBroken(f"the connection broke: {error}") from error
        if not count:
            raise connection_closed()
        self._received_end += count
        self._bounds.renew()
        return None

    def _look_at_event(self) -> None:
        """Pass the last event to the decoder and remove it from the window."""
        state = self._state
        raw = self._events[state[EVENT] : state[END]].tobytes()
        self._decoder.position = self.position
        event = self._decoder.decode(raw)
        if isinstance(event.body, FormatDescription):
            self._described, self._described_by = event.body, event
            state[TRAILER] = event.body.checksum.trailer_bytes
        state[END] = state[EVENT]
        state[POSITION] = self._decoder.position
        state[EXPECTED] = _NOWHERE

    def _look_at_packet(self) -> Pause | None:
        """Read a packet that is not an event; receive more bytes if it is not complete."""
        at = self._state[READ]
        here = self._received[at : self._received_end]
        length = int.from_bytes(here[:3].tobytes(), "little")
        if here[3] != self._state[SEQUENCE]:
            raise out_of_sequence(expected=int(self._state[SEQUENCE]), found=int(here[3]))
        end = PACKET_HEAD_BYTES + min(length, _WORDS_BYTES_MAX)
        if len(here) < end:
            return self._receive()
        self._has_ended = event_in(here[PACKET_HEAD_BYTES:end].tobytes()) is None
        return Pause.LOG_ENDS if self._has_ended else None

    def _drain(self, stream: Any) -> int:  # noqa: ANN401 - PyMySQL's reader has no type
        """Take the bytes that PyMySQL's buffer already has; later reads bypass that buffer."""
        self._socket.settimeout(0)
        with suppress(BlockingIOError, ssl.SSLWantReadError):
            ahead = stream.read1(RECEIVE_BYTES) or b""
            self._received[: len(ahead)] = np.frombuffer(ahead, np.uint8)
            return len(ahead)
        return 0

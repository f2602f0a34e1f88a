"""The ledger of bytes in memory: a mapped file, or a window of a stream.

1. Kernels walk from transaction to transaction. A group that they do not handle goes to the
   decoder, which reads that group or raises the appropriate error.
2. Without `verify`, only the bytes that a row needs are read: neither checksums nor the bodies of
   row events. kernels.walking describes what a hop cannot see.
3. Bytes are read by address: the caller keeps them in memory, unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from binlog.decode import FIRST_POSITION, NEED_MORE_DATA, Decompress, EventDecoder
from binlog.errors import BinlogError, CorruptBinlog
from binlog.event_types import EventType
from binlog.events import Event, FormatDescription, GtidLog
from binlog.header import POSITION_MASK
from binlog.kernels import filling as rows
from binlog.kernels import heads, verifying, walking
from binlog.ledger.ledger_columns import ROWS_ONLY, LedgerRequest
from binlog.ledger.ledger_contents import Contents, with_details, with_digests
from binlog.ledger.ledger_rows import BATCH_ROWS, ROW_BYTES_MIN, Names, RowBatch, put, table_of
from binlog.ledger.payloads import Peek, Peeker
from binlog.transactions import Transaction, TransactionFolder

_CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class WindowLedger:
    """The ledger of a window.

    `end` is the position of the first byte that was not read: an incomplete transaction or
    malformed bytes begin there. `description` is valid there.
    """

    rows: pa.Table
    end: int
    description: FormatDescription | None
    error: BinlogError | None


@dataclass(frozen=True, slots=True)
class WindowPlace:
    """Where the bytes of a window are in a log, and what is known about them.

    At `position` 0 the bytes begin with the magic number; elsewhere they begin with an event, and
    `description` is valid there. Without `is_last`, more bytes follow: an incomplete transaction is
    left to the next window, which begins at `end`. Without `is_chained`, end_log_pos is not
    compared with positions, because it is another file's or because events were omitted.
    `mapped_from` is the descriptor of the file that the bytes are mapped from.
    """

    file: str
    position: int = 0
    description: FormatDescription | None = None
    is_last: bool = True
    is_chained: bool = True
    mapped_from: int | None = None


def ledger_of_window(
    data: NDArray[np.uint8],
    place: WindowPlace,
    request: LedgerRequest = ROWS_ONLY,
    *,
    decompress: Decompress | None = None,
    peek: Peek | None = None,
) -> WindowLedger:
    """Return the transactions of bytes in memory."""
    window = _Window(data, place, verify=request.verify, decompress=decompress, peek=peek)
    try:
        window.read()
    except BinlogError as error:
        window.error = error
    window.finish()
    rows, end = table_of(window.batches, window.names, file=place.file), window.at
    contents = Contents(data, place.file, place.position, tuple(window.eras), decompress)
    if request.digests:
        rows = with_digests(rows, contents)
    if request.details:
        detailed = with_details(rows, contents)
        rows = detailed.rows
        if detailed.damage is not None:  # it precedes any error of the walk
            end, window.error = detailed.damage
    return WindowLedger(rows, place.position + end, window.description, window.error)


class _Window:
    """The bytes of a window, and how far they were read: `state` of kernels.walking."""

    def __init__(
        self,
        data: NDArray[np.uint8],
        place: WindowPlace,
        *,
        verify: bool,
        decompress: Decompress | None,
        peek: Peek | None,
    ) -> None:
        self.description = place.description
        self._place = place
        self._verify = verify
        self._decompress = decompress
        self.names = Names()
        self.error: BinlogError | None = None
        self._data = data
        self._view = memoryview(data.data)
        self._address = data.ctypes.data
        self._is_chained = place.is_chained
        self._peeker = Peeker(peek)
        self._sound, self._why = 0, verifying.NO_MORE  # how far checksums were verified
        self.eras: list[tuple[int, FormatDescription]] = []  # each is valid from this offset on
        self.state = np.zeros(walking.STATE_SIZE, np.int64)
        self.state[walking.BASE] = place.position
        self.state[walking.HOPS] = not verify
        self._heads_at = np.empty(walking.SLOTS, np.int64)
        self._near = np.empty(walking.SLOTS * walking.NEAR_BYTES, np.uint8)
        self.state[walking.HEADS_AT] = self._heads_at.ctypes.data
        self.state[walking.NEAR] = self._near.ctypes.data
        file = place.mapped_from
        self.state[walking.FILE] = walking.NO_FILE if file is None else file
        rows_max = min(BATCH_ROWS, len(data) // ROW_BYTES_MIN + 1)
        self.batches = [RowBatch(rows_max)]

    @property
    def at(self) -> int:
        """The offset of the first byte that was not read."""
        return int(self.state[walking.AT])

    def read(self) -> None:
        """Read the whole window. Raises BinlogError."""
        if self._place.position == 0 and not self._pass_magic():
            return
        while self.description is None:
            event = self._event(self.at)
            if event is None:
                return
            self._pass_event(event)
        self._set_description(self.description)
        while self._go_on():
            pass

    def finish(self) -> None:
        """Close an incomplete transaction, or leave it to the next window."""
        state, batch = self.state, self.batches[-1]
        if not state[walking.IS_OPEN]:
            return
        if self._place.is_last or self.error is not None:
            end = self._place.position + int(state[walking.GROUP_END])
            batch.close(end=end, kind=int(state[walking.KIND]), error=int(state[walking.ERROR]))
        else:
            state[walking.AT] = self._start_of(int(state[walking.ROW]))

    def _go_on(self) -> bool:
        """Walk until the kernel stops, and handle the reason; return False at the end."""
        state, batch = self.state, self.batches[-1]
        answer = self._read_rows(batch)
        odd = min(int(state[walking.HEADED]), self._look_into_payloads(batch))
        batch.rows = int(min(odd, state[walking.ROW]))
        if odd < state[walking.ROW] + state[walking.IS_OPEN]:
            self._read_group(self._start_of(odd))
        elif answer == walking.UNSURE:
            is_open = state[walking.IS_OPEN]
            self._read_group(self._start_of(batch.rows) if is_open else self.at)
        elif answer == walking.FULL:
            if batch.rows == batch.rows_max:
                self._next_batch()
        elif answer == walking.DESCRIPTION or self._why == verifying.DESCRIPTION:
            self._pass_description()
        else:
            return self._end()
        return True

    def _end(self) -> bool:
        """Return False at the end of the bytes. Raises BinlogError if malformed bytes follow."""
        if self._why == verifying.CHAIN:
            raise self._chain_broken(self.at)
        event = self._event(self.at)
        assert event is None, "the decoder knows what the kernels do not"
        return False

    def _limit(self) -> int:
        """Return how far the walk may go: to the end, or with `verify` to the first error."""
        if not self._verify:
            return len(self._data)
        if self._why == verifying.CHAIN and self.at > self._sound:
            raise self._chain_broken(self._sound)
        if self.at >= self._sound:
            self._sound, self._why = verifying.sound_until(
                self._address,
                self.at,
                len(self._data),
                self._place.position,
                int(self.state[walking.TRAILER]),
                self._is_chained,
            )
        return self._sound

    def _read_rows(self, batch: RowBatch) -> int:
        """Fill rows until the kernel stops; return the walk's last result."""
        while True:
            names = self.names
            answer = rows.read_rows(
                self._address,
                self._limit(),
                self.state,
                batch.for_walk,
                batch.for_heads,
                batch.rows_max,
                names.counts,
                names.keys,
                names.slots,
            )
            if not names.counts[heads.IS_CROWDED]:
                return int(answer)
            names.grow()

    def _look_into_payloads(self, batch: RowBatch) -> int:
        """Set the kinds of new payloads; return the first row that only the decoder can read."""
        count, self.state[walking.PAYLOADS] = int(self.state[walking.PAYLOADS]), 0
        for row, at in batch.payloads[:count].tolist():
            size = int.from_bytes(self._view[at + 9 : at + 13], "little")
            assert self.description is not None
            found = self._peeker.look_into(self._view[at : at + size], self.description)
            if found is None:
                return int(row)
            kind, error = found
            if batch.walked_shorts[walking.ROW_KIND, row] == walking.IN_PAYLOAD:
                batch.walked_shorts[walking.ROW_KIND, row] = kind
            if not batch.walked_shorts[walking.ROW_ERROR, row]:
                batch.walked_shorts[walking.ROW_ERROR, row] = error
        return int(self.state[walking.ROW] + self.state[walking.IS_OPEN])

    def _read_group(self, at: int) -> None:
        """Read one transaction from `at` on with the decoder."""
        self.state[walking.IS_OPEN] = 0
        self.state[walking.AT] = at
        folder = TransactionFolder(description=self.description, decompress=self._decompress)
        decoder = EventDecoder(
            file=self._place.file, position=self._place.position + at, description=self.description
        )
        try:
            for event in self._events(decoder, at):
                if closed := folder.fold(event):
                    # A GTID event of the next transaction means that this one was cut off.
                    is_head = isinstance(event.body, GtidLog)
                    self._resume(closed, event.start if is_head else event.end)
                    self._set_description(decoder.description)
                    return
        except BinlogError:
            self._resume(folder.finish(), decoder.position)
            raise
        if self._place.is_last:
            self._resume(folder.finish(), decoder.position)

    def _resume(self, read: tuple[Transaction, ...], position: int) -> None:
        """Add the transactions that the decoder has read; the walk continues after them."""
        for each in read:
            if self.batches[-1].rows == self.batches[-1].rows_max:
                self._next_batch()
            put(self.batches[-1], self.names, each)
        self.state[walking.ROW] = self.state[walking.HEADED] = self.batches[-1].rows
        self.state[walking.AT] = position - self._place.position

    def _next_batch(self) -> None:
        self.batches.append(RowBatch(BATCH_ROWS))
        self.state[walking.ROW] = self.state[walking.HEADED] = 0

    def _start_of(self, row: int) -> int:
        return int(self.batches[-1].walked[walking.START, row]) - self._place.position

    def _pass_magic(self) -> bool:
        decoder = EventDecoder(file=self._place.file)
        decoder.receive(bytes(self._view[:FIRST_POSITION]))
        decoder.next_event()
        if decoder.position < FIRST_POSITION and self._place.is_last:
            decoder.finish()
        self.state[walking.AT] = decoder.position
        return decoder.position == FIRST_POSITION

    def _event(self, at: int) -> Event | None:
        """Decode the event at `at`; return None if it is not complete."""
        decoder = EventDecoder(
            file=self._place.file, position=self._place.position + at, description=self.description
        )
        return next(self._events(decoder, at), None)

    def _events(self, decoder: EventDecoder, at: int) -> Iterator[Event]:
        for begin in range(at, len(self._view), _CHUNK_BYTES):
            decoder.receive(bytes(self._view[begin : begin + _CHUNK_BYTES]))
            while (event := decoder.next_event()) is not NEED_MORE_DATA:
                yield event
        if self._place.is_last:
            decoder.finish()

    def _pass_description(self) -> None:
        event = self._event(self.at)
        assert event is not None, "the walk stops at whole descriptions only"
        self._pass_event(event)
        self._set_description(self.description)

    def _pass_event(self, event: Event) -> None:
        """Pass an event that does not belong to a transaction."""
        start = event.start - self._place.position
        if isinstance(event.body, FormatDescription):
            if self.description is None:
                self._is_chained &= not event.header.is_of_relay_log
            chained = event.header.end_log_pos == event.end & POSITION_MASK
            if self._verify and self._is_chained and not chained:
                raise self._chain_broken(start)
            self.description = event.body
        self.state[walking.AT] = event.end - self._place.position

    def _set_description(self, description: FormatDescription | None) -> None:
        assert description is not None
        self.description = description
        if not self.eras or self.eras[-1][1] != description:
            self.eras.append((self.at, description))
        state = self.state
        state[walking.TRAILER] = description.checksum.trailer_bytes
        state[walking.QUERY_POST] = description.fixed_bytes(EventType.QUERY)
        state[walking.LOAD_POST] = description.fixed_bytes(EventType.EXECUTE_LOAD_QUERY)
        state[walking.CHAINED] = self._is_chained

    def _chain_broken(self, at: int) -> CorruptBinlog:
        size = int.from_bytes(self._view[at + 9 : at + 13], "little")
        found = int.from_bytes(self._view[at + 13 : at + 17], "little")
        position = self._place.position + at
        expected = (position + size) & POSITION_MASK
        return CorruptBinlog(
            file=self._place.file,
            position=position,
            what=f"an event that ends at {expected} but has end_log_pos {found}",
        )

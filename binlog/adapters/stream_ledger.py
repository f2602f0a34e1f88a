"""The ledger of a live server: its transactions as Arrow rows, in batches, as they arrive.

1. A `Wish` states what is requested: from a place on, all except a set, or only a set.
2. Memory is limited to one window and one batch, for a log of any length. The window grows for a
   long transaction, up to `held_bytes_max`; binlog/ledger/long_transactions.py reads a longer one
   event by event.
3. If the connection is lost, the reader connects again and continues after the last row. No row is
   repeated, and none is omitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from binlog.adapters.compression import find_decompressor, find_peek
from binlog.adapters.stream_session import (
    RECONNECTS_MAX,
    AllBut,
    Attempts,
    Connect,
    EndedEarly,
    FromPlace,
    Only,
    RequestLimits,
    Wish,
    can_name,
    cut_off,
    never,
    open_dump,
)
from binlog.adapters.stream_windows import Pause, Windows
from binlog.decode import FIRST_POSITION, Decompress
from binlog.errors import BinlogError, BinlogMisuse, CorruptBinlog
from binlog.ledger.ledger_columns import ROWS_ONLY, LedgerRequest
from binlog.ledger.ledger_sets import gtids_of, rows_in
from binlog.ledger.ledger_window import WindowLedger, WindowPlace, ledger_of_window
from binlog.ledger.long_transactions import LongTransaction
from binlog.ledger.payloads import Peek
from gtid import GtidSet

HELD_BYTES_MAX: Final = 1 << 28
# The largest event that a server writes: the maximum of max_allowed_packet.
EVENT_BYTES_MAX: Final = 1 << 30
_SETS_HELD_MAX: Final = 1_000
# A window is not a file, so its position is arbitrary: after the magic number.
_WINDOW_AT: Final = FIRST_POSITION


@dataclass(frozen=True, slots=True)
class LedgerBatch:
    """One or more rows of one file, in the order of the log.

    `gtids` are those of the complete transactions. `end` is where the last row ends in `file`.
    """

    rows: pa.Table
    gtids: GtidSet
    file: str
    end: int


def ledger_of_server(
    connect: Connect,
    wish: Wish,
    request: LedgerRequest = ROWS_ONLY,
    *,
    timeout_seconds_max: float,
    follow: bool = False,
    stopped: Callable[[], bool] = never,
    held_bytes_max: int = HELD_BYTES_MAX,
    event_bytes_max: int = EVENT_BYTES_MAX,
    reconnects_max: int = RECONNECTS_MAX,
) -> Iterator[LedgerBatch]:
    """Yield the transactions of a live server as rows (LEDGER_SCHEMA of ledger_columns.py).

    Args:
        connect: how to connect; see stream_session for the privilege that the account needs.
        wish: FromPlace, AllBut or Only.
        request: what the rows contain; end_log_pos is not compared with positions.
        timeout_seconds_max: the longest silence of the server, including the connect. A server
            sends heartbeats while it skips or waits, so a silence means that it or the network is
            down.
        follow: wait at the end of the log for new transactions. Rows are yielded about 20 ms after
            they arrive.
        stopped: called at least five times a second; True ends the iteration.
        held_bytes_max: the longest transaction that is held in memory as a whole. A longer one is
            read event by event: this is slower and needs the memory of one event.
        event_bytes_max: the longest event.
        reconnects_max: the limit on consecutive reconnects without any new row.

    Raises DumpRefused (the server's own error, usually 1236), DumpTimedOut, DumpBroken,
    LimitExceeded, CorruptBinlog, UnsupportedBinlog, BinlogMisuse; the rows before the error have
    been yielded. A dump by position cannot start above 4 GiB of a file: there, a lost connection
    raises DumpBroken.
    """
    if follow and isinstance(wish, Only):
        raise BinlogMisuse("only a set ends with the set: there is nothing to follow")
    asked = _Asked(request)
    reader = _Reader(connect, follow, stopped, asked, held_bytes_max, event_bytes_max)
    attempts = Attempts(reconnects_max, stopped=stopped)
    progress = _Progress(wish)
    while not stopped() and (rest := progress.rest()) is not None:
        has_rows = False
        try:
            bounds = RequestLimits.start(timeout_seconds_max=timeout_seconds_max, bytes_max=0)
            for batch in reader.batches(rest, bounds):
                has_rows = True
                progress.add(batch)
                yield batch
        except BinlogError as error:
            if attempts.is_over(error, progress=has_rows):
                return
            if not progress.can_go_on():
                raise
            attempts.wait_after(error, progress=has_rows)
        else:
            # In a dump by place, the end of the log looks like a killed dump. A second dump
            # distinguishes them.
            asks_again = isinstance(rest, FromPlace) and progress.can_go_on()
            if not asks_again or attempts.is_over(EndedEarly(), progress=has_rows):
                return


class _Received:
    """A set that grows by many small sets, which are united only in large groups."""

    def __init__(self) -> None:
        self._sets: list[GtidSet] = []

    def add(self, gtids: GtidSet) -> None:
        self._sets.append(gtids)
        if len(self._sets) > _SETS_HELD_MAX:
            self._sets = [self.all()]

    def all(self) -> GtidSet:
        return GtidSet.union_of(self._sets)

    def has(self, expected: GtidSet | None) -> bool:
        return expected is None or expected <= self.all()


@dataclass(slots=True)
class _Progress:
    """The wish, and which part of it has been yielded."""

    wish: Wish
    given: _Received = field(default_factory=_Received)
    last: LedgerBatch | None = None

    def add(self, batch: LedgerBatch) -> None:
        self.last = batch
        self.given.add(batch.gtids)

    def can_go_on(self) -> bool:
        return not (isinstance(self.wish, FromPlace) and self.last and not can_name(self.last.end))

    def rest(self) -> Wish | None:
        """Return the wish for the rest; None if nothing is left."""
        if self.last is None:
            return self.wish
        if isinstance(self.wish, FromPlace):
            return FromPlace(self.last.file, self.last.end)
        given = self.given.all()
        if isinstance(self.wish, AllBut):
            return AllBut(self.wish.already | given)
        left = self.wish.wanted - given
        return Only(left) if left else None


@dataclass(frozen=True, slots=True)
class _Asked:
    """The request for the ledger, and how payloads are decompressed."""

    request: LedgerRequest
    decompress: Decompress | None = field(default_factory=find_decompressor)
    peek: Peek | None = field(default_factory=find_peek)

    def ledger_of(
        self, windows: Windows, part: slice, *, position: int, is_last: bool
    ) -> WindowLedger:
        """Make the ledger of a part of a window's events; `position` is that of the first."""
        place = WindowPlace(
            file=windows.file,
            position=position,
            description=windows.description,
            is_last=is_last,
            is_chained=False,
        )
        return ledger_of_window(
            windows.events[part],
            place,
            self.request,
            decompress=self.decompress,
            peek=self.peek,
        )

    def long_one(self, windows: Windows) -> LongTransaction:
        """Begin to read a transaction that is longer than `held_bytes_max`."""
        assert windows.description is not None, "a transaction has begun"
        return LongTransaction(
            self.request,
            file=windows.file,
            description=windows.description,
            decompress=self.decompress,
        )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one dump to its end."""

    connect: Connect
    follow: bool
    stopped: Callable[[], bool]
    asked: _Asked
    held_bytes_max: int
    event_bytes_max: int

    def batches(self, wish: Wish, bounds: RequestLimits) -> Iterator[LedgerBatch]:
        """Yield the rows of one dump."""
        with open_dump(self.connect, wish, bounds, follow=self.follow) as dump:
            windows = Windows(
                dump, bounds, event_bytes_max=self.event_bytes_max, stopped=self.stopped
            )
            taking = _Taking(windows, wish, self.asked, self.held_bytes_max)
            received = _Received()
            pause, failure = Pause.SILENCE, None
            while failure is None and pause not in {Pause.LOG_ENDS, Pause.STOPPED}:
                try:
                    pause = windows.fill()
                except BinlogError as error:
                    failure, pause = error, Pause.SILENCE  # raised after the rows before it
                for batch in taking.take(pause):
                    received.add(batch.gtids)
                    yield batch
                    bounds.renew()  # the caller's own time does not count as silence of the server
                failure = taking.failure or failure
            if failure is not None:
                raise failure
            if pause is Pause.LOG_ENDS and (self.follow or taking.is_within):
                raise cut_off()
            if pause is Pause.LOG_ENDS and not received.has(dump.expected):
                raise EndedEarly


@dataclass(slots=True)
class _Taking:
    """Takes whole transactions from the windows of a dump and converts them to rows."""

    windows: Windows
    wish: Wish
    asked: _Asked
    held_bytes_max: int
    long: LongTransaction | None = None
    failure: BinlogError | None = None

    @property
    def is_within(self) -> bool:
        """Return whether a transaction has begun to arrive and not ended."""
        return self.long is not None or len(self.windows.events) > 0

    def take(self, pause: Pause) -> Iterator[LedgerBatch]:
        """Yield the rows of the window and drop their bytes; afterwards, check `failure`."""
        windows, goes_on = self.windows, True
        while goes_on and self.failure is None and self.is_within:
            file = windows.file if self.long is None else self.long.file
            if self.long is not None:
                rows, self.failure = self._take_long(self.long)
                goes_on = len(windows.events) > 0
                self.long = None if self.long.is_closed else self.long
            else:
                rows, self.failure = self._take_whole(pause)
                goes_on = len(windows.events) > self.held_bytes_max
                if goes_on:
                    self.long = self.asked.long_one(windows)
            if isinstance(self.wish, Only):
                rows = rows.filter(pa.array(rows_in(rows, self.wish.wanted)))
            if rows.num_rows:
                yield _batch(rows, file)

    def _take_whole(self, pause: Pause) -> tuple[pa.Table, BinlogError | None]:
        """Take the whole transactions in the window."""
        windows, count = self.windows, len(self.windows.events)
        ends_here = pause is Pause.FILE_ENDS
        ledger = self.asked.ledger_of(
            windows, slice(0, count), position=_WINDOW_AT, is_last=ends_here
        )
        error = self._placed_error(ledger.error, is_last=ends_here)
        rows = _placed(ledger.rows, windows)
        windows.take(count if ends_here else ledger.end - _WINDOW_AT)
        return rows, error

    def _take_long(self, long: LongTransaction) -> tuple[pa.Table, BinlogError | None]:
        """Read more of a transaction longer than `held_bytes_max`; return its row at its end."""
        windows, error = self.windows, None
        is_cut_off = (long.file, long.description) != (windows.file, windows.description)
        if len(windows.events) and not is_cut_off:
            part, position = windows.run_around(0)
            try:
                windows.take(long.read(windows.events[part], position))
            except BinlogError as found:
                error = found
        if error is None and not long.is_over and not is_cut_off:
            return self.asked.request.schema.empty_table(), None
        return long.rows(), error

    def _placed_error(self, error: BinlogError | None, *, is_last: bool) -> BinlogError | None:
        """Read malformed bytes again with their position in the file, for the error's message."""
        if not isinstance(error, CorruptBinlog):
            return error
        part, position = self.windows.run_around(error.position - _WINDOW_AT)
        again = self.asked.ledger_of(self.windows, part, position=position, is_last=is_last)
        return again.error or error


def _batch(rows: pa.Table, file: str) -> LedgerBatch:
    is_whole = rows["is_complete"][-1].as_py()
    gtids = gtids_of(rows if is_whole else rows.slice(0, rows.num_rows - 1))
    return LedgerBatch(rows, gtids, file, rows["end"][-1].as_py())


def _placed(rows: pa.Table, windows: Windows) -> pa.Table:
    """Replace the rows' positions in the window by their positions in the file."""
    starts = windows.places(rows["start"].to_numpy() - _WINDOW_AT)
    for name, values in (("start", starts), ("end", starts + rows["bytes"].to_numpy())):
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(name), pa.array(values))
    return rows

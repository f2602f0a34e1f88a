"""Reads whole logs: converts chunks of a file, or packets of a dump, to events and transactions.

1. This file does no I/O: chunks and packets are iterables, in the order of the log.
2. Positions in a file are counted. Those in a dump come from the headers, because a dump may omit
   events.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from binlog.decode import (
    FIRST_POSITION,
    NEED_MORE_DATA,
    Decompress,
    EventDecoder,
    check_event_bytes,
    decode_event,
    events_in_payload,
)
from binlog.errors import CorruptBinlog, LimitExceeded
from binlog.event_types import EventType
from binlog.events import (
    ChecksumAlgorithm,
    Event,
    FormatDescription,
    GtidLog,
    Heartbeat,
    PreviousGtids,
    Query,
    Rotate,
    TableMap,
    TransactionPayload,
)
from binlog.header import HEADER_BYTES, EventHeader, parse_header
from binlog.log_names import is_next
from binlog.transactions import (
    BETWEEN_GROUPS,
    Transaction,
    TransactionFolder,
)
from gtid import Gtid, GtidSet

# Default limits of a result: far above the needs of a repair, far below a machine's memory.
TRANSACTIONS_MAX = 10_000
BYTES_MAX = 256 * 1024 * 1024

_POSITION_BITS = 32
_IN_NO_FILE = frozenset({EventType.HEARTBEAT, EventType.HEARTBEAT_V2})


class EventStore(Collection[Event], Protocol):
    """Stores the events of a long transaction outside of memory."""

    def append(self, item: Event) -> None:
        """Append an event."""


MakeStore = Callable[[], EventStore]


@dataclass(frozen=True, slots=True)
class EventGroup:
    """A transaction, its events in order, and the format description that applies to them.

    A compressed payload is replaced by its events. If this machine cannot decompress it, the events
    include the payload itself, and the transaction's kind is OTHER.
    """

    transaction: Transaction
    events: Collection[Event]
    description: FormatDescription

    def __post_init__(self) -> None:
        assert self.events, "a transaction has events"

    @property
    def rows_begin(self) -> int:
        """Return the position from which no statement of it changes the tables of its rows.

        CREATE TABLE … SELECT logs the statement and the rows in one transaction (8.0.21 and later).
        """
        begin = self.transaction.start
        for event in self.events if self.transaction.statements else ():
            if isinstance(event.body, TableMap):
                break
            if isinstance(event.body, Query):
                begin = event.end
        return begin


@dataclass(frozen=True, slots=True)
class LogHead:
    """The header of a file: the events before its first transaction."""

    description: FormatDescription
    # None in a file of a server older than 5.6.
    previous_gtids: GtidSet | None
    # The position where the first event of a transaction starts, or would start.
    first_position: int


def scan_events(
    chunks: Iterable[bytes],
    *,
    file: str,
    position: int = 0,
    description: FormatDescription | None = None,
) -> Iterator[Event]:
    """Yield the events of one file whose bytes, from `position` on, are `chunks`.

    CorruptBinlog is raised only after all valid events before the error were yielded.
    """
    decoder = EventDecoder(file=file, position=position, description=description)
    for chunk in chunks:
        decoder.receive(chunk)
        while (event := decoder.next_event()) is not NEED_MORE_DATA:
            yield event
    decoder.finish()


def read_head(chunks: Iterable[bytes], *, file: str) -> LogHead:
    """Read the header of the file whose bytes are `chunks`; only the first ones are taken.

    The last description applies: a relay log begins with that of its own server, followed by that
    of its source.
    """
    description = None
    previous_gtids = None
    at = FIRST_POSITION
    for event in scan_events(chunks, file=file):
        if not isinstance(event.body, FormatDescription | PreviousGtids | Rotate):
            break
        if isinstance(event.body, FormatDescription):
            description = event.body
        elif isinstance(event.body, PreviousGtids):
            previous_gtids = event.body.gtids
        at = event.end
    if description is None:
        raise CorruptBinlog(file=file, position=at, what="expected a format description")
    return LogHead(description, previous_gtids, at)


def first_groups(groups: Iterable[EventGroup], wanted: GtidSet) -> Iterator[EventGroup]:
    """Yield the groups of a log that has each GTID once; stop after the last wanted one."""
    return islice(groups, min(wanted.gtid_count, sys.maxsize))


def whole_first(groups: Iterable[EventGroup]) -> Iterator[EventGroup]:
    """Yield the groups in order, those without an end last, and only if there is no whole one.

    A receiver that reconnects requests a half-received transaction again, so a relay log may have
    the beginning of it before the whole. Of several beginnings the longest is yielded.
    """
    halves: dict[Gtid, EventGroup] = {}
    for group in groups:
        found = group.transaction
        assert found.gtid is not None, "only groups with a wanted GTID are yielded"
        if found.is_complete:
            halves.pop(found.gtid, None)
            yield group
            continue
        half = halves.setdefault(found.gtid, group)
        if len(half.events) < len(group.events):
            halves[found.gtid] = group
    yield from halves.values()


def group_events(
    events: Iterable[Event],
    wanted: GtidSet,
    *,
    decompress: Decompress | None,
    bytes_max: int,
    store: MakeStore | None = None,
    counts_rows: bool = True,
) -> Iterator[EventGroup]:
    """Yield the wanted transactions of a sequence of events, which begins with a description.

    The events may be those of several files in the order of the logs: in relay logs, a transaction
    may begin in one file and end in a later one (from 5.7 on, only if the receiver was restarted
    within it and requests by position). It goes on only in the file with the next number, and at
    the source's position at which the file before ends: a lost file, or a lost end of one, is
    noticed. Otherwise the last of a file may be incomplete.
    `counts_rows`: see `TransactionFolder`. If a transaction has more than `bytes_max`, its events
    go to a `store`; without one, LimitExceeded is raised.
    """
    description = None
    group: _Gathered | None = None
    file = ""
    for event in events:
        if isinstance(event.body, FormatDescription):
            description = event.body
            # The first description of a relay log is the receiver's, the next one the source's.
            goes_on = event.header.is_of_relay_log and is_next(file, event.file)
            if group and event.file != file and not goes_on:
                yield from group.finish()
                group = None
        file = event.file
        if isinstance(event.body, GtidLog):
            if group:  # it has no end: the next transaction begins
                yield from group.finish()
            group = None
            if event.body.gtid is not None and event.body.gtid in wanted:
                assert description is not None, "decode_event lets no GTID stand before it"
                what = f"{event.body.gtid} at {event.file}:{event.start}"
                folder = TransactionFolder(
                    description=description, decompress=decompress, counts_rows=counts_rows
                )
                group = _Gathered(
                    description, folder, decompress, bytes_max=bytes_max, store=store, what=what
                )
        if group and not group.goes_on_at(event):
            yield from group.finish()
            group = None
        if group and (whole := group.add(event)):
            yield whole
            group = None
    if group:
        yield from group.finish()


def _is_between(event: Event) -> bool:
    return event.header.is_artificial or isinstance(event.body, BETWEEN_GROUPS)


class _Gathered:
    """The events of one wanted transaction, as far as they were read."""

    def __init__(
        self,
        description: FormatDescription,
        folder: TransactionFolder,
        decompress: Decompress | None,
        *,
        bytes_max: int,
        store: MakeStore | None,
        what: str,
    ) -> None:
        self._description = description
        self._decompress = decompress
        self._folder = folder
        self._events: list[Event] | EventStore = []
        self._store = store
        self._bytes_left = bytes_max
        self._bytes_max = bytes_max
        self._what = what
        self._last: Event | None = None

    def goes_on_at(self, event: Event) -> bool:
        """Return whether the source wrote an event of another relay log directly after the last."""
        last = self._last
        if last is None or last.file == event.file or _is_between(event):
            return True
        begin: int = (event.header.end_log_pos - event.header.event_bytes) % 2**_POSITION_BITS
        return begin == last.header.end_log_pos

    def add(self, event: Event) -> EventGroup | None:
        """Add one event; return the group if this event ended it."""
        if _is_between(event):
            return None
        self._last = event
        self._spend(event.header.event_bytes)
        if isinstance(event.body, TransactionPayload):
            for each in self._opened(event, event.body):
                self._events.append(each)
        else:
            self._events.append(event)
        closed = self._folder.fold(event)
        return self._group(closed[0]) if closed else None

    def finish(self) -> Iterator[EventGroup]:
        """Yield the transaction as incomplete, because its end is missing."""
        for transaction in self._folder.finish():
            yield self._group(transaction)

    def _group(self, transaction: Transaction) -> EventGroup:
        events = tuple(self._events) if isinstance(self._events, list) else self._events
        return EventGroup(transaction, events, self._description)

    def _opened(self, event: Event, payload: TransactionPayload) -> list[Event]:
        uncompressed_bytes = payload.uncompressed_bytes or 0
        if uncompressed_bytes > self._bytes_max:  # the whole payload would be in memory
            raise LimitExceeded(name="bytes_max", limit=self._bytes_max, what=self._what)
        self._spend(uncompressed_bytes)
        inner = events_in_payload(event, description=self._description, decompress=self._decompress)
        return [event] if inner is None else list(inner)

    def _spend(self, count: int) -> None:
        self._bytes_left -= count
        if self._bytes_left >= 0 or not isinstance(self._events, list):
            return
        if self._store is None:
            raise LimitExceeded(name="bytes_max", limit=self._bytes_max, what=self._what)
        gathered, self._events = self._events, self._store()
        for each in gathered:
            self._events.append(each)


def select_transactions(
    transactions: Iterable[Transaction], wanted: GtidSet, *, transactions_max: int, bytes_max: int
) -> Iterator[Transaction]:
    """Yield the wanted transactions; stop after all of them, or after `transactions_max`.

    Raises LimitExceeded if they have more than `bytes_max` bytes in total.
    """
    bytes_left = bytes_max
    still_wanted = min(wanted.gtid_count, transactions_max)
    if still_wanted <= 0:
        return
    for transaction in transactions:
        if transaction.gtid is None or transaction.gtid not in wanted:
            continue
        bytes_left -= transaction.end - transaction.start
        if bytes_left < 0:
            raise LimitExceeded(name="bytes_max", limit=bytes_max)
        yield transaction
        still_wanted -= 1
        if not still_wanted:
            return


class DumpDecoder:
    """Decodes the whole events of a dump, and keeps track of their positions.

    `checksum` is the algorithm that the reader requested: it applies to the artificial ROTATE
    before the first description.
    """

    def __init__(self, *, checksum: ChecksumAlgorithm) -> None:
        self.file = ""
        self.position = 0
        self._checksum = checksum
        self._description: FormatDescription | None = None

    def decode(self, raw: bytes) -> Event:
        """Decode the event of one packet. Raises CorruptBinlog, UnsupportedBinlog."""
        name = self.file or "(binlog dump)"
        if len(raw) < HEADER_BYTES:
            raise CorruptBinlog(file=name, position=self.position, what="a packet without an event")
        header = parse_header(raw)
        check_event_bytes(header, file=name, start=self.position)
        if header.event_bytes != len(raw):
            what = f"an event of {header.event_bytes} bytes in a packet of {len(raw)}"
            raise CorruptBinlog(file=name, position=self.position, what=what)
        start, end = self._place(header, name=name)
        checksum = self._description.checksum if self._description else self._checksum
        event = decode_event(
            raw,
            file=name,
            start=start,
            end=end,
            description=self._description,
            checksum=checksum,
        )
        self.position = end
        match event.body:
            case FormatDescription() as description:
                self._description = description
            case Rotate(next_file=file, next_position=position):
                self.file, self.position = file, position
            case Heartbeat(file=file, position=position):
                self.file, self.position = file, self._widen(position)
        return event

    def _place(self, header: EventHeader, *, name: str) -> tuple[int, int]:
        """Return start and end; equal for an event in no file, or a repeated description."""
        if header.is_artificial or header.type_code in _IN_NO_FILE:
            return self.position, self.position
        if header.end_log_pos == 0 and header.type_code == EventType.FORMAT_DESCRIPTION:
            return self.position, self.position
        end = self._widen(header.end_log_pos)
        if end < FIRST_POSITION + header.event_bytes:
            what = f"an event of {header.event_bytes} bytes that ends at {end}"
            raise CorruptBinlog(file=name, position=self.position, what=what)
        return end - header.event_bytes, end

    def _widen(self, position: int) -> int:
        """Extend the 32 bits of a header's position to 64; positions only increase in a file."""
        if position >> _POSITION_BITS:
            return position
        base = self.position >> _POSITION_BITS << _POSITION_BITS
        # A heartbeat may repeat the current position, so only a lower one has wrapped.
        return base + position + ((base + position < self.position) << _POSITION_BITS)

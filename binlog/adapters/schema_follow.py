"""Follows logs into a store: events from files or a server, entries and places into SQLite.

1. What is kept is kept in whole transactions of the log, with the place behind the last of them. At
   the end of a log that is still written, a transaction of which a part is there is left for the
   next time.
2. A gap between the place the store stands at and the first log at hand is an error, unless the
   caller says that everything before may be forgotten: then every table is unknown there.
3. Nothing is asked of a server here but its log.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain, takewhile
from pathlib import Path
from uuid import UUID

from binlog.adapters.compression import find_decompressor
from binlog.adapters.files import CHUNK_BYTES, read_events, read_file_head
from binlog.adapters.schema_store import Followed, SchemaStore
from binlog.adapters.stream_packets import dump_events
from binlog.adapters.stream_session import Bounds, Connect, FromPlace
from binlog.decode import FIRST_POSITION, events_in_payload
from binlog.errors import BinlogError
from binlog.events import (
    Event,
    FormatDescription,
    GtidLog,
    Incident,
    PreviousGtids,
    Query,
    Rotate,
    TransactionPayload,
    XaPrepare,
    Xid,
)
from binlog.scan import scan_events
from binlog.schema.history import Entry, Place
from binlog.schema.tracker import SchemaTracker

# Entries kept in one transaction of the store. A killed follower makes these anew.
ENTRIES_PER_SAVE = 100
_STREAM_BYTES_MAX = 1 << 62
_HEAD = (FormatDescription, PreviousGtids, Rotate)


class LogGap(BinlogError):
    """The logs at hand do not go on where the store stands."""


class LogsReset(LogGap):
    """A log has the name of one that was followed, and is another: the server's logs were reset."""


class PayloadUnread(BinlogError):
    """A compressed transaction cannot be opened here, and may hold anything."""


@dataclass(frozen=True, slots=True)
class FollowReport:
    """What one run has done."""

    begun_at: Place
    ended_at: Place
    event_count: int
    entry_count: int


def open_payloads(events: Iterable[Event]) -> Iterator[Event]:
    """Give what is inside compressed payloads in their places. Raises PayloadUnread."""
    description = None
    decompress = find_decompressor()
    for event in events:
        if isinstance(event.body, FormatDescription):
            description = event.body
        if not isinstance(event.body, TransactionPayload):
            yield event
            continue
        inner = events_in_payload(event, description=description, decompress=decompress)
        if inner is None:
            raise PayloadUnread(
                f"{event.file}:{event.start}: a compressed transaction, and zstandard is missing"
            )
        yield from (
            replace(each, file=event.file, start=event.start, end=event.end) for each in inner
        )


def file_events(paths: Sequence[Path], start: Place) -> Iterator[Event]:
    """Give the events of files from a place in the first of them on."""
    return open_payloads(
        chain.from_iterable(
            _events_of(path, start.position if path.name == start.file else 0) for path in paths
        )
    )


def _events_of(path: Path, position: int) -> Iterator[Event]:
    if position <= FIRST_POSITION:
        yield from read_events(path)
        return
    # What holds in the file's middle stands at its head; a relay log has more than one of them.
    head = takewhile(lambda event: isinstance(event.body, _HEAD), read_events(path))
    descriptions = [event for event in head if isinstance(event.body, FormatDescription)]
    yield from descriptions
    yield from scan_events(
        _chunks(path, position),
        file=path.name,
        position=position,
        description=read_file_head(path).description,
    )


def _chunks(path: Path, position: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(position)
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def server_events(
    connect: Connect, start: Place, *, timeout_seconds_max: float
) -> Generator[Event, None, None]:
    """Give the events of a live server from a place to the end of its log."""
    bounds = Bounds.start(timeout_seconds_max=timeout_seconds_max, bytes_max=_STREAM_BYTES_MAX)
    wish = FromPlace(start.file, max(start.position, FIRST_POSITION))
    with closing(dump_events(connect, wish, bounds, renews=True)) as events:
        yield from open_payloads(each for each in events if not _is_artificial(each))


def _is_artificial(event: Event) -> bool:
    """Tell a dump's own events, which are in no file. A description sent again is needed."""
    return event.start == event.end and not isinstance(event.body, FormatDescription)


def starting_place(
    followed: Followed | None, files: Sequence[str], *, created_at: Callable[[str], int]
) -> Place:
    """Say where to go on: at the store's place, or at the first log if nothing was followed.

    `files` are the logs at hand, in order; `created_at` gives the time of a log's first event.
    Raises LogGap, LogsReset.
    """
    if followed is None:
        return Place(files[0], 0)
    if followed.place.file not in files:
        raise LogGap(
            f"the store stands at {followed.place}, and that log is not here; the logs here are"
            f" {files[0]} to {files[-1]}"
        )
    if followed.created_at != created_at(followed.place.file):
        raise LogsReset(
            f"the store stands at {followed.place}, and {followed.place.file} is not the log it"
            " was: the server's logs were reset, or these are of another server"
        )
    return followed.place


class Follower:
    """Takes a server's events and keeps what comes of them."""

    def __init__(
        self,
        store: SchemaStore,
        server: UUID,
        tracker: SchemaTracker,
        *,
        created_at: int = 0,
        entries_per_save: int = ENTRIES_PER_SAVE,
    ) -> None:
        self._store = store
        self._server = server
        self._tracker = tracker
        self._entries_per_save = entries_per_save
        self._created_at = created_at
        # Entries of whole groups, and of the group that is open.
        self._whole: list[Entry] = []
        self._open: list[Entry] = []
        self._began = False

    def follow(self, events: Iterable[Event], start: Place) -> FollowReport:
        """Follow events to their end. What was sound is kept, whatever is raised."""
        behind = start  # the place behind the last whole group
        count = made = 0
        try:
            for event in events:
                count += 1
                if isinstance(event.body, FormatDescription):
                    behind = self._enter_file(event, behind)
                entries = self._tracker.take(event)
                made += len(entries)
                self._open += entries
                if self._ends_group(event):
                    behind = Place(event.file, event.end)
                    self._whole += self._open
                    self._open.clear()
                    if len(self._whole) >= self._entries_per_save:
                        self._save(behind)
        finally:
            self._save(behind)
        return FollowReport(start, behind, count, made - len(self._open))

    def _enter_file(self, event: Event, behind: Place) -> Place:
        if event.file == behind.file and behind.position > FIRST_POSITION:
            return behind  # the description of a file that is entered in its middle
        entered = Place(event.file, FIRST_POSITION)
        self._created_at = event.header.timestamp_seconds
        if event.file != behind.file:
            self._save(entered)
        return entered

    def _ends_group(self, event: Event) -> bool:
        """Say whether nothing that belongs together is cut behind this event."""
        match event.body:
            case GtidLog():
                self._began = False
                return False
            case Query(sql=sql):
                word = sql.split(None, 1)[0].upper() if sql else b""
                if word in (b"BEGIN", b"XA"):
                    self._began = True
                if self._began and word not in (b"COMMIT", b"ROLLBACK"):
                    return False
                self._began = False
                return True
            case Xid() | XaPrepare() | Incident():
                self._began = False
                return True
            case _:
                return False

    def _save(self, behind: Place) -> None:
        followed = Followed(behind, self._created_at)
        self._store.save(self._server, self._whole, self._tracker.catalogue, followed)
        self._whole.clear()

    def adopted(self, entries: Iterable[Entry], behind: Place) -> None:
        """Keep entries that somebody else vouched for."""
        self._whole += entries
        self._save(behind)

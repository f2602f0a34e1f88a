"""Follows a log into a store: events in, entries and places into SQLite.

1. What is kept is kept in whole transactions of the log, with the place behind the last of them. At
   the end of a log that is still written, a transaction of which a part is there is left for the
   next time.
2. A gap between the place the store stands at and the first log at hand is an error, unless the
   caller says that everything before may be forgotten: then every table is unknown there.
3. Nothing is asked of a server here but its log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from binlog.adapters.schema_store import Followed, SchemaStore
from binlog.cursor import MalformedBody
from binlog.decode import FIRST_POSITION
from binlog.errors import BinlogError, CorruptBinlog
from binlog.events import Event, FormatDescription, Rows
from binlog.schema.history import Entry, Place
from binlog.schema.tracker import SchemaTracker
from binlog.transactions import Transaction, TransactionFolder

# Entries kept in one transaction of the store. A killed follower makes these anew.
ENTRIES_PER_SAVE = 100


class LogGap(BinlogError):
    """The logs at hand do not go on where the store stands."""


class LogsReset(LogGap):
    """A log has the name of one that was followed, and is another: the server's logs were reset."""


@dataclass(frozen=True, slots=True)
class FollowReport:
    """What one run has done."""

    begun_at: Place
    ended_at: Place
    entry_count: int


def starting_place(
    followed: Followed | None, files: Sequence[str], *, created_at: Callable[[str], int]
) -> Place:
    """Return where to go on: at the store's place, or at the first log if nothing was followed.

    `files` are the logs at hand, in order; `created_at` gives the time of a log's first event.
    Raises LogGap, LogsReset.
    """
    if followed is None or not followed.created_at:  # without a time, a first run was refused
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


def _ignore() -> None:
    """Stand for a caller that need not know that something has changed."""


def _is_whole(groups: Iterable[Transaction]) -> bool:
    """Return whether a group has ended as it should, and was not just broken off by the next."""
    return any(group.is_complete for group in groups)


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

    def follow(
        self, events: Iterable[Event], start: Place, *, changed: Callable[[], None] = _ignore
    ) -> FollowReport:
        """Follow events to their end. What was sound is kept, whatever is raised.

        `changed` is called when an event has changed what is known, before the next one is taken.
        """
        behind = start  # the place behind the last whole group
        groups = TransactionFolder()
        self._open.clear()
        made = 0
        try:
            for event in events:
                if isinstance(event.body, FormatDescription):
                    behind = self._enter_file(event, behind)
                entries = self._take(event)
                made += len(entries)
                self._open += entries
                if entries:
                    changed()
                # Rows end no group, and are not looked at.
                if not isinstance(event.body, Rows) and _is_whole(groups.fold(event)):
                    behind = Place(event.file, event.end)
                    self._whole += self._open
                    self._open.clear()
                    if len(self._whole) >= self._entries_per_save:
                        self._save(behind)
        finally:
            # Of a first run that was refused nothing is kept: it would stand at a log without a
            # time, and the same log would be taken for another one ever after.
            if self._created_at:
                self._save(behind)
        return FollowReport(start, behind, made - len(self._open))

    def _take(self, event: Event) -> tuple[Entry, ...]:
        try:
            return self._tracker.take(event)
        except MalformedBody as error:
            raise CorruptBinlog(file=event.file, position=event.start, what=error.what) from error

    def _enter_file(self, event: Event, behind: Place) -> Place:
        if event.file == behind.file and behind.position > FIRST_POSITION:
            return behind  # the description of a file that is entered in its middle
        entered = Place(event.file, FIRST_POSITION)
        self._created_at = event.header.timestamp_seconds
        if event.file != behind.file:
            self._save(entered)
        return entered

    def _save(self, behind: Place) -> None:
        followed = Followed(behind, self._created_at)
        self._store.save(self._server, self._whole, self._tracker.catalogue, followed)
        self._whole.clear()

    def adopted(self, entries: Iterable[Entry], behind: Place) -> None:
        """Keep entries that another source supplied."""
        self._whole += entries
        self._save(behind)

"""Follows a log into a store: reads events, and writes entries and places to SQLite.

1. The store is updated with whole transactions of the log, and with the place after the last one.
   If a log is still being written and ends inside a transaction, the next run reads that
   transaction.
2. A gap between the store's place and the first available log is an error, unless the caller allows
   to forget everything before: then every table is unknown there. So is a gap between two logs.
3. This file requests nothing from a server but its log.
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
from binlog.locating.continuity import LogBreak
from binlog.schema.table_history import Entry, Place
from binlog.schema.tracker import SchemaTracker
from binlog.transactions import Transaction, TransactionFolder

# The number of entries in one transaction of the store. After a kill, these are read again.
ENTRIES_PER_SAVE = 100


class LogGap(BinlogError):
    """The available logs do not continue at the store's place."""


class LogsReset(LogGap):
    """A log has the name of a followed log but is a different one: the logs were reset."""


@dataclass(frozen=True, slots=True)
class FollowReport:
    """The result of one run."""

    begun_at: Place
    ended_at: Place
    entry_count: int


def starting_place(
    followed: Followed | None, files: Sequence[str], *, created_at: Callable[[str], int]
) -> Place:
    """Return where to continue: at the store's place, or at the first log if there is none.

    `files` are the available logs, in order; `created_at` returns the time of a log's first event.
    Raises LogGap, LogsReset.
    """
    if followed is None or not followed.created_at:  # no time: the server refused the first run
        return Place(files[0], 0)
    if followed.place.file not in files:
        raise LogGap(
            f"the store was followed to {followed.place}, but that log is missing here; the logs"
            f" here are {files[0]} to {files[-1]}"
        )
    if followed.created_at != created_at(followed.place.file):
        raise LogsReset(
            f"the store was followed to {followed.place}, but {followed.place.file} is now a"
            " different log: the server's logs were reset, or these logs are of another server"
        )
    return followed.place


def gap_after(place: Place, broken: LogBreak) -> LogGap:
    """Return the gap between two logs that are both available, of a store that reached a place."""
    kind = LogsReset if broken.is_reset else LogGap
    return kind(
        f"the store was followed to {place}, but {broken.after} does not continue {broken.before}:"
        f" {broken.why}"
    )


def _ignore() -> None:
    """Do nothing: the default for a caller that needs no notification of changes."""


def _is_whole(groups: Iterable[Transaction]) -> bool:
    """Return whether a group ended normally, and was not cut off by the next one."""
    return any(group.is_complete for group in groups)


class Follower:
    """Passes a server's events to the tracker and stores the resulting entries."""

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
        # Entries of whole groups, and entries of the group that has not ended yet.
        self._whole: list[Entry] = []
        self._open: list[Entry] = []

    def follow(
        self, events: Iterable[Event], start: Place, *, changed: Callable[[], None] = _ignore
    ) -> FollowReport:
        """Follow events to their end. If an error is raised, the entries before it are stored.

        `changed` is called when an event has changed a definition, before the next event is read.
        """
        behind = start  # the place after the last whole group
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
                # Row events never end a group, so they are skipped here.
                if not isinstance(event.body, Rows) and _is_whole(groups.fold(event)):
                    behind = Place(event.file, event.end)
                    self._whole += self._open
                    self._open.clear()
                    if len(self._whole) >= self._entries_per_save:
                        self._save(behind)
        finally:
            # If the server refused a first run, nothing is stored. Otherwise the store would have
            # a log without a time, and later runs would take the same log for a different one.
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
            return behind  # the description of a file that is read from its middle
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
        """Store entries that another source supplied."""
        self._whole += entries
        self._save(behind)

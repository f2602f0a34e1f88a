"""The logs of a live server as one side of a comparison; implements `reuse.ComparedLogs`.

1. The server sends only the transactions that are compared, selected by GTID. Of its files only
   headers are read. To find recent restarts, only some headers are read: a binary search by time,
   and then the files that did not begin because the file before was full.
2. Purged transactions are never requested: the server would reject the whole request (1236).

Privileges needed: that of a replica to read binary logs, and REPLICATION CLIENT to list them.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Final
from uuid import UUID

from binlog.adapters.stream import FromPlace, ServerLogs
from binlog.adapters.stream_packets import dump_events
from binlog.adapters.stream_session import Connect, RequestLimits, can_name
from binlog.content.reuse import Unread, first_of_each, last_of_each
from binlog.content.server_starts import ServerStart
from binlog.decode import FIRST_POSITION
from binlog.errors import CorruptBinlog, DumpRefused
from binlog.event_types import EventType
from binlog.events import FormatDescription, PreviousGtids
from binlog.log_times import EPOCH
from binlog.scan import EventGroup
from gtid import GNO_END, GtidSet

# A header is a format description and the previous GTIDs, which may be a large set.
HEAD_BYTES_MAX: Final = 64 * 1024**2
# Each takes a connection, and mostly waits for the server.
HEADS_AT_ONCE: Final = 8
# The server counts its uptime from early in its startup, and begins the log a little later. Clocks
# in whole seconds may differ by one.
_CLOCK_SLACK_SECONDS: Final = 2
# ER_SOURCE_FATAL_ERROR_READING_BINLOG: also the answer to a position inside an event.
_FATAL_IN_DUMP: Final = 1236
# A Stop event is a header, and four bytes of checksum unless binlog_checksum is NONE.
_STOP_LENGTHS: Final = (23, 19)
# Offsets of the additional transactions that are requested after the wanted ones: see `_behind`.
# There are several, because a replica may have committed adjacent GTIDs in another order.
_SKIPPED: Final = (1, 4, 16, 64, 256, 1024)


# lower_case_table_names = 0 compares names case-sensitively; 1 and 2 compare in lower case.
_EXACT_NAMES: Final = 0


def uuid_or_none(text: str | None) -> UUID | None:
    """Return the UUID in a setting; None if it is missing, or not set yet."""
    try:
        return UUID(text or "")
    except ValueError:
        return None


def own_gtids(gtids: GtidSet, server_uuid: UUID, group_name: UUID | None) -> GtidSet:
    """Return those GTIDs that a server, or its replication group, committed first."""
    own = gtids.from_uuid(server_uuid)
    return own if group_name is None else own | gtids.from_uuid(group_name)


@dataclass(frozen=True, slots=True)
class ComparedServer:
    """The facts about a server that a comparison of its logs needs; the caller reads them."""

    name: str
    server_uuid: UUID
    executed: GtidSet
    purged: GtidSet
    log_names: tuple[str, ...]  # in the order of the logs
    # Logs of max_binlog_size or more: a rotation began the next one, not a restart.
    full_logs: frozenset[str] = frozenset()
    # By the server's clock: the current time minus its uptime. Only `Since` needs it.
    up_since_seconds: int | None = None
    group_name: UUID | None = None  # group_replication_group_name: the UUID its group commits under
    lower_case_table_names: int | None = None

    def own(self, gtids: GtidSet) -> GtidSet:
        """Return those GTIDs that the server, or its replication group, committed first."""
        return own_gtids(gtids, self.server_uuid, self.group_name)


@dataclass(frozen=True, slots=True)
class _Head:
    written_at_seconds: int
    created_at_seconds: int
    previous: GtidSet


class Starts(Enum):
    """Which restarts of a server are checked."""

    EVERY = "every restart in its logs"
    NONE = "none"


LATEST_START_PURGED: Final = "the log that began at its latest restart is purged"


@dataclass(frozen=True, slots=True)
class Since:
    """The restarts since a time, by the server's clock; always includes the latest restart."""

    seconds: int


@dataclass(slots=True)
class ServerCompared:
    """One live server."""

    state: ComparedServer
    connect: Connect
    timeout_seconds_max: float
    looked_at: Starts | Since = Starts.EVERY
    _heads: dict[int, _Head] = field(default_factory=dict)
    _starts: list[int] = field(default_factory=list)  # the restarts found, by number of their log

    @property
    def name(self) -> str:
        """Return the server's name."""
        return self.state.name

    @property
    def names_fold(self) -> bool | None:
        """Return whether the server compares table names in lower case."""
        setting = self.state.lower_case_table_names
        return None if setting is None else setting != _EXACT_NAMES

    @property
    def has_each_once(self) -> bool:
        """Return True: `groups_of` asks for each GTID once."""
        return True

    @property
    def heads_read(self) -> int:
        """Return the number of file headers read so far."""
        return len(self._heads)

    def starts(self) -> Iterator[ServerStart | Unread]:
        """Yield the restarts, the latest first.

        Around a restart, the server's own transactions are compared. A server that has executed
        none, such as a replica that never was a source, is not asked for its logs.
        """
        if self.looked_at is Starts.NONE or not self.state.own(self.state.executed):
            return
        first = 0
        if isinstance(self.looked_at, Since):
            if self.state.up_since_seconds is None:
                yield Unread(self.name, "the uptime of the server was not read")
                return
            since = min(self.looked_at.seconds, self.state.up_since_seconds)
            first = self._first_since(since - _CLOCK_SLACK_SECONDS)
        self._find_starts(first)
        yield from map(self._start, reversed(self._starts))
        yield from self._unheld_starts(first)

    def own_since(self, start: ServerStart, *, sizes: Iterator[int]) -> Iterator[GtidSet]:
        """Yield the server's own transactions up to the next restart, lowest GNOs first."""
        number = self.state.log_names.index(start.file)
        after = self._next_start(number)
        until = self.state.executed if after is None else self._head(after).previous
        left = self.state.own(until - self._head(number).previous)
        while left:
            window = first_of_each(left, next(sizes))
            left -= window
            yield window

    def own_before(self, start: ServerStart, *, sizes: Iterator[int]) -> Iterator[GtidSet]:
        """Yield the server's last own transactions before a restart, highest GNOs first."""
        number = self.state.log_names.index(start.file)
        left = self.state.own(self._head(number).previous - self.state.purged)
        while left:
            window = last_of_each(left, next(sizes))
            left -= window
            yield window

    def known(self) -> GtidSet:
        """Return the GTIDs that the server has executed, purged or not."""
        return self.state.executed

    def unheld(self, wanted: GtidSet) -> GtidSet:
        """Return the wanted GTIDs that the server has purged."""
        return wanted & self.state.purged

    def holes(self, absent: GtidSet) -> GtidSet:
        """Return none: a server that cannot read one of its logs answers with an error."""
        return absent - absent

    def groups_of(self, wanted: GtidSet) -> Iterator[EventGroup]:
        """Yield the wanted transactions that the server has in its logs, with their events."""
        held = self.state.executed - self.state.purged
        wanted &= held
        if not wanted:
            return
        logs = ServerLogs(self.connect, timeout_seconds_max=self.timeout_seconds_max)
        for group in logs.events_of(wanted | _behind(wanted, held)):
            gtid = group.transaction.gtid
            if gtid is None or gtid not in wanted:
                continue
            yield group
            wanted -= GtidSet.of(gtid)
            if not wanted:
                return

    def first_with(self, wanted: GtidSet, *, begin: int = 0) -> int:
        """Return the number of the first log with any of `wanted`, all of which the logs hold.

        With `begin`, no earlier log has any, and none of them is read.
        """
        first, end = begin, len(self.state.log_names) - 1
        while first < end:
            middle = (first + end + 1) // 2
            if self._head(middle).previous & wanted:
                end = middle - 1
            else:
                first = middle
        return first

    def is_none_before(self, wanted: GtidSet, number: int) -> bool:
        """Return whether no log before this one has any of `wanted`, by its header."""
        return not self._head(number).previous & wanted

    def held_in(self, number: int) -> GtidSet:
        """Return what one log holds, by its header and the next one."""
        end = number + 1 == len(self.state.log_names)
        until = self.state.executed if end else self._head(number + 1).previous
        return until - self._head(number).previous

    def begun_at_seconds(self, number: int) -> int:
        """Return the time in the header of a log."""
        return self._head(number).written_at_seconds

    def closed_at_seconds(self, number: int, *, size: int) -> int | None:
        """Return when the server last wrote to a log, by its events; None for the log in use.

        A rotation closes a log when it begins the next one. A shutdown writes a Stop event. After a
        crash, the restart writes to the last log once more, before it begins a new one (seen on
        5.6.24 and 9.7.4: the file's time of change is that of the restart).

        A rotation by size has the time of the session or applier that caused it (SET timestamp, or
        a transaction that is days old): see `reach_of` in topology/adapters/history_reads.py.
        """
        if number + 1 == len(self.state.log_names):
            return None
        begun_next = self._head(number + 1)
        if begun_next.created_at_seconds:
            if not can_name(size):
                return self._head(number).written_at_seconds  # not earlier, at least
            stopped_at = self._stopped_at(self.state.log_names[number], size=size)
            if stopped_at is not None:
                return stopped_at
        return begun_next.written_at_seconds

    def _stopped_at(self, file: str, *, size: int) -> int | None:
        """Return the time of the Stop event at the end of a log; None if it ends without one."""
        for length in _STOP_LENGTHS:
            bounds = RequestLimits.start(
                timeout_seconds_max=self.timeout_seconds_max, bytes_max=HEAD_BYTES_MAX
            )
            place = FromPlace(file, size - length)
            try:
                with closing(dump_events(self.connect, place, bounds)) as events:
                    for event in events:
                        if event.header.type_code == EventType.STOP:
                            return event.header.timestamp_seconds
                        is_sent_first = isinstance(event.body, FormatDescription)
                        if not (is_sent_first or event.header.is_artificial):
                            break
            except (CorruptBinlog, DumpRefused) as error:
                if isinstance(error, DumpRefused) and error.code != _FATAL_IN_DUMP:
                    raise
                # No event begins there.
        return None

    def _first_since(self, moment: int) -> int:
        """Return the number of the first log begun since a time; header times ascend."""
        first, end = 0, len(self.state.log_names)
        while first < end:
            middle = (first + end) // 2
            if self._head(middle).written_at_seconds < moment:
                first = middle + 1
            else:
                end = middle
        return first

    def _find_starts(self, first: int) -> None:
        """Find the logs from `first` on that began at a restart."""
        names, full = self.state.log_names, self.state.full_logs
        asked = [at for at in range(first, len(names)) if not at or names[at - 1] not in full]
        unread = [at for at in asked if at not in self._heads]
        if len(unread) > 1:
            with ThreadPoolExecutor(HEADS_AT_ONCE) as pool:
                for _ in pool.map(self._head, unread):
                    pass  # kept in _heads
        self._starts = [at for at in asked if self._head(at).created_at_seconds]

    def _unheld_starts(self, first: int) -> Iterator[Unread]:
        """Yield a note for each restart that should be checked, but whose log is purged."""
        since, up_since = self.looked_at, self.state.up_since_seconds
        if up_since is None:
            return
        latest = self._head(self._starts[-1]).written_at_seconds if self._starts else None
        if latest is None or latest < up_since - _CLOCK_SLACK_SECONDS:
            yield Unread(self.name, LATEST_START_PURGED, is_lasting=True)
        elif isinstance(since, Since) and not first and self._starts[0]:
            gone = "the log that began at an earlier restart is purged"
            yield Unread(self.name, gone, is_lasting=True)

    def _start(self, number: int) -> ServerStart:
        started_at = EPOCH + timedelta(seconds=self._head(number).created_at_seconds)
        return ServerStart(self.name, started_at, self.state.log_names[number])

    def _next_start(self, number: int) -> int | None:
        return next((later for later in self._starts if later > number), None)

    def _head(self, number: int) -> _Head:
        if number not in self._heads:
            self._heads[number] = self._read_head(self.state.log_names[number])
        return self._heads[number]

    def _read_head(self, file: str) -> _Head:
        bounds = RequestLimits.start(
            timeout_seconds_max=self.timeout_seconds_max, bytes_max=HEAD_BYTES_MAX
        )
        description, written_at = None, 0
        place = FromPlace(file, FIRST_POSITION)
        with closing(dump_events(self.connect, place, bounds)) as events:
            for event in events:
                if isinstance(event.body, FormatDescription):
                    description = event.body
                    written_at = event.header.timestamp_seconds
                elif isinstance(event.body, PreviousGtids) and description is not None:
                    return _Head(written_at, description.created_at_seconds, event.body.gtids)
                elif not event.header.is_artificial:
                    break
        raise CorruptBinlog(
            file=file, position=FIRST_POSITION, what="expected the previous GTIDs in its header"
        )


def _behind(wanted: GtidSet, held: GtidSet) -> GtidSet:
    """Return a few transactions after the wanted ones, so that the server sends those sooner.

    A server keeps events in its send buffer of 16 KB while it skips the rest of its logs. Before it
    sends the next event after skipped ones, it sends a heartbeat and flushes the buffer
    (Binlog_sender::send_events and send_heartbeat_event, sql/rpl_binlog_sender.cc).
    """
    ends = {tsid: end for tsid, _, end in wanted.intervals()}
    return held & GtidSet.from_intervals(
        (tsid, end + skipped, end + skipped + 1)
        for tsid, end in ends.items()
        for skipped in _SKIPPED
        if end + skipped < GNO_END
    )

"""A live server's logs as another's are compared with them: `binlog.content.reuse.ComparedLogs`.

1. The server is asked for just the transactions that are compared, by their GTIDs; of its files
   only heads are read, and to find recent starts only some of them: halving by time, and then those
   that were not begun because the one before was full.
2. What the server has purged is not asked for: it would refuse the whole question (1236).

Privileges needed: to read binary logs, as a replica has it, and REPLICATION CLIENT for their names.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from enum import Enum
from typing import Final
from uuid import UUID

from binlog.adapters.stream import FromPlace, ServerLogs
from binlog.adapters.stream_packets import dump_events
from binlog.adapters.stream_session import Bounds, Connect
from binlog.content.reuse import Start, Unread, first_of_each, last_of_each
from binlog.decode import FIRST_POSITION
from binlog.errors import CorruptBinlog
from binlog.events import FormatDescription, PreviousGtids
from binlog.scan import EventGroup
from gtid import GNO_END, GtidSet

# A head is a format description and the previous GTIDs, which may be a large set.
HEAD_BYTES_MAX: Final = 64 * 1024**2
# Each takes a connection, and is mostly waiting.
HEADS_AT_ONCE: Final = 8
# The server counts its uptime from early in its start, and begins the log a little later; clocks
# in whole seconds are off by one.
_CLOCK_SLACK_SECONDS: Final = 2
# How far behind what is wanted a few more are asked for: see `_behind`. Several, because a replica
# may have committed neighbours in another order.
_SKIPPED: Final = (1, 4, 16, 64, 256, 1024)


# lower_case_table_names = 0 stores and compares names as they are; 1 and 2 compare in lower case.
_EXACT_NAMES: Final = 0


def uuid_or_none(text: str | None) -> UUID | None:
    """Return the UUID that is a setting's value; None if there is none, or it is not set yet."""
    try:
        return UUID(text or "")
    except ValueError:
        return None


def own_gtids(gtids: GtidSet, server_uuid: UUID, group_name: UUID | None) -> GtidSet:
    """Return which of these a server, or the group it is a member of, committed first."""
    own = gtids.from_uuid(server_uuid)
    return own if group_name is None else own | gtids.from_uuid(group_name)


@dataclass(frozen=True, slots=True)
class ServerState:
    """What must be known of a server before its logs are compared, read by one's own means."""

    name: str
    server_uuid: UUID
    executed: GtidSet
    purged: GtidSet
    log_names: tuple[str, ...]  # in the order of the logs
    # As long as max_binlog_size says, or longer: the next was begun by rotation, not by a start.
    full_logs: frozenset[str] = frozenset()
    # By the server's clock: now minus its uptime. Only `Since` needs it.
    up_since_seconds: int | None = None
    group_name: UUID | None = None  # group_replication_group_name: the UUID its group commits under
    lower_case_table_names: int | None = None

    def own(self, gtids: GtidSet) -> GtidSet:
        """Return which of these the server, or the group it is a member of, committed first."""
        return own_gtids(gtids, self.server_uuid, self.group_name)


@dataclass(frozen=True, slots=True)
class _Head:
    written_at_seconds: int
    created_at_seconds: int
    previous: GtidSet


class Starts(Enum):
    """Which of a server's starts are looked at."""

    EVERY = "every one in its logs"
    NONE = "none"


LATEST_START_PURGED: Final = "the log that began at its latest start is purged"


@dataclass(frozen=True, slots=True)
class Since:
    """The starts since a moment, by the server's clock; the latest is among them."""

    seconds: int


@dataclass(slots=True)
class ServerCompared:
    """One live server."""

    state: ServerState
    connect: Connect
    timeout_seconds_max: float
    looked_at: Starts | Since = Starts.EVERY
    _heads: dict[int, _Head] = field(default_factory=dict)
    _starts: list[int] = field(default_factory=list)  # that were found, by their logs' numbers

    @property
    def name(self) -> str:
        """Return the server's name."""
        return self.state.name

    @property
    def names_fold(self) -> bool | None:
        """Return whether the server compares names of tables in lower case."""
        setting = self.state.lower_case_table_names
        return None if setting is None else setting != _EXACT_NAMES

    @property
    def heads_read(self) -> int:
        """Return how many files' heads have been read so far."""
        return len(self._heads)

    def starts(self) -> Iterator[Start | Unread]:
        """Yield the starts, the latest first."""
        if self.looked_at is Starts.NONE:
            return
        first = 0
        if isinstance(self.looked_at, Since):
            if self.state.up_since_seconds is None:
                yield Unread(self.name, "how long the server has been up was not read")
                return
            since = min(self.looked_at.seconds, self.state.up_since_seconds)
            first = self._first_since(since - _CLOCK_SLACK_SECONDS)
        self._find_starts(first)
        yield from map(self._start, reversed(self._starts))
        yield from self._unheld_starts(first)

    def own_since(self, start: Start, *, sizes: Iterator[int]) -> Iterator[GtidSet]:
        """Yield the server's own transactions of one run, each TSID's smallest numbers first."""
        number = self.state.log_names.index(start.file)
        after = self._next_start(number)
        until = self.state.executed if after is None else self._head(after).previous
        left = self.state.own(until - self._head(number).previous)
        while left:
            window = first_of_each(left, next(sizes))
            left -= window
            yield window

    def own_before(self, start: Start, *, sizes: Iterator[int]) -> Iterator[GtidSet]:
        """Yield the server's last own transactions before a start, the largest GNOs first."""
        number = self.state.log_names.index(start.file)
        left = self.state.own(self._head(number).previous - self.state.purged)
        while left:
            window = last_of_each(left, next(sizes))
            left -= window
            yield window

    def known(self) -> GtidSet:
        """Return all that the server has executed, purged or not."""
        return self.state.executed

    def unheld(self, wanted: GtidSet) -> GtidSet:
        """Return what the server has purged."""
        return wanted & self.state.purged

    def groups_of(self, wanted: GtidSet) -> Iterator[EventGroup]:
        """Yield the transactions that are there, with their events."""
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

    def _first_since(self, moment: int) -> int:
        """Return the number of the first log begun since a moment; times of heads only grow."""
        first, end = 0, len(self.state.log_names)
        while first < end:
            middle = (first + end) // 2
            if self._head(middle).written_at_seconds < moment:
                first = middle + 1
            else:
                end = middle
        return first

    def _find_starts(self, first: int) -> None:
        """Find the logs from `first` on that began when the server did."""
        names, full = self.state.log_names, self.state.full_logs
        asked = [at for at in range(first, len(names)) if not at or names[at - 1] not in full]
        with ThreadPoolExecutor(HEADS_AT_ONCE) as pool:
            heads = list(pool.map(self._head, asked))
        self._starts = [
            at for at, head in zip(asked, heads, strict=True) if head.created_at_seconds
        ]

    def _unheld_starts(self, first: int) -> Iterator[Unread]:
        """Return which of the starts that were to be looked at are not in the logs any more."""
        since, up_since = self.looked_at, self.state.up_since_seconds
        if up_since is None:
            return
        latest = self._head(self._starts[-1]).written_at_seconds if self._starts else None
        if latest is None or latest < up_since - _CLOCK_SLACK_SECONDS:
            yield Unread(self.name, LATEST_START_PURGED, is_lasting=True)
        elif isinstance(since, Since) and not first and self._starts[0]:
            gone = "the log that began at an earlier start is purged"
            yield Unread(self.name, gone, is_lasting=True)

    def _start(self, number: int) -> Start:
        return Start(self.state.log_names[number], self._head(number).created_at_seconds)

    def _next_start(self, number: int) -> int | None:
        return next((later for later in self._starts if later > number), None)

    def _head(self, number: int) -> _Head:
        if number not in self._heads:
            self._heads[number] = self._read_head(self.state.log_names[number])
        return self._heads[number]

    def _read_head(self, file: str) -> _Head:
        bounds = Bounds.start(
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
            file=file, position=FIRST_POSITION, what="expected the previous GTIDs at its head"
        )


def _behind(wanted: GtidSet, held: GtidSet) -> GtidSet:
    """Return a few transactions from behind the wanted ones; the answer need not wait for the end.

    What a server sends stays in its buffer of 16 KB while it skips the rest of its logs. But before
    it sends what comes behind something skipped, it sends a heartbeat, and that at once
    (Binlog_sender::send_events and send_heartbeat_event, sql/rpl_binlog_sender.cc).
    """
    ends = {tsid: end for tsid, _, end in wanted.intervals()}
    return held & GtidSet.from_intervals(
        (tsid, end + skipped, end + skipped + 1)
        for tsid, end in ends.items()
        for skipped in _SKIPPED
        if end + skipped < GNO_END
    )

"""A live server's logs as another's are compared with them: `binlog.content.reuse.ComparedLogs`.

1. The server is asked for just the transactions that are compared, by their GTIDs; of its files
   only heads are read, and to find the latest start only some of them (halving by time).
2. What the server has purged is not asked for: it would refuse the whole question (1236).

Privileges needed: to read binary logs, as a replica has it, and REPLICATION CLIENT for their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from enum import Enum
from typing import Final
from uuid import UUID

from binlog.adapters.stream import FromPlace, ServerLogs
from binlog.adapters.stream_packets import dump_events
from binlog.adapters.stream_session import Bounds, Connect
from binlog.content.compare import Version
from binlog.content.reuse import Start, Unread, first_of_each
from binlog.decode import FIRST_POSITION
from binlog.errors import CorruptBinlog
from binlog.events import FormatDescription, PreviousGtids
from binlog.scan import EventGroup
from gtid import Gtid, GtidSet

# A head is a format description and the previous GTIDs, which may be a large set.
HEAD_BYTES_MAX: Final = 64 * 1024**2
# Each takes a connection, and is mostly waiting.
HEADS_AT_ONCE: Final = 8
# The server counts its uptime from early in its start, and begins the log a little later; clocks
# in whole seconds are off by one.
_UPTIME_SLACK_SECONDS: Final = 2


@dataclass(frozen=True, slots=True)
class ServerState:
    """What must be known of a server before its logs are compared, read by one's own means."""

    name: str
    server_uuid: UUID
    executed: GtidSet
    purged: GtidSet
    log_names: tuple[str, ...]  # in the order of the logs
    # By the server's clock: now minus its uptime. Only `Starts.LATEST` needs it.
    up_since_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class _Head:
    written_at_seconds: int
    created_at_seconds: int
    previous: GtidSet


class Starts(Enum):
    """Which of a server's starts are looked at."""

    EVERY = "every one in its logs"
    LATEST = "the latest"
    NONE = "none"


@dataclass(slots=True)
class ServerCompared:
    """One live server."""

    state: ServerState
    connect: Connect
    timeout_seconds_max: float
    looked_at: Starts = Starts.EVERY
    _heads: dict[int, _Head] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the server's name."""
        return self.state.name

    @property
    def heads_read(self) -> int:
        """Return how many files' heads have been read so far."""
        return len(self._heads)

    def starts(self) -> Iterator[Start | Unread]:
        """Give the starts, the latest first."""
        if self.looked_at is Starts.LATEST:
            yield from self._latest()
        if self.looked_at is not Starts.EVERY:
            return
        with ThreadPoolExecutor(HEADS_AT_ONCE) as pool:
            list(pool.map(self._head, range(len(self.state.log_names))))
        for number in reversed(range(len(self.state.log_names))):
            if self._head(number).created_at_seconds:
                yield self._start(number)

    def own_since(self, start: Start, *, sizes: Iterator[int]) -> Iterator[GtidSet]:
        """Give the server's own transactions of one run, each TSID's smallest numbers first."""
        number = self.state.log_names.index(start.file)
        after = self._next_start(number)
        until = self.state.executed if after is None else self._head(after).previous
        left = (until - self._head(number).previous).from_uuid(self.state.server_uuid)
        while left:
            window = first_of_each(left, next(sizes))
            left -= window
            yield window

    def unheld(self, wanted: GtidSet) -> GtidSet:
        """Return what the server has purged."""
        return wanted & self.state.purged

    def versions_of(self, wanted: GtidSet) -> Mapping[Gtid, Version]:
        """Read the transactions that are there."""
        return {
            group.transaction.gtid: Version.of(group)
            for group in self.groups_of(wanted)
            if group.transaction.gtid is not None
        }

    def groups_of(self, wanted: GtidSet) -> Iterator[EventGroup]:
        """Give the transactions that are there, with their events."""
        wanted &= self.state.executed - self.state.purged
        if wanted:
            logs = ServerLogs(self.connect, timeout_seconds_max=self.timeout_seconds_max)
            yield from logs.events_of(wanted)

    def _latest(self) -> Iterator[Start | Unread]:
        since = self.state.up_since_seconds
        if since is None:
            yield Unread(self.name, "how long the server has been up was not read")
            return
        # The first log begun since the start; times of heads only grow.
        first, end = 0, len(self.state.log_names)
        while first < end:
            middle = (first + end) // 2
            if self._head(middle).written_at_seconds < since - _UPTIME_SLACK_SECONDS:
                first = middle + 1
            else:
                end = middle
        found: list[Start] = []
        for number in range(first, len(self.state.log_names)):
            if self._head(number).created_at_seconds:
                found.append(self._start(number))
            # Logs begun later were begun by rotation.
            if self._head(number).written_at_seconds > since + _UPTIME_SLACK_SECONDS:
                break
        # A server that was started twice within the slack is looked at after both starts.
        yield from reversed(found)
        if found:
            return
        yield Unread(self.name, "the log that began at its latest start is purged")

    def _start(self, number: int) -> Start:
        return Start(self.state.log_names[number], self._head(number).created_at_seconds)

    def _next_start(self, number: int) -> int | None:
        if self.looked_at is Starts.LATEST:
            return None
        for later in range(number + 1, len(self.state.log_names)):
            if self._head(later).created_at_seconds:
                return later
        return None

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

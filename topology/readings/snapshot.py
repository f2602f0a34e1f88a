"""What was read from the servers of a cluster: frozen facts, and what could not be read.

1. A field that could not be read is None and is listed in `unread`, with the reason. None never
   means "empty".
2. A snapshot holds readings and evaluates nothing.
3. Two readings of every server make a cluster snapshot: all of `first` ended before any of `last`
   began. For extra GTIDs, the replica's first reading is compared with the source's last one, so
   timing cannot create an extra GTID. For missing GTIDs it is the other way round.
"""

from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from enum import Enum
from itertools import pairwise
from typing import Final
from uuid import UUID

from gtid import GtidSet
from topology.readings.consumers import ConsumerReading, problem_of
from topology.readings.contents import ContentReading
from topology.readings.definition_reading import DefinitionReading
from topology.readings.group_view import GroupSnapshot
from topology.readings.history_evidence import HistoryEvidence
from topology.readings.notable_settings import notable_settings_of
from topology.readings.vendors import Vendor
from topology.readings.version import ServerVersion
from topology.readings.worker import WorkerSnapshot


class UnreadReason(Enum):
    """Why a fact could not be read."""

    UNREACHABLE = "unreachable"  # no connection
    REFUSED = "refused"  # the server rejects this account
    PRIVILEGE = "privilege"  # connected, but not allowed to read this fact
    TIMEOUT = "timeout"
    UNSUPPORTED = "unsupported"  # a server that gtid-audit cannot evaluate (MariaDB, no GTIDs)
    UNPARSEABLE = "unparseable"
    ERROR = "error"  # the server answered with another error
    NOT_PASTED = "not in the file"  # output of the server was pasted, and does not contain it


@dataclass(frozen=True, slots=True, order=True)
class UnreadFact:
    """One fact that could not be read: which one, why, and the server's message."""

    fact: str
    reason: UnreadReason = field(compare=False)
    detail: str


class ThreadState(Enum):
    """State of a replication thread, in the terms of SHOW REPLICA STATUS."""

    RUNNING = "Yes"
    CONNECTING = "Connecting"  # the receiver only
    STOPPED = "No"


# An uptime is in whole seconds, and is read some statements after the clock.
START_SLACK: Final = timedelta(seconds=2)
# The header of a server's first log ends at 151 (5.6.24) to 158 (9.7.4). The smallest transaction
# after it has more than 150 bytes.
_HEADER_BYTES_MAX: Final = 200


@dataclass(frozen=True, slots=True, order=True)
class LogPosition:
    """A position in a server's binary log: file name and byte offset.

    Files are ordered by number: `binlog.999999` is followed by `binlog.1000000`.
    """

    sequence: int = field(repr=False)
    position: int
    file: str = field(compare=False)

    @classmethod
    def of(cls, *, file: str, position: int) -> "LogPosition | None":
        """Return the position, or None for the empty file name of a channel that was never used."""
        number = file.rpartition(".")[2]
        if not file or not (number.isascii() and number.isdigit()):
            return None
        return cls(sequence=int(number), position=position, file=file)

    @property
    def is_before_all(self) -> bool:
        """Return whether no transaction is before it, in the header of a server's first log."""
        return self.sequence == 1 and self.position <= _HEADER_BYTES_MAX

    def __str__(self) -> str:
        return f"{self.file}:{self.position}"


@dataclass(frozen=True, slots=True)
class ChannelSnapshot:
    """One row of SHOW REPLICA STATUS, with its workers."""

    name: str
    source_host: str
    source_port: int
    source_uuid: UUID | None  # None until the receiver has connected once
    auto_position: bool
    gtid_retrieved: GtidSet
    receiver: ThreadState
    receiver_errno: int
    receiver_error: str
    receiver_error_at: str
    applier: ThreadState
    applier_errno: int
    applier_error: str
    applier_error_at: str
    received_to: LogPosition | None  # in the source's log: up to where the receiver has read
    applied_to: LogPosition | None  # in the source's log: start of the applier's next transaction
    # Negative if the process list shows that the event that is applied is dated in the future (SET
    # TIMESTAMP, a clock): SHOW REPLICA STATUS then has 0.
    lag_seconds: int | None
    filters: tuple[str, ...] = ()
    workers: tuple[WorkerSnapshot, ...] = ()
    applier_state: str = ""  # Replica_SQL_Running_State
    receiver_state: str = ""  # Replica_IO_State
    relay_applied_to: LogPosition | None = None  # in the relay log: Relay_Log_File, Relay_Log_Pos
    delay_seconds: int = 0  # SOURCE_DELAY
    delay_remaining_seconds: int | None = None  # None: the applier need not wait
    source_server_id: int | None = None  # None until the receiver has connected once
    ignored_server_ids: tuple[int, ...] = ()  # IGNORE_SERVER_IDS: the receiver drops their events
    # The condition of the START REPLICA UNTIL that last started the applier; "" if there was none.
    # The server shows the kind, and a position only if the condition has one. STOP REPLICA keeps
    # it.
    until: str = ""
    skip_counter: int = 0  # event groups that the applier still has to skip (Skip_Counter)
    # The last transaction that the receiver queued, and those that the workers applied last. Each
    # has the time of its original commit; the latter have the end of the newest apply (8.0 and
    # later).
    last_queued: GtidSet = GtidSet()  # noqa: RUF009 - immutable
    last_queued_committed_at: datetime | None = None
    last_applied: GtidSet = GtidSet()  # noqa: RUF009 - immutable
    last_applied_at: datetime | None = None

    @property
    def gtid_applying(self) -> GtidSet:
        """Return what the workers report that they are applying now."""
        result = GtidSet()
        for worker in self.workers:
            result |= worker.applying
        return result

    @property
    def is_on(self) -> bool:
        """Return whether both threads are on, and no UNTIL of an operator will stop them."""
        is_stopped = ThreadState.STOPPED in (self.receiver, self.applier)
        return not is_stopped and not self.until

    @property
    def has_error(self) -> bool:
        """Return whether a thread of this channel has an error that has not been cleared."""
        return bool(
            self.receiver_errno or self.receiver_error or self.applier_errno or self.applier_error
        )


@dataclass(frozen=True, slots=True)
class BinaryLog:
    """One row of SHOW BINARY LOGS."""

    name: str
    size_bytes: int
    encrypted: bool | None = None  # None if the version does not report it


# Every reading of a live server has these, or lists in `unread` what is missing. The rules depend
# on them, so spark_audit/clean_clusters.py requires the same facts of a cluster that it decides.
ALWAYS_READ: Final = (
    "server_uuid",
    "server_id",
    "version",
    "vendor",
    "uptime_seconds",
    "gtid_executed",
    "gtid_purged",
    "gtid_owned",
    "channels",
    "notable_settings",
)


@dataclass(frozen=True, slots=True)
class ServerSnapshot:
    """One reading of one server."""

    cluster: str
    name: str  # the operator's name for it; unique within the cluster
    host: str
    port: int
    phase: int  # 1 for the first reading, 2 for the last
    read_started: datetime  # the auditor's clock, UTC
    read_ended: datetime
    server_clock: datetime | None = None  # the server's clock, UTC, at the time of reading
    server_uuid: UUID | None = None
    server_id: int | None = None
    version: ServerVersion | None = None
    version_text: str | None = None
    vendor: Vendor | None = None
    uptime_seconds: int | None = None
    # Invariant: gtid_purged <= gtid_executed. A server that violates it was read during a reset:
    # finding U2.
    gtid_executed: GtidSet | None = None
    gtid_purged: GtidSet | None = None
    gtid_owned: GtidSet | None = None  # read before gtid_executed: a GTID in neither is nowhere
    log_end: LogPosition | None = (
        None  # read after gtid_executed: everything executed lies before it
    )
    channels: tuple[ChannelSnapshot, ...] | None = None
    binary_logs: tuple[BinaryLog, ...] | None = None
    settings: tuple[tuple[str, str], ...] | None = None  # sorted by name
    group: GroupSnapshot | None = (
        None  # None: no Group Replication plugin, or the member is OFFLINE
    )
    # Those of `settings` that change what may be concluded; derived from them if not given.
    notable_settings: str | None = None
    # Read on demand, in the last reading only: what the binary logs show if there is a loss.
    history_evidence: HistoryEvidence | None = None
    unread: tuple[UnreadFact, ...] = ()

    def __post_init__(self) -> None:
        if self.read_ended < self.read_started:
            raise ValueError(f"{self.name}: a reading cannot end before it began")
        if self.phase not in (1, 2):
            raise ValueError(f"{self.name}: phase {self.phase} is neither 1 nor 2")
        if self.settings is not None:
            notable = notable_settings_of(self.settings)
            object.__setattr__(self, "notable_settings", notable)

    @property
    def unexplained(self) -> tuple[str, ...]:
        """Return the facts of ALWAYS_READ that are absent although `unread` lists none.

        Rule 1 excludes this. A stored reading may violate it: another program, or a damaged file,
        may have left a column empty. Absent facts never mean that nothing is wrong.
        """
        if self.unread:
            return ()
        return tuple(name for name in ALWAYS_READ if getattr(self, name) is None)

    @property
    def logged(self) -> GtidSet:
        """Return what the binary logs hold, by the sets; an empty set if these were not read."""
        return (self.gtid_executed or GtidSet()) - (self.gtid_purged or GtidSet())

    @property
    def gone_logs(self) -> tuple[str, ...]:
        """Return the binary logs that the server lists and cannot open: it prints 0 bytes."""
        return tuple(each.name for each in self.binary_logs or () if each.size_bytes == 0)

    @property
    def unlisted_logs(self) -> tuple[str, ...]:
        """Return the first binary log of each gap in the numbers of the list.

        A server numbers its logs without gaps, and purges the oldest. So a gap is a log that was
        deleted together with its line of the index, or the number was taken by another file.
        """
        numbered = [log.name.rpartition(".") for log in self.binary_logs or ()]
        return tuple(
            f"{base}.{int(number) + 1:06}"
            for (base, _, number), (next_base, _, next_number) in pairwise(numbered)
            if base == next_base and int(next_number) > int(number) + 1
        )

    @property
    def gtid_retrieved(self) -> GtidSet:
        """Return the union of what all channels have received."""
        result = GtidSet()
        for channel in self.channels or ():
            result |= channel.gtid_retrieved
        return result

    @property
    def started_at(self) -> datetime | None:
        """Return when the server started, by its clock, within START_SLACK; None if not read."""
        if self.server_clock is None or self.uptime_seconds is None:
            return None
        return self.server_clock - timedelta(seconds=self.uptime_seconds)

    @property
    def clock_ahead(self) -> timedelta | None:
        """Return how far the server's clock is ahead of the auditor's; None if it was not read."""
        return None if self.server_clock is None else self.server_clock - self.read_ended

    def setting(self, name: str) -> str | None:
        """Return a setting by our name for it, or None if it was not read or does not exist."""
        for key, value in self.settings or ():
            if key == name:
                return value
        return None


@dataclass(frozen=True, slots=True)
class ReadServer(ServerSnapshot):
    """A reading that has the facts that every evaluation needs: none of these four is None.

    `ClusterSnapshot` makes each complete reading one. Code that compares servers takes this type,
    so it never has to ask again whether a set was read.
    """

    server_uuid: UUID = field(kw_only=True)
    gtid_executed: GtidSet = field(kw_only=True)
    gtid_purged: GtidSet = field(kw_only=True)
    gtid_owned: GtidSet = field(kw_only=True)

    def __post_init__(self) -> None:
        # With its arguments: `slots=True` makes another class than the one that is written here.
        super(ReadServer, self).__post_init__()
        for name in _COMPARED:
            if getattr(self, name) is None:
                raise ValueError(f"{self.name}: {name} was not read")


_COMPARED: Final = ("server_uuid", "gtid_executed", "gtid_purged", "gtid_owned")
_FIELDS: Final = tuple(each.name for each in fields(ServerSnapshot))


def as_read(reading: ServerSnapshot) -> ServerSnapshot:
    """Return a complete reading as a ReadServer, and any other one as it is."""
    if isinstance(reading, ReadServer) or any(getattr(reading, name) is None for name in _COMPARED):
        return reading
    made = object.__new__(ReadServer)  # the constructor of `reading` has validated every value
    for name in _FIELDS:
        object.__setattr__(made, name, getattr(reading, name))
    return made


@dataclass(frozen=True, slots=True)
class ReadTwice:
    """The two readings of a server, both complete."""

    first: ReadServer
    last: ReadServer


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """Two readings of every server of a cluster. Complete readings are of type ReadServer."""

    cluster: str
    first: tuple[ServerSnapshot, ...]
    last: tuple[ServerSnapshot, ...]
    # Evidence from binary logs, read after the readings; None: no transactions were compared.
    contents: ContentReading | None = None
    consumers: tuple[ConsumerReading, ...] = ()  # in order of name
    # Evidence from the definitions, read after the readings; None: they were not compared.
    definitions: DefinitionReading | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", tuple(map(as_read, self.first)))
        object.__setattr__(self, "last", tuple(map(as_read, self.last)))
        names = [server.name for server in self.first]
        if names != [server.name for server in self.last]:
            raise ValueError(f"{self.cluster}: the two readings are not of the same servers")
        if len(set(names)) != len(names):
            raise ValueError(f"{self.cluster}: a server name appears twice")
        if names != sorted(names):
            raise ValueError(f"{self.cluster}: servers are not in order of name")
        if self.first:
            barrier = max(server.read_ended for server in self.first)
            again = (server for server in self.last if server.phase > 1)  # see read_once.py
            early = [server.name for server in again if server.read_started < barrier]
            if early:
                raise ValueError(
                    f"{self.cluster}: second reading of {', '.join(early)} began before the first"
                    " readings had ended"
                )
        begun = {server.name: server.read_started for server in self.first}
        ended = {server.name: server.read_ended for server in self.last}
        if problem := problem_of(self.consumers, begun=begun, ended=ended):
            raise ValueError(f"{self.cluster}: {problem}")

    def with_contents(self, contents: ContentReading | None) -> "ClusterSnapshot":
        """Return these readings with the result of comparing transactions, if there is one."""
        return self if contents is self.contents else replace(self, contents=contents)

    def with_definitions(self, definitions: DefinitionReading | None) -> "ClusterSnapshot":
        """Return these readings with the result of comparing definitions, if there is one."""
        return self if definitions is self.definitions else replace(self, definitions=definitions)

    @property
    def first_read(self) -> dict[str, ReadServer]:
        """Return the first readings that are complete, by name, in order."""
        return {each.name: each for each in self.first if isinstance(each, ReadServer)}

    @property
    def last_read(self) -> dict[str, ReadServer]:
        """Return the last readings that are complete, by name, in order."""
        return {each.name: each for each in self.last if isinstance(each, ReadServer)}

    @property
    def read_ended(self) -> datetime | None:
        """Return when the last reading ended: the time of the state that this snapshot shows."""
        return max((server.read_ended for server in self.last), default=None)

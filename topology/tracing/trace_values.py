"""What was read to follow an error: transactions, places, error log lines, definitions.

Values only. `why` is why something is missing; "" if it is complete. A text that quotes data is
bounded by the adapter that reads it.
"""

from dataclasses import dataclass
from datetime import datetime

from binlog.schema.table_history import TableKey
from binlog.transactions import TableChange
from gtid import GtidSet
from topology.readings.snapshot import UnreadFact
from topology.tracing.stopped_threads import StoppedThread
from topology.tracing.table_effects import TableEffect


@dataclass(frozen=True, slots=True)
class TracedTransaction:
    """A transaction in the binary log of a server, or in its relay log. `end` is exclusive."""

    server: str
    gtid: GtidSet  # one GTID; empty for an anonymous transaction
    file: str
    start: int
    end: int
    committed_at: datetime | None  # first, on its origin
    logged_at: datetime | None  # on this server (8.0.1 and later)
    server_id: int  # of its origin
    kind: str  # see TransactionKind
    tables: tuple[TableChange, ...]  # rows by table
    statements: tuple[str, ...]  # shortened, without passwords
    rows: tuple[str, ...]  # the first ones, shortened
    effects: tuple[TableEffect, ...]
    error_code: int = 0  # of its statement on the origin
    is_relayed: bool = False  # read from a relay log: `file` is one, and `end` is in its last event
    why: str = ""  # why its content was not read

    @property
    def place(self) -> str:
        """Return the file and the bytes."""
        return f"{self.file}:{self.start}-{self.end}"

    @property
    def size_bytes(self) -> int:
        """Return the length in the log."""
        return self.end - self.start

    @property
    def happened_at(self) -> datetime | None:
        """Return when this server logged it; before 8.0.1, when it was first executed."""
        return self.logged_at or self.committed_at

    def touches(self, tables: tuple[TableKey, ...]) -> bool:
        """Return whether it changes rows or the definition of one of the tables."""
        changed = {(each.schema.lower(), each.table.lower()) for each in self.tables}
        return any((each.schema.lower(), each.table.lower()) in changed for each in tables) or any(
            effect.concerns(each) for effect in self.effects for each in tables
        )


@dataclass(frozen=True, slots=True)
class GtidOnServer:
    """What one server has of one GTID. None: the set was not read."""

    server: str
    gtid: GtidSet
    is_executed: bool | None
    is_purged: bool | None
    is_owned: bool | None  # a session or worker executes it now
    received_on: tuple[str, ...] = ()  # channels whose relay log received it
    failed_on: tuple[str, ...] = ()  # channels whose applier stopped at it
    place: str = ""  # in its binary log
    why: str = ""


@dataclass(frozen=True, slots=True)
class TableNow:
    """The definition of a table on a server at the time of the trace."""

    server: str
    table: TableKey
    columns: tuple[tuple[str, str], ...] = ()  # names and types; empty if there is no such table
    why: str = ""


@dataclass(frozen=True, slots=True)
class ChangeSearch:
    """The changes of some tables' definitions in the binary logs of one server, oldest first."""

    server: str
    changes: tuple[TracedTransaction, ...] = ()
    first_file: str = ""  # where the search began
    is_from_first_log: bool = False  # no log that the server still has is before it
    has_purged: bool = True  # older logs existed and were purged
    count: int = 0  # of all changes found; `changes` are the last ones
    why: str = ""

    @property
    def is_complete(self) -> bool:
        """Return whether every transaction that the server ever logged was searched."""
        return not self.why and self.is_from_first_log and not self.has_purged


@dataclass(frozen=True, slots=True)
class ExtraTransactions:
    """Transactions of a replica that its source has not executed and did not commit itself."""

    server: str
    against: str
    gtids: GtidSet
    touching: tuple[TracedTransaction, ...] = ()  # those that change the traced tables
    purged: GtidSet = GtidSet()  # noqa: RUF009 - immutable. Their content is gone
    why: str = ""


@dataclass(frozen=True, slots=True)
class ErrorLogLine:
    """One line of a server's error log, bounded and without passwords."""

    at: datetime
    priority: str  # Error, Warning, System, Note
    code: str  # MY-010584
    subsystem: str
    text: str


@dataclass(frozen=True, slots=True)
class ErrorLogExcerpt:
    """The lines of a server's error log around some times, in order of time."""

    server: str
    file: str  # log_error, with the data directory if it is relative; "" if not read
    moments: tuple[datetime, ...] = ()  # by the server's own clock
    window_seconds: int = 0  # before and after each
    lines: tuple[ErrorLogLine, ...] = ()
    count: int = 0  # of lines in the windows; `lines` are the nearest ones
    begins_at: datetime | None = None  # the oldest line that the table still has
    why: str = ""  # why there are no lines: the version, a privilege


@dataclass(frozen=True, slots=True)
class TracedFailure:
    """A stopped thread, and what was read to explain it."""

    failure: StoppedThread
    source: str  # the server's name; "" if it was not found
    source_note: str = ""  # what is uncertain about it
    failed_at: datetime | None = None  # UTC, by the replica's clock
    transactions: tuple[TracedTransaction, ...] = ()
    candidates: GtidSet = GtidSet()  # noqa: RUF009 - immutable. Behind a low-water mark
    places: tuple[GtidOnServer, ...] = ()
    tables: tuple[TableKey, ...] = ()
    tables_now: tuple[TableNow, ...] = ()
    searches: tuple[ChangeSearch, ...] = ()
    replaced: tuple[TracedTransaction, ...] = ()  # the source's changes as the replica logged them
    extra: ExtraTransactions | None = None
    error_logs: tuple[ErrorLogExcerpt, ...] = ()


@dataclass(frozen=True, slots=True)
class TracedServer:
    """One server of a trace, and what could not be read of it."""

    name: str
    version: str
    executed: GtidSet | None  # gtid_executed; None if it was not read
    is_found: bool = False  # as the source of a channel, not named by the user
    notes: tuple[str, ...] = ()  # threads that are stopped without an error
    unread: tuple[UnreadFact, ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """The result of a trace."""

    wanted: GtidSet  # empty: the trace began at a server
    servers: tuple[TracedServer, ...]
    failures: tuple[TracedFailure, ...] = ()
    others: tuple[StoppedThread, ...] = ()  # stopped threads that were not traced
    places: tuple[GtidOnServer, ...] = ()  # of the wanted GTID
    transaction: TracedTransaction | None = None  # the wanted one

    @property
    def executed(self) -> dict[str, GtidSet | None]:
        """Return gtid_executed by the name of the server."""
        return {each.name: each.executed for each in self.servers}

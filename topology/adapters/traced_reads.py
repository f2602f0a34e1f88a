"""What a trace asks one server: where a GTID is, what it contains, definitions, error log lines.

1. Each question is independent of the others. What cannot be read is noted in `unread`, with the
   reason, and the answer says that it is incomplete.
2. Every dump and statement has the time limit of the connection. A search of logs also has a limit
   in bytes and one in seconds for the whole search, because it may read gigabytes.
3. Servers are only read. A server that did not answer the first reading is asked nothing more.

Privileges: REPLICATION CLIENT and REPLICATION SLAVE for logs, SELECT on performance_schema for the
error log, SELECT on a table for its definition.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, TypeVar

import pymysql

from binlog.adapters.heads_server import locate_on_server
from binlog.adapters.schema_servers import ServerTables
from binlog.adapters.spooled import Spooled
from binlog.adapters.stream import ServerLogs
from binlog.errors import BinlogError, DumpBroken, DumpRefused, DumpTimedOut, StatementRefused
from binlog.log_times import moment
from binlog.scan import EventGroup
from binlog.schema.sql_words import CannotFollow
from binlog.schema.table_history import TableKey
from binlog.transactions import Transaction
from gtid import GtidError, GtidSet
from topology.adapters.answers import UNEXPECTED, NotShown
from topology.adapters.connection import way_to
from topology.adapters.error_log_reads import error_log_around, error_log_file, failed_at_of
from topology.adapters.relay_log_reads import relayed_transaction
from topology.adapters.transaction_summary import first_rows, shortened_statement
from topology.adapters.unread import unread_fact
from topology.readings.dialect import dialect_of
from topology.readings.snapshot import LogPosition, ServerSnapshot, UnreadFact, UnreadReason
from topology.readings.target import ServerTarget
from topology.tracing.stopped_threads import StoppedThread
from topology.tracing.table_effects import WHOLE_SCHEMA, TableEffect, effects_of
from topology.tracing.trace_values import (
    ErrorLogExcerpt,
    ExtraTransactions,
    GtidOnServer,
    TableNow,
    TracedTransaction,
)

T = TypeVar("T")

ROWS_MAX: Final = 5  # of a transaction
STATEMENTS_MAX: Final = 5
TRANSACTION_BYTES_MAX: Final = 64 << 20  # whose content is read
EXTRA_MAX: Final = 10_000  # transactions that only the replica has
TOUCHING_MAX: Final = 20
FAILED: Final = (BinlogError, GtidError, CannotFollow, pymysql.MySQLError, OSError)


@dataclass(slots=True)
class TracedReads:
    """The questions to one server, which was read once, and what it did not answer."""

    target: ServerTarget
    reading: ServerSnapshot
    seconds_max: float
    unread: list[UnreadFact] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return the server's name."""
        return self.reading.name

    @property
    def is_read(self) -> bool:
        """Return whether the server answered, so that more can be asked."""
        return self.reading.server_uuid is not None and self.reading.version is not None

    @property
    def way(self) -> Callable[[], "pymysql.connections.Connection[pymysql.cursors.DictCursor]"]:
        """Return the function that opens a connection."""
        return way_to(self.target, seconds_max=self.seconds_max)

    @property
    def logs(self) -> ServerLogs:
        """Return its binary logs."""
        return ServerLogs(self.way, timeout_seconds_max=self.seconds_max)

    def note(self, fact: str, error: Exception) -> str:
        """Note what was not read; return the reason as a text."""
        noted = fact_not_read(fact, error)
        if noted not in self.unread:
            self.unread.append(noted)
        return f"{noted.reason.value}: {noted.detail}"

    # -- one GTID ---------------------------------------------------------------------------------

    def gtid_state(self, gtid: GtidSet) -> GtidOnServer:
        """Return what the server has of a GTID, and where it is in its binary log."""
        reading = self.reading
        state = GtidOnServer(
            self.name,
            gtid,
            is_executed=_has(reading.gtid_executed, gtid),
            is_purged=_has(reading.gtid_purged, gtid),
            is_owned=_has(reading.gtid_owned, gtid),
            received_on=tuple(
                each.name for each in reading.channels or () if gtid <= each.gtid_retrieved
            ),
        )
        if not self.is_read or state.is_executed is not True or state.is_purged is not False:
            return state
        try:
            located = locate_on_server(self.way, gtid, timeout_seconds_max=self.seconds_max)
        except FAILED as error:
            return replace(state, why=self.note("the place of the GTID", error))
        for file in located.files:
            for place in file.places:
                return replace(state, place=f"{file.file}:{place.start}-{place.end}")
            return replace(state, place=file.file)
        if located.errors:
            return replace(state, why=self.note("the place of the GTID", located.errors[0]))
        return replace(state, why="; ".join(why.value for why, _ in located.absent))

    def transaction(self, gtid: GtidSet) -> TracedTransaction | None:
        """Return a transaction of its binary log; None if it is not there, or was not read."""
        held = (self.reading.gtid_executed or GtidSet()) - (self.reading.gtid_purged or GtidSet())
        if not self.is_read or not gtid <= held:
            return None
        try:
            for group in self._groups(gtid):
                return self._of_group(group)
        except FAILED as error:
            self.note("the content of the transaction", error)
        return None

    def transactions_at(self, place: LogPosition, *, count: int) -> tuple[TracedTransaction, ...]:
        """Return the first transactions from a position of its binary log on."""
        if not self.is_read:
            return ()
        try:
            found = self.logs.transactions_from(
                file=place.file, position=place.position, transactions_max=count
            )
        except FAILED as error:
            self.note("the transaction at the position of the applier", error)
            return ()
        return tuple(traced_of(self.name, each) for each in found)

    def relayed(self, failure: StoppedThread) -> TracedTransaction | None:
        """Return the failing transaction from the relay log; None if it was not found there."""
        version = self.reading.version
        if not self.is_read or version is None:
            return None
        try:
            with closing(self.way()) as connection:
                return relayed_transaction(
                    connection,
                    dialect_of(version),
                    self.name,
                    failure.channel,
                    failure.gtids.first(1),
                )
        except (*FAILED, *UNEXPECTED) as error:
            self.note("the transaction in the relay log", error)
            return None

    # -- many transactions ------------------------------------------------------------------------

    def as_logged(self, gtids: GtidSet) -> tuple[TracedTransaction, ...]:
        """Return those of some transactions that its binary log has."""
        held = (self.reading.gtid_executed or GtidSet()) - (self.reading.gtid_purged or GtidSet())
        if not self.is_read or not gtids & held:
            return ()
        try:
            found = self.logs.transactions_of(gtids & held)
        except FAILED as error:
            self.note("transactions in its binary logs", error)
            return ()
        return tuple(traced_of(self.name, each) for each in found)

    def not_on_source(
        self, source: ServerSnapshot, tables: tuple[TableKey, ...], *, search_seconds_max: float
    ) -> ExtraTransactions:
        """Return what the server executed and its source did not, except the source's own."""
        executed = self.reading.gtid_executed or GtidSet()
        gtids = executed - (source.gtid_executed or GtidSet())
        if source.server_uuid is not None:
            gtids = gtids.without_uuid(source.server_uuid)
        purged = gtids & (self.reading.gtid_purged or GtidSet())
        found = ExtraTransactions(self.name, source.name, gtids, purged=purged)
        wanted = gtids - purged
        if not wanted or not self.is_read:
            return found
        if wanted.gtid_count > EXTRA_MAX:
            why = f"{wanted.gtid_count:,} transactions, more than the limit of {EXTRA_MAX:,}"
            return replace(found, why=why)
        touching: list[TracedTransaction] = []
        why = ""
        try:
            for each in self._groups_until(wanted, time.monotonic() + search_seconds_max):
                transaction = traced_of(self.name, each.transaction)
                if transaction.touches(tables) and len(touching) < TOUCHING_MAX:
                    touching.append(self._of_group(each))
        except FAILED as error:
            why = self.note("transactions that its source has not executed", error)
        return replace(found, touching=tuple(touching), why=why)

    def _groups(self, wanted: GtidSet) -> Iterator[EventGroup]:
        return self.logs.events_of(wanted, bytes_max=TRANSACTION_BYTES_MAX, store=Spooled)

    def _groups_until(self, wanted: GtidSet, deadline: float) -> Iterator[EventGroup]:
        for group in self._groups(wanted):
            yield group
            if time.monotonic() > deadline:
                raise DumpTimedOut(timeout_seconds_max=self.seconds_max)

    # -- definitions and the error log ------------------------------------------------------------

    def table_now(self, table: TableKey) -> TableNow:
        """Return a table's columns now."""
        if table.table == WHOLE_SCHEMA:
            return TableNow(self.name, table, why="a schema, not a table")
        if not self.is_read:
            return TableNow(self.name, table, why="the server was not read")
        try:
            definition = ServerTables(self.way, self.seconds_max).definition(table)
        except FAILED as error:
            why = self.note(f"the definition of {table}", error)
            return TableNow(self.name, table, why=why)
        columns = definition.columns if definition is not None else ()
        return TableNow(self.name, table, tuple((each.name, each.type_text) for each in columns))

    def failed_at(self, failure: StoppedThread) -> datetime | None:
        """Return when a thread failed (UTC), by the server's clock."""
        if not self.is_read:
            return None
        try:
            with closing(self.way()) as connection:
                return failed_at_of(connection, failure.failed_at)
        except (*FAILED, *UNEXPECTED) as error:
            self.note("the time of the error", error)
            return None

    def error_log(self, moments: Sequence[datetime], *, window_seconds: int) -> ErrorLogExcerpt:
        """Return the lines of its error log around some times of its own clock."""
        empty = ErrorLogExcerpt(self.name, "", tuple(moments), window_seconds)
        if not self.is_read or self.reading.version is None:
            return replace(empty, why="the server was not read")
        dialect = dialect_of(self.reading.version)
        try:
            with closing(self.way()) as connection:
                empty = replace(empty, file=error_log_file(connection))
                if not moments:
                    return replace(empty, why="the time of the error is not known")
                return error_log_around(
                    connection, dialect, empty, moments, window_seconds=window_seconds
                )
        except NotShown as reason:
            return replace(empty, why=str(reason))
        except (*FAILED, *UNEXPECTED) as error:
            return replace(empty, why=self.note("error log", error))

    def _of_group(self, group: EventGroup) -> TracedTransaction:
        traced = traced_of(self.name, group.transaction)
        try:
            rows = first_rows(group, rows_max=ROWS_MAX)
        except BinlogError as error:
            return replace(traced, why=f"rows not read: {error}")
        return replace(traced, rows=rows)


def traced_of(server: str, transaction: Transaction) -> TracedTransaction:
    """Return a transaction as a server logged it, with bounded texts."""
    committed, logged = (
        transaction.original_commit_timestamp,
        transaction.immediate_commit_timestamp,
    )
    return TracedTransaction(
        server=server,
        gtid=GtidSet() if transaction.gtid is None else GtidSet.of(transaction.gtid),
        file=transaction.file,
        start=transaction.start,
        end=transaction.end,
        committed_at=moment(committed or transaction.timestamp_seconds * 1_000_000),
        logged_at=moment(logged) if logged else None,
        server_id=transaction.server_id,
        kind=transaction.kind.value,
        tables=transaction.tables,
        statements=tuple(
            shortened_statement(each.sql) for each in transaction.statements[:STATEMENTS_MAX]
        ),
        rows=(),
        effects=effects_in(transaction),
        error_code=transaction.error_code,
        why="" if transaction.is_complete else "its end is missing",
    )


def effects_in(transaction: Transaction) -> tuple[TableEffect, ...]:
    """Return what the statements of a transaction do to tables."""
    return tuple(
        effect
        for each in transaction.statements
        for effect in effects_of(each.sql, schema=each.schema)
    )


def clock_shift(server: ServerSnapshot, other: ServerSnapshot) -> timedelta:
    """Return by how much the clock of `other` is ahead; 0 if not read, or within a second.

    Reading the clocks takes a part of a second.
    """
    if server.clock_ahead is None or other.clock_ahead is None:
        return timedelta()
    shift = other.clock_ahead - server.clock_ahead
    return shift if abs(shift) > timedelta(seconds=1) else timedelta()


def fact_not_read(fact: str, error: Exception) -> UnreadFact:
    """Return the unread fact of an error of a server, a connection or a log."""
    if isinstance(error, DumpRefused | StatementRefused):
        answer = pymysql.err.OperationalError(error.code, error.text)
        return unread_fact(fact, answer, timed_out=False)
    if isinstance(error, DumpTimedOut):
        return UnreadFact(fact, UnreadReason.TIMEOUT, str(error))
    if isinstance(error, DumpBroken):
        return UnreadFact(fact, UnreadReason.UNREACHABLE, str(error))
    if isinstance(error, pymysql.MySQLError | OSError):
        return unread_fact(fact, error, timed_out=False)
    if isinstance(error, BinlogError):
        return UnreadFact(fact, UnreadReason.ERROR, str(error))
    return UnreadFact(fact, UnreadReason.UNPARSEABLE, str(error))


def _has(gtids: GtidSet | None, wanted: GtidSet) -> bool | None:
    return None if gtids is None else wanted <= gtids

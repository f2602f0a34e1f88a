"""What a trace asks one server beside its binary logs: definitions, error log, relay log, times.

What cannot be read is noted in `unread` of the server, and the answer says why it is missing.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta

from binlog.adapters.schema_servers import ServerTables
from binlog.schema.table_history import TableKey
from topology.adapters.answered_rows import UNEXPECTED, NotShown
from topology.adapters.error_log_reads import error_log_around, error_log_file, failed_at_of
from topology.adapters.relay_log_reads import relayed_transaction
from topology.adapters.traced_reads import TracedReads
from topology.adapters.unread_logs import FAILED
from topology.readings.dialect import dialect_of
from topology.readings.snapshot import ServerSnapshot
from topology.tracing.stopped_threads import StoppedThread
from topology.tracing.table_effects import WHOLE_SCHEMA
from topology.tracing.trace_values import ErrorLogExcerpt, TableNow, TracedTransaction


def relayed_failure(server: TracedReads, failure: StoppedThread) -> TracedTransaction | None:
    """Return the failing transaction from the relay log; None if it was not found there."""
    version = server.reading.version
    if not server.is_read or version is None:
        return None
    try:
        with closing(server.way()) as connection:
            return relayed_transaction(
                connection,
                dialect_of(version),
                server.name,
                failure.channel,
                failure.gtids.first(1),
            )
    except (*FAILED, *UNEXPECTED) as error:
        server.note("the transaction in the relay log", error)
        return None


def table_now(server: TracedReads, table: TableKey) -> TableNow:
    """Return a table's columns now."""
    if table.table == WHOLE_SCHEMA:
        return TableNow(server.name, table, why="a schema, not a table")
    if not server.is_read:
        return TableNow(server.name, table, why="the server was not read")
    try:
        definition = ServerTables(server.way, server.seconds_max).definition(table)
    except FAILED as error:
        why = server.note(f"the definition of {table}", error)
        return TableNow(server.name, table, why=why)
    columns = definition.columns if definition is not None else ()
    return TableNow(server.name, table, tuple((each.name, each.type_text) for each in columns))


def failed_at(server: TracedReads, failure: StoppedThread) -> datetime | None:
    """Return when a thread failed (UTC), by the server's clock."""
    if not server.is_read:
        return None
    try:
        with closing(server.way()) as connection:
            return failed_at_of(connection, failure.failed_at)
    except (*FAILED, *UNEXPECTED) as error:
        server.note("the time of the error", error)
        return None


def error_log(
    server: TracedReads, moments: Sequence[datetime], *, window_seconds: int
) -> ErrorLogExcerpt:
    """Return the lines of its error log around some times of its own clock."""
    empty = ErrorLogExcerpt(server.name, "", tuple(moments), window_seconds)
    if not server.is_read or server.reading.version is None:
        return replace(empty, why="the server was not read")
    dialect = dialect_of(server.reading.version)
    try:
        with closing(server.way()) as connection:
            empty = replace(empty, file=error_log_file(connection))
            if not moments:
                return replace(empty, why="the time of the error is not known")
            return error_log_around(
                connection, dialect, empty, moments, window_seconds=window_seconds
            )
    except NotShown as reason:
        return replace(empty, why=str(reason))
    except (*FAILED, *UNEXPECTED) as error:
        return replace(empty, why=server.note("error log", error))


def clock_shift(server: ServerSnapshot, other: ServerSnapshot) -> timedelta:
    """Return by how much the clock of `other` is ahead; 0 if not read, or within a second.

    Reading the clocks takes a part of a second.
    """
    if server.clock_ahead is None or other.clock_ahead is None:
        return timedelta()
    shift = other.clock_ahead - server.clock_ahead
    return shift if abs(shift) > timedelta(seconds=1) else timedelta()

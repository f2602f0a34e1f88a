"""Reads one live server over PyMySQL: statements out, frozen facts back.

1. It only reads: it sends SELECT and SHOW, and the tests compare its statements with a list.
2. Every fact is read on its own. A fact that cannot be read becomes an UnreadFact with the server's
   message, and the other facts are still read. Only a lost connection ends the reading.
3. The order of the statements is part of the proof; adapters/collect.py explains the two phases:

   gtid_owned, gtid_purged, gtid_executed   one SELECT, in this order. A transaction that commits in
       between is in at least one of owned and executed, and purged stays within executed.
   SHOW REPLICA STATUS, then the workers    a worker that is idle here has finished what the applier
       handed out before (applier_facts.py)
   the end of the binary log                everything in gtid_executed lies before it

   All of them are sent in one text, in this order (statement_batch.py). Only what depends on an
   answer is asked later: row locks, hidden threads, groups.

4. The version and the settings are read in the first phase, and again only over a new connection:
   they are half of what a reading costs a server, and no comparison of the two phases uses them.
5. It evaluates nothing. Old servers answer in old terms; dialect.py translates them.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID

import pymysql
from pymysql.constants import ER

from gtid import GtidError, GtidSet
from topology.adapters.answered_rows import Row, only_row, unexpected_answer
from topology.adapters.connection import Connection, connect
from topology.adapters.connection_errors import AnswerTooLong
from topology.adapters.hidden_workers import (
    NEEDS_PROCESS,
    NOT_ASSIGNED,
    hides_threads,
    threads_in,
    with_listed_states,
)
from topology.adapters.reading_statements import (
    BINARY_LOGS,
    IDENTITY,
    PROCESSLIST,
    ROW_LOCK_WAITS,
    UPTIME,
    VARIABLES_INFO,
    VERSION,
    group_statement,
    processlist_statement,
    settings_statement,
    statements_of_reading,
    workers_statement,
)
from topology.adapters.statement_batch import StatementBatch
from topology.adapters.status import (
    binary_log_from_row,
    channel_from_row,
    group_from_rows,
    hides_workers,
    may_wait_for_row,
    parse_owned,
    uptime_of,
    waiting_for_rows,
    workers_by_channel,
    workers_of_processlist,
)
from topology.adapters.unread import LostServer, unread_fact
from topology.adapters.vendor_facts import (
    SETTINGS_READ,
    as_vendor_gives,
    log_retention_of,
    version_texts_of,
    why_refused,
)
from topology.readings.dialect import (
    BINARY_LOG,
    BINARY_LOG_FILTERS,
    LOG_CLOSED,
    SOURCES_OF_VALUES,
    STATUS_COLUMNS,
    Dialect,
    dialect_of,
)
from topology.readings.group_view import GroupSnapshot
from topology.readings.snapshot import (
    BinaryLog,
    ChannelSnapshot,
    LogPosition,
    ServerSnapshot,
    UnreadFact,
    UnreadReason,
)
from topology.readings.target import ServerTarget
from topology.readings.version import ServerVersion, UnreadableVersion

T = TypeVar("T")

__all__ = ["LostServer", "MysqlReader", "connect", "parse_owned"]


class MysqlReader:
    """Reads one server, phase after phase, over one connection."""

    def __init__(self, target: ServerTarget, *, cluster: str, timeout_seconds_max: float) -> None:
        self._target = target
        self._cluster = cluster
        self._timeout_seconds_max = timeout_seconds_max
        self._connection: Connection | None = None
        self._kept: dict[str, list[Row]] = {}  # answers of this connection, by statement

    def read(self, *, phase: int) -> ServerSnapshot:
        """Take one reading. Never raises for what the server does; `unread` lists it."""
        started = datetime.now(UTC)
        if phase == 1:
            self._kept.clear()
        empty = ServerSnapshot(
            cluster=self._cluster,
            name=self._target.name,
            host=self._target.host,
            port=self._target.port,
            phase=phase,
            read_started=started,
            read_ended=started,
        )
        try:
            if self._connection is None:
                self._connection = self._connect()
            reading = _Reading(
                self._connection, empty, self._timeout_seconds_max, self._reopen, self._kept
            )
            snapshot = reading.read_all()
        except LostServer as lost:
            self.close()
            snapshot = replace(empty, unread=(lost.fact,))
        return replace(snapshot, read_ended=datetime.now(UTC))

    def close(self) -> None:
        """Close the connection, if any. Safe to call twice."""
        self._kept.clear()
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(pymysql.MySQLError, OSError):  # the connection is broken already
                connection.close()

    def _reopen(self) -> Connection:
        """Replace a connection that is out of sync. Raises LostServer."""
        self.close()
        self._connection = self._connect()
        return self._connection

    def _connect(self) -> Connection:
        begun = time.monotonic()
        try:
            return connect(
                self._target, timeout_seconds_max=self._timeout_seconds_max, sends_batches=True
            )
        except (pymysql.MySQLError, OSError) as error:
            waited = time.monotonic() - begun
            raise LostServer(
                unread_fact("connection", error, timed_out=waited >= self._timeout_seconds_max)
            ) from error


class _Reading:
    """One pass over the facts of one server."""

    def __init__(
        self,
        connection: Connection,
        empty: ServerSnapshot,
        timeout_seconds_max: float,
        reopen: Callable[[], Connection],
        kept: dict[str, list[Row]],
    ) -> None:
        self._connection = connection
        self._kept = kept
        self._batch = StatementBatch(connection, ())
        self._reopen = reopen
        self._timeout_seconds_max = timeout_seconds_max
        self._unread: list[UnreadFact] = []
        self._binary_log_filters: tuple[tuple[str, str], ...] = ()
        self._shows_no_log = False
        self._empty = empty
        self._found: dict[str, Any] = {}  # fields of ServerSnapshot, checked there

    def read_all(self) -> ServerSnapshot:
        dialect = self._read_identity()
        if dialect is not None:
            # The start time is the clock minus the uptime: no statement that may wait is between
            # the two.
            self._set(
                uptime_seconds=self._fact("uptime_seconds", lambda: uptime_of(self._one(UPTIME)))
            )
            # SHOW REPLICA STATUS is read before the log's end, so that a receiver can be compared
            # with it.
            self._set(channels=self._fact("channels", lambda: self._channels(dialect)))
            self._set(log_end=self._fact("log_end", lambda: self._log_end(dialect)))
            self._set(binary_logs=self._fact("binary_logs", self._binary_logs))
            self._set(settings=self._fact("settings", lambda: self._settings(dialect)))
            hours = self._fact(
                "log_retention", lambda: log_retention_of(self._connection, self._so_far())
            )
            if hours and (settings := self._found["settings"]) is not None:
                self._set(settings=tuple(sorted((*settings, *hours))))
            self._set(group=self._fact("group", lambda: self._group(dialect)))
        self._set(unread=tuple(self._unread))
        return as_vendor_gives(self._so_far())

    def _read_identity(self) -> Dialect | None:
        """Read the server's identity and sets; None if gtid-audit cannot evaluate the server."""
        version_texts = self._fact(
            "version", lambda: version_texts_of(only_row(self._all_once(VERSION), VERSION))
        )
        if version_texts is None:
            return None
        text, vendor = version_texts
        self._set(version_text=text, vendor=vendor)
        try:
            version = ServerVersion.parse(text)
        except UnreadableVersion as error:
            self._note("version", UnreadReason.UNPARSEABLE, str(error))
            return None
        self._set(version=version)
        if why := why_refused(vendor, version):
            detail = f"{vendor.value} {text} {why}"
            self._note("gtid_executed", UnreadReason.UNSUPPORTED, detail)
            return None
        dialect = dialect_of(version)
        if self._connection.takes_batches:  # type: ignore[attr-defined]
            is_first = settings_statement() not in self._kept
            statements = statements_of_reading(dialect, is_first=is_first)
            self._batch = StatementBatch(self._connection, statements)
        identity = self._fact("gtid_executed", self._identity)
        if identity is None:
            return None
        row, server_id, server_clock = identity
        if str(row["gtid_mode"]).startswith("OFF"):
            detail = f"gtid_mode is {row['gtid_mode']}: new transactions get no GTID"
            self._note("gtid_executed", UnreadReason.UNSUPPORTED, detail)
            return None
        self._set(
            server_id=server_id,
            server_clock=server_clock,
            server_uuid=self._fact("server_uuid", lambda: UUID(str(row["server_uuid"]))),
            gtid_owned=self._fact("gtid_owned", lambda: parse_owned(str(row["gtid_owned"]))),
            gtid_purged=self._parsed("gtid_purged", row),
            gtid_executed=self._parsed("gtid_executed", row),
        )
        return dialect

    def _identity(self) -> tuple[Row, int, datetime]:
        """Return the row with the sets as texts, the server_id, and the clock."""
        row = self._one(IDENTITY)
        sets = [row[name] for name in ("gtid_owned", "gtid_purged", "gtid_executed", "gtid_mode")]
        if None in sets:
            raise ValueError("a GTID set or gtid_mode is NULL")
        return row, int(row["server_id"]), row["server_clock"].replace(tzinfo=UTC)

    def _channels(self, dialect: Dialect) -> tuple[ChannelSnapshot, ...]:
        rows = self._all(dialect.show_replica_status, *STATUS_COLUMNS["source_host"])
        workers = self._fact("workers", lambda: self._workers(dialect, rows)) if rows else {}
        channels = [channel_from_row(row, workers or {}) for row in rows]
        return tuple(sorted(channels, key=lambda channel: channel.name))

    def _workers(self, dialect: Dialect, statuses: list[Row]) -> dict[str, list[Row]]:
        if not dialect.has_worker_status:
            rows = self._all(processlist_statement(dialect), "thread")
            if hides_workers(rows, statuses):
                detail = "5.6 shows the workers of its applier only with the privilege PROCESS"
                self._note("workers", UnreadReason.PRIVILEGE, detail)
            if any(map(may_wait_for_row, rows)):
                rows = waiting_for_rows(rows, self._all(ROW_LOCK_WAITS, "thread"))
            return workers_of_processlist(rows, statuses)
        rows = self._all(workers_statement(dialect), "worker_id")
        if hides_threads(rows):
            threads = self._replication_threads()
            seen = with_listed_states(rows, threads)
            if seen is None and not threads:
                self._note("workers", UnreadReason.PRIVILEGE, NEEDS_PROCESS)
            elif seen is None:
                self._note("workers", UnreadReason.UNSUPPORTED, NOT_ASSIGNED)
            rows = seen or rows
        return workers_by_channel(rows)

    def _replication_threads(self) -> list[Row]:
        """Return the replication threads of the process list, including receivers."""
        listed = threads_in(self._all(PROCESSLIST, "State"))
        if any(map(may_wait_for_row, listed)):
            return waiting_for_rows(listed, self._all(ROW_LOCK_WAITS, "thread"))
        return listed

    def _group(self, dialect: Dialect) -> GroupSnapshot | None:
        """Return this member's view of its group; None if it is in none, or OFFLINE.

        The plugin's own variable shows whether there is a group to query.
        """
        name = self._so_far().setting("group_replication_group_name")
        if not name:
            return None
        rows = self._all(group_statement(dialect), "member_state")
        own = next((row for row in rows if row["is_this"]), None)
        if own is None:
            return None
        workers = self._all(workers_statement(dialect), "worker_id")
        return group_from_rows(name, own, rows, workers)

    def _log_end(self, dialect: Dialect) -> LogPosition | None:
        rows = self._all(dialect.show_binary_log_status, "File")
        if not rows:
            self._shows_no_log = True  # binary logging is off, or the server closed the log
            return None
        self._binary_log_filters = tuple(
            (ours, str(rows[0][column]))
            for column, ours in BINARY_LOG_FILTERS.items()
            if rows[0].get(column)
        )
        return LogPosition.of(file=str(rows[0]["File"]), position=int(rows[0]["Position"]))

    def _binary_logs(self) -> tuple[BinaryLog, ...]:
        try:
            rows = self._all(BINARY_LOGS, "Log_name")
        except pymysql.MySQLError as error:
            if error.args[0] == ER.NO_BINARY_LOGGING:
                return ()
            raise
        return tuple(map(binary_log_from_row, rows))

    def _settings(self, dialect: Dialect) -> tuple[tuple[str, str], ...]:
        rows = self._all_once(settings_statement(), "Variable_name")
        values = {str(row["Variable_name"]): str(row["Value"]) for row in rows}
        found = (
            (ours, next((values[name] for name in names if name in values), None))
            for ours, names in SETTINGS_READ.items()
        )
        known = {ours: value for ours, value in found if value is not None}
        is_on = known.get("log_bin") in ("ON", "1")
        if is_on and self._shows_no_log and self._found["binary_logs"] == ():
            known[BINARY_LOG] = LOG_CLOSED
        if dialect.has_variables_info:  # empty without performance_schema (seen on 9.7.4)
            for row in self._all_once(VARIABLES_INFO, "name", "source"):
                known[SOURCES_OF_VALUES[str(row["name"])]] = str(row["source"])
        return tuple(sorted({**known, **dict(self._binary_log_filters)}.items()))

    def _parsed(self, name: str, row: Row) -> GtidSet | None:
        return self._fact(name, lambda: GtidSet.parse(str(row[name])))

    def _fact(self, name: str, read: Callable[[], T]) -> T | None:
        """Return one fact, or record why it could not be read.

        Raises:
            LostServer: the connection was lost; no other fact can be read.
        """
        begun = time.monotonic()
        try:
            return read()
        except (GtidError, ValueError) as error:
            self._note(name, UnreadReason.UNPARSEABLE, str(error))
        # A proxy or a server of another kind: a column is missing or has another type.
        except (LookupError, TypeError, AttributeError) as error:
            self._unread.append(unexpected_answer(name, error))
        except AnswerTooLong as error:
            self._note(name, UnreadReason.ERROR, str(error.args[1]))
            self._connection = self._reopen()
            self._batch = StatementBatch(self._connection, ())
        except (pymysql.MySQLError, OSError) as error:
            timed_out = time.monotonic() - begun >= self._timeout_seconds_max
            unread = unread_fact(name, error, timed_out=timed_out)
            if unread.reason in (UnreadReason.UNREACHABLE, UnreadReason.TIMEOUT):
                detail = f"while reading {name}: {unread.detail}"
                raise LostServer(UnreadFact("connection", unread.reason, detail)) from error
            self._unread.append(unread)
        return None

    def _note(self, fact: str, reason: UnreadReason, detail: str) -> None:
        self._unread.append(UnreadFact(fact, reason, detail))

    def _set(self, **values: Any) -> None:  # noqa: ANN401 - fields of any type
        self._found |= values

    def _so_far(self) -> ServerSnapshot:
        return replace(self._empty, **self._found)

    def _all(self, statement: str, *expected: str) -> list[Row]:
        return self._batch.rows(statement, *expected)

    def _all_once(self, statement: str, *expected: str) -> list[Row]:
        if statement not in self._kept:
            self._kept[statement] = self._all(statement, *expected)
        return self._kept[statement]

    def _one(self, statement: str) -> Row:
        return only_row(self._all(statement), statement)

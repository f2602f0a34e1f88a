"""Reads the locks of one server: metadata locks, row locks, owned GTIDs, and the sessions of both.

1. It only reads, one statement after the other. A wait may end in between: then one of its two ends
   is missing, and the wait is not shown, or without its blocker.
2. 5.7 and later show metadata locks in performance_schema, if the instrument is enabled (8.0: by
   default). Row locks are in performance_schema since 8.0.1, before in information_schema. Earlier
   versions show the state of a waiting session, and no holder.
3. What cannot be read is returned as an UnreadFact: without metadata locks an empty list would mean
   that nothing waits.
4. Statements are read as digests, which contain no values. The statement that a session executes
   now is read as it is, without passwords: it may contain values.

Source: reference manual, "Performance Schema Lock Tables", "The INFORMATION_SCHEMA INNODB_TRX
Table"; tried on 9.7.4 and 5.6.24 with each kind of lock (compose/faults_applier.py, LOCKS).
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any, Final

import pymysql

from gtid import GtidError
from topology.adapters.connection import Connection, connect
from topology.adapters.hidden_workers import SYSTEM_USER
from topology.adapters.reading_statements import VERSION
from topology.adapters.status import parse_owners
from topology.adapters.unread import unread_fact
from topology.locks.lock_waits import LockReading, LockSession, MetadataLock, RowWait
from topology.readings.dialect import RECEIVER_STATE, REPLICATION_THREADS, Dialect, dialect_of
from topology.readings.hidden_passwords import without_secrets
from topology.readings.snapshot import UnreadFact, UnreadReason
from topology.readings.target import ServerTarget
from topology.readings.version import ServerVersion, UnreadableVersion, Vendor, vendor_of

Row = Mapping[str, Any]

_OWNED: Final = "SELECT @@GLOBAL.gtid_owned AS owned"
_INSTRUMENT: Final = (
    "SELECT ENABLED AS enabled FROM performance_schema.setup_instruments"
    " WHERE NAME = 'wait/lock/metadata/sql/mdl'"
)
_PENDING: Final = (
    "SELECT COUNT(*) AS pending FROM performance_schema.metadata_locks"
    " WHERE LOCK_STATUS = 'PENDING'"
)
_METADATA: Final = (
    "SELECT l.OBJECT_TYPE AS object_type, l.OBJECT_SCHEMA AS schema_name, l.OBJECT_NAME AS name,"
    " l.LOCK_TYPE AS lock_type, l.LOCK_STATUS AS status, t.PROCESSLIST_ID AS session"
    " FROM performance_schema.metadata_locks l"
    " LEFT JOIN performance_schema.threads t ON t.THREAD_ID = l.OWNER_THREAD_ID"
    " WHERE l.LOCK_STATUS IN ('PENDING', 'GRANTED')"
)
_ROW_WAITS: Final = (
    "SELECT r.PROCESSLIST_ID AS waiting, t.trx_mysql_thread_id AS blocking,"
    " l.OBJECT_SCHEMA AS schema_name, l.OBJECT_NAME AS name"
    " FROM performance_schema.data_lock_waits w"
    " JOIN performance_schema.data_locks l ON l.ENGINE_LOCK_ID = w.REQUESTING_ENGINE_LOCK_ID"
    " JOIN performance_schema.threads r ON r.THREAD_ID = w.REQUESTING_THREAD_ID"
    " JOIN information_schema.INNODB_TRX t ON t.trx_id = w.BLOCKING_ENGINE_TRANSACTION_ID"
)
_OLD_ROW_WAITS: Final = (
    "SELECT r.trx_mysql_thread_id AS waiting, b.trx_mysql_thread_id AS blocking,"
    " l.lock_table AS locked FROM information_schema.INNODB_LOCK_WAITS w"
    " JOIN information_schema.INNODB_TRX r ON r.trx_id = w.requesting_trx_id"
    " JOIN information_schema.INNODB_TRX b ON b.trx_id = w.blocking_trx_id"
    " JOIN information_schema.INNODB_LOCKS l ON l.lock_id = w.requested_lock_id"
)
_TRANSACTIONS: Final = (
    "SELECT trx_mysql_thread_id AS session,"
    " GREATEST(0, TIMESTAMPDIFF(SECOND, trx_started, NOW())) AS seconds"
    " FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id > 0"
)
_SESSIONS: Final = (
    "SELECT p.PROCESSLIST_ID AS session, p.PROCESSLIST_USER AS user, p.PROCESSLIST_HOST AS host,"
    " p.PROCESSLIST_COMMAND AS command, p.PROCESSLIST_STATE AS state,"
    " p.PROCESSLIST_TIME AS seconds, p.PROCESSLIST_INFO AS query,"
    " w.CHANNEL_NAME AS channel, w.WORKER_ID AS worker, p.NAME AS thread"
    " FROM performance_schema.threads p"
    " LEFT JOIN performance_schema.replication_applier_status_by_worker w"
    " ON w.THREAD_ID = p.THREAD_ID"
    " WHERE p.PROCESSLIST_ID IS NOT NULL AND p.PROCESSLIST_ID <> CONNECTION_ID()"
)
_OLD_SESSIONS: Final = (
    "SELECT ID AS session, USER AS user, HOST AS host, COMMAND AS command, STATE AS state,"
    " TIME AS seconds, INFO AS query FROM information_schema.PROCESSLIST"
    " WHERE ID <> CONNECTION_ID()"
)
_DIGESTS: Final = (
    "SELECT t.PROCESSLIST_ID AS session, h.DIGEST_TEXT AS text"
    " FROM performance_schema.events_statements_history h"
    " JOIN performance_schema.threads t ON t.THREAD_ID = h.THREAD_ID"
    " WHERE h.DIGEST_TEXT IS NOT NULL ORDER BY h.THREAD_ID, h.EVENT_ID"
)


class LockReader:
    """Reads the locks of one server, once."""

    def __init__(self, target: ServerTarget, *, seconds_max: float) -> None:
        self._target = target
        self._seconds_max = seconds_max
        self._unread: list[UnreadFact] = []

    def read(self) -> tuple[LockReading, tuple[UnreadFact, ...]]:
        """Return the locks, and what could not be read. Never raises for what the server does."""
        reading = LockReading({})
        try:
            with closing(
                connect(self._target, timeout_seconds_max=self._seconds_max)
            ) as connection:
                reading = self._read(connection)
        except (pymysql.MySQLError, OSError) as error:
            self._unread.append(unread_fact("connection", error, timed_out=False))
        return reading, tuple(self._unread)

    def _read(self, connection: Connection) -> LockReading:
        [row] = self._rows(connection, VERSION)
        try:
            version = ServerVersion.parse(str(row["version"]))
        except UnreadableVersion as error:
            self._unread.append(UnreadFact("version", UnreadReason.UNPARSEABLE, str(error)))
            return LockReading({})
        vendor = vendor_of(
            version_text=str(row["version"]), version_comment=str(row["version_comment"])
        )
        if vendor is Vendor.MARIADB:
            self._unread.append(
                UnreadFact("locks", UnreadReason.UNSUPPORTED, "MariaDB shows locks in other tables")
            )
            return LockReading({})
        dialect = dialect_of(version)
        metadata = self._metadata(connection, dialect)
        rows = self._row_waits(connection, dialect)
        owners = self._owners(connection)
        return LockReading(self._sessions(connection, dialect, owners), metadata, rows, owners)

    def _metadata(self, connection: Connection, dialect: Dialect) -> tuple[MetadataLock, ...]:
        if not dialect.has_worker_status:
            return ()  # no table before 5.7: the states of sessions are all there is
        instrument = self._fact("metadata locks", connection, _INSTRUMENT)
        if instrument is None:
            return ()
        if [str(row["enabled"]) for row in instrument] != ["YES"]:
            detail = (
                "the instrument is off: UPDATE performance_schema.setup_instruments"
                " SET ENABLED = 'YES' WHERE NAME = 'wait/lock/metadata/sql/mdl'"
            )
            self._unread.append(UnreadFact("metadata locks", UnreadReason.UNSUPPORTED, detail))
            return ()
        pending = self._fact("metadata locks", connection, _PENDING)
        if not pending or not pending[0]["pending"]:
            return ()
        return tuple(
            MetadataLock(
                object_type=_text(row["object_type"]),
                schema=_text(row["schema_name"]),
                name=_text(row["name"]),
                lock_type=_text(row["lock_type"]),
                is_granted=_text(row["status"]) == "GRANTED",
                session_id=None if row["session"] is None else int(row["session"]),
            )
            for row in self._fact("metadata locks", connection, _METADATA) or ()
        )

    def _row_waits(self, connection: Connection, dialect: Dialect) -> tuple[RowWait, ...]:
        statement = _ROW_WAITS if dialect.has_applying_transaction else _OLD_ROW_WAITS
        found = []
        for row in self._fact("row locks", connection, statement) or ():
            schema, table = _text(row.get("schema_name")), _text(row.get("name"))
            if "locked" in row:  # `schema`.`table`, quoted
                schema, _, table = _text(row["locked"]).replace("`", "").partition(".")
            found.append(RowWait(int(row["waiting"]), int(row["blocking"]) or None, schema, table))
        return tuple(found)

    def _owners(self, connection: Connection) -> tuple[tuple[str, int], ...]:
        rows = self._fact("gtid_owned", connection, _OWNED)
        try:
            return parse_owners(str(rows[0]["owned"])) if rows else ()
        except GtidError as error:
            self._unread.append(UnreadFact("gtid_owned", UnreadReason.UNPARSEABLE, str(error)))
            return ()

    def _sessions(
        self, connection: Connection, dialect: Dialect, owners: Iterable[tuple[str, int]]
    ) -> dict[int, LockSession]:
        is_new = dialect.has_worker_status
        statement = _SESSIONS if is_new else _OLD_SESSIONS
        rows = self._fact("sessions", connection, statement) or []
        gtids = {owner: gtid for gtid, owner in owners}
        found = {int(row["session"]): _session(row, gtids) for row in rows}
        for row in self._fact("transactions", connection, _TRANSACTIONS) or ():
            number = int(row["session"])
            if number in found:
                found[number] = replace(found[number], transaction_seconds=int(row["seconds"]))
        texts: dict[int, list[str]] = {}
        for row in (self._fact("statements", connection, _DIGESTS) or ()) if is_new else ():
            texts.setdefault(int(row["session"] or 0), []).append(_text(row["text"]))
        for number, digests in texts.items():
            if number in found:
                found[number] = replace(found[number], statements=tuple(digests))
        return found

    def _fact(self, name: str, connection: Connection, statement: str) -> list[Row] | None:
        try:
            return self._rows(connection, statement)
        except pymysql.MySQLError as error:
            unread = unread_fact(name, error, timed_out=False)
            if unread.reason in (UnreadReason.UNREACHABLE, UnreadReason.TIMEOUT):
                raise
            if unread not in self._unread:
                self._unread.append(unread)
            return None

    @staticmethod
    def _rows(connection: Connection, statement: str) -> list[Row]:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())


def _session(row: Row, gtids: Mapping[int, str]) -> LockSession:
    number = int(row["session"])
    channel, worker = row.get("channel"), row.get("worker")
    if channel is None and _text(row.get("thread")).startswith(REPLICATION_THREADS):
        channel = ""  # a coordinator or a receiver: it is in no table of workers
    is_old_thread = "channel" not in row and _text(row["user"]) == SYSTEM_USER
    if is_old_thread and not re.search(RECEIVER_STATE, _text(row["state"])):
        channel, worker = "", 0
    return LockSession(
        session_id=number,
        user=_text(row["user"]),
        host=_text(row["host"]),
        command=_text(row["command"]),
        state=_text(row["state"]),
        seconds=None if row["seconds"] is None else max(0, int(row["seconds"])),
        query=without_secrets(_text(row["query"])),
        gtid=gtids.get(number, ""),
        channel=None if channel is None else _text(channel),
        worker=None if worker is None else int(worker),
    )


def _text(value: object) -> str:
    if value is None:
        return ""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)

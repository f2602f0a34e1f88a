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
from typing import Final

import pymysql

from binlog.adapters.set_statements import OWNED
from topology.adapters.answered_rows import FactsOfConnection, NotShown, Row, rows_of, text_of
from topology.adapters.connection import Connection, connect
from topology.adapters.hidden_workers import SYSTEM_USER
from topology.adapters.reading_statements import VERSION
from topology.adapters.status import parse_owners
from topology.adapters.vendor_facts import vendor_of_row
from topology.locks.lock_waits import LockReading, LockSession, MetadataLock, RowWait
from topology.readings.dialect import RECEIVER_STATE, REPLICATION_THREADS, Dialect, dialect_of
from topology.readings.hidden_passwords import without_secrets
from topology.readings.snapshot import UnreadFact
from topology.readings.target import ServerTarget
from topology.readings.vendors import row_of
from topology.readings.version import ServerVersion

_OWNED: Final = f"SELECT {OWNED} AS owned"
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
    " JOIN performance_schema.threads r"
    " ON r.THREAD_ID = w.REQUESTING_THREAD_ID AND r.PROCESSLIST_ID IS NOT NULL"
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
    " GREATEST(0, TIMESTAMPDIFF(SECOND, trx_started, NOW())) AS seconds,"
    " trx_rows_modified AS changed FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id > 0"
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
    " WHERE h.DIGEST_TEXT IS NOT NULL AND t.PROCESSLIST_ID IS NOT NULL"
    " ORDER BY h.THREAD_ID, h.EVENT_ID"
)


def read_locks(
    target: ServerTarget, *, seconds_max: float
) -> tuple[LockReading, tuple[UnreadFact, ...]]:
    """Return the locks of a server, and what could not be read.

    Never raises for what the server does. `seconds_max` limits connecting and each answer.
    """
    facts = FactsOfConnection(seconds_max)
    reading = LockReading({})
    try:
        connection = facts.take(
            "connection", lambda: connect(target, timeout_seconds_max=seconds_max)
        )
        if connection is not None:
            with closing(connection):
                reading = _Locks(connection, facts).read()
    except (pymysql.MySQLError, OSError):
        assert facts.unread, "a lost connection is noted"
    return reading, tuple(facts.unread)


class _Locks:
    """One pass over the locks of one server."""

    def __init__(self, connection: Connection, facts: FactsOfConnection) -> None:
        self._connection = connection
        self._facts = facts

    def read(self) -> LockReading:
        dialect = self._facts.take("version", self._dialect)
        if dialect is None:
            return LockReading({})
        metadata = self._facts.take("metadata locks", lambda: self._metadata(dialect)) or ()
        rows = self._facts.take("row locks", lambda: self._row_waits(dialect)) or ()
        owners = self._facts.take("gtid_owned", self._owners) or ()
        sessions = self._facts.take("sessions", lambda: self._sessions(dialect, owners)) or {}
        opened = self._facts.take("transactions", self._transactions) or {}
        executed = {}
        if dialect.has_worker_status:
            executed = self._facts.take("statements", self._statements) or {}
        completed = {
            number: replace(
                each,
                transaction_seconds=opened.get(number, (None, None))[0],
                transaction_rows=opened.get(number, (None, None))[1],
                statements=tuple(executed.get(number, ())),
            )
            for number, each in sessions.items()
        }
        return LockReading(completed, metadata, rows, owners)

    def _dialect(self) -> Dialect:
        row = self._one(VERSION, "version")
        version, vendor = str(row["version"]), vendor_of_row(row)
        if row_of(vendor).unevaluated:
            raise NotShown(f"{vendor.value} {version} shows its locks in other tables")
        self._facts.vendor = vendor
        return dialect_of(ServerVersion.parse(version))

    def _metadata(self, dialect: Dialect) -> tuple[MetadataLock, ...]:
        if not dialect.has_worker_status:
            return ()  # no table before 5.7: the states of sessions are all there is
        enabled = [str(row["enabled"]) for row in self._rows(_INSTRUMENT, "enabled")]
        if not enabled:
            raise NotShown("performance_schema is OFF")
        if enabled != ["YES"]:
            raise NotShown(
                "the instrument is off: UPDATE performance_schema.setup_instruments"
                " SET ENABLED = 'YES' WHERE NAME = 'wait/lock/metadata/sql/mdl'"
            )
        if not self._one(_PENDING, "pending")["pending"]:
            return ()
        return tuple(
            MetadataLock(
                object_type=text_of(row["object_type"]),
                schema=text_of(row["schema_name"]),
                name=text_of(row["name"]),
                lock_type=text_of(row["lock_type"]),
                is_granted=text_of(row["status"]) == "GRANTED",
                session_id=None if row["session"] is None else int(row["session"]),
            )
            for row in self._rows(_METADATA, "lock_type")
        )

    def _row_waits(self, dialect: Dialect) -> tuple[RowWait, ...]:
        statement = _ROW_WAITS if dialect.has_applying_transaction else _OLD_ROW_WAITS
        found = []
        for row in self._rows(statement, "waiting"):
            schema, table = text_of(row.get("schema_name")), text_of(row.get("name"))
            if "locked" in row:  # `schema`.`table`, quoted
                schema, _, table = text_of(row["locked"]).replace("`", "").partition(".")
            found.append(RowWait(int(row["waiting"]), int(row["blocking"]) or None, schema, table))
        return tuple(found)

    def _owners(self) -> tuple[tuple[str, int], ...]:
        return parse_owners(text_of(self._one(_OWNED, "owned")["owned"]))

    def _sessions(
        self, dialect: Dialect, owners: Iterable[tuple[str, int]]
    ) -> dict[int, LockSession]:
        statement = _SESSIONS if dialect.has_worker_status else _OLD_SESSIONS
        gtids = {owner: gtid for gtid, owner in owners}
        return {
            int(row["session"]): _session(row, gtids) for row in self._rows(statement, "session")
        }

    def _transactions(self) -> dict[int, tuple[int, int]]:
        """Return how long each session's transaction is open, and how many rows it has changed."""
        rows = self._rows(_TRANSACTIONS, "session")
        return {int(row["session"]): (int(row["seconds"]), int(row["changed"])) for row in rows}

    def _statements(self) -> dict[int, list[str]]:
        texts: dict[int, list[str]] = {}
        for row in self._rows(_DIGESTS, "session"):
            texts.setdefault(int(row["session"]), []).append(text_of(row["text"]))
        return texts

    def _rows(self, statement: str, expected: str) -> list[Row]:
        return rows_of(self._connection, statement, expected)

    def _one(self, statement: str, expected: str) -> Row:
        [row] = self._rows(statement, expected)
        return row


def _session(row: Row, gtids: Mapping[int, str]) -> LockSession:
    number = int(row["session"])
    channel, worker = row.get("channel"), row.get("worker")
    if channel is None and text_of(row.get("thread")).startswith(REPLICATION_THREADS):
        channel = ""  # a coordinator or a receiver: it is in no table of workers
    is_old_thread = "channel" not in row and text_of(row["user"]) == SYSTEM_USER
    if is_old_thread and not re.search(RECEIVER_STATE, text_of(row["state"])):
        channel, worker = "", 0
    return LockSession(
        session_id=number,
        user=text_of(row["user"]),
        host=text_of(row["host"]),
        command=text_of(row["command"]),
        state=text_of(row["state"]),
        seconds=None if row["seconds"] is None else max(0, int(row["seconds"])),
        query=without_secrets(text_of(row["query"])),
        gtid=gtids.get(number, ""),
        channel=None if channel is None else text_of(channel),
        worker=None if worker is None else int(worker),
    )

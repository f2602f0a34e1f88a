"""Reads one live server over PyMySQL: statements out, frozen facts back.

1. Reads only. It sends SELECT and SHOW; the tests hold it to a list.
2. Every fact is read on its own. One that cannot be read becomes an UnreadFact with the server's
   own words, and the others are read all the same; only a lost connection ends the reading.
3. The order of reading is part of the proof: gtid_owned, then gtid_purged, then gtid_executed (what
   is committing meanwhile shows in at least one; purged stays within executed), then the channels
   (SHOW REPLICA STATUS, then the workers), then the end of the binary log (everything executed lies
   before it).
4. No judgement. Old servers answer in old words; dialect.py translates.
"""

import ssl
import struct
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from uuid import UUID

import pymysql
from pymysql.constants import CR, ER
from pymysql.cursors import DictCursor

from gtid import GtidError, GtidSet
from topology.adapters.reading_statements import (
    IDENTITY,
    UPTIME,
    VERSION,
    group_statement,
    workers_statement,
)
from topology.adapters.status import channel_from_row, parse_owned, workers_by_channel
from topology.dialect import SETTINGS, Dialect, dialect_of
from topology.quoting import quote_string
from topology.snapshot import (
    BinaryLog,
    ChannelSnapshot,
    GroupSnapshot,
    LogPosition,
    ServerSnapshot,
    UnreadFact,
    UnreadReason,
)
from topology.target import ServerTarget
from topology.version import ServerVersion, UnreadableVersion, Vendor, vendor_of

Row = Mapping[str, Any]
T = TypeVar("T")
Connection: TypeAlias = "pymysql.connections.Connection[DictCursor]"
if TYPE_CHECKING:  # generic in the stubs, not at run time
    _Base = pymysql.connections.Connection[DictCursor]
else:
    _Base = pymysql.connections.Connection

_OLDEST = ServerVersion(5, 6, 0)

_PRIVILEGE_ERRORS = frozenset(
    {
        ER.SPECIFIC_ACCESS_DENIED_ERROR,
        ER.TABLEACCESS_DENIED_ERROR,
        ER.COLUMNACCESS_DENIED_ERROR,
        ER.DBACCESS_DENIED_ERROR,
    }
)
_ACCOUNT_LOCKED, _PASSWORD_EXPIRED, _TOO_MANY, _OFFLINE = 3118, 1862, 1040, 3032
_REFUSED_ERRORS = frozenset(
    {ER.ACCESS_DENIED_ERROR, ER.HOST_NOT_PRIVILEGED, ER.HOST_IS_BLOCKED}
    | {_ACCOUNT_LOCKED, _PASSWORD_EXPIRED, _TOO_MANY, _OFFLINE}
)
_LOST_CONNECTION = frozenset(
    {CR.CR_SERVER_GONE_ERROR, CR.CR_SERVER_LOST, CR.CR_CONN_HOST_ERROR, CR.CR_CONNECTION_ERROR}
)


class LostServer(Exception):
    """The connection is gone: nothing more can be read. Carries the fact to report."""

    def __init__(self, fact: UnreadFact) -> None:
        super().__init__(f"{fact.fact}: {fact.reason.value}: {fact.detail}")
        self.fact = fact


def _unverified_tls() -> ssl.SSLContext:
    """Encrypt, and take the peer at its word, as the mysql client does when no CA is given."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class _Connection(_Base):
    """PyMySQL's connection, without reading the system's certificates where none is verified.

    Where TLS is used if the server offers it, PyMySQL builds a context with every CA of the system
    and then verifies nothing: 24 ms a connection. If PyMySQL renames the method, we are only
    slower.
    """

    def _create_ssl_ctx(self, options: object) -> ssl.SSLContext:
        if isinstance(options, ssl.SSLContext):
            return options
        assert options == {}, "only contexts are given, or nothing"
        return _unverified_tls()


def connect(target: ServerTarget, *, timeout_seconds_max: float) -> Connection:
    """Open a connection with a bound on connecting and on every answer.

    Raises:
        pymysql.MySQLError: the server is not there, or does not let the account in.
        OSError: an address that cannot be resolved, a certificate that cannot be read.
    """
    tls: ssl.SSLContext | None = None
    if target.ssl_ca:
        tls = ssl.create_default_context(cafile=target.ssl_ca)
    elif target.ssl_required or target.ssl_cert:
        tls = _unverified_tls()
    if tls is not None and target.ssl_cert is not None:
        tls.load_cert_chain(target.ssl_cert, target.ssl_key)
    return _Connection(
        host=target.host,
        port=target.port,
        unix_socket=target.unix_socket,
        user=target.user,
        # As bytes: of a text PyMySQL knows only Latin-1, fails on the rest, and quotes it. A server
        # compares what the client sent, and clients of today send UTF-8.
        password=target.password.reveal().encode(),
        ssl=tls,
        connect_timeout=max(1, round(timeout_seconds_max)),
        read_timeout=timeout_seconds_max,
        write_timeout=timeout_seconds_max,
        charset="utf8mb4",
        autocommit=True,
        # A server-wide PAD_CHAR_TO_FULL_LENGTH would pad the names of channels, and other modes
        # change what a quoted text means.
        sql_mode="",
        program_name="gtid-audit",
        cursorclass=DictCursor,
    )


class MysqlReader:
    """Reads one server, phase after phase, over one connection."""

    def __init__(self, target: ServerTarget, *, cluster: str, timeout_seconds_max: float) -> None:
        self._target = target
        self._cluster = cluster
        self._timeout_seconds_max = timeout_seconds_max
        self._connection: Connection | None = None

    def read(self, *, phase: int) -> ServerSnapshot:
        """Take one reading. Never raises for what the server does; says it in `unread`."""
        started = datetime.now(UTC)
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
            reading = _Reading(self._connection, empty, self._timeout_seconds_max)
            reading.read_all()
            snapshot = reading.snapshot
        except LostServer as lost:
            self.close()
            snapshot = replace(empty, unread=(lost.fact,))
        return replace(snapshot, read_ended=datetime.now(UTC))

    def close(self) -> None:
        """Close the connection, if there is one. Safe to call twice."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(pymysql.MySQLError, OSError):  # closing what is already broken
                connection.close()

    def _connect(self) -> Connection:
        begun = time.monotonic()
        try:
            return connect(self._target, timeout_seconds_max=self._timeout_seconds_max)
        except (pymysql.MySQLError, OSError) as error:
            waited = time.monotonic() - begun
            raise LostServer(
                _unread("connection", error, timed_out=waited >= self._timeout_seconds_max)
            ) from error
        # What answers may be anything; PyMySQL trips over a greeting that is not MySQL's.
        except (IndexError, ValueError, struct.error) as error:
            detail = f"the answer is not MySQL's protocol ({type(error).__name__}: {error})"
            raise LostServer(UnreadFact("connection", UnreadReason.UNREACHABLE, detail)) from error


class _Reading:
    """One pass over the facts of one server."""

    def __init__(
        self, connection: Connection, empty: ServerSnapshot, timeout_seconds_max: float
    ) -> None:
        self._connection = connection
        self._timeout_seconds_max = timeout_seconds_max
        self._unread: list[UnreadFact] = []
        self.snapshot = empty

    def read_all(self) -> None:
        dialect = self._read_identity()
        if dialect is not None:
            # Reading SHOW REPLICA STATUS before the log's end lets a receiver be compared with it.
            self._set(channels=self._fact("channels", lambda: self._channels(dialect)))
            self._set(log_end=self._fact("log_end", lambda: self._log_end(dialect)))
            self._set(uptime_seconds=self._fact("uptime_seconds", self._uptime))
            self._set(binary_logs=self._fact("binary_logs", self._binary_logs))
            self._set(settings=self._fact("settings", self._settings))
            self._set(group=self._fact("group", lambda: self._group(dialect)))
        self._set(unread=tuple(sorted(self._unread)))

    def _read_identity(self) -> Dialect | None:
        """Read who the server is and its sets; None if it is not one we can judge."""
        version_row = self._fact("version", lambda: self._one(VERSION))
        if version_row is None:
            return None
        text = str(version_row["version"])
        vendor = vendor_of(version_text=text, version_comment=str(version_row["version_comment"]))
        self._set(version_text=text, vendor=vendor)
        try:
            version = ServerVersion.parse(text)
        except UnreadableVersion as error:
            self._note("version", UnreadReason.UNPARSEABLE, str(error))
            return None
        self._set(version=version)
        if vendor is Vendor.MARIADB or version < _OLDEST:
            self._note(
                "gtid_executed",
                UnreadReason.UNSUPPORTED,
                f"{vendor.value} {text} has no MySQL GTIDs",
            )
            return None
        row = self._fact("gtid_executed", lambda: self._one(IDENTITY))
        if row is None:
            return None
        if str(row["gtid_mode"]).startswith("OFF"):
            detail = f"gtid_mode is {row['gtid_mode']}: new transactions get no GTID"
            self._note("gtid_executed", UnreadReason.UNSUPPORTED, detail)
            return None
        self._set(
            server_id=int(row["server_id"]),
            server_clock=row["server_clock"].replace(tzinfo=UTC),
            server_uuid=self._fact("server_uuid", lambda: UUID(str(row["server_uuid"]))),
            gtid_owned=self._fact("gtid_owned", lambda: parse_owned(str(row["gtid_owned"]))),
            gtid_purged=self._parsed("gtid_purged", row),
            gtid_executed=self._parsed("gtid_executed", row),
        )
        return dialect_of(version)

    def _channels(self, dialect: Dialect) -> tuple[ChannelSnapshot, ...]:
        rows = self._all(dialect.show_replica_status)
        workers = (
            self._fact("workers", lambda: self._workers(dialect))
            if dialect.has_worker_status
            else {}
        )
        channels = [channel_from_row(row, workers or {}) for row in rows]
        return tuple(sorted(channels, key=lambda channel: channel.name))

    def _workers(self, dialect: Dialect) -> dict[str, list[Row]]:
        return workers_by_channel(self._all(workers_statement(dialect)))

    def _group(self, dialect: Dialect) -> GroupSnapshot | None:
        """Read this member's view of its group; None if it is in none, or OFFLINE.

        The plugin's own variable shows whether there is a group to ask for.
        """
        name = self.snapshot.setting("group_replication_group_name")
        if not name:
            return None
        rows = self._all(group_statement(dialect))
        if not rows:
            return None
        (row,) = rows
        return GroupSnapshot(
            group_name=name,
            member_state=str(row["member_state"]),
            member_role=str(row["member_role"]),
            received=GtidSet.parse(str(row["received"] or "")),
        )

    def _log_end(self, dialect: Dialect) -> LogPosition | None:
        rows = self._all(dialect.show_binary_log_status)
        if not rows:
            return None  # the binary log is off
        return LogPosition.of(file=str(rows[0]["File"]), position=int(rows[0]["Position"]))

    def _uptime(self) -> int:
        return int(self._one(UPTIME)["Value"])

    def _binary_logs(self) -> tuple[BinaryLog, ...]:
        try:
            rows = self._all("SHOW BINARY LOGS")
        except pymysql.MySQLError as error:
            if error.args[0] == ER.NO_BINARY_LOGGING:
                return ()
            raise
        return tuple(
            BinaryLog(
                name=str(row["Log_name"]),
                size_bytes=int(row["File_size"]),
                encrypted=row["Encrypted"] == "Yes" if "Encrypted" in row else None,
            )
            for row in rows
        )

    def _settings(self) -> tuple[tuple[str, str], ...]:
        names = ", ".join(quote_string(name) for names in SETTINGS.values() for name in names)
        rows = self._all(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})")
        values = {str(row["Variable_name"]): str(row["Value"]) for row in rows}
        found = (
            (ours, next((values[name] for name in names if name in values), None))
            for ours, names in SETTINGS.items()
        )
        return tuple(sorted((ours, value) for ours, value in found if value is not None))

    def _parsed(self, name: str, row: Row) -> GtidSet | None:
        return self._fact(name, lambda: GtidSet.parse(str(row[name])))

    def _fact(self, name: str, read: Callable[[], T]) -> T | None:
        """Read one fact, or note why it could not be read.

        Raises:
            LostServer: the connection did not survive; no other fact can be read.
        """
        begun = time.monotonic()
        try:
            return read()
        except (GtidError, ValueError) as error:
            self._note(name, UnreadReason.UNPARSEABLE, str(error))
        except (pymysql.MySQLError, OSError) as error:
            timed_out = time.monotonic() - begun >= self._timeout_seconds_max
            unread = _unread(name, error, timed_out=timed_out)
            if unread.reason in (UnreadReason.UNREACHABLE, UnreadReason.TIMEOUT):
                detail = f"while reading {name}: {unread.detail}"
                raise LostServer(UnreadFact("connection", unread.reason, detail)) from error
            self._unread.append(unread)
        return None

    def _note(self, fact: str, reason: UnreadReason, detail: str) -> None:
        self._unread.append(UnreadFact(fact, reason, detail))

    def _set(self, **values: Any) -> None:  # noqa: ANN401 - fields of ServerSnapshot, checked there
        self.snapshot = replace(self.snapshot, **values)

    def _all(self, statement: str) -> list[Row]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def _one(self, statement: str) -> Row:
        rows = self._all(statement)
        if len(rows) != 1:
            raise ValueError(f"expected one row, got {len(rows)}: {statement}")
        return rows[0]


def _unread(fact: str, error: Exception, *, timed_out: bool) -> UnreadFact:
    number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    detail = str(error.args[1]) if len(error.args) > 1 else str(error)
    if isinstance(error, TimeoutError) or (timed_out and number in _LOST_CONNECTION):
        return UnreadFact(fact, UnreadReason.TIMEOUT, detail)
    if number in _PRIVILEGE_ERRORS:
        return UnreadFact(fact, UnreadReason.PRIVILEGE, detail)
    if number in _REFUSED_ERRORS:
        return UnreadFact(fact, UnreadReason.REFUSED, detail)
    if isinstance(error, OSError) or number in _LOST_CONNECTION or not number:
        return UnreadFact(fact, UnreadReason.UNREACHABLE, detail)
    return UnreadFact(fact, UnreadReason.ERROR, f"error {number}: {detail}")

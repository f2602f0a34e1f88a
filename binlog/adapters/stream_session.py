"""Opens a dump on a live server: connects, sets session variables, sends the dump request.

1. gtid-audit is a reader, not a replica: it never registers. So it does not appear in the list of
   replicas, does not delay a purge, and no semi-synchronous source waits for it.
2. A dump uses up its connection: the server closes it after the response. gtid-audit closes it
   earlier if it stops reading.
3. server_id: SERVER_ID_BASE plus the connection id on that server. A server ends an older dump with
   the same replica UUID or, without a UUID, with the same server_id (kill_zombie_dump_threads,
   sql/rpl_source.cc). gtid-audit sends no UUID, so its dump never ends that of a replica.
   Connection ids are unique on a server, so two auditors do not end each other's dumps either.
4. Every failure is raised as one of `binlog.errors`, with the server's text unchanged.

Privilege needed: REPLICATION SLAVE.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import pymysql
from pymysql.connections import Connection
from pymysql.constants import COMMAND

from binlog.adapters.server_errors import broken, read_answer, server_error
from binlog.adapters.set_statements import EXECUTED
from binlog.decode import FIRST_POSITION
from binlog.errors import (
    BinlogError,
    BinlogMisuse,
    DumpBroken,
    DumpRefused,
    DumpTimedOut,
    LimitExceeded,
)
from binlog.events import ChecksumAlgorithm
from gtid import GtidSet
from gtid import binary as gtid_binary

# How to open a connection: a function, or the keyword arguments of pymysql.connect.
Connect: TypeAlias = "Callable[[], Connection[Any]] | Mapping[str, Any]"

# Above the values that operators assign; below 2^32 with any connection id that can occur.
SERVER_ID_BASE = 0xF000_0000
_SERVER_ID_ROOM = 0x0FFF_FFFF

# sql/rpl_constants.h. COM_BINLOG_DUMP_GTID is new in 5.6 and 0x1e (include/my_command.h).
_DUMP_NON_BLOCK = 0x1
_DUMP_HEARTBEATS_V2 = 0x2  # positions of 64 bits in heartbeats: 8.0.26; ignored before
_DUMP_THROUGH_GTID = 0x4
# COM_BINLOG_DUMP has a position of four bytes.
_POSITION_END = 1 << 32

_HEARTBEAT_SECONDS_MAX = 30.0
_NANOSECONDS = 1_000_000_000
# Session variables that inform a source of the reader's capabilities. Servers since 8.0.26 read the
# first of each pair, older servers the second; each ignores the other.
_PREPARE = (
    "SET @source_binlog_checksum = @@GLOBAL.binlog_checksum,"
    " @master_binlog_checksum = @@GLOBAL.binlog_checksum,"
    " @source_heartbeat_period = {heartbeat}, @master_heartbeat_period = {heartbeat}"
)
_CHECKSUM = "SELECT @@GLOBAL.binlog_checksum"
_CHECKSUM_AND_SET = f"{_CHECKSUM}, {EXECUTED}"

RECONNECTS_MAX = 8
_FIRST_WAIT_SECONDS = 0.1
_ASKED_AGAIN_SECONDS = 0.2
_EMPTY_ENDS_MAX = 2
# CR_CONNECTION_ERROR, CR_CONN_HOST_ERROR, CR_UNKNOWN_HOST.
_NO_CONNECTION = frozenset({2002, 2003, 2005})
# ER_SERVER_SHUTDOWN, ER_QUERY_INTERRUPTED, ER_CLIENT_INTERACTION_TIMEOUT: the server ended the
# session and did not reject the request, so the request can be repeated.
_CUT_BY_THE_SERVER = frozenset({1053, 1317, 4031})


def can_name(position: int) -> bool:
    """Return whether a dump can begin at a position."""
    return FIRST_POSITION <= position < _POSITION_END


@dataclass(frozen=True, slots=True)
class FromPlace:
    """All events from a place on; an event must start at `position`."""

    file: str
    position: int

    def __post_init__(self) -> None:
        if not can_name(self.position):
            raise BinlogMisuse(
                f"expected a position from {FIRST_POSITION} to {_POSITION_END - 1},"
                f" not {self.position}"
            )


@dataclass(frozen=True, slots=True)
class AllBut:
    """All transactions except `already`. The server refuses if it has purged any of them."""

    already: GtidSet


@dataclass(frozen=True, slots=True)
class Only:
    """The transactions in `wanted` that the server has executed.

    The request states that the reader already has everything else that the server has executed. So
    the server sends no others (verified on 5.6.24 and 9.7.4), except transactions that it commits
    during the dump; the caller drops these.
    """

    wanted: GtidSet


Wish: TypeAlias = FromPlace | AllBut | Only


@dataclass(slots=True)
class RequestLimits:
    """The remaining time and bytes of one request.

    For a single result, the timeout applies to the whole request. For a stream, it applies to each
    silence of the server: `renew` starts it again.
    """

    timeout_seconds_max: float
    deadline: float  # of time.monotonic
    bytes_max: int
    bytes_left: int

    @classmethod
    def start(cls, *, timeout_seconds_max: float, bytes_max: int) -> RequestLimits:
        """Start the timeout. Raises BinlogMisuse if it is not above 0."""
        if not timeout_seconds_max > 0:
            raise BinlogMisuse(f"expected a timeout above 0 s, not {timeout_seconds_max}")
        deadline = time.monotonic() + timeout_seconds_max
        return cls(timeout_seconds_max, deadline, bytes_max, bytes_max)

    def seconds_left(self) -> float:
        """Return the remaining seconds. Raises DumpTimedOut if no time is left."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise self.timed_out()
        return left

    def renew(self) -> None:
        """Start the timeout again."""
        self.deadline = time.monotonic() + self.timeout_seconds_max

    def timed_out(self) -> DumpTimedOut:
        """Return the error for an expired timeout."""
        return DumpTimedOut(timeout_seconds_max=self.timeout_seconds_max)

    def spend(self, count: int) -> None:
        """Count bytes before they are received. Raises LimitExceeded."""
        self.bytes_left -= count
        if self.bytes_left < 0:
            raise LimitExceeded(name="bytes_max", limit=self.bytes_max)


@dataclass(frozen=True, slots=True)
class Dump:
    """A requested dump: the connection, and the checksum algorithm of its events.

    `expected` is the set that must arrive before the end: the part of the wish that the server had
    executed at the time of the request. None for a wish for a place.
    """

    connection: Connection[Any]
    checksum: ChecksumAlgorithm
    expected: GtidSet | None


@contextmanager
def open_dump(
    connect: Connect, wish: Wish, bounds: RequestLimits, *, follow: bool = False
) -> Generator[Dump, None, None]:
    """Connect, request a dump, and close the connection in any case.

    Args:
        connect: see `Connect`. `bounds` overrides its `read_timeout` and similar arguments.
        wish: what the server sends.
        bounds: the limits of the whole request, including the connect.
        follow: wait at the end of the log for new events.
    """
    connection: Connection[Any] | None = None
    try:
        connection = _connected(connect, bounds)
        checksum, executed = _prepare(connection, wish, bounds)
        thread_id: int = connection.thread_id()  # type: ignore[no-untyped-call]
        server_id = SERVER_ID_BASE + thread_id % _SERVER_ID_ROOM
        flags = _DUMP_HEARTBEATS_V2 | (0 if follow else _DUMP_NON_BLOCK)
        named = _named(wish, executed)
        request = _request(named, flags=flags, server_id=server_id)
        connection._execute_command(*request)  # type: ignore[attr-defined]  # noqa: SLF001
        expected = executed - named.already if executed and isinstance(named, AllBut) else executed
        yield Dump(connection, checksum, expected)
    except TimeoutError as error:
        raise bounds.timed_out() from error
    except pymysql.MySQLError as error:
        raise _translate(error, bounds) from error
    except OSError as error:
        raise broken(error) from error
    finally:
        if connection is not None:
            # Not close(): it sends COM_QUIT, which would wait for a server that is still sending.
            connection._force_close()  # type: ignore[attr-defined]  # noqa: SLF001


def _named(wish: Wish, executed: GtidSet | None) -> FromPlace | AllBut:
    """Convert the wish to one that the protocol supports."""
    if not isinstance(wish, Only):
        return wish
    assert executed is not None, "asked for, because the wish is a set"
    return AllBut(executed - wish.wanted)


def _request(wish: FromPlace | AllBut, *, flags: int, server_id: int) -> tuple[int, bytes]:
    """Build the command. A set without tags has the encoding that every server since 5.6 reads."""
    if isinstance(wish, FromPlace):
        head = struct.pack("<IHI", wish.position, flags, server_id)
        return COMMAND.COM_BINLOG_DUMP, head + wish.file.encode()
    encoded = gtid_binary.encode(wish.already)
    flags |= _DUMP_THROUGH_GTID
    head = struct.pack("<HIIQI", flags, server_id, 0, FIRST_POSITION, len(encoded))
    return COMMAND.COM_BINLOG_DUMP_GTID, head + encoded


def _connected(connect: Connect, bounds: RequestLimits) -> Connection[Any]:
    try:
        if callable(connect):
            return connect()
        seconds = bounds.seconds_left()
        waits = dict.fromkeys(("connect_timeout", "read_timeout", "write_timeout"), seconds)
        return pymysql.connect(**{**waits, **connect})
    except (pymysql.MySQLError, OSError) as error:
        if _is_refused(error):
            text = error.args[-1] if isinstance(error, pymysql.MySQLError) else error
            raise NotConnected(f"no connection to the server: {text}") from error
        raise


def _is_refused(error: Exception) -> bool:
    """Return whether no connection was made: no server at the address, or an unknown host."""
    if isinstance(error, TimeoutError) or isinstance(error.__context__, TimeoutError):
        return False
    if isinstance(error, pymysql.MySQLError):
        return bool(error.args) and error.args[0] in _NO_CONNECTION
    return True


def _prepare(
    connection: Connection[Any], wish: Wish, bounds: RequestLimits
) -> tuple[ChecksumAlgorithm, GtidSet | None]:
    """Set the reader's session variables.

    Return the checksum algorithm of the server's events, and for a wish for a set what the server
    has executed.
    """
    seconds = bounds.seconds_left()
    connection._read_timeout = connection._write_timeout = seconds  # type: ignore[attr-defined]  # noqa: SLF001
    heartbeat = int(min(seconds / 2, _HEARTBEAT_SECONDS_MAX) * _NANOSECONDS)
    with connection.cursor(pymysql.cursors.Cursor) as cursor:
        cursor.execute(_PREPARE.format(heartbeat=heartbeat))
        cursor.execute(_CHECKSUM if isinstance(wish, FromPlace) else _CHECKSUM_AND_SET)
        row = cursor.fetchone()
    with read_answer("the checksum of its binary log"):
        if row is None:
            raise ValueError("no row")
        checksum = ChecksumAlgorithm[_text(row[0]).upper()]
    if isinstance(wish, FromPlace):
        return checksum, None
    with read_answer("gtid_executed"):
        return checksum, GtidSet.parse(_text(row[1]))


def _text(value: object) -> str:
    """Return a value as text; a connection may return text as bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)


def _translate(error: pymysql.MySQLError, bounds: RequestLimits) -> Exception:
    """Convert an error of the driver to one of ours, where it may also be an expired limit."""
    if (refused := server_error(error)) is not None:
        code, text = refused
        return DumpRefused(code=code, text=text)
    # PyMySQL raises its own error while it handles the socket's error.
    if isinstance(error.__context__, TimeoutError) or time.monotonic() >= bounds.deadline:
        return bounds.timed_out()
    return broken(error)


class EndedEarly(DumpBroken):
    """The server reported the end of the log before sending all transactions it had executed.

    There are two causes. KILL QUERY ended the dump: then the dump ends with an EOF packet, as at
    the end of the log (verified on 5.6.24 and 9.7.4). Or the rest is in no log, although it is
    executed and not purged: for example, changes made under a GTID with sql_log_bin = OFF. A second
    request distinguishes the two.
    """

    def __init__(self) -> None:
        super().__init__(
            "the server ended the binlog dump before it had sent all requested transactions"
        )


class NotConnected(DumpBroken):
    """No connection was made: no server responds at the address, or the host is unknown."""


def cut_off() -> DumpBroken:
    """Return the error for a dump that ended inside a transaction, or while following."""
    return DumpBroken("the server ended the binlog dump too early")


def never() -> bool:
    """Return False: the default for a caller that does not stop."""
    return False


class Attempts:
    """Limits reconnects: at most `reconnects_max` in a row without progress.

    The first wait is short, and each later one twice as long: together half a minute, the time that
    a server needs to restart. If the server never responded, there is no wait. `stopped` ends a
    wait.
    """

    def __init__(self, reconnects_max: int, *, stopped: Callable[[], bool] = never) -> None:
        self._reconnects_max = reconnects_max
        self._stopped = stopped
        self._made = 0
        self._empty_ends = 0
        self._has_connected = False

    def is_over(self, error: BinlogError, *, progress: bool) -> bool:
        """Return whether the end is final: two consecutive dumps ended early without progress.

        The caller calls it after every dump, so it also records whether the server ever responded.
        """
        self._has_connected |= progress or not isinstance(error, NotConnected)
        is_empty_end = isinstance(error, EndedEarly) and not progress
        self._empty_ends = self._empty_ends + 1 if is_empty_end else 0
        return self._empty_ends == _EMPTY_ENDS_MAX

    def wait_after(self, error: BinlogError, *, progress: bool) -> None:
        """Wait before the next attempt; raise the error if it is final or no attempt is left."""
        self._made = 0 if progress else self._made
        if not self._has_connected:  # a wrong address: a restarting server responded before
            raise error
        if not _is_cut(error) or self._made >= self._reconnects_max:
            raise error
        end = time.monotonic() + _FIRST_WAIT_SECONDS * 2**self._made
        self._made += 1
        while not self._stopped() and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _ASKED_AGAIN_SECONDS))


def _is_cut(error: BinlogError) -> bool:
    """Return whether a dump ended because the connection was lost, so it can be repeated."""
    if isinstance(error, DumpRefused):
        return error.code in _CUT_BY_THE_SERVER
    return isinstance(error, DumpBroken)

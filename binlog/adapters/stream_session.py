"""Opens a dump on a live server: connects, says what the reader can take, asks, and gives a socket.

1. We are a reader, not a replica: we never register, so we are in no list of replicas, hold back
   no purge and are waited for by no semi-synchronous source.
2. A dump uses its connection up: the server closes it after the answer, and we close it before.
3. server_id: SERVER_ID_BASE plus our connection id on that server. A server ends an older dump that
   has the same replica UUID, or, where none is given, the same server_id
   (kill_zombie_dump_threads, sql/rpl_source.cc). We give no UUID, so no replica is ever taken for
   us; connection ids are unique on a server, so two auditors do not end each other either.
4. Whatever goes wrong leaves as one of `binlog.errors`; the server's words stay as they are.

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

from binlog.adapters.unexpected import read_answer
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

# A way to a new connection: a function, or the keyword arguments of pymysql.connect.
Connect: TypeAlias = "Callable[[], Connection[Any]] | Mapping[str, Any]"

# Above what people give to servers by hand; below 2^32 with any connection id we can meet.
SERVER_ID_BASE = 0xF000_0000
_SERVER_ID_ROOM = 0x0FFF_FFFF

# sql/rpl_constants.h. COM_BINLOG_DUMP_GTID is new in 5.6 and 0x1e (include/my_command.h).
_DUMP_NON_BLOCK = 0x1
_DUMP_HEARTBEATS_V2 = 0x2  # positions of 64 bits in heartbeats: 8.0.26; ignored before
_DUMP_THROUGH_GTID = 0x4
# COM_BINLOG_DUMP has four bytes for the position.
_POSITION_END = 1 << 32

_HEARTBEAT_SECONDS_MAX = 30.0
_NANOSECONDS = 1_000_000_000
# Session variables by which a source learns what its reader can take: the first of each pair since
# 8.0.26, the second before; an older or newer server ignores the other one.
_PREPARE = (
    "SET @source_binlog_checksum = @@GLOBAL.binlog_checksum,"
    " @master_binlog_checksum = @@GLOBAL.binlog_checksum,"
    " @source_heartbeat_period = {heartbeat}, @master_heartbeat_period = {heartbeat}"
)
_CHECKSUM = "SELECT @@GLOBAL.binlog_checksum"
_EXECUTED = "SELECT @@GLOBAL.gtid_executed"

# pymysql.constants.CR: 2000 to 2999 are the client's own errors, the others the server's.
_CLIENT_ERRORS = range(2000, 3000)
RECONNECTS_MAX = 8
_FIRST_WAIT_SECONDS = 0.1
_ASKED_AGAIN_SECONDS = 0.2
_EMPTY_ENDS_MAX = 2
# The server ends the session, not the question: ER_SERVER_SHUTDOWN, ER_QUERY_INTERRUPTED,
# ER_CLIENT_INTERACTION_TIMEOUT. What was asked can be asked again.
# CR_CONNECTION_ERROR, CR_CONN_HOST_ERROR, CR_UNKNOWN_HOST.
_NO_CONNECTION = frozenset({2002, 2003, 2005})
_CUT_BY_THE_SERVER = frozenset({1053, 1317, 4031})


def can_name(position: int) -> bool:
    """Return whether a dump can begin at a position."""
    return FIRST_POSITION <= position < _POSITION_END


@dataclass(frozen=True, slots=True)
class FromPlace:
    """Everything from a place on; `position` must start an event."""

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
    """Everything that is not in `already`. The server refuses if it has purged some of it."""

    already: GtidSet


@dataclass(frozen=True, slots=True)
class Only:
    """The transactions in `wanted`, as far as the server has executed them.

    The server is told that we have all that it has executed, but these; so it sends no others
    (seen on 5.6.24 and 9.7.4), except what it commits meanwhile, which the caller drops.
    """

    wanted: GtidSet


Wish: TypeAlias = FromPlace | AllBut | Only


@dataclass(slots=True)
class Bounds:
    """What is left of the time and the bytes of one question.

    A question has its time as a whole. A stream has it for each silence: `renew` begins it anew.
    """

    timeout_seconds_max: float
    deadline: float  # of time.monotonic
    bytes_max: int
    bytes_left: int

    @classmethod
    def start(cls, *, timeout_seconds_max: float, bytes_max: int) -> Bounds:
        """Begin to count. Raises BinlogMisuse for a time that is none."""
        if not timeout_seconds_max > 0:
            raise BinlogMisuse(f"expected a timeout above 0 s, not {timeout_seconds_max}")
        deadline = time.monotonic() + timeout_seconds_max
        return cls(timeout_seconds_max, deadline, bytes_max, bytes_max)

    def seconds_left(self) -> float:
        """Return what a single wait may still take. Raises DumpTimedOut if nothing is left."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise self.timed_out()
        return left

    def renew(self) -> None:
        """Allow the next silence the whole time again."""
        self.deadline = time.monotonic() + self.timeout_seconds_max

    def timed_out(self) -> DumpTimedOut:
        """Build (not raise) the error for time that is up."""
        return DumpTimedOut(timeout_seconds_max=self.timeout_seconds_max)

    def spend(self, count: int) -> None:
        """Count bytes before they are received. Raises LimitExceeded."""
        self.bytes_left -= count
        if self.bytes_left < 0:
            raise LimitExceeded(name="bytes_max", limit=self.bytes_max)


@dataclass(frozen=True, slots=True)
class Dump:
    """A dump that has been asked for: the connection, and how its events are guarded.

    `expected` is what has to come before the end: what the server had executed when it was asked,
    of what was wished for. None where places were wished for.
    """

    connection: Connection[Any]
    checksum: ChecksumAlgorithm
    expected: GtidSet | None


@contextmanager
def open_dump(
    connect: Connect, wish: Wish, bounds: Bounds, *, follow: bool = False
) -> Generator[Dump, None, None]:
    """Connect, ask for a dump, and close whatever happens.

    Args:
        connect: see `Connect`. Its `read_timeout` and the like give way to `bounds`.
        wish: what to send.
        bounds: of the whole, from connecting on.
        follow: wait at the end of the log for what is still to come.
    """
    connection: Connection[Any] | None = None
    try:
        connection = _connected(connect, bounds)
        checksum = _prepare(connection, bounds)
        thread_id: int = connection.thread_id()  # type: ignore[no-untyped-call]
        server_id = SERVER_ID_BASE + thread_id % _SERVER_ID_ROOM
        flags = _DUMP_HEARTBEATS_V2 | (0 if follow else _DUMP_NON_BLOCK)
        executed = None
        if not isinstance(wish, FromPlace):
            with read_answer("gtid_executed"):
                executed = GtidSet.parse(_value(connection, _EXECUTED))
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
        raise DumpBroken(f"the connection broke: {error}") from error
    finally:
        if connection is not None:
            # Not close(): COM_QUIT would wait for a server that is busy sending.
            connection._force_close()  # type: ignore[attr-defined]  # noqa: SLF001


def _named(wish: Wish, executed: GtidSet | None) -> FromPlace | AllBut:
    """Turn the wish into one that the protocol knows."""
    if not isinstance(wish, Only):
        return wish
    assert executed is not None, "asked for, because the wish is a set"
    return AllBut(executed - wish.wanted)


def _request(wish: FromPlace | AllBut, *, flags: int, server_id: int) -> tuple[int, bytes]:
    """Build the command. A set without tags has the form every server since 5.6 reads."""
    if isinstance(wish, FromPlace):
        head = struct.pack("<IHI", wish.position, flags, server_id)
        return COMMAND.COM_BINLOG_DUMP, head + wish.file.encode()
    encoded = gtid_binary.encode(wish.already)
    flags |= _DUMP_THROUGH_GTID
    head = struct.pack("<HIIQI", flags, server_id, 0, FIRST_POSITION, len(encoded))
    return COMMAND.COM_BINLOG_DUMP_GTID, head + encoded


def _connected(connect: Connect, bounds: Bounds) -> Connection[Any]:
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
    """Return whether there was no connection at all: no server at the address, or no such name."""
    if isinstance(error, TimeoutError) or isinstance(error.__context__, TimeoutError):
        return False
    if isinstance(error, pymysql.MySQLError):
        return bool(error.args) and error.args[0] in _NO_CONNECTION
    return True


def _prepare(connection: Connection[Any], bounds: Bounds) -> ChecksumAlgorithm:
    """Set what we can read in the session. Return the checksum that the server will send."""
    seconds = bounds.seconds_left()
    connection._read_timeout = connection._write_timeout = seconds  # type: ignore[attr-defined]  # noqa: SLF001
    heartbeat = int(min(seconds / 2, _HEARTBEAT_SECONDS_MAX) * _NANOSECONDS)
    with connection.cursor(pymysql.cursors.Cursor) as cursor:
        cursor.execute(_PREPARE.format(heartbeat=heartbeat))
    with read_answer("the checksum of its binary log"):
        return ChecksumAlgorithm[_value(connection, _CHECKSUM).upper()]


def _value(connection: Connection[Any], question: str) -> str:
    """Ask for one value; a connection may give text as bytes."""
    with connection.cursor(pymysql.cursors.Cursor) as cursor:
        cursor.execute(question)
        row = cursor.fetchone()
    if row is None:
        raise ValueError("no row")
    return row[0].decode() if isinstance(row[0], bytes) else str(row[0])


def _translate(error: pymysql.MySQLError, bounds: Bounds) -> Exception:
    """Whose words are these? Numbers of the 2000s are PyMySQL's own, the others the server's."""
    code, text = (error.args[0], str(error.args[-1])) if error.args else (0, str(error))
    if isinstance(code, int) and code and code not in _CLIENT_ERRORS:
        return DumpRefused(code=code, text=text)
    # PyMySQL raises its own error while it handles the socket's.
    if isinstance(error.__context__, TimeoutError) or time.monotonic() >= bounds.deadline:
        return bounds.timed_out()
    return DumpBroken(f"the connection broke: {text}")


class EndedEarly(DumpBroken):
    """The log ended, the server says, and not all has come that it had executed.

    Either the question was killed: after KILL QUERY a dump ends as if the log did, with an EOF
    packet (seen on 5.6.24 and 9.7.4). Or the rest is in no log, although it is executed and not
    purged: so are changes made under a GTID with sql_log_bin = OFF. Asking again tells which.
    """

    def __init__(self) -> None:
        super().__init__("the server ended the dump before it had sent all that was asked for")


class NotConnected(DumpBroken):
    """No connection was made: nothing answers at the address, or it has no such name."""


def cut_off() -> DumpBroken:
    """Build (not raise) the error for a dump that ends inside a transaction, or never should."""
    return DumpBroken("the server broke the dump off")


class Attempts:
    """How often a cut connection is made again: `reconnects_max` times without any progress.

    The first wait is short, each of the others twice as long: together half a minute, which is what
    a server needs to start again. A server that never answered is not waited for. `stopped` ends a
    wait.
    """

    def __init__(self, reconnects_max: int, *, stopped: Callable[[], bool] = lambda: False) -> None:
        self._reconnects_max = reconnects_max
        self._stopped = stopped
        self._made = 0
        self._empty_ends = 0
        self._has_connected = False

    def is_over(self, error: BinlogError, *, progress: bool) -> bool:
        """Return whether an end is the end: two dumps in a row ended so and brought nothing.

        It is asked after every dump, so the attempts know here whether the server ever answered.
        """
        self._has_connected |= progress or not isinstance(error, NotConnected)
        is_empty_end = isinstance(error, EndedEarly) and not progress
        self._empty_ends = self._empty_ends + 1 if is_empty_end else 0
        return self._empty_ends == _EMPTY_ENDS_MAX

    def wait_after(self, error: BinlogError, *, progress: bool) -> None:
        """Wait before the next attempt; raise the error if it is no cut, or was the last one."""
        self._made = 0 if progress else self._made
        if not self._has_connected:  # a wrong address; a server that restarts was there before
            raise error
        if not _is_cut(error) or self._made >= self._reconnects_max:
            raise error
        end = time.monotonic() + _FIRST_WAIT_SECONDS * 2**self._made
        self._made += 1
        while not self._stopped() and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _ASKED_AGAIN_SECONDS))


def _is_cut(error: BinlogError) -> bool:
    """Return whether a dump ended for want of a connection: then it can be asked for again."""
    if isinstance(error, DumpRefused):
        return error.code in _CUT_BY_THE_SERVER
    return isinstance(error, DumpBroken)

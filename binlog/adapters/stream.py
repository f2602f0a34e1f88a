"""Transactions from a live server, by the replication protocol, over a PyMySQL connection.

1. We are a reader, not a replica: we never register, so we are in no list of replicas, hold back
   no purge and are waited for by no semi-synchronous source.
2. Every dump is non-blocking (BINLOG_DUMP_NON_BLOCK, sql/rpl_constants.h): it ends with the log.
3. A dump uses its connection up: the server closes it after the answer, and we close it before.
4. server_id: SERVER_ID_BASE plus our connection id on that server. A server ends an older dump that
   has the same replica UUID, or, where none is given, the same server_id
   (kill_zombie_dump_threads, sql/rpl_source.cc). We give no UUID, so no replica is ever taken for
   us; connection ids are unique on a server, so two auditors do not end each other either.
5. Bounds: time (the whole of it, from connecting to the last byte), bytes received, transactions.

Privilege needed: REPLICATION SLAVE.
"""

from __future__ import annotations

import struct
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

import pymysql
from pymysql.connections import Connection
from pymysql.constants import COMMAND

from binlog.adapters.compression import find_decompressor
from binlog.decode import FIRST_POSITION
from binlog.errors import (
    BinlogMisuse,
    DumpBroken,
    DumpRefused,
    DumpTimedOut,
    LimitExceeded,
)
from binlog.events import ChecksumAlgorithm, Event
from binlog.scan import (
    BYTES_MAX,
    TRANSACTIONS_MAX,
    DumpDecoder,
    EventGroup,
    first_groups,
    group_events,
    select_transactions,
)
from binlog.transactions import Transaction, fold_transactions
from gtid import GtidSet
from gtid import binary as gtid_binary

# A way to a new connection: a function, or the keyword arguments of pymysql.connect.
Connect: TypeAlias = "Callable[[], Connection[Any]] | Mapping[str, Any]"

# Above what people give to servers by hand; below 2^32 with any connection id we can meet.
SERVER_ID_BASE = 0xF000_0000
_SERVER_ID_ROOM = 0x0FFF_FFFF

# sql/rpl_constants.h. COM_BINLOG_DUMP_GTID is new in 5.6 and 0x1e (include/my_command.h).
_DUMP_NON_BLOCK = 0x1
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

# First byte of a packet: sql-common/client.cc.
_PACKET_OK, _PACKET_EOF, _PACKET_ERROR = 0x00, 0xFE, 0xFF
_EOF_BYTES_MAX = 8
_PACKET_BYTES_MAX = 0xFF_FFFF
# pymysql.constants.CR: 2000 to 2999 are the client's own errors, the others the server's.
_CLIENT_ERRORS = range(2000, 3000)


def read_transactions_at(
    connect: Connect,
    *,
    file: str,
    position: int,
    transactions_max: int,
    timeout_seconds_max: float,
    bytes_max: int = BYTES_MAX,
) -> tuple[Transaction, ...]:
    """Give the first transactions of a server's log from a position on, which must start an event.

    A dump goes on in the next file where one ends, and so does the answer. For a replica's failing
    event `file` and `position` are its Relay_Source_Log_File and Exec_Source_Log_Pos (by today's
    names): the start of the failing group, on its source.

    Raises DumpRefused (the server's own error, 1236 for most), DumpTimedOut, DumpBroken,
    LimitExceeded, CorruptBinlog, UnsupportedBinlog, BinlogMisuse.
    """
    if not FIRST_POSITION <= position < _POSITION_END:
        raise BinlogMisuse(
            f"expected a position from {FIRST_POSITION} to {_POSITION_END - 1}, not {position}"
        )
    if transactions_max <= 0:
        return ()

    def request(server_id: int) -> tuple[int, bytes]:
        head = struct.pack("<IHI", position, _DUMP_NON_BLOCK, server_id)
        return COMMAND.COM_BINLOG_DUMP, head + file.encode()

    bounds = _Bounds.start(timeout_seconds_max=timeout_seconds_max, bytes_max=bytes_max)
    with closing(_dump(connect, request, bounds)) as events:
        transactions = fold_transactions(events, decompress=find_decompressor())
        return tuple(islice(transactions, transactions_max))


def fetch_transactions(
    connect: Connect,
    *,
    wanted: GtidSet,
    executed: GtidSet,
    transactions_max: int = TRANSACTIONS_MAX,
    bytes_max: int = BYTES_MAX,
    timeout_seconds_max: float,
) -> tuple[Transaction, ...]:
    """Give the wanted transactions, and have the server send no others.

    `executed` is the server's gtid_executed. We claim to have `executed - wanted`, so that the
    server sends only the wanted ones (seen on 5.6.24 and 9.7.4). What it has committed since
    `executed` was read may come too, and is dropped here.

    The order is that of the log. At most `transactions_max` are given, the first ones. A set
    without tags is sent in the form every server since 5.6 reads; one with tags needs 8.3.

    Raises DumpRefused (purged transactions, for one), DumpTimedOut, DumpBroken, LimitExceeded,
    CorruptBinlog, UnsupportedBinlog.
    """
    wanted &= executed
    if not wanted or transactions_max <= 0:
        return ()
    bounds = _Bounds.start(timeout_seconds_max=timeout_seconds_max, bytes_max=bytes_max)
    with closing(_dump(connect, _request_all_but(executed - wanted), bounds)) as events:
        return select_transactions(
            fold_transactions(events, decompress=find_decompressor()),
            wanted,
            transactions_max=transactions_max,
            bytes_max=bytes_max,
        )


@dataclass(frozen=True)
class ServerLogs:
    """A `TransactionSource` over a live server. Each question takes its own connection."""

    connect: Connect
    executed: GtidSet
    timeout_seconds_max: float

    def transactions_at(
        self, *, file: str, position: int, transactions_max: int
    ) -> tuple[Transaction, ...]:
        """See `TransactionSource`, `read_transactions_at`; transactions of later files are left."""
        transactions = read_transactions_at(
            self.connect,
            file=file,
            position=position,
            transactions_max=transactions_max,
            timeout_seconds_max=self.timeout_seconds_max,
        )
        return tuple(each for each in transactions if each.file == file)

    def transactions_of(
        self,
        wanted: GtidSet,
        *,
        transactions_max: int = TRANSACTIONS_MAX,
        bytes_max: int = BYTES_MAX,
    ) -> tuple[Transaction, ...]:
        """See `TransactionSource` and `fetch_transactions`."""
        return fetch_transactions(
            self.connect,
            wanted=wanted,
            executed=self.executed,
            transactions_max=transactions_max,
            bytes_max=bytes_max,
            timeout_seconds_max=self.timeout_seconds_max,
        )

    def events_of(self, wanted: GtidSet, *, bytes_max: int = BYTES_MAX) -> Iterator[EventGroup]:
        """See `TransactionSource` and `fetch_transactions`."""
        wanted &= self.executed
        if not wanted:
            return
        bounds = _Bounds.start(timeout_seconds_max=self.timeout_seconds_max, bytes_max=sys.maxsize)
        request = _request_all_but(self.executed - wanted)
        with closing(_dump(self.connect, request, bounds)) as events:
            decompress = find_decompressor()
            groups = group_events(events, wanted, decompress=decompress, bytes_max=bytes_max)
            yield from first_groups([groups], wanted)


def _request_all_but(already: GtidSet) -> Callable[[int], tuple[int, bytes]]:
    encoded = gtid_binary.encode(already)

    def request(server_id: int) -> tuple[int, bytes]:
        flags = _DUMP_NON_BLOCK | _DUMP_THROUGH_GTID
        head = struct.pack("<HIIQI", flags, server_id, 0, FIRST_POSITION, len(encoded))
        return COMMAND.COM_BINLOG_DUMP_GTID, head + encoded

    return request


@dataclass(slots=True)
class _Bounds:
    """What is left of the time and the bytes of one question."""

    timeout_seconds_max: float
    deadline: float  # of time.monotonic
    bytes_max: int
    bytes_left: int

    @classmethod
    def start(cls, *, timeout_seconds_max: float, bytes_max: int) -> _Bounds:
        if not timeout_seconds_max > 0:
            raise BinlogMisuse(f"expected a timeout above 0 s, not {timeout_seconds_max}")
        deadline = time.monotonic() + timeout_seconds_max
        return cls(timeout_seconds_max, deadline, bytes_max, bytes_max)

    def seconds_left(self) -> float:
        """Give what a single wait may still take. Raises DumpTimedOut if nothing is left."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise self.timed_out()
        return left

    def timed_out(self) -> DumpTimedOut:
        return DumpTimedOut(timeout_seconds_max=self.timeout_seconds_max)

    def spend(self, count: int) -> None:
        """Count bytes before they are received. Raises LimitExceeded."""
        self.bytes_left -= count
        if self.bytes_left < 0:
            raise LimitExceeded(name="bytes_max", limit=self.bytes_max)


def _dump(
    connect: Connect, request: Callable[[int], tuple[int, bytes]], bounds: _Bounds
) -> Generator[Event, None, None]:
    """Open, ask, and give the events until the server says that there are no more."""
    connection: Connection[Any] | None = None
    try:
        connection = _open(connect, bounds)
        checksum = _prepare(connection, bounds)
        thread_id: int = connection.thread_id()  # type: ignore[no-untyped-call]
        server_id = SERVER_ID_BASE + thread_id % _SERVER_ID_ROOM
        connection._execute_command(*request(server_id))  # type: ignore[attr-defined]  # noqa: SLF001
        decoder = DumpDecoder(checksum=checksum)
        packets = _Packets(connection, bounds)
        while (raw := packets.next_event()) is not None:
            yield decoder.decode(raw)
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


def _open(connect: Connect, bounds: _Bounds) -> Connection[Any]:
    if callable(connect):
        return connect()
    seconds = bounds.seconds_left()
    waits = dict.fromkeys(("connect_timeout", "read_timeout", "write_timeout"), seconds)
    return pymysql.connect(**{**waits, **connect})


def _prepare(connection: Connection[Any], bounds: _Bounds) -> ChecksumAlgorithm:
    """Tell the server what we can take. Gives the checksum it will send."""
    seconds = bounds.seconds_left()
    connection._read_timeout = connection._write_timeout = seconds  # type: ignore[attr-defined]  # noqa: SLF001
    heartbeat = int(min(seconds / 2, _HEARTBEAT_SECONDS_MAX) * _NANOSECONDS)
    with connection.cursor(pymysql.cursors.Cursor) as cursor:
        cursor.execute(_PREPARE.format(heartbeat=heartbeat))
        cursor.execute(_CHECKSUM)
        row = cursor.fetchone()
    assert row is not None
    name = row[0].decode() if isinstance(row[0], bytes) else str(row[0])
    return ChecksumAlgorithm[name.upper()]


def _translate(error: pymysql.MySQLError, bounds: _Bounds) -> Exception:
    """Whose words are these? Numbers of the 2000s are PyMySQL's own, the others the server's."""
    code, text = (error.args[0], str(error.args[-1])) if error.args else (0, str(error))
    if isinstance(code, int) and code and code not in _CLIENT_ERRORS:
        return DumpRefused(code=code, text=text)
    # PyMySQL raises its own error while it handles the socket's.
    if isinstance(error.__context__, TimeoutError) or time.monotonic() >= bounds.deadline:
        return bounds.timed_out()
    return DumpBroken(f"the connection broke: {text}")


class _Packets:
    """The answer to a dump, packet by packet, each read within the bounds.

    PyMySQL's own reader takes a packet of any size and waits the full timeout for each piece; this
    one looks at the length first and keeps one deadline for everything.
    """

    def __init__(self, connection: Connection[Any], bounds: _Bounds) -> None:
        self._socket = connection._sock  # type: ignore[attr-defined]  # noqa: SLF001
        self._stream = connection._rfile  # type: ignore[attr-defined]  # noqa: SLF001
        self._sequence = connection._next_seq_id  # type: ignore[attr-defined]  # noqa: SLF001
        self._bounds = bounds

    def next_event(self) -> bytes | None:
        """Give the next event's bytes, or None at the end of the log. Raises DumpRefused."""
        packet = self._next_packet()
        if not packet:
            raise DumpBroken("the server sent an empty packet")
        if packet[0] == _PACKET_OK:
            return packet[1:]
        if packet[0] == _PACKET_EOF and len(packet) <= _EOF_BYTES_MAX:
            return None
        if packet[0] == _PACKET_ERROR:
            raise _server_error(packet)
        raise DumpBroken(f"the server sent a packet of unknown kind {packet[0]}")

    def _next_packet(self) -> bytes:
        """Read one packet; one of 16 MiB - 1 bytes goes on in the next."""
        pieces: list[bytes] = []
        while True:
            head = self._receive(4)
            length = int.from_bytes(head[:3], "little")
            if head[3] != self._sequence:
                raise DumpBroken(f"expected packet {self._sequence}, found packet {head[3]}")
            self._sequence = (self._sequence + 1) % 256
            self._bounds.spend(4 + length)
            pieces.append(self._receive(length))
            if length < _PACKET_BYTES_MAX:
                return b"".join(pieces)

    def _receive(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            self._socket.settimeout(self._bounds.seconds_left())
            piece = self._stream.read1(count - len(received))
            if not piece:
                raise DumpBroken("the server closed the connection before the answer was complete")
            received += piece
        return bytes(received)


def _server_error(packet: bytes) -> DumpRefused:
    """Read an ERR packet: 0xff, the number, '#' and five letters of state, the text."""
    code = int.from_bytes(packet[1:3], "little")
    text = packet[9:] if packet[3:4] == b"#" else packet[3:]
    return DumpRefused(code=code, text=text.decode("utf-8", errors="backslashreplace"))

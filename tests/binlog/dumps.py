"""Answers to a dump made by hand, and the connections and sessions that give them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Any

import pymysql

from binlog.adapters.stream_session import Dump, RequestLimits
from binlog.adapters.stream_windows import Windows
from binlog.event_types import EventType
from binlog.events import ChecksumAlgorithm
from tests.binlog.builders import event
from tests.binlog.material import Written, connect_arguments

PACKET_BYTES_MAX = 0xFFFFFF
END = b"\xfe\0\0\2\0"
ARTIFICIAL = 0x20


def packets(payloads: Iterable[bytes]) -> bytes:
    """Number packets as a server does from 1 on; what is too long goes on in the next."""
    framed = bytearray()
    sequence = 1
    for payload in payloads:
        at = 0
        while True:
            piece = payload[at : at + PACKET_BYTES_MAX]
            framed += struct.pack("<I", len(piece) | sequence << 24) + piece
            sequence = (sequence + 1) % 256
            at += len(piece)
            if len(piece) < PACKET_BYTES_MAX:
                break
    return bytes(framed)


def answer(events: Iterable[bytes], *, end: bytes = END) -> bytes:
    """Return what a server sends for these events."""
    return packets([*(b"\0" + each for each in events), end])


def rotate_to(file: str, *, position: int = 4) -> bytes:
    body = struct.pack("<Q", position) + file.encode()
    return event(EventType.ROTATE, body, flags=ARTIFICIAL, end_log_pos=0)


def heartbeat(file: str, position: int) -> bytes:
    return event(EventType.HEARTBEAT, file.encode(), end_log_pos=position % 2**32)


def heartbeat_v2(file: str, position: int) -> bytes:
    name = file.encode()
    body = bytes((1, len(name))) + name + b"\2\x09\xfe" + struct.pack("<Q", position) + b"\0"
    return event(EventType.HEARTBEAT_V2, body, end_log_pos=0)


class Dribble:
    """A socket that gives at most so many bytes at once, and then is closed."""

    def __init__(self, data: bytes, *, bytes_at_once: int) -> None:
        self._data = BytesIO(data)
        self._bytes_at_once = bytes_at_once

    def settimeout(self, _seconds: float) -> None:
        pass

    def recv_into(self, target: memoryview) -> int:
        return self._data.readinto(target[: self._bytes_at_once])


class Connection:
    """As much of PyMySQL's connection as the reader of a dump uses."""

    def __init__(self, socket: Any, *, ahead: bytes = b"") -> None:
        self._sock = socket
        self._rfile = BytesIO(ahead)
        self._next_seq_id = 1


def windows_over(
    data: bytes,
    *,
    bytes_at_once: int = 1 << 30,
    window_bytes: int = 1 << 20,
    ahead_bytes: int = 0,
    event_bytes_max: int = 1 << 30,
    stopped: Callable[[], bool] = lambda: False,
) -> Windows:
    """Make the windows of an answer, of which PyMySQL has read some bytes already."""
    socket = Dribble(data[ahead_bytes:], bytes_at_once=bytes_at_once)
    connection: Any = Connection(socket, ahead=data[:ahead_bytes])
    return Windows(
        Dump(connection, ChecksumAlgorithm.CRC32, None),
        RequestLimits.start(timeout_seconds_max=60, bytes_max=0),
        event_bytes_max=event_bytes_max,
        stopped=stopped,
        window_bytes=window_bytes,
    )


class Answering:
    """Sessions that are real until the dump: the first ones' are made by hand, no other has any.

    A dump comes piece by piece, or, if `ahead`, as if PyMySQL had read all of it ahead.
    """

    def __init__(self, written: Written, *answers: bytes, ahead: bool = False) -> None:
        self._written = written
        self._answers = iter(answers)
        self._ahead = ahead

    def __call__(self) -> Any:
        connection: Any = pymysql.connect(**connect_arguments(self._written.server))
        execute = connection._execute_command

        def by_hand(command: int, sql: bytes | str) -> None:
            if command not in {0x12, 0x1E}:
                execute(command, sql)
                return
            connection._sock.close()
            data = next(self._answers, answer([]))
            ahead, data = (data, b"") if self._ahead else (b"", data)
            made = Connection(Dribble(data, bytes_at_once=1000), ahead=ahead)
            connection._sock, connection._rfile = made._sock, made._rfile
            connection._next_seq_id = made._next_seq_id

        connection._execute_command = by_hand
        return connection


def split(events: bytes) -> list[bytes]:
    """Return events one by one, as packets carry them."""
    found = []
    while events:
        size = int.from_bytes(events[9:13], "little")
        found.append(events[:size])
        events = events[size:]
    return found

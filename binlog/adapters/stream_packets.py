"""Reads the packets of a dump one by one: each is an event, the end, or the server's error.

PyMySQL's own reader accepts a packet of any size and waits the full timeout for each piece. This
reader checks the length first and respects the bounds.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from pymysql.connections import Connection

from binlog.adapters.stream_session import (
    Connect,
    Dump,
    EndedEarly,
    RequestLimits,
    Wish,
    open_dump,
)
from binlog.errors import DumpBroken, DumpRefused, LimitExceeded
from binlog.events import Event, GtidLog
from binlog.scan import DumpDecoder
from gtid import Gtid, GtidSet

# First byte of a packet: sql-common/client.cc.
PACKET_OK, PACKET_EOF, PACKET_ERROR = 0x00, 0xFE, 0xFF
EOF_BYTES_MAX = 8
PACKET_BYTES_MAX = 0xFF_FFFF
PACKET_HEAD_BYTES = 4
# One record of TLS has at most this much (RFC 8446, 5.1).
RECEIVED_AT_ONCE = 16 * 1024
# An event may consist of one large row; the whole event is in memory.
EVENT_BYTES_MAX = 256 * 1024 * 1024
_GTIDS_HELD_MAX = 10_000


def dump_events(
    connect: Connect, wish: Wish, bounds: RequestLimits, *, renews: bool = False
) -> Generator[Event, None, None]:
    """Open a dump and yield its events until the server reports the end.

    Raises EndedEarly if the server ends before all transactions of a wish for a set have arrived.
    With `renews`, the timeout of `bounds` starts again at each event.
    """
    with open_dump(connect, wish, bounds) as dump:
        yield from _events(dump, bounds, renews=renews)


def _events(dump: Dump, bounds: RequestLimits, *, renews: bool) -> Generator[Event, None, None]:
    decoder = DumpDecoder(checksum=dump.checksum)
    packets = _Packets(dump.connection, bounds)
    seen = GtidSet()
    gtids: list[Gtid] = []
    while (raw := packets.next_event()) is not None:
        event = decoder.decode(raw)
        if isinstance(event.body, GtidLog) and event.body.gtid is not None:
            gtids.append(event.body.gtid)
            if len(gtids) == _GTIDS_HELD_MAX:
                seen |= GtidSet.of(gtids)
                gtids.clear()
        yield event
        if renews:
            bounds.renew()
    if dump.expected is not None and not dump.expected <= seen | GtidSet.of(gtids):
        raise EndedEarly


class _Packets:
    """The server's response to a dump request, packet by packet."""

    def __init__(self, connection: Connection[Any], bounds: RequestLimits) -> None:
        self._socket = connection._sock  # type: ignore[attr-defined]  # noqa: SLF001
        self._stream = connection._rfile  # type: ignore[attr-defined]  # noqa: SLF001
        self._sequence = connection._next_seq_id  # type: ignore[attr-defined]  # noqa: SLF001
        self._bounds = bounds
        self._received, self._taken = b"", 0

    def next_event(self) -> bytes | None:
        """Return the next event's bytes, or None at the end of the log. Raises DumpRefused."""
        return event_in(self._next_packet())

    def _next_packet(self) -> bytes:
        """Read one packet; a packet of 16 MiB - 1 bytes continues in the next one."""
        pieces: list[bytes] = []
        bytes_left = EVENT_BYTES_MAX
        while True:
            head = self._receive(PACKET_HEAD_BYTES)
            length = int.from_bytes(head[:3], "little")
            if head[3] != self._sequence:
                raise out_of_sequence(expected=self._sequence, found=head[3])
            self._sequence = (self._sequence + 1) % 256
            bytes_left -= length
            if bytes_left < 0:
                raise LimitExceeded(
                    name="event_bytes_max", limit=EVENT_BYTES_MAX, what="an event of the dump"
                )
            self._bounds.spend(PACKET_HEAD_BYTES + length)
            pieces.append(self._receive(length))
            if length < PACKET_BYTES_MAX:
                return b"".join(pieces)

    def _receive(self, count: int) -> bytes:
        """Return the next bytes. More than these are received at once: most packets are small."""
        end = self._taken + count
        if end > len(self._received):
            received = bytearray(self._received[self._taken :])
            while len(received) < count:
                self._socket.settimeout(self._bounds.seconds_left())
                piece = self._stream.read1(max(count - len(received), RECEIVED_AT_ONCE))
                if not piece:
                    raise connection_closed()
                received += piece
            self._received, end = bytes(received), count
        data = self._received[end - count : end]
        self._taken = end
        return data


def event_in(packet: bytes) -> bytes | None:
    """Return the event in a packet, or None if it marks the end. Raises DumpRefused."""
    if not packet:
        raise DumpBroken("the server sent an empty packet")
    if packet[0] == PACKET_OK:
        return packet[1:]
    if packet[0] == PACKET_EOF and len(packet) <= EOF_BYTES_MAX:
        return None
    if packet[0] == PACKET_ERROR:
        raise _server_error(packet)
    raise DumpBroken(f"the server sent a packet of unknown kind {packet[0]}")


def out_of_sequence(*, expected: int, found: int) -> DumpBroken:
    """Return the error for a packet with a wrong sequence number."""
    return DumpBroken(f"expected packet {expected}, found packet {found}")


def connection_closed() -> DumpBroken:
    """Return the error for a connection that closed before the response was complete."""
    return DumpBroken("the server closed the connection before the answer was complete")


def _server_error(packet: bytes) -> DumpRefused:
    """Read an ERR packet: 0xff, the error number, '#' and five characters of state, the text."""
    code = int.from_bytes(packet[1:3], "little")
    text = packet[9:] if packet[3:4] == b"#" else packet[3:]
    return DumpRefused(code=code, text=text.decode("utf-8", errors="backslashreplace"))

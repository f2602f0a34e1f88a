"""Packets that have been received and not been read: a connection's, in front of PyMySQL's reader.

PyMySQL reads a packet in two calls, and makes an object of it. Most packets of an answer are there
before they are read, and are small. They are taken from the received bytes here, if their number
is the next one and they are no error. Anything else takes PyMySQL's own way, with its checks.
"""

from typing import Any, Final

from pymysql.connections import MAX_PACKET_LEN

_HEADER_BYTES: Final = 4  # three of length, and the packet's number
_ERROR: Final = 0xFF  # the first byte of an error, and of no row


class ReceivedPackets:
    """The part of a connection that takes received packets."""

    _received = b""  # from the stream, the first `_taken` bytes of it read
    _taken = 0
    _next_seq_id: int
    _read_packet: Any

    def spend(self, count: int) -> None:
        """Count bytes against the limit of an answer."""
        raise NotImplementedError

    def packets_ahead(self, count: int) -> bytes | None:
        """Return the next packets with their headers; None if not all of them are received."""
        received, end, number = self._received, self._taken, self._next_seq_id
        for _ in range(count):
            header = received[end : end + _HEADER_BYTES]
            if len(header) < _HEADER_BYTES or header[3] != number:
                return None
            end += _HEADER_BYTES + int.from_bytes(header[:3], "little")
            number = (number + 1) % 256
        return received[self._taken : end] if end <= len(received) else None

    def pass_packets(self, packets: bytes, count: int) -> None:
        """Take packets that `packets_ahead` returned, as if they had been read."""
        self.spend(len(packets))
        self._taken += len(packets)
        self._next_seq_id = (self._next_seq_id + count) % 256

    def next_payload(self) -> bytes:
        """Read a packet, and return its bytes. Raises what the server reports instead."""
        received, begin = self._received, self._taken + _HEADER_BYTES
        header = received[self._taken : begin]
        end = begin + int.from_bytes(header[:3], "little")
        if (
            begin < end <= len(received)
            and end - begin < MAX_PACKET_LEN
            and header[3] == self._next_seq_id
            and received[begin] != _ERROR
        ):
            self.pass_packets(received[self._taken : end], 1)
            return received[begin:end]
        payload: bytes = self._read_packet().get_all_data()
        return payload

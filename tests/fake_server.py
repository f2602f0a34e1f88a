"""A server that speaks as much of MySQL's protocol as a test scripts, honest or not."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from topology.readings.target import Secret, ServerTarget

PASSWORD = "the fleet's password"
SALT = b"12345678" + b"abcdefghijkl"
# PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH, CONNECT_ATTRS and their kin, and never SSL.
CAPABILITIES = 0x000FF7FF & ~0x0800
OK = b"\0\0\0\2\0\0\0"
END = b"\xfe\0\0\2\0"


@dataclass(slots=True)
class Peer:
    """One client: what it sent is kept, whole."""

    socket: socket.socket
    received: bytearray = field(default_factory=bytearray)
    sequence: int = 0
    more: bool = False  # the answer of another statement follows

    def send(self, *payloads: bytes) -> None:
        """Send packets, numbered on, in one piece."""
        packets = []
        for payload in payloads:
            head = struct.pack("<I", len(payload))[:3] + bytes([self.sequence % 256])
            packets += [head, payload]
            self.sequence += 1
        self.socket.sendall(b"".join(packets))

    def receive(self) -> bytes:
        """Read one packet; b"" if the client has gone."""
        head = self._exactly(4)
        if not head:
            return b""
        payload = self._exactly(int.from_bytes(head[:3], "little"))
        self.sequence = head[3] + 1
        return payload

    def greet(self, plugin: str = "mysql_native_password", *, version: str = "9.7.4") -> bytes:
        """Send a greeting; return what the client answers."""
        low, high = CAPABILITIES & 0xFFFF, CAPABILITIES >> 16
        self.sequence = 0
        self.send(
            b"\x0a" + version.encode() + b"\0" + struct.pack("<I", 7) + SALT[:8] + b"\0"
            + struct.pack("<HBHHB", low, 255, 2, high, 21) + bytes(10) + SALT[8:] + b"\0"
            + plugin.encode() + b"\0"
        )  # fmt: skip
        return self.receive()

    def let_in(self) -> None:
        """Accept the client, and answer what it sends of its own accord."""
        self.greet()
        self.send(OK)
        self.receive()  # SET NAMES, with the other variables of the session
        self.send(OK)

    def answer(self, columns: list[str], rows: list[list[str | None]]) -> None:
        """Send a result."""
        end = END[:3] + self._status + END[4:]
        self.send(bytes([len(columns)]), *map(column, columns), END, *map(row, rows), end)

    def ok(self) -> None:
        """Send an answer without rows."""
        self.send(OK[:3] + self._status + OK[4:])

    @property
    def _status(self) -> bytes:
        return bytes([2 | 8 * self.more])  # AUTOCOMMIT, MORE_RESULTS_EXISTS

    def _exactly(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            piece = self.socket.recv(count - len(found))
            if not piece:
                return b""
            found += piece
        self.received += found
        return found


def column(name: str) -> bytes:
    """Return the description of a column of text, or of time where the name ends in _clock."""
    texts = (b"def", b"", b"", b"", name.encode(), b"")
    described = b"".join(bytes([len(text)]) + text for text in texts)
    kind = 12 if name.endswith("_clock") else 253  # DATETIME, VARCHAR
    return described + struct.pack("<BHIBHBxx", 12, 255, 1024, kind, 0, 0)


def row(values: list[str | None]) -> bytes:
    """Return the packet of a row of short texts."""
    return b"".join(
        b"\xfb" if value is None else bytes([len(value)]) + value.encode() for value in values
    )


@dataclass(slots=True)
class FakeServer:
    """Where it listens, and who came."""

    port: int
    peers: list[Peer] = field(default_factory=list)

    def target(
        self, *, get_server_public_key: bool = False, enable_cleartext_plugin: bool = False
    ) -> ServerTarget:
        """Return its address with a password that it must not get."""
        return ServerTarget(
            name="fake",
            host="127.0.0.1",
            port=self.port,
            user="auditor",
            password=Secret(PASSWORD),
            get_server_public_key=get_server_public_key,
            enable_cleartext_plugin=enable_cleartext_plugin,
        )

    @property
    def received(self) -> bytes:
        """Return everything that clients sent."""
        return b"".join(bytes(peer.received) for peer in self.peers)


@contextmanager
def fake_server(serve: Callable[[Peer], None]) -> Iterator[FakeServer]:
    """Listen, and serve each client by a thread of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = FakeServer(listener.getsockname()[1])

        def one(peer: Peer) -> None:
            with peer.socket, suppress(OSError):  # the client may go at any moment
                serve(peer)

        def accept() -> None:
            with suppress(OSError):  # the listener is closed when the test ends
                while True:
                    peer = Peer(listener.accept()[0])
                    server.peers.append(peer)
                    threading.Thread(target=one, args=(peer,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield server
        listener.shutdown(socket.SHUT_RDWR)

"""Where `serve` listens, and whether only programs of this machine can reach it."""

import socket
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from gtid_audit.exits import UsageProblem

PORT_MAX: Final = (1 << 16) - 1
BACKLOG: Final = 1024  # connections that wait to be accepted


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. Port 0 lets the system choose."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Return whether only this machine reaches it. The host must be an IP address."""
        return ip_address(self.host.partition("%")[0]).is_loopback


def parse_address(text: str) -> Address:
    """Read HOST:PORT, IPv6 in brackets. Raises UsageProblem."""
    host, colon, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    digits = port.isascii() and port.isdigit() and len(port) <= len(str(PORT_MAX))
    if not colon or not host or not digits or int(port) > PORT_MAX:
        raise UsageProblem(
            "--listen: expected HOST:PORT, IPv6 in brackets; port 0 selects a free port"
        )
    return Address(host, int(port))


def listen_on(address: Address) -> socket.socket:
    """Return a socket that listens at the first address of a host. Raises UsageProblem."""
    try:
        family, _, _, _, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        both = place[0] == "::" and socket.has_dualstack_ipv6()  # all addresses: of IPv4, too
        return socket.create_server(place[:2], family=family, backlog=BACKLOG, dualstack_ipv6=both)
    except (OSError, UnicodeError) as error:  # UnicodeError: no host name (IDNA)
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageProblem(f"cannot listen on {address}: {reason}") from error


def address_of(listener: socket.socket) -> Address:
    """Return where a socket listens, with the port that the system chose."""
    host, port = listener.getsockname()[:2]
    return Address(str(host), int(port))

"""What is connected to a server as a replica: a server, or a client that reads its binary logs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class ConnectedReplica:
    """A reader of binary logs that a server lists now.

    `server_uuid` is empty for a client that is no server, and where the server does not show it.
    `addresses` are where it may listen (host:port), best first. For a client only the host is
    known; several hosts mean one of them.
    """

    server_uuid: str
    addresses: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = " or ".join(self.addresses)
        uuid = f"server_uuid {self.server_uuid}" if self.server_uuid else ""
        return ", ".join(filter(None, (where, uuid))) or "address not known"

"""A restart of a server, around which the contents of its own transactions are compared."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ServerStart:
    """A restart of a server, identified by the log that began then."""

    server: str
    started_at: datetime  # by the server's clock
    file: str

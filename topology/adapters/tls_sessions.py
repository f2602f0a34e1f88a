"""Resumes the TLS session with a server that an earlier connection has made.

1. A full handshake is half of what a connection costs the server, which signs for it. A resumed one
   has no certificate and no signature. A reading and each dump of its logs have their own
   connection, and so has every later audit of a service.
2. Only connections that verify no certificate resume. OpenSSL checks none when it resumes, so a
   connection with ssl_ca always makes a full handshake, with the authorities of its file as it is.
3. A session belongs to one address and to the shared context. A server that does not know it, after
   a restart or behind an address that has moved, makes a full handshake instead.
"""

import ssl
import threading
from collections import OrderedDict
from typing import Any, Final, TypeAlias

# 1,000 sessions take 24 MiB, with the certificates of their servers. The oldest ones are dropped.
SESSIONS_MAX: Final = 1024

Address: TypeAlias = tuple[str, int]


class ResumedSessions:
    """What a connection calls in the place of a context, for one address."""

    def __init__(self, context: ssl.SSLContext, address: Address) -> None:
        self._context = context
        self._address = address

    def wrap_socket(self, sock: Any, *, server_hostname: str) -> ssl.SSLSocket:  # noqa: ANN401
        """Make the handshake, with the kept session if there is one."""
        return self._context.wrap_socket(
            sock, server_hostname=server_hostname, session=_kept.get(self._context, self._address)
        )

    def keep(self, sock: object) -> None:
        """Keep the session of a connection that is ready: with TLS 1.3 it comes late."""
        if isinstance(sock, ssl.SSLSocket) and sock.session is not None:
            _kept.put(self._context, self._address, sock.session)


class _Kept:
    """The latest session of each address."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[Address, tuple[ssl.SSLContext, ssl.SSLSession]] = OrderedDict()
        self._changing = threading.Lock()

    def get(self, context: ssl.SSLContext, address: Address) -> ssl.SSLSession | None:
        """Return a session of this very context; Python refuses that of another one."""
        held = self._sessions.get(address)
        return held[1] if held is not None and held[0] is context else None

    def put(self, context: ssl.SSLContext, address: Address, session: ssl.SSLSession) -> None:
        with self._changing:
            self._sessions[address] = context, session
            self._sessions.move_to_end(address)
            if len(self._sessions) > SESSIONS_MAX:
                self._sessions.popitem(last=False)


_kept: Final = _Kept()

"""Connections of HTTP clients: how many there are, and how long each may take.

uvicorn limits neither the time of a request nor the number of connections, so a client that sends a
byte a minute, or never reads its answer, would keep a connection for ever.

1. A request must have arrived as a whole within REQUEST_SECONDS_MAX of the connection or of its
   first byte. uvicorn's own limit applies to connections that wait for the next request.
2. An answer that the client does not read is given up after ANSWER_SECONDS_MAX without progress.
3. There are at most CONNECTIONS_MAX. One more ends the connection that has waited longest for its
   request: a client that sends nothing must not keep others out. If none waits, it ends itself.
"""

import asyncio
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS_MAX: Final = 512
REQUEST_SECONDS_MAX: Final = 5.0
ANSWER_SECONDS_MAX: Final = 10.0
_INCOMPLETE: Final = (h11.IDLE, h11.SEND_BODY)  # states of a client whose request is not complete


class GuardedConnection(H11Protocol):
    """A connection with limits. All of them run in one thread, that of the event loop."""

    # Connections that wait for a request, the longest wait first.
    waiting: "dict[GuardedConnection, None]"
    _request_timer: asyncio.TimerHandle | None = None
    _answer_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, or end one if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS_MAX:
            longest = next(iter(self.waiting), self)
            longest.end_now()
            if longest is self:
                return
        self._await_request()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        super().data_received(data)
        if self.transport.is_closing():
            self._stop_waiting()
        elif self.conn.their_state in _INCOMPLETE:
            self._await_request()
        else:
            self._stop_waiting()

    def pause_writing(self) -> None:
        """Begin to wait for a client that does not read its answer."""
        super().pause_writing()
        if self._answer_timer is None:
            self._answer_timer = self.loop.call_later(ANSWER_SECONDS_MAX, self.end_now)

    def resume_writing(self) -> None:
        """Go on after the client has read a part of its answer."""
        super().resume_writing()
        self._stop_answer_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        self._stop_answer_timer()
        super().connection_lost(exc)

    def end_now(self) -> None:
        """End the connection without an answer."""
        self._stop_waiting()
        self.transport.abort()

    def _await_request(self) -> None:
        if self._request_timer is None:
            self.waiting[self] = None
            self._request_timer = self.loop.call_later(REQUEST_SECONDS_MAX, self.end_now)

    def _stop_waiting(self) -> None:
        self.waiting.pop(self, None)
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None

    def _stop_answer_timer(self) -> None:
        if self._answer_timer is not None:
            self._answer_timer.cancel()
            self._answer_timer = None


def guarded_connections() -> type[GuardedConnection]:
    """Return the class of the connections of one server, which share their list."""

    class Guarded(GuardedConnection):
        waiting: "dict[GuardedConnection, None]" = {}  # noqa: RUF012 - shared on purpose

    return Guarded

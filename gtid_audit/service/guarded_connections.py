"""Connections of HTTP clients: how many there are, and how long each may take.

uvicorn limits neither the time of a request nor the number of connections, so a client that sends a
byte a minute, or never reads its answer, would keep a connection for ever.

1. A request must have arrived as a whole within REQUEST_SECONDS_MAX of the connection or of its
   first byte. uvicorn's own limit applies to connections that wait for the next request.
2. An answer that the client does not read is given up after ANSWER_SECONDS_MAX without progress.
3. There are at most CONNECTIONS_MAX. One more ends the connection that has waited longest for its
   request: a client that sends nothing must not keep others out. If none waits, it ends itself.
4. Scrapes that scrape_answers.py knows are answered here, without h11. While the metrics are made,
   what else the client sends is held.
"""

import asyncio
from typing import Final, TypeAlias

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from gtid_audit.service.scrape_answers import (
    REQUEST_BYTES_MAX,
    ScrapeMemory,
    ScrapeRequest,
    answer_bytes,
)
from gtid_audit.service.shared_rendering import Rendered

CONNECTIONS_MAX: Final = 512
REQUEST_SECONDS_MAX: Final = 5.0
ANSWER_SECONDS_MAX: Final = 10.0
_WaitingScrape: TypeAlias = "tuple[GuardedConnection, ScrapeRequest, bytes]"
_INCOMPLETE: Final = (h11.IDLE, h11.SEND_BODY)  # states of a client whose request is not complete


class GuardedConnection(H11Protocol):
    """A connection with limits. All of them run in one thread, that of the event loop."""

    # Connections that wait for a request, the longest wait first.
    waiting: "dict[GuardedConnection, None]"
    # Scrapes that wait for metrics to be made, by their header Accept.
    scrapes_waiting: dict[str, list[_WaitingScrape]]
    scrapes: ScrapeMemory
    _held: bytearray | None = None  # what arrived while an answer without h11 is made
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
        if self._held is not None:
            self._held += data
            if len(self._held) > REQUEST_BYTES_MAX:
                self.end_now()  # no scraper sends that much before the answer
            return
        is_begun = self._is_begun()
        if not is_begun and (request := self.scrapes.find(data)) is not None:
            self._answer_scrape(request, data)
            return
        scope = self.scope
        self._parse(data)
        if not is_begun and self.scope is not scope and not self.conn.trailing_data[0]:
            self._note_request(data)

    def _is_begun(self) -> bool:
        """Return whether a request or an answer is under way, or answers are not read."""
        states = (self.conn.our_state, self.conn.their_state)
        return (
            states != (h11.IDLE, h11.IDLE)
            or self.flow.write_paused
            or bool(self.conn.trailing_data[0])
        )

    def _note_request(self, data: bytes) -> None:
        if (state := self.conn.their_state) in (h11.DONE, h11.MUST_CLOSE):
            self.scrapes.note(
                data,
                method=self.scope["method"],
                path=self.scope["path"],
                http_version=self.scope["http_version"],
                headers=self.headers,
                closes=state is h11.MUST_CLOSE,
            )

    def _answer_scrape(self, request: ScrapeRequest, data: bytes) -> None:
        self._stop_waiting()
        self._unset_keepalive_if_required()
        waiting = self.scrapes_waiting.get(request.accept)
        if waiting is None:
            if (rendered := self.scrapes.source.recent(request.accept)) is not None:
                self._write_scrape(request, rendered)
                return
            waiting = self.scrapes_waiting[request.accept] = []
        self._held = bytearray()
        waiting.append((self, request, data))
        if len(waiting) == 1:
            task = self.loop.create_task(self._answer_all(request.accept))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def _answer_all(self, accept: str) -> None:
        """Answer the scrapes that wait for the same metrics: one task for all of them."""
        try:
            rendered = await self.scrapes.source.made(accept)
        except Exception:  # noqa: BLE001 - through h11 it is raised again, reported, and answered
            rendered = None
        for connection, request, data in self.scrapes_waiting.pop(accept):
            self.loop.call_soon(connection.answer_waiting, request, data, rendered)

    def answer_waiting(
        self, request: ScrapeRequest, data: bytes, rendered: Rendered | None
    ) -> None:
        """Answer a scrape that waited, and then what else the client has sent."""
        held, self._held = self._held or bytearray(), None
        if self.transport.is_closing():
            return
        if rendered is None:
            self._parse(data)
        else:
            self._write_scrape(request, rendered)
        if held and not self.transport.is_closing():
            self.data_received(bytes(held))

    def _write_scrape(self, request: ScrapeRequest, rendered: Rendered) -> None:
        headers = self.server_state.default_headers
        self.transport.write(answer_bytes(rendered, headers, closes=request.closes))
        if request.closes:
            self.transport.close()
        else:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _parse(self, data: bytes) -> None:
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


def guarded_connections(known: ScrapeMemory) -> type[GuardedConnection]:
    """Return the class of the connections of one server, which share their lists."""

    class Guarded(GuardedConnection):
        waiting: "dict[GuardedConnection, None]" = {}  # noqa: RUF012 - shared on purpose
        scrapes_waiting: dict[str, list[_WaitingScrape]] = {}  # noqa: RUF012 - shared on purpose
        scrapes = known

    return Guarded

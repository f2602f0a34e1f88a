"""Scrapes that are answered without parsing them again.

Prometheus sends the same bytes every time. To parse them, and to write the header of the answer,
takes most of the time of a scrape (h11 is Python), so two hundred at once would keep each other
waiting.

1. Only bytes that h11 has parsed before, as one whole GET of /metrics and nothing else, are
   remembered: the same bytes mean the same request. Any other data goes through h11.
2. Access is decided for every scrape: the token may have been replaced since.
3. The answer has the same bytes as the one through h11; a test compares them.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final

from gtid_audit.service.shared_rendering import Rendered

METRICS_PATH: Final = "/metrics"
REMEMBERED_MAX: Final = 32  # scrapers send one or two different requests each
REQUEST_BYTES_MAX: Final = 4096
_HAS_MORE: Final = frozenset({b"content-length", b"transfer-encoding", b"expect", b"upgrade"})


@dataclass(frozen=True, slots=True, repr=False)
class ScrapeRequest:
    """One whole GET of /metrics by HTTP/1.1. No repr: a header may have a token."""

    accept: str
    authorization: str | None
    closes: bool  # the client wants the connection to end


@dataclass(frozen=True, slots=True)
class ScrapeSource:
    """What answers scrapes: who may see the metrics, and the metrics in a format."""

    is_permitted: Callable[[str | None], bool]  # given the header Authorization
    recent: Callable[[str], Rendered | None]  # given the header Accept
    made: Callable[[str], Awaitable[Rendered]]


def header_of(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str | None:
    """Return the first value of a header."""
    return next((value.decode("latin-1") for key, value in headers if key == name), None)


class ScrapeMemory:
    """The scrapes that were parsed, by their bytes. Used by the thread of one event loop."""

    def __init__(self, source: ScrapeSource) -> None:
        self.source = source
        self._known: dict[bytes, ScrapeRequest] = {}

    def find(self, data: bytes) -> ScrapeRequest | None:
        """Return the scrape that these bytes are, if it is known and permitted."""
        found = self._known.get(data)
        if found is None or not self.source.is_permitted(found.authorization):
            return None
        return found

    def note(
        self,
        data: bytes,
        *,
        method: str,
        path: str,
        http_version: str,
        headers: Iterable[tuple[bytes, bytes]],
        closes: bool,
    ) -> None:
        """Remember a request, if it is a scrape. `data` was parsed as exactly this request."""
        is_scrape = (method, path, http_version) == ("GET", METRICS_PATH, "1.1")
        given = list(headers)
        if not is_scrape or len(data) > REQUEST_BYTES_MAX or _HAS_MORE & {key for key, _ in given}:
            return
        request = ScrapeRequest(
            header_of(given, b"accept") or "", header_of(given, b"authorization"), closes
        )
        if self.source.is_permitted(request.authorization):
            if len(self._known) >= REMEMBERED_MAX:
                del self._known[next(iter(self._known))]
            self._known[bytes(data)] = request


def headers_of(rendered: Rendered) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer with these metrics."""
    return [
        (b"content-type", rendered.content_type.encode("latin-1")),
        (b"content-length", str(len(rendered.body)).encode()),
        (b"cache-control", b"no-store"),
    ]


def answer_bytes(
    rendered: Rendered, default_headers: Iterable[tuple[bytes, bytes]], *, closes: bool
) -> bytes:
    """Return the whole answer."""
    headers = [*default_headers, *headers_of(rendered)]
    if closes:
        headers.append((b"Connection", b"close"))
    lines = [b"HTTP/1.1 200 OK", *(name + b": " + value for name, value in headers), b"", b""]
    return b"\r\n".join(lines) + rendered.body

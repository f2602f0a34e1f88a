"""The HTTP side of `serve`: /metrics, /runbook and /healthz, read-only.

1. One thread per request, and a time limit per client: a slow client delays no other.
2. Responses come from memory. No request reaches a MySQL server.
"""

import socket
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from gtid_audit.exits import UsageProblem
from gtid_audit.monitoring.runbook_page import runbook_page
from gtid_audit.service.metrics import AuditCollector
from gtid_audit.service.repeated_audit import AuditService

CLIENT_SECONDS_MAX: Final = 10.0
PLAIN: Final = "text/plain; charset=utf-8"
HTML: Final = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class WebResponse:
    """A response: status, type, body."""

    status: HTTPStatus
    content_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. Port 0 lets the system choose."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Read HOST:PORT, IPv6 in brackets. Raises UsageProblem."""
    host, colon, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    digits = port.isascii() and port.isdigit() and len(port) <= len("65535")
    if not colon or not host or not digits or int(port) >= 1 << 16:
        raise UsageProblem(
            "--listen: expected HOST:PORT, IPv6 in brackets; port 0 selects a free port"
        )
    return Address(host, int(port))


class WebServer:
    """Listens as soon as it is created; responds while `serve` runs."""

    def __init__(self, address: Address, service: AuditService, *, zeros: bool = True) -> None:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(AuditCollector(service.states, zeros=zeros))

        def metrics(accept: str) -> WebResponse:
            encode, content_type = choose_encoder(accept)
            return WebResponse(HTTPStatus.OK, content_type, encode(registry))

        def healthz(_accept: str) -> WebResponse:
            health = service.health()
            status = HTTPStatus.OK if health.is_well else HTTPStatus.SERVICE_UNAVAILABLE
            return WebResponse(status, PLAIN, f"{health.reason}\n".encode())

        page = runbook_page().encode()

        def runbook(_accept: str) -> WebResponse:
            return WebResponse(HTTPStatus.OK, HTML, page)

        class Handler(_Handler):
            routes: ClassVar[dict[str, Callable[[str], WebResponse]]] = {
                "/metrics": metrics,
                "/runbook": runbook,
                "/healthz": healthz,
            }

        try:
            self._server = _server_class(address)((address.host, address.port), Handler)
        except OSError as error:
            reason = error.strerror or str(error)
            raise UsageProblem(f"cannot listen on {address}: {reason}") from error

    @property
    def address(self) -> Address:
        """Return the listening address, with the port that the system chose."""
        host, port = self._server.server_address[:2]
        return Address(str(host), int(port))

    def serve(self) -> None:
        """Respond until `stop` is called from another thread."""
        self._server.serve_forever(poll_interval=0.1)

    def stop(self) -> None:
        """Stop responding and release the port. Do not call it from the serving thread."""
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    routes: ClassVar[dict[str, Callable[[str], WebResponse]]] = {}
    timeout = CLIENT_SECONDS_MAX
    server_version = "gtid-audit"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        route = self.routes.get(self.path.partition("?")[0])
        if route is None:
            paths = ", ".join(self.routes)
            answer = WebResponse(
                HTTPStatus.NOT_FOUND, PLAIN, f"not found; the paths are {paths}\n".encode()
            )
        else:
            answer = route(self.headers.get("Accept", ""))
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if with_body:
            self.wfile.write(answer.body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - base class
        """Log nothing: regular scrapes would fill the log."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - base class
        """Ignore a client that disconnected or was too slow. Report any other error: it is ours."""
        import sys

        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Server6(_Server):
    address_family = socket.AF_INET6


def _server_class(address: Address) -> type[_Server]:
    return _Server6 if ":" in address.host else _Server

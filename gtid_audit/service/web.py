"""The HTTP server of `serve`: one thread with an event loop, read-only.

1. uvicorn installs signal handlers only in the main thread, and this is another one. So signals
   stay with `serve`, which polls for them.
2. Answers come from memory. No request reaches a MySQL server.
3. guarded_connections.py limits the number and the time of connections.
"""

import asyncio
import logging
import ssl
import threading
from collections.abc import Callable
from typing import Any, Final

import uvicorn

from gtid_audit.service.guarded_connections import REQUEST_SECONDS_MAX, guarded_connections
from gtid_audit.service.listening import BACKLOG, Address, address_of, listen_on
from gtid_audit.service.scrape_answers import ScrapeMemory
from gtid_audit.service.web_app import WebApp

KEEP_ALIVE_SECONDS: Final = 75  # longer than the usual interval of scrapes
STOP_SECONDS_MAX: Final = 2
_HEADERS: Final = [("Server", "gtid-audit"), ("X-Content-Type-Options", "nosniff")]


class WebServer:
    """Listens as soon as it is created; answers between `start` and `stop`."""

    def __init__(self, address: Address, *, tls: ssl.SSLContext | None = None) -> None:
        """Listen at an address. Raises UsageProblem."""
        self._listener = listen_on(address)
        self.address = address_of(self._listener)
        self.tls = tls
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Return the address with its scheme."""
        return f"{'http' if self.tls is None else 'https'}://{self.address}"

    def start(self, app: WebApp, *, report_defect: Callable[[str], None]) -> None:
        """Answer in a thread."""
        config = uvicorn.Config(
            app,
            http=guarded_connections(ScrapeMemory(app.scrapes)),
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            headers=_HEADERS,
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=STOP_SECONDS_MAX,
        )
        config.load()
        config.ssl = self.tls
        _send_defects(report_defect)
        server = uvicorn.Server(config)
        self._server = server

        def work() -> None:
            with asyncio.Runner(loop_factory=_Loop) as runner:
                runner.run(server.serve(sockets=[self._listener]))

        self._thread = threading.Thread(target=work, name="web", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop answering, and release the port."""
        if self._server is None or self._thread is None:
            self._listener.close()
            return
        self._server.should_exit = True
        self._thread.join(STOP_SECONDS_MAX + 1)


class _Defects(logging.Handler):
    """Reports exceptions of the application and of uvicorn, which it only logs."""

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__(logging.ERROR)
        self._report = report

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        what = "" if error is None else f": {type(error).__name__}: {error}"
        self._report(f"{record.getMessage().strip()}{what}")


def _send_defects(report: Callable[[str], None]) -> None:
    logger = logging.getLogger("uvicorn")
    logger.setLevel(logging.ERROR)  # a broken request is a warning: it is no event of ours
    logger.handlers = [_Defects(report)]
    logger.propagate = False


class _Loop(asyncio.SelectorEventLoop):
    """An event loop whose servers end a TLS handshake that takes too long.

    The limit of asyncio is a minute, and uvicorn does not change it.
    """

    async def create_server(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - the base class
        if options.get("ssl") is not None:
            options.setdefault("ssl_handshake_timeout", REQUEST_SECONDS_MAX)
        return await super().create_server(*args, **options)

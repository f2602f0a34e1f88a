"""What the service answers over HTTP, as an ASGI application. Everything comes from memory.

1. Access is decided first, for every path, also for those that do not exist.
2. /metrics does not pass through the framework, and scrapes that are repeated do not even pass
   through here (scrape_answers.py).
3. Handlers of other paths are in api.py; the page is in web_page.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from gtid_audit.monitoring.runbook_page import runbook_page
from gtid_audit.service.access import OPEN_PATHS, Access, Permission
from gtid_audit.service.api import Api, Problem, answer_problem, problem_response
from gtid_audit.service.cluster_results import ServiceResults
from gtid_audit.service.procedure_source import ProcedureSource
from gtid_audit.service.query_parameters import BadParameter
from gtid_audit.service.readiness import readiness_of
from gtid_audit.service.repeated_audit import Health
from gtid_audit.service.scrape_answers import METRICS_PATH, ScrapeSource, header_of, headers_of
from gtid_audit.service.shared_rendering import MetricFacts, SharedRendering
from gtid_audit.service.web_page import HEADERS, page

_CHALLENGE: Final = 'Bearer, Basic realm="gtid-audit", charset="UTF-8"'
_NEEDS: Final = {
    Permission.NEEDS_TOKEN: (401, "a token is needed: Authorization: Bearer …"),
    Permission.NEEDS_CONFIGURED_TOKEN: (
        403,
        "without a token, an address that other machines reach has no findings (--token-file)",
    ),
}


@dataclass(frozen=True, slots=True)
class ShownFacts:
    """Where the answers come from."""

    results: Callable[[], ServiceResults]
    health: Callable[[], Health]
    journal: ProcedureSource
    collectors: tuple[Collector, ...]


class WebApp:
    """The ASGI application of one service. `access` may be replaced at any time."""

    def __init__(self, facts: ShownFacts, access: Access) -> None:
        self.access = access
        self._facts = facts
        registry = CollectorRegistry(auto_describe=False)
        for each in facts.collectors:
            registry.register(each)
        self._rendering = SharedRendering(
            registry, lambda: MetricFacts(facts.results(), facts.journal.latest())
        )
        self._pages = Starlette(
            routes=[*_routes(facts), *Api(facts.results, facts.journal).routes()],
            exception_handlers={
                Problem: answer_problem,
                BadParameter: answer_problem,
                HTTPException: answer_problem,
                Exception: answer_problem,
            },
        )
        self._pages.router.redirect_slashes = False

    @property
    def scrapes(self) -> ScrapeSource:
        """Return what answers a scrape that was parsed before."""
        return ScrapeSource(
            lambda given: self.access.permission(METRICS_PATH, given) is Permission.ALL,
            self._rendering.recent,
            self._rendering.metrics,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        assert scope["type"] == "http", "the server has neither websockets nor lifespan"
        path = scope["path"]
        permission = self.access.permission(path, header_of(scope["headers"], b"authorization"))
        if permission in _NEEDS:
            status, detail = _NEEDS[permission]
            headers = {"WWW-Authenticate": _CHALLENGE} if status == 401 else {}  # noqa: PLR2004 - a status
            await problem_response(status, detail, **headers)(scope, receive, send)
            return
        if path == METRICS_PATH and scope["method"] in ("GET", "HEAD"):
            await self._metrics(scope, send)
            return
        scope["may_see_reasons"] = permission is Permission.ALL
        await self._pages(scope, receive, send)

    async def _metrics(self, scope: Scope, send: Send) -> None:
        rendered = await self._rendering.metrics(header_of(scope["headers"], b"accept") or "")
        headers = headers_of(rendered)
        body = rendered.body if scope["method"] == "GET" else b""
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _routes(facts: ShownFacts) -> list[Route]:
    def healthz(request: Request) -> Response:
        health = facts.health()
        words = health.reason if request.scope["may_see_reasons"] else _short(health.is_well)
        return PlainTextResponse(f"{words}\n", 200 if health.is_well else 503)

    def readyz(request: Request) -> Response:
        ready = readiness_of(facts.results(), journal_problem=facts.journal.latest().problem)
        shown = ready.lines if request.scope["may_see_reasons"] else (_short(ready.is_ready),)
        return PlainTextResponse("\n".join(shown) + "\n", 200 if ready.is_ready else 503)

    def root(_request: Request) -> Response:
        return HTMLResponse(page(facts.results(), facts.journal.latest()), headers=HEADERS)

    def metrics(_request: Request) -> Response:
        raise AssertionError("WebApp answers it")  # the route exists for other methods: 405

    shown_runbook = runbook_page()

    def runbook(_request: Request) -> Response:
        return HTMLResponse(shown_runbook)

    handlers = {
        "/healthz": healthz,
        "/readyz": readyz,
        "/runbook": runbook,
        "/": root,
        METRICS_PATH: metrics,
    }
    assert handlers.keys() >= OPEN_PATHS, "what needs no token exists"
    return [Route(path, each, methods=["GET"]) for path, each in handlers.items()]


def _short(is_well: bool) -> str:
    return "ok" if is_well else "not ok"

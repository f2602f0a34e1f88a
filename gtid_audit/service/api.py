"""The routes of the API: they read parameters, and return documents or problems as JSON.

1. Only GET and HEAD. Nothing can be changed over HTTP.
2. An error is a problem document (RFC 9457). Its text repeats no value of a request.
3. Handlers are plain functions, which Starlette runs in threads: a large list does not keep a
   scrape waiting.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gtid_audit.service.api_documents import (
    clusters_document,
    finding_document,
    findings_document,
    handshake_document,
    one_procedure_document,
    procedures_document,
)
from gtid_audit.service.api_paths import API_PATHS
from gtid_audit.service.cluster_results import ServiceResults
from gtid_audit.service.openapi_document import PROBLEM_TYPE, openapi_document
from gtid_audit.service.procedure_source import ProcedureSource
from gtid_audit.service.query_parameters import BadParameter, Parameters
from repair.applying.procedures_applied import AppliedProcedure
from topology.adapters.sqlite_files import UnusableFile

_PHRASES: Final = {
    400: "Bad request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    500: "A defect of gtid-audit",
    503: "Not available",
}


class Problem(Exception):
    """A request that has no document. Its text is shown to the client."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


def problem_response(status: int, detail: str, **headers: str) -> Response:
    """Return a problem document."""
    document = {"title": _PHRASES.get(status, "Error"), "status": status, "detail": detail}
    return Response(json.dumps(document), status, headers, PROBLEM_TYPE)


def answer_problem(_request: Request, problem: Exception) -> Response:
    """Return the response to an exception of a handler or of the router."""
    if isinstance(problem, Problem):
        return problem_response(problem.status, problem.detail)
    if isinstance(problem, BadParameter):
        return problem_response(400, str(problem))
    if isinstance(problem, HTTPException):
        detail = {404: "no such path", 405: "only GET and HEAD"}.get(problem.status_code, "")
        return problem_response(problem.status_code, detail, **(problem.headers or {}))
    return problem_response(500, "the log has the reason")


@dataclass(frozen=True, slots=True)
class Api:
    """The handlers, and where their facts come from."""

    results: Callable[[], ServiceResults]
    journal: ProcedureSource

    def routes(self) -> list[Route]:
        """Return one route for each row of API_PATHS."""
        return [
            Route(each.path, getattr(self, each.name), methods=["GET"], name=each.name)
            for each in API_PATHS
        ]

    def clusters(self, request: Request) -> Response:
        """Return the clusters."""
        return _document(clusters_document(self.results(), _asked(request)))

    def findings(self, request: Request) -> Response:
        """Return findings."""
        return _document(findings_document(self.results(), _asked(request)))

    def finding(self, request: Request) -> Response:
        """Return one finding."""
        _asked(request)
        document = finding_document(self.results(), request.path_params["id"])
        if document is None:
            raise Problem(404, "no last audit has a finding with this id")
        return _document(document)

    def handshake(self, request: Request) -> Response:
        """Return the handshakes of a cluster."""
        asked = _asked(request)
        found = [each for each in self.results().clusters if each.cluster == asked.one("cluster")]
        if not found:
            raise Problem(404, "the fleet has no cluster of this name")
        if found[0].ended is None:
            raise Problem(503, "no audit of this cluster has ended yet")
        promote = asked.one("promote")
        if promote is not None and promote not in found[0].ended.audit.servers:
            raise Problem(404, "the cluster has no server of the name in promote")
        return _document(handshake_document(found[0], promote))

    def procedures(self, request: Request) -> Response:
        """Return the procedures."""
        asked = _asked(request)
        return _document(procedures_document(self._procedures(), asked))

    def procedure(self, request: Request) -> Response:
        """Return one procedure."""
        _asked(request)
        wanted = request.path_params["id"]
        found = [each for each in self._procedures() if each.id == wanted]
        if not found:
            raise Problem(404, "the journal has no procedure with this id")
        try:
            events = self.journal.events(wanted)
        except UnusableFile as problem:
            raise Problem(503, str(problem)) from problem
        return _document(one_procedure_document(found[0], events))

    def openapi(self, request: Request) -> Response:
        """Return the OpenAPI document."""
        _asked(request)
        return _document(openapi_document())

    def _procedures(self) -> tuple[AppliedProcedure, ...]:
        """Return the procedures as they were last read. Raises Problem."""
        read = self.journal.latest()
        if read.problem is not None:
            raise Problem(503, read.problem)
        return read.procedures


def _asked(request: Request) -> Parameters:
    """Return the parameters of a request. Raises BadParameter."""
    # The endpoint is a handler, named like its row. Older Starlettes have no route in the scope.
    declared = _PARAMETERS[request.scope["endpoint"].__name__]
    return Parameters.of(declared, request.query_params.multi_items())


_PARAMETERS: Final = {each.name: each.parameters for each in API_PATHS}


def _document(document: Mapping[str, Any]) -> Response:
    text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    return Response(text.encode(errors="backslashreplace"), media_type="application/json")

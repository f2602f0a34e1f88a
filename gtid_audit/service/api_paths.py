"""The paths of the API: parameters, documents and problems. One table for routes and document."""

from dataclasses import dataclass
from typing import Final

from gtid_audit.service.query_parameters import Parameter
from repair.applying.procedures_applied import ProcedureState
from topology.catalogue.findings import Severity, Verdict
from topology.catalogue.verdict_table import CATALOGUE

API: Final = "/api/v1"
_ALWAYS: Final = frozenset({400, 401, 403, 405})


@dataclass(frozen=True, slots=True)
class ApiPath:
    """One path. `document` is the name of its schema, `problems` are statuses of errors."""

    name: str
    path: str
    about: str
    document: str | None
    parameters: tuple[Parameter, ...] = ()
    problems: frozenset[int] = _ALWAYS


_LIMIT: Final = Parameter("limit", "How many items at most.", is_number=True)
_CURSOR: Final = Parameter("cursor", "The next_cursor of the page before.")
_CLUSTERS: Final = Parameter("cluster", "Only these clusters.", is_list=True)

API_PATHS: Final = (
    ApiPath(
        "clusters",
        f"{API}/clusters",
        "The clusters of the fleet, each with the verdict of its last audit.",
        "Clusters",
        (
            _CLUSTERS,
            Parameter(
                "verdict",
                "Only clusters with these verdicts.",
                words=tuple(each.value for each in Verdict),
                is_list=True,
            ),
            _LIMIT,
            _CURSOR,
        ),
    ),
    ApiPath(
        "findings",
        f"{API}/findings",
        "The findings of the last audits, worst first within a cluster.",
        "Findings",
        (
            _CLUSTERS,
            Parameter(
                "code",
                "Only findings with these codes.",
                words=tuple(sorted(CATALOGUE)),
                is_list=True,
            ),
            Parameter(
                "severity",
                "Only findings of these severities.",
                words=tuple(each.value for each in Severity),
                is_list=True,
            ),
            _LIMIT,
            _CURSOR,
        ),
    ),
    ApiPath(
        "finding",
        f"{API}/findings/{{id}}",
        "One finding.",
        "Finding",
        problems=_ALWAYS | {404},
    ),
    ApiPath(
        "handshake",
        f"{API}/handshake",
        "Which server of a cluster could replicate from which one, by the last audit.",
        "Handshake",
        (
            Parameter("cluster", "The cluster.", is_required=True),
            Parameter("promote", "May this server become the source of all?"),
        ),
        problems=_ALWAYS | {404, 503},
    ),
    ApiPath(
        "procedures",
        f"{API}/procedures",
        "The repairs that were applied or are being applied, the newest first.",
        "Procedures",
        (
            _CLUSTERS,
            Parameter(
                "state",
                "Only procedures in these states.",
                words=tuple(each.value for each in ProcedureState),
                is_list=True,
            ),
            _LIMIT,
            _CURSOR,
        ),
        problems=_ALWAYS | {503},
    ),
    ApiPath(
        "procedure",
        f"{API}/procedures/{{id}}",
        "One procedure, with its events.",
        "Procedure",
        problems=_ALWAYS | {404, 503},
    ),
    ApiPath("openapi", f"{API}/openapi.json", "This document.", None),
)

"""The OpenAPI document of the API, made from the same tables as the API itself."""

from collections.abc import Sequence
from typing import Any, Final

from gtid_audit import __version__
from gtid_audit.service.api_paths import API_PATHS, ApiPath
from gtid_audit.service.api_schemas import schemas
from gtid_audit.service.query_parameters import Parameter

PROBLEM_TYPE: Final = "application/problem+json"
_PROBLEMS: Final = {
    400: "A parameter is wrong.",
    401: "The token is missing or wrong.",
    403: "The service has no token, and its address can be reached from other machines.",
    404: "There is no such cluster, finding or procedure.",
    405: "The method is not GET or HEAD.",
    503: "It is not known yet, or a file cannot be read; the text has the reason.",
}


def openapi_document() -> dict[str, Any]:
    """Return the document (OpenAPI 3.1)."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "gtid-audit",
            "version": __version__,
            "description": "The last audits of a fleet. No request reaches a MySQL server.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"bearer": []}, {"basic": []}],
        "paths": {each.path: {"get": _operation(each)} for each in API_PATHS},
        "components": {
            "schemas": schemas(),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "basic": {"type": "http", "scheme": "basic"},
            },
        },
    }


def _operation(path: ApiPath) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    if path.document is not None:
        schema = {"$ref": f"#/components/schemas/{path.document}"}
    responses: dict[str, Any] = {
        "200": {"description": path.about, "content": {"application/json": {"schema": schema}}}
    }
    for status, about in _PROBLEMS.items():
        if status in path.problems:
            problem = {"$ref": "#/components/schemas/Problem"}
            content = {PROBLEM_TYPE: {"schema": problem}}
            responses[str(status)] = {"description": about, "content": content}
    return {
        "operationId": path.name,
        "summary": path.about,
        "parameters": [*_in_path(path), *_in_query(path.parameters)],
        "responses": responses,
    }


def _in_path(path: ApiPath) -> list[dict[str, Any]]:
    if "{id}" not in path.path:
        return []
    schema = {"type": "string", "minLength": 1}
    return [{"name": "id", "in": "path", "required": True, "schema": schema}]


def _in_query(parameters: Sequence[Parameter]) -> list[dict[str, Any]]:
    return [
        {
            "name": each.name,
            "in": "query",
            "description": each.about,
            "required": each.is_required,
            "schema": each.schema(),
            **({"style": "form", "explode": True} if each.is_list else {}),
        }
        for each in parameters
    ]

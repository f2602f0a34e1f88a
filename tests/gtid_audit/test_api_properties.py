"""A client that knows only the OpenAPI document tries whatever it permits, and what it forbids."""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from gtid_audit.service.access import Access, Tokens
from gtid_audit.service.api_paths import API_PATHS
from gtid_audit.service.web import WebServer
from tests.gtid_audit.build import half_read, healthy, holed
from tests.gtid_audit.served import SOON, audit_all, service_of, web_server
from tests.gtid_audit.test_api import begun_in

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the libraries that it imports
    import schemathesis
    from schemathesis import GenerationMode
    from schemathesis.specs.openapi.checks import positive_data_acceptance

TOKEN = "a-token-of-the-property-tests"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
EXAMPLES = 15


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    journal = tmp_path_factory.mktemp("journal") / "journal.sqlite"
    begun_in(journal)
    service = audit_all(service_of(healthy("a"), half_read("b"), holed("c")))
    access = Access(Tokens.of([TOKEN], where="here"), is_loopback=True)
    with web_server(service, access=access, journal=journal) as (found, _):
        yield found


@pytest.fixture(scope="module")
def api(server: WebServer) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"{server.url}/api/v1/openapi.json", headers=HEADERS)


def try_all(
    operation: schemathesis.APIOperation[Any, Any, Any, Any], mode: GenerationMode, examples: int
) -> None:
    """Send requests that the document permits, or forbids, and check each answer against it."""

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    def check(case: schemathesis.Case[Any]) -> None:
        answer = case.call(headers=HEADERS, timeout=SOON)
        # No schema can say what a cursor is: that of a page which the client has seen.
        of_cursor = answer.status_code == 400 and "cursor: " in answer.json()["detail"]
        case.validate_response(
            answer, excluded_checks=[positive_data_acceptance] if of_cursor else []
        )

    check()


@pytest.mark.parametrize("path", [each.path for each in API_PATHS])
def test_every_answer_is_as_the_document_says(api: schemathesis.BaseSchema, path: str) -> None:
    try_all(api[path]["GET"], GenerationMode.POSITIVE, EXAMPLES)


@pytest.mark.long
@pytest.mark.parametrize("path", [each.path for each in API_PATHS if each.parameters])
def test_what_the_document_forbids_is_refused(api: schemathesis.BaseSchema, path: str) -> None:
    try_all(api[path]["GET"], GenerationMode.NEGATIVE, EXAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize("path", [each.path for each in API_PATHS])
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_a_thousand_requests_to_each_path(
    api: schemathesis.BaseSchema, path: str, mode: GenerationMode
) -> None:
    if mode is GenerationMode.NEGATIVE and not next(
        each.parameters for each in API_PATHS if each.path == path
    ):
        return  # it has nothing that could be wrong
    try_all(api[path]["GET"], mode, 1000)

"""The JSON API over HTTP: documents, filters, pages, problems; each document fits its schema."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gtid_audit import clock
from gtid_audit.service.api_paths import API_PATHS
from gtid_audit.service.api_schemas import schemas
from gtid_audit.service.openapi_document import openapi_document
from gtid_audit.service.web import WebServer
from repair.adapters.journal import Journal
from repair.applying.procedures_applied import EventKind, ProcedureState
from tests.gtid_audit.build import half_read, healthy, holed
from tests.gtid_audit.served import audit_all, document, service_of, web_server
from topology.catalogue.findings import Verdict

SECRET_ROW = "INSERT INTO t VALUES ('row of a customer')"


def begun_in(file: Path, cluster: str = "pair") -> str:
    """Record a procedure that sends a statement and fails. Return its id."""
    journal = Journal.at(file)
    procedure = journal.begin(
        plan_id="p1",
        cluster=cluster,
        directory=file.parent,
        servers=("a",),
        operator="me@here",
        scripts_total=2,
    )
    with journal.at_work(procedure.id) as writer:
        writer.write(EventKind.SCRIPT, "01-a.sql", script=1, server="a")
        writer.write(EventKind.SENT, SECRET_ROW, script=1, server="a")
        writer.write(EventKind.ERROR, "it failed", script=1, server="a")
        writer.enter(ProcedureState.FAILED, "it failed", done=0)
    return procedure.id


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """Three clusters that were audited, and one that was not; a journal with two procedures."""
    journal = tmp_path_factory.mktemp("journal") / "journal.sqlite"
    for cluster in ("pair", "other"):
        begun_in(journal, cluster)
    service = service_of(healthy("a"), half_read("b"), holed("c"), healthy("d"))
    for _ in range(3):
        assert service.audit_next()
    with web_server(service, journal=journal) as (found, _):
        yield found


def valid(server: WebServer, path: str, schema: str, *, status: int = 200) -> dict[str, Any]:
    found = document(server, path, status=status)
    jsonschema.validate(
        found,
        schemas(is_closed=True)[schema],
        format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER,
    )
    return found


def test_clusters(server: WebServer) -> None:
    found = valid(server, "/api/v1/clusters", "Clusters")
    shown = {each["cluster"]: each for each in found["clusters"]}
    assert found["total"] == 4
    assert found["configuration"]["problem"] is None
    verdicts = {name: (each["verdict"], each["last_verdict"]) for name, each in shown.items()}
    assert verdicts == {
        "a": ("OK", "OK"),
        "b": ("UNKNOWN", "UNKNOWN"),
        "c": ("CRITICAL", "CRITICAL"),
        "d": ("UNKNOWN", None),
    }
    assert shown["c"]["findings"]["critical"] == 1
    assert shown["b"]["unknown"][0]["server"] == "b"
    assert (shown["d"]["audits"], shown["d"]["read_at"], shown["d"]["servers"]) == (
        *(0, None, ["a", "b"]),
    )
    critical = valid(server, "/api/v1/clusters?verdict=CRITICAL&verdict=OK", "Clusters")
    assert [each["cluster"] for each in critical["clusters"]] == ["a", "c"]
    one = valid(server, "/api/v1/clusters?cluster=b", "Clusters")
    assert [each["cluster"] for each in one["clusters"]] == ["b"]
    assert valid(server, "/api/v1/clusters?cluster=none", "Clusters")["clusters"] == []


@pytest.mark.long
def test_a_cluster_whose_audit_is_too_old_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    service = audit_all(service_of(healthy("a")))
    later = clock.monotonic_seconds() + 1000
    monkeypatch.setattr(clock, "monotonic_seconds", lambda: later)
    with web_server(service) as (server, _):
        [old] = valid(server, "/api/v1/clusters?verdict=UNKNOWN", "Clusters")["clusters"]
    assert (old["verdict"], old["last_verdict"], old["is_stale"]) == ("UNKNOWN", "OK", True)


def test_findings_and_their_filters(server: WebServer) -> None:
    every = valid(server, "/api/v1/findings", "Findings")
    assert every["total"] == len(every["findings"]) >= 2
    assert {each["cluster"] for each in every["findings"]} == {"b", "c"}
    for query, expected in (
        ("cluster=c", {"c"}),
        ("severity=critical", {"c"}),
        ("code=H1", {"c"}),
        ("code=U1&code=H1", {"b", "c"}),
        ("cluster=a", set()),
        ("cluster=b&code=H1", set()),
    ):
        some = valid(server, f"/api/v1/findings?{query}", "Findings")
        assert {each["cluster"] for each in some["findings"]} == expected, query


def test_one_finding(server: WebServer) -> None:
    [hole] = valid(server, "/api/v1/findings?code=H1", "Findings")["findings"]
    assert valid(server, f"/api/v1/findings/{hole['id']}", "Finding")["finding"] == hole
    problem = valid(server, "/api/v1/findings/none", "Problem", status=404)
    assert problem["detail"] == "no last audit has a finding with this id"


def test_pages_have_every_item_once(server: WebServer) -> None:
    for path, name, key in (
        ("/api/v1/findings", "findings", "id"),
        ("/api/v1/clusters", "clusters", "cluster"),
        ("/api/v1/procedures", "procedures", "procedure"),
    ):
        whole = [each[key] for each in document(server, path)[name]]
        found, cursor = [], ""
        while True:
            page = document(server, f"{path}?limit=1{cursor}")
            assert len(page[name]) == 1
            found += [each[key] for each in page[name]]
            if page["next_cursor"] is None:
                break
            cursor = f"&cursor={page['next_cursor']}"
        assert found == whole


def test_a_page_goes_on_behind_an_item_that_has_gone() -> None:
    service = audit_all(service_of(*(healthy(each) for each in "abcd")))
    with web_server(service) as (server, _):
        first = document(server, "/api/v1/clusters?limit=2")
        fleet = service._fleet
        left = tuple(each for each in fleet.clusters if each.name != "b")
        service.use_fleet(replace(fleet, clusters=left))
        rest = document(server, f"/api/v1/clusters?cursor={first['next_cursor']}")
    assert [each["cluster"] for each in rest["clusters"]] == ["c", "d"]


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("findings?codes=H1", "unknown parameter; the parameters of this path: cluster, code,"),
        ("findings?code=H99", "code: expected one of "),
        ("findings?severity=fatal", "severity: expected one of info, warning, critical"),
        ("findings?limit=0", "limit: expected a number from 1 to 1000"),
        ("findings?limit=1001", "limit: expected a number from 1 to 1000"),
        ("findings?limit=%D9%A1", "limit: expected a number"),
        ("findings?limit=1&limit=2", "limit: expected once, found 2 times"),
        ("findings?cluster=", "cluster: expected 1 to 4096 characters"),
        ("findings?cursor=x", "cursor: expected the next_cursor of an earlier page"),
        ("findings?cursor=WzFd", "cursor: expected the next_cursor of an earlier page"),
        ("findings?" + "&".join(["cluster=a"] * 51), "cluster: expected at most 50 values"),
        ("clusters?cursor=WzFd", "cursor: expected"),
        ("clusters?verdict=BAD", "verdict: expected one of OK, WARNING, CRITICAL, UNKNOWN"),
        ("handshake", "cluster: is required"),
        ("procedures?state=gone", "state: expected one of pending, "),
        ("openapi.json?x=1", "the parameters of this path: none"),
        ("findings/x?y=1", "the parameters of this path: none"),
    ],
)
def test_wrong_parameters(server: WebServer, query: str, detail: str) -> None:
    problem = valid(server, f"/api/v1/{query}", "Problem", status=400)
    assert detail in problem["detail"]


def test_handshakes_of_the_last_audit(server: WebServer) -> None:
    matrix = valid(server, "/api/v1/handshake?cluster=a", "Handshake")
    assert matrix["verdict"] == Verdict.OK.value
    assert {each["outcome"] for each in matrix["answers"]} == {"served"}
    assert valid(server, "/api/v1/handshake?cluster=c", "Handshake")["verdict"] != "OK"
    assert valid(server, "/api/v1/handshake?cluster=b", "Handshake")["verdict"] == "UNKNOWN"
    promoted = valid(server, "/api/v1/handshake?cluster=c&promote=b", "Handshake")
    assert promoted["promotion"]["candidate"] == "b"
    for query, status, detail in (
        ("cluster=none", 404, "the fleet has no cluster of this name"),
        ("cluster=d", 503, "no audit of this cluster has ended yet"),
        ("cluster=c&promote=x", 404, "the cluster has no server of the name in promote"),
    ):
        problem = valid(server, f"/api/v1/handshake?{query}", "Problem", status=status)
        assert problem["detail"] == detail


def test_procedures_without_their_statements(server: WebServer) -> None:
    listed = valid(server, "/api/v1/procedures", "Procedures")
    assert [each["cluster"] for each in listed["procedures"]] == ["other", "pair"]
    some = valid(server, "/api/v1/procedures?cluster=pair&state=failed", "Procedures")
    [procedure] = some["procedures"]
    assert valid(server, "/api/v1/procedures?state=done", "Procedures")["total"] == 0
    whole = valid(server, f"/api/v1/procedures/{procedure['procedure']}", "Procedure")
    assert [each["event"] for each in whole["events"]] == ["script", "error"]
    assert whole["statements_sent"] == 1
    assert "customer" not in str(whole)
    valid(server, "/api/v1/procedures/none", "Problem", status=404)


@pytest.mark.long
def test_a_journal_that_is_absent_or_unreadable(tmp_path: Path) -> None:
    absent, broken = tmp_path / "absent", tmp_path / "broken"
    broken.write_text("not SQLite" * 100)
    with web_server(service_of(healthy()), journal=absent) as (server, _):
        assert document(server, "/api/v1/procedures")["procedures"] == []
        assert not absent.exists(), "nothing was applied: there is nothing to create"
    with web_server(service_of(healthy()), journal=broken) as (server, _):
        for path in ("/api/v1/procedures", "/api/v1/procedures/x"):
            problem = valid(server, path, "Problem", status=503)
            assert "not a SQLite file" in problem["detail"]


def test_the_document_describes_every_path(server: WebServer) -> None:
    found = document(server, "/api/v1/openapi.json")
    assert found == openapi_document()
    assert set(found["paths"]) == {each.path for each in API_PATHS}
    for each in API_PATHS:
        operation = found["paths"][each.path]["get"]
        names = [one["name"] for one in operation["parameters"]]
        assert names == (["id"] if "{id}" in each.path else []) + [
            one.name for one in each.parameters
        ]
        assert {int(status) for status in operation["responses"]} == {200, *each.problems}
    for schema in found["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)

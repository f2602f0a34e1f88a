"""The document of an audit follows its JSON Schema, which docs/reference holds."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from binlog.content.server_starts import ServerStart
from gtid_audit.document_types.command_documents import reference_files, schema_of
from gtid_audit.views.report import Engine, report_of
from tests.definitions import a_compared_pair, a_reading
from tests.gtid_audit.build import half_read, healthy, holed
from topology.audit_cluster import audit_cluster
from topology.readings.contents import ContentReading, UnreadContent
from topology.readings.snapshot import ClusterSnapshot

REFERENCE = Path(__file__).parents[2] / "docs/reference/audit.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(schema_of("audit", is_closed=True))


def documents(
    *snapshots: ClusterSnapshot, contents: Any = None, definitions: Any = None
) -> list[dict[str, Any]]:
    """Return the document of an audit as `--json` prints it."""
    report = report_of(Engine.LOCAL, map(audit_cluster, snapshots))
    return [json.loads("".join(report.document_pieces(contents, definitions)))]


def compared() -> dict[str, ContentReading]:
    moment = healthy("x").last[0].read_ended
    note = UnreadContent("a", "no log")
    start = ServerStart("a", moment, "binlog.000002")
    reading = ContentReading(moment, 1, (start,), (), (note,))
    return {"x": replace(reading, pairs=(("a", "b"),), remarks=(note,))}


@pytest.mark.parametrize(
    "document",
    [
        *documents(),
        *documents(healthy("x"), holed("y"), half_read("z")),
        *documents(healthy("x"), contents=compared()),
        *documents(
            healthy("x"),
            definitions={"x": a_reading(a_compared_pair(), unread=("triggers",))},
        ),
    ],
)
def test_a_document_has_exactly_the_fields_of_its_schema(document: dict[str, Any]) -> None:
    VALIDATOR.validate(document)


@pytest.mark.parametrize(
    "change",
    [{"schema_version": 2}, {"verdict": "FINE"}, {"findings": [{}]}, {"contents": {}}, {"new": 1}],
)
def test_a_document_with_other_fields_is_not_valid(change: dict[str, Any]) -> None:
    [document] = documents(holed("y"))
    assert not VALIDATOR.is_valid({**document, **change})


def test_readers_of_the_published_schema_ignore_new_fields() -> None:
    [document] = documents(holed("y"))
    published = json.loads(REFERENCE.read_text())
    jsonschema.Draft202012Validator.check_schema(published)
    jsonschema.Draft202012Validator(published).validate({**document, "new": 1})


def test_the_reference_is_as_generated() -> None:
    assert REFERENCE.read_text() == reference_files()["audit.schema.json"], "run `make docs`"

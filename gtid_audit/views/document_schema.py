"""The JSON Schema of an audit's document: what `pair` and `audit` print with `--json`.

Fields of findings and unread facts are those of their records (topology/documents/records.py). The
rest is declared here; report.py, content_text.py, definition_text.py and
topology/documents/json_items.py write it.
`python -m gtid_audit.views.document_schema` prints the schema; `make docs` stores it.
"""

import json
import sys
from typing import Any, Final

from gtid_audit.views.report import Engine
from topology.catalogue.findings import Verdict
from topology.documents.document_version import SCHEMA_VERSION
from topology.documents.json_schema import json_schema_of
from topology.documents.label_records import LABELS
from topology.documents.plain_types import (
    NUMBER,
    TEXT,
    TIME,
    PlainKind,
    PlainType,
    list_of,
    record_of,
)
from topology.documents.records import FINDING, UNKNOWN

_VERDICT: Final = PlainType(PlainKind.TEXT, words=tuple(each.value for each in Verdict))
_ENGINE: Final = PlainType(PlainKind.TEXT, words=tuple(each.value for each in Engine))


_CLUSTER: Final = record_of(
    cluster=TEXT,
    verdict=_VERDICT,
    servers=list_of(TEXT),
    read_at=TIME.or_null(),
    labels=LABELS.plain_type,
)
_NOTE: Final = record_of(server=TEXT, reason=TEXT)
_CONTENT: Final = record_of(
    cluster=TEXT,
    read_at=TIME,
    compared_count=NUMBER,
    undecided_count=NUMBER,
    suspect_count=NUMBER,
    newest_count=NUMBER,
    differing_count=NUMBER,
    pairs=list_of(list_of(TEXT)),
    starts=list_of(record_of(server=TEXT, started_at=TIME, file=TEXT)),
    unread=list_of(_NOTE),
    remarks=list_of(_NOTE),
)
_DEFINITIONS: Final = record_of(
    cluster=TEXT,
    read_at=TIME,
    object_count=NUMBER,
    differing_count=NUMBER,
    pairs=list_of(list_of(TEXT)),
    unread=list_of(record_of(server=TEXT, fact=TEXT, reason=TEXT)),
)
AUDIT_DOCUMENT: Final = record_of(
    schema_version=NUMBER,
    audited_at=TIME.or_null(),
    engine=_ENGINE,
    verdict=_VERDICT,
    clusters=list_of(_CLUSTER),
    findings=list_of(FINDING.plain_type),
    unknown=list_of(UNKNOWN.plain_type),
    contents=list_of(_CONTENT).or_null(),
    definitions=list_of(_DEFINITIONS).or_null(),
)


def audit_schema(*, is_closed: bool = False) -> dict[str, Any]:
    """Return the schema of an audit's document; see `json_schema_of` for `is_closed`."""
    schema = json_schema_of(AUDIT_DOCUMENT, is_closed=is_closed)
    schema["properties"]["schema_version"] = {"const": SCHEMA_VERSION}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The result of a gtid-audit audit",
        **schema,
    }


def schema_text() -> str:
    """Return the schema as a file."""
    return json.dumps(audit_schema(), indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())

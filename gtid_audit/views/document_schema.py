"""The JSON Schema of an audit's document: what `pair` and `audit` print with `--json`.

Fields of findings and unread facts are those of their records (topology/documents/records.py). The
rest is declared here; report.py, content_text.py and topology/documents/json_items.py write it.
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
from topology.documents.plain_types import PlainKind, PlainType
from topology.documents.records import FINDING, UNKNOWN

_TEXT: Final = PlainType(PlainKind.TEXT)
_NUMBER: Final = PlainType(PlainKind.NUMBER)
_TIME: Final = PlainType(PlainKind.TIME)
_VERDICT: Final = PlainType(PlainKind.TEXT, words=tuple(each.value for each in Verdict))
_ENGINE: Final = PlainType(PlainKind.TEXT, words=tuple(each.value for each in Engine))


def _record(**parts: PlainType) -> PlainType:
    return PlainType(PlainKind.RECORD, parts=tuple(parts.items()))


def _list(item: PlainType) -> PlainType:
    return PlainType(PlainKind.LIST, item=item)


_CLUSTER: Final = _record(
    cluster=_TEXT,
    verdict=_VERDICT,
    servers=_list(_TEXT),
    read_at=_TIME.or_null(),
    labels=LABELS.plain_type,
)
_NOTE: Final = _record(server=_TEXT, reason=_TEXT)
_CONTENT: Final = _record(
    cluster=_TEXT,
    read_at=_TIME,
    compared_count=_NUMBER,
    undecided_count=_NUMBER,
    suspect_count=_NUMBER,
    newest_count=_NUMBER,
    differing_count=_NUMBER,
    pairs=_list(_list(_TEXT)),
    starts=_list(_record(server=_TEXT, started_at=_TIME, file=_TEXT)),
    unread=_list(_NOTE),
    remarks=_list(_NOTE),
)
AUDIT_DOCUMENT: Final = _record(
    schema_version=_NUMBER,
    audited_at=_TIME.or_null(),
    engine=_ENGINE,
    verdict=_VERDICT,
    clusters=_list(_CLUSTER),
    findings=_list(FINDING.plain_type),
    unknown=_list(UNKNOWN.plain_type),
    contents=_list(_CONTENT).or_null(),
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

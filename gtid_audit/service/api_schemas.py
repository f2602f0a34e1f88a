"""The types of the documents of the API, from which the schemas of OpenAPI are made.

Handshakes and procedures are those of commands (gtid_audit/document_types). Fields of findings and
unread facts are declared with their records. The rest is declared here; api_documents.py writes it.
"""

from typing import Any, Final

from gtid_audit.document_types.procedure_types import EVENT, PROCEDURE_PARTS
from gtid_audit.document_types.server_types import HANDSHAKE
from gtid_audit.document_types.shared_types import VERDICT, document_of
from topology.catalogue.findings import Severity
from topology.documents.json_schema import json_schema_of
from topology.documents.label_records import LABELS
from topology.documents.plain_types import (
    FLAG,
    NUMBER,
    TEXT,
    TIME,
    PlainType,
    list_of,
    record_of,
    words_of,
)
from topology.documents.records import FINDING, UNKNOWN

_PAGE: Final = {"total": NUMBER, "next_cursor": TEXT.or_null()}

_CLUSTER: Final = record_of(
    cluster=TEXT,
    verdict=VERDICT,
    last_verdict=VERDICT.or_null(),
    is_stale=FLAG,
    not_seen_again=list_of(
        record_of(
            id=TEXT,
            code=TEXT,
            name=TEXT,
            severity=words_of(*(each.value for each in Severity)),
            source=TEXT.or_null(),
            replica=TEXT.or_null(),
            channel=TEXT.or_null(),
            first_seen=TIME,
            last_seen=TIME,
        )
    ),
    servers=list_of(TEXT),
    labels=LABELS.plain_type,
    read_at=TIME.or_null(),
    audited_at=TIME.or_null(),
    audit_milliseconds=NUMBER.or_null(),
    audits=NUMBER,
    failures=NUMBER,
    failure=TEXT.or_null(),
    findings=record_of(**{each.value: NUMBER for each in Severity}),
    unknown=list_of(UNKNOWN.plain_type),
)
DOCUMENTS: Final[dict[str, PlainType]] = {
    "Clusters": document_of(
        **_PAGE,
        configuration=record_of(loaded_at=TIME, problem=TEXT.or_null()),
        clusters=list_of(_CLUSTER),
    ),
    "Findings": document_of(**_PAGE, findings=list_of(FINDING.plain_type)),
    "Finding": document_of(finding=FINDING.plain_type),
    "Handshake": HANDSHAKE,
    "Procedures": document_of(**_PAGE, procedures=list_of(record_of(**PROCEDURE_PARTS))),
    "Procedure": document_of(**PROCEDURE_PARTS, events=list_of(EVENT), statements_sent=NUMBER),
    "Problem": record_of(title=TEXT, status=NUMBER, detail=TEXT),
}


def schemas(*, is_closed: bool = False) -> dict[str, dict[str, Any]]:
    """Return the schemas by name. Readers ignore fields that they do not know; tests must not."""
    return {name: json_schema_of(each, is_closed=is_closed) for name, each in DOCUMENTS.items()}

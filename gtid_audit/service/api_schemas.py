"""The types of the documents of the API, from which the schemas of OpenAPI are made.

Fields of findings and unread facts are declared with their records. The rest is declared here;
api_documents.py writes it, except handshakes (views/handshakes.py) and procedures
(views/procedure_text.py).
"""

from typing import Any, Final

from repair.applying.procedures_applied import EventKind, ProcedureState
from topology.catalogue.findings import Severity, Verdict
from topology.documents.document_version import SCHEMA_VERSION
from topology.documents.json_schema import json_schema_of
from topology.documents.label_records import LABELS
from topology.documents.plain_types import (
    COUNT,
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
from topology.facts.source_answer import FailedCheck, Outcome

_VERDICT: Final = words_of(*(each.value for each in Verdict))
_PAGE: Final = {"schema_version": NUMBER, "total": NUMBER, "next_cursor": TEXT.or_null()}

_CLUSTER: Final = record_of(
    cluster=TEXT,
    verdict=_VERDICT,
    last_verdict=_VERDICT.or_null(),
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
_PROCEDURE: Final = {
    "procedure": TEXT,
    "plan": TEXT,
    "cluster": TEXT,
    "directory": TEXT,
    "servers": list_of(TEXT),
    "operator": TEXT,
    "started_at": TIME,
    "ended_at": TIME.or_null(),
    "state": words_of(*(each.value for each in ProcedureState)),
    "scripts_total": NUMBER,
    "scripts_done": NUMBER,
    "message": TEXT,
    "verdict": _VERDICT.or_null(),
    "is_stop_requested": FLAG,
}
_EVENT: Final = record_of(
    number=NUMBER,
    at=TIME,
    event=words_of(*(each.value for each in EventKind)),
    script=NUMBER.or_null(),
    server=TEXT.or_null(),
    text=TEXT,
)
_ANSWER: Final = record_of(
    source=TEXT,
    replica=TEXT,
    outcome=words_of(*(each.value for each in Outcome)),
    refusal=words_of(*(each.value for each in FailedCheck)).or_null(),
    gtid_set=TEXT,
    gtid_count=COUNT,
    different_content=TEXT,
    fetched=TEXT,
    dropped=TEXT,
    ahead=TEXT,
    received=TEXT,
    errno=NUMBER.or_null(),
    text=TEXT.or_null(),
    text_seen_on=TEXT.or_null(),
    doubts=list_of(TEXT),
    served_until=TIME.or_null(),
    served_from=TEXT.or_null(),
    unread=TEXT.or_null(),
    group=TEXT.or_null(),
    joins=TEXT.or_null(),
    through=TEXT.or_null(),
)
_PROMOTION: Final = record_of(
    candidate=TEXT,
    best=TEXT,
    arrives=TEXT,
    unapplied=list_of(record_of(server=TEXT, gtid_set=TEXT)),
    missing=list_of(
        record_of(
            gtid_set=TEXT, donor=TEXT.or_null(), receiver=TEXT.or_null(), holders=list_of(TEXT)
        )
    ),
    breaks=list_of(record_of(server=TEXT, donor=TEXT.or_null())),
    steps=list_of(record_of(server=TEXT.or_null(), what=TEXT, sql=list_of(TEXT))),
)
DOCUMENTS: Final[dict[str, PlainType]] = {
    "Clusters": record_of(
        **_PAGE,
        configuration=record_of(loaded_at=TIME, problem=TEXT.or_null()),
        clusters=list_of(_CLUSTER),
    ),
    "Findings": record_of(**_PAGE, findings=list_of(FINDING.plain_type)),
    "Finding": record_of(schema_version=NUMBER, finding=FINDING.plain_type),
    "Handshake": record_of(
        schema_version=NUMBER,
        cluster=TEXT,
        read_at=TIME.or_null(),
        verdict=_VERDICT,
        servers=list_of(TEXT),
        offered=TEXT.or_null(),
        answers=list_of(_ANSWER),
        groups=list_of(
            record_of(
                name=TEXT, primaries=list_of(TEXT), members=list_of(TEXT), outside=list_of(TEXT)
            )
        ),
        contents_compared=list_of(list_of(TEXT)),
        promotion=_PROMOTION.or_null(),
        unknown=list_of(record_of(server=TEXT, reason=TEXT)),
    ),
    "Procedures": record_of(**_PAGE, procedures=list_of(record_of(**_PROCEDURE))),
    "Procedure": record_of(
        schema_version=NUMBER, **_PROCEDURE, events=list_of(_EVENT), statements_sent=NUMBER
    ),
    "Problem": record_of(title=TEXT, status=NUMBER, detail=TEXT),
}


def schemas(*, is_closed: bool = False) -> dict[str, dict[str, Any]]:
    """Return the schemas by name. Readers ignore fields that they do not know; tests must not."""
    found = {name: json_schema_of(each, is_closed=is_closed) for name, each in DOCUMENTS.items()}
    for schema in found.values():
        if "schema_version" in schema["properties"]:
            schema["properties"]["schema_version"] = {"const": SCHEMA_VERSION}
    return found

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
from topology.documents.plain_types import PlainKind, PlainType
from topology.documents.records import FINDING, UNKNOWN
from topology.facts.source_answer import FailedCheck, Outcome

_TEXT: Final = PlainType(PlainKind.TEXT)
_NUMBER: Final = PlainType(PlainKind.NUMBER)
_COUNT: Final = PlainType(PlainKind.COUNT)
_FLAG: Final = PlainType(PlainKind.FLAG)
_TIME: Final = PlainType(PlainKind.TIME)


def _words(*words: str) -> PlainType:
    return PlainType(PlainKind.TEXT, words=words)


def _record(**parts: PlainType) -> PlainType:
    return PlainType(PlainKind.RECORD, parts=tuple(parts.items()))


def _list(item: PlainType) -> PlainType:
    return PlainType(PlainKind.LIST, item=item)


_VERDICT: Final = _words(*(each.value for each in Verdict))
_PAGE: Final = {"schema_version": _NUMBER, "total": _NUMBER, "next_cursor": _TEXT.or_null()}

_CLUSTER: Final = _record(
    cluster=_TEXT,
    verdict=_VERDICT,
    last_verdict=_VERDICT.or_null(),
    is_stale=_FLAG,
    servers=_list(_TEXT),
    labels=LABELS.plain_type,
    read_at=_TIME.or_null(),
    audited_at=_TIME.or_null(),
    audit_milliseconds=_NUMBER.or_null(),
    audits=_NUMBER,
    failures=_NUMBER,
    failure=_TEXT.or_null(),
    findings=_record(**{each.value: _NUMBER for each in Severity}),
    unknown=_list(UNKNOWN.plain_type),
)
_PROCEDURE: Final = {
    "procedure": _TEXT,
    "plan": _TEXT,
    "cluster": _TEXT,
    "directory": _TEXT,
    "servers": _list(_TEXT),
    "operator": _TEXT,
    "started_at": _TIME,
    "ended_at": _TIME.or_null(),
    "state": _words(*(each.value for each in ProcedureState)),
    "scripts_total": _NUMBER,
    "scripts_done": _NUMBER,
    "message": _TEXT,
    "verdict": _VERDICT.or_null(),
    "is_stop_requested": _FLAG,
}
_EVENT: Final = _record(
    number=_NUMBER,
    at=_TIME,
    event=_words(*(each.value for each in EventKind)),
    script=_NUMBER.or_null(),
    server=_TEXT.or_null(),
    text=_TEXT,
)
_ANSWER: Final = _record(
    source=_TEXT,
    replica=_TEXT,
    outcome=_words(*(each.value for each in Outcome)),
    refusal=_words(*(each.value for each in FailedCheck)).or_null(),
    gtid_set=_TEXT,
    gtid_count=_COUNT,
    different_content=_TEXT,
    fetched=_TEXT,
    dropped=_TEXT,
    ahead=_TEXT,
    received=_TEXT,
    errno=_NUMBER.or_null(),
    text=_TEXT.or_null(),
    text_seen_on=_TEXT.or_null(),
    doubts=_list(_TEXT),
    served_until=_TIME.or_null(),
    served_from=_TEXT.or_null(),
    unread=_TEXT.or_null(),
    group=_TEXT.or_null(),
    joins=_TEXT.or_null(),
    through=_TEXT.or_null(),
)
_PROMOTION: Final = _record(
    candidate=_TEXT,
    best=_TEXT,
    arrives=_TEXT,
    unapplied=_list(_record(server=_TEXT, gtid_set=_TEXT)),
    missing=_list(
        _record(
            gtid_set=_TEXT, donor=_TEXT.or_null(), receiver=_TEXT.or_null(), holders=_list(_TEXT)
        )
    ),
    breaks=_list(_record(server=_TEXT, donor=_TEXT.or_null())),
    steps=_list(_record(server=_TEXT.or_null(), what=_TEXT, sql=_list(_TEXT))),
)
DOCUMENTS: Final[dict[str, PlainType]] = {
    "Clusters": _record(
        **_PAGE,
        configuration=_record(loaded_at=_TIME, problem=_TEXT.or_null()),
        clusters=_list(_CLUSTER),
    ),
    "Findings": _record(**_PAGE, findings=_list(FINDING.plain_type)),
    "Finding": _record(schema_version=_NUMBER, finding=FINDING.plain_type),
    "Handshake": _record(
        schema_version=_NUMBER,
        cluster=_TEXT,
        read_at=_TIME.or_null(),
        verdict=_VERDICT,
        servers=_list(_TEXT),
        offered=_TEXT.or_null(),
        answers=_list(_ANSWER),
        groups=_list(
            _record(name=_TEXT, primaries=_list(_TEXT), members=_list(_TEXT), outside=_list(_TEXT))
        ),
        contents_compared=_list(_list(_TEXT)),
        promotion=_PROMOTION.or_null(),
        unknown=_list(_record(server=_TEXT, reason=_TEXT)),
    ),
    "Procedures": _record(**_PAGE, procedures=_list(_record(**_PROCEDURE))),
    "Procedure": _record(
        schema_version=_NUMBER, **_PROCEDURE, events=_list(_EVENT), statements_sent=_NUMBER
    ),
    "Problem": _record(title=_TEXT, status=_NUMBER, detail=_TEXT),
}


def schemas(*, is_closed: bool = False) -> dict[str, dict[str, Any]]:
    """Return the schemas by name. Readers ignore fields that they do not know; tests must not."""
    found = {name: json_schema_of(each, is_closed=is_closed) for name, each in DOCUMENTS.items()}
    for schema in found.values():
        if "schema_version" in schema["properties"]:
            schema["properties"]["schema_version"] = {"const": SCHEMA_VERSION}
    return found

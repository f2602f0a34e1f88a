"""The JSON Schema of the document that `trace --json` prints; trace_document.py writes it.

`python -m gtid_audit.views.trace_schema` prints the schema; `make docs` stores it.
"""

import json
import sys
from typing import Any, Final

from topology.catalogue.findings import Grade, Verdict
from topology.documents.document_version import SCHEMA_VERSION
from topology.documents.json_schema import json_schema_of
from topology.documents.plain_types import PlainKind, PlainType
from topology.readings.snapshot import ThreadState
from topology.tracing.causes import CauseKind
from topology.tracing.error_classes import ErrorClass
from topology.tracing.stopped_threads import ReplicationThread

_TEXT: Final = PlainType(PlainKind.TEXT)
_NUMBER: Final = PlainType(PlainKind.NUMBER)
_FLAG: Final = PlainType(PlainKind.FLAG)
_TIME: Final = PlainType(PlainKind.TIME)


def _record(**parts: PlainType) -> PlainType:
    return PlainType(PlainKind.RECORD, parts=tuple(parts.items()))


def _list(item: PlainType) -> PlainType:
    return PlainType(PlainKind.LIST, item=item)


def _one_of(*words: str) -> PlainType:
    return PlainType(PlainKind.TEXT, words=words)


_PLACE: Final = _record(
    server=_TEXT,
    gtid=_TEXT,
    is_executed=_FLAG.or_null(),
    is_purged=_FLAG.or_null(),
    is_owned=_FLAG.or_null(),
    received_on=_list(_TEXT),
    failed_on=_list(_TEXT),
    place=_TEXT.or_null(),
    note=_TEXT.or_null(),
)
_TABLE: Final = _record(
    table=_TEXT, rows_written=_NUMBER, rows_updated=_NUMBER, rows_deleted=_NUMBER
)
_TRANSACTION: Final = _record(
    gtid=_TEXT.or_null(),
    server=_TEXT,
    is_relay_log=_FLAG,
    file=_TEXT,
    start=_NUMBER,
    end=_NUMBER,
    committed_at=_TIME.or_null(),
    logged_at=_TIME.or_null(),
    server_id=_NUMBER,
    kind=_TEXT,
    error_code=_NUMBER,
    tables=_list(_TABLE),
    statements=_list(_TEXT),
    rows=_list(_TEXT),
    not_read=_TEXT.or_null(),
)
_CAUSE: Final = _record(
    cause=_one_of(*(each.name.lower() for each in CauseKind)),
    grade=_one_of(*(each.value for each in Grade)),
    text=_TEXT,
    transaction=_TRANSACTION,
)
_DEFINITION: Final = _record(
    server=_TEXT, table=_TEXT, columns=_list(_list(_TEXT)), not_read=_TEXT.or_null()
)
_CHANGES: Final = _record(
    server=_TEXT,
    first_file=_TEXT.or_null(),
    is_complete=_FLAG,
    count=_NUMBER,
    transactions=_list(_TRANSACTION),
    not_read=_TEXT.or_null(),
)
_LINE: Final = _record(at=_TIME, priority=_TEXT, code=_TEXT, subsystem=_TEXT, text=_TEXT)
_ERROR_LOG: Final = _record(
    server=_TEXT,
    file=_TEXT.or_null(),
    window_seconds=_NUMBER,
    around=_list(_TIME),
    count=_NUMBER,
    begins_at=_TIME.or_null(),
    not_read=_TEXT.or_null(),
    lines=_list(_LINE),
)
_WORKER: Final = _record(worker=_NUMBER, errno=_NUMBER, text=_TEXT, gtid=_TEXT.or_null())
_THREAD: Final = {
    "replica": _TEXT,
    "channel": _TEXT,
    "thread": _one_of(*(each.value for each in ReplicationThread)),
    "state": _one_of(*(each.value for each in ThreadState)),
    "errno": _NUMBER,
    "text": _TEXT,
}
_ERROR: Final = _record(
    **_THREAD,
    source=_TEXT.or_null(),
    source_note=_TEXT.or_null(),
    failed_at=_TIME.or_null(),
    workers=_list(_WORKER),
    **{"class": _one_of(*(each.name.lower() for each in ErrorClass))},
    title=_TEXT.or_null(),
    code=_TEXT.or_null(),
    meaning=_TEXT.or_null(),
    advice=_list(_TEXT),
    gtid_set=_TEXT,
    gtid_set_may_be=_TEXT,
    transactions=_list(_TRANSACTION),
    places=_list(_PLACE),
    tables=_list(_TEXT),
    causes=_list(_CAUSE),
    remaining_causes=_list(_TEXT),
    definitions_now=_list(_DEFINITION),
    differences_now=_list(_TEXT),
    changes=_list(_CHANGES),
    error_logs=_list(_ERROR_LOG),
)
TRACE_DOCUMENT: Final = _record(
    schema_version=_NUMBER,
    verdict=_one_of(Verdict.OK.value, Verdict.CRITICAL.value, Verdict.UNKNOWN.value),
    gtid=_TEXT.or_null(),
    servers=_list(
        _record(server=_TEXT, version=_TEXT.or_null(), found_as_source=_FLAG, notes=_list(_TEXT))
    ),
    places=_list(_PLACE),
    transaction=_TRANSACTION.or_null(),
    errors=_list(_ERROR),
    other_errors=_list(_record(**_THREAD)),
    next=_list(_TEXT),
    unknown=_list(_record(server=_TEXT, fact=_TEXT, reason=_TEXT)),
)


def trace_schema(*, is_closed: bool = False) -> dict[str, Any]:
    """Return the schema of a trace's document; see `json_schema_of` for `is_closed`."""
    schema = json_schema_of(TRACE_DOCUMENT, is_closed=is_closed)
    schema["properties"]["schema_version"] = {"const": SCHEMA_VERSION}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The result of gtid-audit trace",
        **schema,
    }


def trace_schema_text() -> str:
    """Return the schema as a file."""
    return json.dumps(trace_schema(), indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(trace_schema_text())

"""The type of the document that `trace --json` prints; views/trace_document.py writes it."""

from typing import Final

from gtid_audit.document_types.shared_types import GRADE, UNREAD_FACT, document_of
from topology.catalogue.findings import Verdict
from topology.documents.plain_types import (
    FLAG,
    NUMBER,
    TEXT,
    TIME,
    list_of,
    record_of,
    words_of,
    words_of_enum,
)
from topology.readings.snapshot import ThreadState
from topology.tracing.causes import CauseKind
from topology.tracing.error_classes import ErrorClass
from topology.tracing.stopped_threads import ReplicationThread

_PLACE: Final = record_of(
    server=TEXT,
    gtid=TEXT,
    is_executed=FLAG.or_null(),
    is_purged=FLAG.or_null(),
    is_owned=FLAG.or_null(),
    received_on=list_of(TEXT),
    failed_on=list_of(TEXT),
    place=TEXT.or_null(),
    note=TEXT.or_null(),
)
_TABLE: Final = record_of(table=TEXT, rows_written=NUMBER, rows_updated=NUMBER, rows_deleted=NUMBER)
_TRANSACTION: Final = record_of(
    gtid=TEXT.or_null(),
    server=TEXT,
    is_relay_log=FLAG,
    file=TEXT,
    start=NUMBER,
    end=NUMBER,
    committed_at=TIME.or_null(),
    logged_at=TIME.or_null(),
    server_id=NUMBER,
    kind=TEXT,
    error_code=NUMBER,
    tables=list_of(_TABLE),
    statements=list_of(TEXT),
    rows=list_of(TEXT),
    not_read=TEXT.or_null(),
)
_CAUSE: Final = record_of(
    cause=words_of(*(each.name.lower() for each in CauseKind)),
    grade=GRADE,
    text=TEXT,
    transaction=_TRANSACTION,
)
_DEFINITION: Final = record_of(
    server=TEXT, table=TEXT, columns=list_of(list_of(TEXT)), not_read=TEXT.or_null()
)
_CHANGES: Final = record_of(
    server=TEXT,
    first_file=TEXT.or_null(),
    is_complete=FLAG,
    count=NUMBER,
    transactions=list_of(_TRANSACTION),
    not_read=TEXT.or_null(),
)
_LINE: Final = record_of(at=TIME, priority=TEXT, code=TEXT, subsystem=TEXT, text=TEXT)
_ERROR_LOG: Final = record_of(
    server=TEXT,
    file=TEXT.or_null(),
    window_seconds=NUMBER,
    around=list_of(TIME),
    count=NUMBER,
    begins_at=TIME.or_null(),
    not_read=TEXT.or_null(),
    lines=list_of(_LINE),
)
_WORKER: Final = record_of(worker=NUMBER, errno=NUMBER, text=TEXT, gtid=TEXT.or_null())
_THREAD: Final = {
    "replica": TEXT,
    "channel": TEXT,
    "thread": words_of_enum(ReplicationThread),
    "state": words_of_enum(ThreadState),
    "errno": NUMBER,
    "text": TEXT,
}
_ERROR: Final = record_of(
    **_THREAD,
    source=TEXT.or_null(),
    source_note=TEXT.or_null(),
    failed_at=TIME.or_null(),
    workers=list_of(_WORKER),
    **{"class": words_of(*(each.name.lower() for each in ErrorClass))},
    title=TEXT.or_null(),
    code=TEXT.or_null(),
    meaning=TEXT.or_null(),
    advice=list_of(TEXT),
    gtid_set=TEXT,
    gtid_set_may_be=TEXT,
    transactions=list_of(_TRANSACTION),
    places=list_of(_PLACE),
    tables=list_of(TEXT),
    causes=list_of(_CAUSE),
    remaining_causes=list_of(TEXT),
    definitions_now=list_of(_DEFINITION),
    differences_now=list_of(TEXT),
    changes=list_of(_CHANGES),
    error_logs=list_of(_ERROR_LOG),
)
TRACE_DOCUMENT: Final = document_of(
    verdict=words_of(Verdict.OK.value, Verdict.CRITICAL.value, Verdict.UNKNOWN.value),
    gtid=TEXT.or_null(),
    servers=list_of(
        record_of(server=TEXT, version=TEXT.or_null(), found_as_source=FLAG, notes=list_of(TEXT))
    ),
    places=list_of(_PLACE),
    transaction=_TRANSACTION.or_null(),
    errors=list_of(_ERROR),
    other_errors=list_of(record_of(**_THREAD)),
    next=list_of(TEXT),
    unknown=list_of(UNREAD_FACT),
)

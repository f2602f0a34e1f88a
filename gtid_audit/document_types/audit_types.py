"""The type of an audit's document: what `pair` and `audit` print with `--json`.

Fields of findings and unread facts are those of their records (topology/documents/records.py). The
rest is declared here; report.py, content_text.py, definition_text.py and
topology/documents/json_items.py write it.
"""

from typing import Final

from gtid_audit.document_types.shared_types import SERVER_NOTE, UNREAD_FACT, VERDICT, document_of
from gtid_audit.views.report import Engine
from topology.documents.label_records import LABELS
from topology.documents.plain_types import (
    NUMBER,
    TEXT,
    TIME,
    list_of,
    record_of,
    words_of_enum,
)
from topology.documents.records import FINDING, UNKNOWN

_CLUSTER: Final = record_of(
    cluster=TEXT,
    verdict=VERDICT,
    servers=list_of(TEXT),
    read_at=TIME.or_null(),
    labels=LABELS.plain_type,
)
CONTENT_PARTS: Final = {
    "read_at": TIME,
    "compared_count": NUMBER,
    "undecided_count": NUMBER,
    "suspect_count": NUMBER,
    "newest_count": NUMBER,
    "differing_count": NUMBER,
    "pairs": list_of(list_of(TEXT)),
    "starts": list_of(record_of(server=TEXT, started_at=TIME, file=TEXT)),
    "unread": list_of(SERVER_NOTE),
    "remarks": list_of(SERVER_NOTE),
}
_CONTENT: Final = record_of(cluster=TEXT, **CONTENT_PARTS)
_DEFINITIONS: Final = record_of(
    cluster=TEXT,
    read_at=TIME,
    object_count=NUMBER,
    differing_count=NUMBER,
    pairs=list_of(list_of(TEXT)),
    unread=list_of(UNREAD_FACT),
)
AUDIT_DOCUMENT: Final = document_of(
    audited_at=TIME.or_null(),
    engine=words_of_enum(Engine),
    verdict=VERDICT,
    clusters=list_of(_CLUSTER),
    findings=list_of(FINDING.plain_type),
    unknown=list_of(UNKNOWN.plain_type),
    contents=list_of(_CONTENT).or_null(),
    definitions=list_of(_DEFINITIONS).or_null(),
)

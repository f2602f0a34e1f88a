"""The types of a procedure and its events, in documents of `repair` and of the API.

views/procedure_text.py writes them.
"""

from typing import Final

from gtid_audit.document_types.shared_types import VERDICT
from repair.applying.procedures_applied import EventKind, ProcedureState
from topology.documents.plain_types import (
    FLAG,
    NUMBER,
    TEXT,
    TIME,
    PlainType,
    list_of,
    record_of,
    words_of_enum,
)

PROCEDURE_PARTS: Final[dict[str, PlainType]] = {
    "procedure": TEXT,
    "plan": TEXT,
    "cluster": TEXT,
    "directory": TEXT,
    "servers": list_of(TEXT),
    "operator": TEXT,
    "started_at": TIME,
    "ended_at": TIME.or_null(),
    "state": words_of_enum(ProcedureState),
    "scripts_total": NUMBER,
    "scripts_done": NUMBER,
    "message": TEXT,
    "verdict": VERDICT.or_null(),
    "is_stop_requested": FLAG,
}
EVENT: Final = record_of(
    number=NUMBER,
    at=TIME,
    event=words_of_enum(EventKind),
    script=NUMBER.or_null(),
    server=TEXT.or_null(),
    text=TEXT,
)

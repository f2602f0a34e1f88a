"""Types that documents of several commands have in common."""

from typing import Final

from topology.catalogue.findings import Grade, Severity, Verdict
from topology.documents.document_version import SCHEMA_VERSION
from topology.documents.plain_types import (
    COUNT,
    NUMBER,
    TEXT,
    PlainType,
    constant_of,
    list_of,
    record_of,
    words_of_enum,
)

VERDICT: Final = words_of_enum(Verdict)
SEVERITY: Final = words_of_enum(Severity)
GRADE: Final = words_of_enum(Grade)
GTIDS: Final = record_of(gtid_set=TEXT, gtid_count=COUNT)
SERVER_NOTE: Final = record_of(server=TEXT, reason=TEXT)
UNREAD_FACT: Final = record_of(server=TEXT, fact=TEXT, reason=TEXT)
FILES: Final = list_of(TEXT)
LOG_ERROR: Final = record_of(error=TEXT, file=TEXT.or_null(), position=NUMBER.or_null(), text=TEXT)


def document_of(**parts: PlainType) -> PlainType:
    """Return the type of a document: schema_version, and then these fields."""
    return record_of(schema_version=constant_of(SCHEMA_VERSION), **parts)

"""The types of the documents of `schema versions` and `schema drift`."""

from typing import Final

from gtid_audit.document_types.shared_types import GRADE, SEVERITY, VERDICT, document_of
from topology.definitions.drift_classes import DriftClass, Repairable
from topology.definitions.row_effects import RowEffect
from topology.definitions.schema_objects import ObjectKind
from topology.documents.plain_types import (
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    TIME,
    list_of,
    record_of,
    words_of_enum,
)

_CLASS: Final = words_of_enum(DriftClass)
_DDL: Final = record_of(gtid=TEXT, committed_at=TIME.or_null(), statement=TEXT.or_null())
_UNKNOWN: Final = record_of(cluster=TEXT, server=TEXT.or_null(), fact=TEXT, reason=TEXT)
_SERVER: Final = record_of(
    server=TEXT,
    **dict.fromkeys(
        ("schemas", "tables", "views", "routines", "triggers", "events", "columns", "size_bytes"),
        NUMBER.or_null(),
    ),
    digest=TEXT.or_null(),
    applied=_DDL.or_null(),
    received=_DDL.or_null(),
    older_than=TEXT.or_null(),
    missing=list_of(_DDL),
    is_behind=FLAG,
)
_CHANGE: Final = record_of(
    **{"class": _CLASS}, name=TEXT.or_null(), source=TEXT.or_null(), replica=TEXT.or_null()
)
_REPAIR: Final = record_of(**{"class": _CLASS}, repairable=words_of_enum(Repairable), advice=TEXT)
_DIFFERENCE: Final = record_of(
    kind=words_of_enum(ObjectKind),
    schema=TEXT,
    name=TEXT.or_null(),
    name_on_replica=TEXT.or_null(),
    classes=list_of(_CLASS),
    severity=SEVERITY,
    grade=GRADE,
    causes=list_of(TEXT),
    is_filtered=FLAG,
    contained_count=NUMBER,
    changes=list_of(_CHANGE),
    diff=list_of(TEXT),
    rows=record_of(effect=words_of_enum(RowEffect), errno=NUMBER.or_null(), why=TEXT.or_null()),
    errors=list_of(NUMBER),
    made_by=list_of(_DDL),
    pending=list_of(_DDL),
    repair=list_of(_REPAIR),
    statements=list_of(TEXT),
)
_PAIR: Final = record_of(
    source=TEXT,
    replica=TEXT,
    has_channel=FLAG,
    verdict=VERDICT,
    compared_count=NUMBER,
    on_the_way_count=COUNT,
    differences=list_of(_DIFFERENCE),
)
VERSIONS_DOCUMENT: Final = document_of(
    verdict=VERDICT,
    clusters=list_of(
        record_of(
            cluster=TEXT,
            verdict=VERDICT,
            read_at=TIME,
            definitions_differ=FLAG,
            servers=list_of(_SERVER),
        )
    ),
    unknown=list_of(_UNKNOWN),
)
DRIFT_DOCUMENT: Final = document_of(
    verdict=VERDICT,
    clusters=list_of(
        record_of(cluster=TEXT, verdict=VERDICT, servers=list_of(TEXT), pairs=list_of(_PAIR))
    ),
    unknown=list_of(_UNKNOWN),
)

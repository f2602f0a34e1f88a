"""The JSON Schemas of the documents of `schema versions` and `schema drift`.

`python -m gtid_audit.views.schema_documents versions|drift` prints one; `make docs` stores them.
"""

import json
import sys
from typing import Any, Final

from topology.catalogue.findings import Grade, Severity, Verdict
from topology.definitions.drift_classes import DriftClass, Repairable
from topology.definitions.row_effects import RowEffect
from topology.definitions.schema_objects import ObjectKind
from topology.documents.document_version import SCHEMA_VERSION
from topology.documents.json_schema import json_schema_of
from topology.documents.plain_types import (
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    TIME,
    PlainKind,
    PlainType,
    list_of,
    record_of,
    words_of,
)

_VERDICT: Final = words_of(*(each.value for each in Verdict))
_CLASS: Final = words_of(*(each.value for each in DriftClass))
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
_DIFFERENCE: Final = PlainType(
    PlainKind.RECORD,
    parts=(
        ("kind", words_of(*(each.value for each in ObjectKind))),
        ("schema", TEXT),
        ("name", TEXT.or_null()),
        ("name_on_replica", TEXT.or_null()),
        ("classes", list_of(_CLASS)),
        ("severity", words_of(*(each.value for each in Severity))),
        ("grade", words_of(*(each.value for each in Grade))),
        ("causes", list_of(TEXT)),
        ("is_filtered", FLAG),
        ("contained_count", NUMBER),
        (
            "changes",
            list_of(
                PlainType(
                    PlainKind.RECORD,
                    parts=(
                        ("class", _CLASS),
                        ("name", TEXT.or_null()),
                        ("source", TEXT.or_null()),
                        ("replica", TEXT.or_null()),
                    ),
                )
            ),
        ),
        ("diff", list_of(TEXT)),
        (
            "rows",
            record_of(
                effect=words_of(*(each.value for each in RowEffect)),
                errno=NUMBER.or_null(),
                why=TEXT.or_null(),
            ),
        ),
        ("errors", list_of(NUMBER)),
        ("made_by", list_of(_DDL)),
        ("pending", list_of(_DDL)),
        (
            "repair",
            list_of(
                PlainType(
                    PlainKind.RECORD,
                    parts=(
                        ("class", _CLASS),
                        ("repairable", words_of(*(each.value for each in Repairable))),
                        ("advice", TEXT),
                    ),
                )
            ),
        ),
        ("statements", list_of(TEXT)),
    ),
)
_PAIR: Final = record_of(
    source=TEXT,
    replica=TEXT,
    has_channel=FLAG,
    verdict=_VERDICT,
    compared_count=NUMBER,
    on_the_way_count=COUNT,
    differences=list_of(_DIFFERENCE),
)
VERSIONS_DOCUMENT: Final = record_of(
    schema_version=NUMBER,
    verdict=_VERDICT,
    clusters=list_of(
        record_of(
            cluster=TEXT,
            verdict=_VERDICT,
            read_at=TIME,
            definitions_differ=FLAG,
            servers=list_of(_SERVER),
        )
    ),
    unknown=list_of(_UNKNOWN),
)
DRIFT_DOCUMENT: Final = record_of(
    schema_version=NUMBER,
    verdict=_VERDICT,
    clusters=list_of(
        record_of(cluster=TEXT, verdict=_VERDICT, servers=list_of(TEXT), pairs=list_of(_PAIR))
    ),
    unknown=list_of(_UNKNOWN),
)
DOCUMENTS: Final = {"versions": VERSIONS_DOCUMENT, "drift": DRIFT_DOCUMENT}


def schema_of_document(name: str, *, is_closed: bool = False) -> dict[str, Any]:
    """Return the schema of the document of a command; see `json_schema_of` for `is_closed`."""
    schema = json_schema_of(DOCUMENTS[name], is_closed=is_closed)
    schema["properties"]["schema_version"] = {"const": SCHEMA_VERSION}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"The result of gtid-audit schema {name}",
        **schema,
    }


def text_of_schema(name: str) -> str:
    """Return the schema as a file."""
    return json.dumps(schema_of_document(name), indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text_of_schema(sys.argv[1]))

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
from topology.documents.plain_types import PlainKind, PlainType

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
_CLASS: Final = _words(*(each.value for each in DriftClass))
_DDL: Final = _record(gtid=_TEXT, committed_at=_TIME.or_null(), statement=_TEXT.or_null())
_UNKNOWN: Final = _record(cluster=_TEXT, server=_TEXT.or_null(), fact=_TEXT, reason=_TEXT)
_SERVER: Final = _record(
    server=_TEXT,
    **dict.fromkeys(
        ("schemas", "tables", "views", "routines", "triggers", "events", "columns", "size_bytes"),
        _NUMBER.or_null(),
    ),
    digest=_TEXT.or_null(),
    applied=_DDL.or_null(),
    received=_DDL.or_null(),
    older_than=_TEXT.or_null(),
    missing=_list(_DDL),
    is_behind=_FLAG,
)
_DIFFERENCE: Final = PlainType(
    PlainKind.RECORD,
    parts=(
        ("kind", _words(*(each.value for each in ObjectKind))),
        ("schema", _TEXT),
        ("name", _TEXT.or_null()),
        ("name_on_replica", _TEXT.or_null()),
        ("classes", _list(_CLASS)),
        ("severity", _words(*(each.value for each in Severity))),
        ("grade", _words(*(each.value for each in Grade))),
        ("causes", _list(_TEXT)),
        ("is_filtered", _FLAG),
        ("contained_count", _NUMBER),
        (
            "changes",
            _list(
                PlainType(
                    PlainKind.RECORD,
                    parts=(
                        ("class", _CLASS),
                        ("name", _TEXT.or_null()),
                        ("source", _TEXT.or_null()),
                        ("replica", _TEXT.or_null()),
                    ),
                )
            ),
        ),
        ("diff", _list(_TEXT)),
        (
            "rows",
            _record(
                effect=_words(*(each.value for each in RowEffect)),
                errno=_NUMBER.or_null(),
                why=_TEXT.or_null(),
            ),
        ),
        ("errors", _list(_NUMBER)),
        ("made_by", _list(_DDL)),
        ("pending", _list(_DDL)),
        (
            "repair",
            _list(
                PlainType(
                    PlainKind.RECORD,
                    parts=(
                        ("class", _CLASS),
                        ("repairable", _words(*(each.value for each in Repairable))),
                        ("advice", _TEXT),
                    ),
                )
            ),
        ),
        ("statements", _list(_TEXT)),
    ),
)
_PAIR: Final = _record(
    source=_TEXT,
    replica=_TEXT,
    has_channel=_FLAG,
    verdict=_VERDICT,
    compared_count=_NUMBER,
    on_the_way_count=_COUNT,
    differences=_list(_DIFFERENCE),
)
VERSIONS_DOCUMENT: Final = _record(
    schema_version=_NUMBER,
    verdict=_VERDICT,
    clusters=_list(
        _record(
            cluster=_TEXT,
            verdict=_VERDICT,
            read_at=_TIME,
            definitions_differ=_FLAG,
            servers=_list(_SERVER),
        )
    ),
    unknown=_list(_UNKNOWN),
)
DRIFT_DOCUMENT: Final = _record(
    schema_version=_NUMBER,
    verdict=_VERDICT,
    clusters=_list(
        _record(cluster=_TEXT, verdict=_VERDICT, servers=_list(_TEXT), pairs=_list(_PAIR))
    ),
    unknown=_list(_UNKNOWN),
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

"""The types of the documents of `binlog schema`: tracked definitions of tables.

binlog/schema/documents.py and views/schema_text.py write them.
"""

from typing import Final

from binlog.schema.table_definitions import Generated, KeyKind
from binlog.schema.table_history import Source, State
from gtid_audit.document_types.shared_types import VERDICT, document_of
from topology.documents.plain_types import (
    FLAG,
    NUMBER,
    TEXT,
    list_of,
    map_of,
    record_of,
    words_of,
    words_of_enum,
)

_KEY: Final = record_of(
    kind=words_of_enum(KeyKind), name=TEXT, columns=list_of(TEXT), is_exact=FLAG
)
_COLUMN: Final = record_of(
    name=TEXT,
    type=TEXT,
    nullable=FLAG,
    unsigned=FLAG.or_absent(),
    charset=TEXT.or_absent(),
    members=list_of(TEXT).or_absent(),
    generated=words_of_enum(Generated).or_absent(),
    invisible=FLAG.or_absent(),
)
_DEFINITION: Final = record_of(
    schema=TEXT,
    table=TEXT,
    columns=list_of(_COLUMN),
    primary_key=list_of(TEXT),
    unique_keys=list_of(_KEY),
    plain_keys=list_of(_KEY),
    foreign_keys=list_of(list_of(TEXT)),
    charset=TEXT.or_null(),
    is_complete=FLAG,
)
_ENTRY: Final = {
    "schema": TEXT,
    "table": TEXT,
    "file": TEXT,
    "position": NUMBER,
    "gtid": TEXT.or_null(),
    "state": words_of_enum(State),
    "source": words_of_enum(Source),
    "why": TEXT.or_null(),
    "statement": TEXT.or_null(),
    "definition": _DEFINITION.or_null(),
}
FOLLOWED: Final = document_of(
    server=TEXT,
    begun_at=TEXT,
    followed_to=TEXT,
    entries=NUMBER,
    staged_put=list_of(TEXT),
    taken_from_server=list_of(TEXT),
    unknown=list_of(record_of(table=TEXT, since=TEXT, why=TEXT.or_null())),
)
LISTING: Final = document_of(
    server=TEXT,
    followed_to=TEXT.or_null(),
    tables=list_of(record_of(**_ENTRY, backups=NUMBER)),
    staged=list_of(record_of(**_ENTRY)),
)
CHANGED: Final = document_of(
    done=words_of("updated", "staged", "restored", "deleted"),
    server=TEXT,
    entries=list_of(record_of(**_ENTRY)),
)
_VIEW: Final = record_of(
    columns=list_of(record_of(name=TEXT, type=TEXT)),
    why_not=TEXT.or_null(),
    definition=_DEFINITION.or_null(),
)
COMPARED_DEFINITION_PARTS: Final = {
    "table": TEXT,
    "at": TEXT.or_null(),
    "verdict": VERDICT,
    "code": TEXT.or_null(),
    "views": map_of(_VIEW),
    "differing_positions": list_of(NUMBER),
    "explanation": list_of(TEXT),
}
COMPARED_DEFINITION: Final = document_of(**COMPARED_DEFINITION_PARTS)

"""Conversion of compared definitions to plain records and back.

As for compared contents (content_records.py), one document holds the clusters of a run. A run
without it compared no definitions.
"""

from collections.abc import Mapping
from typing import Any, Final

from gtid import Gtid
from topology.documents.cluster_document import clusters_from_text, clusters_to_text
from topology.documents.record_codec import (
    FLAG,
    GTID_SET,
    NUMBER,
    TEXT,
    TIME,
    RecordShape,
    many,
    optional,
    text_pair,
    through_text,
)
from topology.readings.definition_reading import (
    ComparedDefinitions,
    DefinitionReading,
    DifferingObject,
    UnreadDefinitions,
)
from topology.readings.logged_ddl import LoggedDdl

LAYOUT: Final = 1

_GTID = through_text(write=str, parse=Gtid.parse, expected="a canonical GTID")

_DDL = RecordShape(
    LoggedDdl,
    {"gtid": _GTID, "committed_at": optional(TIME), "statement": TEXT, "is_unread": FLAG},
)
_OBJECT = RecordShape(
    DifferingObject,
    {
        "kind": TEXT,
        "schema": TEXT,
        "name": TEXT,
        "classes": many(TEXT),
        "is_proved": FLAG,
        "is_filtered": FLAG,
        "may_be_of_another_source": FLAG,
        "is_severe": FLAG,
        "rows": TEXT,
        "errors": many(NUMBER),
        "causes": many(TEXT),
        "pending": GTID_SET,
        "is_searched": FLAG,
        "made_by": many(_DDL.codec),
        "changes": many(TEXT),
    },
)
_PAIR = RecordShape(
    ComparedDefinitions,
    {
        "source": TEXT,
        "replica": TEXT,
        "dsns": text_pair("source", "replica"),
        "has_channel": FLAG,
        "is_mutual": FLAG,
        "object_count": NUMBER,
        "differing": many(_OBJECT.codec),
        "behind": many(_DDL.codec),
        "ahead": many(_DDL.codec),
        "unsearched": TEXT,
    },
)
_UNREAD = RecordShape(UnreadDefinitions, {"server": TEXT, "fact": TEXT, "reason": TEXT})
_READING = RecordShape(
    DefinitionReading,
    {"read_at": TIME, "pairs": many(_PAIR.codec), "unread": many(_UNREAD.codec)},
)

# A test compares these with the dataclasses.
SHAPES: Final[tuple[RecordShape[Any], ...]] = (_DDL, _OBJECT, _PAIR, _UNREAD, _READING)


def definitions_to_text(definitions: Mapping[str, DefinitionReading]) -> str:
    """Write what was compared, by cluster. The same definitions give the same bytes."""
    return clusters_to_text(LAYOUT, definitions, _READING.write)


def definitions_from_text(text: str) -> dict[str, DefinitionReading]:
    """Read what `definitions_to_text` writes. Raises MalformedRecord."""
    return clusters_from_text(text, LAYOUT, _READING.read, what="definitions")

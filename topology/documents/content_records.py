"""Conversion of compared transaction contents to plain records and back.

1. As in topology/documents/records.py for readings, each dataclass has a table, and reading is
   strict.
2. One document holds the clusters of a run. It lists for each cluster what was compared, and is
   written even where there was nothing to compare. A run without it made no comparison.
3. This module accesses no files and no servers.
"""

from collections.abc import Mapping
from typing import Any, Final

from binlog.content.server_starts import ServerStart
from gtid import Gtid
from topology.documents.cluster_document import clusters_from_text, clusters_to_text
from topology.documents.record_codec import (
    FLAG,
    NUMBER,
    TEXT,
    TIME,
    Plain,
    Record,
    RecordShape,
    many,
    optional,
    text_pair,
    through_text,
    word,
)
from topology.readings.contents import (
    ContentDifference,
    ContentReading,
    Difference,
    TransactionVersion,
    UnreadContent,
)

LAYOUT: Final = 1

_GTID = through_text(write=str, parse=Gtid.parse, expected="a canonical GTID")

_VERSION = RecordShape(
    TransactionVersion,
    {
        "server": TEXT,
        "place": TEXT,
        "committed_at": optional(TIME),
        "logged_at": TIME,
        "content": TEXT,
        "is_empty": FLAG,
    },
)

DIFFERENCE = RecordShape(
    ContentDifference,
    {
        "gtid": _GTID,
        "difference": word(Difference),
        "is_proved": FLAG,
        "reason": TEXT,
        "source": _VERSION.codec,
        "replica": _VERSION.codec,
        "lesser": TEXT,
        "is_two_commits": FLAG,
        "is_remembered": FLAG,
        "has_equal_rows": FLAG,
    },
)

_UNREAD = RecordShape(UnreadContent, {"server": TEXT, "reason": TEXT})

_START = RecordShape(ServerStart, {"server": TEXT, "started_at": TIME, "file": TEXT})

_READING = RecordShape(
    ContentReading,
    {
        "read_at": TIME,
        "compared_count": NUMBER,
        "starts": many(_START.codec),
        "differences": many(DIFFERENCE.codec),
        "unread": many(_UNREAD.codec),
        "is_cut": FLAG,
        "pairs": many(text_pair("one", "other")),
        "undecided_count": NUMBER,
        "suspect_count": NUMBER,
        "newest_count": NUMBER,
        "remarks": many(_UNREAD.codec),
    },
)

# Fields that older runs do not have, with the value that applied at that time.
_ADDED_TO_READING: Final[Record] = {
    "undecided_count": 0,
    "suspect_count": 0,
    "newest_count": 0,
    "remarks": [],
}
ADDED_TO_DIFFERENCE: Final[Record] = {
    "lesser": "",
    "is_two_commits": False,
    "is_remembered": False,
    "has_equal_rows": False,
}

# A test compares these with the dataclasses.
SHAPES: Final[tuple[RecordShape[Any], ...]] = (_VERSION, DIFFERENCE, _UNREAD, _START, _READING)


def contents_to_text(contents: Mapping[str, ContentReading]) -> str:
    """Write what was compared, by cluster. The same contents give the same bytes."""
    return clusters_to_text(LAYOUT, contents, _READING.write)


def contents_from_text(text: str) -> dict[str, ContentReading]:
    """Read what `contents_to_text` writes. Raises MalformedRecord."""
    return clusters_from_text(
        text, LAYOUT, lambda plain: _READING.read(_with_added(plain)), what="contents"
    )


def _with_added(plain: Plain) -> Plain:
    """Return an older record with the fields added that it does not have."""
    if not isinstance(plain, dict):
        return plain
    found = {**_ADDED_TO_READING, **plain}
    differences = found.get("differences")
    if isinstance(differences, list):
        found["differences"] = [
            {**ADDED_TO_DIFFERENCE, **each} if isinstance(each, dict) else each
            for each in differences
        ]
    return found

"""Conversion of the consumers of a run to plain records and back.

As for compared contents (content_records.py), one document holds the clusters of a run. A run
without it has no consumers.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from topology.documents.record_codec import (
    FLAG,
    GTID_SET,
    TEXT,
    TIME,
    MalformedRecord,
    Plain,
    Record,
    RecordShape,
    many,
    optional,
)
from topology.readings.consumers import ConsumerReading, OfferedReading

LAYOUT: Final = 1

_OFFERED = RecordShape(
    OfferedReading, {"read_at": TIME, "gtid_set": optional(GTID_SET), "unread": TEXT}
)
_CONSUMER = RecordShape(
    ConsumerReading,
    {
        "name": TEXT,
        "server": optional(TEXT),
        "place": TEXT,
        "is_fixed": FLAG,
        "first": _OFFERED.codec,
        "last": _OFFERED.codec,
    },
)
_CONSUMERS = many(_CONSUMER.codec)

# A test compares these with the dataclasses.
SHAPES: Final[tuple[RecordShape[Any], ...]] = (_OFFERED, _CONSUMER)


def consumers_to_text(consumers: Mapping[str, tuple[ConsumerReading, ...]]) -> str:
    """Write the consumers of each cluster. The same consumers give the same bytes."""
    clusters: Record = {name: _CONSUMERS.write(consumers[name]) for name in sorted(consumers)}
    document: Record = {"layout": LAYOUT, "clusters": clusters}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def consumers_from_text(text: str) -> dict[str, tuple[ConsumerReading, ...]]:
    """Read what `consumers_to_text` writes. Raises MalformedRecord."""
    try:
        found: Plain = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise MalformedRecord("", f"not JSON: {error}") from error
    if not isinstance(found, dict) or found.get("layout") != LAYOUT:
        raise MalformedRecord("layout", f"expected consumers of layout {LAYOUT}")
    clusters = found.get("clusters")
    if not isinstance(clusters, dict):
        raise MalformedRecord("clusters", "expected a record")
    consumers = {}
    for name, plain in clusters.items():
        try:
            consumers[name] = _CONSUMERS.read(plain)
        except MalformedRecord as error:
            raise error.within(name) from error
    return consumers

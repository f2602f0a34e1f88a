"""Conversion of the consumers of a run to plain records and back.

As for compared contents (content_records.py), one document holds the clusters of a run. A run
without it has no consumers.
"""

from collections.abc import Mapping
from typing import Any, Final

from topology.documents.cluster_document import clusters_from_text, clusters_to_text
from topology.documents.record_codec import (
    FLAG,
    GTID_SET,
    TEXT,
    TIME,
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
    return clusters_to_text(LAYOUT, consumers, _CONSUMERS.write)


def consumers_from_text(text: str) -> dict[str, tuple[ConsumerReading, ...]]:
    """Read what `consumers_to_text` writes. Raises MalformedRecord."""
    return clusters_from_text(text, LAYOUT, _CONSUMERS.read, what="consumers")

"""The consumers of a run, stored beside its readings.

    directory/day=2026-01-02/run=20260102T030405.000006Z/_consumers.json

A run without the file has no consumers: its fleet file lists none, or an earlier version of
gtid-audit wrote it. Readers of tables ignore the name.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from topology.adapters.stored_beside import parsed_beside, read_beside
from topology.documents.consumer_records import consumers_from_text, consumers_to_text
from topology.readings.consumers import ConsumerReading

CONSUMERS: Final = "_consumers.json"


def consumers_beside(consumers: Mapping[str, tuple[ConsumerReading, ...]]) -> dict[str, str]:
    """Return the files that store the consumers of clusters, by name; none if there are none."""
    return {CONSUMERS: consumers_to_text(consumers)} if consumers else {}


def consumers_of_run(run: Path) -> dict[str, tuple[ConsumerReading, ...]]:
    """Return the consumers of each cluster that has some. Raises UnreadableSnapshots."""
    return read_beside(run, CONSUMERS, consumers_from_text) or {}


def consumers_in(text: str, *, place: str) -> dict[str, tuple[ConsumerReading, ...]]:
    """Parse the text of such a file. Raises UnreadableSnapshots."""
    return parsed_beside(text, consumers_from_text, place=place)

"""Reports, as text and in JSON, which definitions an audit compared."""

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from gtid.counted_nouns import counted
from topology.documents.records import Record, time_to_text
from topology.readings.definition_reading import DefinitionReading

# The compared definitions, by cluster; None: definitions were not compared.
Definitions: TypeAlias = Mapping[str, DefinitionReading] | None

CLUSTERS_SHOWN_MAX: Final = 10


def definition_lines(readings: Definitions) -> Iterator[str]:
    """Report what was compared, cluster by cluster. None was not asked for: no line."""
    if readings is None:
        return
    if len(readings) == 1:
        yield from map(definition_line, readings.values())
        return
    for cluster in sorted(readings)[:CLUSTERS_SHOWN_MAX]:
        yield f"{cluster}: {definition_line(readings[cluster])}"
    if len(readings) > CLUSTERS_SHOWN_MAX:
        yield f"Definitions compared in {counted(len(readings), 'cluster')}."


def definition_line(reading: DefinitionReading) -> str:
    """Report in one line how many objects were compared, with which result."""
    pairs, differing = len(reading.pairs), _differing(reading)
    if not pairs:
        return "Definitions compared: none, because no two servers were read."
    result = f"{differing:,} not alike" if differing else "no difference found"
    unread = f", {counted(len(reading.unread), 'fact')} not read" if reading.unread else ""
    return (
        f"Definitions compared: {counted(_objects(reading), 'object')} of"
        f" {counted(pairs, 'pair')}, {result}{unread}."
    )


def _objects(reading: DefinitionReading) -> int:
    return sum(each.object_count for each in reading.pairs)


def _differing(reading: DefinitionReading) -> int:
    return sum(len(each.differing) for each in reading.pairs)


def definition_records(readings: Mapping[str, DefinitionReading]) -> Iterator[Record]:
    """Return the comparisons as plain values, by cluster; the differences are in the findings."""
    for cluster in sorted(readings):
        reading = readings[cluster]
        yield {
            "cluster": cluster,
            "read_at": time_to_text(reading.read_at),
            "object_count": _objects(reading),
            "differing_count": _differing(reading),
            "pairs": [[each.source, each.replica] for each in reading.pairs],
            "unread": [
                {"server": each.server, "fact": each.fact, "reason": each.reason}
                for each in reading.unread
            ],
        }

"""Says for people, and in JSON, which contents an audit compared."""

from collections.abc import Iterator, Mapping
from typing import Any

from topology.contents import ContentReading
from topology.records import time_to_text

STARTS_SHOWN_MAX = 4
CLUSTERS_SHOWN_MAX = 10


def content_lines(readings: Mapping[str, ContentReading]) -> Iterator[str]:
    """Say what was compared, cluster by cluster."""
    if len(readings) == 1:
        yield from map(content_line, readings.values())
        return
    for cluster in sorted(readings)[:CLUSTERS_SHOWN_MAX]:
        yield f"{cluster}: {content_line(readings[cluster])}"
    if len(readings) > CLUSTERS_SHOWN_MAX:
        count = sum(each.compared_count for each in readings.values())
        yield f"Contents compared in {len(readings):,} clusters, {count:,} GTIDs in all."


def content_line(reading: ContentReading) -> str:
    """Say in a line what was compared, and what came of it."""
    starts = [
        f"{each.server} ({each.started_at:%Y-%m-%d %H:%M:%S} UTC)"
        for each in reading.starts[:STARTS_SHOWN_MAX]
    ]
    if len(reading.starts) > STARTS_SHOWN_MAX:
        starts.append(f"{len(reading.starts) - STARTS_SHOWN_MAX:,} more")
    where = "the first own transactions after the start of " + ", ".join(starts)
    if not starts:
        where = "nothing: no start of a server was found"
    counted = f"{reading.compared_count:,} GTIDs held by both"
    differing = len(reading.differences)
    came_of_it = f"{differing:,} not the same" if differing else "all the same"
    if not reading.compared_count:
        came_of_it = "nothing to compare"
    return f"Content compared: {where}; {counted}, {came_of_it}."


def content_record(reading: ContentReading) -> dict[str, Any]:
    """Return what was compared as plain values; the differences are a finding's."""
    return {
        "read_at": time_to_text(reading.read_at),
        "compared_count": reading.compared_count,
        "differing_count": len(reading.differences),
        "starts": [
            {
                "server": each.server,
                "started_at": time_to_text(each.started_at),
                "file": each.file,
            }
            for each in reading.starts
        ],
        "unread": [{"server": each.server, "reason": each.reason} for each in reading.unread],
    }

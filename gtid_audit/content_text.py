"""Says for people, and in JSON, which contents an audit compared."""

from collections.abc import Iterator, Mapping
from typing import Final

from topology.contents import ContentReading
from topology.records import Record, time_to_text

STARTS_SHOWN_MAX = 4
PAIRS_SHOWN_MAX = 2
CLUSTERS_SHOWN_MAX = 10
# What is stored without contents was read by --no-content, or before they were kept.
NOT_STORED: Final = (
    "Content not compared: nobody looked when these servers were read, and equal sets may hide"
    " different transactions. `gtid-audit audit --fleet FILE --content` looks."
)
NOT_ASKED_FOR: Final = "Content not compared: --no-content."
NONE_DUE: Final = (
    "Content not compared: no two servers were read of which one had started within 24 hours (with"
    " --out: or since the last look at it). --content looks behind every start."
)


def content_lines(
    readings: Mapping[str, ContentReading] | None, *, is_stored: bool
) -> Iterator[str]:
    """Say what was compared, cluster by cluster, or why nothing was. None: nobody looked."""
    if readings is None:
        yield NOT_STORED if is_stored else NOT_ASKED_FOR
        return
    if not readings:
        yield NONE_DUE
        return
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
    between = [f"{one} and {other}" for one, other in reading.pairs[:PAIRS_SHOWN_MAX]]
    if len(reading.pairs) > PAIRS_SHOWN_MAX:
        between.append(f"{len(reading.pairs) - PAIRS_SHOWN_MAX:,} more pairs")
    if between:
        where += f", between {'; '.join(between)}"
    counted = f"{reading.compared_count:,} GTIDs held by both"
    differing = len(reading.differences)
    came_of_it = f"{differing:,} not the same" if differing else "all the same"
    if not reading.compared_count:
        came_of_it = "nothing to compare"
    return f"Content compared: {where}; {counted}, {came_of_it}."


def content_records(contents: Mapping[str, ContentReading]) -> Iterator[Record]:
    """Give what was compared as plain values, by cluster; the differences are a finding's."""
    for cluster in sorted(contents):
        yield {"cluster": cluster, **content_record(contents[cluster])}


def content_record(reading: ContentReading) -> Record:
    """Return what was compared as plain values; the differences are a finding's."""
    return {
        "read_at": time_to_text(reading.read_at),
        "compared_count": reading.compared_count,
        "differing_count": len(reading.differences),
        "pairs": [list(pair) for pair in reading.pairs],
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

"""Reports, as text and in JSON, which contents an audit compared."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from gtid.counted_nouns import counted
from topology.documents.records import Record, time_to_text
from topology.readings.contents import ContentReading

STARTS_SHOWN_MAX = 4
PAIRS_SHOWN_MAX = 2
CLUSTERS_SHOWN_MAX = 10
REMARKS_SHOWN_MAX = 4
# A stored run without contents was read with --no-content, or by an older version.
NOT_STORED: Final = (
    "Content not compared when these servers were read. Equal GTID sets may contain different"
    " transactions. To compare the content, run `gtid-audit audit --fleet FILE --content`."
)
NOT_ASKED_FOR: Final = "Content not compared: --no-content."
NONE_DUE: Final = (
    "Content not compared: no linked server is known to have restarted within 24 hours (with"
    " --history or --out: or since the last audit that compared it). --content compares around"
    " every restart."
)
OTHERS: Final = (
    "Other GTIDs were not compared. Equal GTID sets may contain different transactions. --content"
    " also compares the newest GTIDs of each UUID."
)

_SUSPECT: Final = "that an earlier audit reported, or that a replica executed without receiving"


def content_lines(
    readings: Mapping[str, ContentReading] | None, *, is_stored: bool
) -> Iterator[str]:
    """Report what was compared, cluster by cluster, or why nothing was. None: not requested."""
    if readings is None:
        yield NOT_STORED if is_stored else NOT_ASKED_FOR
        return
    if not readings:
        yield NONE_DUE
        return
    if len(readings) == 1:
        for reading in readings.values():
            yield content_line(reading)
            yield from remark_lines(reading)
            yield from _others(readings)
        return
    for cluster in sorted(readings)[:CLUSTERS_SHOWN_MAX]:
        yield f"{cluster}: {content_line(readings[cluster])}"
    if len(readings) > CLUSTERS_SHOWN_MAX:
        count = sum(each.compared_count for each in readings.values())
        in_all = counted(count, "GTID")
        yield f"Content compared in {counted(len(readings), 'cluster')}: {in_all} in total."
    yield from _others(readings)


def _others(readings: Mapping[str, ContentReading]) -> Iterator[str]:
    """Report that the other clusters were not compared: equal sets prove nothing about them."""
    if not all(each.newest_count for each in readings.values()):
        yield OTHERS


def content_line(reading: ContentReading) -> str:
    """Report in one line what was compared, and the result."""
    starts = [
        f"{each.server} ({each.started_at:%Y-%m-%d %H:%M:%S} UTC)"
        for each in reading.starts[:STARTS_SHOWN_MAX]
    ]
    if len(reading.starts) > STARTS_SHOWN_MAX:
        starts.append(f"{len(reading.starts) - STARTS_SHOWN_MAX:,} more")
    where = "own transactions around the restart of " + ", ".join(starts)
    if not starts:
        is_unread = bool(reading.unread or reading.remarks)
        why = "it could not be read" if is_unread else "no restart of a server was found"
        where = f"nothing, because {why}"
    if reading.suspect_count:
        earlier = f"{counted(reading.suspect_count, 'GTID')} {_SUSPECT}"
        where = f"{where}, and {earlier}" if starts else earlier
    if reading.newest_count:
        newest = f"the newest {counted(reading.newest_count, 'GTID')}"
        where = f"{where}, and {newest}" if starts or reading.suspect_count else newest
    if reading.pairs:
        where += f", between {pairs_text(reading.pairs)}"
    return f"Content compared: {where}; {result_of(reading)}."


def pairs_text(pairs: Sequence[tuple[str, str]]) -> str:
    """Return the first of these pairs of servers, and how many more there are."""
    shown = [f"{one} and {other}" for one, other in pairs[:PAIRS_SHOWN_MAX]]
    if len(pairs) > PAIRS_SHOWN_MAX:
        shown.append(counted(len(pairs) - PAIRS_SHOWN_MAX, "more pair"))
    return "; ".join(shown)


def result_of(reading: ContentReading) -> str:
    """Report how many GTIDs were compared, with which result, and how many were not."""
    parts = [f"{counted(reading.compared_count, 'GTID')} compared"]
    differing = len(reading.differences)
    is_whole = not (reading.undecided_count or reading.unread or reading.remarks or reading.is_cut)
    if differing:
        parts.append(f"{differing:,} not the same")
    elif reading.compared_count:
        parts.append("all the same" if is_whole else "these are the same")
    if reading.undecided_count:
        parts.append(f"{counted(reading.undecided_count, 'GTID')} not comparable")
    return ", ".join(parts)


def remark_lines(reading: ContentReading) -> Iterator[str]:
    """Report what can never be compared, and why."""
    for remark in reading.remarks[:REMARKS_SHOWN_MAX]:
        yield f"Not compared: {remark.server}: {remark.reason}."
    if len(reading.remarks) > REMARKS_SHOWN_MAX:
        yield f"Not compared: {len(reading.remarks) - REMARKS_SHOWN_MAX:,} more reasons."


def content_records(contents: Mapping[str, ContentReading]) -> Iterator[Record]:
    """Return the comparisons as plain values, by cluster; the differences are in the findings."""
    for cluster in sorted(contents):
        yield {"cluster": cluster, **content_record(contents[cluster])}


def content_record(reading: ContentReading) -> Record:
    """Return one comparison as plain values; the differences are in the findings."""
    return {
        "read_at": time_to_text(reading.read_at),
        "compared_count": reading.compared_count,
        "undecided_count": reading.undecided_count,
        "suspect_count": reading.suspect_count,
        "newest_count": reading.newest_count,
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
        "remarks": [{"server": each.server, "reason": each.reason} for each in reading.remarks],
    }

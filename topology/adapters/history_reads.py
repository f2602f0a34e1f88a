"""Reads what shows a server's history beside its transactions: log heads, error log.

Each function raises what the connection or the log reader raises; log_answers.py lists it.
"""

import re
from contextlib import closing
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from binlog.adapters.compare_server import ServerCompared
from binlog.adapters.stream import FromPlace
from binlog.adapters.stream_packets import dump_events
from binlog.adapters.stream_session import RequestLimits
from binlog.decode import FIRST_POSITION
from binlog.errors import DumpTimedOut
from binlog.events import FormatDescription, PreviousGtids
from binlog.log_times import EPOCH
from gtid import GtidSet
from topology.adapters.connection import connect
from topology.readings.dialect import dialect_of
from topology.readings.history_evidence import LogReach, LogStart, PurgedChange, ends_of
from topology.readings.snapshot import ServerSnapshot
from topology.readings.target import ServerTarget
from topology.readings.version import ServerVersion

# ER_GTID_PURGED_WAS_UPDATED (share/messages_to_error_log.txt).
_PURGED_CHANGES: Final = (
    "SELECT UNIX_TIMESTAMP(LOGGED) AS at, DATA AS data FROM performance_schema.error_log"
    " WHERE ERROR_CODE = 'MY-010916' ORDER BY LOGGED"
)
_CHANGED: Final = re.compile(r"changed from '([^']*)' to '([^']*)'")
_TSIDS_MAX: Final = 16  # whose last transaction in a log is looked up
_HEAD_BYTES_MAX: Final = 64 * 1024**2  # a format description, and Previous_gtids of any size


def first_log_of(logs: ServerCompared, file: str) -> LogStart | None:
    """Return when a log file was begun and what it lists as previous; None if it does not show."""
    bounds = RequestLimits.start(
        timeout_seconds_max=logs.timeout_seconds_max, bytes_max=_HEAD_BYTES_MAX
    )
    begun_at = None
    with closing(dump_events(logs.connect, FromPlace(file, FIRST_POSITION), bounds)) as events:
        for event in events:
            if isinstance(event.body, FormatDescription):
                begun_at = EPOCH + timedelta(seconds=event.header.timestamp_seconds)
            elif isinstance(event.body, PreviousGtids) and begun_at is not None:
                return LogStart(file, begun_at, event.body.gtids)
            elif not event.header.is_artificial:
                break
    return None


def reach_of(logs: ServerCompared, server: ServerSnapshot, wanted: GtidSet) -> LogReach | None:
    """Return the log that has the first of a set; None if the server has no logs, or none of it."""
    listed = server.binary_logs or ()
    wanted &= server.logged
    if not listed or not wanted:
        return None
    # The head of a log that the server cannot open cannot be read: is it needed at all?
    gone = [place for place, each in enumerate(listed) if each.size_bytes == 0]
    begin = gone[-1] + 1 if gone else 0
    if not (0 < begin < len(listed) and logs.is_none_before(wanted, begin)):
        begin = 0
    number = logs.first_with(wanted, begin=begin)
    file = listed[number].name
    closed_at = logs.closed_at_seconds(number, size=listed[number].size_bytes)
    if closed_at is None:
        return LogReach(wanted, file, None)
    return LogReach(wanted, file, _not_before(logs, server, number, closed_at))


def _not_before(
    logs: ServerCompared, server: ServerSnapshot, number: int, closed_at: int
) -> datetime:
    """Return a time before which a log was not last written to.

    Times of events are those of a session or of an applier: SET timestamp can set them to the
    future, and a replica applies transactions that are days old. The time at which a server logged
    a transaction is its own (8.0.1 and later). It was never later than the last write. So an event
    counts if it is between that time and now. Otherwise the time of the last transaction does. If
    that is not known (before 8.0, or a log too large for the time limit), an event counts unless it
    is in the future, and then the header of the log.
    """
    now = (server.server_clock or server.read_ended) + timedelta(seconds=1)
    held = logs.held_in(number) & server.logged
    ends = GtidSet.union_of(
        each for tsid in held.tsids[:_TSIDS_MAX] for each in ends_of(held.from_tsid(tsid))[-1:]
    )
    try:
        times = [each.transaction.immediate_commit_timestamp for each in logs.groups_of(ends)]
    except DumpTimedOut:  # the server reads the whole log to find its end
        times = []
    logged = [EPOCH + timedelta(microseconds=each) for each in times if each]
    by_events = EPOCH + timedelta(seconds=closed_at)
    if logged:
        last = max(logged).replace(microsecond=0)
        return by_events if last <= by_events <= now else last
    if by_events <= now:
        return by_events
    return min(EPOCH + timedelta(seconds=logs.begun_at_seconds(number)), now)


def purged_changes_of(
    version: ServerVersion, target: ServerTarget, seconds_max: float
) -> tuple[PurgedChange, ...]:
    """Return each SET GLOBAL gtid_purged that the server's error log still has."""
    if not dialect_of(version).has_error_log_table:
        return ()
    way = connect(target, timeout_seconds_max=seconds_max)
    with closing(way) as connection, connection.cursor() as cursor:
        cursor.execute(_PURGED_CHANGES)
        rows = cursor.fetchall()
    found = ((row["at"], _CHANGED.search(str(row["data"]))) for row in rows)
    return tuple(
        PurgedChange(
            EPOCH + timedelta(microseconds=int(Decimal(str(at)) * 1_000_000)),
            GtidSet.parse(values[2]) - GtidSet.parse(values[1]),
        )
        for at, values in found
        if values is not None
    )

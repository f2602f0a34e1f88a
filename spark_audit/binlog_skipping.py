"""Decides which logs cannot hold the sought transactions, from both ends of each log.

How it works
------------
A log begins with the GTIDs of all earlier logs (PREVIOUS_GTIDS) and the time it was opened. Its
last event may be a ROTATE to the next log. With the next log's beginning, this bounds its contents:

    binlog.000007  opened 10:00  PREVIOUS_GTIDS U:1-40    last event: ROTATE to binlog.000008
    binlog.000008  opened 11:00  PREVIOUS_GTIDS U:1-90

So binlog.000007 holds exactly U:41-90, committed from 10:00 to 11:00. A query for U:12 skips it.

1. Lower bound by GTIDs: a server never assigns a GTID it already has. So the GTIDs of
   PREVIOUS_GTIDS are not in the log itself.
2. Upper bound by GTIDs: the next log's PREVIOUS_GTIDS. This holds only if both files belong to one
   history. An archive may have a file as it was before a crash, beside files written after it, and
   reused GTIDs are exactly there. So the bound counts only if the file ends with a ROTATE to the
   next file, and a rotation opened that file within ROTATION_SECONDS_MAX, not a restart. After a
   rotation, `created` in the format description is 0 (sql/log_event.h).
3. Bounds by time: when the file and the next one were opened. The server's clock may have been set
   back in between; up to CLOCK_SECONDS_MAX is allowed for. Only commit times on that server have
   both bounds: a replica may log today what its origin committed yesterday.
4. Relay logs are always read: their contents may have been fetched at any earlier time.
5. Pure: the caller reads the files.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from gtid import GtidSet
from spark_audit.binlog_sought import Sought

ROTATION_SECONDS_MAX: Final = 60
CLOCK_SECONDS_MAX: Final = 3600
_CLOCK: Final = timedelta(seconds=CLOCK_SECONDS_MAX)
# Logs have commit times since this version. Earlier logs have only the origin's clock.
_HAS_COMMIT_TIMES: Final = (8, 0, 1)


@dataclass(frozen=True, slots=True)
class LogFacts:
    """The facts from both ends of one log; the part between them is not read."""

    previous_gtids: GtidSet | None  # None before 5.6
    opened_at_seconds: int
    server_version: tuple[int, ...]
    is_opened_by_start: bool  # by a restart of the server; otherwise by a rotation
    is_relay_log: bool
    # The target of the ROTATE at the end of the file, and the time of that event.
    rotates_to: str | None = None
    rotated_at_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class LogBounds:
    """The bounds of a log's transactions. None: not known."""

    previous_gtids: GtidSet | None = None
    gtids: GtidSet | None = None
    opened_at: datetime | None = None
    closed_at: datetime | None = None


def bounds_of(name: str, folder: Mapping[str, LogFacts]) -> LogBounds:
    """Return the bounds of one log among the logs of its folder."""
    facts = folder[name]
    if facts.is_relay_log:
        return LogBounds()
    following = _following(facts, folder)
    has_commit_times = facts.server_version >= _HAS_COMMIT_TIMES
    return LogBounds(
        previous_gtids=facts.previous_gtids,
        gtids=_between(facts, following),
        opened_at=_moment(facts.opened_at_seconds) if has_commit_times else None,
        closed_at=None if following is None else _moment(following.opened_at_seconds),
    )


def may_hold(bounds: LogBounds, sought: Sought) -> bool:
    """Return whether a log within these bounds may hold a sought transaction."""
    if sought.has_gtids:
        wanted = sought.gtids_among(bounds.gtids)
        if wanted is not None and bounds.previous_gtids is not None:
            wanted -= bounds.previous_gtids
        if wanted is not None and not wanted:
            return False
    is_too_old = (
        sought.committed_from is not None
        and bounds.closed_at is not None
        and bounds.closed_at + _CLOCK < sought.committed_from
    )
    is_too_new = (
        sought.committed_until is not None
        and bounds.opened_at is not None
        and bounds.opened_at - _CLOCK > sought.committed_until
    )
    return not (is_too_old or is_too_new)


def _following(facts: LogFacts, folder: Mapping[str, LogFacts]) -> LogFacts | None:
    """Return the log that this one was rotated to, if it is here and proved to be that (rule 2)."""
    if facts.rotates_to is None or facts.rotated_at_seconds is None:
        return None
    following = folder.get(facts.rotates_to)
    if following is None or following.is_opened_by_start or following.is_relay_log:
        return None
    apart = following.opened_at_seconds - facts.rotated_at_seconds
    return following if abs(apart) <= ROTATION_SECONDS_MAX else None


def _between(facts: LogFacts, following: LogFacts | None) -> GtidSet | None:
    if following is None or following.previous_gtids is None or facts.previous_gtids is None:
        return None
    if not facts.previous_gtids <= following.previous_gtids:  # two histories
        return None
    return following.previous_gtids - facts.previous_gtids


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)

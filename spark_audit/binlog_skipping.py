"""Which logs cannot hold what is sought, by what stands at their head and at their end.

1. By GTIDs, from below: a server gives no transaction a GTID that it has, so what PREVIOUS_GTIDS
   says is in no later part of that log.
2. By GTIDs, from above: the next log's PREVIOUS_GTIDS are all that came before it. That holds for
   two files of one history only. An archive may hold a file as it was before a crash beside files
   that were written after it, and a reused number is exactly in there. So it counts only where the
   file ends with a ROTATE event that names the other, and the other was opened by a rotation and
   not by a start of the server (a description's `created` is 0 then: sql/log_event.h), within
   ROTATION_SECONDS_MAX.
3. By time: the moment a file was opened is at its head, and at the head of the next one. A server's
   clock may have been set back meanwhile; up to CLOCK_SECONDS_MAX that is allowed for. Only a
   commit on that server is bounded from both sides: a replica logs today what its origin committed
   yesterday.
4. Relay logs are always read: what is in them may have been fetched before.
5. Pure: the facts are given.
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
# Commit times are in the log since then; before, only the origin's clock is.
_HAS_COMMIT_TIMES: Final = (8, 0, 1)


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What the two ends of one log say, without reading what lies between."""

    previous_gtids: GtidSet | None  # None before 5.6
    opened_at_seconds: int
    server_version: tuple[int, ...]
    is_opened_by_start: bool  # of its server; otherwise by a rotation
    is_relay_log: bool
    # The file that the ROTATE at its end names, and when that was written.
    rotates_to: str | None = None
    rotated_at_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between what a log's transactions lie. None: not known."""

    previous_gtids: GtidSet | None = None
    gtids: GtidSet | None = None
    opened_at: datetime | None = None
    closed_at: datetime | None = None


def bounds_of(name: str, folder: Mapping[str, LogFacts]) -> Bounds:
    """Return the bounds of one log among the logs of its folder."""
    facts = folder[name]
    if facts.is_relay_log:
        return Bounds()
    following = _following(facts, folder)
    has_commit_times = facts.server_version >= _HAS_COMMIT_TIMES
    return Bounds(
        previous_gtids=facts.previous_gtids,
        gtids=_between(facts, following),
        opened_at=_moment(facts.opened_at_seconds) if has_commit_times else None,
        closed_at=None if following is None else _moment(following.opened_at_seconds),
    )


def may_hold(bounds: Bounds, sought: Sought) -> bool:
    """Return whether a log within these bounds may hold something of what is sought."""
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
    """Return the log that this one went over into, if it is here and is that one: see rule 2."""
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
    if not facts.previous_gtids <= following.previous_gtids:  # not one history
        return None
    return following.previous_gtids - facts.previous_gtids


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)

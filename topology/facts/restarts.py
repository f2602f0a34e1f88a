"""Whether a server restarted since it committed transactions that it no longer has: pure.

1. Its start time is its clock minus its uptime, in whole seconds. Commit times are from the same
   clock.
2. If a clock was set back, as after a crash, a restart since the commits seems to be before them.
   Such a clock is behind the other server's. A clock that was set back and has been corrected is
   not detected.
"""

from datetime import datetime, timedelta
from enum import Enum

from topology.readings.snapshot import ServerSnapshot

_SECOND = timedelta(seconds=1)


class Restart(Enum):
    """Whether the origin restarted since the lost transactions were committed."""

    SINCE = "yes"
    NOT_SINCE = "no"
    UNKNOWN = "unknown"


def restart_of(
    origin: ServerSnapshot, holder: ServerSnapshot, committed: tuple[datetime, datetime] | None
) -> Restart:
    """Compare the origin's start time with its first and last commit that the holder has.

    Clock and uptime have whole seconds, and a second may elapse between the two queries. So the
    start was within two seconds from `earliest` on. Either answer is given only outside this
    interval. (Seen on 9.7.4: a restart 0.5 s after a RESET seemed to be before the commits, and a
    reset was wrongly proved.)
    """
    if committed is None or origin.server_clock is None or origin.uptime_seconds is None:
        return Restart.UNKNOWN
    clock = origin.server_clock.replace(microsecond=0)
    earliest = clock - timedelta(seconds=origin.uptime_seconds)
    if earliest >= committed[1]:
        return Restart.SINCE
    is_before = earliest + 2 * _SECOND <= committed[0]
    return Restart.NOT_SINCE if is_before and not _is_behind(origin, holder) else Restart.UNKNOWN


def _is_behind(origin: ServerSnapshot, holder: ServerSnapshot) -> bool:
    """Return whether the origin's clock is behind the holder's.

    It may have been set back, as after a crash. Then a restart since the commits seems to be before
    them.
    """
    ours, theirs = origin.clock_ahead, holder.clock_ahead
    return ours is not None and theirs is not None and ours + 2 * _SECOND < theirs

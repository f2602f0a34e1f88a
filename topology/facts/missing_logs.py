"""Whether a source still has the binary logs with what it would send: pure.

gtid_purged does not have what was in a log that was deleted by hand (topology/rules/gone_logs.py).
Two signs in SHOW BINARY LOGS show such a log: a size of 0 bytes, and a gap in the numbers. A log
that is missing is of no importance in two cases:

* The heads of the logs show that the dump begins after it: the first log that has any of what is
  to be sent comes later (`LogReach`). The head of the next log lists what the missing one had, so
  its contents count as those of an earlier log.
* A search of the logs found each transaction, and only the line of the index is missing as well.
  The dump passes over such a gap without an error. At a log that is listed and that the source
  cannot open it ends with error 1236, even if that log has nothing that is needed.
"""

from collections.abc import Iterator
from typing import Final

from gtid import GtidSet
from topology.facts.runway import reach_in_logs
from topology.facts.unlogged import is_found, without_event
from topology.readings.snapshot import ServerSnapshot

# The end of a reason that another reading does not change.
STAYS: Final = "another reading does not change that"


def log_doubts(source: ServerSnapshot, fetched: GtidSet, *, replica: str) -> Iterator[str]:
    """Yield why a source may not be able to send all of `fetched`; nothing if it surely can."""
    if not fetched:
        return
    if any(each.fact == "binary_logs" for each in source.unread):
        yield (
            f"the list of binary logs of {source.name} was not read: whether a log is missing"
            " there is not known"
        )
    gone = source.gone_logs
    if gone and not _begins_after(source, fetched, gone[-1]):
        yield (
            f"{source.name} cannot open its binary log {gone[0]}: if {replica} needs"
            " transactions from there, it is refused with error 1236"
        )
    unlisted = source.unlisted_logs
    if not unlisted or _begins_after(source, fetched, unlisted[-1]) or is_found(fetched, source):
        return
    if absent := without_event(fetched, source):
        yield (
            f"the binary logs of {source.name} have no {unlisted[0]}, and do not have"
            f" {absent.shortened()} any more: {replica} never gets these from there, and no error"
            " shows it"
        )
    else:
        yield (
            f"the binary logs of {source.name} have no {unlisted[0]}: if that log was deleted by"
            f" hand and {replica} needs transactions from there, they never arrive"
        )


def unsent_reason(source: ServerSnapshot, fetched: GtidSet, *, replica: str) -> str:
    """Return why it is not known that a source can send `fetched`; "" if it can."""
    doubts = "; ".join(log_doubts(source, fetched, replica=replica))
    if not doubts:
        return ""
    what = f"whether {source.name} can send {fetched.shortened()} ({doubts})"
    return f"{what}; {STAYS}" if source.gone_logs or source.unlisted_logs else what


def _begins_after(source: ServerSnapshot, fetched: GtidSet, log: str) -> bool:
    """Return whether the first log with any of `fetched` was read, and comes after this one."""
    reach = reach_in_logs(source, fetched)
    if reach is None:
        return False
    (base, number), (other, later) = _numbered(log), _numbered(reach.file)
    return base == other and number < later


def _numbered(log: str) -> tuple[str, int]:
    base, _, number = log.rpartition(".")
    return base, int(number)

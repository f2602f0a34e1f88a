"""Whether a log file continues the one before it: no file of their server is missing in between.

How it works
------------
Each file has two ends that refer to others. Its header has PREVIOUS_GTIDS: what the server had
logged in earlier files. Its last event is ROTATE, with the name of the next file, or STOP, if the
server was shut down, or any other, after a crash or in a copy that is cut. For a file A and the
next one B, the first row that applies decides:

    previous(A) has GTIDs that previous(B) has not    reset: B does not know what A begins with
    ROTATE in A names another number than that of B   missing
    ROTATE in A names B                               B continues A
    the number of B is not that of A + 1              missing
    previous(B) is not previous(A) + GTIDs in A       missing, or a reset if B has not all of them
    none of these, or not known                       B continues A

Example: A is binlog.000001 with GTIDs 1 to 3, and it ends with a transaction. If previous(B) is
1-3, the server crashed. If it is 1-5, A is cut, or a file between them is missing.

Why not simpler:
* Numbers alone miss a file that is cut. A server also skips numbers: it takes the one after the
  highest in its directory, whatever that file is. The ROTATE has the number that it took.
* GTIDs alone miss what gtid_mode = OFF logs: 5.6 writes no PREVIOUS_GTIDS then, and later versions
  repeat the last one. So equal sets do not excuse a number that is missing.
* After a ROTATE to B, the GTIDs in A are not compared. In 5.6, setting gtid_purged rotates the log,
  and previous(B) has the new GTIDs, which no file has. Statements without an engine's commit (5.7)
  may be logged in A while previous(B) is written without them.
* A relay log lists what its receiver got, and the places in it are those of its source. There only
  the numbers count.

Without GTIDs, a file that is cut between two events after a crash cannot be distinguished from one
that ends there.
"""

from collections.abc import Callable
from dataclasses import dataclass

from binlog.log_names import number_at_end
from gtid import GtidSet


@dataclass(frozen=True, slots=True)
class LogEnds:
    """What the header and the last event of a file say of other files."""

    file: str
    previous_gtids: GtidSet | None = None  # None: it has no PREVIOUS_GTIDS event
    next_file: str = ""  # of the ROTATE at its end; empty without one
    is_relay_log: bool = False


@dataclass(frozen=True, slots=True)
class LogBreak:
    """A file does not continue the one before it. `is_reset`: it is of another history."""

    before: str
    after: str
    why: str
    is_reset: bool = False


def break_between(
    before: LogEnds, after: LogEnds, *, gtids_before: Callable[[], GtidSet]
) -> LogBreak | None:
    """Return why a file does not continue the one before it; None if nothing shows that.

    `gtids_before` returns the GTIDs of the transactions in the earlier file; it is called only if
    they decide. Pure, apart from that.
    """
    sets = (before.previous_gtids, after.previous_gtids)
    if before.is_relay_log or after.is_relay_log:
        sets = (None, None)
    earlier, listed = sets
    if earlier is not None and listed is not None and not earlier <= listed:
        return _reset(before, after, earlier - listed)
    number, expected = number_at_end(after.file), number_at_end(before.next_file)
    if expected is not None and not before.is_relay_log:
        if number == expected:
            return None
        why = f"{before.file} continues in {before.next_file} (its ROTATE event), missing here"
        return LogBreak(before.file, after.file, why)
    previous = number_at_end(before.file)
    if previous is not None and number is not None and number != previous + 1:
        why = "a log between them is missing here" if number > previous else "equal numbers"
        return LogBreak(before.file, after.file, why)
    if earlier is None or listed is None:
        return None
    logged = earlier | gtids_before()
    if not logged <= listed:
        return _reset(before, after, logged - listed)
    if logged != listed:
        also = (listed - logged).shortened()
        why = f"{before.file} is cut, or a log after it is missing here: {also} was logged before"
        return LogBreak(before.file, after.file, f"{why} {after.file}")
    return None


def _reset(before: LogEnds, after: LogEnds, unknown: GtidSet) -> LogBreak:
    why = (
        f"{after.file} does not list {unknown.shortened()} as logged before; the server's logs were"
        " reset, or these logs are of another server"
    )
    return LogBreak(before.file, after.file, why, is_reset=True)

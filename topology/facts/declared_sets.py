"""What a source may have executed although its gtid_executed does not have it.

RESET BINARY LOGS AND GTIDS removes all GTIDs and leaves the rows, and SET GLOBAL gtid_purged then
gives a server the set that an operator believes it has: before a promotion, after a restore, with a
dump. If the set is too small, the rest looks errant on the replicas of that server, and its rows
are there: a redo would add them a second time. The same sets are left if a backup was restored that
is older than these transactions; then their rows are missing.

The evidence: the server has purged earlier transactions of the same TSID, although its logs begin
with the first one. A purge of old logs leaves a log with a higher number. What was committed after
that log was begun, it never had.
"""

from typing import Final

from gtid import GtidSet
from topology.facts.reset_signs import has_log_from_before, may_have_had
from topology.readings.snapshot import ServerSnapshot

# The fact of an extra set whose source may have its rows.
DECLARED: Final = "set by hand on its source: gtid_purged, with logs that begin at number 1"
_TEXT: Final = (
    " {source} was given its GTID set (gtid_purged): a restore, a clone or a dump, or RESET BINARY"
    " LOGS AND GTIDS before a promotion. If it had executed {what} of these before, their rows are"
    " there and only the GTIDs are missing. Compare the rows on {source} before you repair."
)


def declared_text(source: ServerSnapshot, holder: ServerSnapshot, gtids: GtidSet) -> str:
    """Explain that a source may have the rows of an extra set; "" if it certainly has not."""
    had = may_have_had(source, gtids)
    if not had or has_log_from_before(source, had, holder):
        return ""
    return _TEXT.format(source=source.name, what=had.shortened())

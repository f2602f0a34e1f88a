"""What a source may have executed although its gtid_executed does not have it.

RESET BINARY LOGS AND GTIDS removes all GTIDs and leaves the rows, and SET GLOBAL gtid_purged then
gives a server the set that an operator believes it has: before a promotion, after a restore, with a
dump. If the set is too small, the rest looks errant on the replicas of that server, and its rows
are there: a redo would add them a second time. The same sets are left if a backup was restored that
is older than these transactions; then their rows are missing.

The evidence: the source has purged other transactions of the same TSID, and none of its logs is
from before the extra ones. A purge of old logs leaves that as well, so nothing is certain then.
What was committed after its oldest log was begun, it never had: a RESET begins the logs again.
"""

from typing import Final

from gtid import GtidSet
from topology.facts.reset_signs import has_log_from_before, may_have_had
from topology.readings.snapshot import ServerSnapshot

# The fact of an extra set whose source may have its rows.
DECLARED: Final = "others of the same origin purged on its source, which has no log from before"
_TEXT: Final = (
    " {source} has purged others of the same origin, and no log of it that was read is from before"
    " {what}. If it had executed these before it was given its GTID set (gtid_purged: a restore, a"
    " dump, or RESET BINARY LOGS AND GTIDS before a promotion), their rows are there and only the"
    " GTIDs are missing. Compare the rows on {source} before you repair."
)


def declared_text(source: ServerSnapshot, holder: ServerSnapshot, gtids: GtidSet) -> str:
    """Explain that a source may have the rows of an extra set; "" if it certainly has not."""
    had = may_have_had(source, gtids)
    if not had or has_log_from_before(source, had, holder):
        return ""
    return _TEXT.format(source=source.name, what=had.shortened())

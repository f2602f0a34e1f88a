"""Whether an applier may skip transactions: by a counter, after an error, or after a crash.

The counter skips only if gtid_mode is not ON. With ON it can be set, and nothing is skipped (tried
on 9.7.4; 5.6 refuses it). START REPLICA SQL_THREAD copies the value from the variable, and
Skip_Counter is 0 again once it is used up. So an applier that skipped, and continues with later
transactions, no longer shows it. "Received and not executed" alone does not show that a transaction
will be applied. The applier's position in the source's log does: log_questions.py.

replica_skip_errors leaves out what fails. 5.6 commits the GTID of a transaction that is left out,
and not that of a DDL statement: then it is missing for good (tried on 5.6.24).

A crash may roll back applied transactions, and leave the applier's position after them. From 8.0.17
on their GTIDs, their rows and the position are all in InnoDB, and survive or are lost together. In
older versions the position may be in a file (relay_log_info_repository, FILE by default up to 5.7).
If relay_log_recovery is off, the applier continues after them in the relay log. The server still
counts them as received, so no source sends them again.
"""

from typing import Final

from topology.facts.cluster_facts import ClusterFacts
from topology.facts.graph import Edge
from topology.facts.reset_signs import keeps_gtids
from topology.readings.notable_settings import notable_values
from topology.readings.snapshot import ServerSnapshot
from topology.readings.version import ServerVersion

_ONLINE_MODE: Final = ServerVersion(5, 7, 6)
_ALL_COUNTED: Final = ServerVersion(5, 7, 0)  # replica_skip_errors leaves out no GTID


def why_it_may_skip(facts: ClusterFacts, edge: Edge) -> str:
    """Return what permits the applier of a channel to skip transactions; "" if nothing does."""
    for reading in (facts.last, facts.first):
        server = reading[edge.replica]
        for channel in server.channels or ():
            if channel.name == edge.channel.name and channel.skip_counter:
                return f"sql_replica_skip_counter is {channel.skip_counter}"
        if server.notable_settings is None:
            return "gtid_mode was not read, and may permit sql_replica_skip_counter"
        values = notable_values(server.notable_settings)
        mode, errors = values.get("gtid_mode"), values.get("replica_skip_errors")
        if mode is not None:
            return f"gtid_mode is {mode}, which permits sql_replica_skip_counter"
        if errors is not None and not (server.version and server.version >= _ALL_COUNTED):
            return (
                f"replica_skip_errors is {errors} (before 5.7, the GTID of a DDL statement that is"
                " left out is missing for good)"
            )
    return ""


def can_have_skipped(server: ServerSnapshot) -> bool:
    """Return whether gtid_mode is dynamic on a server, and so may have had another value."""
    return server.version is None or server.version >= _ONLINE_MODE


def crash_may_leave_place(server: ServerSnapshot) -> bool:
    """Return whether a crash may have left an applier after transactions that it rolled back."""
    return not keeps_gtids(server) and server.setting("relay_log_recovery") not in ("1", "ON")


def may_skip(facts: ClusterFacts, edge: Edge) -> bool:
    """Return whether the applier of a channel may skip transactions, or may just have skipped."""
    return bool(why_it_may_skip(facts, edge))

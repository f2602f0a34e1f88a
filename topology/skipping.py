"""Whether an applier may skip transactions: by sql_replica_skip_counter, or behind a crash.

The counter skips only where gtid_mode is not ON: with ON it may be set, and nothing is skipped
(tried on 9.7.4; 5.6 refuses it). START REPLICA SQL_THREAD takes the value over from the variable,
and Skip_Counter is 0 again once it is used up: an applier that has skipped, and goes on with later
transactions, shows nothing of it. So "received and not executed" does not show by itself that a
transaction will be applied. The applier's place in the source's log does: log_questions.py.

A crash may take applied transactions back, and leave the applier behind them. From 8.0.17 on their
GTIDs, their rows and the place are in InnoDB, and go together. Before, the place may be in a file
(relay_log_info_repository, FILE by default up to 5.7), and the relay log is read on behind them
where relay_log_recovery is off; it still counts them as received, so that nothing sends them again.
"""

from typing import Final

from topology.facts import ClusterFacts
from topology.graph import Edge
from topology.notable_settings import notable_values
from topology.reset_signs import keeps_gtids
from topology.snapshot import ServerSnapshot
from topology.version import ServerVersion

_ONLINE_MODE: Final = ServerVersion(5, 7, 6)


def why_it_may_skip(facts: ClusterFacts, edge: Edge) -> str:
    """Return what permits the applier of a channel to skip transactions; "" if nothing does."""
    for reading in (facts.last, facts.first):
        server = reading[edge.replica]
        for channel in server.channels or ():
            if channel.name == edge.channel.name and channel.skip_counter:
                return f"sql_replica_skip_counter is {channel.skip_counter}"
        if server.notable_settings is None:
            return "gtid_mode was not read, and may permit sql_replica_skip_counter"
        mode = notable_values(server.notable_settings).get("gtid_mode")
        if mode is not None:
            return f"gtid_mode is {mode}, which permits sql_replica_skip_counter"
    return ""


def can_have_skipped(server: ServerSnapshot) -> bool:
    """Return whether gtid_mode can be changed while a server runs, and may have been another."""
    return server.version is None or server.version >= _ONLINE_MODE


def crash_may_leave_place(server: ServerSnapshot) -> bool:
    """Return whether a crash may have left an applier behind transactions that it took back."""
    return not keeps_gtids(server) and server.setting("relay_log_recovery") not in ("1", "ON")


def may_skip(facts: ClusterFacts, edge: Edge) -> bool:
    """Return whether the applier of a channel may skip transactions, or may just have done so."""
    return bool(why_it_may_skip(facts, edge))

"""Manual instructions for consumers and backups (P4): where they read from, and with which set.

gtid-audit knows only the set of a consumer, so its own commands are in its documentation.
"""

from repair.strategies.instruction_context import Situation
from topology.catalogue.findings import Severity


def move_consumer(situation: Situation) -> str:
    """Return how a consumer reads from another server."""
    name, source = situation.finding.replica, situation.finding.source or "its server"
    return (
        f"stop {name}; in its configuration, replace the address of {source} by that of a server"
        " that serves its set, as the finding shows; do not change the set that it has stored;"
        f" start it. Then change `server` of {name} in the fleet file, and audit again"
    )


def new_snapshot(situation: Situation) -> str:
    """Return how a consumer or a backup gets a newer set, with the data that belongs to it."""
    finding = situation.finding
    name = finding.replica
    waits = ""
    if finding.severity is Severity.WARNING and finding.gtid_set:
        waits = (
            f"if {name} still reads, wait until its set has"
            f" {finding.gtid_set.shortened()}, and do nothing else. Otherwise: "
        )
    return (
        f"{waits}if {name} is a consumer, stop it, let it take a new snapshot of all tables from a"
        " server of this cluster, and store the set of that snapshot instead of the old one. A"
        " snapshot does not show which rows were deleted since the old set: compare its target with"
        f" the tables. If {name} is a backup, take a new one with its set (for example"
        " `mysqldump --single-transaction --set-gtid-purged=ON`), and list that one in the fleet"
        " file. Keep the old one until the new one is complete. Then audit again"
    )

"""Whether a commit would wait for a semisynchronous replica that is not connected.

1. With semisynchronous replication, each commit on a source waits until enough replicas have
   acknowledged it, or until rpl_semi_sync_source_timeout, which may be days. A replica that the
   source refuses (E3: it has more GTIDs) acknowledges nothing, and can only connect when the last
   GTID is committed. So the script would block at its first commit, with the GTID owned, and other
   commits on the server would wait as well.
2. A script that commits checks this first. If the status is ON and fewer replicas than required are
   connected (rpl_semi_sync_source_wait_no_replica keeps it ON), the script changes nothing and
   reports what to switch off. If the status is OFF, or the plugin is not installed, no commit
   waits.
3. A source that waits this way holds up plans as well: `until_committed` says how that ends.
4. Pure. It asks for the names of both plugins.
"""

from binlog.quoting import quote_string
from repair.model.replication_model import ModelServer
from repair.sql.guard import Guard
from topology.readings.dialect import (
    SEMI_SYNC_CLIENTS,
    SEMI_SYNC_STATUS,
    SEMI_SYNC_WAITS_FOR,
    dialect_of,
)
from topology.readings.version import ServerVersion


def commits_without_waiting(name: str, version: ServerVersion) -> Guard:
    """Require that the semisynchronous replicas for which a commit waits are connected, if any."""
    dialect = dialect_of(version)
    schema = "performance" if dialect.has_channels else "information"
    status, variables = f"{schema}_schema.global_status", f"{schema}_schema.global_variables"

    def named(names: tuple[str, ...]) -> str:
        return f"VARIABLE_NAME IN ({', '.join(map(quote_string, names))})"

    def highest(table: str, names: tuple[str, ...]) -> str:
        highest = f"SELECT MAX(VARIABLE_VALUE + 0) FROM {table} WHERE"  # noqa: S608 - ours
        return f"({highest} {named(names)})"

    is_on = f"{named(SEMI_SYNC_STATUS)} AND VARIABLE_VALUE = 'ON'"
    waits = f"EXISTS (SELECT 1 FROM {status} WHERE {is_on})"  # noqa: S608 - ours
    needed = f"IFNULL({highest(variables, SEMI_SYNC_WAITS_FOR)}, 1)"
    return Guard(
        f"NOT {waits} OR {highest(status, SEMI_SYNC_CLIENTS)} >= {needed}",
        f"{name}: a commit would wait for a semi-synchronous replica that is not connected: SET"
        f" GLOBAL {dialect.semi_sync_enabled} = OFF until the plan is done; nothing was changed",
    )


def until_committed(server: ModelServer) -> str:
    """Return what to do while a server is committing: the sentence ends without a full stop."""
    return (
        "If it waits for a semi-synchronous replica that is not connected, SET GLOBAL"
        f" {dialect_of(server.version).semi_sync_enabled} = OFF ends the wait. Then audit and plan"
        " again"
    )

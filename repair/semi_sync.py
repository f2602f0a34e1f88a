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
3. Pure. It has the names of both plugins: up to 8.3 a server may have the older one.
"""

from repair.guard import Guard
from topology.dialect import dialect_of
from topology.version import ServerVersion

_NEW_WORDS = ServerVersion(8, 0, 26)
_STATUS = "'Rpl_semi_sync_source_status', 'Rpl_semi_sync_master_status'"
_CLIENTS = "'Rpl_semi_sync_source_clients', 'Rpl_semi_sync_master_clients'"
_WAITS_FOR = (
    "'rpl_semi_sync_source_wait_for_replica_count', 'rpl_semi_sync_master_wait_for_slave_count'"
)


def commits_without_waiting(name: str, version: ServerVersion) -> Guard:
    """Require that the semisynchronous replicas for which a commit waits are connected, if any."""
    schema = "performance" if dialect_of(version).has_channels else "information"
    status, variables = f"{schema}_schema.global_status", f"{schema}_schema.global_variables"
    is_new = version >= _NEW_WORDS
    enabled = "rpl_semi_sync_source_enabled" if is_new else "rpl_semi_sync_master_enabled"

    def highest(table: str, names: str) -> str:
        value = "SELECT MAX(VARIABLE_VALUE + 0) FROM"
        return f"({value} {table} WHERE VARIABLE_NAME IN ({names}))"

    names = f"VARIABLE_NAME IN ({_STATUS})"
    waits = f"EXISTS (SELECT 1 FROM {status} WHERE {names} AND VARIABLE_VALUE = 'ON')"  # noqa: S608 - ours
    needed = f"IFNULL({highest(variables, _WAITS_FOR)}, 1)"
    return Guard(
        f"NOT {waits} OR {highest(status, _CLIENTS)} >= {needed}",
        f"{name}: a commit would wait for a semi-synchronous replica that is not connected: SET"
        f" GLOBAL {enabled} = OFF until the plan is done; nothing was changed",
    )

"""The statements of one reading: SELECT and SHOW, as fixed texts that are chosen by version.

No external value is part of a statement here. status.py defines what the columns mean.
"""

from functools import cache

from binlog.adapters.set_statements import STATE_SETS
from binlog.quoting import quote_string
from topology.readings.dialect import SETTINGS, Dialect
from topology.readings.vendors import VENDOR_SETTINGS

IDENTITY = (
    f"SELECT {STATE_SETS}, @@GLOBAL.server_uuid AS server_uuid,"
    " @@GLOBAL.server_id AS server_id,"
    " @@GLOBAL.gtid_mode AS gtid_mode, UTC_TIMESTAMP(6) AS server_clock"
)
# The basedir shows the servers of RDS and Aurora, which print the version texts of MySQL.
VERSION = (
    "SELECT @@GLOBAL.version AS version, @@GLOBAL.version_comment AS version_comment,"
    " @@GLOBAL.basedir AS basedir"
)
UPTIME = "SHOW GLOBAL STATUS LIKE 'Uptime'"
# One row for each worker, or one row without a worker for a channel that has none. Times are sent
# as seconds since 1970, which no time zone changes. Row locks are queried only for a transaction
# that takes long, because the table of lock waits is expensive. With performance_schema = OFF no
# thread is shown, and the times are 0: see hidden_workers.py.
_WORKERS = (
    "SELECT c.CHANNEL_NAME AS channel, w.WORKER_ID AS worker_id, w.LAST_ERROR_NUMBER AS errno,"
    " w.LAST_ERROR_MESSAGE AS error, t.PROCESSLIST_STATE AS state,"
    " w.SERVICE_STATE = 'ON' AND t.THREAD_ID IS NULL AS is_hidden"
)
# The worker has had no work since it started, and its channel has received what is not executed.
_AWAITS = (
    "w.APPLYING_TRANSACTION = '' AND w.LAST_APPLIED_TRANSACTION = ''"
    " AND NOT GTID_SUBSET(c.RECEIVED_TRANSACTION_SET, @@GLOBAL.gtid_executed)"
)
_TRANSACTION_TIMES = (
    ", w.APPLYING_TRANSACTION AS applying,"  # noqa: S608 - fixed text
    " IF(w.APPLYING_TRANSACTION <> '', GREATEST(0, UNIX_TIMESTAMP()"
    " - FLOOR(NULLIF(UNIX_TIMESTAMP(w.APPLYING_TRANSACTION_START_APPLY_TIMESTAMP), 0))),"
    f" IF({_AWAITS}, t.PROCESSLIST_TIME, NULL)) AS applying_seconds, {_AWAITS} AS awaits,"
    " w.LAST_APPLIED_TRANSACTION AS applied,"
    " UNIX_TIMESTAMP(w.LAST_APPLIED_TRANSACTION_END_APPLY_TIMESTAMP) AS applied_at,"
    " c.LAST_QUEUED_TRANSACTION AS queued,"
    " UNIX_TIMESTAMP(c.LAST_QUEUED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP) AS queued_committed_at,"
    " CASE WHEN w.APPLYING_TRANSACTION <> ''"
    " AND UNIX_TIMESTAMP(w.APPLYING_TRANSACTION_START_APPLY_TIMESTAMP) < UNIX_TIMESTAMP() - 1"
    " THEN EXISTS(SELECT 1 FROM performance_schema.data_lock_waits l"
    " WHERE l.REQUESTING_THREAD_ID = w.THREAD_ID) ELSE 0 END AS waits_for_row"
)
# An attempt that ended in 1205 (ER_LOCK_WAIT_TIMEOUT) is followed by a pause of up to 5 s
# (sql/rpl_replica.h, MAX_SLAVE_RETRY_PAUSE) and the next attempt. An attempt that has been running
# for longer than innodb_lock_wait_timeout is not waiting for a row.
_RETRIES = (
    ", w.APPLYING_TRANSACTION_LAST_TRANSIENT_ERROR_NUMBER = 1205"
    " AND UNIX_TIMESTAMP(w.APPLYING_TRANSACTION_LAST_TRANSIENT_ERROR_TIMESTAMP) + 6"
    " + @@GLOBAL.innodb_lock_wait_timeout >= UNIX_TIMESTAMP() AS retries_for_row"
)
_FROM_WORKERS = (
    " FROM performance_schema.replication_connection_status c"
    " LEFT JOIN performance_schema.replication_applier_status_by_worker w"
    " ON w.CHANNEL_NAME = c.CHANNEL_NAME"
    " LEFT JOIN performance_schema.threads t ON t.THREAD_ID = w.THREAD_ID"
)
# Every account may read it, and it is also filled with performance_schema = OFF.
VARIABLES_INFO = (
    "SELECT VARIABLE_NAME AS name, VARIABLE_SOURCE AS source FROM"
    " performance_schema.variables_info WHERE VARIABLE_NAME IN ('server_id', 'gtid_mode')"
)
# Only on RDS and Aurora.
LOG_RETENTION = (
    "SELECT value AS value FROM mysql.rds_configuration WHERE name = 'binlog retention hours'"
)
BINARY_LOGS = "SHOW BINARY LOGS"
PROCESSLIST = "SHOW PROCESSLIST"  # needs PROCESS; the table of it is deprecated since 8.0.35
# 5.6 has no thread state for a row lock: an applier that waits for one is in "System lock".
ROW_LOCK_WAITS = (
    "SELECT trx_mysql_thread_id AS thread FROM information_schema.INNODB_TRX"
    " WHERE trx_state = 'LOCK WAIT'"
)
# One row for each member that this one sees. What this member has received is in its own row.
_FROM_GROUP = (
    ", m.MEMBER_ID AS server_uuid, m.MEMBER_HOST AS host, m.MEMBER_PORT AS port,"
    " m.MEMBER_STATE AS member_state, m.MEMBER_ID = @@GLOBAL.server_uuid AS is_this,"
    " IF(m.MEMBER_ID = @@GLOBAL.server_uuid, c.RECEIVED_TRANSACTION_SET, '') AS received,"
    " r.LAST_ERROR_NUMBER AS recovery_errno, r.LAST_ERROR_MESSAGE AS recovery_error,"
    " s.VIEW_ID AS view_id"
    " FROM performance_schema.replication_group_members m"
    " LEFT JOIN performance_schema.replication_connection_status c"
    " ON c.CHANNEL_NAME = 'group_replication_applier'"
    " LEFT JOIN performance_schema.replication_connection_status r"
    " ON r.CHANNEL_NAME = 'group_replication_recovery'"
    " LEFT JOIN performance_schema.replication_group_member_stats s"
    " ON s.MEMBER_ID = m.MEMBER_ID AND s.CHANNEL_NAME = m.CHANNEL_NAME"
    " WHERE m.MEMBER_STATE <> 'OFFLINE'"
)


@cache
def settings_statement() -> str:
    """Return the statement that reads the settings, under the names of every version and vendor."""
    of_settings = (name for names in SETTINGS.values() for name in names)
    names = ", ".join(map(quote_string, (*of_settings, *VENDOR_SETTINGS)))
    return f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})"


def statements_of_reading(dialect: Dialect, *, is_first: bool) -> tuple[str, ...]:
    """Return what is asked of every server that can be evaluated, in the order of mysql.py."""
    workers = workers_statement if dialect.has_worker_status else processlist_statement
    every = (
        *(IDENTITY, UPTIME, dialect.show_replica_status, workers(dialect)),
        *(dialect.show_binary_log_status, BINARY_LOGS),
    )
    once = (settings_statement(), *((VARIABLES_INFO,) if dialect.has_variables_info else ()))
    return (*every, *once) if is_first else every


@cache
def workers_statement(dialect: Dialect) -> str:
    """Return the statement that reads the applier's workers and what the receiver queued last."""
    times = _TRANSACTION_TIMES if dialect.has_applying_transaction else ""
    retries = _RETRIES if dialect.has_transient_errors else ""
    return f"{_WORKERS}{times}{retries}{_FROM_WORKERS}"


@cache
def group_statement(dialect: Dialect) -> str:
    """Return the statement that reads the members of a replication group, as this one sees them."""
    role = "m.MEMBER_ROLE" if dialect.has_applying_transaction else "''"
    return f"SELECT {role} AS member_role{_FROM_GROUP}"


@cache
def processlist_statement(dialect: Dialect) -> str:
    """Return the statement that reads the replication threads of 5.6.

    Its answer is one row without a thread if the account may see none.
    """
    workers = f"@@GLOBAL.{dialect.replica_variable_prefix}parallel_workers"
    return (
        "SELECT s.workers AS workers, p.ID AS thread, p.TIME AS seconds, p.STATE AS state"  # noqa: S608 - ours
        f" FROM (SELECT {workers} AS workers) s LEFT JOIN information_schema.PROCESSLIST p"
        " ON p.USER = 'system user' AND p.COMMAND = 'Connect'"
    )

"""Which syntax a server version understands: the only table of statements, variables and columns.

1. Every statement, variable or feature that depends on the version is a row here, with the version
   that introduced it.
2. The table is data and connects to no server. `repair` renders statements from it, and the
   adapters read servers with it.
3. The old terms appear in this file because old servers accept no others.

Sources: MySQL Reference Manual 5.6 to 9.x, "Changes in MySQL 8.0.22/8.0.23/8.0.26/8.2/8.4";
WL#14194, WL#15831.
"""

from dataclasses import dataclass
from functools import lru_cache

from topology.readings.version import ServerVersion

_REPLICA_WORDS = ServerVersion(8, 0, 22)  # SHOW REPLICA STATUS, START/STOP/RESET REPLICA
_CHANGE_SOURCE = ServerVersion(8, 0, 23)  # CHANGE REPLICATION SOURCE TO
_REPLICA_VARIABLES = ServerVersion(8, 0, 26)  # replica_* system variables
_BINARY_LOG_STATUS = ServerVersion(8, 2, 0)  # SHOW BINARY LOG STATUS, RESET BINARY LOGS AND GTIDS
_TAGS = ServerVersion(8, 3, 0)
_PURGED_APPEND = ServerVersion(8, 0, 0)  # SET @@GLOBAL.gtid_purged = '+…' (WL#6591)
_WORKER_STATUS = ServerVersion(5, 7, 0)  # performance_schema.replication_applier_status_by_worker
# Seen on 9.7.4, and not on 5.6.24; 5.7 was not tried.
_FILLS_GAPS = ServerVersion(8, 0, 0)
_APPLYING_TRANSACTION = ServerVersion(8, 0, 0)  # its column APPLYING_TRANSACTION
# The table's columns APPLYING_TRANSACTION_LAST_TRANSIENT_ERROR_… (WL#9131)
_TRANSIENT_ERRORS = ServerVersion(8, 0, 13)
_ERROR_LOG_TABLE = ServerVersion(8, 0, 22)  # performance_schema.error_log
_CHANNELS = ServerVersion(5, 7, 0)  # FOR CHANNEL
_COMMIT_ORDER = ServerVersion(5, 7, 5)  # slave_preserve_commit_order
_WAIT_FOR_GTIDS = ServerVersion(5, 7, 5)  # WAIT_FOR_EXECUTED_GTID_SET
_VARIABLES_INFO = ServerVersion(8, 0, 0)  # performance_schema.variables_info
_REFUSES_IGNORED_IDS = ServerVersion(8, 0, 0)
_ASSIGNED_GTIDS = ServerVersion(8, 0, 23)  # ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS
_GTIDS_IN_INNODB = ServerVersion(8, 0, 17)  # storage/innobase/clone/clone0repl.cc


@dataclass(frozen=True, slots=True)
class Dialect:
    """The syntax and features of one server version."""

    show_replica_status: str
    show_replicas: str
    start_replica: str
    stop_replica: str
    reset_replica: str
    change_source: str
    option_prefix: str  # of the options of change_source: "SOURCE_" or "MASTER_"
    show_binary_log_status: str
    reset_binary_logs_and_gtids: str
    replica_variable_prefix: str  # "replica_" or "slave_"
    log_replica_updates: str
    wait_for_position: str
    semi_sync_enabled: str
    skip_replica_start: str
    disabled_event: str  # the status of an event that runs on the source only
    wait_for_gtids: str  # (set, seconds); the old function waits only while an applier runs
    has_tags: bool
    has_purged_append: bool
    has_worker_status: bool
    has_applying_transaction: bool
    fills_gaps_at_start: bool  # of killed workers by file position, with relay_log_recovery = ON
    has_transient_errors: bool
    has_error_log_table: bool
    has_commit_order: bool
    has_channels: bool
    has_variables_info: bool
    refuses_ignored_ids: bool  # IGNORE_SERVER_IDS, where gtid_mode is ON
    assigns_gtids: bool
    # A crash preserves or loses GTIDs and rows together. In older versions, only the binary log has
    # the GTIDs: unless sync_binlog is 1, a crash can lose its end and keep the rows (5.6.24).
    has_gtids_in_innodb: bool

    def for_channel(self, quoted_channel: str | None) -> str:
        """Return ` FOR CHANNEL …`, or nothing for the default channel."""
        if quoted_channel is None or quoted_channel == "''":
            return ""
        assert self.has_channels, "a server without channels has only the default one"
        return f" FOR CHANNEL {quoted_channel}"


@lru_cache(maxsize=256)
def dialect_of(version: ServerVersion) -> Dialect:
    """Return the dialect of a server version: pure, total, and monotone in the version."""
    replica_words = version >= _REPLICA_WORDS
    change_source = version >= _CHANGE_SOURCE
    replica_variables = version >= _REPLICA_VARIABLES
    binary_log_status = version >= _BINARY_LOG_STATUS
    noun = "REPLICA" if replica_words else "SLAVE"
    return Dialect(
        show_replica_status=f"SHOW {noun} STATUS",
        show_replicas="SHOW REPLICAS" if replica_words else "SHOW SLAVE HOSTS",
        start_replica=f"START {noun}",
        stop_replica=f"STOP {noun}",
        reset_replica=f"RESET {noun}",
        change_source="CHANGE REPLICATION SOURCE TO" if change_source else "CHANGE MASTER TO",
        option_prefix="SOURCE_" if change_source else "MASTER_",
        show_binary_log_status="SHOW BINARY LOG STATUS"
        if binary_log_status
        else "SHOW MASTER STATUS",
        reset_binary_logs_and_gtids=(
            "RESET BINARY LOGS AND GTIDS" if binary_log_status else "RESET MASTER"
        ),
        replica_variable_prefix="replica_" if replica_variables else "slave_",
        log_replica_updates="log_replica_updates" if replica_variables else "log_slave_updates",
        wait_for_position="SOURCE_POS_WAIT" if replica_variables else "MASTER_POS_WAIT",
        wait_for_gtids=(
            "WAIT_FOR_EXECUTED_GTID_SET"
            if version >= _WAIT_FOR_GTIDS
            else "WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS"
        ),
        disabled_event="DISABLE ON REPLICA" if binary_log_status else "DISABLE ON SLAVE",
        semi_sync_enabled=(
            "rpl_semi_sync_source_enabled" if replica_variables else "rpl_semi_sync_master_enabled"
        ),
        skip_replica_start="skip_replica_start" if replica_variables else "skip_slave_start",
        has_tags=version >= _TAGS,
        has_purged_append=version >= _PURGED_APPEND,
        has_worker_status=version >= _WORKER_STATUS,
        has_applying_transaction=version >= _APPLYING_TRANSACTION,
        fills_gaps_at_start=version >= _FILLS_GAPS,
        has_transient_errors=version >= _TRANSIENT_ERRORS,
        has_error_log_table=version >= _ERROR_LOG_TABLE,
        has_commit_order=version >= _COMMIT_ORDER,
        has_channels=version >= _CHANNELS,
        has_variables_info=version >= _VARIABLES_INFO,
        refuses_ignored_ids=version >= _REFUSES_IGNORED_IDS,
        assigns_gtids=version >= _ASSIGNED_GTIDS,
        has_gtids_in_innodb=version >= _GTIDS_IN_INNODB,
    )


# SHOW REPLICA STATUS uses the column names of its version. Our name is on the left; every name that
# the column has had is on the right.
STATUS_COLUMNS: dict[str, tuple[str, ...]] = {
    "source_host": ("Source_Host", "Master_Host"),
    "source_port": ("Source_Port", "Master_Port"),
    "source_uuid": ("Source_UUID", "Master_UUID"),
    "source_server_id": ("Source_Server_Id", "Master_Server_Id"),
    "channel": ("Channel_Name",),
    "auto_position": ("Auto_Position",),
    "gtid_retrieved": ("Retrieved_Gtid_Set",),
    "receiver_running": ("Replica_IO_Running", "Slave_IO_Running"),
    "applier_running": ("Replica_SQL_Running", "Slave_SQL_Running"),
    "receiver_errno": ("Last_IO_Errno",),
    "receiver_error": ("Last_IO_Error",),
    "receiver_error_at": ("Last_IO_Error_Timestamp",),
    "applier_errno": ("Last_SQL_Errno",),
    "applier_error": ("Last_SQL_Error",),
    "applier_error_at": ("Last_SQL_Error_Timestamp",),
    "received_file": ("Source_Log_File", "Master_Log_File"),
    "received_position": ("Read_Source_Log_Pos", "Read_Master_Log_Pos"),
    "applied_file": ("Relay_Source_Log_File", "Relay_Master_Log_File"),
    "applied_position": ("Exec_Source_Log_Pos", "Exec_Master_Log_Pos"),
    "lag_seconds": ("Seconds_Behind_Source", "Seconds_Behind_Master"),
    "applier_state": ("Replica_SQL_Running_State", "Slave_SQL_Running_State"),
    "receiver_state": ("Replica_IO_State", "Slave_IO_State"),
    "relay_applied_file": ("Relay_Log_File",),
    "relay_applied_position": ("Relay_Log_Pos",),
    "delay_seconds": ("SQL_Delay",),
    "delay_remaining_seconds": ("SQL_Remaining_Delay",),
    "ignored_server_ids": ("Replicate_Ignore_Server_Ids",),
    "skip_counter": ("Skip_Counter",),
    "until_condition": ("Until_Condition",),
    "until_file": ("Until_Log_File",),
    "until_position": ("Until_Log_Pos",),
}

# Until_Condition shows the kind of a START REPLICA UNTIL. This table translates those with a
# position into the terms of the statement. The others are printed unchanged (sql/rpl_replica.cc,
# until_type_names).
UNTIL_PLACES: dict[str, str] = {
    "Source": "SOURCE_LOG_POS",
    "Master": "SOURCE_LOG_POS",
    "Relay": "RELAY_LOG_POS",
}
# What Until_Condition shows after the condition was reached, and the condition itself. The applier
# changes it when the gaps of its workers are filled (Relay_log_info::UNTIL_DONE, sql/rpl_rli.h).
UNTIL_GAPS = "SQL_AFTER_MTS_GAPS"
UNTIL_REACHED: dict[str, str] = {"DONE": UNTIL_GAPS}

# The words of the statements before 8.0.22 (REPLICA) and 8.2 (BINARY LOG).
OLD_STATEMENTS = {"REPLICA": "SLAVE", "BINARY LOG": "MASTER"}

# A line of the error log about a replication thread that stopped, after its level. 5.6 has no
# channels; from 8.0 on the number of an error has a prefix. Error_code may be there twice: the last
# one is that of the line (sql/rpl_replica.cc, Slave_reporting_capability::report).
LOG_LINE_OF_THREAD = (
    r"(?:Replica|Slave) (?P<thread>I/O|SQL)(?: for channel '(?P<channel>[^']*)')?:"
    r" (?P<text>.*), Error_code: (?:MY-)?(?P<errno>\d+)\s*$"
)

# Events for one database are applied in another one: (from,to). 5.6 does not show it.
REWRITES = "Replicate_Rewrite_DB"

# SHOW REPLICAS: the column with a replica's server_uuid. A receiver sets variables of the same
# meaning on its connection to the source.
REPLICA_UUID_COLUMNS = ("Replica_UUID", "Slave_UUID")
REPLICA_UUID_VARIABLES = ("replica_uuid", "slave_uuid")

# How the names of replication threads begin in performance_schema.threads.
REPLICATION_THREADS = ("thread/sql/replica_", "thread/sql/slave_", "thread/group_rpl/")

# A pattern that all receiver states match, and no applier state. The negative lookahead excludes
# the applier state of SOURCE_DELAY: "Waiting until SOURCE_DELAY seconds after source executed
# event".
RECEIVER_STATE = r"^(?!Waiting until ).*\b(?:source|master)\b|relay log space|^Queueing "

# The channel's filters, as SHOW REPLICA STATUS lists them.
FILTER_COLUMNS: tuple[str, ...] = (
    "Replicate_Do_DB",
    "Replicate_Ignore_DB",
    "Replicate_Do_Table",
    "Replicate_Ignore_Table",
    "Replicate_Wild_Do_Table",
    "Replicate_Wild_Ignore_Table",
    REWRITES,
)

# Server options that have no variable. SHOW BINARY LOG STATUS lists them, as names separated by
# commas. They are read with the settings, under our names.
BINARY_LOG_FILTERS: dict[str, str] = {
    "Binlog_Do_DB": "binlog_do_db",
    "Binlog_Ignore_DB": "binlog_ignore_db",
}

# Of the plugins for semi-synchronous replication: up to 8.3 a server may have the older one.
SEMI_SYNC_STATUS = ("Rpl_semi_sync_source_status", "Rpl_semi_sync_master_status")
SEMI_SYNC_CLIENTS = ("Rpl_semi_sync_source_clients", "Rpl_semi_sync_master_clients")
SEMI_SYNC_WAITS_FOR = (
    "rpl_semi_sync_source_wait_for_replica_count",
    "rpl_semi_sync_master_wait_for_slave_count",
)

# The state of a server's binary log, where log_bin does not show it. It is read with the settings,
# under our name. With binlog_error_action = IGNORE_ERROR, a server that cannot write its log closes
# the log until the next restart (MY-010816); log_bin stays ON.
BINARY_LOG = "binary_log"
LOG_CLOSED = "CLOSED"
# The source of a variable's value (8.0 and later): "DYNAMIC" if SET GLOBAL changed it since the
# last restart. It is read with the settings, under our names.
SERVER_ID_SOURCE = "server_id_source"
GTID_MODE_SOURCE = "gtid_mode_source"
SOURCES_OF_VALUES = {"server_id": SERVER_ID_SOURCE, "gtid_mode": GTID_MODE_SOURCE}
CHANGED_SINCE_START = "DYNAMIC"

# Settings that a rule or a plan needs. Our name is on the left; the variable's names are on the
# right, newest first.
SETTINGS: dict[str, tuple[str, ...]] = {
    "gtid_mode": ("gtid_mode",),
    "enforce_gtid_consistency": ("enforce_gtid_consistency",),
    "log_bin": ("log_bin",),
    "log_replica_updates": ("log_replica_updates", "log_slave_updates"),
    "replica_parallel_workers": ("replica_parallel_workers", "slave_parallel_workers"),
    "replica_preserve_commit_order": (
        "replica_preserve_commit_order",
        "slave_preserve_commit_order",
    ),
    "relay_log_recovery": ("relay_log_recovery",),
    "relay_log_info_repository": ("relay_log_info_repository",),
    "sync_binlog": ("sync_binlog",),
    "innodb_flush_log_at_trx_commit": ("innodb_flush_log_at_trx_commit",),
    "binlog_expire_logs_seconds": ("binlog_expire_logs_seconds",),
    "expire_logs_days": ("expire_logs_days",),
    "binlog_expire_logs_auto_purge": ("binlog_expire_logs_auto_purge",),
    "max_binlog_size": ("max_binlog_size",),
    "binlog_format": ("binlog_format",),
    "binlog_row_image": ("binlog_row_image",),
    "binlog_row_value_options": ("binlog_row_value_options",),
    "read_only": ("read_only",),
    "super_read_only": ("super_read_only",),
    "auto_increment_increment": ("auto_increment_increment",),
    "auto_increment_offset": ("auto_increment_offset",),
    "lower_case_table_names": ("lower_case_table_names",),
    "replica_skip_errors": ("replica_skip_errors", "slave_skip_errors"),
    "replica_exec_mode": ("replica_exec_mode", "slave_exec_mode"),
    "replica_type_conversions": ("replica_type_conversions", "slave_type_conversions"),
    "sql_replica_skip_counter": ("sql_replica_skip_counter", "sql_slave_skip_counter"),
    "offline_mode": ("offline_mode",),
    "require_secure_transport": ("require_secure_transport",),
    "wsrep_on": ("wsrep_on",),  # Galera only
    "hostname": ("hostname",),
    "port": ("port",),
    "datadir": ("datadir",),
    "group_replication_group_name": ("group_replication_group_name",),
    "group_replication_gtid_assignment_block_size": (
        "group_replication_gtid_assignment_block_size",
    ),
    "pid_file": ("pid_file",),
}


# Settings that a server has only from one version on, and before another one. Seen on 5.6.24 and
# 9.7.4; those between are from the manual. A plugin has to be installed for some: these may be
# missing on every version.
SETTINGS_OF_VERSIONS: dict[str, tuple[ServerVersion | None, ServerVersion | None]] = {
    "binlog_expire_logs_auto_purge": (ServerVersion(8, 0, 29), None),
    "binlog_expire_logs_seconds": (ServerVersion(8, 0, 1), None),
    "binlog_row_value_options": (ServerVersion(8, 0, 3), None),
    "replica_preserve_commit_order": (_COMMIT_ORDER, None),
    "offline_mode": (ServerVersion(5, 7, 5), None),
    "require_secure_transport": (ServerVersion(5, 7, 8), None),
    "super_read_only": (ServerVersion(5, 7, 8), None),
    "expire_logs_days": (None, ServerVersion(8, 0, 0)),
    "relay_log_info_repository": (None, ServerVersion(8, 2, 0)),
}
SETTINGS_OF_PLUGINS = frozenset({"wsrep_on", "group_replication_group_name"})


def settings_due(version: ServerVersion | None) -> tuple[str, ...]:
    """Return the settings, by our names, that every server of a version has."""
    due = []
    for name in SETTINGS:
        since, until = SETTINGS_OF_VERSIONS.get(name, (None, None))
        is_due = version is None or since is None or version >= since
        is_due = is_due and (version is None or until is None or version < until)
        if is_due and name not in SETTINGS_OF_PLUGINS:
            due.append(name)
    return tuple(due)


def who_set_until(condition: str) -> str:
    """Return which actor starts an applier with this condition, as text.

    If relay_log_recovery is ON, mysqld itself fills the gaps of workers when it starts
    (fill_mts_gaps_and_recover, sql/rpl_replica.cc), and the condition stays.
    """
    if condition == UNTIL_GAPS:
        return "an operator, or mysqld itself at its restart (relay_log_recovery),"
    return "an operator"


def privileges_to_list_replicas(dialect: Dialect) -> str:
    """Return what an account needs to see a server's replicas and all its dump threads."""
    threads = "SELECT on performance_schema" if dialect.has_worker_status else "PROCESS"
    return f"REPLICATION SLAVE, and {threads}"

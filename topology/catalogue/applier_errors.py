"""Errors that stop an applier, except those of rows (A2) and of half-executed statements (A1).

1. Each row has the cause and the next step. No step is to skip the transaction: that loses its
   rows. For most of these errors, a START applies the transaction once the cause is removed.
2. `OF_NO_TRANSACTION` lists the errors that do not depend on the transaction at which the applier
   stopped. The next start applies it, or the receiver fetches it again. No plan skips it.

Sources: sql/share messages of 5.6 to 9.7. Errors with the comment "seen on" occurred on real
servers of that version.
"""

from typing import Final

from topology.catalogue.error_row import ErrorText

RELAY_LOG_UNREADABLE: Final = "the relay log cannot be read"
_INTERRUPTED: Final = "a replication thread was interrupted"
_WAITED: Final = "the applier waited too long for a lock"
_NO_SPACE: Final = "no space is left on the replica"
_DENIED: Final = "the applier is missing a privilege"
_NO_KEY: Final = "the replica refuses a table without a primary key"
_UNKNOWN_XID: Final = "the applier finds no such prepared XA transaction"
_NOT_THERE: Final = "the object that the statement changes does not exist on the replica"
_THERE: Final = "the object that the statement creates already exists on the replica"
_NOT_CONVERTED: Final = "the column types differ on the replica"
_NO_FIT: Final = "a value does not fit the replica's column"
_BOUND: Final = "a constraint of the replica forbids the change"
_TOO_LARGE: Final = "the transaction is larger than the replica permits"
_NOT_KNOWN: Final = "the replica does not support what the statement uses"

OF_NO_TRANSACTION: Final = frozenset(
    {RELAY_LOG_UNREADABLE, _INTERRUPTED, _WAITED, _NO_SPACE, _TOO_LARGE}
)

APPLIER_TEXTS: Final[tuple[ErrorText, ...]] = (
    ErrorText(
        RELAY_LOG_UNREADABLE,  # seen on 9.7.4 and 5.6.24
        r"(?:Relay log read failure|Could not parse relay log event|Error reading relay log|"
        r"(?:^|: )Could not open log file|"
        r"Could not find target log (?:file mentioned|during relay log))",
        "A3",
        "The relay log file on the replica is missing, damaged or truncated (rm, its disk, a crash,"
        " a full file system). No transaction is the cause.",
        (
            (
                "Do not skip a transaction: the source sends all of them again after the relay log"
                " is deleted."
            ),
            (
                "First compare what the replica is missing with the binary logs of the source. What"
                " the source has purged is only in this relay log."
            ),
            (
                "With auto-position: STOP REPLICA, CHANGE REPLICATION SOURCE TO"
                " SOURCE_AUTO_POSITION = 1, START REPLICA. This deletes the relay log."
            ),
        ),
    ),
    ErrorText(
        _INTERRUPTED,  # seen on 9.7.4
        r"(?:Query execution was interrupted|Connection was killed|Server shutdown in progress)",
        "A3",
        "An operator or a program ended the thread or its connection (KILL), or a server was shut"
        " down: the replica, or the source while a receiver connected. An applier rolled its"
        " transaction back.",
        (
            (
                "START REPLICA continues: the applier applies the transaction again. Find out what"
                " kills threads or shuts servers down."
            ),
        ),
    ),
    ErrorText(
        _WAITED,
        r"(?:Lock wait timeout exceeded|Deadlock found when trying to get lock)",
        "A3",
        "Another session held a lock for longer than the applier retried. The transaction was"
        " rolled back.",
        (
            (
                "End the session that holds the lock (an audit reports it as A5), then run START"
                " REPLICA."
            ),
            "If it happens often, raise replica_transaction_retries.",
        ),
    ),
    ErrorText(
        _NO_SPACE,
        r"(?:No space left on device|Disk full|The table '.*' is full)",
        "A3",
        "A file system of the replica is full, or a table with its own size limit.",
        ("Free space, then run START REPLICA.",),
    ),
    ErrorText(
        _DENIED,  # seen on 9.7.4
        r"(?:command denied to user|Access denied; you need)",
        "A3",
        "The channel applies with the privileges of an account (PRIVILEGE_CHECKS_USER). This"
        " account does not have the privilege that the error text reports.",
        (
            "GRANT it to that account on the replica (sql_log_bin = 0), then run START REPLICA.",
            (
                "If the source must not make this change, the account is correct: decide what to do"
                " with the transaction."
            ),
        ),
    ),
    ErrorText(
        _NO_KEY,  # seen on 9.7.4
        r"without a primary key, when the system variable 'sql_require_primary_key'",
        "A3",
        "The channel requires primary keys (REQUIRE_TABLE_PRIMARY_KEY_CHECK = ON), and the source"
        " creates a table without one.",
        (
            (
                "Run STOP REPLICA SQL_THREAD, CHANGE REPLICATION SOURCE TO"
                " REQUIRE_TABLE_PRIMARY_KEY_CHECK = STREAM (or GENERATE, which adds a key on the"
                " replica), START REPLICA SQL_THREAD."
            ),
        ),
    ),
    ErrorText(
        _TOO_LARGE,
        r"(?:max_binlog_cache_size|(?:bigger|larger) than '?max_allowed_packet)",
        "A3",
        "A limit of the replica is lower than that of its source.",
        (
            (
                "On the replica, raise the setting in the error text to the source's value or"
                " higher, also in its configuration file. Then run START REPLICA."
            ),
        ),
    ),
    ErrorText(
        _NOT_CONVERTED,  # seen on 9.7.4
        r"cannot be converted from type",
        "A3",
        "The table was altered on one of the two servers only.",
        (
            (
                "Compare SHOW CREATE TABLE on both servers. With sql_log_bin = 0, alter the table"
                " on the replica to what it was on the source when the transaction was committed."
                " Then run START REPLICA."
            ),
            (
                "Do not set replica_type_conversions = ALL_LOSSY: it truncates values without an"
                " error."
            ),
        ),
    ),
    ErrorText(
        _NO_FIT,
        r"(?:Data too long for column|Out of range value for column|Incorrect \w+ value)",
        "A3",
        "The replica's column is smaller than the source's, or its sql_mode is stricter.",
        (
            (
                "Compare SHOW CREATE TABLE and sql_mode of both servers. Alter the table on the"
                " replica with sql_log_bin = 0. Then run START REPLICA."
            ),
        ),
    ),
    ErrorText(
        _BOUND,  # 3819 seen on 9.7.4
        r"(?:a foreign key constraint fails|Check constraint .* is violated)",
        "A3",
        "The replica does not have the parent row, or has child rows or a constraint that the"
        " source does not have.",
        (
            "On both servers, compare SHOW CREATE TABLE and the rows that the keys refer to.",
            "The usual cause is a skipped transaction (H1, H8) or a write on the replica (E1).",
        ),
    ),
    ErrorText(
        _THERE,  # seen on 9.7.4
        r"(?:(?:Table|View) '.*' already exists|database exists|Duplicate (?:column|key) name)",
        "A3",
        "A client created it on the replica, or the transaction ran there before: a RESET, a"
        " gtid_purged that is too small, or a dump that was loaded without its GTID set.",
        (
            (
                "Check whether the replica also has the rows of the waiting transactions. If it"
                " does, the GTID history of the replica is wrong, not this transaction. Set its"
                " gtid_purged, or clone it."
            ),
            (
                "If the replica has only this object, compare both definitions and rows before you"
                " decide."
            ),
        ),
    ),
    ErrorText(
        _UNKNOWN_XID,  # seen on 9.7.4
        r"XAER_NOTA",
        "A3",
        "An XA COMMIT or XA ROLLBACK finds no such prepared transaction. Its XA PREPARE has its own"
        " GTID, and was not executed on the replica or was replaced by an empty transaction.",
        (
            (
                "If the XA PREPARE is missing on the replica (H1), fetch it first: STOP REPLICA,"
                " CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 1, START REPLICA."
            ),
            (
                "If it was replaced, its rows are missing: replace this transaction as well, and"
                " compare the rows."
            ),
        ),
    ),
    ErrorText(
        _NOT_THERE,  # 1146 seen on 9.7.4
        r"(?:Table '.*' doesn't exist|Unknown (?:table|database|column)|Can't DROP|"
        r"Can't drop database|Unknown VIEW|does not exist on query)",
        "A3",
        "A client dropped or renamed it on the replica, or it was never created there: a filter, a"
        " skipped transaction, or a partial restore.",
        (
            "Do not skip it: the next transactions on the same table stop the applier again.",
            (
                "Find out what else is missing (H1, H8, filters). Then restore the table as it was"
                " at this transaction, or clone the replica."
            ),
        ),
    ),
    ErrorText(
        _NOT_KNOWN,
        r"Unknown (?:collation|character set|storage engine|or incorrect time zone)",
        "A3",
        "The replica runs an older version than its source, or does not have a plugin or the time"
        " zone tables.",
        (
            (
                "Load what is missing (mysql_tzinfo_to_sql, INSTALL PLUGIN), or upgrade the"
                " replica. Then run START REPLICA. Replicate only from older to newer versions."
            ),
        ),
    ),
)

# Errors that are identified by their number alone.
APPLIER_NUMBERS: Final[dict[int, str]] = {
    **dict.fromkeys((1594, 13121), RELAY_LOG_UNREADABLE),
    **dict.fromkeys((1053, 1317, 1927), _INTERRUPTED),
    **dict.fromkeys((1205, 1213), _WAITED),
    **dict.fromkeys((1021, 1114), _NO_SPACE),
    **dict.fromkeys((1142, 1227), _DENIED),
    3750: _NO_KEY,
    **dict.fromkeys((1153, 1197), _TOO_LARGE),
    **dict.fromkeys((1677, 13146), _NOT_CONVERTED),
    **dict.fromkeys((1264, 1366, 1406), _NO_FIT),
    **dict.fromkeys((1451, 1452, 3819), _BOUND),
    **dict.fromkeys((1007, 1050, 1060, 1061), _THERE),
    **dict.fromkeys((1008, 1049, 1051, 1054, 1091, 1146), _NOT_THERE),
    1397: _UNKNOWN_XID,
    **dict.fromkeys((1115, 1273, 1286, 1298), _NOT_KNOWN),
}

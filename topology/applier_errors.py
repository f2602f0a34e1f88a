"""Errors that stop an applier, except those of rows (A2) and of half-executed statements (A1).

1. Each row has the cause and the next step. No step is to skip the transaction: that loses its
   rows. For most of these errors, a START applies the transaction once the cause is removed.
2. `OF_NO_TRANSACTION` lists the errors that do not depend on the transaction at which the applier
   stopped. The next start applies it, or the receiver fetches it again. No plan skips it.

Sources: sql/share messages of 5.6 to 9.7. Errors with the comment "seen on" occurred on real
servers of that version.
"""

from typing import Final

from topology.error_row import ErrorText

RELAY_LOG_UNREADABLE: Final = "the relay log cannot be read"
_INTERRUPTED: Final = "the applier was interrupted"
_WAITED: Final = "the applier waited too long for a lock"
_NO_SPACE: Final = "there is no space left on the replica"
_DENIED: Final = "the applier lacks a privilege"
_NO_KEY: Final = "a table without a primary key is refused"
_UNKNOWN_XID: Final = "the applier finds no such prepared XA transaction"
_NOT_THERE: Final = "what the statement changes is not on the replica"
_THERE: Final = "what the statement makes is on the replica already"
_NOT_CONVERTED: Final = "the columns have other types on the replica"
_NO_FIT: Final = "a value does not fit the replica's column"
_BOUND: Final = "a constraint of the replica forbids the change"
_TOO_LARGE: Final = "the transaction is larger than the replica permits"
_NOT_KNOWN: Final = "the replica does not know what the statement names"

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
        "The file that the receiver wrote on the replica is gone, damaged or cut off (rm, its disk,"
        " a crash, a full file system). No transaction is the cause.",
        (
            (
                "Do not skip a transaction: the source sends all of them again once the relay log"
                " is deleted."
            ),
            (
                "First compare what the replica misses with the binary logs of the source: what it"
                " has purged is only in this relay log."
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
        "An operator or a program ended the thread of the applier (KILL), or the server was being"
        " shut down. The transaction was rolled back.",
        ("START REPLICA applies it again. Find out what ends threads of the replica.",),
    ),
    ErrorText(
        _WAITED,
        r"(?:Lock wait timeout exceeded|Deadlock found when trying to get lock)",
        "A3",
        "Another session held a lock for longer than the applier tried. The transaction was rolled"
        " back.",
        (
            "End the session that holds the lock (A5 of an audit names the wait); START REPLICA.",
            "If it happens often, raise replica_transaction_retries.",
        ),
    ),
    ErrorText(
        _NO_SPACE,
        r"(?:No space left on device|Disk full|The table '.*' is full)",
        "A3",
        "A file system of the replica, or a table with a limit of its own, is full.",
        ("Make space; then START REPLICA.",),
    ),
    ErrorText(
        _DENIED,  # seen on 9.7.4
        r"(?:command denied to user|Access denied; you need)",
        "A3",
        "The channel applies with the privileges of an account (PRIVILEGE_CHECKS_USER), which"
        " lacks the one that the text names.",
        (
            "GRANT it to that account on the replica, with sql_log_bin = 0; then START REPLICA.",
            (
                "If the source must not make this change, the account is right: decide about the"
                " transaction."
            ),
        ),
    ),
    ErrorText(
        _NO_KEY,  # seen on 9.7.4
        r"without a primary key, when the system variable 'sql_require_primary_key'",
        "A3",
        "The channel demands primary keys (REQUIRE_TABLE_PRIMARY_KEY_CHECK = ON), and the source"
        " makes a table without one.",
        (
            (
                "STOP REPLICA SQL_THREAD, CHANGE REPLICATION SOURCE TO"
                " REQUIRE_TABLE_PRIMARY_KEY_CHECK = STREAM (or GENERATE, which adds a key on the"
                " replica), START REPLICA SQL_THREAD."
            ),
        ),
    ),
    ErrorText(
        _TOO_LARGE,
        r"(?:max_binlog_cache_size|(?:bigger|larger) than '?max_allowed_packet)",
        "A3",
        "A limit of the replica is below that of its source.",
        (
            (
                "Raise the setting that the text names on the replica, to the source's value or"
                " above, in its configuration file too; then START REPLICA."
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
                "Compare SHOW CREATE TABLE on both. Alter the table on the replica, with"
                " sql_log_bin = 0, to what it was on the source when the transaction was"
                " committed; then START REPLICA."
            ),
            "Do not set replica_type_conversions = ALL_LOSSY: values are cut off without an error.",
        ),
    ),
    ErrorText(
        _NO_FIT,
        r"(?:Data too long for column|Out of range value for column|Incorrect \w+ value)",
        "A3",
        "The replica's column, or its sql_mode, is narrower than the source's.",
        (
            (
                "Compare SHOW CREATE TABLE and sql_mode of both servers; alter the table on the"
                " replica with sql_log_bin = 0; then START REPLICA."
            ),
        ),
    ),
    ErrorText(
        _BOUND,  # 3819 seen on 9.7.4
        r"(?:a foreign key constraint fails|Check constraint .* is violated)",
        "A3",
        "The replica lacks the parent row, has child rows that the source has not, or has a"
        " constraint that the source has not.",
        (
            "Compare SHOW CREATE TABLE and the rows that the keys name on both servers.",
            "A skipped transaction (H1, H8) or a write on the replica (E1) is the usual cause.",
        ),
    ),
    ErrorText(
        _THERE,  # seen on 9.7.4
        r"(?:(?:Table|View) '.*' already exists|database exists|Duplicate (?:column|key) name)",
        "A3",
        "It was made on the replica, or the transaction ran there before: a RESET, a gtid_purged"
        " that is too small, a dump that was loaded without its GTID set.",
        (
            (
                "Look whether the rows of what waits are there as well: then the history of the"
                " replica is wrong, not this transaction. Set its gtid_purged, or clone it."
            ),
            "If only this object is there, compare both definitions and rows before you decide.",
        ),
    ),
    ErrorText(
        _UNKNOWN_XID,  # seen on 9.7.4
        r"XAER_NOTA",
        "A3",
        "An XA COMMIT or XA ROLLBACK finds no such prepared transaction: its XA PREPARE, a GTID of"
        " its own, was not executed here, or was left out by an empty transaction.",
        (
            (
                "If the XA PREPARE is missing here (H1), fetch it first: STOP REPLICA, CHANGE"
                " REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 1, START REPLICA."
            ),
            (
                "If it was left out, its rows are missing: leave this one out as well, and compare"
                " the rows."
            ),
        ),
    ),
    ErrorText(
        _NOT_THERE,  # 1146 seen on 9.7.4
        r"(?:Table '.*' doesn't exist|Unknown (?:table|database|column)|Can't DROP|"
        r"Can't drop database|Unknown VIEW|does not exist on query)",
        "A3",
        "It was dropped or renamed on the replica, or never arrived there: a filter, a skipped"
        " transaction, a partial restore.",
        (
            "Do not skip: the next transactions of the same table stop the applier again.",
            (
                "Find out what else is missing (H1, H8, filters), then bring back the table as it"
                " was at this transaction, or clone the replica."
            ),
        ),
    ),
    ErrorText(
        _NOT_KNOWN,
        r"Unknown (?:collation|character set|storage engine|or incorrect time zone)",
        "A3",
        "The replica is of an older version than its source, or lacks a plugin or the time zone"
        " tables.",
        (
            (
                "Load what is missing (mysql_tzinfo_to_sql, INSTALL PLUGIN), or upgrade the"
                " replica; then START REPLICA. Replicate from older to newer versions only."
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

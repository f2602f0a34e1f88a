"""Errors that stop an applier, except those of rows (A2) and of half-executed statements (A1).

1. Each row has the cause and the next step. No step is to skip the transaction: that loses its
   rows. For most of these errors, a START applies the transaction once the cause is removed.
2. `OF_NO_TRANSACTION` lists the errors that do not depend on the transaction at which the applier
   stopped. The next start applies it, or the receiver fetches it again. No plan skips it.

Sources: sql/share messages of 5.6 to 9.7. Errors with the comment "seen on" occurred on real
servers of that version.
"""

from typing import Final

from topology.catalogue.definition_errors import DEFINITION_NUMBERS, DEFINITION_TEXTS
from topology.catalogue.error_row import ErrorText
from topology.catalogue.statement_errors import (
    OF_THE_REPLICA,
    STATEMENT_NUMBERS,
    STATEMENT_TEXTS,
)

RELAY_LOG_UNREADABLE: Final = "the relay log cannot be read"
_INTERRUPTED: Final = "a replication thread was interrupted"
_WAITED: Final = "the applier waited too long for a lock"
_NO_SPACE: Final = "no space is left on the replica"
_DENIED: Final = "the applier is missing a privilege"
_NOT_ROWS: Final = "the channel refuses a statement"
_NO_KEY: Final = "the replica refuses a table without a primary key"
_NO_MEMORY: Final = "the replica is out of memory"
_SAME_XID: Final = "the XA transaction is prepared already"
_DAMAGED_TABLE: Final = "a table of the replica is damaged"
DAMAGED_EVENT: Final = "an event is damaged"
_INCIDENT: Final = "the source could not log everything that it executed"
_NOT_FOR_GROUPS: Final = "the table does not meet the requirements of Group Replication"
_NOT_RECOVERED: Final = "the parallel applier could not recover its gaps"
_FOLLOWED: Final = "a worker stopped because another one did"
_UNKNOWN_XID: Final = "the applier finds no such prepared XA transaction"
_TOO_LARGE: Final = "the transaction is larger than the replica permits"

OF_NO_TRANSACTION: Final = frozenset(
    {
        RELAY_LOG_UNREADABLE,
        _INTERRUPTED,
        _WAITED,
        _NO_SPACE,
        _NO_MEMORY,
        _TOO_LARGE,
        _DAMAGED_TABLE,
        DAMAGED_EVENT,
        _NOT_RECOVERED,
        _FOLLOWED,
        *OF_THE_REPLICA,
    }
)

APPLIER_TEXTS: Final[tuple[ErrorText, ...]] = (
    *STATEMENT_TEXTS,
    ErrorText(
        RELAY_LOG_UNREADABLE,  # seen on 9.7.4 and 5.6.24
        r"(?:Relay log read failure|Could not parse relay log event|Error reading relay log|"
        r"(?:^|: )Could not open (?:log file|relay log)|"
        r"Could not find target log (?:file mentioned|during relay log)|"
        r"Could not find first log (?:during relay|while counting relay)|"
        r"Failed to open (?:the )?relay log|Could not find relay log file)",
        "A3",
        "The relay log file on the replica is missing, damaged or truncated (rm, its disk, a crash,"
        " a full file system). No transaction is the cause.",
        (
            (
                "First compare what the replica is missing with the binary logs of the source. What"
                " the source has purged is only in this relay log."
            ),
            (
                "Do not skip a transaction: the source sends all of them again after the relay log"
                " is deleted."
            ),
            (
                "With auto-position: STOP REPLICA, CHANGE REPLICATION SOURCE TO"
                " SOURCE_AUTO_POSITION = 1, START REPLICA. This deletes the relay log."
            ),
        ),
    ),
    ErrorText(
        _INTERRUPTED,  # seen on 9.7.4
        r"(?:Query execution was interrupted|Connection was killed|Session was killed|"
        r"Server shutdown in progress)",
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
        r"(?:[Ll]ock wait timeout exceeded|Deadlock found when trying to get lock|"
        r"Wait on a lock was aborted|lock\(s\) could not be acquired immediately|"
        r"XA_RB(?:TIMEOUT|DEADLOCK)|"
        r"retried transaction \d+ time\(s\) in vain)",
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
        r"(?:No space left on device|Disk full|disk is full|The table '.*' is full|"
        r"Undo Log error: |"
        r"Temporary file write failure)",
        "A3",
        "A file system of the replica is full, or a table with its own size limit.",
        ("Free space, then run START REPLICA.",),
    ),
    ErrorText(
        _DENIED,  # seen on 9.7.4
        r"(?:command denied to user|Access denied; you need|Access denied for user .* to database|"
        r"You need the .* privilege)",
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
        _NOT_ROWS,  # seen on 9.7.4
        r"require_row_format restrictions|invalid event according to REQUIRE_ROW_FORMAT",
        "A3",
        "The channel applies only rows (REQUIRE_ROW_FORMAT = 1), and the source logged a statement:"
        " binlog_format is not ROW there, or a session used a temporary table or LOAD DATA.",
        (
            (
                "On the source set binlog_format = ROW for all accounts, so that it logs rows from"
                " now on."
            ),
            (
                "If the statement may be applied: STOP REPLICA, CHANGE REPLICATION SOURCE TO"
                " REQUIRE_ROW_FORMAT = 0, START REPLICA, and the option back once it is applied."
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
        r"(?:max_binlog_(?:stmt_)?cache_size|"
        r"(?:bigger|larger|longer) than '?max_allowed_packet|thread_stack=#|"
        r"innodb_online_alter_log_max_size|max_sp_recursion_depth|"
        r"exceeds \d+ of (?:slave|replica)_pending_jobs_size_max)",
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
    *DEFINITION_TEXTS,
    ErrorText(
        _NO_MEMORY,
        r"(?:Out of (?:sort )?memory|Memory allocation error|ZLIB: Not enough memory|"
        r"number of locks exceeds the lock table size|Memory capacity of \d+ bytes|"
        r"Not enough resources to complete lock request)",
        "A3",
        "mysqld on the replica could not allocate memory, or a limit of its memory is reached.",
        (
            (
                "Free memory on the machine, or lower the settings that use it. Then run START"
                " REPLICA."
            ),
            (
                "`exceeds the lock table size`: raise innodb_buffer_pool_size. `Out of sort"
                " memory`: raise sort_buffer_size."
            ),
        ),
    ),
    ErrorText(
        _SAME_XID,
        r"XAER_DUPID",
        "A3",
        "The replica already has a prepared XA transaction with this XID: an application used the"
        " XID there, or the XA PREPARE was executed before.",
        (
            "Run XA RECOVER CONVERT XID on both servers, and compare.",
            (
                "Do not end the prepared transaction before you know which one it is: XA COMMIT and"
                " XA ROLLBACK both change rows."
            ),
        ),
    ),
    ErrorText(
        _DAMAGED_TABLE,
        r"(?:Incorrect key file for table|Old key file for table|is marked as crashed)",
        "A3",
        "A table that is not InnoDB is damaged on the replica, usually after a crash.",
        (
            "Run REPAIR TABLE on the replica with sql_log_bin = 0, then START REPLICA.",
            (
                "Rows may be lost: compare the table with the source afterwards. Convert it to"
                " InnoDB on the source."
            ),
        ),
    ),
    ErrorText(
        DAMAGED_EVENT,
        r"(?:event checksum verification failed|Event crc check failed)",
        "A4",
        "An event does not fit its checksum: it was damaged on the network, in memory, or on one of"
        " the disks.",
        (
            (
                "If the source's file is sound (`gtid-audit binlog scan FILE` verifies every"
                " checksum) and the source has purged nothing that is missing, receive it again:"
                " STOP REPLICA, CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 1, START"
                " REPLICA. This deletes the relay log."
            ),
            "If the source's file is damaged, fetch the transactions from another server.",
        ),
    ),
    ErrorText(
        _INCIDENT,
        r"The incident .* occurr?ed on the (?:master|source)",
        "A3",
        "The source executed something that it could not write to its binary log, and logged this"
        " notice instead. The replica does not have it, and no binary log does.",
        (
            (
                "Do not only move past it: the servers already differ. The error log of the source"
                " has the cause, at the same time."
            ),
            "Rebuild the replica from the source, or compare and repair the rows first.",
        ),
    ),
    ErrorText(
        _NOT_FOR_GROUPS,
        r"does not comply with the requirements by an external plugin",
        "A3",
        "The replica is a member of a group, and the source sends a change of a table without a"
        " primary key, of another engine, or with foreign keys that cascade.",
        (
            (
                "The error log of the replica names the reason. Change the table on the source, and"
                " let the replica apply the change outside the group."
            ),
        ),
    ),
    ErrorText(
        _NOT_RECOVERED,
        r"Cannot recover after (?:SLAVE|REPLICA) errored out in parallel execution mode",
        "A6",
        "mysqld started with relay_log_recovery = 1 and could not fill the gaps that its workers"
        " left.",
        (
            (
                "If auto-position is on and the source has purged nothing that is missing: STOP"
                " REPLICA, RESET REPLICA, START REPLICA. The source also sends the gaps."
            ),
            (
                "Otherwise restart mysqld once with relay_log_recovery = 0, and run START REPLICA"
                " UNTIL SQL_AFTER_MTS_GAPS."
            ),
        ),
    ),
    ErrorText(
        _FOLLOWED,
        r"worker has stopped after at least one previous worker encountered an error",
        "A3",
        "The worker keeps the commit order of the source, so it stopped when an earlier transaction"
        " failed. Its own transaction was rolled back.",
        (
            (
                "Find the worker with another error: SELECT * FROM"
                " performance_schema.replication_applier_status_by_worker."
            ),
        ),
    ),
)

# Errors that are identified by their number alone.
APPLIER_NUMBERS: Final[dict[int, str]] = {
    **DEFINITION_NUMBERS,
    **STATEMENT_NUMBERS,
    **dict.fromkeys((1594, 13121, 13807), RELAY_LOG_UNREADABLE),
    **dict.fromkeys((1053, 1317, 1927, 3024, 3169), _INTERRUPTED),
    **dict.fromkeys((1205, 1213, 1613, 1614, 1689, 3572), _WAITED),
    **dict.fromkeys((1021, 1114, 1878, 3019, 3675, 13132, 13133), _NO_SPACE),
    **dict.fromkeys((1037, 1038, 1041, 1206, 1257, 3015, 3044, 3170, 3985, 13131), _NO_MEMORY),
    **dict.fromkeys((1044, 1142, 1143, 1227, 1370, 3630, 3631), _DENIED),
    **dict.fromkeys((3944, 13507, 13508), _NOT_ROWS),
    3750: _NO_KEY,
    **dict.fromkeys((1119, 1153, 1162, 1197, 1436, 1456, 1705, 1799, 1864, 13125), _TOO_LARGE),
    1397: _UNKNOWN_XID,
    1440: _SAME_XID,
    **dict.fromkeys((1034, 1035, 1194, 1195), _DAMAGED_TABLE),
    **dict.fromkeys((1743, 1744, 13115), DAMAGED_EVENT),
    **dict.fromkeys((1590, 13119), _INCIDENT),
    **dict.fromkeys((3098, 3635), _NOT_FOR_GROUPS),
    1803: _NOT_RECOVERED,
    3030: _FOLLOWED,
}

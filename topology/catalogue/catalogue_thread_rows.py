"""The texts of the catalogue for stopped, blocked and stalled threads (A).

The rows hold only text and names, as in catalogue_rows.py.
"""

from topology.catalogue.catalogue_row import Row

# fmt: off
THREAD_ROWS: tuple[Row, ...] = (
    Row(
        "A1", "expected error differs", "critical", True,
        "The applier stopped because the statement did not fail on the replica as it failed on the"
        " source. An empty transaction does not help: the applier compares the error before it"
        " checks the GTID.",
        "A statement failed half-way on the source, which logged it with the error code. The"
        " replica's data differs, so that the statement succeeds there or fails with another"
        " error.",
        "The applier's error text reports different errors, and the event has an error code.",
    ),
    Row(
        "A2", "row conflict", "critical", True,
        "The applier stopped on a row that already exists, or does not exist.",
        "The replica's data differs from the source's: a client wrote on it, or it skipped"
        " changes.",
        "The applier's error is 1062 or 1032.",
    ),
    Row(
        "A3", "applier stopped by an error", "critical", True,
        "The applier stopped.", "The error text reports the cause.", "The applier's error text.",
    ),
    Row(
        "A4", "receiver failed", "critical", True,
        "The receiver stopped with an error, cannot connect, or runs but no longer receives"
        " anything.",
        "The error text reports the cause; `explain` explains the texts of every version. Without"
        " an error: RESET BINARY LOGS AND GTIDS on the source while the receiver was connected, or"
        " a dead connection that the receiver has not detected.",
        "The receiver's error text. Without one: its position is after the end of its source's log"
        " (proved). Or the source logged the next transaction more than `stall_seconds_max` of the"
        " policy ago, and the receiver does not move (a warning, likely).",
    ),
    Row(
        "A5", "applier blocked by a lock", "warning", True,
        "The applier has waited for longer than `lock_wait_seconds_max` of the policy for a lock"
        " that a session of the replica holds.",
        "An open transaction on the replica, LOCK TABLES, FLUSH TABLES WITH READ LOCK, LOCK"
        " INSTANCE FOR BACKUP, a session that owns the next GTID, or the applier of another channel"
        " that receives the same transactions.",
        "The state of the applier or of a worker shows the lock, and since when it applies the"
        " transaction. Before 8.0 the age is an estimate from the lag: likely. It is also likely"
        " while the applier retries a transaction that waited too long for a row lock (error"
        " 1205).",
    ),
    Row(
        "A6", "gaps forbid a change", "critical", True,
        "The applier cannot start, and the channel cannot be changed (1802), while the parallel"
        " applier has gaps.",
        "A crash or an error while workers were at different positions, and a restart with"
        " relay_log_recovery = 1.",
        "The applier's error is 1803, 1872 or 13124, and transactions below the highest applied are"
        " missing. With 1872 and 13124 it is likely: mysqld may not be able to read its applier's"
        " position. Error 1802 is reported only to the client that ran the statement: see `explain"
        " 1802`.",
    ),
    Row(
        "A7", "replication not running", "warning", True,
        "A thread of the channel is stopped without an error, or no channel links the servers.",
        "An operator stopped the thread and did not start it again, or reset the channel.",
        "The state of the thread, without an error.",
    ),
    Row(
        "A8", "applier stalled", "warning", True,
        "Transactions wait in the relay log, and the applier has applied nothing for longer than"
        " `stall_seconds_max` of the policy.",
        "A large transaction, DDL on a large table, a table without a primary key, a slow disk; a"
        " relay log file that is missing.",
        "The applier applied nothing between the readings, the current transaction is older than"
        " the limit, and no thread of the applier waits for a lock. SOURCE_DELAY does not count.",
    ),
    Row(
        "A9", "binary log closed", "critical", True,
        "The server closed its binary log after an error and continues without it. What clients"
        " commit on it gets no GTID and reaches no other server.",
        "binlog_error_action is IGNORE_ERROR (the default before 5.7.7), and the server could not"
        " write or open a log: a full disk, a file that cannot be created.",
        "log_bin is ON, and the server shows no binary log. After a restart nothing shows this any"
        " more, and the rows differ.",
    ),
)
# fmt: on

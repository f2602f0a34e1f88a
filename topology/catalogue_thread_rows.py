"""The texts of the catalogue for stopped, blocked and stalled threads (A).

The rows hold only text and names, as in catalogue_rows.py.
"""

from topology.catalogue_row import Row

# fmt: off
THREAD_ROWS: tuple[Row, ...] = (
    Row(
        "A1", "expected error differs", "critical", True, ("position_bypass",),
        "The applier stopped because the statement did not fail here as it failed on the source. An"
        " empty transaction does not help: the event is compared before its GTID is looked at.",
        "A statement that failed half-way on the source is logged with its error code, and the"
        " replica's state differs so that it succeeds, or fails in another way.",
        "The applier's text says that errors differ, and the event carries an error code.",
    ),
    Row(
        "A2", "row conflict", "critical", True, ("resolve_conflict", "inject_empty"),
        "The applier stopped on a row that is already there, or is not there.",
        "The replica's data differs from the source's: a client wrote on it, or work was skipped.",
        "The applier's error is 1062 or 1032.",
    ),
    Row(
        "A3", "applier stopped by an error", "critical", True, ("explain",),
        "The applier stopped.",
        "The text says.",
        "The applier's error text.",
    ),
    Row(
        "A4", "receiver failed", "critical", True, ("explain",),
        "The receiver stopped with an error, cannot connect, or runs and receives nothing more.",
        "The error text says; `explain` knows the texts of every version. Without an error: RESET"
        " BINARY LOGS AND GTIDS on the source while the receiver was connected, or a connection"
        " that is dead and not known to be.",
        "The receiver's error text. Without one: its place lies behind the end of its source's log"
        " (proved), or the source logged what is due longer ago than `stall_seconds_max` of the"
        " policy and the receiver does not move (a warning, likely).",
    ),
    Row(
        "A5", "applier blocked by a lock", "warning", True, ("kill_blocker",),
        "The applier waits for a lock that a session of the replica holds, for longer than"
        " `lock_wait_seconds_max` of the policy.",
        "A transaction left open on the replica, LOCK TABLES, FLUSH TABLES WITH READ LOCK, LOCK"
        " INSTANCE FOR BACKUP, a session that owns the GTID which comes next, or the applier of"
        " another channel that brings the same transactions.",
        "The state of the applier or of a worker names the lock, and since when it applies the"
        " transaction. Before 8.0 the age is an estimate by the lag: likely. Likely as well while"
        " the applier retries a transaction that waited for a row lock too long (error 1205).",
    ),
    Row(
        "A6", "gaps forbid a change", "warning", False, ("until_after_gaps",),
        "The channel cannot be changed while the parallel applier has gaps.",
        "Error 1802 and its kin.",
        "The error.",
    ),
    Row(
        "A7", "replication not running", "warning", True, ("start_channel",),
        "A thread of the channel is stopped and reports no error, or no channel links the servers.",
        "An operator stopped it and did not start it again, or reset it.",
        "The state of the thread, without an error.",
    ),
    Row(
        "A8", "applier stalled", "warning", True, (),
        "Transactions wait in the relay log, and the applier has applied nothing for longer than"
        " `stall_seconds_max` of the policy.",
        "A large transaction, DDL on a large table, a table without a primary key, a slow disk; a"
        " relay log file that is gone.",
        "Nothing was applied between the readings, the current transaction is older than the limit,"
        " and no thread of the applier waits for a lock. SOURCE_DELAY does not count.",
    ),
    Row(
        "A9", "binary log closed", "critical", True, ("configure",),
        "The server has closed its binary log after an error and goes on without it. What clients"
        " commit on it gets no GTID and reaches no other server.",
        "binlog_error_action is IGNORE_ERROR (the default before 5.7.7), and the server could not"
        " write or open a log: a full disk, a file that cannot be created.",
        "log_bin is ON, and the server shows no binary log. After a restart nothing shows it"
        " any more, and the rows differ.",
    ),
)
# fmt: on

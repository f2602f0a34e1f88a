"""Errors that stop an applier at a statement or a row, whatever object it is about.

applier_errors.py has the rules for these texts. definition_errors.py has those of one object.

The last row, `FAILS_HERE`, is the frame in which an applier reports the error of a statement or of
a row. It applies where no other row knows the quoted error. It states only what the frame shows:
the source executed the statement without an error, or logged the row as committed
(Query_log_event::do_apply_event, sql/log_event.cc: "mostly we expected no error and get one").
"""

from typing import Final

from topology.catalogue.error_row import ErrorText

PARTLY_EXECUTED: Final = "the source executed a statement only in part"
_NOT_PARSED: Final = "the replica cannot parse the statement"
_GRANT_TABLES: Final = "the replica runs without its grant tables"
_INIT: Final = "init_replica of the replica fails"
_LOAD_FILE: Final = "the applier cannot use its file of a LOAD DATA"
_UNDECODED: Final = "the applier cannot decode the rows of an event"
_JSON: Final = "the JSON document on the replica is another one"
_SIGNAL: Final = "a trigger or a routine of the replica refuses the change"
_SAFE_UPDATES: Final = "the replica refuses statements without a key"
_NOT_PARALLEL: Final = "the parallel applier cannot schedule an event"
_CHECKS_USER: Final = "the account of PRIVILEGE_CHECKS_USER cannot apply"
_DDL_NOT_ATOMIC: Final = "DDL failed on both servers, and only one of them undid it"
_XA_STATE: Final = "the XA transaction is in another state on the replica"
_NO_POSITION_KEPT: Final = "the replica cannot store the position of a thread"
_GROUP_DID_NOT_CONFIRM: Final = "the group did not confirm the transaction"
_THREAD: Final = "the replica cannot create a thread"
_DAMAGED_INNODB: Final = "a table or a tablespace of InnoDB is damaged on the replica"
_ENGINE: Final = "the storage engine of the replica reports an error"
FAILS_HERE: Final = "the applier fails at what the source executed"

# Errors that do not depend on the transaction; see OF_NO_TRANSACTION in applier_errors.py.
OF_THE_REPLICA: Final = frozenset(
    {
        _INIT,
        _LOAD_FILE,
        _NO_POSITION_KEPT,
        _UNDECODED,
        _NOT_PARALLEL,
        _CHECKS_USER,
        _GROUP_DID_NOT_CONFIRM,
        _THREAD,
        _DAMAGED_INNODB,
    }
)

STATEMENT_TEXTS: Final[tuple[ErrorText, ...]] = (
    ErrorText(
        # The applier reports it before it looks at the GTID: a start after an empty transaction
        # stopped again, and one with a new relay log did not (9.7.4 and 5.6.24). On 5.6
        # Last_SQL_Errno is the error of the source.
        PARTLY_EXECUTED,
        r"Query partially completed on the (?:master|source)",
        "A3",
        "A statement on a table without transactions was killed, or its server was shut down, after"
        " it had changed some rows of the source. The applier does not execute such a statement.",
        (
            (
                "Compare the rows of the table on both servers (`gtid-audit repair check-data"
                " SOURCE REPLICA`): the source has only part of the change."
            ),
            (
                "Make the rows of the table equal. Then commit an empty transaction under its GTID,"
                " and run STOP REPLICA, CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 1,"
                " START REPLICA. This deletes the relay log: with the event in it, the applier"
                " stops again, whatever the GTID."
            ),
            "Convert the table to InnoDB, where a statement is executed whole or not at all.",
        ),
    ),
    ErrorText(
        _INIT,  # seen on 9.7.4 and 5.6.24
        r"Can't execute init_(?:slave|replica) query",
        "A3",
        "init_replica (init_slave before 8.0.26) is a statement that each applier executes when it"
        " starts. It fails. No transaction is the cause.",
        (
            (
                "On the replica run SELECT @@GLOBAL.init_replica, correct it with SET GLOBAL and in"
                " the configuration file. Then run START REPLICA."
            ),
        ),
    ),
    ErrorText(
        _NOT_PARALLEL,
        r"(?:Cannot execute the current event group in the parallel mode|"
        r"is not supported in multi-threaded (?:slave|replica) mode)",
        "A3",
        "The coordinator of a parallel applier cannot give the event to a worker: a server of"
        " another version or another program wrote it, or its logical timestamps are wrong.",
        (
            (
                "Apply it with one thread: STOP REPLICA, START REPLICA UNTIL SQL_AFTER_MTS_GAPS,"
                " and after it stops SET GLOBAL replica_parallel_workers = 0 (9.7 takes it as 1),"
                " START REPLICA."
            ),
            "Turn the workers on again once the applier is past the event.",
        ),
    ),
    ErrorText(
        _CHECKS_USER,  # 13494 seen on 9.7.4
        r"(?:PRIVILEGE_CHECKS_USER for (?:replication )?channel|corrupted PRIVILEGE_CHECKS_USER)",
        "A3",
        "The channel applies with the privileges of an account. The account does not exist on the"
        " replica, or is missing REPLICATION_APPLIER, or FILE for a LOAD DATA.",
        (
            (
                "On the replica, with sql_log_bin = 0: CREATE USER and GRANT REPLICATION_APPLIER ON"
                " *.* to it, with the privileges for what the source changes. Then run START"
                " REPLICA."
            ),
            (
                "Or run STOP REPLICA, CHANGE REPLICATION SOURCE TO PRIVILEGE_CHECKS_USER = NULL,"
                " START REPLICA: the applier then has all privileges."
            ),
        ),
    ),
    ErrorText(
        _DDL_NOT_ATOMIC,
        r"A commit for an atomic DDL statement was unsuccessful",
        "S2",
        "The source is older than 8.0: DDL that fails there keeps what it did before the error. On"
        " the replica DDL is executed whole or not at all. The definitions can differ now.",
        (
            (
                "Compare the objects of the statement: `gtid-audit schema drift SOURCE REPLICA`. A"
                " typical one is a DROP TABLE of several tables."
            ),
            "Bring the replica to the definitions of the source, with sql_log_bin = 0.",
        ),
    ),
    ErrorText(
        _GROUP_DID_NOT_CONFIRM,
        r"(?:group_replication_consistency|"
        r"Group Replication plugin is stopping, therefore new transactions)",
        "A3",
        "The server is a member of a group, and a transaction there waits for the other members"
        " (group_replication_consistency). The group did not confirm it: the member is leaving or"
        " has no majority, or the wait took too long.",
        (
            (
                "SELECT * FROM performance_schema.replication_group_members: all members must be"
                " ONLINE. Then run START REPLICA: the applier applies the transaction again."
            ),
        ),
    ),
    ErrorText(
        _GRANT_TABLES,
        r"running with the -+skip-grant-tables option",
        "A3",
        "The source changed an account, and the replica was started with skip_grant_tables: it has"
        " no accounts to change.",
        ("Restart mysqld on the replica without skip_grant_tables. Then run START REPLICA.",),
    ),
    ErrorText(
        _LOAD_FILE,
        r"Error in (?:\w+) event: (?:could not (?:create|open|write)|write to '|file ')",
        "A3",
        "For a LOAD DATA in statement format the applier writes the rows into a file in"
        " replica_load_tmpdir and loads it. It cannot create, write or open that file.",
        (
            (
                "Check that replica_load_tmpdir (slave_load_tmpdir before 8.0.26) of the replica"
                " exists, has space and belongs to mysqld. Nothing may delete its SQL_LOAD-* files."
            ),
            (
                "If the file is gone, receive the event again: STOP REPLICA, CHANGE REPLICATION"
                " SOURCE TO SOURCE_AUTO_POSITION = 1, START REPLICA. With binlog_format = ROW on"
                " the source no file is needed."
            ),
        ),
    ),
    ErrorText(
        _UNDECODED,
        r"(?:Corrupted replication event was detected|Corrupted JSON diff)",
        "A3",
        "The bytes of a row do not fit the columns that the event describes. The event was damaged,"
        " or a server of another version wrote it.",
        (
            (
                "Check the source's file (`gtid-audit binlog scan FILE`). If it is sound, and the"
                " source has purged nothing that is missing, receive the event again: STOP REPLICA,"
                " CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 1, START REPLICA. This"
                " deletes the relay log."
            ),
            "If it fails again, compare the versions of both servers (C14).",
        ),
    ),
    ErrorText(
        _JSON,
        r"Could not apply JSON diff",
        "A3",
        "The source logs only the changed parts of a JSON document (binlog_row_value_options ="
        " PARTIAL_JSON). They do not fit the document that the replica has in this row.",
        (
            "Compare the row on both servers. On the replica it should be as before this event.",
            "The usual cause is a skipped transaction (H1, H8) or a write on the replica (E1).",
        ),
    ),
    ErrorText(
        _XA_STATE,
        r"(?:XAER_(?:RMFAIL|OUTSIDE|RMERR|INVAL)|XA_RBROLLBACK|"
        r"resource manager is not able to commit the transaction branch)",
        "A3",
        "The replica cannot prepare, commit or roll back the XA transaction: its state there is"
        " another one, or the storage engine rolled the branch back.",
        (
            (
                "Run XA RECOVER CONVERT XID on both servers, and read the error log of the replica."
                " STOP REPLICA, START REPLICA begins the transaction again."
            ),
            "Do not end a prepared transaction by hand before you know what it contains.",
        ),
    ),
    ErrorText(
        _NO_POSITION_KEPT,
        r"(?:not possible to update the positions of the relay log information|"
        r"Error writing (?:relay log|master|connection|slave worker|replica worker) configuration|"
        r"Failed to flush (?:master|relay) info|"
        r"Gtid table is not ready to be used|Cannot clean up worker info tables)",
        "A3",
        "The replica keeps positions and GTIDs in tables of mysql (slave_master_info,"
        " slave_relay_log_info, slave_worker_info, gtid_executed), and cannot write them: a full"
        " disk, a lock, or a damaged table.",
        (
            (
                "Read the end of the error log of the replica, and free space or end the lock. Then"
                " run START REPLICA."
            ),
            "A damaged table of mysql needs a restart, an upgrade of the tables, or a clone.",
        ),
    ),
    ErrorText(
        _SIGNAL,
        r"Unhandled user-defined (?:exception|warning|not found) condition",
        "A3",
        "A trigger or a routine on the replica ended the statement with SIGNAL. The source does not"
        " have it, or its rows are others there.",
        (
            (
                "Compare SHOW TRIGGERS and the routines on both servers (S2: `gtid-audit schema"
                " drift SOURCE REPLICA`), then the rows that they read."
            ),
        ),
    ),
    ErrorText(
        _SAFE_UPDATES,  # seen on 9.7.4
        r"using safe update mode",
        "A3",
        "sql_safe_updates is ON globally on the replica, and the source sends an UPDATE or DELETE"
        " in statement format that uses no key.",
        (
            (
                "On the replica: SET GLOBAL sql_safe_updates = OFF, also in its configuration file,"
                " STOP REPLICA, START REPLICA."
            ),
        ),
    ),
    ErrorText(
        _NOT_PARSED,
        r"(?:You have an error in your SQL syntax|^.{0,200}near '.*' at line \d+)",
        "A3",
        "The two servers have different versions: the statement uses syntax that the replica does"
        " not know yet, or does not know any more.",
        (
            "Compare SELECT VERSION() on both servers (C14). An older replica must be upgraded.",
            (
                "If the source is the older one: with the applier stopped, execute on the replica"
                " what the statement does, in its syntax and under its GTID: SET gtid_next ="
                " 'GTID', the statement, SET gtid_next = 'AUTOMATIC'. Then run START REPLICA."
            ),
        ),
    ),
    ErrorText(
        _THREAD,
        r"(?:Could not create (?:slave|replica) thread|Can't create (?:slave|replica) thread|"
        r"Can't create a new thread|Monitor thread failed to start|"
        r"(?:slave|replica) worker thread creat)",
        "A7",
        "The operating system did not give mysqld another thread: a limit of processes or of"
        " memory. START REPLICA failed, so the thread stays stopped.",
        (
            (
                "On the replica's host compare the number of threads with the limits (ulimit -u,"
                " TasksMax of the systemd unit, free memory). Then run START REPLICA."
            ),
            "Fewer workers (replica_parallel_workers) need fewer threads.",
        ),
    ),
    ErrorText(
        _DAMAGED_INNODB,
        r"(?:doesn't exist in engine|Index .* is corrupted|Index corrupt: |"
        r"is missing, corrupt or contains bad data|Tablespace is (?:missing|discarded) for table|"
        r"Tablespace .* doesn't exist|InnoDB is in read only mode|"
        r"not allowed when innodb_forced?_recovery|has been discarded for table)",
        "A3",
        "The files of the table are missing or damaged on the replica, or InnoDB was started only"
        " to read (innodb_read_only, innodb_force_recovery).",
        (
            "Read the error log of the replica from its start on: it names the file.",
            (
                "If InnoDB is read-only, restart mysqld without the setting. Otherwise clone the"
                " replica: rows may be lost that no set shows."
            ),
        ),
    ),
)

# Last of all texts about appliers.
FRAME_TEXTS: Final[tuple[ErrorText, ...]] = (
    # A text may have this error beside another one that explains it.
    ErrorText(
        _ENGINE,
        r"Got (?:temporary )?error -?\d+ .*from|Got error -?\d+ .*during COMMIT|"
        r"Internal error: |IO (?:Read|Write) error: ",
        "A3",
        "The storage engine refused the change. The number before the text is the engine's own:"
        " `perror NUMBER` describes it.",
        ("Read the end of the error log of the replica: it has the cause.",),
    ),
    ErrorText(
        FAILS_HERE,
        r"(?:Error '.*' (?:on (?:query|opening tables)|in \w+ event)|"
        r"running LOAD DATA INFILE on table|"
        r"Could not execute \w+ event\b|Error executing row event|"
        r"Error in \w+ event: |Commit could not be completed)",
        "A3",
        "The source executed it without an error. On the replica something is different: the"
        " definitions, the rows, a setting, the version, a plugin, or the space on its disks.",
        (
            "The quoted error is the replica's own: its error log has the lines around it.",
            (
                "Compare what the statement uses: `gtid-audit schema drift SOURCE REPLICA` for the"
                " definitions, SELECT VERSION() and SHOW GLOBAL VARIABLES for the rest."
            ),
            "Do not skip it: its rows would be missing, and no set would show that.",
        ),
    ),
)

STATEMENT_NUMBERS: Final[dict[int, str]] = {
    3001: PARTLY_EXECUTED,
    13145: _INIT,
    **dict.fromkeys((1753, 1755), _NOT_PARALLEL),
    **dict.fromkeys((3925, 3926, 3927, 3928, 4117, *range(13494, 13498)), _CHECKS_USER),
    **dict.fromkeys((3725, 11267), _DDL_NOT_ATOMIC),
    **dict.fromkeys((3796, 3797, 3798, 3799), _GROUP_DID_NOT_CONFIRM),
    **dict.fromkeys((1610, 3649), _UNDECODED),
    **dict.fromkeys((1398, 1399, 1400, 1401, 1402, 3197), _XA_STATE),
    **dict.fromkeys((1804, 3881), _NO_POSITION_KEPT),
    3648: _JSON,
    **dict.fromkeys((1642, 1643, 1644), _SIGNAL),
    1175: _SAFE_UPDATES,
    **dict.fromkeys((1064, 1149), _NOT_PARSED),
    **dict.fromkeys((1135, 1202, 4012), _THREAD),
    **dict.fromkeys((1712, 1812, 1814, 1817, 1874, 1877, 1881, 3510), _DAMAGED_INNODB),
    **dict.fromkeys((1030, 1180, 1296, 1297, 1810, 1811, 1815), _ENGINE),
}

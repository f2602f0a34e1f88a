"""Error texts of receivers and appliers, with the code of the finding; see test_explain.py.

Those of 9.7.4 and 5.6.24 were seen on real servers, without what follows. stopping_errors.py has
the list of all errors with which a thread can stop.
"""

THREAD_TEXTS: tuple[tuple[str, str | None], ...] = (
    (  # 9.7.4
        (
            "Worker 1 failed executing transaction 'x' at source log b.1, end_log_pos 1207; Query"
            " partially completed on the source (error on source: 1317) and was aborted."
        ),
        "A3",
    ),
    (  # 5.6.24
        "Query partially completed on the master (error on master: 1317) and was aborted.",
        "A3",
    ),
    (  # 9.7.4 and 5.6.24
        (
            "Error executing row event: 'Cannot execute statement: impossible to write to binary log"
            " since statement is in row format and BINLOG_FORMAT = STATEMENT.'"
        ),
        "A3",
    ),
    ("Writing one row to the row-based binary log failed", "A3"),
    (  # 9.7.4; 5.6.24 does not quote the error
        (
            "Replica SQL thread aborted. Can't execute init_replica query, MY-001782 -"
            " '@@SESSION.GTID_NEXT cannot be set to ANONYMOUS when @@GLOBAL.GTID_MODE = ON.'"
        ),
        "A3",
    ),
    (  # 9.7.4 and, with the old words, 5.6.24
        "Fatal error: Invalid (empty) username when attempting to connect to the source server.",
        "A4",
    ),
    (  # 9.7.4
        (
            "PRIVILEGE_CHECKS_USER for replication channel '' was set to `app`@`localhost`, but this"
            " is not an existing user. Correct this before starting replication threads."
        ),
        "A3",
    ),
    (  # 9.7.4
        (
            "Error 'You are using safe update mode and you tried to update a table without a WHERE"
            " that uses a KEY column. ' on query. Default database: ''. Query: 'UPDATE d.t SET j=5'"
        ),
        "A3",
    ),
    (
        (
            "Fatal error: The slave I/O thread stops because master and slave have different values"
            " for the COLLATION_SERVER global variable."
        ),
        "C14",
    ),
    (
        (
            "Error 'You have an error in your SQL syntax; check the manual that corresponds to your"
            " MySQL server version for the right syntax to use near 'x' at line 1' on query."
        ),
        "A3",
    ),
    (
        (
            "Cannot execute the current event group in the parallel mode. Encountered event Gtid,"
            " relay-log name ./r.2, position 4 which prevents execution of this event group."
        ),
        "A3",
    ),
    ("The binary log file './b.2' is logically corrupted: The first GTID was read, but", "A4"),
    ("A commit for an atomic DDL statement was unsuccessful on the source and the replica.", "S2"),
    ("Error while waiting for transactions with group_replication_consistency= 'AFTER'", "A3"),
    (
        (
            "Error 'The MySQL server is running with the --skip-grant-tables option so it cannot"
            " execute this statement' on query. Query: 'CREATE USER x'"
        ),
        "A3",
    ),
    ("Error in Append_block event: write to '/tmp/SQL_LOAD-1-2-3.data' failed", "A3"),
    ("Could not execute Update_rows event on table d.t; Corrupted replication event", "A3"),
    ("Error executing row event: 'Corrupted replication event was detected'", "A3"),
    ("Could not apply JSON diff in table `d`.`t`, column j.", "A3"),
    ("Error 'XAER_RMFAIL: The command cannot be executed when global transaction is in the", "A3"),
    (
        (
            "It was not possible to update the positions of the relay log information: the replica may"
            " be in an inconsistent state. Stopped in ./r.2 position 4"
        ),
        "A3",
    ),
    ("Error 'Unhandled user-defined exception condition' on query.", "A3"),
    ("Could not create replica thread; check system resources", "A7"),
    ("Can't create a new thread (errno 11); if you are not out of available memory", "A7"),
    ("Error 'Index PRIMARY is corrupted' on query.", "A3"),
    ("Error 'something of the year 2040' on query. Default database: 'd'. Query: 'q'", "A3"),
    ("Could not execute Write_rows event on table d.t; something new, Error_code: 9999", "A3"),
    ("Event type 'x' is not recognized by the format description event currently in use.", "A4"),
    (
        (
            "Failed to automatically re-connect to a different source, for channel '', because no"
            " source is configured."
        ),
        "A4",
    ),
    (
        (
            "error connecting to master 'r@h:1' - retry-time: 60 retries: 1, Message: Your password"
            " has expired. To log in you must change it using a client that supports expired"
        ),
        "A4",
    ),
    ("Failed to fetch key from keyring, please check if keyring is loaded.", "A4"),
    (
        (
            "Replication '' is configured with ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS = <UUID> where"
            " the UUID value is equal to the group_replication_group_name"
        ),
        None,
    ),
    ("@@GLOBAL.GTID_PURGED was changed from '' to 'aaaaaaaa-0000-0000-0000-000000000000:1'", None),
    ("The function 'group_replication_set_as_primary' failed. Member must be ONLINE", None),
)

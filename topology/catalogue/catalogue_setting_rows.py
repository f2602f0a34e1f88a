"""The rows of the catalogue about configuration, schemas, hygiene, and what is not known.

catalogue_rows.py has the others, and the order.
"""

from topology.catalogue.catalogue_row import Row

# fmt: off
SETTING_ROWS: tuple[Row, ...] = (
    Row(
        "C1", "duplicate server_uuid", "critical", True,
        "Two servers commit transactions under the same UUID. No comparison of their sets is"
        " valid.",
        "A data directory was copied with its auto.cnf.",
        "Two servers at different addresses have one server_uuid.",
    ),
    Row(
        "C2", "duplicate server_id", "critical", True,
        "Two servers have the same server_id. A replica drops every transaction that carries its"
        " own server_id, without an error.",
        "A configuration file was copied.",
        "The server_id of two servers of one topology. It is critical if transactions flow from one"
        " to the other, and a warning if not. Or a log upstream of a replica has transactions with"
        " its server_id under another UUID: its former one, that of its group, or one to which a"
        " session on it set gtid_next.",
    ),
    Row(
        "C3", "auto-position off", "warning", True,
        "A file position, not the GTID sets, decides what the replica receives. No check detects a"
        " skip.",
        "A bypass by file position that was not finished, or a channel from before GTIDs.",
        "SHOW REPLICA STATUS: Auto_Position 0.",
    ),
    Row(
        "C4", "gtid_mode of a source not ON", "warning", True,
        "The source refuses the next connection of a channel with auto-position (error 13117).",
        "A change of gtid_mode that was not finished, or was made for a repair.",
        "gtid_mode of the source, and SHOW REPLICA STATUS of the replica: Auto_Position 1. A"
        " connected receiver continues until its connection ends.",
    ),
    Row(
        "C5", "durability allows loss", "info", True,
        "A crash of this source's machine can lose what a replica already has: E3.",
        "sync_binlog or innodb_flush_log_at_trx_commit is not 1.",
        "The two settings of a server that has replicas.",
    ),
    Row(
        "C6", "replica updates not logged", "warning", True,
        "This server does not log what it receives, so its replicas do not receive it.",
        "log_replica_updates is OFF on an intermediate server.",
        "The setting, on the only replication path from one server to another.",
    ),
    Row(
        "C7", "parallel applier without commit order", "info", True,
        "The applier can leave gaps in gtid_executed when it stops with an error or in a crash.",
        "replica_preserve_commit_order is OFF, with more than one worker.",
        "The settings of a server that has a channel.",
    ),
    Row(
        "C8", "retention shorter than the longest outage", "warning", True,
        "A replica that is down for as long as the policy allows stops with error 1236 when it"
        " returns.",
        "The binary logs of its source expire earlier.",
        "binlog_expire_logs_seconds (expire_logs_days) of a server that has replicas, compared with"
        " `outage_seconds_max` of the policy.",
    ),
    Row(
        "C9", "replica is writable", "info", True,
        "Clients can write on this replica, and its source would not receive that: E1.",
        "read_only is OFF.",
        "The setting of a server that has a source, and that its sources do not replicate from.",
    ),
    Row(
        "C10", "relay_log_recovery off with a parallel applier", "info", True,
        "After a crash of its machine the replica can continue from wrong positions: transactions"
        " are skipped or executed twice.",
        "relay_log_recovery is OFF, with more than one worker, and auto-position is off.",
        "The settings, and Auto_Position of SHOW REPLICA STATUS.",
    ),
    Row(
        "C11", "filters that make holes", "warning", True,
        "A filter permanently withholds changes from the replicas of a server, or from one replica."
        " The sets may agree, but the rows differ.",
        "binlog_do_db or binlog_ignore_db on a server that has replicas; a filter of a channel to a"
        " server that has replicas; IGNORE_SERVER_IDS of a channel.",
        "SHOW BINARY LOG STATUS and SHOW REPLICA STATUS list the filters. It is critical if"
        " transactions of an ignored server are missing, and information if a channel's filter"
        " leaves changes out for servers that are only below its replica.",
    ),
    Row(
        "C12", "auto_increment overlap in a dual-primary pair", "info", True,
        "Both servers can assign the same key to different rows.",
        "Both are writable (read_only is OFF), and auto_increment_increment and"
        " auto_increment_offset let both generate the same values.",
        "The settings of two servers that replicate from each other.",
    ),
    Row(
        "C13", "clocks differ", "warning", True,
        "Lag, times of commits and deadlines are wrong by the difference.",
        "The servers do not synchronize their clocks.",
        "The clocks of a source and its replica differ by more than `clock_seconds_max` of the"
        " policy, beyond the time that reading them took.",
    ),
    Row(
        "C14", "versions that cannot replicate", "critical", True,
        "The replica cannot connect to its source, or MySQL does not support the pair.",
        "A replica is older than its source, or more than one release series newer.",
        "The versions. It is critical and proved for 5.6 with 9.7, which refuse each other (errors"
        " 2026 and 2059), and otherwise info and likely: replication may work.",
    ),
    Row(
        "C15", "errors skipped or values converted silently", "warning", True,
        "The replica can lose changes without an error: the sets agree, the threads run, and the"
        " rows differ.",
        "replica_skip_errors, replica_exec_mode = IDEMPOTENT or replica_type_conversions with"
        " ALL_LOSSY, often left over from a repair; or a sql_replica_skip_counter above 0 that the"
        " applier has not used yet, with gtid_mode not ON.",
        "The settings of a server that has a channel.",
    ),
    Row(
        "S1", "schema versions differ", "info", True,
        "A replica has not applied DDL that its source has executed. Until then their definitions"
        " differ.",
        "A backlog, or SOURCE_DELAY.",
        "DDL transactions in the source's binary log that gtid_executed of the replica does not"
        " have, read later. A warning if one waits for longer than `ddl_wait_seconds_max` of the"
        " policy (SOURCE_DELAY does not count), or if more than one is missing and nothing shows"
        " that they are on their way. DDL in a hole or behind an error is reported there. Only with"
        " `--definitions`, or `definitions: true` in the policy.",
    ),
    Row(
        "S2", "schema drift", "warning", True,
        "Definitions of a replica differ from those of its source, and no DDL is on its way that"
        " removes the difference. Rows may stop the applier (1054, 1146, 1677), or get into other"
        " columns without an error.",
        "DDL was executed on one server only: with sql_log_bin = 0, as an errant transaction, or it"
        " was skipped. Or a server was restored without some objects.",
        "The definitions of both servers, with the sets around each reading. It is proved if no"
        " transaction that only one of the two had executed concerns the object, and critical if"
        " rows then stop the applier or get wrong. What a replication filter explains is info. Only"
        " with `--definitions`, or `definitions: true` in the policy.",
    ),
    Row(
        "S3", "tracker mismatch", "warning", False,
        "The tracked definition of a table does not fit its row events: columns get wrong names, or"
        " statements from these rows fail with \"Column count doesn't match value count\".",
        "DDL that the tracker did not see, or a definition that was set by hand.",
        "`binlog show` with `--undo`, `--redo` or neither reports S3 when a definition of"
        " `--definitions`, `--store` or `--schema-from` does not fit, and does not use it;"
        " `binlog schema compare` reports it before that. Both print four definitions side by side:"
        " on the source now, at the event, as tracked, on the replica now. `repair plan` names S3"
        " where it leaves out a redo or undo for this reason. No audit reports it: an audit reads"
        " no rows by a tracked definition, and rows older than the last DDL never fit the"
        " definition of now. A replica whose definition does not fit is S2.",
    ),
    Row(
        "F1", "fragmented set", "info", True,
        "The set has so many intervals that it slows down connections and statements.",
        "Holes that accumulate over time.",
        "gtid_executed has more intervals than `intervals_max` of the policy.",
    ),
    Row(
        "F2", "dead UUIDs", "info", True,
        "UUIDs that could be retired. Every connection with auto-position sends and compares them.",
        "Servers that no longer exist, or have another server_uuid now.",
        "More than `dead_uuids_max` of the policy belong to no audited server, and every server and"
        " consumer has the same GTIDs of them, in both readings. Backups were not read: likely. Not"
        " reported while a source is outside the audit.",
    ),
    Row(
        "F3", "numbers nearly used up", "warning", True,
        "The server has used 99 % of the numbers of its server_uuid. At the end it cannot write its"
        " binary log any more, and stops (binlog_error_action).",
        "SET GLOBAL gtid_purged declared nearly all of them, or a session used the highest ones.",
        "The GTIDs of its own server_uuid in gtid_executed, for each tag.",
    ),
    Row(
        "U1", "fact unreadable", "warning", True,
        "gtid-audit could not read a fact, and does not evaluate what depends on it.",
        "A missing privilege, a timeout, or a server that is down or not supported.",
        "The server's own answer.",
    ),
    Row(
        "U2", "torn reading", "warning", True,
        "The server was restarted or reset while gtid-audit read it.",
        "gtid_purged is not within gtid_executed, or the server_uuid changed, or a set shrank"
        " between the readings.",
        "The two readings.",
    ),
    Row(
        "U3", "text not parseable", "warning", True,
        "A text that should be a GTID set or a status cannot be parsed.",
        "A server that is not MySQL, a proxy that changes answers, or a stored reading that was"
        " damaged or edited.",
        "The text and the position in it.",
    ),
    Row(
        "U4", "not evaluated", "warning", True,
        "This version does not evaluate how these servers replicate among themselves.",
        "Galera, MariaDB, TiDB, Vitess, or an Aurora reader.",
        "wsrep_on, the server's version and basedir, or innodb_read_only on Aurora.",
    ),
)
# fmt: on

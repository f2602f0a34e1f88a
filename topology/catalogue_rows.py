"""The texts of the catalogue, row by row.

The rows hold only text and names. catalogue.py converts them to types and resolves strategies.
"""

from topology.catalogue_row import Row
from topology.catalogue_thread_rows import THREAD_ROWS

# fmt: off
ROWS: tuple[Row, ...] = (
    Row(
        "T1", "tail gap of the parallel applier", "info", True, ("wait",),
        "The replica lacks a few transactions among its newest, and is applying them now.",
        "A parallel applier without commit order finishes transactions in any order.",
        "The GTIDs are owned by a thread of the replica or named by a worker, or they are in the"
        " relay log, below what is already applied, and the applier has not passed them. It is"
        " proved only if something was applied between the readings, or if the states of all"
        " workers were read and none waits for a lock.",
    ),
    Row(
        "T2", "applier backlog", "info", True, ("wait",),
        "The replica has received these transactions and has not applied them yet.",
        "The applier is slower than the source, for now.",
        "The GTIDs are in the retrieved set of a channel, and its applier has not passed them. It"
        " is proved only if the applier moved between the readings, or if what holds it back is"
        " known: SOURCE_DELAY, a stopped applier, or workers that were seen at work.",
    ),
    Row(
        "T3", "receiver backlog", "info", True, ("wait",),
        "The replica has not received these transactions yet.",
        "The receiver is behind the source, for now.",
        "The receiver runs and has not read the source's log up to them, or to the end of one. With"
        " auto-position off it is likely at most: a file position may lie behind them.",
    ),
    Row(
        "T4", "unconfirmed lead", "info", True, ("read_again",),
        "The replica has the source's own newest transactions before the source lists them.",
        "The source writes its log, sends it, and lists the GTID last; with semi-synchronous"
        " replication it even waits in between.",
        "The source owns the GTIDs at this moment. A warning, and likely, where the first of them"
        " has waited for longer than `stall_seconds_max` of the policy.",
    ),
    Row(
        "T5", "group replication block gap", "info", False, (),
        "A hole that follows from the blocks of numbers that group members draw.",
        "group_replication_gtid_assignment_block_size gives every member its own block.",
        "The hole's UUID is the group name and its bounds are those of a block.",
    ),
    Row(
        "T6", "allowed extra", "info", True, (),
        "The replica has transactions that the policy allows it to have.",
        "View changes, heartbeat tables, and whatever the policy lists.",
        "The UUID is on the policy's list.",
    ),
    Row(
        "H1", "bypassed by file position", "critical", True, ("refetch", "inject_empty"),
        "The replica will never receive these transactions: its channel has gone past them.",
        "The channel was pointed at a file position behind them, with auto-position off.",
        "They are in the source's gtid_executed and not in its gtid_purged; they are not in the"
        " relay log, not being applied, and the receiver has read past them. Proved only where the"
        " logs exclude a RESET, a crash, a skip and an equal server_id, now and then. A dump that"
        " was loaded with the position may have brought their rows.",
    ),
    Row(
        "H2", "applier crash gap", "warning", False, ("until_after_gaps",),
        "A hole that the parallel applier left when it stopped.",
        "A crash, a kill or an error while workers were at different places.",
        "The hole is static, the applier stopped, and the relay log or the source still holds it.",
    ),
    Row(
        "H3", "hole purged on the source, held by another donor", "critical", False,
        ("donor_refetch",),
        "The source can no longer send what the replica lacks, but another server can.",
        "The source's binary logs were purged before the hole was noticed.",
        "The hole is within the source's gtid_purged and within another server's binary logs.",
    ),
    Row(
        "H4", "hole held by no server", "critical", False,
        ("inject_empty", "gtid_purged_append", "reclone"),
        "No server can send what the replica lacks.",
        "Every donor purged it.",
        "The hole is in the purged set of every donor.",
    ),
    Row(
        "H5", "source ghost", "warning", False, ("inject_empty",),
        "The source lists a GTID for which it has no event.",
        "Server bugs 71575, 74687 and 106096.",
        "The same hole on every replica, and no event in the source's binary log.",
    ),
    Row(
        "H6", "hole in a server's own numbers", "warning", False, ("inject_empty",),
        "After a restart the server will give these numbers to new transactions, which replicas"
        " that"
        " already have them will silently skip.",
        "A number given by hand, or a rolled-back transaction.",
        "A gap in gtid_executed for the server's own UUID.",
    ),
    Row(
        "H7", "future GNO trap", "warning", True, ("inject_empty",),
        "A server has a GTID of another server's UUID that this other server has not reached. When"
        " it does, the replicas skip its new transaction without an error.",
        "A session set gtid_next by hand.",
        "The GTID is above the server's own maximum, behind a gap that no server holds, or the"
        " holder's binary log shows another server_id than that of the UUID's server.",
    ),
    Row(
        "H8", "passed by the applier", "critical", True, ("refetch", "inject_empty"),
        "The replica received these transactions, or read past them with auto-position on, and will"
        " not execute them. The rows may be there (RESET) or missing (skipped).",
        "RESET BINARY LOGS AND GTIDS on the replica, which has applied them; RELAY_LOG_POS;"
        " sql_replica_skip_counter; a purged relay log; an equal server_id; a crash or an older"
        " copy of the data; a source without an event for the GTID; IGNORE_SERVER_IDS. Or RESET"
        " BINARY LOGS AND GTIDS on the source, which has given the GTIDs to other transactions"
        " since: the replica received the former ones.",
        "They were received before the first reading ended, and are not executed in the last. The"
        " applier has read all of its relay log, and no worker or session has them in hand.",
    ),
    Row(
        "E1", "errant, still in a binary log", "critical", True,
        ("start_channel", "inject_empty", "redo_on_source", "undo_on_replica"),
        "The replica has transactions that its source lacks and that will not flow back.",
        "A client wrote on the replica, or mysqld itself did: at the first use of a MEMORY table"
        " after a restart it logs TRUNCATE (5.6: DELETE). Where no audited server has the"
        " server_uuid: also a former source, or a source that was replaced, or has a new"
        " server_uuid and lost them.",
        "Read on the replica first and absent on the source afterwards; not the source's own, not"
        " on their way, not from another channel; still in the replica's binary logs. Likely where"
        " it is the first work of that origin behind a channel to the source that is stopped by"
        " hand. In a pair that has earlier work of both on both, it waits: A7. Through a server"
        " outside the audit: likely, and for information only while earlier ones arrive. Likely as"
        " well where no server of the audit has the server_uuid.",
    ),
    Row(
        "E2", "errant, already purged", "critical", True, ("inject_empty", "reclone"),
        "As E1, and the replica can no longer send them: a failover to it stops the others with"
        " 1236.",
        "A client wrote on the replica, long ago; SET GLOBAL gtid_purged declared them; or as E1.",
        "As E1, and within the replica's gtid_purged.",
    ),
    Row(
        "E3", "crash-lost on the source", "critical", True, ("redo_on_source", "undo_on_replica"),
        "The replica holds transactions of the source that the source itself has lost. It reuses"
        " their GTIDs for other transactions, and then the sets agree and the data does not.",
        "The source crashed before its binary log reached the disk; the replica had already read"
        " it.",
        "Read on the replica first; afterwards the source neither lists nor owns them. It restarted"
        " since they were committed, and its binary logs exclude a reset of its history.",
    ),
    Row(
        "E4", "same GTID, different content", "critical", True, ("data_repair", "reclone"),
        "Two servers hold different transactions under one GTID. Sets are equal, both threads run,"
        " and the rows differ.",
        "A server lost its last transactions in a crash, or was RESET, and reused their GTIDs; a"
        " client set gtid_next to a GTID of another server; an operator committed an empty"
        " transaction under the GTID; a server skipped the work (replica_skip_errors, IDEMPOTENT, a"
        " filter); an operator declared it executed (SET GLOBAL gtid_purged); or the rows had"
        " drifted apart before.",
        "The commit times differ in the two binary logs, or before 8.0.1 the server_ids, and so"
        " does the content (critical, proved). It is a warning where one of the two is empty, where"
        " one commit met other rows, or where one log has less of it; info where the content is"
        " equal, or a filter explains the difference. A warning, likely, where one server has the"
        " GTIDs in gtid_purged and in no log that it purged: its content cannot be compared.",
    ),
    Row(
        "E5", "unknown origin", "info", False, (),
        "Transactions of a UUID that no known server has.",
        "A server that is gone, or a UUID given by hand.",
        "The UUID is in gtid_executed and belongs to no server of the inventory.",
    ),
    Row(
        "E6", "history reset on the source", "critical", True,
        ("check_data", "rebuild_position", "reclone"),
        "The source does not list transactions of its own that the replica holds, because its GTID"
        " history was reset. Its rows are still there: to redo the transactions doubles them. Where"
        " binary logs were replayed since, the rows that the replay left out are gone.",
        "RESET BINARY LOGS AND GTIDS on a source, also as part of a point-in-time recovery.",
        "The source has been running since before the transactions were committed, so it did not"
        " crash; its first binary log was begun after them, without previous GTIDs.",
    ),
    Row(
        "J1", "can join", "warning", True, ("attach",),
        "No channel links this server to the others, and it could replicate from one of them.",
        "A new server, a restored backup, or RESET REPLICA ALL.",
        "Its gtid_executed is within what the others have, and the candidate has purged nothing"
        " that it needs.",
    ),
    Row(
        "J2", "cannot join: purged", "critical", True, ("reclone",),
        "No channel links this server to the others, and none of them can send what it is missing.",
        "A backup that is older than the binary logs, or a server that was away for too long.",
        "The gtid_purged of every candidate is not within its gtid_executed.",
    ),
    Row(
        "J3", "cannot join: diverged", "critical", True,
        ("redo_on_source", "undo_on_replica", "reclone"),
        "No channel links this server to the others, and it has transactions that none of them has."
        " They would accept its connection and hide the difference.",
        "An old source that returns after a failover with transactions that were never replicated,"
        " or writes on a detached server.",
        "Its gtid_executed is not within what the others have executed.",
    ),
    Row(
        "J4", "source outside the inventory", "warning", True, ("add_servers",),
        "A replica's source is not part of the audit: the two were not compared.",
        "The server was left out of the fleet file or the command, or it is external on purpose.",
        "The channel's server_uuid and address belong to no server of the audit.",
    ),
    Row(
        "P1", "1236 on the next connect", "critical", True, ("donor_refetch", "reclone"),
        "The source has purged transactions that the replica still needs.",
        "Binary logs were purged while the replica was stopped or behind. Or the source does not"
        " log what it receives (log_replica_updates = OFF). Or a crash took the end of its binary"
        " log (sync_binlog is not 1): InnoDB keeps rows and GTIDs, and they count as purged.",
        "The source's gtid_purged is not within what the replica has executed and received.",
    ),
    Row(
        "P2", "latent 1236", "warning", False, ("wait",),
        "Only the relay log saves the replica from 1236.",
        "The source purged what the replica has received and not applied.",
        "The source's gtid_purged is within executed and retrieved, not within executed alone.",
    ),
    Row(
        "P3", "runway short", "warning", False, ("raise_retention", "refetch"),
        "What the replica lacks will soon be purged on the source.",
        "Retention by time or size, against the rate of writing.",
        "The time left until the first missing file is purged is under the threshold.",
    ),
    Row(
        "P4", "backup cannot rejoin", "warning", False, (),
        "A server restored from this backup could attach to no donor.",
        "The backup is older than the binary logs.",
        "Every donor's purged set holds something the backup lacks.",
    ),
    Row(
        "P5", "failover candidate breaks others", "warning", False, (),
        "Promoting this server would stop another with 1236.",
        "It has purged what the other lacks, or holds what the other cannot get.",
        "The handshake rules, applied to every pair of servers.",
    ),
    *THREAD_ROWS,
    Row(
        "C1", "duplicate server_uuid", "critical", True, ("new_server_uuid",),
        "Two servers give the same UUID to their transactions; nothing said of their sets is true.",
        "A data directory was copied with its auto.cnf.",
        "Two servers answer with one server_uuid from different addresses.",
    ),
    Row(
        "C2", "duplicate server_id", "critical", True, ("configure",),
        "Two servers have the same server_id. A replica drops every transaction that carries its"
        " own server_id, without an error.",
        "A configuration file was copied.",
        "server_id of two servers of one topology. It is critical if transactions flow from one to"
        " the other, and a warning if they do not.",
    ),
    Row(
        "C3", "auto-position off", "warning", True, ("auto_position_on",),
        "A file position, not the sets, decides what the replica receives; nothing notices a skip.",
        "A position bypass that was never finished, or a channel from before GTIDs.",
        "SHOW REPLICA STATUS: Auto_Position 0.",
    ),
    Row(
        "C4", "gtid_mode of a source not ON", "warning", True, ("configure",),
        "The source refuses the next connection of a channel with auto-position (error 13117).",
        "A change of gtid_mode that was not finished, or was made for a repair.",
        "gtid_mode of the source, and SHOW REPLICA STATUS of the replica: Auto_Position 1. A"
        " receiver that is connected goes on until its connection ends.",
    ),
    Row(
        "C5", "durability allows loss", "warning", False, ("configure",),
        "A crash of this server can lose what a replica already has: E3.",
        "sync_binlog or innodb_flush_log_at_trx_commit is not 1.", "The two settings.",
    ),
    Row(
        "C6", "replica updates not logged", "warning", True, ("configure",),
        "What this server receives is not in its binary logs: it does not reach its replicas.",
        "log_replica_updates is OFF on a server between others.",
        "The setting, on the only way from one server to another.",
    ),
    Row(
        "C7", "parallel applier without commit order", "info", False, ("configure",),
        "The applier may leave gaps at the tail.", "replica_preserve_commit_order is off.",
        "The setting.",
    ),
    Row(
        "C8", "retention shorter than the longest outage", "warning", False, ("raise_retention",),
        "A replica that is away as long as the policy allows comes back to 1236.",
        "Expiry is set shorter.", "The setting against the policy.",
    ),
    Row(
        "C9", "writable where it should not be", "warning", False, ("configure",),
        "Clients can write on this replica.", "super_read_only is off.", "The setting.",
    ),
    Row(
        "C10", "relay_log_recovery off with a parallel applier", "warning", False, ("configure",),
        "After a crash the replica may start from wrong positions.", "The setting is off.",
        "The settings.",
    ),
    Row(
        "C11", "filters that make holes", "warning", True, ("configure",),
        "A filter keeps changes from the replicas of a server, or from one replica, for good. The"
        " sets may agree, and the rows do not.",
        "binlog_do_db or binlog_ignore_db on a server that has replicas; IGNORE_SERVER_IDS of a"
        " channel.",
        "SHOW BINARY LOG STATUS and SHOW REPLICA STATUS list the filters. It is critical where"
        " transactions of an ignored server are missing.",
    ),
    Row(
        "C12", "auto_increment overlap in a dual-primary pair", "warning", False, ("configure",),
        "Both servers can give the same key to different rows.",
        "auto_increment_increment and _offset do not divide the numbers.", "The settings.",
    ),
    Row(
        "C13", "clocks apart", "warning", False, ("configure",),
        "Times in evidence and forecasts are off by the difference.", "No time service.",
        "Server clocks against ours.",
    ),
    Row(
        "C14", "versions that cannot replicate", "critical", False, (),
        "The replica cannot read what the source writes.",
        "For example tagged GTIDs to a server before 8.3.", "The versions and the sets.",
    ),
    Row(
        "C15", "errors skipped or values converted silently", "warning", True, ("configure",),
        "The replica can lose changes without an error: sets and threads look right, and the rows"
        " differ.",
        "replica_skip_errors, replica_exec_mode = IDEMPOTENT or replica_type_conversions with"
        " ALL_LOSSY, often left behind after a repair; sql_replica_skip_counter that is still to be"
        " used, with gtid_mode not ON.",
        "The settings of a server that has a channel.",
    ),
    Row(
        "S1", "schema versions apart", "info", False, ("wait",),
        "A DDL was applied on one server and not on the other.", "Backlog, or a blocked DDL.",
        "The DDL transactions in the two sets.",
    ),
    Row(
        "S2", "schema drift", "warning", False, ("data_repair",),
        "Definitions differ though the DDL history is the same.", "DDL without the binary log.",
        "The definitions.",
    ),
    Row(
        "S3", "tracker mismatch", "warning", False, (),
        "The schema used to decode rows does not fit them.", "DDL the tracker did not see.",
        "Column count doesn't match value count.",
    ),
    Row(
        "F1", "fragmented set", "info", False, ("inject_empty",),
        "The set has so many intervals that servers become slow with it.", "Holes, over time.",
        "The interval count and its trend.",
    ),
    Row(
        "F2", "dead UUIDs", "info", False, (),
        "UUIDs that could be retired.", "Servers that are gone.",
        "Every server and backup has the same set of them.",
    ),
    Row(
        "U1", "fact unreadable", "warning", True, ("grant",),
        "Something could not be read; what depends on it is not judged.",
        "A privilege, a timeout, a server that is down, or one we do not support.",
        "The server's own answer.",
    ),
    Row(
        "U2", "torn reading", "warning", True, ("read_again",),
        "The server was restarted or reset while it was being read.",
        "purged not within executed, another uuid, or a set that shrank between the readings.",
        "The two readings.",
    ),
    Row(
        "U3", "text not parseable", "warning", False, (),
        "A text that should be a GTID set or a status is not.", "Truncated or edited output.",
        "The text and the place.",
    ),
    Row(
        "U4", "not evaluated", "warning", True, (),
        "This version does not evaluate how these servers replicate among themselves.",
        "Group Replication, Galera, MariaDB.",
        "performance_schema.replication_group_members, wsrep_on, or the server's version.",
    ),
)
# fmt: on

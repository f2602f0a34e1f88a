"""The texts of the catalogue, row by row.

The rows hold only text and names. verdict_table.py converts them to types and resolves strategies.
"""

from topology.catalogue.catalogue_row import Row
from topology.catalogue.catalogue_setting_rows import SETTING_ROWS
from topology.catalogue.catalogue_thread_rows import THREAD_ROWS

# fmt: off
ROWS: tuple[Row, ...] = (
    Row(
        "T1", "tail gap of the parallel applier", "info", True,
        "The replica does not have a few of the newest transactions, and is applying them now.",
        "A parallel applier without commit order commits transactions in any order.",
        "A thread of the replica owns the GTIDs, or a worker shows them. Or they are in the relay"
        " log, below what is already applied, and the applier has not passed them. It is proved"
        " only if the applier applied something between the readings, or if gtid-audit read the"
        " states of all workers and none waits for a lock.",
    ),
    Row(
        "T2", "applier backlog", "info", True,
        "The replica has received these transactions and has not applied them yet.",
        "The applier is slower than the source, for now.",
        "The GTIDs are in the retrieved set of a channel, and its applier has not passed them. It"
        " is proved only if the applier moved between the readings, or if the cause of the wait is"
        " known: SOURCE_DELAY, a stopped applier, or workers that apply transactions.",
    ),
    Row(
        "T3", "receiver backlog", "info", True,
        "The replica has not received these transactions yet.",
        "The receiver is behind the source, for now.",
        "The receiver runs and has not read the source's log up to them, or has read a part of one."
        " With auto-position off it is likely at most: a file position may be after them.",
    ),
    Row(
        "T4", "unconfirmed lead", "info", True,
        "The replica has the source's own newest transactions before the source lists them.",
        "The source writes the transaction to its log, sends it, and adds the GTID to gtid_executed"
        " last. With semi-synchronous replication it also waits for an acknowledgement in between.",
        "The source owns the GTIDs at this moment. It is a warning, and likely, if the first of"
        " them has waited for longer than `stall_seconds_max` of the policy.",
    ),
    Row(
        "T5", "group replication block gap", "info", True,
        "A hole that results from the blocks of GTIDs that group members reserve.",
        "group_replication_gtid_assignment_block_size makes every member reserve its own block.",
        "The hole has the group name as its UUID, and its bounds are those of a block.",
    ),
    Row(
        "T6", "allowed extra", "info", True,
        "The replica has transactions that the policy allows it to have.",
        "View changes, heartbeat tables, and other UUIDs that the policy lists.",
        "The UUID is on the policy's list.",
    ),
    Row(
        "H1", "bypassed by file position", "critical", True,
        "The replica will never receive these transactions: its channel has read past them.",
        "The channel was set to a file position after them, with auto-position off.",
        "They are in the source's gtid_executed and not in its gtid_purged; they are not in the"
        " relay log, not being applied, and the receiver has read past them. It is proved only if"
        " the logs exclude a RESET, a crash, a skip and an equal server_id, now and at that time. A"
        " dump that was loaded with the position may contain their rows.",
    ),
    Row(
        "H2", "applier crash gap", "warning", True,
        "A hole that the parallel applier left when it stopped. It fills the hole when it starts.",
        "A crash, a kill or an error while workers were at different positions.",
        "The replica has received the transactions, has applied later ones, and its applier is"
        " stopped. It is proved if the source's log shows that the applier has not passed them, and"
        " the replica's own log has later ones that an applier committed: gtid_purged can be set by"
        " hand, with a hole, and a session can commit a later one (gtid_next).",
    ),
    Row(
        "H3", "hole purged on the source, held by another donor", "critical", True,
        "The source can no longer send what the replica is missing, but another server can. The"
        " channel runs by file position, so its threads run without an error.",
        "The channel was set to a file position after the transactions, or a copy was loaded"
        " without its gtid_purged; the source purged its logs before the hole was noticed.",
        "The hole is in the source's gtid_purged and in the binary logs of another audited server."
        " The source still has the file that the channel reads; otherwise, and with auto-position,"
        " it is P1. A copy that was loaded without its gtid_purged has the rows.",
    ),
    Row(
        "H4", "hole held by no server", "critical", True,
        "No audited server can send what the replica is missing. The channel runs by file"
        " position, so its threads run without an error.",
        "As for H3, and every donor purged it.",
        "The hole is in the source's gtid_purged, and in the binary logs of no audited server. It"
        " is likely if a source of the replica is not audited, or if a server was not read."
        " A copy that was loaded without its gtid_purged has the rows.",
    ),
    Row(
        "H5", "source ghost", "critical", True,
        "The source lists GTIDs for which it has no event: it cannot send them, and refuses no"
        " receiver.",
        "A binary log that was lost, other than by PURGE: the rows are missing on the replica. Or"
        " server bugs 71575, 74687 and 106096: nothing is missing.",
        "The hole is in the source's gtid_executed, not in its gtid_purged, and a search of its"
        " binary logs did not find it. It is likely if a range has more than two GTIDs: both ends"
        " were searched for.",
    ),
    Row(
        "H6", "hole in a server's own GTIDs", "info", False,
        "The server assigns these GTIDs to new transactions, at once or after its next restart. A"
        " server that already has one of them silently skips the new transaction.",
        "A session set gtid_next by hand to a later GTID, or a transaction was rolled back.",
        "A gap in gtid_executed for the server's own UUID. What another audited server has of it is"
        " reported as E3, E6 or H7; the rest harms no audited server.",
    ),
    Row(
        "H7", "future GNO trap", "warning", True,
        "A server has a GTID with another server's UUID, and that server has not reached the GTID."
        " When it does, the replicas skip its new transaction without an error.",
        "A session set gtid_next by hand.",
        "The GTID is above the server's own maximum, after a gap that no server has. Or the"
        " holder's binary log shows a server_id other than that of the server with the UUID.",
    ),
    Row(
        "H8", "passed by the applier", "critical", True,
        "The replica received these transactions, or read past them with auto-position on, and will"
        " not execute them. The rows may be there (RESET) or missing (skipped).",
        "RESET BINARY LOGS AND GTIDS on the replica, which has applied them; RELAY_LOG_POS;"
        " sql_replica_skip_counter; a purged relay log; an equal server_id; a crash or an older"
        " copy of the data; a source without an event for the GTID; IGNORE_SERVER_IDS. Or RESET"
        " BINARY LOGS AND GTIDS on the source, which has reused the GTIDs since: the replica"
        " received the former transactions.",
        "The replica had received them before the first reading ended, and has not executed them in"
        " the last reading. The applier has read all of its relay log, and no worker or session is"
        " executing them.",
    ),
    Row(
        "E1", "errant, still in a binary log", "critical", True,
        "The replica has transactions that its source does not have and will not receive.",
        "A client wrote on the replica, or mysqld itself did: at the first use of a MEMORY table"
        " after a restart it logs TRUNCATE (5.6: DELETE). If no audited server has the server_uuid,"
        " also: a former source committed them, or the source was replaced, or it has a new"
        " server_uuid and lost them. If gtid_purged was set on the source (a restore, or RESET"
        " BINARY LOGS AND GTIDS before a promotion), that set may have been too small: then the"
        " source has the rows.",
        "gtid-audit read them on the replica first, and afterwards the source did not have them."
        " They are not the source's own, not on their way, not from another channel, and still in"
        " the replica's binary logs. It is likely if an operator stopped a channel towards the"
        " source, and the source has no earlier transaction of that origin. If both servers have"
        " earlier transactions of both, the transactions wait for the channel: A7. If a server"
        " outside the audit may deliver them, it is a warning and likely; it is info while earlier"
        " ones arrive. It is also likely if no server of the audit has the server_uuid, or if the"
        " source has purged others of that origin and has no log from before these.",
    ),
    Row(
        "E2", "errant, already purged", "critical", True,
        "As E1, and the replica can no longer send them: after a failover to it, the other replicas"
        " stop with error 1236.",
        "A client wrote on the replica long ago; SET GLOBAL gtid_purged declared them; or as E1.",
        "As E1, and within the replica's gtid_purged.",
    ),
    Row(
        "E3", "crash-lost on the source", "critical", True,
        "The replica has transactions of the source that the source itself has lost. The source"
        " reuses their GTIDs for other transactions. Then the sets agree and the data differs.",
        "The source crashed before its binary log reached the disk, and the replica had already"
        " received it.",
        "gtid-audit read them on the replica first; afterwards the source neither has them in"
        " gtid_executed nor owns them. It restarted since they were committed, and its binary logs"
        " exclude a reset of its history.",
    ),
    Row(
        "E4", "same GTID, different content", "critical", True,
        "Two servers have different transactions under one GTID. The sets are equal, both threads"
        " run, and the rows differ.",
        "A server lost its last transactions in a crash, or was RESET, and reused their GTIDs; a"
        " client set gtid_next to a GTID of another server; an operator committed an empty"
        " transaction under the GTID; a server skipped the changes (replica_skip_errors,"
        " IDEMPOTENT, a filter); an operator declared it executed (SET GLOBAL gtid_purged); or the"
        " rows had drifted apart before.",
        "The commit times in the two binary logs differ (before 8.0.1: the server_ids), and the"
        " content differs (critical, proved). It is a warning if one of the two is empty, if one"
        " commit changed other rows, or if one log has less of it. It is info if the content is"
        " equal, or if a filter explains the difference. It is a warning, and likely, if one server"
        " has the GTIDs in gtid_purged but never had them in a log: their content cannot be"
        " compared.",
    ),
    Row(
        "E5", "unknown origin", "info", True,
        "A server is missing transactions with a UUID that no audited server has.",
        "A session set gtid_next by hand, a program applies the log of another server, a former"
        " server_uuid, or a server that no longer exists.",
        "Another server's first reading has them, and this server's last one does not. All servers"
        " and sources were read. If all servers have the same of such a UUID, it is F2.",
    ),
    Row(
        "E6", "history reset on the source", "critical", True,
        "The source's gtid_executed does not have transactions of its own that the replica has,"
        " because its GTID history was reset. The source still has the rows: redoing the"
        " transactions applies them twice. If binary logs were replayed since, the rows that the"
        " replay left out are gone.",
        "RESET BINARY LOGS AND GTIDS on a source, also as part of a point-in-time recovery.",
        "The source has been running since before the transactions were committed, so it did not"
        " crash. Its first binary log was created after them, without previous GTIDs.",
    ),
    Row(
        "J1", "can join", "warning", True,
        "No channel links this server to the others, and it could replicate from one of them.",
        "The server is new, was restored from a backup, or RESET REPLICA ALL removed its channel.",
        "Its gtid_executed is within what the others have, and the candidate has purged nothing"
        " that it needs.",
    ),
    Row(
        "J2", "cannot join: purged", "critical", True,
        "No channel links this server to the others, and none of them can send what it is missing.",
        "A backup that is older than the binary logs, or a server that was away for too long.",
        "The gtid_purged of every candidate has GTIDs that its gtid_executed does not have.",
    ),
    Row(
        "J3", "cannot join: diverged", "critical", True,
        "No channel links this server to the others, and it has transactions that none of them has."
        " They accept its connection and hide the difference.",
        "A former source returned after a failover with transactions that were never replicated, or"
        " clients wrote on a detached server.",
        "Its gtid_executed is not within what the others have executed.",
    ),
    Row(
        "J4", "source outside the inventory", "warning", True,
        "A replica's source is not part of the audit: gtid-audit did not compare the two.",
        "The server was left out of the fleet file or the command, or it is external on purpose.",
        "No server of the audit has the channel's server_uuid or address.",
    ),
    Row(
        "P1", "1236 on the next connect", "critical", True,
        "The source has purged transactions that the replica still needs.",
        "Binary logs were purged while the replica was stopped or lagged. Or the source does not"
        " log what it receives (log_replica_updates = OFF). Or the source lost the end of its"
        " binary log in a crash (sync_binlog is not 1), or a log was deleted by hand before"
        " a restart (the newest one; of 5.6 also an older one): InnoDB keeps the rows and GTIDs,"
        " and they count as purged. Or the replica lost them only from gtid_executed (RESET BINARY"
        " LOGS AND GTIDS, see H8): its rows are there.",
        "The source's gtid_purged has GTIDs that the replica has neither executed nor received.",
    ),
    Row(
        "P2", "latent 1236", "warning", True,
        "Only the relay log protects the replica from error 1236.",
        "The source purged transactions that the replica has received and not applied.",
        "The source's gtid_purged has GTIDs that the replica has received and not executed. It is"
        " info while the applier runs.",
    ),
    Row(
        "P3", "runway short", "warning", True,
        "A server will soon delete a binary log with transactions that another server is missing.",
        "The retention is short, or the fault is old.",
        "The first log with any of these transactions was last written to so long ago that a"
        " rotation deletes it within `runway_seconds_min` of the policy. A receiver that reads it"
        " delays that, and PURGE BINARY LOGS does not wait, so it is likely at most.",
    ),
    Row(
        "P4", "offered set cannot be served", "critical", True,
        "The server cannot send a consumer or a backup all that its GTID set does not have, or soon"
        " cannot.",
        "Binary logs were purged before the consumer read them, or the backup is too old. Or the"
        " set has transactions that the servers lost, or is of another cluster.",
        "The set of a consumer of the fleet file, read before and after the servers. The server's"
        " gtid_purged has GTIDs that the set does not have, or the set has GTIDs that the server"
        " does not have and does not receive. It is a warning if only a failover to the server"
        " would break the consumer, if the server accepts the set and hides what only the set has,"
        " or if the first log that it needs is deleted within `runway_seconds_min` of the policy,"
        " or within half of the retention. It is likely while the consumer may have read on.",
    ),
    Row(
        "P5", "failover candidate breaks others", "warning", True,
        "If this server becomes the source of another replica now, that one stops with error 1236.",
        "It has purged transactions that the other is missing, and their present source has not.",
        "Two replicas of one source: the gtid_purged of one has GTIDs that the other has not"
        " executed, and that no running channel is about to deliver.",
    ),
    *THREAD_ROWS,
    *SETTING_ROWS,
)
# fmt: on

"""What a person does where this version plans nothing: one line for each such strategy."""

from collections.abc import Mapping

# Keyed as in topology/strategies.py.
BY_HAND: Mapping[str, str] = {
    "wait": "nothing to run: audit again in a few minutes",
    "read_again": "nothing to run: audit again",
    "until_after_gaps": "START REPLICA UNTIL SQL_AFTER_MTS_GAPS, then START REPLICA",
    "donor_refetch": "point the channel at a donor that still has them (auto-position on), wait"
    " until they are applied, and point it back",
    "redo_on_source": "stop writes on the source before it reuses the numbers; take the"
    " transactions from the replica's binary log (mysqlbinlog --include-gtids) and apply them on"
    " the source under their GTIDs",
    "undo_on_replica": "read the rows from the replica's binary log (mysqlbinlog --verbose"
    " --include-gtids), reverse them there by hand, then audit again",
    "reclone": "restore the server from a backup or clone of its source, and attach it by"
    " auto-position",
    "resolve_conflict": "look at the row the error names on both servers; make the replica's row"
    " as the event expects it, then start the applier",
    "raise_retention": "set binlog_expire_logs_seconds (expire_logs_days before 8.0) higher on the"
    " source now",
    "kill_blocker": "find the session in performance_schema.metadata_locks and KILL it",
    "new_server_uuid": "stop the server, remove auto.cnf from its data directory, start it",
    "attach": "compare the data of the two servers first; then CHANGE REPLICATION SOURCE TO the"
    " candidate with SOURCE_AUTO_POSITION = 1, START REPLICA, and audit again",
    "add_servers": "add the servers that the finding names, and audit again",
    "configure": "change the setting, in the configuration file too",
    "grant": "grant the privilege or mend the access, and audit again",
    "explain": "read the error text; `gtid-audit explain` says what it means",
}

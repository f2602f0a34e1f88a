"""The repair strategies: what each does, what it risks, and whether it may run unattended.

The catalogue and the rules refer to strategies by their key here; `repair` plans by the same keys.
This module does not define how a strategy is executed.
"""

from topology.findings import Strategy

_ALL = (
    Strategy("wait", False, "none", "it clears by itself"),
    Strategy("read_again", False, "none", "another reading tells a lead in time from a fault"),
    Strategy(
        "start_channel",
        False,
        "the waiting transactions are applied as they are",
        "the channel is configured and only stopped; starting it delivers what is missing",
    ),
    Strategy(
        "refetch",
        False,
        "applies old transactions after newer ones: rows they touch may have changed since",
        "with auto-position on, the source sends exactly what the replica lacks",
    ),
    Strategy(
        "inject_empty",
        False,
        "declares the transactions' content unneeded where they are injected",
        "commits an empty transaction under each GTID, so that the sets agree again",
    ),
    Strategy(
        "gtid_purged_append",
        False,
        "declares the content unneeded, and the range purged: servers below that lack it get 1236",
        "one statement for any number of GTIDs (8.0 and later)",
    ),
    Strategy(
        "reset_and_purge",
        False,
        "deletes this server's binary logs; only for data already known to be equal",
        "before 8.0 gtid_purged can be set only on an empty history",
    ),
    Strategy(
        "position_bypass",
        False,
        "the skipped event is not applied here",
        "an event whose expected error differs fails even when its GTID is already executed; only"
        " moving past it by file position helps",
    ),
    Strategy(
        "until_after_gaps",
        True,
        "none: the applier only completes what it had begun",
        "START REPLICA UNTIL SQL_AFTER_MTS_GAPS closes what a crash of the applier left open",
    ),
    Strategy(
        "donor_refetch",
        False,
        "as refetch, from another server",
        "another server still has the transactions in its binary logs",
    ),
    Strategy(
        "redo_on_source",
        False,
        "brings back work its clients were never told of",
        "the replica's binary log still holds the content; apply it before the numbers are reused",
    ),
    Strategy(
        "undo_on_replica",
        False,
        "needs full row images; removes rows that clients may have read",
        "reverses on the replica what the source does not have",
    ),
    Strategy(
        "reclone",
        False,
        "takes the replica out of service and copies everything",
        "always right, never quick",
    ),
    Strategy(
        "data_repair",
        False,
        "the operator must decide which version of each row is right",
        "the sets are equal and the data is not: GTID statements cannot help",
    ),
    Strategy(
        "resolve_conflict",
        False,
        "one of the two rows is lost",
        "make the row as the event expects it, then start the applier",
    ),
    Strategy(
        "raise_retention",
        False,
        "needs disk space",
        "keeps the binary logs until the repair is done",
    ),
    Strategy(
        "kill_blocker", False, "rolls back the blocking session's work", "frees the metadata lock"
    ),
    Strategy(
        "new_server_uuid",
        False,
        "the server restarts, and its old UUID stays in every set",
        "remove auto.cnf from the copied data directory and restart: it makes a UUID of its own",
    ),
    Strategy(
        "auto_position_on",
        False,
        "refused, with 1236, while transactions it needs are purged",
        "lets the sets, not a file position, decide what is sent",
    ),
    Strategy(
        "check_data",
        False,
        "none",
        "only the rows show whether the transactions' changes are still there",
    ),
    Strategy(
        "rebuild_position",
        False,
        "declares that the replica's data is the source's; deletes the replica's binary logs",
        "a replica with the source's data and the source's new GTID history follows it again",
    ),
    Strategy(
        "attach",
        False,
        "the server applies everything that it is missing",
        "the sets show that the candidate can send all of it",
    ),
    Strategy(
        "add_servers",
        False,
        "none",
        "an audit that also reads these servers separates the causes that remain",
    ),
    Strategy("configure", False, "as the setting's own", "change the setting"),
    Strategy("grant", False, "none", "grant the privilege, or repair the access, and audit again"),
    Strategy(
        "explain",
        False,
        "none",
        "the text says what the server wants; `explain` says what it means",
    ),
)

# Strategies that no rule proposes, by code: the operator selects them with `--strategy`.
SELECTED_ONLY: dict[str, tuple[str, ...]] = {
    "A3": ("position_bypass", "inject_empty"),
    "A4": ("start_channel",),
    "P1": ("inject_empty",),
}
# Alternatives to a strategy with the same result; the operator selects them as well.
VARIANTS: dict[str, tuple[str, ...]] = {
    "inject_empty": ("gtid_purged_append", "reset_and_purge"),
}

STRATEGIES: dict[str, Strategy] = {strategy.name: strategy for strategy in _ALL}
assert len(STRATEGIES) == len(_ALL)
assert all(name in STRATEGIES for names in VARIANTS.values() for name in names)

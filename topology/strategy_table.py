"""The repair strategies: what each does, what it risks, and whether it may run unattended.

The catalogue and the rules refer to strategies by their key here; `repair` plans by the same keys.
This module does not define how a strategy is executed.
"""

from topology.findings import Strategy

_ALL = (
    Strategy("wait", False, "none", "it clears by itself"),
    Strategy(
        "read_again", False, "none", "another reading distinguishes a temporary lead from a fault"
    ),
    Strategy(
        "start_channel",
        False,
        "the waiting transactions are applied as they are",
        "the channel is configured and only stopped; starting it delivers what is missing",
    ),
    Strategy(
        "refetch",
        False,
        (
            "applies old transactions after newer ones; the rows that they change may have changed"
            " since"
        ),
        "with auto-position on, the source sends exactly what the replica is missing",
    ),
    Strategy(
        "inject_empty",
        False,
        "declares that the server does not need the content of the transactions",
        "commits an empty transaction under each GTID, so that the sets agree again",
    ),
    Strategy(
        "gtid_purged_append",
        False,
        (
            "declares the content unneeded and the range purged; replicas without it stop with"
            " error 1236"
        ),
        "one statement for any number of GTIDs (8.0 and later)",
    ),
    Strategy(
        "reset_and_purge",
        False,
        "deletes this server's binary logs; use it only for data that is known to be equal",
        "before 8.0 gtid_purged can be set only on an empty history",
    ),
    Strategy(
        "position_bypass",
        False,
        "the replica does not apply the skipped event",
        "an event with another expected error fails even if its GTID is already executed; only"
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
        "as for refetch, but from another server",
        "another server still has the transactions in its binary logs",
    ),
    Strategy(
        "redo_on_source",
        False,
        "restores transactions whose commit was never confirmed to the clients",
        (
            "the replica's binary log still has the content; apply it before the source reuses the"
            " GTIDs"
        ),
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
        "takes the replica out of service and copies all of its data",
        "always correct, but slow",
    ),
    Strategy(
        "data_repair",
        False,
        "the operator must decide which version of each row is right",
        "the sets are equal and the data differs: GTID statements cannot help",
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
        "kill_blocker",
        False,
        "rolls back the transaction of the blocking session",
        "frees the metadata lock",
    ),
    Strategy(
        "new_server_uuid",
        False,
        "the server restarts, and its old UUID stays in every set",
        (
            "remove auto.cnf from the copied data directory and restart: the server then generates"
            " its own UUID"
        ),
    ),
    Strategy(
        "auto_position_on",
        False,
        (
            "the source refuses the connection with error 1236 if it has purged transactions that"
            " the replica needs"
        ),
        "the GTID sets, not a file position, then decide what the source sends",
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
        "declares that the replica's data equals the source's; deletes the replica's binary logs",
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
        "an audit that also reads these servers distinguishes the remaining causes",
    ),
    Strategy("configure", False, "that of the setting", "change the setting"),
    Strategy("grant", False, "none", "grant the privilege or repair the access, and audit again"),
    Strategy(
        "explain",
        False,
        "none",
        "the error text shows the cause; `explain` explains what it means and what to do",
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

"""The repair strategies: what each does, what it risks, and which findings it answers.

1. The catalogue, the rules and `repair plan` take strategies from this table alone. `repair`
   defines how each is planned and executed (strategy_registry.py), by the same names.
2. The order of the rows is the order of preference: for each finding, the planner tries its
   strategies from the first row to the last.
3. A strategy that no rule proposes for a code (`if_selected`), and a variant of a proposed one with
   the same result, are used only if the operator selects them with `--strategy`.
"""

from collections.abc import Collection
from dataclasses import dataclass

from topology.catalogue.findings import Strategy


@dataclass(frozen=True, slots=True)
class StrategyRow:
    """One strategy, as its author registers it. Codes are separated by spaces."""

    strategy: Strategy
    answers: str = ""  # the rules propose it for these codes
    if_selected: str = ""  # it also answers these
    variant_of: str = ""  # it answers what another strategy answers, if selected


STRATEGY_ROWS = (
    StrategyRow(Strategy("wait", False, "none", "it clears by itself"), answers="T1 T2 T3 S1"),
    StrategyRow(
        Strategy(
            "read_again",
            False,
            "none",
            "another reading distinguishes a temporary lead from a fault",
        ),
        answers="T4 U2",
    ),
    StrategyRow(
        Strategy(
            "until_after_gaps",
            False,
            "none: the applier only completes what it had begun",
            "START REPLICA UNTIL SQL_AFTER_MTS_GAPS closes what a crash of the applier left open",
        ),
        answers="H2 A6",
    ),
    StrategyRow(
        Strategy(
            "start_channel",
            True,
            "the waiting transactions are applied as they are",
            "the channel is configured and only stopped; starting it delivers what is missing",
        ),
        answers="E1 A7",
        if_selected="A4",
    ),
    StrategyRow(
        Strategy(
            "resolve_conflict",
            False,
            "one of the two rows is lost",
            "make the row as the event expects it, then start the applier",
        ),
        answers="A2",
    ),
    StrategyRow(
        Strategy(
            "raise_retention",
            False,
            "needs disk space",
            "keeps the binary logs until the repair is done",
        ),
        answers="P3 P4",
    ),
    StrategyRow(
        Strategy(
            "move_consumer",
            False,
            "none: the consumer keeps its set",
            "another server sends all that the set does not have",
        ),
        answers="P4",
    ),
    StrategyRow(
        Strategy(
            "new_snapshot",
            False,
            "the consumer reads all rows again; deletes and earlier versions of rows in between are"
            " lost to it",
            "a newer set, with the data that belongs to it, needs fewer logs",
        ),
        answers="P4",
    ),
    StrategyRow(
        Strategy(
            "data_repair",
            False,
            "the operator must decide which version of each row is right",
            "the sets are equal and the data differs: GTID statements cannot help",
        ),
        answers="E4",
    ),
    StrategyRow(
        Strategy(
            "data_repair_on_source",
            False,
            "the operator must decide which version of each row is right; other replicas of the"
            " source keep its former version",
            "as for data_repair, where the replica's version is right",
        ),
        answers="E4",
    ),
    StrategyRow(
        Strategy(
            "repair_definition",
            True,
            "a statement gives the replica the definition, not the rows that it has missed",
            "`gtid-audit schema drift` prints both definitions and the SQL that repairs each",
        ),
        answers="S2",
    ),
    StrategyRow(
        Strategy(
            "position_bypass",
            False,
            "the replica does not apply the skipped event",
            "an event with another expected error fails even if its GTID is already executed; only"
            " moving past it by file position helps",
        ),
        answers="A1",
        if_selected="A3",
    ),
    StrategyRow(
        Strategy(
            "donor_refetch",
            False,
            "as for refetch, but from another server",
            "another server still has the transactions in its binary logs",
        ),
        answers="H3 H5 P1",
    ),
    StrategyRow(
        Strategy(
            "check_data",
            False,
            "none",
            "only the rows show whether the transactions' changes are still there",
        ),
        answers="E6",
    ),
    StrategyRow(
        Strategy(
            "refetch",
            True,
            "applies old transactions after newer ones; the rows that they change may have"
            " changed since",
            "with auto-position on, the source sends exactly what the replica is missing",
        ),
        answers="H1 H8",
    ),
    StrategyRow(
        Strategy(
            "auto_position_on",
            True,
            "the source refuses the connection with error 1236 if it has purged transactions that"
            " the replica needs. The change deletes the relay log: first let the replica apply what"
            " it received and its source may no longer have",
            "the GTID sets, not a file position, then decide what the source sends",
        ),
        answers="C3",
    ),
    StrategyRow(
        Strategy(
            "rebuild_position",
            False,
            "declares that the replica's data equals the source's; deletes the replica's binary"
            " logs",
            "a replica with the source's data and the source's new GTID history follows it again",
        ),
        answers="E6",
    ),
    StrategyRow(
        Strategy(
            "inject_empty",
            True,
            "declares that the server does not need the content of the transactions",
            "commits an empty transaction under each GTID, so that the sets agree again",
        ),
        answers="H1 H7 H8 E1 E2 A2",
        if_selected="A3 H3 H4 H5 P1",
    ),
    StrategyRow(
        Strategy(
            "gtid_purged_append",
            False,
            "declares the content unneeded and the range purged; replicas without it stop with"
            " error 1236",
            "one statement for any number of GTIDs (8.0 and later)",
        ),
        variant_of="inject_empty",
    ),
    StrategyRow(
        Strategy(
            "reset_and_purge",
            False,
            "deletes this server's binary logs; use it only for data that is known to be equal",
            "before 8.0 gtid_purged can be set only on an empty history",
        ),
        variant_of="inject_empty",
    ),
    StrategyRow(
        Strategy(
            "redo_on_source",
            False,
            "restores transactions whose commit was never confirmed to the clients",
            "executes on the source what the replica's binary log has, before the source reuses"
            " the GTIDs",
        ),
        answers="E1 E3 J3",
    ),
    StrategyRow(
        Strategy(
            "undo_on_replica",
            False,
            "needs full row images; removes rows that clients may have read",
            "reverses on the replica what the source does not have",
        ),
        answers="E1 E3 J3",
    ),
    StrategyRow(
        Strategy(
            "reclone",
            False,
            "takes the replica out of service and copies all data of a source; what only the"
            " replica has is lost, unless it is saved before",
            "replaces everything, whatever differs, but slow",
        ),
        answers="H3 H4 H5 E2 E4 E6 J2 J3 P1",
    ),
    StrategyRow(
        Strategy(
            "attach",
            False,
            "the server applies everything that it is missing",
            "the sets show that the candidate can send all of it",
        ),
        answers="J1",
    ),
    StrategyRow(
        Strategy(
            "join_group",
            False,
            "it applies everything that it is missing; what only it has must be saved first",
            "START GROUP_REPLICATION makes the server a member again; after J2 or J3 only once its"
            " data is replaced",
        ),
        if_selected="A7 J2 J3",
    ),
    StrategyRow(
        Strategy(
            "add_servers",
            False,
            "none",
            "an audit that also reads these servers distinguishes the remaining causes",
        ),
        answers="J4",
    ),
    StrategyRow(
        Strategy(
            "kill_blocker",
            False,
            "rolls back the transaction of the blocking session",
            "ends the session that holds the lock",
        ),
        answers="A5",
    ),
    StrategyRow(
        Strategy(
            "new_server_uuid",
            False,
            "the server restarts, and its old UUID stays in every set",
            "remove auto.cnf from the copied data directory and restart: the server then"
            " generates its own UUID",
        ),
        answers="C1",
    ),
    StrategyRow(
        Strategy("configure", False, "that of the setting", "change the setting"),
        answers="A9 C2 C4 C5 C6 C7 C8 C9 C10 C11 C12 C13 C14 C15",
    ),
    StrategyRow(
        Strategy(
            "grant", False, "none", "grant the privilege or repair the access, and audit again"
        ),
        answers="U1",
    ),
    StrategyRow(
        Strategy(
            "explain",
            False,
            "none",
            "the error text shows the cause; `explain` explains what it means and what to do",
        ),
        answers="A3 A4",
    ),
)

STRATEGIES: dict[str, Strategy] = {row.strategy.name: row.strategy for row in STRATEGY_ROWS}
assert len(STRATEGIES) == len(STRATEGY_ROWS), "every name once"
assert {row.variant_of for row in STRATEGY_ROWS} - {""} <= STRATEGIES.keys()


# What a policy may list (`policy.reconcile`): the automatic ones.
RECONCILABLE: tuple[str, ...] = tuple(
    sorted(row.strategy.name for row in STRATEGY_ROWS if row.strategy.automatic)
)


def unknown_codes(codes: Collection[str]) -> set[str]:
    """Return the codes of these rows that are not among `codes`."""
    used = {code for row in STRATEGY_ROWS for code in f"{row.answers} {row.if_selected}".split()}
    return used - {*codes}


def proposed_for(code: str) -> tuple[Strategy, ...]:
    """Return the strategies that the rules propose for a code, in order of preference."""
    return tuple(row.strategy for row in STRATEGY_ROWS if code in row.answers.split())


def strategies_for(code: str) -> tuple[str, ...]:
    """Return every strategy that can answer a code: proposed ones, variants, selected ones.

    This is the only registry. `repair plan` accepts choices from it.
    """
    names: list[str] = []
    proposed = (each.name for each in proposed_for(code))
    selected = (row.strategy.name for row in STRATEGY_ROWS if code in row.if_selected.split())
    for name in (*proposed, *selected):
        names += [name, *variants_of(name)]
    return tuple(dict.fromkeys(names))


def variants_of(name: str) -> tuple[str, ...]:
    """Return the strategies with the same result as another one."""
    return tuple(row.strategy.name for row in STRATEGY_ROWS if row.variant_of == name)


def is_only_selected(name: str, code: str) -> bool:
    """Return whether no rule proposes a strategy for a code that it answers."""
    rows = (row for row in STRATEGY_ROWS if row.strategy.name == name)
    return any(code in row.if_selected.split() for row in rows)

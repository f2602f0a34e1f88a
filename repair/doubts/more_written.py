"""What else changes when a script writes rows: triggers fire, and foreign keys cascade.

1. A script that encounters such a table stops before it changes anything (table_questions.py). The
   planner makes the same queries, and refuses with the reason. So no script is begun that cannot
   end.
2. What the account of the audit may not see does not refuse a plan. The script queries again with
   its own account, and also checks whether that account would see triggers.
3. Events of the event scheduler may write the same rows between the plan and its scripts, or while
   they run: a warning, because no one knows what an event will write. So may events that the
   account of the audit does not see, or of a server that could not be asked.
4. Pure: repair/adapters/side_effects_there.py and events_there.py query the servers.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from repair.content.side_effects import ScheduledEvents, SideEffects
from repair.content.transaction_content import first_of
from repair.model.actions import Action, MakeRowsAlike, RedoTransactions, ResetAndPurge, UndoRows
from repair.model.strategy_case import Outcome, Refusal
from repair.scripts.row_procedures import rules_asked

_WRITING: Final = (MakeRowsAlike, RedoTransactions, ResetAndPurge, UndoRows)


def unless_more_is_written(
    outcome: Outcome,
    effects: Mapping[str, tuple[SideEffects, ...]],
    events: Mapping[str, ScheduledEvents],
) -> Outcome:
    """Refuse to write rows of a table with side effects, and warn of events of the scheduler.

    `effects` and `events` are by server.
    """
    if isinstance(outcome, Refusal):
        return outcome
    reasons = dict.fromkeys(
        why
        for action in outcome.actions
        for each in effects.get(action.server, ())
        for why in _reasons(action, each)
    )
    if reasons:
        return Refusal("; ".join(reasons))
    warnings = (*outcome.warnings, *events_that_run(outcome.actions, events))
    return replace(outcome, warnings=warnings)


def events_that_run(
    actions: Iterable[Action], events: Mapping[str, ScheduledEvents]
) -> Iterator[str]:
    """Yield a warning for each server on which events run, or may run, beside what is written."""
    written = [each for each in actions if isinstance(each, _WRITING)]
    for name in dict.fromkeys(each.server for each in written):
        found = events.get(name)
        if found is None or not (what := _running(name, found)):
            continue
        here = [each for each in written if each.server == name]
        harms = []
        if any(not isinstance(each, ResetAndPurge) for each in here):
            harms.append("may change rows that the plan has compared")
        if any(isinstance(each, ResetAndPurge) for each in here):
            harms.append("may commit what the reset then deletes from the binary logs")
        yield (
            f"{what} One that writes before or while the scripts run {' and '.join(harms)}. Run"
            f" `SET GLOBAL event_scheduler = OFF` on {name} first, and `SET GLOBAL event_scheduler"
            " = ON` after the last script"
        )


def _running(name: str, events: ScheduledEvents) -> str:
    """Return which events run on a server, or that this is not known; empty if none runs."""
    if events.unread:
        return f"it could not be read whether events run on {name}: {events.unread}."
    hidden = "the account of the audit has no EVENT ON *.*"
    if events.names:
        more = f" There may be more: {hidden}." if events.may_hide_some else ""
        return (
            f"event_scheduler is ON on {name}, and these events are enabled there:"
            f" {first_of(events.names)}.{more}"
        )
    if events.may_hide_some:
        return (
            f"event_scheduler is ON on {name}, and it is not known whether events are enabled"
            f" there: {hidden}."
        )
    return ""


def _reasons(action: Action, effects: SideEffects) -> Iterator[str]:
    writes = {
        (schema, table): (deletes, updates) for schema, table, deletes, updates in _written(action)
    }
    rules = writes.get((effects.schema, effects.table))
    if rules is None:
        return
    deletes, updates = rules
    name, server = f"{effects.schema}.{effects.table}", action.server
    if effects.has_triggers:
        yield (
            f"{name} on {server} has triggers, which would fire for the rows of the script. While"
            " no client writes to that table, drop them there after `SET SESSION sql_log_bin = 0`"
            f" (`SHOW TRIGGERS FROM {effects.schema}` lists them), plan again, and create them"
            " again in the same way afterwards"
        )
    if (deletes and effects.delete_carries) or (updates and effects.update_carries):
        yield (
            f"foreign keys of {name} would change rows on {server} that the plan has not read: ON"
            " DELETE or ON UPDATE of other tables. Compare these tables first. Then write on each"
            " server by hand what belongs there"
        )


def _written(action: Action) -> Iterator[tuple[str, str, bool, bool]]:
    """Yield each table, and whether the script checks its ON DELETE and its ON UPDATE rules."""
    match action:
        case MakeRowsAlike() | UndoRows():
            table, asked = action.rows[0].table, rules_asked(action.rows)
            yield table.schema, table.table, asked["delete_rule"], asked["update_rule"]
        case RedoTransactions():
            touched = [table for each in action.transactions for table in each.tables]
            for name in dict.fromkeys((table.schema, table.table) for table in touched):
                of_name = [table for table in touched if (table.schema, table.table) == name]
                yield (
                    *name,
                    any(table.asks_for_delete_rules for table in of_name),
                    any(table.asks_for_update_rules for table in of_name),
                )
        case _:
            return

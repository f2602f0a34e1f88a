"""Conditions on other servers before empty transactions use up GTIDs.

1. A downstream server that has their content must not have lost it: it would receive them empty.
2. A server on which they are missing, and that gets them from another channel, must still have that
   channel. If it was pointed to this server, it would get them empty as well.
3. If earlier steps take rows back, those steps must have completed.
"""

from collections.abc import Iterator

from repair.actions import Action, InjectEmpty
from repair.checks import check_of, tables_there
from repair.guard import Guard
from repair.model import below
from repair.privileges import StatementKind
from repair.procedure import Setting
from repair.row_procedures import row_is
from repair.script import literal, same_channels
from repair.steps import Check


def around_empty(action: Action, setting: Setting) -> Iterator[Check]:
    """Yield the checks of an injection; other actions have none."""
    yield from _keeping(action, setting)
    yield from _still_elsewhere(action, setting)
    yield from _undone(action, setting)


def _keeping(action: Action, setting: Setting) -> Iterator[Check]:
    """Yield a check for each downstream server that has the content that becomes empty upstream.

    After a crash that lost it, or a reset, the server would receive an empty transaction instead.
    """
    if not isinstance(action, InjectEmpty) or not action.rows_are_there:
        return
    for name in below(setting.before, action.server):
        held = setting.executed(name) & action.gtids
        if held:
            still_there = Guard(
                f"GTID_SUBSET({literal(held)}, @@GLOBAL.gtid_executed)",
                f"{name}: it has lost transactions since the plan was made, and would receive them"
                " as empty ones; audit and plan again",
            )
            why = f"otherwise {name} would receive the empty transactions of {action.server}"
            yield check_of(setting, name, (still_there,), why=why)


def _still_elsewhere(action: Action, setting: Setting) -> Iterator[Check]:
    """Yield a check for each server that misses what this one has and is not downstream of it."""
    if not isinstance(action, InjectEmpty) or not action.rows_are_there:
        return
    beneath = below(setting.before, action.server)
    for name in setting.seen:
        if name == action.server or name in beneath or action.gtids <= setting.executed(name):
            continue
        guard = same_channels(name, setting.before[name].version, setting.channels(name))
        why = f"{name} must not get the empty transactions of {action.server}"
        yield check_of(setting, name, (guard,), why=why, kinds=(StatementKind.READ_CHANNELS,))


def _undone(action: Action, setting: Setting) -> Iterator[Check]:
    """Yield a check for each server on which earlier steps set rows back: they must have completed.

    After the empty transactions the sets are equal, and no plan would read these rows again.
    """
    for each in action.undone if isinstance(action, InjectEmpty) else ():
        taken_back = (
            Guard(
                f"NOT ({row_is(row.table, row.where, row.replica)})",
                f"{each.server}: a row of {row.table.name} is as the transactions left it: its"
                " undo did not finish, or it was written again; audit and plan again",
            )
            for row in each.rows
        )
        why = f"the rows on {each.server} must be undone first"
        guards = (*tables_there(each.server, each.rows), *taken_back)
        yield check_of(setting, each.server, guards, why=why, reads_rows=True)

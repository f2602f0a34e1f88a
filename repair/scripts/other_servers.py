"""What must still be true on other servers before a step: checks, each with its own script.

A script reads one server. This module selects the conditions of an action, and combines them in one
check for each server.
"""

from collections.abc import Iterator

from repair.model.actions import (
    Action,
    AppendPurged,
    AutoPositionOn,
    ChangeDefinition,
    InjectEmpty,
    MakeRowsAlike,
    MovePast,
    RedoTransactions,
    ResetAndPurge,
    StartChannel,
    UndoRows,
)
from repair.scripts.around_channels import around_channel
from repair.scripts.around_definitions import around_definition
from repair.scripts.around_empty import around_empty
from repair.scripts.around_rows import around_alike, around_redo, around_undo
from repair.scripts.procedure import Setting
from repair.scripts.server_checks import joined
from repair.scripts.steps import Check


def checks_before(action: Action, setting: Setting) -> tuple[Check, ...]:
    """Return the checks of an action, one for each server."""
    return joined(_conditions(action, setting))


def _conditions(action: Action, setting: Setting) -> Iterator[Check]:
    if isinstance(action, StartChannel | AutoPositionOn | MovePast):
        yield from around_channel(action, setting)
    elif isinstance(action, UndoRows):
        yield from around_undo(action, setting)
    elif isinstance(action, MakeRowsAlike):
        yield from around_alike(action, setting)
    elif isinstance(action, RedoTransactions):
        yield from around_redo(action, setting)
    elif isinstance(action, InjectEmpty | AppendPurged | ResetAndPurge):
        yield from around_empty(action, setting)
    elif isinstance(action, ChangeDefinition):
        yield from around_definition(action, setting)

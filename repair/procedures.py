"""Which procedure carries out which action: the table, and the guard every script begins with."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from repair.actions import (
    Action,
    AppendPurged,
    AutoPositionOn,
    InjectEmpty,
    MakeRowsAlike,
    MovePast,
    ResetAndPurge,
    StartChannel,
    StopChannel,
)
from repair.channel_procedures import auto_position_on, move_past, start_channel, stop_channel
from repair.procedure import Procedure, Setting
from repair.row_procedures import make_rows_alike
from repair.set_procedures import append_purged, inject_empty, reset_and_purge
from repair.steps import Guard
from topology.quoting import quote_string

_PROCEDURES: Mapping[type[Action], Callable[[Any, Setting], Procedure]] = {
    InjectEmpty: inject_empty,
    AppendPurged: append_purged,
    ResetAndPurge: reset_and_purge,
    MovePast: move_past,
    AutoPositionOn: auto_position_on,
    StartChannel: start_channel,
    StopChannel: stop_channel,
    MakeRowsAlike: make_rows_alike,
}


def describe(action: Action, setting: Setting) -> Procedure:
    """Return the procedure of an action; its first guard is the identity of the server."""
    procedure = _PROCEDURES[type(action)](action, setting)
    identity = Guard(
        f"@@GLOBAL.server_uuid = {quote_string(str(setting.server.server_uuid))}",
        f"{setting.server.name}: this is another server (expected server_uuid"
        f" {setting.server.server_uuid}); nothing was changed",
    )
    return replace(procedure, preconditions=(identity, *procedure.preconditions))

"""Converts an action to a step: the table of procedures, and the guards of every script."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

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
    StopChannel,
    UndoRows,
)
from repair.model.replication_model import Model, ModelServer
from repair.scripts.channel_procedures import (
    auto_position_on,
    move_past,
    start_channel,
    stop_channel,
)
from repair.scripts.definition_procedures import change_definition
from repair.scripts.other_servers import checks_before
from repair.scripts.procedure import Procedure, Setting
from repair.scripts.read_only_servers import (
    read_only_privileges,
    read_only_warnings,
    writable_guards,
)
from repair.scripts.replay_procedures import redo_transactions, undo_rows
from repair.scripts.row_procedures import make_rows_alike
from repair.scripts.set_procedures import append_purged, inject_empty, reset_and_purge
from repair.scripts.steps import ExpectedChannel, ExpectedState, Step
from repair.sql.channel_queries import unseen_address
from repair.sql.privileges import StatementKind, privilege_guards, requirements, trial
from repair.sql.script import address_of, is_server, same_channels
from topology.catalogue.findings import Finding

_PROCEDURES: Mapping[type[Action], Callable[[Any, Setting], Procedure]] = {
    InjectEmpty: inject_empty,
    AppendPurged: append_purged,
    ResetAndPurge: reset_and_purge,
    MovePast: move_past,
    AutoPositionOn: auto_position_on,
    StartChannel: start_channel,
    StopChannel: stop_channel,
    MakeRowsAlike: make_rows_alike,
    UndoRows: undo_rows,
    RedoTransactions: redo_transactions,
    ChangeDefinition: change_definition,
}


def describe(action: Action, setting: Setting) -> Procedure:
    """Return the procedure of an action, with the guards with which every script begins.

    In this order: it is the server of the plan, the account may run every statement, the server
    accepts writes if there are any, and the channels are those that the plan read.
    """
    procedure = _PROCEDURES[type(action)](action, setting)
    server = setting.server
    name, version, needs = server.name, server.version, procedure.needs
    guards = [
        is_server(name, server.server_uuid),
        *privilege_guards(name, needs, version),
        *writable_guards(action, procedure, setting),
    ]
    warnings = (*read_only_warnings(procedure, setting), *procedure.warnings)
    if StatementKind.READ_CHANNELS in needs:
        channels = setting.channels(name)
        guards.append(same_channels(name, version, channels))
        warnings += tuple(
            f"before, on {name}: {text}"
            for each in channels
            if (text := unseen_address(version, address_of(each)))
        )
    warnings += setting.untested_calls(needs)
    return replace(
        procedure,
        preconditions=(*guards, *procedure.preconditions),
        statements=(*trial(needs), *procedure.statements),
        warnings=warnings,
    )


def make_step(action: Action, setting: Setting, *, after: int, finding: Finding) -> Step:
    """Return the step that executes an action for a finding, numbered after `after` scripts."""
    checks = checks_before(action, setting)
    procedure = describe(action, setting)
    reading = setting.seen[action.server]
    changed = _changed(setting, action.server)
    return Step(
        number=after + len(checks) + 1,
        effect=action,
        server=reading.name,
        host=reading.host,
        port=reading.port,
        procedure=procedure,
        why=f"{finding.code} {finding.name}: {finding.explanation}",
        finding_ids=(finding.id,),
        privileges=(
            *map(str, requirements(procedure.needs, setting.server.version)),
            *read_only_privileges(procedure, setting),
        ),
        checks=checks,
        before=_states(setting.before, changed),
        after=_states(setting.after, changed),
    )


def _changed(setting: Setting, server: str) -> tuple[str, ...]:
    """Return the server of a step first, then the others that the step changes."""
    before, after = setting.before.servers, setting.after.servers
    changed = (name for name in setting.after.changed_since(setting.before) if name != server)
    return (server, *(name for name in changed if before[name] != after[name]))


def _states(model: Model, names: tuple[str, ...]) -> tuple[ExpectedState, ...]:
    return tuple(_state(model[name]) for name in names)


def _state(server: ModelServer) -> ExpectedState:
    replication = tuple(
        ExpectedChannel(
            name=each.name,
            source=each.source,
            auto_position=each.auto_position,
            running=each.running and not each.is_stuck,
        )
        for each in server.channels
    )
    return ExpectedState(
        server=server.name,
        gtid_executed=str(server.executed),
        gtid_purged=str(server.purged),
        channels=tuple(map(str, replication)),
        replication=replication,
    )

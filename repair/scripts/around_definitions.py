"""Conditions on the source before DDL makes the definition of a replica like its own."""

from collections.abc import Iterator

from binlog.quoting import quote_string
from repair.model.actions import ChangeDefinition
from repair.scripts.procedure import Setting
from repair.scripts.server_checks import check_of
from repair.scripts.steps import Check
from repair.sql.guard import Guard


def around_definition(action: ChangeDefinition, setting: Setting) -> Iterator[Check]:
    """Yield the check that the source still has the definition that the replica is to get."""
    if action.source not in setting.seen:
        return
    name = f"{action.schema}.{action.name}"
    guards = tuple(
        Guard(
            f"{each.question} <=> {quote_string(each.goal or '')}",
            f"{action.source}: {each.name} of {name} changed since the plan was made, or this"
            " account may not see it; audit and plan again",
        )
        for each in action.parts
    )
    why = f"{action.server} gets this definition"
    yield check_of(setting, action.source, guards, why=why)

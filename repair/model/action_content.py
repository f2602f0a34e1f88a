"""Conversion of an action to plain values, for programs that read a plan.

1. Every field of an action is included under its name. `type` has the name of the action.
2. Sets, GTIDs, positions and UUIDs are text. Rows are identified, not shown: their versions are in
   the plan's `rows`.
"""

from dataclasses import fields, is_dataclass
from typing import Any

from repair.content.row_versions import RowVersions
from repair.content.transaction_content import NetRow, key_condition
from repair.model.actions import Action
from repair.sql.replay import Replayed


def action_content(action: Action) -> dict[str, Any]:
    """Return an action as plain values."""
    return {
        "type": type(action).__name__,
        **{each.name: _plain(getattr(action, each.name)) for each in fields(action)},
    }


def _plain(value: object) -> object:
    match value:
        case None | bool() | int() | str():
            return value
        case tuple() | list():
            return [_plain(each) for each in value]
        case Replayed():
            return value.label
        case RowVersions():
            return {"table": value.table.name, "where": value.where}
        case NetRow():
            return {"table": value.table.name, "where": key_condition(value.table, value.key_image)}
        case _ if is_dataclass(value) and type(value).__str__ is object.__str__:
            return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
        case _:
            return str(value)

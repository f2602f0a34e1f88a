"""Simulates the actions of a proposal, one after the other, as far as each is possible.

An action is left out if nothing of it remains to do. The proposal is refused at the first action
that breaks an invariant, or that no account of the server's service can run.
"""

from collections.abc import Mapping, Sequence

from repair.model.actions import Action, simulate
from repair.model.invariants import broken_invariants
from repair.model.remaining_action import remaining_part
from repair.model.replication_model import Model
from repair.model.strategy_case import Refusal
from repair.scripts.procedure import Setting
from repair.scripts.procedures import describe
from repair.sql.privileges import withheld_from
from topology.readings.snapshot import ReadServer
from topology.readings.vendors import row_of


def simulated_actions(
    model: Model, actions: Sequence[Action], seen: Mapping[str, ReadServer]
) -> tuple[tuple[Action, Setting], ...] | Refusal:
    """Return the actions with the servers before and after each; or why one of them is refused.

    Args:
        model: the servers before the first action.
        actions: the actions, in order.
        seen: the last readings, by name.
    """
    settings: list[tuple[Action, Setting]] = []
    for proposed in actions:
        action = remaining_part(model, proposed)
        if action is None:
            continue
        after = simulate(model, action)
        if broken := broken_invariants(model, after, action):
            return Refusal("; ".join(broken))
        setting = Setting(model[action.server], before=model, after=after, seen=seen)
        if withheld := withheld_by_service(action, setting):
            return Refusal(withheld)
        settings.append((action, setting))
        model = after
    return tuple(settings)


def withheld_by_service(action: Action, setting: Setting) -> str:
    """Return why no account of a managed service can run the script of an action; "" if one can.

    A server of no service takes any statement from an account that has the privilege.
    """
    server = setting.server
    row = row_of(server.vendor)
    if not row.withheld:
        return ""
    needs = describe(action, setting).needs
    missing = withheld_from(needs, server.version, row.withheld)
    if missing is None:
        return ""
    return (
        f"{row.vendor.value} gives no account {missing}, and gtid-audit knows no procedure of the"
        f" service that does this on {server.name}"
    )

"""What is left of an action after earlier steps of the plan have executed a part of it."""

from dataclasses import replace

from repair.model.actions import Action, AutoPositionOn, InjectEmpty, RedoTransactions, StartChannel
from repair.model.replication_model import Model
from repair.model.settled_model import delivery


def remaining_part(model: Model, action: Action) -> Action | None:
    """Return the part of an action that is left; None if nothing is."""
    server = model[action.server]
    match action:
        case InjectEmpty(may_be_executed=False):
            missing = action.gtids - server.executed
            return replace(action, gtids=missing) if missing else None
        case RedoTransactions():
            left = tuple(
                each
                for each in action.transactions
                if each.gtid is not None and each.gtid not in server.executed
            )
            return replace(action, transactions=left) if left else None
        case AutoPositionOn():
            channel = server.channel(action.channel)
            assert channel is not None, "strategies refer to existing channels"
            is_done = channel.auto_position and channel.running and not channel.is_stuck
            is_done = is_done and not channel.passed
            return None if is_done and not delivery(model, server, channel) else action
        case StartChannel():
            channel = server.channel(action.channel)
            assert channel is not None, "strategies refer to existing channels"
            return None if channel.running and not channel.is_stuck else action
        case _:
            return action

"""Starts and switches after which a source may leave out transactions without a GTID.

adapters/transactions_without_gtid.py looks for them. Where one is certainly ahead of a channel, an
invariant refuses the step (invariants.py). Here is what is less certain: the operator decides.
"""

from repair.model.actions import AutoPositionOn, MovePast, StartChannel
from repair.model.replication_model import ModelChannel


def may_leave_out(action: AutoPositionOn | StartChannel | MovePast, channel: ModelChannel) -> str:
    """Return why a request by sets may leave out what has no GTID; "" if nothing shows that.

    For a start of a channel that uses sets, a log that was not read is only a warning: a replica
    that was stopped for long is further behind than a plan reads.
    """
    by_sets = isinstance(action, AutoPositionOn) or (
        isinstance(action, StartChannel) and channel.auto_position
    )
    if by_sets and channel.without_gtid_maybe_at:
        return (
            f"the log of {channel.source} has a transaction without a GTID at"
            f" {channel.without_gtid_maybe_at}, and the channel of {action.server} has no position"
            " that shows whether it was applied: with auto-position it is never sent. Compare the"
            " rows"
        )
    if isinstance(action, AutoPositionOn) and channel.without_gtid_unread:
        return (
            f"{unread_without_gtid(action.server, channel)}. Let {action.server} catch up by file"
            " position and plan again"
        )
    return ""


def unread_without_gtid(server: str, channel: ModelChannel) -> str:
    """Return that transactions without a GTID may be ahead of a channel; "" if the log was read."""
    if not channel.without_gtid_unread:
        return ""
    return (
        f"whether the log of {channel.source} has transactions without a GTID that {server} has not"
        f" applied is not known ({channel.without_gtid_unread}): with auto-position these are never"
        " sent"
    )

"""What a source must still have in its logs before a channel is stopped to go on elsewhere.

A receiver that asks for what is purged is refused (error 1236, since 8.0 13114), and its channel,
which may have run until then, stands. A channel that is only started stood before, so no script of
that asks.

How it works
------------
A source refuses a connection by auto-position unless `gtid_purged <= what the receiver sends`
(sql/rpl_binlog_sender.cc, check_start_file). That is gtid_executed, for the script deletes the
relay log (CHANGE … SOURCE). Of a channel that stands it is known: as the plan saw it, with what the
steps before add. A channel that runs gets on meanwhile, and what it has applied may be purged. What
it does not get by itself may not: all that the step brings (a hole that its position has passed).

To go on by file position behind an event, the log with that event must still be there.
"""

from gtid import GtidSet
from repair.actions import AutoPositionOn, MovePast
from repair.guard import Guard
from repair.procedure import Setting
from repair.script import literal

_PURGED = "@@GLOBAL.gtid_purged"


def still_sends(action: AutoPositionOn | MovePast, setting: Setting) -> Guard | None:
    """Return what must hold on the source of a channel; None if nothing can be said."""
    channel = setting.known(action.channel)
    source = setting.before.servers.get(channel.source or "")
    if source is None:
        return None
    if isinstance(action, MovePast):
        return _none_purged(source.name, GtidSet.of(action.event.gtid), setting)
    if channel.running:
        arriving = setting.arriving
        return _none_purged(source.name, arriving, setting) if arriving else None
    known = literal(setting.server.executed)
    return Guard(f"GTID_SUBSET({_PURGED}, {known})", _message(source.name, setting))


def _none_purged(name: str, gtids: GtidSet, setting: Setting) -> Guard:
    wanted = literal(gtids)
    return Guard(
        f"GTID_SUBTRACT({wanted}, {_PURGED}) = GTID_SUBTRACT({wanted}, '')",
        _message(name, setting),
    )


def _message(name: str, setting: Setting) -> str:
    return (
        f"{name}: it has purged since the plan was made what {setting.server.name} would ask for"
        " (error 1236); nothing was changed; audit and plan again"
    )

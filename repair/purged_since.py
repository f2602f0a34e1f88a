"""What a source must still have in its logs before a channel is stopped to go on elsewhere.

A receiver that asks for what is purged is refused (error 1236, since 8.0 13114), and its channel,
which may have run until then, stands. A channel that is only started stood before, so no script of
that asks.

How it works
------------
A source refuses a connection by auto-position unless `gtid_purged <= what the receiver sends`
(sql/rpl_binlog_sender.cc, check_start_file). That is gtid_executed, for the script deletes the
relay log (CHANGE … SOURCE), and what it held is lost if the source has purged it. What the server
has executed for certain is what the plan saw, with what the steps before add. A channel that runs
gets on meanwhile, but how far is not known: SOURCE_DELAY, a lock or a long backlog may keep all of
it in the relay log. So nothing else may be purged, even if it has been applied since.

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
    known = literal(setting.server.executed - setting.server.due)
    return Guard(f"GTID_SUBSET({_PURGED}, {known})", _message(source.name, setting))


def _none_purged(name: str, gtids: GtidSet, setting: Setting) -> Guard:
    wanted = literal(gtids)
    return Guard(
        f"GTID_SUBTRACT({wanted}, {_PURGED}) = GTID_SUBTRACT({wanted}, '')",
        _message(name, setting),
    )


def _message(name: str, setting: Setting) -> str:
    return (
        f"{name}: it has purged since the plan was made what {setting.server.name} may ask for"
        " (error 1236); nothing was changed; audit and plan again"
    )

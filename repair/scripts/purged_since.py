"""What a source must still have in its logs before a channel is stopped and repositioned.

A source refuses a receiver that requests purged transactions (error 1236, since 8.0 13114). Its
channel, which may have run until then, stops. A channel that is only started was stopped before, so
its script does not check this.

How it works
------------
A source refuses an auto-position connection unless `gtid_purged <= what the receiver sends`
(sql/rpl_binlog_sender.cc, check_start_file). The receiver sends gtid_executed, because the script
deletes the relay log (CHANGE … SOURCE). What the relay log held is lost if the source has purged
it. The server has certainly executed what the plan read, plus what earlier steps add. A running
channel advances in the meantime, but by an unknown amount: SOURCE_DELAY, a lock or a long backlog
may keep all of it in the relay log. So nothing else may be purged, even if it has been applied
since.

To continue with a file position after an event, the source must still have the log file of that
event.
"""

from gtid import GtidSet
from repair.model.actions import AutoPositionOn, MovePast
from repair.scripts.procedure import Setting
from repair.sql.guard import Guard
from repair.sql.script import literal

_PURGED = "@@GLOBAL.gtid_purged"


def still_sends(action: AutoPositionOn | MovePast, setting: Setting) -> Guard | None:
    """Return the guard for the source of a channel; None if nothing can be required."""
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
        f"{name}: it has purged since the plan was made what {setting.server.name} may request"
        " (error 1236); nothing was changed; audit and plan again"
    )

"""Conditions on other servers before a channel is started, switched or moved past an event.

1. If a channel is stopped in order to continue elsewhere, its source must not have purged what the
   channel requests then (purged_since.py). A script that reads its own server cannot see that.
2. If the source used up GTIDs that it lost (E3), it must have committed nothing else since.
3. What a started channel delivers continues to the downstream servers. Each of them must have the
   history and the rows that the plan read, and so must every other source of the started server.
4. Pure: conditions are computed from the plan's last readings.
"""

from collections.abc import Iterator

from repair.content.transaction_content import key_condition
from repair.model.actions import AutoPositionOn, MovePast, StartChannel
from repair.model.replication_model import below, upstream
from repair.scripts.procedure import Setting
from repair.scripts.purged_since import still_sends
from repair.scripts.row_procedures import row_is
from repair.scripts.server_checks import check_of, tables_there
from repair.scripts.steps import Check
from repair.sql.guard import Guard
from repair.sql.script import (
    commits_nothing,
    executed,
    gained_nothing,
    keeps_history,
    none_executed,
    not_by_hand,
)


def around_channel(
    action: StartChannel | AutoPositionOn | MovePast, setting: Setting
) -> Iterator[Check]:
    """Yield the checks of an action that stops or starts a channel."""
    if isinstance(action, AutoPositionOn | MovePast):
        yield from _still_sends(action, setting)
    if isinstance(action, StartChannel | AutoPositionOn):
        yield from _sends_no_more(action, setting)
        yield from _has_used_up(action, setting)
        yield from _beside(action, setting)
        yield from _below(action, setting)


def _still_sends(action: AutoPositionOn | MovePast, setting: Setting) -> Iterator[Check]:
    """Yield a check of a channel's source: it has not purged what will be requested."""
    guard = still_sends(action, setting)
    name = setting.known(action.channel).source or ""
    if guard is not None:
        why = f"{name} must still have what {action.server} will request, before its channel stops"
        yield check_of(setting, name, (guard,), why=why)


def _sends_no_more(action: StartChannel | AutoPositionOn, setting: Setting) -> Iterator[Check]:
    """Yield a check of the source of a channel whose waiting rows were compared.

    What the source executes after the plan is fetched as well, and its rows were not compared. That
    includes its own transactions, those with gtid_next or a tag, and those that it received. In the
    order of one source's log that does not matter. What the started server itself committed does
    not matter either.
    """
    if not isinstance(action, StartChannel) or not action.waiting or action.in_order:
        return
    name = setting.known(action.channel).source or ""
    if name not in setting.before.servers:
        return
    nothing_more = gained_nothing(
        name,
        setting.executed(name) | setting.before[name].executed | setting.server.executed,
        but=setting.server.server_uuid,
        so=f"their rows were not compared with those of {action.server}",
    )
    why = (
        f"{action.server} would also fetch what {name} has executed since the plan, which was not"
        " compared"
    )
    yield check_of(setting, name, (nothing_more,), why=why)


def _has_used_up(action: StartChannel | AutoPositionOn, setting: Setting) -> Iterator[Check]:
    """Yield a check of a source that used up its lost GTIDs: it has assigned no others since (E3).

    Which transactions have these GTIDs no table shows. If clients had committed them, they would
    probably have committed more.
    """
    if not isinstance(action, StartChannel) or not action.used_up:
        return
    name = setting.known(action.channel).source or ""
    source = setting.before[name]
    guards = (
        executed(name, action.used_up),
        commits_nothing(
            name,
            source.server_uuid,
            source.executed,
            so=f"may have reused GTIDs that {action.server} skips",
        ),
    )
    why = f"{name} must have used up the lost GTIDs, and have committed nothing else since the plan"
    yield check_of(setting, name, guards, why=why)


def _beside(action: StartChannel | AutoPositionOn, setting: Setting) -> Iterator[Check]:
    """Yield a check of each other source of the server: it must have the history that was read.

    After a reset or a crash it delivers later transactions without the earlier ones, which the
    started channel would then deliver after them.
    """
    for channel in setting.server.channels:
        name = channel.source or ""
        if channel.name == action.channel or name not in setting.before.servers:
            continue
        history = setting.executed(name)
        why = (
            f"{action.server} also receives from {name}, whose history must be the one that the"
            " plan read"
        )
        yield check_of(setting, name, (keeps_history(name, history),) if history else (), why=why)


def _below(action: StartChannel | AutoPositionOn, setting: Setting) -> Iterator[Check]:
    """Yield a check of each server to which a channel's transactions continue."""
    if not setting.arriving:
        return
    for name in below(setting.before, action.server):
        arriving = setting.after[name].executed - setting.before[name].executed
        server_uuid = setting.before[name].server_uuid
        history = setting.executed(name)
        changed = action.rows if arriving else ()
        rows = (
            Guard(
                row_is(row.table, key_condition(row.table, row.key_image), row.before),
                f"{name}: a row of {row.table.name} that arriving transactions change is not as it"
                " was when the plan was made; audit and plan again",
            )
            for row in changed
        )
        # In a ring the source is also downstream, and clients may write to it. What another server
        # below commits is errant, and may conflict with what arrives.
        sends = name in upstream(setting.before, action.server)
        in_order = isinstance(action, StartChannel) and action.in_order
        quiet = arriving and (action.rows or in_order or not sends)
        guards = (
            *((keeps_history(name, history),) if history else ()),
            *((commits_nothing(name, server_uuid, history),) if quiet else ()),
            *((not_by_hand(name, none_executed(arriving)),) if arriving else ()),
            *tables_there(name, changed),
            *rows,
        )
        why = (
            f"replication also delivers to {name} what {action.server} receives, and it must match"
            " there"
        )
        yield check_of(setting, name, guards, why=why, reads_rows=bool(changed))

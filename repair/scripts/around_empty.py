"""Conditions on other servers before GTIDs are executed without their content.

1. An action may declare transactions unneeded because only another server holds them. That server
   must not have committed more of them since. Otherwise the cause would still exist, and the plan
   would not answer it. What the holder receives from its own sources grows continuously and has no
   significance.
2. A downstream server that has the content of what becomes empty must not have lost it: it would
   receive it empty.
3. A server on which they are missing, and that gets them from another channel, must still have that
   channel. If it was pointed to this server, it would get them empty as well.
4. If earlier steps take rows back, those steps must have completed.
5. Pure: conditions are computed from the plan's last readings.
"""

from collections.abc import Iterator
from uuid import UUID

from binlog.quoting import quote_string
from gtid import GtidSet
from repair.model.actions import AppendPurged, InjectEmpty, ResetAndPurge
from repair.model.replication_model import below, upstream
from repair.scripts.procedure import Setting
from repair.scripts.row_procedures import row_is
from repair.scripts.server_checks import check_of, tables_there
from repair.scripts.steps import Check
from repair.sql.guard import Guard
from repair.sql.privileges import StatementKind
from repair.sql.script import GNO_MAX, literal, same_channels


def around_empty(
    action: InjectEmpty | AppendPurged | ResetAndPurge, setting: Setting
) -> Iterator[Check]:
    """Yield the checks of an action; none of a holder from which the server receives."""
    above = upstream(setting.before, action.server)
    for name in setting.seen:
        if name not in (action.server, *above) and setting.executed(name) & action.gtids:
            yield _no_more_than_seen(name, setting)
    if isinstance(action, InjectEmpty):
        yield from _keeping(action, setting)
        yield from _still_elsewhere(action, setting)
        yield from _undone(action, setting)


def _keeping(action: InjectEmpty, setting: Setting) -> Iterator[Check]:
    """Yield a check for each downstream server that has the content that becomes empty upstream.

    After a crash that lost it, or a reset, the server would receive an empty transaction instead.
    """
    if not action.rows_are_there:
        return
    for name in below(setting.before, action.server):
        held = setting.executed(name) & action.gtids
        if held:
            still_there = Guard(
                f"GTID_SUBSET({literal(held)}, @@GLOBAL.gtid_executed)",
                f"{name}: it has lost transactions since the plan was made, and would receive them"
                " as empty ones; audit and plan again",
            )
            why = f"otherwise {name} would receive the empty transactions of {action.server}"
            yield check_of(setting, name, (still_there,), why=why)


def _still_elsewhere(action: InjectEmpty, setting: Setting) -> Iterator[Check]:
    """Yield a check for each server that misses what this one has and is not downstream of it."""
    if not action.rows_are_there:
        return
    beneath = below(setting.before, action.server)
    for name in setting.seen:
        if name == action.server or name in beneath or action.gtids <= setting.executed(name):
            continue
        guard = same_channels(name, setting.before[name].version, setting.channels(name))
        why = f"{name} must not get the empty transactions of {action.server}"
        yield check_of(setting, name, (guard,), why=why, kinds=(StatementKind.READ_CHANNELS,))


def _undone(action: InjectEmpty, setting: Setting) -> Iterator[Check]:
    """Yield a check for each server on which earlier steps set rows back: they must have completed.

    After the empty transactions the sets are equal, and no plan would read these rows again.
    """
    for each in action.undone:
        taken_back = (
            Guard(
                f"NOT ({row_is(row.table, row.where, row.replica)})",
                f"{each.server}: a row of {row.table.name} is as the transactions left it: its"
                " undo did not finish, or it was written again; audit and plan again",
            )
            for row in each.rows
        )
        why = f"the rows on {each.server} must be undone first"
        guards = (*tables_there(each.server, each.rows), *taken_back)
        yield check_of(setting, each.server, guards, why=why, reads_rows=True)


def _no_more_than_seen(name: str, setting: Setting) -> Check:
    """Return the check that a server has no transactions but those read, and those it receives."""
    received = set(_received(name, setting))
    seen = GtidSet.union_of(map(setting.executed, setting.seen))
    # A replica that was read later may show more of its own GTIDs.
    seen -= (seen - setting.executed(name)).from_uuid(setting.before[name].server_uuid)
    endless = [f"{tsid}:1-{GNO_MAX}" for tsid in seen.tsids if tsid.uuid in received]
    endless += [f"{uuid}:1-{GNO_MAX}" for uuid in received]
    known = GtidSet.parse(",".join(endless))
    for uuid in received:
        seen = seen.without_uuid(uuid)
    no_more = Guard(
        f"GTID_SUBSET(@@GLOBAL.gtid_executed, {quote_string(str(seen | known))})",
        f"{name}: it has committed more transactions that {setting.server.name} does not have;"
        " stop all writes to it; audit and plan again",
    )
    why = f"{name} must not have committed more of its own since the plan was made"
    return check_of(setting, name, (no_more,), why=why)


def _received(name: str, setting: Setting) -> Iterator[UUID]:
    for source in upstream(setting.before, name):
        yield setting.before[source].server_uuid
    for channel in setting.channels(name):
        if channel.source_uuid is not None:
            yield channel.source_uuid

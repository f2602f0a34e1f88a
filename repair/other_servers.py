"""What must still be true on other servers before a step: checks, each with its own script.

1. A script reads one server. If an action declares transactions unneeded because only another
   server holds them, that server must not have committed more of them since. Otherwise the cause
   would still exist, and the plan would not answer it.
2. What the holder receives from its own sources grows continuously and has no significance. What
   becomes empty must not reach servers that have the content, or are to get it (around_empty.py).
3. If a channel is stopped in order to continue elsewhere, its source must not have purged what the
   channel requests then (purged_since.py). What a started channel delivers continues to the
   downstream servers. Each of them must have the history and the rows that the plan read.
4. If rows are undone, no server may have received their transactions since, nor have a channel that
   will deliver them. It would keep what the others take back. Its GTIDs alone do not show it,
   because the plan itself uses them up there. The rows show it, and so does what waits in a relay
   log.
5. If transactions are redone, the servers that receive them must have the rows as before, and those
   that have them as after. Stopped channels downstream must still be stopped: no rows were compared
   downstream of them.
6. Pure: conditions are computed from the plan's last readings.
"""

from collections.abc import Iterator
from uuid import UUID

from binlog.quoting import quote_string
from gtid import GtidSet
from repair.actions import (
    Action,
    AppendPurged,
    AutoPositionOn,
    InjectEmpty,
    MovePast,
    RedoTransactions,
    ResetAndPurge,
    StartChannel,
    UndoRows,
)
from repair.around_empty import around_empty
from repair.channel_queries import ChannelQuestions, waits_here
from repair.checks import check_of, joined, tables_there
from repair.guard import Guard
from repair.model import below, upstream
from repair.privileges import StatementKind
from repair.procedure import Setting
from repair.purged_since import still_sends
from repair.row_procedures import row_is
from repair.script import (
    GNO_MAX,
    commits_nothing,
    gained_nothing,
    keeps_history,
    literal,
    none_executed,
    not_by_hand,
    same_channels,
)
from repair.semi_sync import commits_without_waiting
from repair.steps import Check
from repair.table_questions import met_if_there, would_be_shown
from repair.transaction_content import key_condition


def checks_before(action: Action, setting: Setting) -> tuple[Check, ...]:
    """Return the checks of an action; none where the server receives from the holder."""
    if isinstance(action, MovePast):
        return tuple(_still_sends(action, setting))
    if isinstance(action, StartChannel | AutoPositionOn):
        return joined(
            (
                *(_still_sends(action, setting) if isinstance(action, AutoPositionOn) else ()),
                *_sends_no_more(action, setting),
                *_beside(action, setting),
                *_below(action, setting),
            )
        )
    if isinstance(action, UndoRows):
        return tuple(_still_missing(action, setting))
    if isinstance(action, RedoTransactions):
        return tuple(_fits_elsewhere(action, setting))
    if not isinstance(action, InjectEmpty | AppendPurged | ResetAndPurge):
        return ()
    above = upstream(setting.before, action.server)
    holders = (
        _no_more_than_seen(name, setting)
        for name in setting.seen
        if name != action.server and name not in above and setting.executed(name) & action.gtids
    )
    return joined((*holders, *around_empty(action, setting)))


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
        # In a ring the source is also downstream: nothing arrives there, and it may continue to
        # commit.
        quiet = arriving and (action.rows or (isinstance(action, StartChannel) and action.in_order))
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


def _still_missing(action: UndoRows, setting: Setting) -> Iterator[Check]:
    """Yield a check of each server that did not have the transactions when the plan was made.

    A server may not have the table. In that case it has not received the rows either.
    """
    table = action.rows[0].table
    missing = none_executed(action.gtids)
    for name in setting.seen:
        executed = setting.executed(name)
        if action.gtids <= executed:
            continue
        own = action.gtids.from_uuid(setting.before[name].server_uuid) - executed
        untaken = Guard(
            none_executed(own),
            f"{name}: it has used the GTIDs for transactions of its own since the plan was made;"
            f" {action.server} skips these; audit with --content and plan again",
        )
        sees_it = Guard(
            would_be_shown(table.schema, table.table),
            f"{name}: this account cannot see whether {table.name} exists; grant it SELECT on the"
            " table (not by a role)",
        )
        arrived = (
            Guard(
                f"{missing} OR NOT @met",
                f"{name}: it has received the transactions since the plan was made; after the undo"
                f" on {action.server} the two would differ; audit and plan again",
                tries=met_if_there(
                    table.schema, table.table, row_is(row.table, row.where, row.replica)
                ),
            )
            for row in action.rows
        )
        version = setting.before[name].version
        on_the_way = (
            same_channels(name, version, setting.channels(name)),
            Guard(
                f"NOT {waits_here(version, literal(action.gtids))}",
                f"{name}: it has received the transactions since the plan was made and not applied"
                f" them yet; after the undo on {action.server} the two would differ; audit and"
                " plan again",
            ),
        )
        why = f"the transactions that are undone on {action.server} must not have arrived on {name}"
        # Its own step, which uses up the GTIDs there, follows this one.
        commits = commits_without_waiting(name, version)
        guards = (*((untaken,) if own else ()), sees_it, *arrived, *on_the_way, commits)
        kinds = (StatementKind.READ_CHANNELS,)
        yield check_of(setting, name, guards, why=why, reads_rows=True, kinds=kinds)


def _fits_elsewhere(action: RedoTransactions, setting: Setting) -> Iterator[Check]:
    """Yield a check of each server that receives or has what is redone.

    The script itself reads only the rows of its own server. If rows were not compared, the
    transactions that a receiving server itself committed since may have changed them.
    """
    receiving = below(setting.before, action.server, running=True)
    for name, server in setting.before.servers.items():
        has_them = bool(action.gtids & server.executed)
        if name == action.server or (name not in receiving and not has_them):
            continue
        guards = tuple(_rows_fit(action, name, has_them=has_them))
        if has_them:
            guards = (_still_has(name, action.gtids & server.executed), *guards)
        elif action.rows is None:
            so = "they may have changed the rows"
            executed = setting.executed(name)
            guards = (commits_nothing(name, server.server_uuid, executed, so=so),)
        if guards:
            why = f"what is redone on {action.server} must match the rows of {name}"
            yield check_of(setting, name, guards, why=why, reads_rows=bool(action.rows))
    yield from _still_stopped(action, setting, sending={action.server, *receiving})


def _still_stopped(
    action: RedoTransactions, setting: Setting, *, sending: set[str]
) -> Iterator[Check]:
    """Yield a check of each stopped channel that would deliver what is redone, if it ran."""
    for name, server in setting.before.servers.items():
        stopped = [
            ChannelQuestions.of(server.version, each.name).runs
            for each in server.channels
            if each.source in sending and (each.is_stuck or not each.running)
        ]
        if name in sending or action.gtids & server.executed or not stopped:
            continue
        runs = " OR ".join(f"IFNULL({each}, FALSE)" for each in stopped)
        guard = Guard(
            f"NOT ({runs}) OR NOT ({none_executed(action.gtids)})",
            f"{name}: its replication runs now, but was stopped when the plan was made: what is"
            f" redone on {action.server} would reach rows that were not compared; audit and plan"
            " again",
        )
        why = f"what is redone on {action.server} must not reach {name} yet"
        yield check_of(setting, name, (guard,), why=why, kinds=(StatementKind.READ_CHANNELS,))


def _still_has(name: str, gtids: GtidSet) -> Guard:
    return Guard(
        f"GTID_SUBSET({literal(gtids)}, @@GLOBAL.gtid_executed)",
        f"{name}: gtid_executed lost transactions since the plan was made, as RESET BINARY LOGS AND"
        " GTIDS does; it would receive them again; audit and plan again",
    )


def _rows_fit(action: RedoTransactions, name: str, *, has_them: bool) -> Iterator[Guard]:
    begun = f"NOT ({none_executed(action.gtids)})"
    yield from tables_there(name, action.rows or ())
    for row in action.rows or ():
        where = key_condition(row.table, row.key_image)
        is_before = f"{row_is(row.table, where, row.before)} OR {begun}"
        yield Guard(
            row_is(row.table, where, row.after) if has_them else is_before,
            f"{name}: a row of {row.table.name} is not as it was when the plan was made: it would"
            f" differ from what is redone on {action.server}, or stop the applier; audit and plan"
            " again",
        )


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

"""Conditions on other servers before a server undoes or redoes the rows of transactions.

1. If rows are undone, no server may have received their transactions since, nor have a channel that
   will deliver them. It would keep what the others take back. Its GTIDs do not show it: the plan
   itself uses them up there, and a client may have written the same rows under other GTIDs, which
   then are on the server of the undo as well. The rows show it, and so does what waits in a relay
   log.
2. If transactions are redone, the servers that receive them must have the rows as before, and those
   that have them as after. Stopped channels downstream must still be stopped: no rows were compared
   downstream of them.
3. Pure: conditions are computed from the plan's last readings.
"""

from collections.abc import Iterator

from gtid import GtidSet
from repair.content.transaction_content import key_condition
from repair.model.actions import MakeRowsAlike, RedoTransactions, UndoRows
from repair.model.replication_model import below
from repair.model.semi_sync import commits_without_waiting
from repair.scripts.procedure import Setting
from repair.scripts.row_procedures import row_is
from repair.scripts.server_checks import check_of, tables_there
from repair.scripts.steps import Check
from repair.sql.channel_queries import ChannelQuestions, waits_here
from repair.sql.guard import Guard
from repair.sql.privileges import StatementKind
from repair.sql.script import commits_nothing, literal, none_executed, same_channels
from repair.sql.table_questions import met_if_there, would_be_shown


def around_undo(action: UndoRows, setting: Setting) -> Iterator[Check]:
    """Yield a check of each server that did not have the transactions when the plan was made.

    A server may not have the table. In that case it has not received the rows either.
    """
    table = action.rows[0].table
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
                "NOT @met",
                f"{name}: a row of {row.table.name} is as the transactions leave it: it has"
                " received them, or a client has written the same since the plan was made; after"
                f" the undo on {action.server} the two would differ; audit and plan again",
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


def around_alike(action: MakeRowsAlike, setting: Setting) -> Iterator[Check]:
    """Yield the check that the source still has the version of the rows that is written (E4).

    The rows of a failing transaction (A2) are set as it expects them, whatever the source has now.
    """
    if action.until_executed or action.source not in setting.seen:
        return
    same = (
        Guard(
            row_is(row.table, row.where, row.source),
            f"{action.source}: a row of {row.table.name} was written since the plan was made;"
            f" {action.server} would get an older version; audit and plan again",
        )
        for row in action.rows
    )
    guards = (*tables_there(action.source, action.rows), *same)
    why = f"{action.source} must still have the version that is written on {action.server}"
    yield check_of(setting, action.source, guards, why=why, reads_rows=True)


def around_redo(action: RedoTransactions, setting: Setting) -> Iterator[Check]:
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

"""Scripts that change a server's GTID sets: empty transactions, gtid_purged, and the reset."""

from collections.abc import Iterator

from gtid import GtidSet
from repair.content.transaction_content import key_condition
from repair.model.actions import AppendPurged, InjectEmpty, ResetAndPurge
from repair.model.semi_sync import commits_without_waiting
from repair.scripts.called_sets import (
    appended,
    no_thread_runs,
    ranges_added,
    skipped_by_calls,
    takes_ranges,
)
from repair.scripts.lost_own_gtids import highest_first, lost_own, not_reused
from repair.scripts.procedure import Procedure, Setting
from repair.scripts.row_procedures import row_is
from repair.scripts.server_checks import tables_there
from repair.scripts.unread_sources import reconnections
from repair.sql.channel_queries import ChannelQuestions, for_channel, waits_here
from repair.sql.guard import Guard
from repair.sql.privileges import StatementKind
from repair.sql.script import (
    RUN_TODO,
    empty_transactions,
    executed,
    if_go,
    keeps_history,
    literal,
    not_owned,
    still_logs,
    transactions,
    unless_done,
)

_GTID_NEXT, _GTID_PURGED = StatementKind.SET_GTID_NEXT, StatementKind.SET_GTID_PURGED
_CALLS_PER_SECOND = 20  # of a service's procedure, which also writes its own history
_EMPTY_PER_SECOND = 200  # commits with sync_binlog = 1 on an ordinary disk
_REMAIN = "cannot be undone: an executed GTID stays in the history of every server"
_HERE = "@@GLOBAL.gtid_executed"


def _as_seen(action: InjectEmpty | AppendPurged, setting: Setting) -> tuple[Guard, ...]:
    """Return the guards that a server has the history of the plan and is not committing these.

    The rows were compared under that history: a RESET or a crash changes both.
    """
    name, seen = action.server, setting.executed(action.server)
    so = "its rows may also be different now"
    return (
        not_owned(name, action.gtids),
        *((keeps_history(name, seen, so=so),) if seen else ()),
        *_received_since(action, setting),
        *_gives_no_gtids(action, setting),
    )


def _gives_no_gtids(action: InjectEmpty | AppendPurged, setting: Setting) -> Iterator[Guard]:
    """Require that a channel which stopped at one of these continues once it is executed.

    One with ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS gives the transaction the next number instead,
    and stops at it again (seen on 9.7.4).
    """
    for channel in setting.server.channels:
        asks = ChannelQuestions.of(setting.server.version, channel.name)
        if not channel.stuck_at & action.gtids or asks.assigned_gtids == "NULL":
            continue
        yield Guard(
            f"{asks.assigned_gtids} IS NULL",
            f"{action.server}: its channel numbers transactions itself"
            " (ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS), so no GTID skips one; nothing was changed;"
            " move it past the event by position",
        )


def _received_since(action: InjectEmpty | AppendPurged, setting: Setting) -> Iterator[Guard]:
    """Yield the guard that none of these waits in a relay log now, if none did before.

    Those received since, by a channel that was stopped or behind, arrive with their content. The
    plan itself leaves out a gap of received ones (H8), or a transaction that fails (A2).
    """
    channels = setting.channels(action.server)
    before = any(each.gtid_retrieved & action.gtids for each in channels)
    if before or not setting.dialect.has_channels:
        return
    yield Guard(
        f"NOT {waits_here(setting.server.version, literal(action.gtids))}",
        f"{action.server}: it has received some of these since the plan was made and not applied"
        " them yet; nothing was changed; audit and plan again",
    )


def inject_empty(action: InjectEmpty, setting: Setting) -> Procedure:
    """Return the script that commits empty transactions, one after the other."""
    name, count = action.server, action.gtids.gtid_count
    kind = StatementKind.SET_TAGGED_GTID_NEXT if _has_tags(action.gtids) else _GTID_NEXT
    calls = setting.calls_for(kind)
    per_second = _EMPTY_PER_SECOND if calls is None else _CALLS_PER_SECOND
    own = lost_own(action, setting)
    again = "run the script again"
    if own:
        again += "; if it stops because all are executed, go on with the next script"
    return Procedure(
        title=f"commit {transactions(count, 'empty ')} on {name}",
        preconditions=(
            *_as_seen(action, setting),
            *not_reused(name, own, setting),
            *_rows_are_there(action),
            *((still_logs(name),) if setting.server.has_log else ()),
            commits_without_waiting(name, setting.server.version),
        ),
        statements=(*_committed(action.gtids, name, own), "SET SESSION gtid_next = 'AUTOMATIC';")
        if calls is None
        else tuple(skipped_by_calls(action.gtids, calls)),
        verifications=(executed(name, action.gtids),),
        check=f"SELECT GTID_SUBTRACT({literal(action.gtids)}, @@GLOBAL.gtid_executed);  -- empty",
        undo=_REMAIN,
        estimated_seconds=1 + count // per_second,
        estimate_assumes=f"{per_second} commits a second",
        if_stopped=f"some of the GTIDs are executed, the others are not; {again}",
        risk="the content of these transactions will never be applied here",
        needs=(
            kind if calls is None else StatementKind.CALL_SERVICE,
            StatementKind.READ_CHANNELS,
            *((StatementKind.READ_ROWS,) if action.rows else ()),
        ),
    )


def _committed(gtids: GtidSet, name: str, own: GtidSet) -> Iterator[str]:
    yield from empty_transactions(gtids - own)
    yield from highest_first(name, own)


def _rows_are_there(action: InjectEmpty) -> Iterator[Guard]:
    """Yield the guards that rows are still as the transactions left them, until they are executed.

    Otherwise the empty transactions would hide that the rows are missing.
    """
    done = f"GTID_SUBSET({literal(action.gtids)}, @@GLOBAL.gtid_executed)"
    yield from tables_there(action.server, action.rows)
    for row in action.rows:
        where = key_condition(row.table, row.key_image)
        yield Guard(
            f"{done} OR {row_is(row.table, where, row.after)}",
            f"{action.server}: a row of {row.table.name} is not as it was when the plan was made;"
            " nothing was changed; audit and plan again",
        )


def append_purged(action: AppendPurged, setting: Setting) -> Procedure:
    """Return the script with one statement, for the GTIDs that are missing when it runs."""
    name = action.server
    kind = StatementKind.SET_TAGGED_GTID_PURGED if _has_tags(action.gtids) else _GTID_PURGED
    calls = setting.calls_for(kind)
    by_range = takes_ranges(calls, setting.server, action.gtids)
    return Procedure(
        title=f"add {transactions(action.gtids.gtid_count)} to gtid_purged on {name}",
        preconditions=(
            *_as_seen(action, setting),
            *((no_thread_runs(name),) if by_range else ()),
        ),
        statements=tuple(ranges_added(calls, action.gtids))
        if calls is not None and by_range
        else appended(action.gtids, calls),
        verifications=(executed(name, action.gtids),),
        check=f"SELECT GTID_SUBTRACT({literal(action.gtids)}, @@GLOBAL.gtid_executed);  -- empty",
        undo=_REMAIN,
        estimated_seconds=2,
        estimate_assumes="one rotation of the binary log",
        if_stopped="some of the GTIDs may have been added; run the script again"
        if by_range
        else "either all of the GTIDs were added or none; run the script again",
        risk="the content of these transactions will never be applied here, and this server can"
        " never send them",
        warnings=(
            (
                f"no binary log of {name} shows the content of these GTIDs. An audit reports them"
                f" as E4 (executed and never logged) only while binary logs show that {name} was"
                " in use before they were committed. It no longer reports them once this plan is"
                " accepted (--accepted DIR, or `policy.accepted` of the fleet file). If no log"
                f" shows that use, it reports OK, although the rows may be missing on {name}"
            ),
            (
                f"a replica of {name} that is not in this plan and does not have these GTIDs will"
                " get error 1236"
            ),
        ),
        needs=(
            StatementKind.CALL_SERVICE
            if by_range or (calls is not None and calls.append_purged)
            else kind,
            StatementKind.READ_CHANNELS,
        ),
    )


def reset_and_purge(action: ResetAndPurge, setting: Setting) -> Procedure:
    """Return the script that deletes the history and writes it again with the missing GTIDs."""
    name, goal, here = action.server, action.executed | action.gtids, _HERE
    skip = setting.dialect.skip_replica_start
    finished = f"GTID_SUBSET({literal(goal)}, {here})"
    undisturbed = (
        f"{here} = '' OR (GTID_SUBSET({here}, {literal(action.executed)})"
        f" AND GTID_SUBSET({literal(action.executed)}, {here}))"
    )
    return Procedure(
        title=f"reset the history of {name} and write it again with"
        f" {transactions(action.gtids.gtid_count, 'more ')}",
        preconditions=(
            Guard(
                f"GTID_SUBSET(@@GLOBAL.gtid_purged, {here})",
                f"{name}: a reset is in progress; run this again",
            ),
            Guard(
                f"@@GLOBAL.gtid_owned = '' OR {finished}",
                f"{name}: transactions are running; stop all writes to it, then run this again",
            ),
            Guard(
                f"{finished} OR {undisturbed}",
                f"{name}: gtid_executed is not what the plan was made for; stop all writes, wait"
                " until the GTID sets agree, and plan again; nothing was changed",
            ),
        ),
        statements=_reset_statements(action, setting, finished=finished, undisturbed=undisturbed),
        verifications=(executed(name, goal),),
        check=f"SELECT GTID_SUBTRACT({literal(goal)}, {here});  -- empty",
        undo="cannot be undone: the binary logs are gone; take a copy of them first",
        estimated_seconds=10,
        estimate_assumes="a few hundred binary log files to delete",
        if_stopped=f"gtid_executed of {name} may be EMPTY: let no client write to it, start none"
        " of its channels, and run this script again immediately; it has the whole set. A restart"
        f" of mysqld starts the channels automatically, unless {skip} is set",
        risk="all binary logs of this server are deleted; point-in-time recovery from them ends"
        " here, and replicas that need them get error 1236",
        warnings=(
            (
                "THE DATA WAS NOT CHECKED: run this only if it is known to be equal. Compare the"
                f" tables of {name} with its source first (`gtid-audit repair check-data`)"
            ),
            f"first, stop all writes to {name} and to its sources, and copy its binary logs",
            (
                f"first, set {skip} in the configuration file of {name}, and remove it"
                " after the last step: if mysqld is restarted while gtid_executed is empty, its"
                " channels would fetch and apply everything again that the data already contains"
            ),
            *reconnections(action, setting),
        ),
        needs=(
            StatementKind.RESET_LOGS,
            StatementKind.SET_GTID_PURGED,
            StatementKind.STEER_CHANNEL,
            StatementKind.READ_CHANNELS,
        ),
    )


def _has_tags(gtids: GtidSet) -> bool:
    return any(tsid.tag for tsid in gtids.tsids)


def _reset_statements(
    action: ResetAndPurge, setting: Setting, *, finished: str, undisturbed: str
) -> tuple[str, ...]:
    """Return the reset, which can be run again from any point at which it stopped."""
    name, goal, here = action.server, action.executed | action.gtids, _HERE
    dialect = setting.dialect
    return (
        f"SELECT {here} AS `gtid_executed before: keep this`;",
        f"SET @done = {finished};",
        *(
            line
            for channel in setting.server.channels
            for line in unless_done(f"{dialect.stop_replica}{for_channel(dialect, channel.name)}")
        ),
        *Guard(
            f"@done OR {undisturbed}",
            f"{name}: gtid_executed changed while its channels stopped; stop all writes and plan"
            " again; its binary logs are unchanged, its channels are stopped",
        ).statements(),
        (
            f"SET @todo = IF(@go AND NOT @done AND {here} <> '',"
            f" '{dialect.reset_binary_logs_and_gtids}', 'DO 0');"
        ),
        *RUN_TODO,
        *unless_done(f"SET GLOBAL gtid_purged = {literal(goal)}"),
        *Guard(
            f"{finished} AND (@done OR GTID_SUBSET({here}, {literal(goal)}))",
            f"{name}: gtid_executed is not what it should be; do NOT start its channels; run"
            " this script again",
        ).statements(),
        *(
            line
            for channel in action.restart
            for line in if_go(f"{dialect.start_replica}{for_channel(dialect, channel)}")
        ),
    )

"""Guards of a script that starts a channel: it was not started since, and nothing arrived before.

They check what happened between the plan and its script. Rows alone do not show it, because a row
may have been changed and changed back.

Another guard checks that the server at the source's address is the audited one. Only a connection
shows that, so the script starts the receiver first (seen on 9.7.4: SOURCE_UUID belongs to the
connected server as soon as SERVICE_STATE is ON). What the receiver has received by then waits in
the relay log.
"""

from collections.abc import Iterator
from uuid import UUID

from binlog.quoting import quote_string
from gtid import GtidSet
from repair.model.actions import AutoPositionOn, StartChannel
from repair.model.replication_model import upstream
from repair.scripts.procedure import Setting
from repair.sql.channel_queries import ChannelQuestions, uptime_question
from repair.sql.channel_statements import ChannelStatements
from repair.sql.guard import Guard, started_by
from repair.sql.script import (
    GNO_MAX,
    RUN_TODO,
    commits_nothing,
    has_begun,
    literal,
    none_executed,
    not_by_hand,
    some_executed,
    unless_done,
    until,
    until_runs,
)
from topology.readings.snapshot import START_SLACK, ThreadState


def started(
    channel: str,
    setting: Setting,
    asks: ChannelQuestions,
    statements: ChannelStatements,
    *,
    is_stopped: bool = False,
) -> Iterator[str]:
    """Start a channel: first only its receiver, if that is stopped.

    It is stopped if the plan read it so, or if the script stopped it. A connection survives a
    change of the address (DNS), so a running channel may be connected to another server than a new
    one would.

    5.6 has no table that shows the source in time. The UUID in its connection repository is updated
    when the applier may already have passed the first transactions of another server (seen on
    5.6.24).

    A service's procedure starts both threads, and refuses while one of them runs.
    """
    source_uuid, seen = setting.source_uuid(channel), setting.channel(channel)
    stands = is_stopped or seen.receiver is ThreadState.STOPPED
    if not statements.start_receiver:
        yield from _started_by_call(asks, statements)
        return
    if setting.dialect.has_channels and source_uuid is not None and stands:
        yield from unless_done(statements.start_receiver)
        yield from until(asks.receives)
        stop = quote_string(statements.stop_receiver)
        yield from _answered(setting, asks, source_uuid=source_uuid, or_else=stop)
    yield from unless_done(statements.start)
    yield from until_runs(asks)


def stopped(asks: ChannelQuestions, statements: ChannelStatements) -> Iterator[str]:
    """Stop a channel unless the goal is reached. A service refuses to stop one that is stopped."""
    if statements.start_receiver:
        yield from unless_done(statements.stop)
        return
    yield from _if(f"NOT @done AND {asks.any_runs}", statements.stop)


def _started_by_call(asks: ChannelQuestions, statements: ChannelStatements) -> Iterator[str]:
    """Start a channel that neither runs by now, as after a switch to auto-position, nor half runs.

    Half of it may not run: the service refuses to start the other half.
    """
    yield from _if(f"NOT @done AND {asks.any_runs} AND NOT {asks.runs}", statements.stop)
    yield from _if(f"NOT @done AND NOT {asks.runs}", statements.start)
    yield from until_runs(asks)


def _if(condition: str, statement: str) -> Iterator[str]:
    yield f"SET @todo = IF(@go AND {condition}, {quote_string(statement)}, 'DO 0');"
    yield from RUN_TODO


def _answered(
    setting: Setting, asks: ChannelQuestions, *, source_uuid: UUID, or_else: str
) -> Iterator[str]:
    """Require that the receiver is connected to the audited server; otherwise stop it again."""
    name = setting.server.name
    yield (
        f"SET @connected = @done OR IFNULL({asks.receives}, FALSE),"
        f" @same = @done OR IFNULL({asks.source_uuid} = {quote_string(str(source_uuid))}, FALSE);"
    )
    yield f"SET @todo = IF(@go AND NOT (@connected AND @same), {or_else}, 'DO 0');"
    yield from RUN_TODO
    yield from Guard(
        "@connected",
        f"{name}: its receiver does not connect and was stopped again; read Last_IO_Error in"
        f" {setting.dialect.show_replica_status}, then run this again",
    ).statements()
    yield from Guard(
        "@same",
        f"{name}: another server than the audited one answers at the source's address; the"
        " receiver was stopped again and nothing was applied; audit and plan again",
    ).statements()


def not_halted(action: StartChannel, setting: Setting, asks: ChannelQuestions) -> Iterator[Guard]:
    """Require that no operator started the channel and stopped it since: UNTIL, STOP.

    No table shows the condition of START REPLICA UNTIL. It leaves the receiver running, and part of
    what waited is executed. An applier that an error stopped has another guard.
    """
    name, arriving = action.server, setting.arriving
    channels, seen = setting.channels(name), setting.channel(action.channel)
    if seen.applier is not ThreadState.STOPPED:
        return
    stands = [
        *([asks.only_receives] if seen.receiver is ThreadState.STOPPED else []),
        *([some_executed(arriving)] if arriving and len(channels) == 1 else []),
    ]
    if stands:
        yield Guard(
            f"IFNULL({asks.runs}, FALSE) OR NOT ({' OR '.join(stands)})",
            f"{name}: the channel was started since the plan was made, and is stopped again"
            " (UNTIL, STOP, an interrupted script): an operator may want that; audit and plan"
            " again",
        )


def stands_still(action: StartChannel, setting: Setting, asks: ChannelQuestions) -> Iterator[Guard]:
    """Require that an applier is still stopped at its error if it has passed transactions (H8).

    The relay log has them, and a start continues after them. CHANGE REPLICATION SOURCE and RESET
    REPLICA delete the relay log, and so does relay_log_recovery at a restart. The source then sends
    them again, and their rows may be present. Each of these also clears the error. 5.6 has no table
    that shows it.
    """
    name, seen = action.server, setting.channel(action.channel)
    errors = {seen.applier_errno, *(worker.errno for worker in seen.workers)} - {0}
    passed = setting.known(action.channel).passed
    if not (errors and passed) or asks.applier_errno == "NULL":
        return
    known = ", ".join(str(each) for each in sorted(errors))
    yield Guard(
        f"IFNULL({asks.runs}, FALSE) OR IFNULL({asks.applier_errno}, 0) IN ({known})",
        f"{name}: the applier's error was cleared since the plan was made: if its relay log was"
        f" deleted, {passed.shortened()} would be applied again; audit and plan again",
    )


def not_restarted(setting: Setting) -> Iterator[Guard]:
    """Require that a server was not restarted since it was read.

    After a crash that lost its newest transactions, a channel with a file position continues after
    them. With auto-position they would be fetched after later ones. They may have been applied
    after the reading, so that its gtid_executed does not show the loss.
    """
    seen = setting.seen[setting.server.name]
    started_at = seen.started_at
    if started_at is None:
        return
    in_time = started_by(uptime_question(setting.server.version), started_at + START_SLACK)
    yield Guard(
        f"IFNULL({in_time}, FALSE)",
        f"{setting.server.name}: it was restarted since the plan was made (or does not show its"
        " uptime), and may have lost its newest transactions; audit and plan again",
    )


def has_what_was_committing(
    action: AutoPositionOn, setting: Setting, asks: ChannelQuestions
) -> Iterator[Guard]:
    """Require that a replica now has what its source was committing when both were read.

    It may already be in the source's log, and a file position that was set may have passed it. With
    auto-position it would be fetched after later transactions. A healthy channel delivers it.
    """
    source = setting.seen.get(setting.known(action.channel).source or "")
    if source is None or setting.channel(action.channel).auto_position or not source.gtid_owned:
        return
    has_all = f"GTID_SUBSET({literal(source.gtid_owned)}, @@GLOBAL.gtid_executed)"
    yield Guard(
        f"IFNULL({asks.auto_position} = 1, FALSE) OR {has_all}",
        f"{setting.server.name}: it does not have what {source.name} was committing when the plan"
        " was made; wait for it and run this again; if it does not arrive, audit and plan again",
    )


def commits_nothing_meanwhile(action: AutoPositionOn, setting: Setting) -> Iterator[Guard]:
    """Require that a server whose channel is stopped commits nothing until it is switched.

    What its source commits meanwhile would be applied after that. In a ring, clients write to a
    server continuously: there only compared rows count.
    """
    channel = setting.known(action.channel)
    if channel.running or channel.source not in setting.before.servers:
        return
    if action.server not in upstream(setting.before, channel.source or ""):
        server = setting.server
        yield commits_nothing(server.name, server.server_uuid, setting.executed(action.server))


def writes_nothing(
    action: StartChannel, setting: Setting, asks: ChannelQuestions
) -> Iterator[Guard]:
    """Require that no transaction may have changed the compared rows, or arrived before them.

    A row that looks as before may have been changed and changed back. Until the first waiting
    transaction is applied, nothing else may have been executed: not with a tag, and not under the
    UUID of another server, unless another channel delivers it.
    """
    server, executed = setting.server, setting.executed(action.server)
    if not (action.in_order or action.rows):
        return
    yield commits_nothing(server.name, server.server_uuid, executed)
    if not action.waiting:
        return
    # A running channel has delivered them: this script was stopped after its START.
    begun = f"{none_executed(action.waiting)} OR IFNULL({asks.runs}, FALSE)"
    yield not_by_hand(server.name, begun)
    brought = (
        GtidSet.parse(f"{each.source_uuid}:1-{GNO_MAX}")
        for each in setting.channels(action.server)
        if each.name != action.channel and each.source_uuid is not None
    )
    known = GtidSet.union_of((executed, server.executed, action.waiting, *brought))
    yield Guard(
        f"GTID_SUBSET(@@GLOBAL.gtid_executed, {literal(known)}) OR {has_begun(action.waiting)}",
        f"{server.name}: it has executed transactions that the plan did not see, and waiting"
        " transactions may be older than their rows; nothing was changed; audit and plan again",
    )


def refuses_nothing(
    action: StartChannel, setting: Setting, asks: ChannelQuestions
) -> Iterator[Guard]:
    """Require that the channel's own settings refuse nothing, unless the start was selected.

    A channel that ran with them applied everything that arrived until then; so did one that an
    error stopped. Otherwise, what waits may be refused: DDL that creates a table without a key
    (3750), a statement (3944), or an operation for which its account has no privilege (13496).
    """
    is_stopped_by_error = setting.channel(action.channel).applier_errno != 0
    if action.by_choice or is_stopped_by_error or not setting.arriving:
        return
    if asks.restrictions == "NULL":
        return
    yield Guard(
        f"IFNULL({asks.runs}, FALSE) OR {asks.restrictions} IS NULL",
        f"{action.server}: channel settings may refuse what waits; if not, select"
        " A7=start_channel: ",
        detail=asks.restrictions,
    )


def assigns_no_gtids(action: AutoPositionOn, asks: ChannelQuestions) -> Iterator[Guard]:
    """Require that the channel gives no GTIDs to transactions: auto-position is refused (4014)."""
    if asks.assigned_gtids != "NULL":
        yield Guard(
            f"{asks.assigned_gtids} IS NULL",
            f"{action.server}: ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS excludes auto-position;"
            " nothing was changed",
        )


def account_may_apply(
    action: AutoPositionOn, setting: Setting, asks: ChannelQuestions
) -> Iterator[Guard]:
    """Require that no account checks what a default step fetches (PRIVILEGE_CHECKS_USER).

    The channel may run, and yet stop at an operation that it has not applied since (1142, 13496).
    """
    if action.by_choice or not setting.arriving or asks.checking_user == "NULL":
        return
    yield Guard(
        f"{has_begun(setting.arriving)} OR {asks.checking_user} IS NULL",
        f"{action.server}: its account may not be allowed what is fetched; if it is, select the"
        " strategy: ",
        detail=asks.checking_user,
    )

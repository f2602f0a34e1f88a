"""Guards of a script that starts a channel: it was not started since, nothing came before.

Both are about what happened between the plan and its script. Rows alone do not show it: a row may
have been changed and changed back.

And the server at the source's address is the one that was audited. Only a connection shows it, so
the receiver is started first (seen on 9.7.4: SOURCE_UUID is of the server that answers as soon as
SERVICE_STATE is ON). What it has received by then waits in the relay log.
"""

from collections.abc import Iterator
from uuid import UUID

from gtid import GtidSet
from repair.actions import AutoPositionOn, StartChannel
from repair.dialect import ChannelQuestions, for_channel, uptime_question
from repair.guard import Guard, started_by
from repair.model import upstream
from repair.procedure import Setting
from repair.script import (
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
from topology.quoting import quote_string
from topology.snapshot import START_SLACK, ThreadState


def started(
    channel: str, setting: Setting, asks: ChannelQuestions, *, is_stopped: bool = False
) -> Iterator[str]:
    """Start a channel: first its receiver alone, where that stands.

    It does where the plan saw it, or the script has stopped it. A connection outlives a change of
    the address (DNS), so a channel that ran may reach another server than before.

    5.6 has no table that shows it in time: the UUID in its repository of connections follows when
    the applier may be behind the first transactions of another server (seen on 5.6.24).
    """
    dialect, suffix = setting.dialect, for_channel(setting.dialect, channel)
    source_uuid, seen = setting.source_uuid(channel), setting.channel(channel)
    stands = is_stopped or seen.receiver is ThreadState.STOPPED
    if dialect.has_channels and source_uuid is not None and stands:
        yield from unless_done(f"{dialect.start_replica} IO_THREAD{suffix}")
        yield from until(asks.receives)
        stop = quote_string(f"{dialect.stop_replica} IO_THREAD{suffix}")
        yield from _answered(setting, asks, source_uuid=source_uuid, or_else=stop)
    yield from unless_done(f"{dialect.start_replica}{suffix}")
    yield from until_runs(asks)


def _answered(
    setting: Setting, asks: ChannelQuestions, *, source_uuid: UUID, or_else: str
) -> Iterator[str]:
    """Require that the audited server has answered; otherwise stop the receiver again."""
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
        f"{name}: another server than the audited one answers at the source's address; the receiver"
        " was stopped again, nothing of it was applied; audit and plan again",
    ).statements()


def not_halted(action: StartChannel, setting: Setting, asks: ChannelQuestions) -> Iterator[Guard]:
    """Require that an operator did not start the channel and let it stand since: UNTIL, STOP.

    No table shows the condition of START REPLICA UNTIL. It leaves the receiver running; and what
    waited is executed in part. An applier that an error stopped has another guard.
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
            f"{name}: the channel was started since the plan was made, and stands again (UNTIL,"
            " STOP, an interrupted script): an operator may want that; audit and plan again",
        )


def stands_still(action: StartChannel, setting: Setting, asks: ChannelQuestions) -> Iterator[Guard]:
    """Require that an applier still stands at its error, where it has passed transactions by (H8).

    The relay log has them, and a start goes on behind them. CHANGE REPLICATION SOURCE and RESET
    REPLICA delete it, as relay_log_recovery does at a restart: the source then sends them again,
    and their rows may be there. Each of these forgets the error as well. 5.6 has no table of it.
    """
    name, seen = action.server, setting.channel(action.channel)
    errors = {seen.applier_errno, *(worker.errno for worker in seen.workers)} - {0}
    passed = setting.known(action.channel).passed
    if not (errors and passed) or asks.applier_errno == "NULL":
        return
    known = ", ".join(str(each) for each in sorted(errors))
    yield Guard(
        f"IFNULL({asks.runs}, FALSE) OR IFNULL({asks.applier_errno}, 0) IN ({known})",
        f"{name}: the applier forgot its error since the plan was made: if its relay log was"
        f" deleted, {passed.shortened()} would be applied again; audit and plan again",
    )


def not_restarted(setting: Setting) -> Iterator[Guard]:
    """Require that a server was not restarted since it was read.

    After a crash that lost its newest transactions, a channel that runs by file position goes on
    behind them. With auto-position on they would be fetched behind what came later. They may have
    been applied after the reading, so that its gtid_executed does not show the loss.
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
    """Require that a replica has by now what its source was committing when both were read.

    It may be in the source's log already, and a file position that was set may have passed it. With
    auto-position on it would be fetched behind later work. A healthy channel brings it.
    """
    source = setting.seen.get(setting.known(action.channel).source or "")
    if source is None or setting.channel(action.channel).auto_position or not source.gtid_owned:
        return
    has_all = f"GTID_SUBSET({literal(source.gtid_owned)}, @@GLOBAL.gtid_executed)"
    yield Guard(
        f"IFNULL({asks.auto_position} = 1, FALSE) OR {has_all}",
        f"{setting.server.name}: it lacks what {source.name} was committing when the plan was made;"
        " run this when it has that; if it stays away, audit and plan again",
    )


def commits_nothing_meanwhile(action: AutoPositionOn, setting: Setting) -> Iterator[Guard]:
    """Require that a server whose channel stands commits nothing until it is switched.

    What its source commits meanwhile would be applied behind that. In a ring a server is written to
    all the time: there only rows that were compared count.
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
    """Require that no transaction may have met the rows that were compared, or come before them.

    A row that looks as before may have been changed and changed back. Until the first of the
    waiting transactions is applied nothing else may have been executed either: not with a tag, and
    not under the UUID of another server, unless another channel brings it.
    """
    server, executed = setting.server, setting.executed(action.server)
    if not (action.in_order or action.rows):
        return
    yield commits_nothing(server.name, server.server_uuid, executed)
    if not action.waiting:
        return
    # A channel that runs is what has brought them: this script was stopped behind its START.
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
        f"{server.name}: it has executed transactions that the plan did not see, and what waits may"
        " be older than their rows; nothing was changed; audit and plan again",
    )


def refuses_nothing(
    action: StartChannel, setting: Setting, asks: ChannelQuestions
) -> Iterator[Guard]:
    """Require that the channel's own settings refuse nothing, unless the operator selected this.

    A channel that ran with them applied all that came until then; what waits may be otherwise: DDL
    that makes a table without a key (3750), a statement (3944), what its account may not do
    (13496).
    """
    if action.by_choice or not setting.arriving or asks.restrictions == "NULL":
        return
    yield Guard(
        f"IFNULL({asks.runs}, FALSE) OR {asks.restrictions} IS NULL",
        f"{action.server}: channel settings may refuse what waits; if not, select"
        " A7=start_channel: ",
        detail=asks.restrictions,
    )

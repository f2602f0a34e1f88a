"""Scripts that start, stop or reposition a channel.

They only write the position options of CHANGE REPLICATION SOURCE. The address and the account of a
channel stay unchanged, and no script contains a secret.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from binlog.quoting import quote_number, quote_string
from gtid import GtidSet
from repair.content.transaction_content import key_condition
from repair.model.actions import AutoPositionOn, MovePast, StartChannel, StopChannel
from repair.scripts.delivery_filters import still_unfiltered, without_rows
from repair.scripts.procedure import Procedure, Setting
from repair.scripts.row_procedures import row_is
from repair.scripts.start_guards import (
    account_may_apply,
    assigns_no_gtids,
    commits_nothing_meanwhile,
    has_what_was_committing,
    not_halted,
    not_restarted,
    refuses_nothing,
    stands_still,
    started,
    stopped,
    writes_nothing,
)
from repair.scripts.unread_sources import sent_besides, uncounted, unknown_mode
from repair.sql.channel_queries import ChannelQuestions, for_channel, position_wait
from repair.sql.channel_statements import ChannelStatements
from repair.sql.guard import Guard
from repair.sql.privileges import StatementKind
from repair.sql.row_sql import table_name
from repair.sql.script import (
    RUN_TODO,
    arrived,
    awaited,
    has_begun,
    has_history,
    keeps_history,
    literal,
    same_error,
    same_source,
    short,
    still_by_position,
    still_by_sets,
    transactions,
    unless_done,
    until_executed,
)

# For an applier that was just moved or started: if it cannot continue, it stops within this time.
STUCK_WAIT_SECONDS = 1
_APPLIED_PER_SECOND = 500


@dataclass(frozen=True, slots=True)
class _Timing:
    """How long a channel's transactions take, and which of them a script waits for.

    SOURCE_DELAY counts from each commit on the source (Reference Manual, "Delayed Replication").
    The time of the newest commit is not known here, so the estimate is the whole delay.
    """

    awaited: GtidSet
    seconds: int
    assumes: str
    check: str  # what to check later, if the script does not wait for it

    @classmethod
    def of(cls, channel: str, setting: Setting) -> "_Timing":
        """Return the times of a channel that a step starts."""
        arriving, delay = setting.arriving, setting.channel(channel).delay_seconds
        seconds = arriving.gtid_count // _APPLIED_PER_SECOND
        assumes = f"{_APPLIED_PER_SECOND} transactions applied a second"
        if not delay or not arriving:
            return cls(arriving, seconds, assumes, "")
        waits_for = awaited(arriving, delay_seconds=delay)
        assumes += f", each {delay} s after its commit on the source (SOURCE_DELAY)"
        later = f"; within {delay} s gtid_executed contains {arriving.shortened()}"
        return cls(waits_for, seconds + delay, assumes, "" if waits_for else later)


def move_past(action: MovePast, setting: Setting) -> Procedure:
    """Return the script that continues after the event with a file position, the only remedy."""
    name, event, dialect = action.server, action.event, setting.dialect
    asks = ChannelQuestions.of(setting.server.version, action.channel)
    gtid = literal(GtidSet.of(event.gtid))
    wait = position_wait(
        dialect,
        channel=action.channel,
        file=event.end.file,
        position=event.end.position,
        seconds=STUCK_WAIT_SECONDS,
    )
    option = dialect.option_prefix
    suffix = for_channel(dialect, action.channel)
    statements = ChannelStatements.of_server(dialect, action.channel)
    # An applier that has run for a second continues. Past the position, or with auto-position and
    # the GTID executed, this script has nothing left to do.
    done = (
        f"IFNULL({wait} >= 0 OR ({asks.auto_position} = 1 AND {wait} IS NOT NULL AND"
        f" GTID_SUBSET({gtid}, @@GLOBAL.gtid_executed)), FALSE) AND IFNULL({asks.runs}, FALSE)"
    )
    return Procedure(
        title=f"move {name} past the failing event {event.gtid}",
        # If it was interrupted between its statements, this script itself switched auto-position
        # off.
        preconditions=_unchanged(action.channel, setting, asks, may_be_by_position=True),
        statements=(
            f"SET @done = {done};",
            *unless_done(f"{dialect.stop_replica}{suffix}"),
            *unless_done(
                f"{dialect.change_source} {option}LOG_FILE = {quote_string(event.end.file)},"
                f" {option}LOG_POS = {quote_number(event.end.position)},"
                f" {option}AUTO_POSITION = 0{suffix}"
            ),
            *started(action.channel, setting, asks, statements, is_stopped=True),
            "DO SLEEP(IF(@go AND NOT @done, 1, 0));",
        ),
        verifications=(
            Guard(
                f"IFNULL({wait} IS NOT NULL, FALSE) AND IFNULL({asks.runs}, FALSE)",
                f"{name}: replication does not run past {event.end}; read"
                f" {dialect.show_replica_status}, then audit and plan again",
            ),
        ),
        check=f"{dialect.show_replica_status}: both threads run, the position is at or after"
        f" {event.end}",
        undo=f"{dialect.change_source} … {option}AUTO_POSITION = 1 makes the receiver request"
        " everything again that is not executed",
        estimated_seconds=5,
        estimate_assumes="the source answers immediately",
        if_stopped="the channel may be stopped, or run by file position; continue with the plan,"
        " or audit and plan again",
        risk=f"the applier skips the event: {short(event.statement)}",
        warnings=(
            (
                "an empty transaction alone does not help: the applier compares the event's error"
                " even if its GTID is already executed, and stops again"
            ),
            (
                f"the statement failed on {event.source} with error {event.error_code} and did not"
                f" fail on {name}, so it may have taken effect only on {name}. Compare what it"
                f" changes: {short(event.statement)}"
            ),
        ),
        needs=_needs(statements),
    )


def auto_position_on(action: AutoPositionOn, setting: Setting) -> Procedure:
    """Return the script after which the source sends exactly what is missing."""
    name, dialect = action.server, setting.dialect
    asks = ChannelQuestions.of(setting.server.version, action.channel)
    statements = setting.channel_statements(action.channel, switches=True)
    arriving = setting.arriving
    timing = _Timing.of(action.channel, setting)
    filled = (
        (
            Guard(
                f"GTID_SUBSET({literal(action.filled)}, @@GLOBAL.gtid_executed)",
                f"{name}: fill the gap first (the step before this one); with auto-position the"
                " source would send it again",
            ),
        )
        if action.filled
        else ()
    )
    return Procedure(
        title=f"switch {name} to auto-position"
        + (f" and fetch {transactions(arriving.gtid_count)}" if arriving else ""),
        preconditions=(
            *_unchanged(action.channel, setting, asks),
            *commits_nothing_meanwhile(action, setting),
            *(() if setting.channel(action.channel).auto_position else not_restarted(setting)),
            *has_what_was_committing(action, setting, asks),
            *assigns_no_gtids(action, asks),
            *account_may_apply(action, setting, asks),
            *filled,
            *_readable(action),
        ),
        statements=(
            (
                f"SET @done = IFNULL({asks.auto_position} = 1, FALSE)"
                f" AND IFNULL({asks.runs}, FALSE)"
                f" AND GTID_SUBSET({literal(arriving)}, @@GLOBAL.gtid_executed);"
            ),
            *_begun(action, setting, asks),
            *stopped(asks, statements),
            *_rows_still_fit(action, setting, statements),
            *unless_done(statements.by_sets),
            *started(action.channel, setting, asks, statements, is_stopped=True),
            *until_executed(dialect, asks, timing.awaited),
        ),
        verifications=(
            *arrived(name, timing.awaited, dialect, asks),
            Guard(
                f"IFNULL({asks.auto_position}, 1) = 1",
                f"{name}: auto-position is still off; read {dialect.show_replica_status}",
            ),
        ),
        check=f"{dialect.show_replica_status}: both threads run, Auto_Position: 1{timing.check}",
        undo="you can switch auto-position off again; what was applied stays",
        estimated_seconds=5 + timing.seconds,
        estimate_assumes=timing.assumes,
        if_stopped="the channel may be stopped; run the script again",
        risk="old transactions are applied after newer ones; the rows that they change may have"
        " changed since"
        if arriving
        else "the channel also fetches what the source executes until then; no transaction is"
        " missing now",
        warnings=(
            *unknown_mode(action, setting),
            *sent_besides(action, setting),
            *without_rows(action.channel, setting),
        ),
        needs=_needs(statements, rows=bool(action.rows)),
    )


def _readable(action: AutoPositionOn | StartChannel) -> Iterator[Guard]:
    """Yield a read of each table of the rows before any change: an account may not see one."""
    for name in sorted({table_name(row.table) for row in action.rows}):
        yield Guard(
            f"(SELECT COUNT(*) FROM (SELECT 1 FROM {name} LIMIT 1) AS one) >= 0",  # noqa: S608 - quoted
            f"{action.server}: {name} cannot be read; nothing was changed",
        )


def _begun(action: AutoPositionOn, setting: Setting, asks: ChannelQuestions) -> Iterator[str]:
    """Yield the conditions that an earlier run of this script stopped while transactions arrived.

    In that case nothing is left to protect. Either the channel already uses auto-position. Or it
    used it from the beginning, runs, and has executed some of what it had passed; in a channel that
    does not run, a session executed that.
    """
    channel = setting.known(action.channel)
    if action.compared_at is None:
        return
    begun = (
        f"IFNULL({asks.runs}, FALSE) AND {has_begun(channel.passed | setting.arriving)}"
        if channel.auto_position
        else f"IFNULL({asks.auto_position} = 1, FALSE)"
    )
    yield f"SET @begun = {begun};"


def _rows_still_fit(
    action: AutoPositionOn, setting: Setting, statements: ChannelStatements
) -> Iterator[str]:
    """Yield a second check of the rows while the applier is stopped; if it fails, undo the stop.

    Rows that look as before may have been changed and changed back since the plan was made. So no
    other transaction may have been applied either.

    The check is omitted if an earlier run has begun (`_begun`): then rows are between before and
    after.
    """
    channel = setting.known(action.channel)
    if action.compared_at is None:
        return
    yield f"SET @fit = GTID_SUBSET(@@GLOBAL.gtid_executed, {literal(action.compared_at)});"
    yield from _rows_are_before(action)
    yield "SET @fit = @fit OR @done OR @begun;"
    if channel.running:
        start = quote_string(statements.start)
        yield f"SET @todo = IF(@go AND NOT @fit, {start}, 'DO 0');"
        yield from RUN_TODO
    yield from Guard(
        "@fit",
        f"{action.server}: transactions were applied, or rows that would be fetched changed, since"
        " the plan was made; nothing is fetched, the channel continues as before; stop the"
        " channel, then audit and plan again",
    ).statements()


def start_channel(action: StartChannel, setting: Setting) -> Procedure:
    """Return the script that starts both threads."""
    name, dialect = action.server, setting.dialect
    asks = ChannelQuestions.of(setting.server.version, action.channel)
    if setting.awaits_source(action.channel):
        asks = replace(asks, runs=asks.applies)
    statements = setting.channel_statements(action.channel)
    arriving = setting.arriving
    timing = _Timing.of(action.channel, setting)
    by_position = still_by_position(name, asks)
    return Procedure(
        title=f"start replication on {name}"
        + (f" and fetch {transactions(arriving.gtid_count)}" if arriving else ""),
        preconditions=(
            *_unchanged(action.channel, setting, asks),
            *(() if setting.known(action.channel).auto_position else (by_position,)),
            *not_halted(action, setting, asks),
            *stands_still(action, setting, asks),
            *writes_nothing(action, setting, asks),
            *refuses_nothing(action, setting, asks),
            *_readable(action),
        ),
        statements=(
            f"SET @done = IFNULL({asks.runs}, FALSE);",
            *_rows_as_before(action),
            *started(action.channel, setting, asks, statements),
            *until_executed(dialect, asks, timing.awaited),
        ),
        verifications=arrived(name, timing.awaited, dialect, asks),
        check=f"{dialect.show_replica_status}: both threads run{timing.check}",
        undo=f"{statements.stop}; what was applied stays",
        estimated_seconds=2 + timing.seconds,
        estimate_assumes=timing.assumes,
        if_stopped="replication, or only its receiver, may run; run the script again, and if it"
        " refuses, audit and plan again",
        risk="the waiting transactions are applied as they are",
        needs=_needs(statements, rows=bool(action.rows)),
        warnings=(
            *unknown_mode(action, setting),
            *uncounted(action, setting),
            *without_rows(action.channel, setting),
        ),
    )


def _rows_as_before(action: StartChannel) -> Iterator[str]:
    """Yield a second check of the rows of what waits, unless some of it is applied already."""
    if not action.rows:
        return
    yield f"SET @begun = {has_begun(action.waiting)}, @fit = TRUE;"
    yield from _rows_are_before(action)
    yield "SET @fit = @fit OR @done OR @begun;"
    yield from Guard(
        "@fit",
        f"{action.server}: rows that waiting transactions change are not as they were when the plan"
        " was made; the channel is not started; audit and plan again",
    ).statements()


def _rows_are_before(action: AutoPositionOn | StartChannel) -> Iterator[str]:
    for row in action.rows:
        is_before = row_is(row.table, key_condition(row.table, row.key_image), row.before)
        yield f"SET @fit = @fit AND {is_before};"


def stop_channel(action: StopChannel, setting: Setting) -> Procedure:
    """Return the script that stops both threads."""
    name, dialect = action.server, setting.dialect
    asks = ChannelQuestions.of(setting.server.version, action.channel)
    statements = setting.channel_statements(action.channel)
    return Procedure(
        title=f"stop replication on {name}",
        preconditions=_unchanged(action.channel, setting, asks),
        statements=tuple(stopped(asks, statements)),
        verifications=(
            Guard(
                f"NOT IFNULL({asks.runs}, FALSE)",
                f"{name}: replication still runs; read {dialect.show_replica_status}",
            ),
        ),
        check=f"{dialect.show_replica_status}: both threads stopped",
        undo=statements.start,
        estimated_seconds=2,
        estimate_assumes="no large transaction is being applied",
        if_stopped="replication may be stopped: start it again, or continue with the plan",
        risk="the server falls behind until replication is started again",
        needs=_needs(statements),
    )


def _needs(statements: ChannelStatements, *, rows: bool = False) -> tuple[StatementKind, ...]:
    """Return the kinds of statements of a script that steers a channel."""
    needs = (statements.kind, StatementKind.READ_CHANNELS)
    return (*needs, StatementKind.READ_ROWS) if rows else needs


def _unchanged(
    channel: str, setting: Setting, asks: ChannelQuestions, *, may_be_by_position: bool = False
) -> tuple[Guard, ...]:
    """Return the guards that the channel is as the plan read it: the source's guard first.

    A script that was interrupted, or runs again, finds states that the plan itself created, such as
    stopped threads or auto-position. The guards accept these.
    """
    name, executed = setting.server.name, setting.executed(setting.server.name)
    known, seen = setting.known(channel), setting.channel(channel)
    source_uuid = setting.source_uuid(channel)
    by_sets = known.auto_position and seen.auto_position and not may_be_by_position
    errors = (seen.applier_errno, *(worker.errno for worker in seen.workers))
    return (
        *((same_source(name, asks, str(source_uuid)),) if source_uuid is not None else ()),
        same_error(name, asks, errors),
        *((still_by_sets(name, asks),) if by_sets else ()),
        *still_unfiltered(channel, setting, asks),
        *((has_history(name), keeps_history(name, executed)) if executed else ()),
    )

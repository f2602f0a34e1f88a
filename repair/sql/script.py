"""The building blocks of scripts: conditional statements, bounded waits, and the common guards.

1. @go is 1 until a guard fails. @done is true if the goal was already reached. A script changes
   nothing unless @go is true and @done is false, so a finished script that runs again changes
   nothing.
2. Plain SQL only: no stored program, and no client commands. A statement becomes conditional
   because it is prepared from a text (Reference Manual, "SQL Syntax Permitted in Prepared
   Statements"; seen on 5.6.24 and 9.7.4).
"""

from collections.abc import Iterator, Sequence
from uuid import UUID

from binlog.quoting import quote_string
from gtid import Gtid, GtidSet
from gtid.counted_nouns import counted
from repair.sql.channel_queries import ChannelAddress, ChannelQuestions, channels_are
from repair.sql.guard import Guard
from repair.sql.statement_sql import DELIMITER
from topology.readings.dialect import Dialect
from topology.readings.snapshot import ChannelSnapshot
from topology.readings.version import ServerVersion

# How long a script waits for transactions to be applied before it reports that they were not.
APPLY_WAIT_SECONDS_MAX = 120
# It waits in intervals, and ends early if the applier stops.
APPLY_TURN_SECONDS = 10
# How many times, once per second, a script checks whether a started channel is connected.
CONNECT_LOOKS_MAX = 15

# From how many empty transactions on a client sends several in one packet, and how many in each.
# The text of 25 is shorter than what the journal keeps of a statement (journal.py).
BATCHES_FROM = 100
EMPTY_EACH = 25

# As a prefix of a thread id it gives a number above any GNO in use, and within 64 bits.
_THREAD_ID_PREFIX = "100000000"
_STATEMENT_CHARACTERS_SHOWN = 120
# The highest GNO that a transaction can have (sql/rpl_gtid.h, since 8.0).
GNO_MAX = (1 << 63) - 2

RUN_TODO = ("PREPARE todo FROM @todo;", "EXECUTE todo;")


def if_go(statement: str) -> tuple[str, ...]:
    """Return the statements that run a statement unless a guard has failed."""
    return (f"SET @todo = IF(@go, {quote_string(statement)}, 'DO 0');", *RUN_TODO)


def unless_done(statement: str) -> tuple[str, ...]:
    """Return the statements that run a statement unless a guard failed or the goal was reached."""
    return (f"SET @todo = IF(@go AND NOT @done, {quote_string(statement)}, 'DO 0');", *RUN_TODO)


def empty_transaction(gtid: Gtid) -> tuple[str, ...]:
    """Commit nothing under a GTID. Without @go, or if it is executed, this has no effect."""
    value = f"IF(@go, {quote_string(str(gtid))}, 'AUTOMATIC')"
    return (f"SET SESSION gtid_next = {value};", "BEGIN;", "COMMIT;")


def empty_transactions(gtids: GtidSet, *, highest_first: bool = False) -> Iterator[str]:
    """Yield the lines that commit nothing under each GTID, in order.

    From BATCHES_FROM on, a client sends EMPTY_EACH transactions in one packet: the server commits
    at its own rate, and neither waits for a client nor for its journal. A batch has no effect on
    what is executed already, as its transactions have none. So it may end anywhere, and run again.
    """
    ordered = [*gtids.gtids()][::-1] if highest_first else gtids.gtids()
    if gtids.gtid_count < BATCHES_FROM:
        for gtid in ordered:
            yield from empty_transaction(gtid)
        return
    yield f"DELIMITER {DELIMITER}"
    batch: list[str] = []
    for number, gtid in enumerate(ordered, 1):
        batch.append(" ".join(empty_transaction(gtid)))
        if len(batch) == EMPTY_EACH or number == gtids.gtid_count:
            yield "\n".join((*batch, DELIMITER))
            yield f"-- {number:,} of {gtids.gtid_count:,} are executed"
            batch = []
    yield "DELIMITER ;"


def until_runs(asks: ChannelQuestions) -> tuple[str, ...]:
    """Check once per second, until the channel runs or the checks are used up."""
    return until(asks.runs)


def until(condition: str) -> tuple[str, ...]:
    """Check once per second, until a condition is true or the checks are used up."""
    look = f"DO SLEEP(IF(@go AND NOT IFNULL({condition}, FALSE), 1, 0))"
    return (*_prepared("look", look), *("EXECUTE look;" for _ in range(CONNECT_LOOKS_MAX)))


def awaited(gtids: GtidSet, *, delay_seconds: int) -> GtidSet:
    """Return what a script waits for: nothing if SOURCE_DELAY may exceed the waiting time."""
    lasts = delay_seconds + APPLY_TURN_SECONDS > APPLY_WAIT_SECONDS_MAX
    return GtidSet() if lasts else gtids


def until_executed(dialect: Dialect, asks: ChannelQuestions, gtids: GtidSet) -> tuple[str, ...]:
    """Wait until the GTIDs are executed, the channel stops, or the time is over."""
    if not gtids:
        return ()
    wait = f"{dialect.wait_for_gtids}({literal(gtids)}, {APPLY_TURN_SECONDS})"
    look = f"DO IF(@go AND IFNULL({asks.runs}, FALSE), {wait}, NULL)"
    turns = APPLY_WAIT_SECONDS_MAX // APPLY_TURN_SECONDS
    return (*_prepared("look", look), *("EXECUTE look;" for _ in range(turns)))


def _prepared(name: str, statement: str) -> tuple[str, ...]:
    return (f"SET @{name} = {quote_string(statement)};", f"PREPARE {name} FROM @{name};")


def not_owned(name: str, gtids: GtidSet) -> Guard:
    """Require that none of these is being committed now.

    The format of gtid_owned is `UUID:GNO#thread:GNO#thread`. With the thread ids mapped to numbers
    above any GNO, it is a GTID set.
    """
    owned = f"REPLACE(@@GLOBAL.gtid_owned, '#', ':{_THREAD_ID_PREFIX}')"
    wanted = literal(gtids)
    return Guard(
        f"GTID_SUBSET({wanted}, GTID_SUBTRACT({wanted}, {owned}))",
        f"{name}: one of these transactions is being committed right now; nothing was changed; run"
        " this again in a moment",
    )


def executed(name: str, gtids: GtidSet) -> Guard:
    """Require that all of these are executed."""
    return Guard(
        f"GTID_SUBSET({literal(gtids)}, @@GLOBAL.gtid_executed)",
        f"{name}: the goal is not reached: gtid_executed does not contain all of the GTIDs; run"
        " this again",
    )


def arrived(
    name: str, gtids: GtidSet, dialect: Dialect, asks: ChannelQuestions
) -> tuple[Guard, ...]:
    """Require, after a wait, that the channel runs and that all of these are executed.

    In this order: an applier that stopped with an error does not need more time, and the operator
    must read the error.
    """
    not_stopped = Guard(
        f"{asks.applier_error} IS NULL",
        f"{name}: the applier stopped; audit and plan again: ",
        detail=asks.applier_error,
    )
    waited = Guard(
        f"GTID_SUBSET({literal(gtids)}, @@GLOBAL.gtid_executed)",
        f"{name}: both threads run, but not everything has arrived after {APPLY_WAIT_SECONDS_MAX}"
        f" s; wait and run this again; {dialect.show_replica_status} shows how far it is",
    )
    return (not_stopped, runs(name, asks, dialect), *((waited,) if gtids else ()))


def runs(name: str, asks: ChannelQuestions, dialect: Dialect) -> Guard:
    """Require that both threads run and the receiver is connected."""
    return Guard(
        f"IFNULL({asks.runs}, FALSE)",
        f"{name}: replication does not run; read the errors in {dialect.show_replica_status}, then"
        " audit and plan again",
    )


def same_source(name: str, asks: ChannelQuestions, source_uuid: str) -> Guard:
    """Require that the channel, once it has connected, has the source of the plan."""
    return Guard(
        f"IFNULL({asks.source_uuid}, {quote_string(source_uuid)}) = {quote_string(source_uuid)}",
        f"{name}: the channel has another source now than when the plan was made; nothing was"
        " changed; audit and plan again",
    )


def same_channels(name: str, version: ServerVersion, channels: Sequence[ChannelSnapshot]) -> Guard:
    """Require the channels that the plan read, with their addresses, and no others.

    SOURCE_UUID is empty until a changed channel connects. Until then only the address shows that it
    has another source. A new channel may deliver what the plan declares unneeded.
    """
    expected = [address_of(each) for each in channels]
    listed = ", ".join(f"{each.channel!r} from {each.host}:{each.port}" for each in expected)
    return Guard(
        channels_are(version, expected),
        f"{name}: its channels changed since the plan was made; nothing was changed; audit and plan"
        f" again; the plan saw {listed or 'none'}",
    )


def address_of(channel: ChannelSnapshot) -> ChannelAddress:
    """Return the address from which a channel received when it was read."""
    return ChannelAddress(channel.name, channel.source_host, channel.source_port)


def is_server(name: str, server_uuid: UUID) -> Guard:
    """Require that a script runs on the server of the plan."""
    return Guard(
        f"@@GLOBAL.server_uuid = {quote_string(str(server_uuid))}",
        f"{name}: this is another server (expected server_uuid {server_uuid}); nothing was changed",
    )


def still_logs(name: str) -> Guard:
    """Require a binary log if the plan read one: without it no other server gets the changes.

    mysqld may have been restarted with skip_log_bin since.
    """
    return Guard(
        "@@GLOBAL.log_bin = 1",
        f"{name}: its binary log is off, but was on when the plan was made; nothing was changed;"
        " restart it with its binary log, audit and plan again",
    )


def same_error(name: str, asks: ChannelQuestions, seen: Sequence[int]) -> Guard:
    """Require that the applier has no error, or the one that the plan was made for."""
    known = ", ".join(str(each) for each in sorted({0, *seen}))
    return Guard(
        f"IFNULL({asks.applier_errno}, 0) IN ({known})",
        f"{name}: the applier stopped since the plan was made; audit and plan again: ",
        detail=asks.applier_error,
    )


def still_by_sets(name: str, asks: ChannelQuestions) -> Guard:
    """Require that a channel which used auto-position still uses it."""
    return Guard(
        f"IFNULL({asks.auto_position}, 1) = 1",
        f"{name}: auto-position was switched off since the plan was made; nothing was changed;"
        " audit and plan again",
    )


def still_by_position(name: str, asks: ChannelQuestions) -> Guard:
    """Require that a channel with a file position was not switched to auto-position.

    It would fetch what the position has passed, and no rows of that were compared.
    """
    return Guard(
        f"IFNULL({asks.auto_position}, 0) = 0",
        f"{name}: auto-position was switched on since the plan was made; nothing was changed;"
        " audit and plan again",
    )


def has_history(name: str) -> Guard:
    """Require that gtid_executed is not empty if the plan read transactions.

    After a reset, or in the middle of `reset_and_purge`, a channel would fetch everything again.
    """
    return Guard(
        "@@GLOBAL.gtid_executed <> ''",
        f"{name}: gtid_executed is empty now; if a reset was interrupted, run its script again;"
        " nothing was changed",
    )


def keeps_history(
    name: str, gtids: GtidSet, *, so: str = "the channel would fetch them again"
) -> Guard:
    """Require that everything is executed that was executed when the plan was made.

    A server that was reset or restored since would be sent again what its data contains.
    """
    return Guard(
        f"GTID_SUBSET({literal(gtids)}, @@GLOBAL.gtid_executed)",
        f"{name}: gtid_executed lost transactions since the plan was made, as RESET BINARY LOGS AND"
        f" GTIDS does; {so}; nothing was changed; audit and plan again",
    )


def commits_nothing(
    name: str,
    server_uuid: UUID,
    gtids: GtidSet,
    *,
    so: str = "waiting transactions may be older than their rows",
) -> Guard:
    """Require that a server has committed nothing of its own except what the plan read."""
    free = GtidSet.parse(f"{server_uuid}:1-{GNO_MAX}") - gtids
    return Guard(
        f"GTID_SUBSET({literal(free)}, GTID_SUBTRACT({literal(free)}, @@GLOBAL.gtid_executed))",
        f"{name}: it has committed transactions of its own since the plan was made, and {so};"
        " nothing was changed; audit and plan again",
    )


def none_executed(gtids: GtidSet) -> str:
    """Return the condition that a server has executed none of these."""
    text = literal(gtids)
    return f"GTID_SUBTRACT({text}, @@GLOBAL.gtid_executed) = GTID_SUBTRACT({text}, '')"


def some_executed(gtids: GtidSet) -> str:
    """Return the condition that a server has executed at least one of these."""
    text = literal(gtids)
    return f"GTID_SUBTRACT({text}, @@GLOBAL.gtid_executed) <> GTID_SUBTRACT({text}, '')"


def has_begun(gtids: GtidSet) -> str:
    """Return the condition that a server has begun to apply these: it has the first of an origin.

    A session executed a later one alone.
    """
    firsts = GtidSet.union_of(gtids.from_tsid(tsid).first(1) for tsid in gtids.tsids)
    return some_executed(firsts)


def not_by_hand(name: str, condition: str) -> Guard:
    """Require, by a condition, that a server has executed nothing that a step is to deliver.

    A GTID that a session executed is skipped when the transaction arrives, and later transactions
    may need its rows.
    """
    return Guard(
        condition,
        f"{name}: it has executed some of the arriving transactions already, as a session that sets"
        " gtid_next by hand does; nothing was changed; audit with --content and plan again",
    )


def gained_nothing(name: str, known: GtidSet, *, but: UUID, so: str) -> Guard:
    """Require that a server executed nothing except `known` and what the server `but` committed.

    Everything else that it executed or received since, from any client, tag or UUID, is sent on.
    """
    allowed = known | GtidSet.parse(f"{but}:1-{GNO_MAX}")
    return Guard(
        f"GTID_SUBSET(@@GLOBAL.gtid_executed, {literal(allowed)})",
        f"{name}: it has executed more transactions since the plan was made, and {so}; nothing was"
        " changed; audit and plan again",
    )


def literal(gtids: GtidSet) -> str:
    """Return a set as an SQL string."""
    return quote_string(str(gtids))


def transactions(count: int, kind: str = "") -> str:
    """Return the number of transactions as text."""
    return counted(count, f"{kind}transaction")


def short(statement: str) -> str:
    """Return a statement shortened to one line."""
    line = " ".join(statement.split())
    if len(line) <= _STATEMENT_CHARACTERS_SHOWN:
        return line
    return line[: _STATEMENT_CHARACTERS_SHOWN - 1] + "…"

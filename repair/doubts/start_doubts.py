"""Why a stopped channel cannot be started, or should not be started without a decision.

1. A refusal also applies to a selected start if the connection would fail. A stop condition and an
   equal server_id refuse the default only.
2. A doubt prevents the start by default. An operator who selects the start gets it as a warning.
3. starting.py evaluates the rows of what waits.
"""

from collections.abc import Iterator

from gtid import GtidSet
from repair.content.transaction_content import TransactionContent
from repair.model.actions import AutoPositionOn, StartChannel, simulate
from repair.model.former_history import may_be_given_again
from repair.model.holes import emptied_above
from repair.model.offered_strategies import offered
from repair.model.replication_model import (
    Model,
    ModelChannel,
    ModelServer,
    below,
    can_connect,
    is_same_server,
    refused,
    upstream,
)
from repair.model.strategy_case import MAY_DIFFER, Case
from repair.model.unlogged_redo import refuses_replicas
from repair.model.unnumbered import unread_without_gtid
from topology.readings.content_class import ContentClass
from topology.readings.dialect import dialect_of, who_set_until


def as_warning(doubt: str) -> str:
    """Return a doubt as the warning of a step that the operator selected nevertheless."""
    return f"it may stop the applier or overwrite rows: {doubt}"


def as_counted(doubt: str) -> str:
    """Return the same if rows do not fit: it counts for the exit status of the plan."""
    return f"{MAY_DIFFER}{as_warning(doubt)}"


def doubts_of_start(case: Case, replica: ModelServer, channel: ModelChannel) -> Iterator[str]:
    """Yield reasons against a start, except those about the rows of what waits."""
    if (why := refuses_replicas(case.model, replica, channel)) is not None:
        yield why
    yield from _doubts_of_rows(case, replica, channel)


def warnings_of_start(case: Case, replica: ModelServer, channel: ModelChannel) -> Iterator[str]:
    """Yield the same reasons as warnings of a start that the operator selected."""
    if (why := refuses_replicas(case.model, replica, channel)) is not None:
        yield why
    if channel.auto_position and (unread := unread_without_gtid(replica.name, channel)):
        yield f"{unread}; compare the rows if its gtid_mode was not always ON"
    yield from map(as_warning, _doubts_of_rows(case, replica, channel))


def _doubts_of_rows(case: Case, replica: ModelServer, channel: ModelChannel) -> Iterator[str]:
    """Yield why rows may be present already, or may differ."""
    yield from doubts_of_history(case, replica, channel)
    doubts = (
        emptied_above(case, replica, channel),
        _may_be_passed_beside(case, replica, channel),
        skips_beside(case, replica, channel),
    )
    yield from filter(None, doubts)
    if replica.torn_below:
        yield (
            f"{replica.torn_below} receives what {replica.name} applies, and was restarted or"
            " reset while it was read (U2): if it lost GTIDs, it applies these a second time."
            " Audit again"
        )
    if channel.passed:
        # They are sent again after a restart or a lost relay log. In 5.6 that always applies to the
        # last of them: the handshake omits the last GTID of the retrieved set, which may be
        # incomplete.
        yield (
            f"{replica.name} may fetch {channel.passed.shortened()} again, although its applier"
            " has passed them: their rows may already be there. Answer H8 first; if no H8 is"
            " reported, audit again"
        )


def doubts_of_history(case: Case, replica: ModelServer, channel: ModelChannel) -> Iterator[str]:
    """Yield why a channel may deliver a history that its source, or one above, no longer has."""
    doubts = (
        may_be_given_again(case, replica, channel),
        _former_beside(case, replica, channel),
    )
    yield from filter(None, doubts)


def _may_be_passed_beside(case: Case, replica: ModelServer, channel: ModelChannel) -> str | None:
    """Return that another channel's applier may skip what this one would deliver late.

    Unless gtid_mode is ON, sql_replica_skip_counter may cause that. SHOW REPLICA STATUS shows it
    only until it is used up, and only two readings show what an applier has passed (H8).
    """
    if not replica.had_unread_channels or replica.sends_by_sets:
        return None
    executed = case.snapshot_executed[replica.name]
    others = (each.retrieved for each in replica.channels if each.name != channel.name)
    waiting = GtidSet.union_of(others) - executed
    if not waiting:
        return None
    return (
        f"{replica.name} has received {waiting.shortened()} over another channel, and its channels"
        " were not read twice. Its applier may have skipped some of these"
        " (sql_replica_skip_counter), and this channel would deliver them late. Audit again"
    )


def skips_beside(case: Case, replica: ModelServer, channel: ModelChannel) -> str | None:
    """Return that a server upstream on another channel skips what this one would deliver late."""
    model = case.model
    sources = {each.source for each in replica.channels if each.name != channel.name}
    known = {each for each in sources if each is not None and each in model.servers}
    above = known.union(*(upstream(model, each) for each in known)) - {replica.name}
    skipping = next((each for each in sorted(above) if model[each].skips_next), None)
    if skipping is None:
        return _skipped_beside(case, replica, channel, above)
    return (
        f"{skipping}, which sends {replica.name} the same transactions over another channel, skips"
        " the next one (sql_replica_skip_counter). This channel would deliver it after later"
        f" transactions. Wait until {skipping} has skipped it, and audit again"
    )


def _skipped_beside(
    case: Case, replica: ModelServer, channel: ModelChannel, above: set[str]
) -> str | None:
    """Return that a server above another channel has passed what this one would deliver late.

    Or may pass it: unless its gtid_mode is ON, sql_replica_skip_counter may skip what it has not
    executed yet, or did, and the counter is used up. A worker may as well be at it.
    """
    sent = case.snapshot_executed.get(channel.source or "", GtidSet())
    for name in sorted(above):
        server = case.model[name]
        passed = GtidSet.union_of(each.passed | each.bypassed for each in server.channels)
        if passed := passed - server.executed - case.snapshot_executed[replica.name]:
            return (
                f"{name}, which sends {replica.name} the same transactions over another channel,"
                f" has passed {passed.shortened()} without executing it, and sends later ones: this"
                f" channel may deliver these afterwards. Repair {name} first, then audit and plan"
                " again"
            )
        executed = case.snapshot_executed[name]
        received = (each.retrieved for each in case.model[name].channels)
        waiting = GtidSet.union_of((sent, *received)) - executed
        waiting -= case.snapshot_executed[replica.name]
        if waiting and not case.model[name].sends_by_sets:
            return (
                f"{name}, which sends {replica.name} the same transactions over another channel,"
                f" does not have {waiting.shortened()} yet: while its gtid_mode is not ON it may"
                " skip these (sql_replica_skip_counter), or have skipped them, and this channel"
                " would deliver them late. Audit again when its applier has less to do"
            )
    return None


def _former_beside(case: Case, replica: ModelServer, channel: ModelChannel) -> str | None:
    """Return that two histories meet behind this start: a former one, and what replaced it.

    A server upstream has yet to apply what its source no longer has. Behind a single path its rows
    match. A server that also receives over another path may have newer rows already.
    """
    receiving = {replica.name, *below(case.model, replica.name, running=True)}
    joining = [name for name in sorted(receiving) if len(case.model[name].channels) > 1]
    if not joining:
        return None
    for name in sorted({replica.name, *upstream(case.model, replica.name)}):
        for other in case.model[name].channels:
            orphaned = other.orphaned - case.model[name].executed
            if orphaned and (name, other.name) != (replica.name, channel.name):
                return (
                    f"the relay log of {name} has {orphaned.shortened()}, which {other.source} does"
                    f" not have: it belongs to a former history. {joining[0]} receives over"
                    " several channels, and may have newer versions of these rows. Wait until"
                    f" {name} has applied it, compare the rows, then choose with {offered(case)}"
                )
    return None


def came_beside(
    case: Case, action: StartChannel | AutoPositionOn, content: TransactionContent
) -> Iterator[str]:
    """Yield what receiving servers have from other sources, which may have changed rows and back.

    Rows that are as before what waits may be so because of newer changes. own_work.py reads
    what a server itself committed. The whole history of another source is too long to read.
    """
    model = case.model
    after = simulate(model, action)
    channel = model[action.server].channel(action.channel)
    source = (channel.source if channel else None) or ""
    if source not in model.servers:
        return  # what it sends is not known, and reported
    side = {source, *upstream(model, source)}
    # With one channel it has nothing that its source did not send, even if that was read before.
    # With several it may be ahead of this source.
    senders = side if len(model[action.server].channels) == 1 else {source}
    sent = (case.snapshot_executed[each] for each in senders)
    through = GtidSet.union_of((content.wanted, *sent))
    for name in (action.server, *below(after, action.server, running=True)):
        waits = content.needing_decision(after[name].executed - model[name].executed)
        beside = (case.snapshot_executed[name] - through).without_uuid(model[name].server_uuid)
        if waits and beside and name not in side:
            yield (
                f"what {name} has from other sources than {source} was not read"
                f" ({beside.shortened()}): if that changed rows of {waits.shortened()} and changed"
                " them back, they count as unchanged, and older versions replace them"
            )


def waiting_ddl(case: Case, server: str, channel: str) -> str:
    """Return the DDL that waits on a channel, as text; "" if there is none."""
    content = case.arrivals.get((server, channel))
    ddl = content.of_class(ContentClass.DDL) if content is not None else GtidSet()
    if content is None or not ddl:
        return ""
    return f"DDL: {ddl.shortened()}, {', '.join(f'`{each}`' for each in content.statements)}"


def left_gaps(case: Case, replica: ModelServer, channel: ModelChannel) -> str | None:
    """Return that workers left gaps, so CHANGE REPLICATION SOURCE is refused (1802); or None.

    They stopped, or were killed, at different positions: transactions in the relay log are not
    executed, and later ones are. The next start fills the gaps.
    """
    waiting = channel.retrieved - replica.executed - channel.passed
    gaps = waiting & (replica.executed - channel.by_hand).filled()
    if channel.running or not gaps:
        return None
    until = f"{dialect_of(replica.version).start_replica} UNTIL SQL_AFTER_MTS_GAPS"
    return (
        f"the parallel applier of {replica.name} may have left gaps ({gaps.shortened()}): then the"
        f" server refuses to change the channel (error 1802). Start it first, or run `{until}` and"
        f" wait until it stops by itself; then plan again, or choose with {offered(case)}"
    )


def would_not_connect(model: Model, replica: ModelServer, channel: ModelChannel) -> str | None:
    """Return why the source would refuse the receiver; None if no known fact prevents it."""
    source = model.servers.get(channel.source) if channel.source is not None else None
    if source is None:
        return None
    if is_same_server(source, replica):
        return f"{source.name} and {replica.name} have the same server_id or server_uuid"
    if not source.has_log:
        return f"{source.name} has no open binary log: it would refuse the connection"
    if not can_connect(source, replica, channel):
        return f"gtid_mode is not ON on {source.name}: no channel can use auto-position with it"
    missing = refused(source, replica, channel)
    if not missing:
        return None
    return f"{source.name} would refuse {replica.name} with error 1236: {missing.shortened()}"


def stops_by_wish(case: Case, replica: ModelServer, channel: ModelChannel) -> str | None:
    """Return why a channel with an operator's stop condition is not started by default."""
    if case.is_chosen or not (channel.until or channel.held_back_seconds):
        return None
    ddl = waiting_ddl(case, replica.name, channel.name)
    choice = f"select --strategy {case.finding.code}=start_channel"
    if not channel.until:
        return (
            f"only the applier of {replica.name} is stopped, and SOURCE_DELAY is"
            f" {channel.held_back_seconds} s: an operator may have stopped it before a transaction"
            f" that must not be applied{f' ({ddl} waits)' if ddl else ''}. Find out why, then"
            f" {choice}"
        )
    return (
        f"{replica.name} was started with UNTIL {channel.until}:"
        f" {who_set_until(channel.until)} wanted it to stop there, and what follows would be"
        f" applied{f' ({ddl})' if ddl else ''}. Find out why, then {choice}"
    )

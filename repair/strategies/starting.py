"""Strategies that start a stopped channel, and what must be known about the rows before.

How it works
------------
A start delivers what waits: to the channel's server, and over running channels to every server
downstream. If clients write to several servers, what waits may be older than existing rows. Then it
would overwrite a newer version with an older one, or stop an applier. So for every server that
receives anything:

1. content_questions.py lists the transactions that wait on each stopped channel. Their content was
   read, and their rows were compared on every server that would apply them.
2. Rows must be as before the transactions. If they could not be compared, the start is refused,
   unless everything arrives in the order of one source's log (`arrives_in_order`).
3. What fills a gap must also be the last change of its rows on the source: a later transaction that
   is already executed may have restored a row.
4. A receiver drops events with its own server_id: a rebuilt server would never get them.
5. No server that receives anything has passed an earlier transaction (holes.py).

An operator who selects the strategy gets the start, and every reason against it as a warning.
"""

from collections.abc import Iterator
from dataclasses import replace

from gtid import GtidSet
from repair.content.content_questions import ContentQuestion
from repair.content.transaction_content import (
    RowState,
    TransactionContent,
    nothing_read,
)
from repair.doubts.doubted_content import delivered_empty
from repair.doubts.earlier_steps import meets_earlier_steps
from repair.doubts.misfitting_rows import (
    misfit,
    misfit_of_held,
    misfit_of_moving_rows,
    misfit_of_two_histories,
    misfit_of_two_origins,
    misfit_unless_executed,
)
from repair.doubts.start_doubts import (
    as_counted,
    as_warning,
    came_beside,
    doubts_of_start,
    skips_beside,
    stops_by_wish,
    waiting_ddl,
    warnings_of_start,
    would_not_connect,
)
from repair.doubts.still_to_come import unread_beside_own_work
from repair.model.actions import AutoPositionOn, StartChannel, simulate
from repair.model.emptied_servers import is_emptied
from repair.model.holes import fetched_again, passed_by
from repair.model.offered_strategies import offered
from repair.model.replication_model import Model, ModelChannel, ModelServer, below, upstream
from repair.model.same_server_id import same_server_id
from repair.model.strategy_case import Case, Outcome, Proposal, Refusal


def start_channel(case: Case) -> Outcome:
    """Plan to start what is stopped: the channel itself, or a channel towards the source."""
    if case.finding.code.startswith("E"):
        return _start_way_back(case)
    replica, channel = case.replica, case.channel
    if replica is None or channel is None:
        return Refusal(
            "the finding has no channel, or its server could not be read: configure the channel by"
            " hand"
        )
    if channel.source not in case.model.servers and not case.is_chosen:
        return Refusal(
            "its source is not a server of this snapshot, or could not be read: what it would send"
            " is not known. Add the source to the audit, or select --strategy A7=start_channel"
        )
    why = (
        would_not_connect(case.model, replica, channel)
        or stops_by_wish(case, replica, channel)
        or same_server_id(case, replica)
    )
    if why is not None:
        return Refusal(why)
    doubt = next(doubts_of_start(case, replica, channel), None)
    if doubt is not None and not case.is_chosen:
        return Refusal(doubt)
    outcome = _unless_older(
        case, StartChannel(replica.name, channel.name, by_choice=case.is_chosen)
    )
    if isinstance(outcome, Refusal):
        return outcome
    in_spite_of = tuple(warnings_of_start(case, replica, channel))
    outcome = replace(outcome, warnings=(*in_spite_of, *outcome.warnings))
    unknown = unknown_source(case, StartChannel(replica.name, channel.name))
    if unknown is None:
        return outcome
    return replace(outcome, warnings=(*outcome.warnings, as_warning(unknown)))


def unknown_source(case: Case, action: StartChannel | AutoPositionOn) -> str | None:
    """Return that nothing is known of what a channel would deliver; None if its source was read."""
    channel = case.model[action.server].channel(action.channel)
    assert channel is not None, "strategies refer to existing channels"
    if channel.source in case.model.servers:
        return None
    unknown = f"what the source of {action.server} would send is not known"
    if isinstance(action, StartChannel):
        return unknown
    return (
        f"{unknown}; the relay log is deleted, and what was received and not applied is lost if the"
        " source has purged it"
    )


def _unless_older(case: Case, action: StartChannel | AutoPositionOn) -> Outcome:
    """Plan the start unless rows do not match what it delivers; list the DDL that waits."""
    behind = _behind_a_hole(case, action)
    if behind is not None and not case.is_chosen:
        return Refusal(f"{behind}. Answer H1, H5 and H8 first, or choose with {offered(case)}")
    unread = unread_beside_own_work(case, action)
    if unread is not None and not case.is_chosen:
        return Refusal(unread)
    outcome = _if_rows_fit(case, action)
    ddl = waiting_ddl(case, action.server, action.channel)
    if isinstance(outcome, Refusal):
        return outcome
    warnings = (
        *(as_warning(each) for each in (behind, unread) if each is not None),
        *((f"it applies {ddl}",) if ddl else ()),
        *delivered_empty(case, action),
    )
    return replace(outcome, warnings=(*outcome.warnings, *warnings))


def _behind_a_hole(case: Case, action: StartChannel | AutoPositionOn) -> str | None:
    """Return why what arrives may not find its rows: the applier passed an earlier transaction."""
    after = simulate(case.model, action)
    again = fetched_again(case, after, action)
    if again is not None:
        return (
            f"{again[0]} would get {again[1].shortened()} again, although its applier has passed"
            " them: their rows may already be there"
        )
    for name in after.changed_since(case.model):
        server = case.model[name]
        hole = passed_by(after, server)
        if hole and after[name].executed - server.executed:
            return (
                f"{name} passes {hole.shortened()} without executing it, and what follows may"
                " change the same rows"
            )
    return None


def _if_rows_fit(case: Case, action: StartChannel | AutoPositionOn) -> Outcome:
    """Plan the start unless rows do not match on its server or on those downstream.

    If clients write to several servers, the waiting transactions may be older than existing rows.
    Applied now, they would overwrite a newer version with an older one, or stop the applier.
    """
    if is_emptied(case.model[action.server], case.model):
        return Proposal((action,))  # an invariant refuses it, with the script to run again
    after = simulate(case.model, action)
    place = (action.server, action.channel)
    question, content = case.waiting.get(place), case.arrivals.get(place)
    if (why := meets_earlier_steps(case, after, content)) is not None:
        return Refusal(why)
    if question is None:
        # What its source commits from now on is fetched, however late the script runs.
        by_wish = case.is_chosen or _goes_round(case, action)
        return Proposal((action if by_wish else _in_order(action),))
    is_read = bool(question.servers) and content is not None
    content = content or nothing_read(question.wanted, "no log was read")
    problems = _problems(case, action, question, content)
    if problems and not case.is_chosen:
        return Refusal(f"{'; '.join(problems)}. Compare the rows, then choose with {offered(case)}")
    if problems:
        return Proposal((action,), tuple(map(as_counted, problems)))
    warnings = (*_not_compared(case, content, after), *came_beside(case, action, content))
    if not is_read:
        return Proposal((_in_order(action),), warnings)
    here, then = case.model[action.server], case.snapshot_executed[action.server]
    channel = here.channel(action.channel)
    source = (channel.source if channel else None) or ""
    by_another_way = content.wanted & (here.executed - then)
    moving = misfit_of_moving_rows(content, here, here.executed - then)
    if isinstance(action, AutoPositionOn) or by_another_way:
        why = moving or misfit_of_two_origins(case.model, source, here, by_another_way)
        why = why or misfit_unless_executed(content, here, by_another_way)
        return Proposal((action,), () if why is None else (why,))
    rows = content.rows_of_old_tables or content.rows_in_part
    in_order = question.arrives_in_order(content.logged_before)
    if not rows and in_order:
        return Proposal((_in_order(action),), warnings)
    waiting = after[action.server].executed - here.executed
    compared = replace(
        action,
        rows=rows,
        waiting=waiting,
        in_order=in_order,
    )
    return Proposal((compared,), (*warnings, *filter(None, (moving,))))


def _not_compared(case: Case, content: TransactionContent, after: Model) -> Iterator[str]:
    """Yield which rows are assumed to be as their source's log found them, without evidence."""
    for name in after.changed_since(case.model):
        arriving = content.needing_decision(
            (after[name].executed - case.model[name].executed) & content.wanted
        )
        state = content.state_on(name)
        if arriving and state.state is RowState.UNREAD:
            yield (
                f"not all rows of {arriving.shortened()} were compared on {name} ({state.why})."
                f" They may differ if rows were changed on {name} with sql_log_bin = 0, or if a"
                " statement now or before (binlog_format = STATEMENT) finds other rows there. Then"
                " the applier may stop, or apply a row a second time in a table without a key"
            )


def _problems(
    case: Case,
    action: StartChannel | AutoPositionOn,
    question: ContentQuestion,
    content: TransactionContent,
) -> list[str]:
    """Return why rows may not match what a start delivers, here or on downstream servers."""
    after = simulate(case.model, action)
    problems: list[str] = []
    arrived, receiving = GtidSet(), below(after, action.server, running=True)
    for name in sorted({*receiving, *after.changed_since(case.model)}):
        server = case.model[name]
        arriving = after[name].executed - server.executed
        arrived |= arriving & question.wanted
        problems.extend(_misfits(case, server, arriving))
        held = question.wanted & case.snapshot_executed[name]
        if name not in receiving:
            continue
        first = question.wanted - case.snapshot_executed[name] - arriving
        if first and (why := misfit(content, server, first, must_fit=False)) is not None:
            problems.append(why)
        if (why := misfit_of_held(content, server, held)) is not None:
            problems.append(why)
    if decided := content.needing_decision(arrived):
        problems.extend(_behind_later_ones(case, content, action, arrived))
        here, known = case.model[action.server], case.snapshot_executed
        alone = decided - here.executed
        why = misfit_of_two_histories(case.model, here, action.channel, alone, known=known)
        problems.extend(filter(None, (why,)))
    return problems


def misfit_of_waiting(case: Case, action: StartChannel | AutoPositionOn) -> str | None:
    """Return why what waits on a stopped channel may not match if an action starts it, or None."""
    place = (action.server, action.channel)
    question, content = case.waiting.get(place), case.arrivals.get(place)
    reasons = [_behind_a_hole(case, action) or unread_beside_own_work(case, action)]
    replica = case.model[action.server]
    channel = replica.channel(action.channel)
    if channel is not None and not channel.running:
        reasons.append(skips_beside(case, replica, channel))
    if (unknown := unknown_source(case, action)) is not None:
        reasons.append(unknown)
    elif question is not None:
        content = content or nothing_read(question.wanted, "no log was read")
        reasons.extend(_problems(case, action, question, content))
    return "; ".join(dict.fromkeys(filter(None, reasons))) or None


def _goes_round(case: Case, action: StartChannel | AutoPositionOn) -> bool:
    """Return whether a channel's source receives from its server, as in a ring.

    There clients write continuously, and a script must not wait until the server is idle.
    """
    channel = case.model[action.server].channel(action.channel)
    source = channel.source if channel is not None else None
    return source in case.model.servers and action.server in upstream(case.model, source or "")


def _in_order(action: StartChannel | AutoPositionOn) -> StartChannel | AutoPositionOn:
    return action if isinstance(action, AutoPositionOn) else replace(action, in_order=True)


def _misfits(case: Case, server: ModelServer, arriving: GtidSet) -> Iterator[str]:
    """Yield why transactions do not match a server, for each channel on which they wait now.

    If a channel's question leaves the server out, its rows were not compared for that channel. That
    shows nothing about what is compared there for another channel.
    """
    compared = GtidSet()
    for is_asked in (True, False):
        for place, question in case.waiting.items():
            if not is_asked and arriving <= compared:
                return
            if (server.name in question.servers) is not is_asked:
                continue
            part = (arriving & question.wanted) - (GtidSet() if is_asked else compared)
            if not part:
                continue
            compared |= part
            if (why := _misfit_of(case, server, part, place)) is not None:
                yield why


def _misfit_of(
    case: Case, server: ModelServer, part: GtidSet, place: tuple[str, str]
) -> str | None:
    question = case.waiting[place]
    content = case.arrivals.get(place) or nothing_read(question.wanted, "no log was read")
    held = question.wanted & case.snapshot_executed[server.name]
    in_order = question.arrives_in_order(content.logged_before)
    why = misfit(content, server, part, must_fit=not in_order)
    if why is None and not in_order and content.needing_decision(held):
        # A session executed it there, perhaps with another content: what follows may not match.
        return f"{server.name} has already executed {held.shortened()} of them, in another order"
    return why


def _behind_later_ones(
    case: Case, content: TransactionContent, action: StartChannel | AutoPositionOn, gtids: GtidSet
) -> Iterator[str]:
    """Yield why transactions that fill a gap may be older than rows that look as before.

    A later transaction that is already executed may have restored a row. Then the source has the
    row in this state as well: there, it is not as the transactions left it.
    """
    server = case.model[action.server]
    channel = server.channel(action.channel)
    assert channel is not None, "strategies refer to existing channels"
    is_hole = gtids & server.executed.filled()
    coming = server.executed - case.snapshot_executed[server.name]
    if is_hole and content.wanted & coming:
        yield (
            f"{is_hole.shortened()} would be applied after"
            f" {(content.wanted & coming).shortened()}, which another channel delivers, and these"
            " may change the same rows"
        )
    elif is_hole and content.state_on(channel.source or "").state is not RowState.AS_AFTER:
        yield (
            f"{is_hole.shortened()} would be applied after later transactions, and their rows were"
            f" changed since on {channel.source}: older versions may replace newer ones"
        )


def _start_way_back(case: Case) -> Outcome:
    """Plan to start the stopped channels towards the source that deliver the extra transactions.

    A channel with a file position might pass the transactions. It is switched to auto-position, but
    only if selected, because that fetches everything that it has passed. C3 compares those rows.
    """
    if case.source is None or case.replica is None:
        return Refusal(
            "the finding has no channel, or its server could not be read: configure the channel by"
            " hand"
        )
    wanted, reasons = case.finding.gtid_set, []
    for starting, channel in _stopped(case.model):
        # With an empty history an invariant refuses it, and reports which script to run again.
        if not channel.auto_position and not case.is_chosen and starting.executed:
            reasons.append(
                f"the channel of {starting.name} runs by file position, and its rows were not"
                " compared: see C3"
            )
            continue
        why = would_not_connect(case.model, starting, replace(channel, auto_position=True))
        why = why or stops_by_wish(case, starting, channel) or same_server_id(case, starting)
        if why is None and starting.executed and not case.is_chosen:
            why = next(doubts_of_start(case, starting, channel), None)
        if why is not None:
            reasons.append(why)
            continue
        action = (
            StartChannel(starting.name, channel.name, by_choice=case.is_chosen)
            if channel.auto_position
            else AutoPositionOn(starting.name, channel.name, filled=GtidSet())
        )
        if wanted <= simulate(case.model, action)[case.source.name].executed:
            outcome = _unless_older(case, action)
            if isinstance(outcome, Refusal):
                return outcome
            in_spite_of = tuple(warnings_of_start(case, starting, channel))
            return replace(outcome, warnings=(*in_spite_of, *outcome.warnings))
    return Refusal(
        "; ".join(reasons) or f"no stopped channel would deliver them to {case.source.name}"
    )


def _stopped(model: Model) -> Iterator[tuple[ModelServer, ModelChannel]]:
    for server in model.servers.values():
        for channel in server.channels:
            if not channel.running and not channel.is_stuck and channel.source is not None:
                yield server, channel

"""Lets a source send again what a replica is missing: strategies `refetch`, `auto_position_on`.

1. With auto-position on, the source sends all that is missing. So not only the transactions of the
   finding are compared with the replica's rows, but also what waits, and what other gaps hold.
2. Rows that do not match, or were not read, refuse the default. Some starts are never planned: rows
   that are already there would be written a second time.
"""

from collections.abc import Iterator
from dataclasses import replace

from gtid import GtidSet
from repair.actions import AutoPositionOn, InjectEmpty, simulate
from repair.compared_rows import compared_waiting, rows_of
from repair.doubtful_sources import may_ask_a_copy
from repair.misfit import misfit
from repair.model import ModelChannel, ModelServer, below, delivery
from repair.offered import offered
from repair.rows_there import may_come_back
from repair.same_server_id import same_server_id
from repair.start_doubts import as_warning, left_gaps
from repair.starting import misfit_of_waiting
from repair.strategy_case import Case, Outcome, Proposal, Refusal
from repair.transaction_content import NetRow, RowState, TransactionContent
from repair.unlogged_redo import purges_what_it_receives, refuses_replicas
from topology.dialect import who_set_until
from topology.findings import Grade
from topology.transaction_class import ContentClass


def refetch(case: Case) -> Outcome:
    """Plan to let the source send again what is missing, if its rows do not conflict."""
    replica, channel, source = case.replica, case.channel, case.source
    if replica is None or channel is None:
        return Refusal("the replica, or its channel, could not be read")
    if source is None:
        return Refusal("the source is not a server of this snapshot: what it purged is not known")
    if (why := _not_to_be_switched(case, replica, channel, source)) is not None:
        return Refusal(why)
    gone = case.finding.gtid_set - replica.executed - source.available
    if gone:
        return Refusal(f"{source.name} can no longer send {gone.shortened()}")
    # What another channel delivers in the model is fetched here as well, if it arrives first.
    there = case.was_there(replica.name)
    arriving = case.finding.gtid_set - there if case.is_hole else _coming(case)
    warnings: tuple[str, ...] = ()
    rows: tuple[NetRow, ...] = ()
    compared_at: GtidSet | None = None
    if arriving and (certain := _never_fetched(case, arriving)) is not None:
        return Refusal(certain)
    if not (arriving or channel.running):  # it also starts the channel
        switch = AutoPositionOn(replica.name, channel.name, filled=GtidSet())
        if (why := misfit_of_waiting(case, switch)) is not None:
            if not case.is_chosen:
                return Refusal(f"{why}. Compare the rows, then choose with {offered(case)}")
            warnings = (as_warning(why),)
    if arriving:
        conflict = (
            _conflict(case, case.content, arriving)
            or _dropped(case, arriving)
            or _below(case, channel)
            or _unread_below(case, arriving)
            or _beside(case, arriving, channel)
        )
        if conflict is not None and not case.is_chosen:
            return Refusal(f"{conflict}. Compare the rows, then choose with {offered(case)}")
        if conflict is not None:
            warnings = (f"{conflict}: fetched again, they may stop the applier or overwrite rows",)
        else:
            warnings = tuple(_may_come_back(case, arriving))
            compared = (*_compared(case, arriving), *compared_waiting(case, replica, channel))
            rows = rows_of(compared)
            compared_at = there if compared else None
        warnings += tuple(may_ask_a_copy(case))
    if case.event is None:
        action = AutoPositionOn(
            replica.name, channel.name, filled=GtidSet(), rows=rows, compared_at=compared_at
        )
        return Proposal((action,), warnings)
    # If it were fetched again, this one would stop the applier; the others of the gap are wanted.
    event, doomed = case.event, GtidSet.of(case.event.gtid)
    return Proposal(
        (
            InjectEmpty(replica.name, doomed),
            AutoPositionOn(replica.name, channel.name, filled=doomed),
        ),
        (
            *warnings,
            (
                f"{source.name} logged {event.gtid} with error {event.error_code}, and it would"
                " stop the applier again. The plan commits it as an empty transaction on"
                f" {replica.name}: compare what it did"
            ),
        ),
    )


def _may_come_back(case: Case, arriving: GtidSet) -> Iterator[str]:
    """Yield the effect of a reset on rows that are not present, if it may be the cause (H8)."""
    changing = case.content.of_class(ContentClass.DATA) & arriving if case.content else None
    if case.finding.code == "H8" and changing:
        yield may_come_back(case.finding.replica or "", changing, "fetched")


def _not_to_be_switched(
    case: Case, replica: ModelServer, channel: ModelChannel, source: ModelServer
) -> str | None:
    """Return why a channel is not switched, or not by default, for any content; or None."""
    if channel.is_stuck:
        return "the applier is stopped by an event; repair that first"
    if not channel.auto_position and purges_what_it_receives(case.model, channel):
        return (
            f"{source.name} does not log what it receives (log_replica_updates = OFF): with"
            f" auto-position it refuses {replica.name} (error 1236) at the next connection. Set"
            f" log_replica_updates = ON on {source.name} first"
        )
    if case.is_chosen:
        return None
    if (gaps := left_gaps(case, replica, channel)) is not None:
        return gaps
    if not source.are_settings_known:
        return (
            f"the settings of {source.name} were not read: unless gtid_mode is ON there and it"
            f" logs what it receives, it refuses {replica.name} with auto-position. Read them,"
            f" then choose with {offered(case)}"
        )
    if channel.until:
        return (
            f"{replica.name} was started with START REPLICA UNTIL {channel.until}:"
            f" {who_set_until(channel.until)} wanted it to stop there. Find out why, then choose"
            f" with {offered(case)}"
        )
    if channel.held_back_seconds:
        return (
            f"only the applier of {replica.name} is stopped, and SOURCE_DELAY is"
            f" {channel.held_back_seconds} s: an operator may have stopped it on purpose. Find out"
            f" why, then choose with {offered(case)}"
        )
    if channel.may_be_former:
        return (
            f"what {replica.name} received may belong to a former log of {source.name}: after a"
            f" reset or a crash, {source.name} reuses GTIDs that {replica.name} may have with"
            f" other content. Compare the rows, then choose with {offered(case)}"
        )
    return refuses_replicas(case.model, replica, channel) or same_server_id(case, replica)


def _by_sets(channel: ModelChannel) -> ModelChannel:
    return replace(channel, auto_position=True, passed=GtidSet(), retrieved=GtidSet())


def _coming(case: Case) -> GtidSet:
    """Return what a channel with a file position has not delivered (C3): it may have passed it.

    What its source itself had not received when it was read comes later, in the order of its log.
    What was passed is sent again, even if the source did not list it yet when it was read.
    """
    assert case.replica is not None, "the caller has checked"
    assert case.channel is not None, "the caller has checked"
    assert case.source is not None, "the caller has checked"
    coming = delivery(case.model, case.replica, _by_sets(case.channel))
    # All that was missing when it was read. A step that starts the channel delivers it in the
    # model, but the file position may be after it.
    missing = case.content.wanted if case.content is not None else GtidSet()
    passed = (case.channel.passed | case.channel.bypassed) - case.replica.executed
    return (coming & case.snapshot_executed[case.source.name]) | missing | passed


def _conflict(case: Case, content: TransactionContent | None, arriving: GtidSet) -> str | None:
    """Return why transactions must not be fetched by default; None if their rows match."""
    replica = case.replica
    assert replica is not None, "the caller has checked"
    if content is None or not arriving <= content.wanted:
        return f"the content of {arriving.shortened()} has not been read"
    own = content.server_ids.get(replica.server_id or 0, GtidSet()) & arriving
    if own:
        return (
            f"{own.shortened()} has server_id {replica.server_id}, and so has {replica.name}: the"
            f" receiver of {replica.name} drops it. Set another server_id there first"
        )
    if not content.needing_decision(arriving):
        return None
    moving = replica.executed - case.was_there(replica.name)
    if moving:
        return (
            f"{moving.shortened()} will be applied on {replica.name} first and may change rows of"
            f" {arriving.shortened()}: stop the channels of {replica.name}, audit and plan again"
        )
    state = content.state_on(replica.name)
    if state.state is RowState.AS_BEFORE:
        # Rows may be as before because a later transaction restored them. Then the source has them
        # in this state as well, and its rows are not as the transactions left them.
        return _changed_since(case, content, arriving)
    if state.state is RowState.AS_AFTER:
        return f"the rows of {arriving.shortened()} are already on {replica.name}"
    return f"{arriving.shortened()} may conflict with rows of {replica.name}: {state.why}"


def _never_fetched(case: Case, arriving: GtidSet) -> str | None:
    """Return why transactions are not fetched, not even if that is selected; or None.

    No later audit would detect it: the sets are equal then, and so are the binary logs.
    """
    content, replica = case.content, case.replica
    assert replica is not None, "the caller has checked"
    if content is None or not content.needing_decision(arriving):
        return None
    first = case.brought(replica.name)
    if first:
        return (
            f"earlier steps of this plan apply {first.shortened()} on {replica.name} first, which"
            f" may change rows of {arriving.shortened()}: run these steps alone, then audit and"
            " plan again"
        )
    if content.state_on(replica.name).state is RowState.AS_AFTER and arriving <= content.wanted:
        return (
            f"the rows of {arriving.shortened()} are already on {replica.name}: fetched again, the"
            " transactions would stop the applier or duplicate data"
        )
    return None


def _beside(case: Case, arriving: GtidSet, channel: ModelChannel) -> str | None:
    """Return why what auto-position delivers in addition may not match; or None.

    It fetches the gaps of other findings, and starts a stopped channel.
    """
    assert case.replica is not None, "the caller has checked"
    for gtids, content in case.beside if case.is_hole else ():
        also = gtids - case.was_there(case.replica.name) - arriving
        why = _conflict(case, content, also) if also else None
        if why is not None:
            return why
    fetching = AutoPositionOn(case.replica.name, channel.name, filled=GtidSet())
    return misfit_of_waiting(case, fetching)


def _unread_below(case: Case, arriving: GtidSet) -> str | None:
    """Return why unread servers may get what is fetched, and already have its rows; or None."""
    names = [name for name, executed in case.unread.items() if arriving - executed]
    if not names or case.content is None or not case.content.needing_decision(arriving):
        return None
    return (
        f"{', '.join(names)} could not be read, and may receive {arriving.shortened()} from"
        f" {case.finding.replica}: the rows there were not compared"
    )


def _compared(case: Case, arriving: GtidSet) -> Iterator[TransactionContent]:
    """Yield the contents of all that is fetched and whose rows must still be as compared."""
    beside = case.beside if case.is_hole else ()
    for gtids, content in ((arriving, case.content), *beside):
        if content is not None and content.needing_decision(gtids):
            yield content


def _below(case: Case, channel: ModelChannel) -> str | None:
    """Return why what is fetched does not match the replica or a server that receives it; or None.

    This includes rows that are as before, because definitions may differ there, a CHECK for
    instance. It also includes what another channel is to deliver: that channel may be held up, and
    then this one delivers it.
    """
    replica, content = case.replica, case.content
    assert replica is not None, "the caller has checked"
    assert content is not None, "what was not read is a conflict on the replica"
    fetching = AutoPositionOn(replica.name, channel.name, filled=GtidSet())
    after = simulate(case.model, fetching)
    fetched = (after[replica.name].executed - replica.executed) & content.wanted
    receiving = below(after, replica.name, running=True)
    for name, server in case.model.servers.items():
        arriving = (after[name].executed - server.executed) & content.wanted
        if arriving and (why := misfit(content, server, arriving)) is not None:
            return why
        twice = fetched - arriving - case.was_there(name) if name in receiving else GtidSet()
        if twice and (why := misfit(content, server, twice, must_fit=False)) is not None:
            return why
    return None


def _dropped(case: Case, arriving: GtidSet) -> str | None:
    """Return why a receiver may drop transactions again; None if nothing indicates it (H8).

    It drops events with its own server_id. A rebuilt server has a new server_uuid and often the old
    server_id: what it committed before then has the UUID of no server.
    """
    assert case.replica is not None, "the caller has checked"
    if case.finding.code != "H8" or case.finding.grade is Grade.PROVED:
        return None
    for server in case.model.servers.values():
        arriving = arriving.without_uuid(server.server_uuid)
    if not arriving:
        return None
    return (
        f"{arriving.shortened()} has the UUID of no server that was read: if {case.replica.name}"
        f" committed it before it was rebuilt, the receiver of {case.replica.name} drops it"
    )


def _changed_since(case: Case, content: TransactionContent, arriving: GtidSet) -> str | None:
    """Return why rows may have been changed after the transactions; None if they were not."""
    assert case.source is not None, "the caller has checked"
    state = content.state_on(case.source.name)
    if state.state is RowState.AS_AFTER:
        return None
    why = state.why or "they are not as the transactions left them"
    return f"rows of {arriving.shortened()} were changed since on {case.source.name}: {why}"

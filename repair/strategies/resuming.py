"""Actions that resume a channel once the sets match: the last steps of declaring and redoing."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gtid import GtidSet
from repair.doubts.doubted_content import delivered_empty
from repair.doubts.left_out_rows import without_left_out
from repair.doubts.start_doubts import doubts_of_history
from repair.model.actions import Action, AutoPositionOn, StartChannel, simulate
from repair.model.remaining_action import remaining_part
from repair.model.replication_model import ModelChannel, ModelServer, refused
from repair.model.same_server_id import same_server_id
from repair.model.strategy_case import Case, Refusal
from repair.model.unlogged_redo import purges_what_it_receives
from repair.strategies.starting import misfit_of_waiting, unknown_source


def resuming_actions(case: Case) -> tuple[StartChannel | AutoPositionOn, ...]:
    """Return the actions that resume the finding's channel, once the sets match.

    For a gap, that is the channel itself: it is switched to auto-position, or started. A stopped
    applier (A2) keeps its file position, and so does a channel after which other transactions are
    missing: C3 and H8 have their own answers, which compare rows. For extra transactions it is the
    channel that would have delivered them to the source, if it is stopped. For lost ones (E3) it is
    the channels that the source refused while the replicas had extra GTIDs. None of them is started
    if it may fetch again what its applier has passed: H8 is answered first. A GTID that a session
    set (H7) stops no channel while the servers run.
    """
    receiving = case.receiving
    if case.finding.code == "H7":
        return ()
    if not case.is_hole:
        return tuple(_stopped_between(case))
    if receiving is None or receiving[1].until:
        return ()  # an operator's stop condition: started only if selected
    replica, channel = receiving
    if not case.is_chosen and channel.source not in case.model.servers:
        return ()  # what it would deliver is not known
    if not channel.running and same_server_id(case, replica) is not None:
        return ()  # it would drop what the other server committed (C2)
    is_stopped = case.finding.code.startswith("A")
    at_an_event = channel.is_stuck and bool(channel.doomed)
    if not is_stopped and (at_an_event or channel.stuck_at - replica.executed - case.wanted):
        return ()  # something else stopped it: A1 moves past it, A2 or A3 lists what to compare
    if (
        not channel.auto_position
        and not is_stopped
        and not fetched_as_well(replica, channel, case.wanted)
    ):
        if purges_what_it_receives(case.model, channel):
            return ()
        switch = AutoPositionOn(replica.name, channel.name, filled=case.wanted)
        if not (case.is_chosen or channel.running) and _misfits_behind(case, replica, switch):
            return ()  # A7 and C3 list what to compare
        return (switch,)
    if (channel.running and not channel.is_stuck) or _refused_still(case, replica, channel):
        return ()
    start = StartChannel(replica.name, channel.name)
    if not case.is_chosen and (
        misfit_of_waiting(case, start) is not None
        or next(doubts_of_history(case, replica, channel), None) is not None
    ):
        return ()  # A7 lists what to compare
    return (start,)


def _misfits_behind(case: Case, replica: ModelServer, step: AutoPositionOn) -> bool:
    """Return whether what waits may not match, once the finding's transactions are executed."""
    filled = replace(replica, executed=replica.executed | case.wanted)
    then = replace(case, model=case.model.replace(filled))
    return misfit_of_waiting(then, step) is not None


def fetches_again(case: Case) -> Refusal | None:
    """Refuse if the start after a refused connection (P1) would fetch the GTIDs of H8.

    The answer to H8 may be to leave them out, so it must come first.
    """
    receiving = case.receiving
    if case.finding.code != "P1" or receiving is None or receiving[1].running:
        return None
    again = fetched_as_well(*receiving, case.wanted)
    if not again or not resuming_actions(case):
        return None
    return Refusal(
        f"the start of the channel would fetch {again.shortened()} again, which the applier of"
        f" {case.finding.replica} has passed: answer that finding (H8) first, or with this one"
    )


def misfits_when_resumed(
    case: Case, actions: Sequence[Action], *, leaves_out: bool = False
) -> Iterator[str]:
    """Yield why rows may not match what waits, if a selected strategy ends with a start.

    After a row conflict (A2) the order of the source's log does not prove that rows match. With
    `leaves_out` the actions execute the finding's transactions without their content.
    """
    resumed, after = resuming_actions(case) if case.is_chosen else (), case.model
    for action in actions:
        left = remaining_part(after, action)
        after = after if left is None else simulate(after, left)
    waiting = case.waiting
    if case.finding.code.startswith("A"):
        waiting = {place: replace(each, is_in_order=False) for place, each in waiting.items()}
    arrivals = without_left_out(case, after) if leaves_out else case.arrivals
    then = replace(case, model=after, waiting=waiting, arrivals=arrivals)
    for step in resumed:
        if (unknown := unknown_source(then, step)) is not None:
            yield (
                f"once replication runs on {step.server}, what waits may stop the applier or"
                f" overwrite rows: {unknown}"
            )
            continue
        if late := _late_by_position(case, step):
            yield (
                f"{late.shortened()} had not arrived on {step.server} when the servers were read."
                " If the file position is after them, auto-position fetches them after later"
                " transactions: they may stop the applier or overwrite rows"
            )
        why = misfit_of_waiting(then, step)
        if why is not None:
            yield (
                f"once replication runs on {step.server}, what waits may overwrite rows or stop an"
                f" applier: {why}"
            )
        yield from delivered_empty(then, step)


def _late_by_position(case: Case, step: StartChannel | AutoPositionOn) -> GtidSet:
    """Return what a channel had not delivered with its file position when it was read.

    The model lets a running channel deliver it. A gap of a busy server becomes visible only later.
    """
    channel = case.channel
    if channel is None or not isinstance(step, AutoPositionOn):
        return GtidSet()
    there = case.snapshot_executed.get(channel.source or "", GtidSet())
    late = there - case.snapshot_executed[step.server] - case.wanted
    return late.without_uuid(case.model[step.server].server_uuid)


def _refused_still(case: Case, replica: ModelServer, channel: ModelChannel) -> bool:
    """Return whether the source refuses the channel because of other GTIDs than these (P1)."""
    source = case.model.servers.get(channel.source or "")
    if source is None or not channel.auto_position or case.finding.code != "H8":
        return False
    then = replace(replica, executed=replica.executed | case.wanted)
    return bool(refused(source, then, channel))


def fetched_as_well(replica: ModelServer, channel: ModelChannel, wanted: GtidSet) -> GtidSet:
    """Return what a channel has passed besides these, and auto-position would deliver too.

    It belongs to other findings, and their answer may be to leave it out.
    """
    return (channel.passed | channel.bypassed) - replica.executed - wanted


def _stopped_between(case: Case) -> Iterator[StartChannel]:
    if case.source is None or case.replica is None:
        return
    then = replace(case.source, executed=case.source.executed | case.wanted)
    pairs = [(then, case.replica)]
    if case.finding.code == "E3":  # all its replicas have them and were refused
        pairs += [
            (server, then)
            for server in case.model.servers.values()
            if case.wanted & server.executed
        ]
    for starting, sending in pairs:
        for channel in starting.channels:
            if (
                channel.source == sending.name
                and not channel.running
                and not channel.until
                and channel.auto_position
                and not channel.passed - starting.executed
                and not refused(sending, starting, channel)
                and same_server_id(case, starting) is None
            ):
                yield StartChannel(starting.name, channel.name)

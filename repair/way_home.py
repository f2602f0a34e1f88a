"""What brings a channel back once the sets agree: the last steps of declaring and redoing."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gtid import GtidSet
from repair.actions import Action, AutoPositionOn, StartChannel
from repair.doubted_content import delivered_empty
from repair.model import refused, simulate
from repair.needed import needed
from repair.starting import misfit_of_waiting, unknown_source
from repair.strategy_case import Case, Refusal
from repair.unlogged import purges_what_it_receives


def way_home(case: Case) -> tuple[StartChannel | AutoPositionOn, ...]:
    """Return what brings the channel concerned back, once the sets agree.

    For a hole the channel itself: to auto-position, or started. A stopped applier (A2) stays by
    file position, and a channel behind which other transactions are missing: C3 and H8 have their
    own answers, which compare rows. For extra transactions the channel that would have brought them
    to the source, if it is stopped; for lost ones (E3) the channels that the source refused while
    the replicas had more than it. None of them is started that may fetch again what its applier has
    passed: H8 is answered first. A GTID made by hand (H7) stops none while the servers run.
    """
    channel = case.channel
    if case.finding.code == "H7":
        return ()
    if not case.is_hole:
        return tuple(_stopped_between(case))
    if channel is None or case.replica is None or channel.until:
        return ()  # where an operator told it to stop, it is started only if that is selected
    if not case.is_chosen and channel.source not in case.model.servers:
        return ()  # what it would bring is not known
    is_stopped = case.finding.code.startswith("A")
    if not is_stopped and channel.stuck_at - case.replica.executed - case.wanted:
        return ()  # its applier stands at another transaction: A2 or A3 says what to compare
    if not channel.auto_position and not is_stopped and not _fetched_as_well(case):
        if purges_what_it_receives(case.model, channel):
            return ()
        switch = AutoPositionOn(case.replica.name, channel.name, filled=case.wanted)
        if not (case.is_chosen or channel.running) and _misfits_behind(case, switch):
            return ()  # A7 and C3 say what to compare
        return (switch,)
    if (channel.running and not channel.is_stuck) or _refused_still(case):
        return ()
    start = StartChannel(case.replica.name, channel.name)
    if not case.is_chosen and misfit_of_waiting(case, start) is not None:
        return ()  # A7 says what to compare
    return (start,)


def _misfits_behind(case: Case, step: AutoPositionOn) -> bool:
    """Return whether what waits may not fit, once the finding's transactions are executed."""
    assert case.replica is not None, "the caller has looked"
    filled = replace(case.replica, executed=case.replica.executed | case.wanted)
    then = replace(case, model=case.model.replace(filled))
    return misfit_of_waiting(then, step) is not None


def fetches_again(case: Case) -> Refusal | None:
    """Refuse where the start behind a refused connection (P1) would fetch what H8 is about.

    Its answer may be to leave that out; it must come first.
    """
    channel = case.channel
    if case.finding.code != "P1" or channel is None or channel.running:
        return None
    again = _fetched_as_well(case)
    if not again or not way_home(case):
        return None
    return Refusal(
        f"the start of the channel would fetch {again.shortened()} again, which the applier of"
        f" {case.finding.replica} has passed: answer that finding (H8) first, or with this one"
    )


def misfits_at_home(case: Case, actions: Sequence[Action]) -> Iterator[str]:
    """Yield why rows may not fit what waits, where a selected strategy ends with a start.

    Behind a row conflict (A2) the order of the source's log is no proof that rows fit.
    """
    home, after = way_home(case) if case.is_chosen else (), case.model
    for action in actions:
        left = needed(after, action)
        after = after if left is None else simulate(after, left)
    waiting = case.waiting
    if case.finding.code.startswith("A"):
        waiting = {place: replace(each, is_in_order=False) for place, each in waiting.items()}
    then = replace(case, model=after, waiting=waiting)
    for step in home:
        if (unknown := unknown_source(then, step)) is not None:
            yield (
                f"once replication runs on {step.server}, what waits may stop the applier or"
                f" overwrite rows: {unknown}"
            )
            continue
        if late := _late_by_position(case, step):
            yield (
                f"{late.shortened()} had not arrived on {step.server} when the servers were read."
                " If the file position is behind them, auto-position fetches them behind later"
                " transactions: they may stop the applier or overwrite rows"
            )
        why = misfit_of_waiting(then, step)
        if why is not None:
            yield f"once replication runs on {step.server}, what waits may overwrite rows: {why}"
        yield from delivered_empty(then, step)


def _late_by_position(case: Case, step: StartChannel | AutoPositionOn) -> GtidSet:
    """Return what a channel leaves its file position with, and had not brought when it was read.

    The model lets a channel that runs bring it. A hole of a busy server shows only later.
    """
    channel = case.channel
    if channel is None or not isinstance(step, AutoPositionOn):
        return GtidSet()
    there = case.snapshot_executed.get(channel.source or "", GtidSet())
    late = there - case.snapshot_executed[step.server] - case.wanted
    return late.without_uuid(case.model[step.server].server_uuid)


def _refused_still(case: Case) -> bool:
    """Return whether the source refuses the channel for other GTIDs than these (P1 has them)."""
    assert case.replica is not None, "the caller has looked"
    assert case.channel is not None, "the caller has looked"
    source = case.model.servers.get(case.channel.source or "")
    if source is None or not case.channel.auto_position or case.finding.code != "H8":
        return False
    then = replace(case.replica, executed=case.replica.executed | case.wanted)
    return bool(refused(source, then, case.channel))


def _fetched_as_well(case: Case) -> GtidSet:
    """Return what else is missing behind a hole's channel, and auto-position would bring as well.

    It is of other findings, and their answer may be to leave it out.
    """
    assert case.replica is not None, "the caller has looked"
    assert case.channel is not None, "the caller has looked"
    behind = case.channel.passed | case.channel.bypassed
    return behind - case.replica.executed - case.wanted


def _stopped_between(case: Case) -> Iterator[StartChannel]:
    if case.source is None or case.replica is None:
        return
    then = replace(case.source, executed=case.source.executed | case.wanted)
    pairs = [(then, case.replica)]
    if case.finding.code == "E3":  # each of its replicas has them and was refused
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
            ):
                yield StartChannel(starting.name, channel.name)

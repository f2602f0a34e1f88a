"""What brings a channel back once the sets agree: the last steps of declaring and redoing."""

from collections.abc import Iterator
from dataclasses import replace

from gtid import GtidSet
from repair.actions import Action, AutoPositionOn, StartChannel
from repair.case import Case
from repair.model import refused
from repair.starting import misfit_of_waiting


def way_home(case: Case) -> tuple[Action, ...]:
    """Return what brings the channel concerned back, once the sets agree.

    For a hole the channel itself: to auto-position, or started. A stopped applier (A2) stays by
    file position, and a channel behind which other transactions are missing: C3 and H8 have their
    own answers, which compare rows. For extra transactions the channel that would have brought them
    to the source, if it is stopped; for lost ones (E3) the channels that the source refused while
    the replicas had more than it. A GTID made by hand (H7) stops none while the servers run.
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
    if not channel.auto_position and not is_stopped and not _fetched_as_well(case):
        return (AutoPositionOn(case.replica.name, channel.name, filled=case.wanted),)
    if channel.running and not channel.is_stuck:
        return ()
    start = StartChannel(case.replica.name, channel.name)
    if not case.is_chosen and misfit_of_waiting(case, start) is not None:
        return ()  # A7 says what to compare
    return (start,)


def _fetched_as_well(case: Case) -> GtidSet:
    """Return what else is missing behind a hole's channel, and auto-position would bring as well.

    It is of other findings, and their answer may be to leave it out.
    """
    if case.channel is None or case.replica is None:
        return GtidSet()
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
            if server.name != then.name and case.wanted & server.executed
        ]
    for starting, sending in pairs:
        for channel in starting.channels:
            if (
                channel.source == sending.name
                and not channel.running
                and not channel.until
                and channel.auto_position
                and not refused(sending, starting, channel)
            ):
                yield StartChannel(starting.name, channel.name)

"""What brings a channel back once the sets agree: the last steps of declaring and redoing."""

from collections.abc import Iterator
from dataclasses import replace

from repair.actions import Action, AutoPositionOn, StartChannel
from repair.case import Case
from repair.model import refused


def way_home(case: Case) -> tuple[Action, ...]:
    """Return what brings the channel concerned back, once the sets agree.

    For a hole the channel itself: to auto-position, or started. For extra transactions the channel
    that would have brought them to the source, if it is stopped; for lost ones (E3) the channels
    that the source refused while the replicas had more than it.
    """
    channel = case.channel
    if not case.is_hole:
        return tuple(_stopped_between(case))
    if channel is None or case.replica is None or channel.until:
        return ()  # where an operator told it to stop, it is started only if that is selected
    if not channel.auto_position:
        return (AutoPositionOn(case.replica.name, channel.name, filled=case.wanted),)
    if channel.running and not channel.is_stuck:
        return ()
    return (StartChannel(case.replica.name, channel.name),)


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

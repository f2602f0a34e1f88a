"""What is not started unasked: a channel at whose address another server may be by now."""

from repair.actions import AutoPositionOn, MovePast, StartChannel
from repair.case import Case, Outcome, Refusal
from repair.offered import offered


def unless_doubtful(case: Case, outcome: Outcome) -> Outcome:
    """Refuse what starts a channel whose source may be another server, unless it is selected.

    The rows of what waits were compared with those of the server that the channel names, and a
    start connects to the address. Where that is another server's for certain, an invariant refuses
    the start (ModelChannel.fails).
    """
    if case.is_chosen or isinstance(outcome, Refusal):
        return outcome
    for action in outcome.actions:
        if isinstance(action, AutoPositionOn | StartChannel | MovePast):
            channel = case.model[action.server].channel(action.channel)
            assert channel is not None, "strategies name channels that exist"
            if channel.doubt and not channel.fails:
                return Refusal(f"{channel.doubt}, or choose with {offered(case)}")
    return outcome

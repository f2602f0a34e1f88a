"""What stands against the start of a channel, unless the operator chooses it.

1. Its source may be another server: a different one at the same address, or a copy.
2. Its source may leave out transactions without a GTID (unnumbered.py).
3. Its source may deliver a GTID of a receiving server's own UUID that a session set there.
"""

from collections.abc import Iterator
from dataclasses import replace

from gtid import GtidSet
from repair.content.content_questions import EXTRA
from repair.doubts.start_doubts import as_warning
from repair.model.actions import AutoPositionOn, MovePast, StartChannel
from repair.model.offered_strategies import offered
from repair.model.replication_model import below
from repair.model.strategy_case import Case, Outcome, Refusal
from repair.model.unnumbered import may_leave_out
from topology.rules.passed import OTHER_ADDRESS


def unless_doubtful(case: Case, outcome: Outcome) -> Outcome:
    """Refuse to start a channel whose source is in doubt, or may leave out transactions.

    A start that the operator has selected is not refused: what makes its source doubtful is a
    warning then. The rows of what waits were compared with those of the server that the channel
    identifies, but a start connects to the address. If it is certainly the address of another
    server, an invariant refuses the start (ModelChannel.fails).
    """
    if isinstance(outcome, Refusal):
        return outcome
    warnings: dict[str, None] = {}
    for action in outcome.actions:
        if isinstance(action, AutoPositionOn | StartChannel | MovePast):
            channel = case.model[action.server].channel(action.channel)
            assert channel is not None, "strategies refer to existing channels"
            doubt = "" if channel.fails else channel.doubt or _own_made_elsewhere(case, action)
            why = doubt or may_leave_out(action, channel)
            if why and not case.is_chosen:
                return Refusal(f"{why}, or choose with {offered(case)}")
            if doubt:
                warnings[as_warning(doubt)] = None
    return replace(outcome, warnings=(*outcome.warnings, *warnings)) if warnings else outcome


def _own_made_elsewhere(case: Case, action: AutoPositionOn | StartChannel | MovePast) -> str:
    """Return that an action may deliver a GTID of a receiving server's own UUID, made by hand.

    A receiver drops what has its server_id, and not what has its server_uuid: it gets what a
    session on another server committed under gtid_next, and not what it committed and lost itself.
    What the finding itself is about is not delivered before its strategy has answered it.
    """
    model = case.model
    channel = model[action.server].channel(action.channel)
    source = model.servers.get((channel.source if channel else None) or "")
    if source is None:
        return ""
    answered = case.finding.gtid_set if case.finding.code in EXTRA else GtidSet()
    for name in (action.server, *sorted(below(model, action.server, running=True))):
        server = model[name]
        if name == source.name or server.server_uuid in model.links.groups:
            continue
        made = source.available.from_uuid(server.server_uuid) - server.executed - answered
        if made:
            return (
                f"{source.name} has {made.shortened()}, with the server_uuid of {name}, which does"
                f" not have them: if a session set gtid_next, {name} applies them as soon as a"
                " channel delivers them, and their rows were not compared there. Answer H7, E1 or"
                " E3 first"
            )
    return ""


def may_ask_a_copy(case: Case) -> Iterator[str]:
    """Yield a warning that the next connection may reach a copy of the source, if H8 allows it."""
    for each in case.finding.evidence:
        if each.fact == OTHER_ADDRESS:
            yield (
                f"{case.finding.source} was not read at {each.value}, the address of the channel:"
                " if another server with its server_uuid is there, that one is asked again, and"
                f" {case.finding.code} is still there afterwards"
            )

"""What a channel's source has not received yet when the servers are read: no one can compare it.

How it works
------------
    a ──► b ──► c (stopped)         b has not received a:5 yet; c committed c:1 itself

A start of c brings a:5 as well, as soon as b has it. On a plain replica that is the order of one
log, and fits. Where a server has committed what its sources do not get, its rows may be other ones.
"""

from gtid import GtidSet
from repair.actions import AutoPositionOn, StartChannel
from repair.case import Case
from repair.model import simulate, upstream


def unread_beside_own_work(case: Case, action: StartChannel | AutoPositionOn) -> str | None:
    """Return why what still comes through a channel may not fit the rows of a server; or None."""
    question = case.waiting.get((action.server, action.channel))
    channel = case.model[action.server].channel(action.channel)
    there = case.snapshot_executed.get((channel.source if channel else None) or "", GtidSet())
    if question is not None:
        there |= question.wanted
    after = simulate(case.model, action)
    for name, server in case.model.servers.items():
        coming = after[name].executed - server.executed - there
        own = server.executed
        for source in upstream(case.model, name):
            own -= after[source].executed
        if coming and own:
            return (
                f"{coming.shortened()} was not yet on the source of {action.server} and could not"
                f" be compared, and {name} has {own.shortened()}, which its sources do not have:"
                " wait until it has arrived there, then audit and plan again"
            )
    return None

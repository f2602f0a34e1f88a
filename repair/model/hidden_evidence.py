"""Evidence that earlier steps of a plan remove: a plan made after them could not read it.

How it works
------------
A transaction counts as empty only if every server that has its GTID shows that
(repair/adapters/transactions_for_plan.py). The evidence is its binary log. If gtid_mode is not ON,
it may also be the relay log, because the server received it with auto-position from a server that
was read. Two kinds of steps remove the evidence:

    CHANGE … AUTO_POSITION = 1 deletes the relay log
    an empty transaction is in no binary log if the server has none, or does not log received ones

If the run stops there, the next plan finds the content unread and requires a decision. A plan must
not decide what the next plan, after some of its steps, would leave to the operator.
"""

from gtid import GtidSet
from repair.model.strategy_case import Case, Refusal


def no_longer_shown(case: Case) -> Refusal | None:
    """Refuse what earlier steps of the plan make unreadable, on any server; None if nothing is."""
    why = hidden_by_steps(case, case.wanted)
    return None if why is None else Refusal(why)


def hidden_by_steps(case: Case, gtids: GtidSet) -> str | None:
    """Return the server on which earlier steps hide the evidence for these GTIDs; None if none."""
    for name, server in case.model.servers.items():
        if server.sends_by_sets and name not in case.declared:
            continue  # its logs show what they showed before
        made = gtids.from_uuid(server.server_uuid) & case.declared_on(name)
        hidden = made - server.available
        if not server.sends_by_sets:
            by_sets = (each for each in server.channels if each.auto_position)
            received = GtidSet.union_of(each.retrieved for each in by_sets)
            hidden |= (gtids & case.snapshot_executed[name]) - received
        if hidden:
            return (
                f"after earlier steps of this plan no log of {name} shows what it has under"
                f" {hidden.shortened()}: run these steps alone, then audit and plan again"
            )
    return None

"""Evidence that earlier steps of a plan remove: a plan made again behind them could not read it.

How it works
------------
A transaction counts as empty only if every server that has its GTID shows it so
(gtid_audit/transactions_for_plan.py): in its binary log; or, where gtid_mode is not ON, by the
relay log, for it was received by auto-position from a server that was asked. Two kinds of steps
take that away:

    CHANGE … AUTO_POSITION = 1 deletes the relay log
    an empty transaction is in no binary log where there is none, or received ones are not logged

If the run stops there, the next plan finds the content unread and asks for a decision. A plan must
not decide what the next one, behind a part of its steps, would leave to the operator.
"""

from gtid import GtidSet
from repair.strategy_case import Case, Refusal


def no_longer_shown(case: Case) -> Refusal | None:
    """Refuse what earlier steps of the plan make unreadable, on any server; None if nothing is."""
    why = hidden_by_steps(case, case.wanted)
    return None if why is None else Refusal(why)


def hidden_by_steps(case: Case, gtids: GtidSet) -> str | None:
    """Return on which server earlier steps of the plan hide what has these GTIDs; None if none."""
    for name, server in case.model.servers.items():
        made = gtids.from_uuid(server.server_uuid) & case.declared_on(name)
        hidden = made - server.available
        if not server.sends_by_sets:
            by_sets = (each for each in server.channels if each.auto_position)
            received = GtidSet.union_of(each.retrieved for each in by_sets)
            hidden |= (gtids & case.snapshot_executed[name]) - received
        if hidden:
            return (
                f"behind earlier steps of this plan no log of {name} shows what it has under"
                f" {hidden.shortened()}: run these steps alone, then audit and plan again"
            )
    return None

"""The strategies that a refusal offers: those of the catalogue that can act on these servers.

A strategy that cannot act here must not be offered: the operator would select it, and get another
refusal. This module excludes only what the model rules out. If the content of transactions rules a
strategy out, the strategy itself refuses.
"""

from gtid import GtidSet
from repair.model.actions import AutoPositionOn, StartChannel, simulate
from repair.model.strategy_case import Case
from topology.catalogue.strategy_table import strategies_for

_OF_GROUPS = frozenset({"join_group"})  # they answer a finding only where it is about a group


def offered(case: Case) -> str:
    """Return the strategies that answer a finding here, as text for a refusal."""
    code = case.finding.code
    of_finding = {each.name for each in case.finding.strategies}
    names = (
        name
        for name in strategies_for(code)
        if (name != "start_channel" or _a_channel_could_deliver(case))
        and (name not in _OF_GROUPS or name in of_finding)
    )
    return f"--strategy {code}=NAME: {', '.join(names)}"


def _a_channel_could_deliver(case: Case) -> bool:
    """Return whether a start of any channel could deliver the finding's transactions.

    Extra transactions (E) need a stopped channel that leads to the finding's source, directly or
    through others; `simulate` forwards what it delivers. Other findings specify their channel.
    """
    if not case.finding.code.startswith("E"):
        return case.channel is not None
    if case.source is None:
        return False
    for server in case.model.servers.values():
        for channel in server.channels:
            if channel.running or channel.is_stuck:
                continue
            start = (
                StartChannel(server.name, channel.name)
                if channel.auto_position
                else AutoPositionOn(server.name, channel.name, filled=GtidSet())
            )
            after = simulate(case.model, start)
            if case.finding.gtid_set <= after[case.source.name].executed:
                return True
    return False

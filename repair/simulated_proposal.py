"""Tries one strategy for one finding: its proposal is simulated, and refused where it harms.

1. A proposal is kept if its actions, simulated in order after the plan so far, break no invariant,
   and if the rules find no server worse afterwards (worse_findings.py).
2. Pure: the caller (planner.py) keeps the result, or the reason.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gtid import GtidSet
from repair.doubts.doubtful_sources import unless_doubtful
from repair.doubts.more_written import unless_more_is_written
from repair.model.actions import Action, AppendPurged, InjectEmpty, ResetAndPurge
from repair.model.replication_model import Model
from repair.model.strategy_case import Case, Proposal, Refusal
from repair.plan_input import PlanInput
from repair.scripts.procedure import Setting
from repair.scripts.simulated_actions import simulated_actions
from repair.strategies.kept_out import KeptOut, brings_in
from repair.strategies.strategy_registry import PLANNERS
from repair.worse_findings import Change, why_worse
from topology.catalogue.findings import ClusterAudit
from topology.catalogue.strategy_table import strategies_for


@dataclass(frozen=True, slots=True)
class Simulated:
    """A proposal that passed: its actions with the servers before and after each."""

    settings: tuple[tuple[Action, Setting], ...]
    model: Model  # after the last of them
    outlook: ClusterAudit  # what the rules report then
    proposal: Proposal

    @property
    def declared(self) -> Iterator[tuple[str, GtidSet]]:
        """Yield what becomes executed without its content, by server, below the servers too."""
        for action, setting in self.settings:
            if isinstance(action, InjectEmpty | AppendPurged | ResetAndPurge):
                for server, now in setting.after.servers.items():
                    yield server, now.executed - setting.before[server].executed


def try_strategy(
    case: Case,
    name: str,
    given: PlanInput,
    *,
    outlook: ClusterAudit,
    kept_out: tuple[KeptOut, ...],
) -> Simulated | Refusal:
    """Return what a strategy does for a case, or why it is not used.

    Args:
        case: the finding, and the servers after the steps so far.
        name: the strategy.
        given: the input of the plan.
        outlook: what the rules report after the steps so far.
        kept_out: what the operator chose to leave out; no other step may deliver it.
    """
    if name not in PLANNERS:
        return Refusal("this version does not plan this strategy")
    if name not in strategies_for(case.finding.code):
        return Refusal(f"this strategy does not answer {case.finding.code}")
    outcome = unless_doubtful(case, PLANNERS[name](case))
    outcome = unless_more_is_written(outcome, given.evidence.side_effects)
    if isinstance(outcome, Refusal):
        return outcome
    return _simulated(case, outcome, given, outlook=outlook, kept_out=kept_out)


def _simulated(
    case: Case,
    proposal: Proposal,
    given: PlanInput,
    *,
    outlook: ClusterAudit,
    kept_out: tuple[KeptOut, ...],
) -> Simulated | Refusal:
    """Simulate a proposal; refuse it if it breaks an invariant or makes a server worse."""
    settings = simulated_actions(case.model, proposal.actions, given.known)
    if isinstance(settings, Refusal):
        return settings
    model = settings[-1][1].after if settings else case.model
    then = given.look_ahead(model) if settings else outlook
    actions = tuple(action for action, _ in settings)
    change = Change(given.snapshot, given.started, model, actions, is_chosen=case.is_chosen)
    if worse := why_worse(outlook, then, change):
        return Refusal(f"afterwards the audit would report {worse}")
    if unwanted := "; ".join(brings_in(case, model, kept_out)):
        return Refusal(unwanted)
    return Simulated(settings, model, then, proposal)

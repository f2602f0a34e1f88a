"""Tries one strategy for one finding: its proposal is simulated, and refused where it harms.

1. A proposal is kept if its actions, simulated in order after the plan so far, break no invariant
   (`simulate_strategy`), and if the rules find no server worse afterwards (`outlook_after`, and
   worse_findings.py).
2. Pure: the caller (planner.py) keeps the result, or the reason.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gtid import GtidSet
from repair.doubts.doubtful_sources import unless_doubtful
from repair.doubts.more_written import unless_more_is_written
from repair.doubts.unseen_receivers import unless_unseen
from repair.model.actions import Action, AppendPurged, InjectEmpty, ResetAndPurge
from repair.model.replication_model import Model
from repair.model.strategy_case import Case, Proposal, Refusal
from repair.plan_input import PlanInput
from repair.scripts.procedure import Setting
from repair.scripts.simulated_actions import simulated_actions
from repair.strategies.kept_out import brings_in, kept_out
from repair.strategies.strategy_registry import PLANNERS
from repair.worse_findings import Change, why_worse
from topology.catalogue.findings import ClusterAudit, Finding
from topology.catalogue.strategy_table import strategies_for


@dataclass(frozen=True, slots=True)
class Simulated:
    """A proposal whose actions break no invariant, with the servers before and after each."""

    settings: tuple[tuple[Action, Setting], ...]
    model: Model  # after the last of them
    proposal: Proposal

    @property
    def effects(self) -> tuple[Action, ...]:
        """Return the actions, in order."""
        return tuple(action for action, _ in self.settings)

    @property
    def declared(self) -> Iterator[tuple[str, GtidSet]]:
        """Yield what becomes executed without its content, by server, below the servers too."""
        for action, setting in self.settings:
            if isinstance(action, InjectEmpty | AppendPurged | ResetAndPurge):
                for server, now in setting.after.servers.items():
                    yield server, now.executed - setting.before[server].executed


def simulate_strategy(case: Case, name: str, given: PlanInput) -> Simulated | Refusal:
    """Return what a strategy does for a case, or why it is not used. No rule evaluates it yet.

    Args:
        case: the finding, and the servers after the steps so far.
        name: the strategy.
        given: the input of the plan.
    """
    if name not in PLANNERS:
        return Refusal("this version does not plan this strategy")
    if name not in strategies_for(case.finding.code):
        return Refusal(f"this strategy does not answer {case.finding.code}")
    outcome = unless_doubtful(case, PLANNERS[name](case))
    effects, events = given.evidence.side_effects, given.evidence.running_events
    outcome = unless_more_is_written(outcome, effects, events)
    outcome = unless_unseen(case, outcome)
    if isinstance(outcome, Refusal):
        return outcome
    settings = simulated_actions(case.model, outcome.actions, given.known)
    if isinstance(settings, Refusal):
        return settings
    model = settings[-1][1].after if settings else case.model
    return Simulated(settings, model, outcome)


def outlook_after(
    case: Case,
    simulated: Simulated,
    given: PlanInput,
    *,
    outlook: ClusterAudit,
    left: Iterable[Finding],
    refusals: Mapping[str, Mapping[str, str]],
) -> ClusterAudit | Refusal:
    """Return what the rules report after a proposal; refuse it if it makes a server worse.

    It is refused also if it delivers what the operator chose to leave out (kept_out.py).

    Args:
        case: the finding, and the servers after the steps so far.
        simulated: the proposal.
        given: the input of the plan.
        outlook: what the rules report after the steps so far.
        left: the findings without a step so far.
        refusals: by finding id, why strategies were not planned.
    """
    then = outlook_after_steps(
        simulated.effects, simulated.model, given, outlook=outlook, is_chosen=case.is_chosen
    )
    out = tuple(kept_out(left, given.chosen, refusals))
    unwanted = "; ".join(brings_in(case, simulated.model, out))
    return Refusal(unwanted) if unwanted and not isinstance(then, Refusal) else then


def outlook_after_steps(
    effects: tuple[Action, ...],
    model: Model,
    given: PlanInput,
    *,
    outlook: ClusterAudit,
    is_chosen: bool,
) -> ClusterAudit | Refusal:
    """Return what the rules report after actions; refuse them if they make a server worse.

    Args:
        effects: the actions, in order.
        model: the servers after the last of them.
        given: the input of the plan.
        outlook: what the rules report before the first of them.
        is_chosen: the operator selected the strategy.
    """
    then = given.look_ahead(model) if effects else outlook
    change = Change(given.snapshot, given.started, model, effects, is_chosen=is_chosen)
    worse = why_worse(outlook, then, change)
    return Refusal(f"afterwards the audit would report {worse}") if worse else then

"""Makes a plan from a snapshot and its findings, simulated step by step.

1. For each finding the planner uses the first strategy that can be planned, or the chosen one. A
   strategy can be planned if its actions, simulated in order after the plan so far, break no
   invariant, and if the rules find no server worse afterwards (see repair_plan.py).
2. There are two passes. The first has strategies that deliver transactions, and the operator's
   choices. Only the second leaves transactions out, so it omits nothing that a channel delivers.
3. The rules evaluate the servers after each step. Steps that change one leaf replica each are
   evaluated together: with 1,000 of them, that is one evaluation, not 1,000 (leaf_replicas.py).
4. The plan also lists what is not planned, with the reason and a manual instruction, and what the
   rules would still report after the plan.
5. Pure: the same snapshot, audit, choices and evidence give the same plan, byte for byte.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from gtid import GtidSet
from repair.answered_by_steps import StepsSoFar, delivers, may_stay
from repair.choices import check_choices, seen_in_part
from repair.leaf_replicas import changes_only, leaf_of
from repair.model.replication_model import Model
from repair.model.strategy_case import Case, LogEvidence, Refusal, SavedContent
from repair.plan_input import PlanInput
from repair.plan_parts import (
    STAYS,
    about_others,
    afterwards,
    answered,
    assumed,
    contents_shown,
    left_out,
    not_listed,
    not_planned,
    phase,
    receivers_of,
    rows_made_alike,
    rows_shown,
    unseen_servers,
)
from repair.repair_plan import Afterwards, Answered, NotChosen, Plan
from repair.scripts.procedures import make_step
from repair.scripts.steps import Step
from repair.simulated_proposal import (
    Simulated,
    outlook_after,
    outlook_after_steps,
    simulate_strategy,
)
from topology.catalogue.findings import ClusterAudit, Finding
from topology.policy import Policy
from topology.readings.snapshot import ClusterSnapshot

# Replaces a strategy's name if the finding itself needed no step.
BY_OTHER_STEPS = "by the other steps"


def plan_repair(
    snapshot: ClusterSnapshot,
    audit: ClusterAudit,
    *,
    choices: Mapping[str, str] | None = None,
    finding_ids: Collection[str] | None = None,
    evidence: LogEvidence | None = None,
    policy: Policy | None = None,
) -> Plan:
    """Plan the repair of one cluster.

    Args:
        snapshot: the servers as they were read.
        audit: the findings on that snapshot.
        choices: a strategy's name for a finding's id or for all findings of a code.
        finding_ids: plan for these only; for all if None.
        evidence: what binary logs and tables showed, by finding id. Without it nothing is
            planned by default if its content matters.
        policy: the policy of the audit.

    Raises:
        UnknownChoice: a choice or an id that matches no finding.
        ValueError: the audit is not of this snapshot.
    """
    given = PlanInput.of(
        snapshot, audit, choices or {}, evidence or LogEvidence(), policy or Policy()
    )
    check_choices(audit, given.choices, finding_ids, given.started)
    selected = [
        finding for finding in audit.findings if finding_ids is None or finding.id in finding_ids
    ]
    selected.sort(key=lambda finding: (phase(finding), finding.order))
    work = _Work(given)
    waiting = selected
    for may_declare in (False, True):
        while True:  # one refused at first may be plannable after another's repair
            left = work.unanswered(waiting, may_declare=may_declare)
            if len(left) == len(waiting):
                break
            waiting = left
    return work.plan(left=[finding for finding in left if not work.is_answered(finding)])


@dataclass(frozen=True, slots=True)
class _Tried:
    """What the strategies of a finding propose, up to the first that is not refused."""

    finding: Finding
    refused: dict[str, str]
    name: str = ""
    simulated: Simulated | None = None


@dataclass(slots=True)
class _Work:
    """The plan under construction: the only object with state while planning."""

    given: PlanInput
    model: Model = field(init=False)
    # What the rules report for `model`, and the findings before the first step.
    outlook: ClusterAudit = field(init=False)
    expected: frozenset[str] = field(init=False)
    steps: list[Step] = field(default_factory=list)
    answered: list[Answered] = field(default_factory=list)
    not_chosen: list[NotChosen] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    declared: dict[str, GtidSet] = field(default_factory=dict)
    saved: dict[str, SavedContent] = field(default_factory=dict)
    refusals: dict[str, dict[str, str]] = field(default_factory=dict)
    stays: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by finding: what is left

    def __post_init__(self) -> None:
        self.model = self.given.started
        self.outlook = self.given.look_ahead(self.model)
        self.expected = frozenset(finding.id for finding in self.outlook.findings)

    def unanswered(self, waiting: list[Finding], *, may_declare: bool) -> list[Finding]:
        """Answer the findings in order, several together where possible; return the rest."""
        left: list[Finding] = []
        at, most = 0, len(waiting)
        while at < len(waiting):
            together = [*self._together(waiting[at : at + most], may_declare=may_declare)]
            while len(together) > 1 and not self._keep_together(together):
                together = together[: len(together) // 2]
            if len(together) > 1:
                left += (each.finding for each in together if each.simulated is None)
            elif not self._answer(waiting[at], may_declare=may_declare):
                left.append(waiting[at])
            at += max(1, len(together))
            most = max(2, 2 * len(together))
        return left

    def _answer(self, finding: Finding, *, may_declare: bool) -> bool:
        """Try the strategies of a finding in order; keep the first that can be planned."""
        refused = self.refusals[finding.id] = {}
        done = {each.finding_id for each in self.answered}
        left = [each for each in self.given.audit.findings if each.id not in done]
        for name, case in self._cases(finding, self._so_far(), may_declare=may_declare):
            simulated = simulate_strategy(case, name, self.given)
            if isinstance(simulated, Refusal):
                refused[name] = simulated.reason
                continue
            then = outlook_after(
                case,
                simulated,
                self.given,
                outlook=self.outlook,
                left=left,
                refusals=self.refusals,
            )
            if isinstance(then, Refusal):
                refused[name] = then.reason
                continue
            self._keep(finding, name, simulated)
            self.outlook = then
            return True
        return False

    def _together(self, findings: list[Finding], *, may_declare: bool) -> Iterator[_Tried]:
        """Yield what is proposed for the first findings, as far as they go together.

        leaf_replicas.py explains which do. Each proposal is made for the servers after those before
        it, which the rules have not evaluated.
        """
        leaves = self._leaves(findings)
        if len(leaves) == 1:
            return  # nothing goes together with it
        steps = self._so_far()
        for finding, leaf in zip(findings, leaves, strict=False):
            tried = self._first(finding, steps, may_declare=may_declare)
            if tried.simulated is not None:
                if not changes_only(leaf, tried.simulated, steps.model):
                    return
                effects = (*steps.effects, *tried.simulated.effects)
                steps = replace(steps, model=tried.simulated.model, effects=effects)
            yield tried

    def _leaves(self, findings: list[Finding]) -> list[str]:
        """Return the leaves that the first findings are about, each of another one."""
        leaves: dict[str, None] = {}
        for finding in findings:
            leaf = None if self.given.choices else leaf_of(finding, self.model)
            if leaf is None or leaf in leaves:
                break
            leaves[leaf] = None
        return [*leaves]

    def _first(self, finding: Finding, steps: StepsSoFar, *, may_declare: bool) -> _Tried:
        refused: dict[str, str] = {}
        for name, case in self._cases(finding, steps, may_declare=may_declare):
            simulated = simulate_strategy(case, name, self.given)
            if not isinstance(simulated, Refusal):
                return _Tried(finding, refused, name, simulated)
            refused[name] = simulated.reason
        return _Tried(finding, refused)

    def _keep_together(self, together: list[_Tried]) -> bool:
        """Keep proposals, unless the rules find a server worse after the last of them."""
        found = [each.simulated for each in together if each.simulated is not None]
        effects = tuple(effect for each in found for effect in each.effects)
        model = found[-1].model if found else self.model
        then = outlook_after_steps(
            effects, model, self.given, outlook=self.outlook, is_chosen=False
        )
        if isinstance(then, Refusal):
            return False
        for each in together:
            self.refusals[each.finding.id] = each.refused
            if each.simulated is not None:
                self._keep(each.finding, each.name, each.simulated)
        self.outlook = then
        return True

    def _cases(
        self, finding: Finding, steps: StepsSoFar, *, may_declare: bool
    ) -> Iterator[tuple[str, Case]]:
        """Yield the strategies that may be tried after these steps, each with its case."""
        if self.given.chosen(finding) is None and delivers(steps, finding):
            return  # steps for others have answered it: see `is_answered`
        yield from self.given.cases(
            finding,
            model=steps.model,
            effects=steps.effects,
            declared=self.declared,
            may_declare=may_declare,
        )

    def is_answered(self, finding: Finding) -> bool:
        """Record a finding that the steps for others also answer: nothing is missing any more."""
        if not delivers(self._so_far(), finding):
            return False
        if may_stay(finding, self.given.audit, self.outlook):
            return False
        self.answered.append(answered(finding, BY_OTHER_STEPS, ()))
        return True

    def _so_far(self) -> StepsSoFar:
        return StepsSoFar(
            effects=tuple(step.effect for step in self.steps),
            started=self.given.started,
            model=self.model,
            known=self.given.known,
            before=self.expected,
            outlook=self.outlook,
        )

    def plan(self, *, left: list[Finding]) -> Plan:
        """Return the finished plan."""
        ordered = sorted(left, key=lambda finding: finding.order)
        return Plan(
            cluster=self.given.snapshot.cluster,
            snapshot_read_at=self.given.snapshot.read_ended,
            answered=tuple(self.answered),
            steps=tuple(self.steps),
            assumed=tuple(assumed(server) for server in self.given.known.values()),
            not_chosen=tuple(self.not_chosen),
            not_planned=tuple(
                not_planned(finding, self.refusals[finding.id], self.model) for finding in ordered
            ),
            warnings=(*dict.fromkeys(self.warnings), *self._blind_spots(), *self._left()),
            rows=tuple(rows_shown(self.given.audit, self.given.evidence)),
            contents=tuple(contents_shown(self.given.audit, self.given.evidence)),
            saved=tuple(self.saved.values()),
            afterwards=tuple(self._afterwards()),
        )

    def _keep(self, finding: Finding, name: str, simulated: Simulated) -> None:
        first = len(self.steps)
        for action, setting in simulated.settings:
            after = self.steps[-1].number if self.steps else 0
            self.steps.append(make_step(action, setting, after=after, finding=finding))
            self.warnings.extend(self.steps[-1].procedure.warnings)
        for server, new in simulated.declared:
            self.declared[server] = self.declared.get(server, GtidSet()) | new
        self.model = simulated.model
        if simulated.settings:
            self.warnings.extend((*seen_in_part(finding), *simulated.proposal.warnings))
            self.stays[finding.id] = simulated.proposal.stays
            self.saved |= {each.file_name: each for each in simulated.proposal.saved}
        self.warnings.extend(about_others(finding, name, self.given.evidence))
        numbers = tuple(step.number for step in self.steps[first:])
        self.answered.append(answered(finding, name, numbers))
        refused = self.refusals[finding.id]
        for strategy in finding.strategies:
            if strategy.name != name:
                why = refused.get(strategy.name) or left_out(
                    strategy.name, finding, self.model, chosen=name
                )
                self.not_chosen.append(NotChosen(finding.id, strategy.name, why))

    def _afterwards(self) -> Iterator[Afterwards]:
        in_part = [name for name, stays in self.stays.items() if stays]
        alike = rows_made_alike(self.answered, self.given.evidence)
        return afterwards(self.given.audit, self.outlook, self.answered, in_part, alike)

    def _left(self) -> Iterator[str]:
        return (f"{STAYS}{each}" for stays in self.stays.values() for each in stays)

    def _blind_spots(self) -> tuple[str, ...]:
        if not self.steps:
            return ()
        chosen = {
            number
            for each in self.answered
            if {each.finding_id, each.code} & self.given.choices.keys()
            for number in each.steps
        }
        given = self.given
        reached = receivers_of(self.steps, given.unseen, self.model, chosen)
        listed = not_listed(given.evidence.connected_unread, given.known)
        return (*reached, *listed, *unseen_servers(given.unread))

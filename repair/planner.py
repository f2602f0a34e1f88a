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

How it works
------------
repair_plan.py explains what a plan is and why there are two passes. This module is the loop around
them. `_Work` has the only state, and three of its fields belong together:

    model     the servers as the steps so far leave them
    outlook   what the rules report for exactly this model
    steps     the steps so far, numbered with their checks, each written for the model around it

`_keep` adds steps and replaces `model`; its callers replace `outlook` right after it. So whatever
is proposed next is compared with the state that the plan has really reached.

    pass 1, pass 2 (may_declare)
        round: findings in a fixed order ─► answered, or left with a refusal of each strategy
        until a round answers none       (each round answers one at least, so the loop ends)
    what is left: answered by the steps for others, or not planned

A finding is answered alone (`_answer`) or with others (`_together`). Alone, each strategy passes
three gates, and the first that passes all of them is kept:

    may it be tried now?      `_cases`: the operator's choice, the pass, nothing left to deliver
    does it break a rule of   `simulate_strategy`: actions in order, invariants after each
    replication?
    is a server worse?        `outlook_after`: the rules on the simulated servers

The third gate costs an audit of the cluster, and a plan for n replicas would need n of them. So
findings about leaf replicas (leaf_replicas.py) are simulated one after the other and audited once.
If a server is worse then, half of them are tried, down to one, which is answered alone.

Example: source `a` has eight replicas whose channels are stopped, and a start of r5 makes it worse.

    together r1 … r8    a server is worse
    together r1 … r4    kept; twice as many may be next
    together r5 … r8    a server is worse
    together r5, r6     a server is worse
    alone    r5         start_channel is refused; the next strategy is tried
    together r6, r7     kept
    alone    r8         kept

These are seven audits, where one for each replica would be eight. Of 1,000 replicas, one like r5
costs about twenty audits, and without it there is one. The plan is the same as that of one audit
for each step: tests/simulation/test_steps_together.py compares them.

Why simpler ways fail:

* One pass in the order of severity: what leaves a transaction out may come before the start that
  would deliver it (see the example in repair_plan.py).
* One round: the source of a chain may be repaired last. The replicas below it were refused before
  that, because nothing could be delivered to them.
* To audit once, at the end: a plan of 30 steps that makes something worse does not show which of
  them must go. And an operator may stop after any strategy, so every state between is one that the
  rules have seen.
* To remember why a strategy was refused, and never to try it again: the reason is about the model
  then. `refusals` has the last one, which is what the plan prints.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from gtid import GtidSet
from repair.answered_by_steps import StepsSoFar, delivers, may_stay
from repair.choices import check_choices, seen_in_part
from repair.leaf_replicas import changes_only, leaf_of
from repair.model.replication_model import Model
from repair.model.strategy_case import Case, LogEvidence, Refusal, Saved
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
    check_choices(audit, given.choices, finding_ids, given.started, given.beside)
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
    saved: dict[str, Saved] = field(default_factory=dict)
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
        """Return the leaves that the first findings are about, each of another one.

        A choice of the operator may permit that a server gets worse: then nothing goes together.
        """
        leaves: dict[str, None] = {}
        for finding in findings:
            leaf = None if self.given.choices else leaf_of(finding, self.model)
            if leaf is None or leaf in leaves:
                break
            leaves[leaf] = None
        return [*leaves]

    def _first(self, finding: Finding, steps: StepsSoFar, *, may_declare: bool) -> _Tried:
        """Return the first strategy that breaks no invariant. The rules have not seen it yet."""
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
        """Return what a strategy may know of the plan under construction."""
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
                not_planned(finding, self.refusals[finding.id], self.model, self.given.beside)
                for finding in ordered
            ),
            warnings=(*dict.fromkeys(self.warnings), *self._blind_spots(), *self._left()),
            rows=tuple(rows_shown(self.given.audit, self.given.evidence)),
            contents=tuple(contents_shown(self.given.audit, self.given.evidence)),
            saved=tuple(self.saved.values()),
            afterwards=tuple(self._afterwards()),
        )

    def _keep(self, finding: Finding, name: str, simulated: Simulated) -> None:
        """Add the steps of a strategy, its warnings, and what it declares, saves and leaves.

        A strategy without steps answers a finding, too: what was needed is done by other steps.
        """
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
                    strategy.name, finding, self.model, self.given.beside, chosen=name
                )
                self.not_chosen.append(NotChosen(finding.id, strategy.name, why))

    def _afterwards(self) -> Iterator[Afterwards]:
        in_part = [name for name, stays in self.stays.items() if stays]
        alike = rows_made_alike(self.answered, self.given.evidence)
        return afterwards(self.given.audit, self.outlook, self.answered, in_part, alike)

    def _left(self) -> Iterator[str]:
        return (f"{STAYS}{each}" for stays in self.stays.values() for each in stays)

    def _blind_spots(self) -> tuple[str, ...]:
        """Return warnings about servers that the plan reaches and the audit did not read."""
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

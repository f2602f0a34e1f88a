"""Makes a plan from a snapshot and its findings, simulated step by step.

1. For each finding the planner uses the first strategy that can be planned, or the chosen one. A
   strategy can be planned if its actions, simulated in order after the plan so far, break no
   invariant, and if the rules find no server worse afterwards (see repair_plan.py).
2. There are two passes. The first has strategies that deliver transactions, and the operator's
   choices. Only the second leaves transactions out, so it omits nothing that a channel delivers.
3. The plan also lists what is not planned, with the reason and a manual instruction, and what the
   rules would still report after the plan.
4. Pure: the same snapshot, audit, choices and evidence give the same plan, byte for byte.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from gtid import GtidSet
from repair.answered_by_steps import StepsSoFar, delivers, may_stay
from repair.choices import check_choices, seen_in_part
from repair.model.replication_model import Model
from repair.model.strategy_case import Case, LogEvidence, Refusal, SavedContent
from repair.plan_input import PlanInput
from repair.plan_parts import (
    STAYS,
    UNSEEN,
    afterwards,
    answered,
    assumed,
    contents_shown,
    left_out,
    not_planned,
    phase,
    rows_made_alike,
    rows_shown,
)
from repair.repair_plan import Afterwards, Answered, NotChosen, Plan
from repair.scripts.procedures import make_step
from repair.scripts.steps import Step
from repair.simulated_proposal import Simulated, try_strategy
from repair.strategies.kept_out import kept_out, may_come_first
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
            left = [
                finding for finding in waiting if not work.answer(finding, may_declare=may_declare)
            ]
            if len(left) == len(waiting):
                break
            waiting = left
    return work.plan(left=[finding for finding in left if not work.is_answered(finding)])


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

    def answer(self, finding: Finding, *, may_declare: bool) -> bool:
        """Try the strategies of a finding in order; keep the first that can be planned."""
        self.refusals[finding.id] = {}
        if self.given.chosen(finding) is None and delivers(self._so_far(), finding):
            return False  # steps for others have answered it: see `is_answered`
        for name in self._candidates(finding):
            case = self.given.case(
                finding,
                name,
                model=self.model,
                effects=(step.effect for step in self.steps),
                declared=self.declared,
            )
            if not (may_declare or may_come_first(case, name)):
                continue
            outcome = self._try(case, name)
            if isinstance(outcome, Refusal):
                self.refusals[finding.id][name] = outcome.reason
                continue
            self._keep(finding, name, outcome)
            return True
        return False

    def is_answered(self, finding: Finding) -> bool:
        """Record a finding that the steps for others also answer: nothing is missing any more."""
        if not delivers(self._so_far(), finding) or may_stay(finding, self.given.audit):
            return False
        self.answered.append(answered(finding, BY_OTHER_STEPS, ()))
        return True

    def _so_far(self) -> StepsSoFar:
        return StepsSoFar(
            effects=[step.effect for step in self.steps],
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

    def _candidates(self, finding: Finding) -> list[str]:
        chosen = self.given.chosen(finding)
        if chosen is not None:
            return [chosen]
        return [strategy.name for strategy in finding.strategies]

    def _try(self, case: Case, name: str) -> Simulated | Refusal:
        done = {each.finding_id for each in self.answered}
        left = (each for each in self.given.audit.findings if each.id not in done)
        out = tuple(kept_out(left, self.given.chosen, self.refusals))
        return try_strategy(case, name, self.given, outlook=self.outlook, kept_out=out)

    def _keep(self, finding: Finding, name: str, simulated: Simulated) -> None:
        first = len(self.steps)
        for action, setting in simulated.settings:
            after = self.steps[-1].number if self.steps else 0
            self.steps.append(make_step(action, setting, after=after, finding=finding))
            self.warnings.extend(self.steps[-1].warnings)
        for server, new in simulated.declared:
            self.declared[server] = self.declared.get(server, GtidSet()) | new
        self.model, self.outlook = simulated.model, simulated.outlook
        if simulated.settings:
            self.warnings.extend((*seen_in_part(finding), *simulated.proposal.warnings))
            self.stays[finding.id] = simulated.proposal.stays
            self.saved |= {each.file_name: each for each in simulated.proposal.saved}
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
        lines = [UNSEEN]
        if unread := self.given.unread():
            lines.append(f"nothing is known of {', '.join(unread)}: not read, or not reliable")
        return tuple(lines)

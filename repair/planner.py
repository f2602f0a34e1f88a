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
from dataclasses import dataclass, field, replace

from gtid import GtidSet
from repair.actions import (
    Action,
    AppendPurged,
    AutoPositionOn,
    InjectEmpty,
    MakeRowsAlike,
    MovePast,
    RedoTransactions,
    ResetAndPurge,
    StartChannel,
)
from repair.audit_after_plan import Change, audit_after, why_worse
from repair.choices import check_choices, seen_in_part
from repair.content_questions import HOLES, ContentQuestion, arrivals
from repair.doubtful_sources import unless_doubtful
from repair.initial_model import executed_by, known_servers, start_model
from repair.invariants import broken_invariants
from repair.kept_out import KeptOut, brings_in
from repair.missing_on import meant_to_arrive
from repair.model import Model, simulate
from repair.more_written import unless_more_is_written
from repair.needed import needed
from repair.plan_parts import (
    UNSEEN,
    about,
    answered,
    assumed,
    brought_by,
    contents_shown,
    left_out,
    may_not_arrive,
    not_planned,
    phase,
    rows_shown,
)
from repair.procedure import Setting
from repair.procedures import make_step
from repair.repair_plan import Afterwards, Answered, NotChosen, Plan
from repair.rows_there import is_there_already
from repair.steps import Step
from repair.strategy_case import Case, Hole, LogEvidence, Proposal, Refusal, SavedContent
from repair.strategy_planners import ANSWERS, DECLARING, PLANNERS
from topology.findings import ClusterAudit, Finding, Severity
from topology.policy import Policy
from topology.snapshot import ClusterSnapshot, ReadServer

# The model does not show these: nothing is missing (E4, H7), or it assumes that every running
# applier applies everything (A5, A6, A8). Steps for other findings never answer them.
_ONLY_BY_ITSELF = frozenset({"E4", "H7", "A5", "A6", "A8", "A9", "C1", "C2", "C4", "C15"})
# What the applier or a file position has passed stays missing, regardless of what the rules report.
_ONLY_BY_ARRIVAL = frozenset({"H1", "H8", "E3", "E6"})
# Only a step that starts their channel answers these, even if the set has arrived otherwise.
_OF_A_CHANNEL = frozenset({"A1", "A2", "A3", "A4", "A7"})

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
    if (audit.cluster, audit.read_at) != (snapshot.cluster, snapshot.read_ended):
        raise ValueError(f"{audit.cluster}: the audit was not made from this snapshot")
    choices = choices or {}
    evidence = evidence or LogEvidence()
    started = start_model(snapshot, audit, evidence)
    check_choices(audit, choices, finding_ids, started)
    selected = [
        finding for finding in audit.findings if finding_ids is None or finding.id in finding_ids
    ]
    selected.sort(key=lambda finding: (phase(finding), finding.order))
    work = _Work(snapshot, audit, choices, evidence, policy or Policy(), started)
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

    snapshot: ClusterSnapshot
    audit: ClusterAudit
    choices: Mapping[str, str]
    evidence: LogEvidence
    policy: Policy
    started: Model
    known: dict[str, ReadServer] = field(init=False)
    waiting: Mapping[tuple[str, str], ContentQuestion] = field(init=False)
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

    def __post_init__(self) -> None:
        self.known = known_servers(self.snapshot, self.audit)
        self.waiting = arrivals(self.snapshot)
        self.model = self.started
        self.outlook = self._look_ahead(self.model)
        self.expected = frozenset(finding.id for finding in self.outlook.findings)

    def _look_ahead(self, model: Model) -> ClusterAudit:
        return audit_after(self.snapshot, self.policy, started=self.started, model=model)

    def answer(self, finding: Finding, *, may_declare: bool) -> bool:
        """Try the strategies of a finding in order; keep the first that can be planned."""
        self.refusals[finding.id] = {}
        if self._chosen(finding) is None and self._is_delivered(finding):
            return False  # steps for others have answered it: see `is_answered`
        for name in self._candidates(finding):
            case = self._case(finding, name)
            if name in DECLARING and not (may_declare or case.is_chosen or is_there_already(case)):
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
        if not self._is_delivered(finding) or self._may_stay(finding):
            return False
        self.answered.append(answered(finding, BY_OTHER_STEPS, ()))
        return True

    def _may_stay(self, finding: Finding) -> bool:
        """Return whether what is missing is to arrive through a backlog that may stay."""
        others = (each for each in self.audit.findings if each.replica != finding.replica)
        doubtful = GtidSet.union_of(each.gtid_set for each in others if may_not_arrive(each))
        return finding.code in HOLES and bool(finding.gtid_set & doubtful)

    def _is_delivered(self, finding: Finding) -> bool:
        if not self.steps or finding.code in _ONLY_BY_ITSELF:
            return False
        if may_not_arrive(finding):
            return False
        if finding.code in _OF_A_CHANNEL and not self._starts(finding):
            return False
        if finding.code not in _ONLY_BY_ARRIVAL and finding.id in self.expected - {
            each.id for each in self.outlook.findings
        }:
            return True  # the rules no longer find it
        target = finding.source if finding.code[0] in "EJ" else finding.replica
        if not finding.gtid_set or target not in self.model.servers:
            return False
        if finding.code[0] == "T" and finding.gtid_set <= self.started[target or ""].executed:
            # It arrives without a step, unless a file position is after it: no set shows that.
            channel = self.started[target or ""].channel(finding.channel or "")
            return channel is not None and channel.auto_position
        if finding.code in HOLES:
            effects = [step.effect for step in self.steps]
            brought = brought_by(effects, self.model[target or ""], self.known)
            # Another channel delivers it, if nothing holds that up: no step does.
            there = self.started[target or ""].executed
            if finding.gtid_set <= there or finding.gtid_set - brought:
                return False
        return finding.gtid_set <= self.model[target or ""].executed

    def _starts(self, finding: Finding) -> bool:
        """Return whether a step starts the finding's channel, and its applier then continues."""
        if finding.replica not in self.model.servers or finding.channel is None:
            return False
        channel = self.model[finding.replica or ""].channel(finding.channel)
        return (
            channel is not None
            and channel.running
            and not channel.is_stuck
            and any(
                isinstance(step.effect, MovePast | AutoPositionOn | StartChannel)
                and (step.effect.server, step.effect.channel) == (finding.replica, finding.channel)
                for step in self.steps
            )
        )

    def plan(self, *, left: list[Finding]) -> Plan:
        """Return the finished plan."""
        ordered = sorted(left, key=lambda finding: finding.order)
        return Plan(
            cluster=self.snapshot.cluster,
            snapshot_read_at=self.snapshot.read_ended,
            answered=tuple(self.answered),
            steps=tuple(self.steps),
            assumed=tuple(assumed(server) for server in self.known.values()),
            not_chosen=tuple(self.not_chosen),
            not_planned=tuple(
                not_planned(finding, self.refusals[finding.id], self.model) for finding in ordered
            ),
            warnings=(*dict.fromkeys(self.warnings), *self._blind_spots()),
            rows=tuple(rows_shown(self.audit, self.evidence)),
            contents=tuple(contents_shown(self.audit, self.evidence)),
            saved=tuple(self.saved.values()),
            afterwards=tuple(self._afterwards()),
        )

    def _afterwards(self) -> Iterator[Afterwards]:
        """Yield what the audit will report above info after the plan."""
        before = {finding.id for finding in self.audit.findings}
        repaired = {each.finding_id for each in self.answered}
        unseen = [
            finding
            for finding in self.audit.findings
            if finding.code == "E4" and finding.id not in repaired
        ]
        for finding in sorted((*self.outlook.findings, *unseen), key=lambda each: each.order):
            if finding.severity is not Severity.INFO:
                yield Afterwards(
                    finding_id=finding.id,
                    code=finding.code,
                    name=finding.name,
                    about=about(finding),
                    severity=finding.severity.value,
                    explanation=finding.explanation,
                    is_new=finding.id not in before,
                )

    def _chosen(self, finding: Finding) -> str | None:
        return self.choices.get(finding.id, self.choices.get(finding.code))

    def _candidates(self, finding: Finding) -> list[str]:
        chosen = self._chosen(finding)
        if chosen is not None:
            return [chosen]
        return [strategy.name for strategy in finding.strategies]

    def _try(self, case: Case, name: str) -> "_Simulated | Refusal":
        if name not in PLANNERS:
            return Refusal("this version does not plan this strategy")
        if case.finding.code not in ANSWERS[name]:
            return Refusal(f"this strategy does not answer {case.finding.code}")
        outcome = unless_doubtful(case, PLANNERS[name](case))
        outcome = unless_more_is_written(outcome, self.evidence.side_effects)
        return outcome if isinstance(outcome, Refusal) else self._simulated(case, outcome)

    def _case(self, finding: Finding, name: str) -> Case:
        return Case(
            finding=finding,
            model=self.model,
            event=self.evidence.events.get(finding.id),
            is_chosen=self._chosen(finding) == name,
            unread=self._unread(),
            meant_to_arrive=meant_to_arrive(finding, self.audit),
            snapshot_executed=executed_by(self.known.values()),
            first_executed=executed_by(self.snapshot.first),
            at_start={name: each.executed for name, each in self.started.servers.items()},
            rows=self.evidence.rows.get(finding.id),
            content=self.evidence.contents.get(finding.id),
            waiting=self.waiting,
            arrivals=self.evidence.arrivals,
            holes=tuple(self._holes(finding)),
            declared=dict(self.declared),
            redone=GtidSet.union_of(
                step.effect.gtids
                for step in self.steps
                if isinstance(step.effect, RedoTransactions)
            ),
            written=frozenset(
                step.effect.server for step in self.steps if isinstance(step.effect, MakeRowsAlike)
            ),
        )

    def _holes(self, finding: Finding) -> Iterator[Hole]:
        for other in self.audit.findings:
            if other.replica == finding.replica and other.id != finding.id and other.code in HOLES:
                content = self.evidence.contents.get(other.id)
                yield Hole(other.code, other.channel, other.gtid_set, content)

    def _kept_out(self) -> Iterator[KeptOut]:
        done = {each.finding_id for each in self.answered}
        for finding in self.audit.findings:
            name = self._chosen(finding)
            if name in DECLARING and finding.code in HOLES and finding.id not in done:
                yield KeptOut(finding, name, self.refusals.get(finding.id, {}).get(name, ""))

    def _simulated(self, case: Case, proposal: Proposal) -> "_Simulated | Refusal":
        """Simulate a proposal; refuse it if it breaks an invariant or makes a server worse."""
        settings: list[tuple[Action, Setting]] = []
        model = self.model
        for proposed in proposal.actions:
            action = needed(model, proposed)
            if action is None:
                continue
            after = simulate(model, action)
            broken = broken_invariants(model, after, action)
            if broken:
                return Refusal("; ".join(broken))
            settings.append((action, Setting(model[action.server], before=model, after=after)))
            model = after
        outlook = self._look_ahead(model) if settings else self.outlook
        actions = tuple(action for action, _ in settings)
        change = Change(self.snapshot, self.started, model, actions, is_chosen=case.is_chosen)
        if worse := why_worse(self.outlook, outlook, change):
            return Refusal(f"afterwards the audit would report {worse}")
        if unwanted := "; ".join(brings_in(case, model, tuple(self._kept_out()))):
            return Refusal(unwanted)
        return _Simulated(tuple(settings), model, outlook, proposal)

    def _keep(self, finding: Finding, name: str, simulated: "_Simulated") -> None:
        first = len(self.steps)
        for action, setting in simulated.settings:
            if isinstance(action, InjectEmpty | AppendPurged | ResetAndPurge):
                for server, now in setting.after.servers.items():
                    new = now.executed - setting.before[server].executed
                    self.declared[server] = self.declared.get(server, GtidSet()) | new
            self.steps.append(self._step(finding, action, setting))
        self.model, self.outlook = simulated.model, simulated.outlook
        if simulated.settings:
            self.warnings.extend((*seen_in_part(finding), *simulated.proposal.warnings))
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

    def _step(self, finding: Finding, action: Action, setting: Setting) -> Step:
        setting = replace(setting, seen=self.known)
        after = self.steps[-1].number if self.steps else 0
        step = make_step(action, setting, after=after, finding=finding)
        self.warnings.extend(step.warnings)
        return step

    def _unread(self) -> dict[str, GtidSet]:
        others = (each for each in self.snapshot.last if each.name not in self.known)
        return {each.name: each.gtid_executed or GtidSet() for each in others}

    def _blind_spots(self) -> tuple[str, ...]:
        if not self.steps:
            return ()
        lines = [UNSEEN]
        if unread := self._unread():
            lines.append(f"nothing is known of {', '.join(unread)}: not read, or not reliable")
        return tuple(lines)


@dataclass(frozen=True, slots=True)
class _Simulated:
    """A proposal that passed: its actions with the servers before and after each."""

    settings: tuple[tuple[Action, Setting], ...]
    model: Model
    outlook: ClusterAudit
    proposal: Proposal

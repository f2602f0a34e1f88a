"""From a snapshot and its findings to a plan, simulated step by step.

1. For each finding the first strategy that can be planned is taken, unless one was chosen. It can
   be planned if it proposes actions and none of them, simulated in order on the servers as the plan
   so far leaves them, breaks an invariant.
2. What is not planned is in the plan, with the reason and what to do by hand. Nothing is dropped.
3. Pure: the same snapshot, audit, choices and events give the same plan, byte for byte.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from gtid import GtidSet
from repair.actions import Action, AutoPositionOn, InjectEmpty, StartChannel
from repair.by_hand import BY_HAND
from repair.case import Case, Outcome, Proposal, Refusal
from repair.evidence import FailingEvent
from repair.invariants import broken_invariants
from repair.model import Model, delivery, simulate
from repair.plan import (
    Answered,
    AssumedState,
    DifferingRow,
    NotChosen,
    NotPlanned,
    Plan,
    differing_rows,
)
from repair.procedure import Setting
from repair.procedures import make_step
from repair.row_versions import RowsRead
from repair.start import known_servers, start_model
from repair.steps import Step
from repair.strategies import ANSWERS, PLANNERS
from topology.catalogue import CATALOGUE
from topology.findings import ClusterAudit, Finding
from topology.snapshot import ClusterSnapshot, ServerSnapshot
from topology.strategies import STRATEGIES

# A stuck applier first; then what is lacking and what is extra, for which somebody may have chosen
# how; then auto-position and the threads, which deliver what is left.
_ORDER = ("A1", "H1", "H2", "H3", "H4", "H5", "E1", "E2", "C3", "E4")
# The families of findings about what a replica lacks.
_LACKING = frozenset("HPT")
# When there are too many transactions for empty ones, this does it in one statement.
_IN_BULK = {"inject_empty": "gtid_purged_append"}


# Stands for a strategy where no step was needed for the finding itself.
BY_OTHER_STEPS = "by the other steps"


class UnknownChoice(ValueError):
    """A choice that names no finding, no strategy, or one that cannot answer the finding."""


def plan_repair(
    snapshot: ClusterSnapshot,
    audit: ClusterAudit,
    *,
    choices: Mapping[str, str] | None = None,
    finding_ids: Collection[str] | None = None,
    events: Mapping[str, FailingEvent] | None = None,
    rows: Mapping[str, RowsRead] | None = None,
) -> Plan:
    """Plan the repair of one cluster.

    Args:
        snapshot: what the servers were when they were read.
        audit: the findings made of that snapshot.
        choices: a strategy's name for a finding's id or for all findings of a code.
        finding_ids: plan for these only; for all if None.
        events: by finding id, the event that stops (A1) or would stop (H1) an applier; see
            adapters/read_events.py.
        rows: by finding id, the rows behind different content (E4) as both servers hold them.

    Raises:
        UnknownChoice: a choice or an id that fits nothing here.
        ValueError: the audit is not of this snapshot.
    """
    if (audit.cluster, audit.read_at) != (snapshot.cluster, snapshot.read_ended):
        raise ValueError(f"{audit.cluster}: the audit was not made of this snapshot")
    choices = choices or {}
    _check_choices(audit, choices, finding_ids)
    selected = [
        finding for finding in audit.findings if finding_ids is None or finding.id in finding_ids
    ]
    selected.sort(key=lambda finding: (_phase(finding), finding.order))
    work = _Work(snapshot, audit, choices, events or {}, rows or {})
    waiting = selected
    while True:  # a finding refused at first may become plannable by another's repair
        left = [finding for finding in waiting if not work.answer(finding)]
        if len(left) == len(waiting):
            break
        waiting = left
    return work.plan(not_planned=[finding for finding in left if not work.is_healed(finding)])


@dataclass(slots=True)
class _Work:
    """The plan in the making: the one place that holds state while planning."""

    snapshot: ClusterSnapshot
    audit: ClusterAudit
    choices: Mapping[str, str]
    events: Mapping[str, FailingEvent]
    rows: Mapping[str, RowsRead]
    known: dict[str, ServerSnapshot] = field(init=False)
    model: Model = field(init=False)
    steps: list[Step] = field(default_factory=list)
    answered: list[Answered] = field(default_factory=list)
    not_chosen: list[NotChosen] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    refusals: dict[str, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.known = known_servers(self.snapshot, self.audit)
        self.model = start_model(self.snapshot, self.audit, self.events)

    def answer(self, finding: Finding) -> bool:
        """Try the strategies of a finding in order; keep the first that can be planned."""
        self.refusals[finding.id] = {}
        for name in self._candidates(finding):
            outcome = self._try(finding, name)
            if isinstance(outcome, Refusal):
                self.refusals[finding.id][name] = outcome.reason
                continue
            self._keep(finding, name, outcome)
            return True
        return False

    def is_healed(self, finding: Finding) -> bool:
        """Note a finding that the steps for others answer as well: nothing lacks any more."""
        lacking = finding.source if finding.code.startswith("E") else finding.replica
        healed = (
            bool(self.steps)
            and finding.code != "E4"  # its transactions are on both, and not the same
            and bool(finding.gtid_set)
            and lacking in self.model.servers
            and finding.gtid_set <= self.model[lacking or ""].executed
        )
        if healed:
            self.answered.append(_answered(finding, BY_OTHER_STEPS, ()))
        return healed

    def plan(self, *, not_planned: list[Finding]) -> Plan:
        """Return the finished plan."""
        ordered = sorted(not_planned, key=lambda finding: finding.order)
        return Plan(
            cluster=self.snapshot.cluster,
            snapshot_read_at=self.snapshot.read_ended,
            answered=tuple(self.answered),
            steps=tuple(self.steps),
            assumed=tuple(_assumed(server) for server in self.known.values()),
            not_chosen=tuple(self.not_chosen),
            not_planned=tuple(
                _not_planned(finding, self.refusals[finding.id]) for finding in ordered
            ),
            warnings=(*dict.fromkeys(self.warnings), *self._blind_spots()),
            rows=tuple(self._differing()),
        )

    def _differing(self) -> Iterator[DifferingRow]:
        for finding in sorted(self.audit.findings, key=lambda finding: finding.order):
            if finding.id in self.rows:
                yield from differing_rows(finding, self.rows[finding.id])

    def _chosen(self, finding: Finding) -> str | None:
        return self.choices.get(finding.id, self.choices.get(finding.code))

    def _candidates(self, finding: Finding) -> list[str]:
        chosen = self._chosen(finding)
        if chosen is not None:
            return [chosen]
        names: list[str] = []
        for strategy in finding.strategies:
            names.append(strategy.name)
            if strategy.name in _IN_BULK:
                names.append(_IN_BULK[strategy.name])
        return list(dict.fromkeys(names))

    def _try(self, finding: Finding, name: str) -> "_Simulated | Refusal":
        if name not in PLANNERS:
            return Refusal("not something this version plans")
        if finding.code not in ANSWERS[name]:
            return Refusal(f"not an answer to {finding.code}")
        outcome: Outcome = PLANNERS[name](
            Case(
                finding=finding,
                model=self.model,
                event=self.events.get(finding.id),
                is_chosen=self._chosen(finding) == name,
                unread=self._unread(),
                meant_to_arrive=self._meant_to_arrive(finding),
                snapshot_executed={
                    each: server.gtid_executed or GtidSet() for each, server in self.known.items()
                },
                rows=self.rows.get(finding.id),
            )
        )
        return outcome if isinstance(outcome, Refusal) else _simulated(self.model, outcome)

    def _keep(self, finding: Finding, name: str, simulated: "_Simulated") -> None:
        first = len(self.steps) + 1
        for action, setting in simulated.settings:
            self.steps.append(self._step(finding, action, setting))
        self.model = simulated.model
        if simulated.settings:
            self.warnings.extend(simulated.warnings)
        self.answered.append(_answered(finding, name, tuple(range(first, len(self.steps) + 1))))
        refused = self.refusals[finding.id]
        for strategy in finding.strategies:
            if strategy.name != name:
                why = refused.get(strategy.name) or _left_out(strategy.name, chosen=name)
                self.not_chosen.append(NotChosen(finding.id, strategy.name, why))

    def _step(self, finding: Finding, action: Action, setting: Setting) -> Step:
        setting = replace(setting, seen=self.known)
        step = make_step(action, setting, number=len(self.steps) + 1, finding=finding)
        self.warnings.extend(step.warnings)
        return step

    def _meant_to_arrive(self, finding: Finding) -> tuple[str, ...]:
        codes = {
            other.code
            for other in self.audit.findings
            if other.replica == finding.source
            and other.code[0] in _LACKING
            and (
                other.gtid_set & finding.gtid_set
                or (other.code == "P1" and other.source == finding.replica)
            )
        }
        return tuple(sorted(codes))

    def _unread(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.snapshot.last if each.name not in self.known)

    def _blind_spots(self) -> tuple[str, ...]:
        if not self.steps:
            return ()
        unread = self._unread()
        lines = ["replicas that are not in this snapshot are not considered"]
        if unread:
            lines.append(f"nothing is known of {', '.join(unread)}: not read, or not to be trusted")
        return tuple(lines)


@dataclass(frozen=True, slots=True)
class _Simulated:
    """A proposal that held: its actions with the servers before and after each."""

    settings: tuple[tuple[Action, Setting], ...]
    model: Model
    warnings: tuple[str, ...]


def _simulated(model: Model, proposal: Proposal) -> _Simulated | Refusal:
    settings: list[tuple[Action, Setting]] = []
    for proposed in proposal.actions:
        action = _needed(model, proposed)
        if action is None:
            continue
        after = simulate(model, action)
        broken = broken_invariants(model, after, action)
        if broken:
            return Refusal("; ".join(broken))
        settings.append((action, Setting(model[action.server], before=model, after=after)))
        model = after
    return _Simulated(tuple(settings), model, proposal.warnings)


def _needed(model: Model, action: Action) -> Action | None:
    """Return what of an action is left to do; None if nothing is."""
    server = model[action.server]
    match action:
        case InjectEmpty(may_be_executed=False):
            lacking = action.gtids - server.executed
            return replace(action, gtids=lacking) if lacking else None
        case AutoPositionOn():
            channel = server.channel(action.channel)
            assert channel is not None, "strategies name channels that exist"
            is_home = channel.auto_position and channel.running and not channel.is_stuck
            return None if is_home and not delivery(model, server, channel) else action
        case StartChannel():
            channel = server.channel(action.channel)
            assert channel is not None, "strategies name channels that exist"
            return None if channel.running and not channel.is_stuck else action
        case _:
            return action


def _check_choices(
    audit: ClusterAudit, choices: Mapping[str, str], finding_ids: Collection[str] | None
) -> None:
    by_id = {finding.id: finding for finding in audit.findings}
    for missing in sorted(set(finding_ids or ()) - by_id.keys()):
        raise UnknownChoice(f"no finding {missing} in the audit of {audit.cluster}")
    for key, name in choices.items():
        if key not in by_id and key not in CATALOGUE:
            raise UnknownChoice(f"{key} is no code, and no finding of {audit.cluster} has that id")
        if name not in STRATEGIES:
            raise UnknownChoice(f"no strategy {name!r}; there are {', '.join(sorted(STRATEGIES))}")
        code = by_id[key].code if key in by_id else key
        if name not in PLANNERS:
            raise UnknownChoice(f"{name} is not planned yet; by hand: {BY_HAND[name]}")
        if code not in ANSWERS[name]:
            raise UnknownChoice(f"{name} is not an answer to {code}")


def _phase(finding: Finding) -> int:
    return _ORDER.index(finding.code) if finding.code in _ORDER else len(_ORDER)


def _about(finding: Finding) -> str:
    ends = [name for name in (finding.source, finding.replica) if name is not None]
    channel = f" (channel {finding.channel})" if finding.channel else ""
    return " → ".join(ends) + channel


def _left_out(name: str, *, chosen: str) -> str:
    if name in BY_HAND:
        return f"not something this version plans; by hand: {BY_HAND[name]}"
    return f"{chosen} comes first; {name} would: {STRATEGIES[name].risk}"


def _not_planned(finding: Finding, refusals: Mapping[str, str]) -> NotPlanned:
    reasons = [f"{name}: {why}" for name, why in refusals.items() if name in PLANNERS]
    by_hand = [f"{name}: {BY_HAND[name]}" for name in refusals if name in BY_HAND]
    why = "; ".join(reasons) or (
        "none of its strategies is planned by this version"
        if by_hand
        else "there is nothing to run"
    )
    return NotPlanned(
        finding_id=finding.id,
        code=finding.code,
        name=finding.name,
        about=_about(finding),
        why=why,
        by_hand=tuple(by_hand),
    )


def _answered(finding: Finding, strategy: str, steps: tuple[int, ...]) -> Answered:
    return Answered(
        finding_id=finding.id,
        code=finding.code,
        name=finding.name,
        about=_about(finding),
        strategy=strategy,
        steps=steps,
    )


def _assumed(server: ServerSnapshot) -> AssumedState:
    return AssumedState(
        server=server.name,
        host=server.host,
        port=server.port,
        server_uuid=str(server.server_uuid),
        version=str(server.version),
        gtid_executed=str(server.gtid_executed),
        gtid_purged=str(server.gtid_purged),
        channels=tuple(
            f"{channel.name!r} from {channel.source_host}:{channel.source_port},"
            f" auto-position {'on' if channel.auto_position else 'off'},"
            f" receiver {channel.receiver.value}, applier {channel.applier.value}"
            for channel in server.channels or ()
        ),
    )

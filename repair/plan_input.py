"""What a plan is made from: readings, findings, choices and evidence, before the first step.

Nothing here changes while the planner (planner.py) adds steps. It makes the case of a strategy from
the input and from the model after the steps so far.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gtid import GtidSet
from repair.audit_after_plan import audit_after
from repair.content.content_questions import EXTRA, HOLES, ContentQuestion, arrivals
from repair.model.actions import Action, MakeRowsAlike, RedoTransactions
from repair.model.initial_model import executed_by, known_servers, start_model
from repair.model.missing_on import meant_to_arrive
from repair.model.replication_model import Model
from repair.model.strategy_case import Case, KnownBeside, LogEvidence, OtherFinding
from repair.model.unseen_replicas import UnseenReplica, unseen_replicas
from repair.strategies.kept_out import may_come_first
from topology.catalogue.findings import ClusterAudit, Finding
from topology.facts.kept_results import KeptResults
from topology.policy import Policy
from topology.readings.snapshot import ClusterSnapshot, ReadServer


@dataclass(frozen=True, slots=True)
class PlanInput:
    """The servers as they were read, what the rules found, and what the operator selected."""

    snapshot: ClusterSnapshot
    audit: ClusterAudit
    choices: Mapping[str, str]
    evidence: LogEvidence
    policy: Policy
    known: Mapping[str, ReadServer]  # the servers on which a plan may be based
    started: Model  # these servers, when current replication has come to rest
    waiting: Mapping[tuple[str, str], ContentQuestion]  # by replica and channel
    # gtid_executed by server: of the known ones; of all, when they were read first; in `started`;
    # and of those on which no plan may be based (empty if not read).
    executed: Mapping[str, GtidSet]
    executed_first: Mapping[str, GtidSet]
    executed_at_start: Mapping[str, GtidSet]
    unread: Mapping[str, GtidSet]
    unseen: tuple[UnseenReplica, ...]  # connected, and not part of the audit
    gaps: Mapping[str | None, tuple[Finding, ...]]  # by replica
    extras: Mapping[str | None, tuple[Finding, ...]]  # by replica
    kept: KeptResults = field(default_factory=KeptResults, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        snapshot: ClusterSnapshot,
        audit: ClusterAudit,
        choices: Mapping[str, str],
        evidence: LogEvidence,
        policy: Policy,
    ) -> "PlanInput":
        """Return the input of a plan.

        Raises:
            ValueError: the audit is not of this snapshot.
        """
        if (audit.cluster, audit.read_at) != (snapshot.cluster, snapshot.read_ended):
            raise ValueError(f"{audit.cluster}: the audit was not made from this snapshot")
        known = known_servers(snapshot, audit)
        started = start_model(snapshot, audit, evidence)
        return cls(
            snapshot=snapshot,
            audit=audit,
            choices=choices,
            evidence=evidence,
            policy=policy,
            known=known,
            started=started,
            waiting=arrivals(snapshot),
            executed=executed_by(known.values()),
            executed_first=executed_by(snapshot.first),
            executed_at_start={name: each.executed for name, each in started.servers.items()},
            unread=executed_by(each for each in snapshot.last if each.name not in known),
            unseen=unseen_replicas(snapshot, evidence.connected),
            gaps=_by_replica(audit, HOLES),
            extras=_by_replica(audit, EXTRA),
        )

    @property
    def beside(self) -> KnownBeside:
        """Return what manual instructions may use beside their finding and the servers."""
        return KnownBeside(self.audit.findings, self.evidence.locks)

    def chosen(self, finding: Finding) -> str | None:
        """Return the strategy that the operator selected for a finding; None if there is none."""
        return self.choices.get(finding.id, self.choices.get(finding.code))

    def look_ahead(self, model: Model) -> ClusterAudit:
        """Return what the rules report for the simulated servers."""
        return audit_after(
            self.snapshot, self.policy, started=self.started, model=model, kept=self.kept
        )

    def cases(
        self,
        finding: Finding,
        *,
        model: Model,
        effects: Iterable[Action],
        declared: Mapping[str, GtidSet],
        may_declare: bool,
    ) -> Iterator[tuple[str, Case]]:
        """Yield the strategies that may be tried for a finding, in order, each with its case.

        `may_declare`: also those that leave transactions out (kept_out.py). See `case`.
        """
        chosen = self.chosen(finding)
        for name in [each.name for each in finding.strategies] if chosen is None else [chosen]:
            case = self.case(finding, name, model=model, effects=effects, declared=declared)
            if may_declare or may_come_first(case, name):
                yield name, case

    def case(
        self,
        finding: Finding,
        name: str,
        *,
        model: Model,
        effects: Iterable[Action],
        declared: Mapping[str, GtidSet],
    ) -> Case:
        """Return the case of a strategy for a finding.

        Args:
            finding: the finding.
            name: the strategy.
            model: the servers after the steps so far.
            effects: the actions of these steps.
            declared: what these steps declare executed without content, by server.
        """
        done = tuple(effects)
        written = tuple(each for each in done if isinstance(each, MakeRowsAlike))
        return Case(
            finding=finding,
            model=model,
            event=self.evidence.events.get(finding.id),
            is_chosen=self.chosen(finding) == name,
            unread=self.unread,
            unseen=self.unseen,
            meant_to_arrive=meant_to_arrive(finding, self.audit),
            snapshot_executed=self.executed,
            first_executed=self.executed_first,
            at_start=self.executed_at_start,
            rows=self.evidence.rows.get(finding.id),
            content=self.evidence.contents.get(finding.id),
            definitions=self.evidence.definitions.get(finding.id),
            waiting=self.waiting,
            arrivals=self.evidence.arrivals,
            holes=tuple(self._others(finding, self.gaps)),
            extras=tuple(self._others(finding, self.extras)),
            declared=dict(declared),
            redone=GtidSet.union_of(
                each.gtids for each in done if isinstance(each, RedoTransactions)
            ),
            rows_written=written,
        )

    def _others(
        self, finding: Finding, by_replica: Mapping[str | None, tuple[Finding, ...]]
    ) -> Iterator[OtherFinding]:
        for other in by_replica.get(finding.replica, ()):
            if other.id != finding.id:
                content = self.evidence.contents.get(other.id)
                yield OtherFinding(other.code, other.channel, other.gtid_set, content)


def _by_replica(
    audit: ClusterAudit, codes: tuple[str, ...]
) -> Mapping[str | None, tuple[Finding, ...]]:
    """Return the findings of these codes by their replica."""
    found: dict[str | None, list[Finding]] = {}
    for finding in audit.findings:
        if finding.code in codes:
            found.setdefault(finding.replica, []).append(finding)
    return {replica: tuple(each) for replica, each in found.items()}

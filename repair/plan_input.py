"""What a plan is made from: readings, findings, choices and evidence, before the first step.

Nothing here changes while the planner (planner.py) adds steps. It makes the case of a strategy from
the input and from the model after the steps so far.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gtid import GtidSet
from repair.audit_after_plan import audit_after
from repair.content.content_questions import HOLES, ContentQuestion, arrivals
from repair.model.actions import Action, MakeRowsAlike, RedoTransactions
from repair.model.initial_model import executed_by, known_servers, start_model
from repair.model.missing_on import meant_to_arrive
from repair.model.replication_model import Model
from repair.model.strategy_case import Case, Hole, LogEvidence
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
        return cls(
            snapshot=snapshot,
            audit=audit,
            choices=choices,
            evidence=evidence,
            policy=policy,
            known=known_servers(snapshot, audit),
            started=start_model(snapshot, audit, evidence),
            waiting=arrivals(snapshot),
        )

    def chosen(self, finding: Finding) -> str | None:
        """Return the strategy that the operator selected for a finding; None if there is none."""
        return self.choices.get(finding.id, self.choices.get(finding.code))

    def unread(self) -> dict[str, GtidSet]:
        """Return gtid_executed of the servers on which no plan may be based; empty if not read."""
        others = (each for each in self.snapshot.last if each.name not in self.known)
        return {each.name: each.gtid_executed or GtidSet() for each in others}

    def look_ahead(self, model: Model) -> ClusterAudit:
        """Return what the rules report for the simulated servers."""
        return audit_after(
            self.snapshot, self.policy, started=self.started, model=model, kept=self.kept
        )

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
        return Case(
            finding=finding,
            model=model,
            event=self.evidence.events.get(finding.id),
            is_chosen=self.chosen(finding) == name,
            unread=self.unread(),
            meant_to_arrive=meant_to_arrive(finding, self.audit),
            snapshot_executed=executed_by(self.known.values()),
            first_executed=executed_by(self.snapshot.first),
            at_start={name: each.executed for name, each in self.started.servers.items()},
            rows=self.evidence.rows.get(finding.id),
            content=self.evidence.contents.get(finding.id),
            definitions=self.evidence.definitions.get(finding.id),
            waiting=self.waiting,
            arrivals=self.evidence.arrivals,
            holes=tuple(self._holes(finding)),
            declared=dict(declared),
            redone=GtidSet.union_of(
                each.gtids for each in done if isinstance(each, RedoTransactions)
            ),
            written=frozenset(each.server for each in done if isinstance(each, MakeRowsAlike)),
        )

    def _holes(self, finding: Finding) -> Iterator[Hole]:
        for other in self.audit.findings:
            if other.replica == finding.replica and other.id != finding.id and other.code in HOLES:
                content = self.evidence.contents.get(other.id)
                yield Hole(other.code, other.channel, other.gtid_set, content)

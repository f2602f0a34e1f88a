"""Audits the servers of a plan that was applied, as the command did that made the plan."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gtid_audit.operands.cluster_to_read import ClusterToRead
from gtid_audit.operands.plan_servers import PlanServers
from gtid_audit.operands.scope_of_definitions import wanted_by
from gtid_audit.tasks.audited_cluster import AuditedCluster, read_and_audit
from gtid_audit.tasks.procedure_journal import operator
from repair.applying.procedures_applied import AppliedProcedure
from repair.applying.written_plan import WrittenPlan
from topology.adapters.collect import CollectLimits
from topology.adapters.inventory.accepted_plans import read_accepted
from topology.definitions.definition_scope import DefinitionScope
from topology.policy import Policy
from topology.readings.target import ServerTarget

_ACCEPTED: Final = "--accepted="
_CONTENT: Final = {"--content": True, "--no-content": False}


@dataclass(frozen=True, slots=True)
class AuditAfter:
    """The audit after a plan. It is made before the plan runs, so that what it needs is there."""

    cluster: ClusterToRead
    content: bool | None
    definitions: bool = False
    scope: DefinitionScope | None = None

    @classmethod
    def of(
        cls, plan: WrittenPlan, procedure: AppliedProcedure, targets: Mapping[str, ServerTarget]
    ) -> "AuditAfter":
        """Return the audit of a plan's servers, which accepts what the plan leaves out.

        Raises UsageProblem, InventoryProblem.
        """
        words = plan.command
        earlier = [
            Path(each.removeprefix(_ACCEPTED)) for each in words if each.startswith(_ACCEPTED)
        ]
        policy = _policy(procedure)
        *others, ours = read_accepted([*earlier, Path(procedure.directory)])
        # Its record is written when all scripts are done.
        by = tuple(dict.fromkeys((*ours.applied_by, operator())))
        accepted = (*others, replace(ours, applied_by=by))
        cluster = ClusterToRead(
            name=plan.cluster,
            targets=tuple(targets.values()),
            limits=CollectLimits(),
            policy=replace(policy, accepted=(*policy.accepted, *accepted)),
            suspects=plan.other_contents,
        )
        content = next((_CONTENT[each] for each in words if each in _CONTENT), None)
        chosen, scope = wanted_by(words)
        return cls(cluster, content, policy.definitions if chosen is None else chosen, scope)

    def run(self) -> AuditedCluster:
        """Read the servers and evaluate them. They are different ones: their UUIDs were matched."""
        return read_and_audit(
            self.cluster,
            content=self.content,
            definitions=self.definitions,
            scope=self.scope,
            say=lambda _text: None,
        )


def _policy(procedure: AppliedProcedure) -> Policy:
    """Return the policy of the fleet file, if the servers were named by one."""
    named = PlanServers.of_words(procedure.servers)
    if named.fleet is None or named.cluster is None:
        return Policy()
    from gtid_audit.operands.load_fleet import cluster_to_read

    return cluster_to_read(Path(named.fleet), named.cluster).policy

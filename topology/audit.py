"""One cluster in, its judgement out: facts, rules, and what explains what.

1. `audit_cluster` is the only way from a snapshot to findings. The command line, the service and
   the Spark job call it; nobody judges beside it.
2. It reads no clock: the snapshot says when it was.
"""

from topology.facts import gather_facts
from topology.findings import ClusterAudit, Unknown, verdict_of
from topology.policy import Policy
from topology.rules import RULES
from topology.snapshot import ClusterSnapshot
from topology.suppression import suppress_symptoms


def audit_cluster(snapshot: ClusterSnapshot, policy: Policy | None = None) -> ClusterAudit:
    """Judge one cluster. Pure: the same snapshot and policy give the same audit."""
    facts = gather_facts(snapshot, policy or Policy())
    found = [finding for rule in RULES for finding in rule(facts)]
    findings = tuple(sorted(suppress_symptoms(found), key=lambda finding: finding.order))
    unknown = tuple(
        sorted(
            {
                Unknown(
                    snapshot.cluster,
                    server.name,
                    fact.fact,
                    _reason(fact.reason.value, fact.detail),
                )
                for readings in (snapshot.first, snapshot.last)
                for server in readings
                for fact in server.unread
            }
        )
    )
    assert len({finding.id for finding in findings}) == len(findings), "one fact, one finding"
    return ClusterAudit(
        cluster=snapshot.cluster,
        verdict=verdict_of(findings=findings, unknown=unknown),
        servers=tuple(server.name for server in snapshot.last),
        findings=findings,
        unknown=unknown,
        read_at=snapshot.read_ended,
    )


def _reason(reason: str, detail: str) -> str:
    return f"{reason}: {detail}" if detail else reason

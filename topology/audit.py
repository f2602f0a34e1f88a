"""One cluster in, its judgement out: facts, rules, and what explains what.

1. `audit_cluster` is the only way from a snapshot to findings. The command line, the service and
   the Spark job call it; nobody judges beside it.
2. It reads no clock: the snapshot says when it was.
"""

from collections.abc import Iterator

from topology.facts import ClusterFacts, gather_facts
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
    unknown = tuple(sorted({*_unread(snapshot), *_torn(facts)}))
    assert len({finding.id for finding in findings}) == len(findings), "one fact, one finding"
    return ClusterAudit(
        cluster=snapshot.cluster,
        verdict=verdict_of(findings=findings, unknown=unknown),
        servers=tuple(server.name for server in snapshot.last),
        findings=findings,
        unknown=unknown,
        read_at=snapshot.read_ended,
    )


def _unread(snapshot: ClusterSnapshot) -> Iterator[Unknown]:
    for server in (*snapshot.first, *snapshot.last):
        for fact in server.unread:
            reason = f"{fact.reason.value}: {fact.detail}" if fact.detail else fact.reason.value
            yield Unknown(snapshot.cluster, server.name, fact.fact, reason)


def _torn(facts: ClusterFacts) -> Iterator[Unknown]:
    for name, sign in facts.torn:
        yield Unknown(facts.snapshot.cluster, name, "two readings of one state", f"torn: {sign}")

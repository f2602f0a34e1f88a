"""Evaluates one cluster: facts, rules, and which finding explains which.

1. `audit_cluster` is the only function that turns a snapshot into findings. The command line, the
   service and the Spark job all call it.
2. It reads no clock: the snapshot contains its time.
"""

from collections.abc import Iterable, Iterator

from topology.catalogue.findings import CONTENT, ClusterAudit, Finding, Unknown, Verdict, verdict_of
from topology.facts.accepted import Acceptance
from topology.facts.accepted_findings import with_acceptance
from topology.facts.cluster_facts import ClusterFacts, gather_facts
from topology.facts.kept_results import NOTHING_KEPT, KeptResults
from topology.facts.last_result import keep_last_result
from topology.kept_findings import found_by
from topology.policy import Policy
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot
from topology.rules import RULES, UNDECIDED, Rule
from topology.rules.content import same_gtid_different_content
from topology.rules.from_findings import later_findings, later_unknown
from topology.rules.one_reading import not_confirmed
from topology.rules.purge_deadlines import with_deadlines
from topology.suppression import suppress_symptoms

EVERY_SERVER = "every server"  # shown as the server if the whole cluster is unknown
NAMELESS_SERVER = "a server without a name"
UNEXPLAINED = "no value is stored, and no reason for its absence"


def audit_cluster(
    snapshot: ClusterSnapshot,
    policy: Policy | None = None,
    *,
    kept: KeptResults = NOTHING_KEPT,
) -> ClusterAudit:
    """Evaluate one cluster. Pure: the same snapshot and policy give the same audit.

    `kept` makes the audit of many versions of one cluster faster, and changes no result.
    """
    facts = gather_facts(snapshot, policy or Policy(), kept)
    found = [*_found_by(facts, RULES, kept)]
    entries = facts.policy.accepted_findings
    if snapshot.contents is not None:
        differing = same_gtid_different_content(
            snapshot.contents,
            cluster=snapshot.cluster,
            acceptance=Acceptance(facts.policy.accepted, snapshot.last, snapshot.contents),
            others=tuple(found),
            entries=entries,
        )
        found += with_acceptance(differing, entries)
    found += with_acceptance(later_findings(facts, tuple(found)), entries)
    findings = tuple(sorted(found, key=lambda finding: finding.order))
    unknown = tuple(
        sorted(
            {
                *_unread(snapshot),
                *_torn(facts),
                *_uncompared(snapshot),
                *(unknown for undecided in UNDECIDED for unknown in undecided(facts)),
                *not_confirmed(facts, findings),
                *later_unknown(facts, findings),
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


@keep_last_result
def _found_by(
    facts: ClusterFacts, rules: tuple[Rule, ...], kept: KeptResults
) -> tuple[Finding, ...]:
    made = found_by(facts, rules, kept)
    # First: an accepted finding hides no symptom above info (accepted_findings.py).
    found = suppress_symptoms(with_acceptance(made, facts.policy.accepted_findings))
    return with_deadlines(found, facts)


def audit_or_unknown(
    snapshot: ClusterSnapshot,
    policy: Policy | None = None,
) -> ClusterAudit:
    """Evaluate one cluster of many. Never raise: the comment below explains why."""
    try:
        return audit_cluster(snapshot, policy)
    # A defect of gtid-audit in one cluster must not stop the audit of all others. It is not hidden:
    # the cluster is UNKNOWN, never OK, and the message reports the defect.
    except Exception as error:  # noqa: BLE001 - it is reported for the cluster, not hidden
        return not_evaluated(snapshot.cluster, {defect(snapshot.cluster, error)}, snapshot.last)


def defect(cluster: str, error: BaseException) -> Unknown:
    """Return the UNKNOWN entry for a cluster on which gtid-audit itself failed."""
    reason = f"defect of the auditor: {type(error).__name__}: {error}"
    return Unknown(cluster, EVERY_SERVER, "evaluation", reason)


def not_evaluated(
    cluster: str, unknown: Iterable[Unknown], servers: Iterable[ServerSnapshot] = ()
) -> ClusterAudit:
    """Return the audit of a cluster that could not be evaluated: UNKNOWN, with the reasons."""
    readable, unknowns = tuple(servers), tuple(sorted(unknown))
    assert unknowns, "UNKNOWN has a reason"
    names = {server.name for server in readable} | {
        one.server for one in unknowns if one.server not in (EVERY_SERVER, NAMELESS_SERVER)
    }
    return ClusterAudit(
        cluster=cluster,
        verdict=Verdict.UNKNOWN,
        servers=tuple(sorted(names)),
        findings=(),
        unknown=unknowns,
        read_at=max((server.read_ended for server in readable), default=None),
    )


def _unread(snapshot: ClusterSnapshot) -> Iterator[Unknown]:
    for server in (*snapshot.first, *snapshot.last):
        for fact in server.unread:
            reason = f"{fact.reason.value}: {fact.detail}" if fact.detail else fact.reason.value
            yield Unknown(snapshot.cluster, server.name, fact.fact, reason)
        for name in server.unexplained:
            yield Unknown(snapshot.cluster, server.name, name, UNEXPLAINED)
    if not snapshot.last:
        yield Unknown(snapshot.cluster, EVERY_SERVER, "readings", "the cluster has no server")


def _uncompared(snapshot: ClusterSnapshot) -> Iterator[Unknown]:
    for unread in snapshot.contents.unread if snapshot.contents is not None else ():
        yield Unknown(snapshot.cluster, unread.server, CONTENT, unread.reason)


def _torn(facts: ClusterFacts) -> Iterator[Unknown]:
    for name, sign in facts.torn:
        yield Unknown(facts.snapshot.cluster, name, "two readings of one state", f"torn: {sign}")

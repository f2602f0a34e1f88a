"""Evaluates one stored cluster, whatever is wrong with its records.

1. All engines use this module, one cluster at a time, in this process or on an executor. Batches
   come through spark_audit/evaluate_batch.py, which leaves out the clean clusters. So all engines
   report the same findings, and a damaged cluster does not affect another one.
2. The rules are in topology/rules. This module adds the evaluation of a cluster whose records the
   rules cannot take: its verdict is UNKNOWN, with the reason.
3. It does not know where records come from.
"""

from collections.abc import Iterable
from dataclasses import replace

from spark_audit.run_context import NOTHING, Beside
from topology.audit_cluster import EVERY_SERVER, NAMELESS_SERVER, audit_or_unknown, not_evaluated
from topology.catalogue.findings import ClusterAudit, Unknown, verdict_of
from topology.documents.records import (
    MalformedRecord,
    Record,
    cluster_from_servers,
    snapshot_from_record,
)
from topology.policy import Policy
from topology.readings.snapshot import ServerSnapshot


def evaluate_records(
    cluster: str,
    records: Iterable[Record],
    *,
    policy: Policy,
    beside: Beside = NOTHING,
) -> ClusterAudit:
    """Evaluate one cluster from its server records, which come in any order. Never raises.

    `beside` is what is known about this and other clusters in addition to their records.
    """
    audit = _evaluate(cluster, records, policy=policy, beside=beside)
    if cluster in beside.labels:
        audit = replace(audit, labels=beside.labels[cluster])
    gaps = beside.gaps.get(cluster, ())
    if not gaps:
        return audit
    unknown = tuple(sorted({*audit.unknown, *gaps}))
    verdict = verdict_of(findings=audit.findings, unknown=unknown)
    return replace(audit, unknown=unknown, verdict=verdict)


def _evaluate(
    cluster: str, records: Iterable[Record], *, policy: Policy, beside: Beside
) -> ClusterAudit:
    servers: list[ServerSnapshot] = []
    unknown: set[Unknown] = set()
    for record in records:
        try:
            servers.append(snapshot_from_record(record))
        except MalformedRecord as error:
            name = record.get("name")
            shown = name if isinstance(name, str) and name else NAMELESS_SERVER
            reason = f"unparseable: {error.problem}"
            unknown.add(Unknown(cluster, shown, error.place or "reading", reason))
    if not servers and not unknown:
        unknown.add(Unknown(cluster, EVERY_SERVER, "readings", "no reading is stored"))
    if unknown:
        return not_evaluated(cluster, unknown, servers)
    try:
        snapshot = replace(
            cluster_from_servers(cluster, servers), consumers=beside.consumers.get(cluster, ())
        )
    except ValueError as error:
        reason = f"unparseable: {error}"
        return not_evaluated(cluster, {Unknown(cluster, EVERY_SERVER, "readings", reason)}, servers)
    return audit_or_unknown(snapshot.with_contents(beside.contents.get(cluster)), policy)

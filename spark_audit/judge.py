"""What was stored of one cluster in, its judgement out, whatever is wrong with it.

1. Both engines come through here: one cluster at a time, in process or on an executor. So their
   findings are the same, and one damaged cluster costs itself and no other.
2. The rules live in topology.audit; this file adds only what happens when they cannot be asked: the
   cluster's verdict is UNKNOWN, and says why.
3. It does not know where records come from.
"""

from collections.abc import Iterable

from topology.audit import audit_cluster
from topology.findings import ClusterAudit, Unknown, Verdict
from topology.policy import Policy
from topology.records import MalformedRecord, Record, cluster_from_servers, snapshot_from_record
from topology.snapshot import ClusterSnapshot, ServerSnapshot

EVERY_SERVER = "every server"  # stands for the server where the cluster as a whole is unknown
NAMELESS_SERVER = "a server without a name"


def judge_records(cluster: str, records: Iterable[Record], *, policy: Policy) -> ClusterAudit:
    """Judge one cluster from its server records, in whatever order they come. Never raises."""
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
        return _unjudged(cluster, servers, unknown)
    try:
        snapshot = cluster_from_servers(cluster, servers)
    except ValueError as error:
        reason = f"unparseable: {error}"
        return _unjudged(cluster, servers, {Unknown(cluster, EVERY_SERVER, "readings", reason)})
    return judge_snapshot(snapshot, policy=policy)


def judge_snapshot(snapshot: ClusterSnapshot, *, policy: Policy) -> ClusterAudit:
    """Judge one cluster of many. Never raises: see the comment."""
    try:
        return audit_cluster(snapshot, policy)
    # A defect of ours in one cluster must not take the night's audit of all others with it. It is
    # not hidden: the cluster is UNKNOWN, never OK, and the defect is named.
    except Exception as error:  # noqa: BLE001
        reason = f"defect of the auditor: {type(error).__name__}: {error}"
        unknown = {Unknown(snapshot.cluster, EVERY_SERVER, "judgement", reason)}
        return _unjudged(snapshot.cluster, snapshot.last, unknown)


def _unjudged(
    cluster: str, servers: Iterable[ServerSnapshot], unknown: Iterable[Unknown]
) -> ClusterAudit:
    readable = tuple(servers)
    unknowns = tuple(sorted(unknown))
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

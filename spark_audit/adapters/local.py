"""The local engine: stored snapshots audited in this process, without Spark or Java.

It is what the Spark engine is compared with, and what small fleets use.
"""

from pathlib import Path

from spark_audit.judge import judge_records
from topology.adapters.parquet import read_records
from topology.findings import ClusterAudit
from topology.policy import Policy
from topology.records import Record


def audit_snapshots_locally(directory: Path, *, policy: Policy) -> tuple[ClusterAudit, ...]:
    """Audit the latest complete run below `directory`, clusters in order of name.

    A cluster that cannot be judged has the verdict UNKNOWN. Raises NoSnapshots and
    UnreadableSnapshots (topology/adapters/parquet.py).
    """
    clusters: dict[str, list[Record]] = {}
    for _, record in read_records(directory):
        name = record["cluster"]
        clusters.setdefault(name if isinstance(name, str) else "", []).append(record)
    return tuple(judge_records(name, clusters[name], policy=policy) for name in sorted(clusters))

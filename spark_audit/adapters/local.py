"""The local engine: audits stored snapshots in this process, without Spark or Java.

All but large fleets use it, and tests compare the Spark engine with it. It evaluates few clusters
one at a time, because loading the compiled kernels takes half a second. More clusters are
evaluated by whole columns.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from spark_audit.evaluate_cluster import evaluate_records
from spark_audit.run_context import Beside, Gaps
from topology.adapters.parquet import read_records
from topology.adapters.snapshot_columns import records_of_table
from topology.adapters.stored_consumers import consumers_of_run
from topology.adapters.stored_contents import contents_of_run
from topology.adapters.stored_labels import labels_of_run
from topology.adapters.stored_runs import files_of_run, latest_run
from topology.catalogue.findings import ClusterAudit
from topology.documents.records import Record, audit_from_record
from topology.policy import Policy

# Four rows per pair. Evaluating this many rows one by one takes as long as loading the kernels.
COLUMNS_ROWS_MIN: Final = 2_000


def audit_snapshots_locally(
    directory: Path, *, policy: Policy, gaps: Gaps | None = None
) -> tuple[ClusterAudit, ...]:
    """Audit the latest complete run below `directory`, clusters in order of name.

    `gaps` are servers of its clusters that should be in the run and are not: see
    spark_audit/run_context.py. A cluster that cannot be evaluated has the verdict UNKNOWN. Raises
    NoSnapshots and UnreadableSnapshots (topology/adapters/stored_runs.py).
    """
    run = latest_run(directory)
    files = files_of_run(run)
    beside = Beside.telling(contents_of_run(run), gaps, consumers_of_run(run), labels_of_run(run))
    row_count = sum(pq.read_metadata(file).num_rows for file in files)
    if row_count >= COLUMNS_ROWS_MIN:
        from spark_audit.adapters.stored_pieces import evaluate_piece, pieces_of

        pieces = pieces_of(files)
        if pieces is not None:
            evaluated = (evaluate_piece(piece, policy=policy, beside=beside) for piece in pieces)
            audits = [
                audit_from_record(record) for each in evaluated for record in records_of_table(each)
            ]
            return tuple(sorted(audits, key=lambda audit: audit.cluster))
    return tuple(_one_by_one(run, policy=policy, beside=beside))


def _one_by_one(run: Path, *, policy: Policy, beside: Beside) -> Iterator[ClusterAudit]:
    clusters: dict[str, list[Record]] = {}
    for _, record in read_records(run):
        name = record["cluster"]
        clusters.setdefault(name if isinstance(name, str) else "", []).append(record)
    for name in sorted(clusters):
        yield evaluate_records(name, clusters[name], policy=policy, beside=beside)

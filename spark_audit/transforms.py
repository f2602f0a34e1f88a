"""The steps of the fleet audit: DataFrame in, DataFrame out, each ending in a named schema.

1. A step starts no job, reads no file and collects nothing; spark_audit/adapters/job.py does.
2. No result depends on how the rows were partitioned, or on their order.
"""

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from spark_audit.evaluate_batch import evaluate_rows, whole_clusters
from spark_audit.evaluated_rows import evaluated_rows
from spark_audit.run_context import NOTHING, Beside
from spark_audit.schema import AUDITS, EVALUATED
from topology.adapters.snapshot_columns import SNAPSHOT_SCHEMA
from topology.policy import Policy


def audits_of(snapshots: DataFrame, *, policy: Policy, beside: Beside = NOTHING) -> DataFrame:
    """Evaluate every cluster of SNAPSHOTS on the executors: one row of AUDITS per cluster.

    The rows of a cluster must meet in one task, because a rule may need all of its servers. So
    Spark exchanges the rows. Stored runs that keep clusters together need no exchange: see
    spark_audit/adapters/stored_pieces.py. `beside` is what is known about clusters in addition to
    SNAPSHOTS.
    """
    return _of_clusters(snapshots, AUDITS, lambda audits: audits, policy=policy, beside=beside)


def evaluated_of(snapshots: DataFrame, *, policy: Policy, beside: Beside = NOTHING) -> DataFrame:
    """Evaluate as `audits_of` does: one row of EVALUATED per cluster, as results are written."""
    return _of_clusters(snapshots, EVALUATED, evaluated_rows, policy=policy, beside=beside)


def _of_clusters(
    snapshots: DataFrame,
    schema: StructType,
    form: Callable[[pa.Table], pa.Table],
    *,
    policy: Policy,
    beside: Beside,
) -> DataFrame:
    """Return what `form` makes of the evaluations, which are rows of AUDIT_SCHEMA."""

    def evaluate(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in whole_clusters(batches):
            audits = evaluate_rows(rows.cast(SNAPSHOT_SCHEMA), policy=policy, beside=beside)
            yield from form(audits).to_batches()

    met = snapshots.select(*SNAPSHOT_SCHEMA.names).repartition("cluster")
    sorted_rows = met.sortWithinPartitions("cluster", "phase", "name")
    return sorted_rows.mapInArrow(evaluate, schema=schema).select(*schema.names)

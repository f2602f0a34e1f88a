"""The steps of the fleet audit: DataFrame in, DataFrame out, each ending in a named schema.

1. A step starts no job, reads no file and collects nothing; spark_audit/adapters/job.py does.
2. No result depends on how the rows were partitioned, or on their order.
"""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from spark_audit.evaluate_batch import evaluate_rows, whole_clusters
from spark_audit.run_context import NOTHING, Beside
from spark_audit.schema import AUDITS
from topology.adapters.snapshot_columns import SNAPSHOT_SCHEMA
from topology.policy import Policy


def audits_of(snapshots: DataFrame, *, policy: Policy, beside: Beside = NOTHING) -> DataFrame:
    """Evaluate every cluster of SNAPSHOTS on the executors: one row of AUDITS per cluster.

    The rows of a cluster must meet in one task, because a rule may need all of its servers. So
    Spark exchanges the rows. Stored runs that keep clusters together need no exchange: see
    spark_audit/adapters/stored_pieces.py. `beside` is what is known about clusters in addition to
    SNAPSHOTS.
    """

    def evaluate(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in whole_clusters(batches):
            audits = evaluate_rows(rows.cast(SNAPSHOT_SCHEMA), policy=policy, beside=beside)
            yield from audits.to_batches()

    met = snapshots.select(*SNAPSHOT_SCHEMA.names).repartition("cluster")
    sorted_rows = met.sortWithinPartitions("cluster", "phase", "name")
    return sorted_rows.mapInArrow(evaluate, schema=AUDITS).select(*AUDITS.names)

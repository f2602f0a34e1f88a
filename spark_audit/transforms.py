"""The steps of the fleet audit: DataFrame in, DataFrame out, each ending in a named schema.

1. A step starts no job, reads no file and collects nothing; spark_audit/adapters/job.py does.
2. No result depends on how the rows were partitioned, or on their order.
"""

import pyarrow as pa
from pyspark.sql import DataFrame

from spark_audit.judge import judge_records
from spark_audit.schema import AUDIT_SCHEMA, AUDITS
from topology.adapters.parquet import records_of_table, table_of_records
from topology.policy import Policy
from topology.records import audit_to_record


def audits_of(snapshots: DataFrame, *, policy: Policy) -> DataFrame:
    """Judge every cluster of SNAPSHOTS on the executors: one row of AUDITS per cluster.

    A cluster is the unit: its rows meet in one task, because a rule may need all of its servers.
    """

    def judge(key: tuple[pa.Scalar, ...], rows: pa.Table) -> pa.Table:
        # A row without its cluster's name is grouped under null; it must not become OK by that.
        cluster = key[0].as_py() or ""
        audit = judge_records(cluster, records_of_table(rows), policy=policy)
        return table_of_records([audit_to_record(audit)], AUDIT_SCHEMA)

    judged = snapshots.groupBy("cluster").applyInArrow(judge, schema=AUDITS)
    return judged.select(*AUDITS.names)

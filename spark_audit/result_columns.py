"""The columns of results: evaluations, clusters, findings, and facts that were not read.

They are Arrow columns, because both the files and the batches to and from the executors are Arrow.
Columns are derived from the fields of the records in topology/documents/records.py. The local
engine has no others; schema.py derives Spark's schemas from them.
"""

from typing import Final

import pyarrow as pa

from topology.adapters.snapshot_columns import TIMESTAMP, columns_of, list_of
from topology.documents.records import AUDIT, FINDING, UNKNOWN

FINDING_SCHEMA: Final = columns_of(FINDING)
UNKNOWN_SCHEMA: Final = columns_of(UNKNOWN)
AUDIT_SCHEMA: Final = columns_of(AUDIT)

# One row per cluster, without its findings: enough for an overview.
CLUSTER_SCHEMA: Final = pa.schema(
    {
        "cluster": pa.string(),
        "verdict": pa.string(),
        "servers": list_of(pa.string()),
        "server_count": pa.int32(),
        "critical_count": pa.int32(),
        "warning_count": pa.int32(),
        "info_count": pa.int32(),
        "unknown_count": pa.int32(),
        "read_at": TIMESTAMP,
        "labels": AUDIT_SCHEMA.field("labels").type,
    }
)

# The table that the evaluation writes, once: a row per cluster with its findings, or null. The
# other tables are derived from two of its columns.
EVALUATED_SCHEMA: Final = pa.schema(
    [*CLUSTER_SCHEMA, AUDIT_SCHEMA.field("findings"), AUDIT_SCHEMA.field("unknown")]
)

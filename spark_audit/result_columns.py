"""The columns of results: evaluations, clusters, findings, and facts that were not read.

They are Arrow columns, because both the files and the batches to and from the executors are Arrow.
Columns are the fields of the records in topology/records.py, in their order. The local engine has
no others; schema.py derives Spark's schemas from them.
"""

from typing import Final

import pyarrow as pa

from topology.adapters.snapshot_columns import TIMESTAMP, list_of

# A set may hold more than 2**63 GTIDs; 38 digits are the widest exact number of Spark and Parquet.
COUNT: Final = pa.decimal128(38, 0)

_EVIDENCE = pa.struct(
    {
        "fact": pa.string(),
        "value": pa.string(),
        "read_from": pa.string(),
        "read_at": TIMESTAMP,
    }
)
_STRATEGY = pa.struct(
    {
        "name": pa.string(),
        "automatic": pa.bool_(),
        "risk": pa.string(),
        "why": pa.string(),
    }
)

FINDING_SCHEMA: Final = pa.schema(
    {
        "id": pa.string(),
        "code": pa.string(),
        "name": pa.string(),
        "severity": pa.string(),
        "grade": pa.string(),
        "cluster": pa.string(),
        "source": pa.string(),
        "replica": pa.string(),
        "channel": pa.string(),
        "gtid_set": pa.string(),
        "gtid_count": COUNT,
        "first_seen": TIMESTAMP,
        "last_seen": TIMESTAMP,
        "deadline": TIMESTAMP,
        "evidence": list_of(_EVIDENCE),
        "explanation": pa.string(),
        "strategies": list_of(_STRATEGY),
    }
)

UNKNOWN_SCHEMA: Final = pa.schema(
    {
        "cluster": pa.string(),
        "server": pa.string(),
        "fact": pa.string(),
        "reason": pa.string(),
    }
)

AUDIT_SCHEMA: Final = pa.schema(
    {
        "cluster": pa.string(),
        "verdict": pa.string(),
        "servers": list_of(pa.string()),
        "read_at": TIMESTAMP,
        "findings": list_of(pa.struct(list(FINDING_SCHEMA))),
        "unknown": list_of(pa.struct(list(UNKNOWN_SCHEMA))),
    }
)

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
    }
)

# The table that the evaluation writes, once: a row per cluster with its findings, or null. The
# other tables are derived from two of its columns.
EVALUATED_SCHEMA: Final = pa.schema(
    [*CLUSTER_SCHEMA, AUDIT_SCHEMA.field("findings"), AUDIT_SCHEMA.field("unknown")]
)

"""The named schemas of the fleet audit: the columns of each DataFrame.

Each schema is written once, as Arrow columns, because both the files and the batches to and from
the executors are Arrow. The Spark schema of the same name is derived from it. Columns are the
fields of the records in topology/records.py, in their order.
"""

from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from topology.adapters.snapshot_columns import SNAPSHOT_SCHEMA, TIMESTAMP, list_of

# A set may hold more than 2**63 GTIDs; 38 digits are the widest exact number of Spark and Parquet.
_COUNT = pa.decimal128(38, 0)

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
        "gtid_count": _COUNT,
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

SNAPSHOTS: Final = from_arrow_schema(SNAPSHOT_SCHEMA)
AUDITS: Final = from_arrow_schema(AUDIT_SCHEMA)
CLUSTERS: Final = from_arrow_schema(CLUSTER_SCHEMA)
EVALUATED: Final = from_arrow_schema(EVALUATED_SCHEMA)
FINDINGS: Final = from_arrow_schema(FINDING_SCHEMA)
UNKNOWN: Final = from_arrow_schema(UNKNOWN_SCHEMA)

# -- trends over several runs (spark_audit/trends_frames.py) ---------------------------------------

_PART = pa.struct(
    {
        "uuid": pa.string(),
        "digest": pa.string(),
        "gtid_count": _COUNT,
        "interval_count": pa.int64(),
    }
)

# One row per server and run: digests and counts of its set, for each UUID. No set leaves the
# executor that read it.
READING_SCHEMA: Final = pa.schema(
    {
        "run": pa.string(),
        "cluster": pa.string(),
        "server": pa.string(),
        "read_at": TIMESTAMP,
        "server_uuid": pa.string(),
        "source_uuids": list_of(pa.string()),
        "interval_count": pa.int64(),
        "parts": list_of(_PART),
    }
)

INTERVAL_TREND_SCHEMA: Final = pa.schema(
    {
        "code": pa.string(),
        "cluster": pa.string(),
        "server": pa.string(),
        "points": list_of(pa.struct({"at": TIMESTAMP, "count": _COUNT})),
        "interval_count": pa.int64(),
        "intervals_per_day": pa.float64(),
        "is_fragmented": pa.bool_(),
        "fragmented_at": TIMESTAMP,
    }
)

RETIREMENT_SCHEMA: Final = pa.schema(
    {
        "code": pa.string(),
        "cluster": pa.string(),
        "uuid": pa.string(),
        "gtid_count": _COUNT,
        "interval_count": pa.int64(),
        "digest": pa.string(),
        "servers": pa.int64(),
        "runs": pa.int64(),
        "first_run": pa.string(),
        "last_run": pa.string(),
    }
)

FINDING_TREND_SCHEMA: Final = pa.schema(
    {
        "id": pa.string(),
        "code": pa.string(),
        "cluster": pa.string(),
        "source": pa.string(),
        "replica": pa.string(),
        "channel": pa.string(),
        "first_seen": TIMESTAMP,
        "last_seen": TIMESTAMP,
        "is_open": pa.bool_(),
        "points": list_of(pa.struct({"at": TIMESTAMP, "count": _COUNT})),
        "gtid_count": _COUNT,
        "gtids_per_hour": pa.float64(),
        "clears_at": TIMESTAMP,
    }
)

READINGS: Final = from_arrow_schema(READING_SCHEMA)
INTERVAL_TREND: Final = from_arrow_schema(INTERVAL_TREND_SCHEMA)
RETIREMENTS: Final = from_arrow_schema(RETIREMENT_SCHEMA)
FINDING_TREND: Final = from_arrow_schema(FINDING_TREND_SCHEMA)

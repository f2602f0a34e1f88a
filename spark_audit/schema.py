"""The named schemas of Spark's DataFrames, and those of trends.

Each schema is written once, as Arrow columns (result_columns.py, and below for trends). The Spark
schema of the same name is derived from it.
"""

from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from spark_audit.result_columns import (
    AUDIT_SCHEMA,
    CLUSTER_SCHEMA,
    EVALUATED_SCHEMA,
    FINDING_SCHEMA,
    UNKNOWN_SCHEMA,
)
from topology.adapters.snapshot_columns import COUNT, SNAPSHOT_SCHEMA, TIMESTAMP, list_of

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
        "gtid_count": COUNT,
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
        "points": list_of(pa.struct({"at": TIMESTAMP, "count": COUNT})),
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
        "gtid_count": COUNT,
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
        "points": list_of(pa.struct({"at": TIMESTAMP, "count": COUNT})),
        "gtid_count": COUNT,
        "gtids_per_hour": pa.float64(),
        "clears_at": TIMESTAMP,
    }
)

READINGS: Final = from_arrow_schema(READING_SCHEMA)
INTERVAL_TREND: Final = from_arrow_schema(INTERVAL_TREND_SCHEMA)
RETIREMENTS: Final = from_arrow_schema(RETIREMENT_SCHEMA)
FINDING_TREND: Final = from_arrow_schema(FINDING_TREND_SCHEMA)

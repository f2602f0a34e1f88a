"""The named schemas of Spark's DataFrames, and those of trends.

Each schema is declared once: as Arrow columns (result_columns.py, and below), or as the type of its
rows (trend_types.py). The Spark schema of the same name is derived from it.
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
from spark_audit.trend_types import FINDING_TREND_TYPE, INTERVAL_TREND_TYPE, RETIREMENT_TYPE
from topology.adapters.snapshot_columns import (
    COUNT,
    SNAPSHOT_SCHEMA,
    TIMESTAMP,
    columns_of_type,
    list_of,
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

INTERVAL_TREND_SCHEMA: Final = columns_of_type(INTERVAL_TREND_TYPE)
RETIREMENT_SCHEMA: Final = columns_of_type(RETIREMENT_TYPE)
FINDING_TREND_SCHEMA: Final = columns_of_type(FINDING_TREND_TYPE)

READINGS: Final = from_arrow_schema(READING_SCHEMA)
INTERVAL_TREND: Final = from_arrow_schema(INTERVAL_TREND_SCHEMA)
RETIREMENTS: Final = from_arrow_schema(RETIREMENT_SCHEMA)
FINDING_TREND: Final = from_arrow_schema(FINDING_TREND_SCHEMA)

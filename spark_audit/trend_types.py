"""The rows of trends over several runs, as types: Spark's columns and JSON Schemas follow them.

trends_frames.py makes the rows; schema.py and gtid_audit/document_types/spark_types.py derive the
columns and the schema of `spark trends --json`.
"""

from typing import Final

from topology.documents.plain_types import (
    COUNT,
    FLAG,
    NUMBER,
    REAL,
    TEXT,
    TIME,
    list_of,
    record_of,
)

_POINTS: Final = list_of(record_of(at=TIME, count=COUNT))
INTERVAL_TREND_TYPE: Final = record_of(
    code=TEXT,
    cluster=TEXT,
    server=TEXT,
    points=_POINTS,
    interval_count=NUMBER,
    intervals_per_day=REAL.or_null(),
    is_fragmented=FLAG,
    fragmented_at=TIME.or_null(),
)
RETIREMENT_TYPE: Final = record_of(
    code=TEXT,
    cluster=TEXT,
    uuid=TEXT,
    gtid_count=COUNT,
    interval_count=NUMBER,
    digest=TEXT,
    servers=NUMBER,
    runs=NUMBER,
    first_run=TEXT,
    last_run=TEXT,
)
FINDING_TREND_TYPE: Final = record_of(
    id=TEXT,
    code=TEXT,
    cluster=TEXT,
    source=TEXT.or_null(),
    replica=TEXT.or_null(),
    channel=TEXT.or_null(),
    first_seen=TIME,
    last_seen=TIME,
    is_open=FLAG,
    points=_POINTS,
    gtid_count=COUNT,
    gtids_per_hour=REAL.or_null(),
    clears_at=TIME.or_null(),
)

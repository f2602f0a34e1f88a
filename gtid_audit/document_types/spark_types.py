"""The types of the documents of `spark`.

The lists of trends are tables of spark_audit/trend_types.py. A summary is written from its
dataclasses by spark_audit/summary.py.
"""

from typing import Final

from gtid_audit.document_types.shared_types import FILES, SEVERITY, VERDICT, document_of
from spark_audit.summary import TableContent
from spark_audit.trend_types import FINDING_TREND_TYPE, INTERVAL_TREND_TYPE, RETIREMENT_TYPE
from topology.documents.dataclass_types import type_of_dataclass
from topology.documents.plain_types import (
    ANYTHING,
    NUMBER,
    TEXT,
    TIME,
    list_of,
    record_of,
    words_of,
)

TRENDS: Final = document_of(
    first_run=TIME,
    last_run=TIME,
    runs=NUMBER,
    intervals=list_of(INTERVAL_TREND_TYPE),
    retirable=list_of(RETIREMENT_TYPE),
    findings=list_of(FINDING_TREND_TYPE),
)
PACKAGE: Final = document_of(files=FILES)
COMMAND: Final = document_of(command=list_of(TEXT))
IN_CLUSTER_MODE: Final = document_of(spark_submit_status=NUMBER, output=TEXT)
_WORST: Final = record_of(
    cluster=TEXT,
    verdict=VERDICT,
    server_count=NUMBER,
    critical_count=NUMBER,
    warning_count=NUMBER,
    info_count=NUMBER,
    unknown_count=NUMBER,
)
SUMMARY: Final = document_of(
    verdict=VERDICT,
    layout=NUMBER,
    run=TEXT,
    previous=TEXT.or_null(),
    policy=TEXT,
    contents_compared=NUMBER.or_null(),
    audited_at=TIME.or_null(),
    clusters=list_of(list_of(ANYTHING)),  # pairs of a verdict and a number
    server_count=NUMBER,
    unknown_count=NUMBER,
    findings=list_of(record_of(code=TEXT, severity=SEVERITY, findings=NUMBER)),
    worst=list_of(_WORST),
    content=list_of(type_of_dataclass(TableContent)),
    digest_by=words_of("spark", "local"),
)

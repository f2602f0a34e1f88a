"""The Spark engine: stored snapshots in, findings out, judged on the executors.

1. The driver finds the run and looks at the foot of each file; the rows are read, grouped and
   judged by the executors. Only the judgements come back.
2. The same findings, byte for byte, as the local engine: both ask spark_audit/judge.py.
"""

import re
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_audit.adapters.session import local_session
from spark_audit.schema import SNAPSHOTS
from spark_audit.transforms import audits_of
from topology.adapters.parquet import (
    UnreadableSnapshots,
    files_of_run,
    latest_run,
    records_of_table,
)
from topology.findings import ClusterAudit
from topology.policy import Policy
from topology.records import audit_from_record

_FILE_NOT_READ: Final = re.compile(r"\[FAILED_READ_FILE[^]]*\] (?P<said>.*)")  # names the file


def audit_snapshots_with_spark(
    directory: Path, *, policy: Policy, session: SparkSession | None = None
) -> tuple[ClusterAudit, ...]:
    """Audit the latest complete run below `directory`, clusters in order of name.

    Without a session, one is started on all cores of this machine and stopped again. A cluster that
    cannot be judged has the verdict UNKNOWN. Raises NoSnapshots and UnreadableSnapshots
    (topology/adapters/parquet.py), JavaMissing and SparkNotStarted (session.py).
    """
    files = files_of_run(latest_run(directory))
    with local_session() if session is None else nullcontext(session) as spark:
        # The scheme is said because a cluster's default file system may be another.
        paths = [f"file://{file.resolve()}" for file in files]
        snapshots = spark.read.schema(SNAPSHOTS).parquet(*paths)
        try:
            judged = audits_of(snapshots, policy=policy).toArrow()
        except (PySparkException, Py4JJavaError) as error:  # it comes as either
            unread = _FILE_NOT_READ.search(str(error))
            if unread is None:
                raise
            raise UnreadableSnapshots(unread["said"]) from error
    audits = [audit_from_record(record) for record in records_of_table(judged)]
    return tuple(sorted(audits, key=lambda audit: audit.cluster))

"""Registers the data sources of this project with a Spark session."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from spark_audit.adapters.binlog_source import MysqlBinlogSource
from spark_audit.adapters.snapshot_source import MysqlSnapshotSource

# Spark's default is off, and it then refuses a source that takes over filters. The setting does not
# affect other sources, and mysql_binlog takes over filters only on request.
_FILTERS = "spark.sql.python.filterPushdown.enabled"


def register_sources(session: SparkSession) -> None:
    """Register `mysql_snapshot` and `mysql_binlog` on a session. Calling it again is safe.

    Each session has its own sources: a session from `newSession()` must register them again.
    """
    with _active(session):
        session.dataSource.register(MysqlSnapshotSource)
        session.dataSource.register(MysqlBinlogSource)
    session.conf.set(_FILTERS, "true")


@contextmanager
def _active(session: SparkSession) -> Iterator[None]:
    """Make a session the active one for the duration of the context.

    Spark checks in the active session, not in the one it is asked to change, whether a name is
    taken. So a new session could not register a name of another (DATA_SOURCE_ALREADY_EXISTS).
    Making a DataFrame is the only public way to make a session active.
    """
    before = SparkSession.getActiveSession()
    session.createDataFrame([], "nothing int")
    try:
        yield
    finally:
        if before is not None:
            before.createDataFrame([], "nothing int")

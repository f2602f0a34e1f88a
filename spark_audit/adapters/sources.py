"""Makes the data sources of this project known to a Spark session."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from spark_audit.adapters.binlog_source import MysqlBinlogSource
from spark_audit.adapters.snapshot_source import MysqlSnapshotSource

# Off as Spark comes, and then a source that takes filters over is refused. It changes nothing for
# sources that do not, and mysql_binlog does so only on request.
_FILTERS = "spark.sql.python.filterPushdown.enabled"


def register_sources(session: SparkSession) -> None:
    """Register `mysql_snapshot` and `mysql_binlog` on a session. Safe to call again.

    Each session has its own sources: one of `newSession()` has none until it registers them.
    """
    with _active(session):
        session.dataSource.register(MysqlSnapshotSource)
        session.dataSource.register(MysqlBinlogSource)
    session.conf.set(_FILTERS, "true")


@contextmanager
def _active(session: SparkSession) -> Iterator[None]:
    """Make a session the active one for a while.

    Spark looks in the active session whether a name is taken, and not in the one that is asked:
    a new session could never have what another has (DATA_SOURCE_ALREADY_EXISTS). Making a frame is
    the only public way to make a session the active one.
    """
    before = SparkSession.getActiveSession()
    session.createDataFrame([], "nothing int")
    try:
        yield
    finally:
        if before is not None:
            before.createDataFrame([], "nothing int")

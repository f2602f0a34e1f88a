"""Makes the data sources of this project known to a Spark session."""

from pyspark.sql import SparkSession

from spark_audit.adapters.binlog_source import MysqlBinlogSource
from spark_audit.adapters.snapshot_source import MysqlSnapshotSource

# Off as Spark comes, and then a source that takes filters over is refused. It changes nothing for
# sources that do not, and mysql_binlog does only where it is told to.
_FILTERS = "spark.sql.python.filterPushdown.enabled"


def register_sources(session: SparkSession) -> None:
    """Register `mysql_snapshot` and `mysql_binlog` on a session. Safe to call again."""
    session.dataSource.register(MysqlSnapshotSource)
    session.dataSource.register(MysqlBinlogSource)
    session.conf.set(_FILTERS, "true")

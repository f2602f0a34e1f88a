"""Makes the data sources of this project known to a Spark session."""

from pyspark.sql import SparkSession

from spark_audit.adapters.snapshot_source import MysqlSnapshotSource


def register_sources(session: SparkSession) -> None:
    """Register `mysql_snapshot` (snapshot_source.py) on a session. Safe to call again."""
    session.dataSource.register(MysqlSnapshotSource)

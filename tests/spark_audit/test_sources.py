"""Data sources belong to a session: each gets them, however many there are."""

import pytest
from pyspark.sql import SparkSession

from spark_audit.adapters.sources import register_sources

pytestmark = pytest.mark.spark


def test_every_session_gets_the_sources_and_the_active_one_stays(spark: SparkSession) -> None:
    spark.createDataFrame([], "nothing int")  # the active session from here on
    register_sources(spark)
    other = spark.newSession()
    for _ in range(2):
        register_sources(other)
        register_sources(spark)
    assert SparkSession.getActiveSession() is spark
    for session in (spark, other):
        assert "gno" in session.read.format("mysql_binlog").load("/nowhere/*").columns
        assert session.conf.get("spark.sql.python.filterPushdown.enabled") == "true"


def test_a_session_that_was_not_told_has_none(spark: SparkSession) -> None:
    register_sources(spark)
    with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
        spark.newSession().read.format("mysql_snapshot").load()

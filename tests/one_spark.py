"""The one Spark session of a test run: starting it takes longer than most tests that use it."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark_audit.adapters.session import JavaMissing, local_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    try:
        with local_session(cores=2) as session:
            # Partitions stay as many as a test asks for.
            session.conf.set("spark.sql.adaptive.enabled", "false")
            yield session
    except JavaMissing as missing:
        pytest.skip(f"provider missing: {missing}")

"""Trends of stored runs: selects the runs, and reads their rows with Spark.

1. The newest `runs_max` complete runs count, whatever days they are from.
2. The sets are read and measured once, for both trends that are derived from them.
3. Findings come from the results below the same directory, or another one. Without results there is
   no trend of findings, and the report states that.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from spark_audit import trends_frames as steps
from spark_audit.adapters.json_rows import items_of
from spark_audit.adapters.results import NoResults, findings_between
from spark_audit.adapters.runs import runs_newest_first
from spark_audit.adapters.storage import storage_of
from spark_audit.schema import SNAPSHOTS
from spark_audit.trend_readings import readings_of
from spark_audit.trends_frames import TrendPolicy
from topology.adapters.run_directory import RunName
from topology.adapters.snapshot_columns import records_of_table
from topology.adapters.stored_runs import NoSnapshots
from topology.documents.records import Record

RUNS_MAX_DEFAULT: Final = 30  # a month of nightly runs
_SNAPSHOTS_OF_RUNS: Final = StructType([*SNAPSHOTS.fields, StructField("run", StringType())])


@dataclass(frozen=True, slots=True)
class Trends:
    """The trends of several runs; one DataFrame each, in the order in which to read them."""

    runs: tuple[RunName, ...]  # the oldest first
    intervals: DataFrame  # INTERVAL_TREND
    retirable: DataFrame  # RETIREMENTS
    findings: DataFrame | None  # FINDING_TREND; None if there are no results

    def items(self) -> dict[str, Iterator[str]]:
        """Return the lists of a document, in pieces (topology/documents/json_items.py)."""
        return {
            "intervals": items_of(self.intervals),
            "retirable": items_of(self.retirable),
            "findings": iter(()) if self.findings is None else items_of(self.findings),
        }


@contextmanager
def trends_of(
    session: SparkSession,
    directory: str,
    *,
    results: str | None = None,
    policy: TrendPolicy | None = None,
    runs_max: int = RUNS_MAX_DEFAULT,
) -> Iterator[Trends]:
    """Provide the trends of the runs below `directory`, as long as the context lasts.

    `results` is the directory of the results, if it is another one. Raises NoSnapshots.
    """
    wanted = policy or TrendPolicy()
    runs, snapshots = _snapshots_of(session, directory, runs_max)
    # On disk: the readings of a fleet over a month can exceed the driver's memory.
    readings = readings_of(snapshots).persist(StorageLevel.DISK_ONLY)
    try:
        findings = _findings_of(session, results or directory, runs)
        yield Trends(
            runs,
            steps.most_fragmented_first(steps.interval_trend(readings, policy=wanted)),
            steps.retirements_in_order(steps.retirements(readings, policy=wanted)),
            None if findings is None else steps.fastest_growing_first(findings),
        )
    finally:
        readings.unpersist()


def first_rows(frame: DataFrame, limit: int) -> list[Record]:
    """Return at most `limit` rows, for a page."""
    return records_of_table(frame.limit(limit).toArrow())


def _snapshots_of(
    session: SparkSession, directory: str, runs_max: int
) -> tuple[tuple[RunName, ...], DataFrame]:
    storage, root = storage_of(directory, session)
    runs = tuple(islice(runs_newest_first(storage, root), runs_max))[::-1]
    if not runs:
        raise NoSnapshots(f"{directory}: no complete run (day=…/run=…) here")
    address = storage.address(root)
    reader = session.read.schema(_SNAPSHOTS_OF_RUNS).option("basePath", address)
    found = reader.parquet(*(f"{address}/{run.path}" for run in runs))
    return runs, found.withColumn("run", sf.concat(sf.lit("run="), "run"))


def _findings_of(
    session: SparkSession, directory: str, runs: tuple[RunName, ...]
) -> DataFrame | None:
    start, end = runs[0].moment, runs[-1].moment + timedelta(microseconds=1)
    try:
        found = findings_between(session, directory, start=start, end=end)
    except NoResults:
        return None
    return steps.finding_trend(found)

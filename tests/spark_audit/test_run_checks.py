"""What is checked of a run before Spark audits it, on this machine and where Hadoop reads it."""

from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from gtid import GtidSet
from spark_audit.adapters.job import audit_stored, latest_snapshots
from spark_audit.adapters.run_checks import refusal_of
from spark_audit.adapters.run_readings import not_in_folder, not_in_place
from spark_audit.expected_fleet import ExpectedCluster, ExpectedFleet, ExpectedServer
from tests.consumers import a_consumer
from tests.snapshots import NOON
from topology.adapters.stored_consumers import consumers_beside
from topology.adapters.stored_runs import RECORD, NoSnapshots, UnreadableSnapshots, latest_run
from topology.catalogue.findings import Unknown
from topology.documents.run_record import AgeLimit, RunRecord
from topology.policy import Policy

pytestmark = pytest.mark.spark
DAY = timedelta(days=1)


@pytest.fixture(params=[pytest.param("here", marks=pytest.mark.slow), "viewfs"])
def place(request: pytest.FixtureRequest, stored: Path, spark: SparkSession) -> str:
    """The same directory by its path, and by an address that only Hadoop knows."""
    if request.param == "here":
        return str(stored)
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set(f"fs.viewfs.mounttable.{stored.parent.name}.link./runs", f"file://{stored}")
    return f"viewfs://{stored.parent.name}/runs"


def test_a_run_in_time_is_audited_and_an_old_or_future_one_is_not(
    place: str, spark: SparkSession
) -> None:
    run = latest_snapshots(spark, place)
    assert refusal_of(spark, run, AgeLimit(NOON + DAY / 2, DAY)) is None
    assert refusal_of(spark, run, AgeLimit(NOON + 9 * DAY, None)) is None
    old = refusal_of(spark, run, AgeLimit(NOON + 9 * DAY, DAY))
    assert old is not None
    assert "run=20260102T120001.040000Z is too old: its oldest reading is 9 days" in old
    future = refusal_of(spark, run, AgeLimit(NOON - DAY, DAY))
    assert future is not None
    assert "is from the future" in future


def test_a_run_that_does_not_fit_its_record_is_not_audited(
    place: str, stored: Path, spark: SparkSession
) -> None:
    run = latest_snapshots(spark, place)
    (file,) = latest_run(stored).glob("*.parquet")
    pq.write_table(pq.read_table(file, partitioning=None).slice(1), file)
    with pytest.raises(UnreadableSnapshots, match=r"has 43 rows, .*\b44\b"):
        refusal_of(spark, run, AgeLimit(NOON + DAY / 2, DAY))
    (file.parent / RECORD).unlink()
    reason = refusal_of(spark, run, AgeLimit(NOON + DAY / 2, DAY))
    assert reason is not None
    assert "has no record of the clusters" in reason


def test_a_run_of_selected_clusters_is_not_the_latest(
    place: str, stored: Path, spark: SparkSession
) -> None:
    run = latest_snapshots(spark, place)
    record = latest_run(stored) / RECORD
    whole = RunRecord.from_text(record.read_text())
    record.write_text(RunRecord(1, whole.files, ("hole",)).to_text())
    with pytest.raises(NoSnapshots):
        latest_snapshots(spark, place)
    reason = refusal_of(spark, run, AgeLimit(NOON + DAY / 2, DAY))
    assert reason is not None
    assert "has only selected clusters (hole)" in reason


def test_what_the_run_does_not_have_of_the_fleet_file_is_found_in_any_place(
    place: str, stored: Path, spark: SparkSession
) -> None:
    pair = (ExpectedServer("db1", "db1.example", 3306), ExpectedServer("db2", "db2.example", 3306))
    moved = (pair[0], ExpectedServer("db2", "db2.example", 3307), ExpectedServer("db3", "c", 3306))
    fleet = ExpectedFleet(
        (
            ExpectedCluster("absent", pair, labels=(("team", "blue"),)),
            ExpectedCluster("healthy", pair, ("cdc",)),
            ExpectedCluster("hole", moved, ("cdc",)),
        ),
        Policy(definitions=True),
    )
    (run_here,) = stored.glob("day=*/run=*")
    beside = consumers_beside({"healthy": (a_consumer("cdc", GtidSet()),)})
    for name, text in beside.items():
        (run_here / name).write_text(text)
    found = not_in_place(spark, latest_snapshots(spark, place), fleet)
    assert found == not_in_folder(run_here, fleet)
    (absent,) = found.clusters
    assert (absent.cluster, absent.labels) == ("absent", (("team", "blue"),))
    assert [one.fact for one in found.gaps["healthy"]] == ["definitions"]
    assert [(one.server, one.fact) for one in found.gaps["hole"]] == [
        *(("db2", "readings"), ("db3", "readings"), ("cdc", "GTID set of the consumer")),
        ("every server", "definitions"),
    ]
    assert all(isinstance(one, Unknown) for each in found.gaps.values() for one in each)
    out = stored.parent / "results"
    results = audit_stored(
        spark,
        snapshots=place,
        out=str(out),
        policy=fleet.policy,
        more=found.clusters,
        gaps=found.gaps,
    )
    rows = pq.read_table(next(out.glob("audits/day=*/run=*/clusters"))).to_pylist()
    verdicts = {row["cluster"]: row["verdict"] for row in rows}
    assert (verdicts["absent"], verdicts["healthy"]) == ("UNKNOWN", "UNKNOWN")
    assert len(verdicts) == results.summary.cluster_count == 12

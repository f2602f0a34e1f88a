"""What executors wrote and the driver cannot read back makes no run."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_audit.adapters import results
from spark_audit.adapters.job import evaluated_run, latest_snapshots
from spark_audit.adapters.result_tables import TABLES, RunTables, summarise
from spark_audit.summary import FleetSummary
from topology.adapters.run_directory import RunName
from topology.policy import Policy

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "table",
    [
        "clusters",
        pytest.param("findings", marks=pytest.mark.slow),
        pytest.param("unknown", marks=pytest.mark.slow),
    ],
)
def test_a_part_written_elsewhere_is_missed(
    table: str,
    stored: Path,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert table in TABLES

    def after_a_loss(tables: RunTables, **facts: object) -> FleetSummary:
        """Take a part away, as if an executor had written it to a directory of its own."""
        folder = Path(tables.address.removeprefix("file://")) / table
        part = max(folder.glob("part-*.parquet"), key=lambda file: file.stat().st_size)
        shutil.move(part, tmp_path)
        return summarise(tables, **facts)  # type: ignore[arg-type]

    out = tmp_path / "results"
    run = latest_snapshots(spark, str(stored))

    def write() -> results.Results:
        audits = evaluated_run(spark, run, policy=Policy())
        return results.write_results(
            spark, audits, directory=str(out), run=RunName.of_place(run), policy=Policy()
        )

    monkeypatch.setattr(results, "summarise", after_a_loss)
    with pytest.raises(OSError, match=rf"rows of {table} were written, and 0 are there"):
        write()
    assert [file for file in out.rglob("*") if file.is_file()] == []
    monkeypatch.undo()
    assert write().summary.cluster_count == 11

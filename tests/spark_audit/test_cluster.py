"""The fleet audit on a cluster: what was sent there is what runs, and nothing else is needed.

By night, a standalone master and two workers, processes of their own on loopback, each with one
executor. By day, the same job in one process of Spark. The Python of either has what this project
needs, and not this project.
"""

import json
import os
import re
import signal
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks.fleet import write_fleet
from benchmarks.generate.numbers import GeneratedFleet
from gtid import jit
from spark_audit.adapters.fleet_archive import write_fleet_archive
from spark_audit.adapters.java import JavaMissing, require_java
from spark_audit.adapters.package import Package, write_package
from spark_audit.adapters.stored_pieces import evaluate_piece, pieces_of
from spark_audit.expected_fleet import ExpectedCluster, ExpectedFleet, ExpectedServer
from spark_audit.result_columns import AUDIT_SCHEMA
from spark_audit.summary import FleetSummary
from tests.spark_audit.cluster import Cluster, Job, bare_python, environment, standalone
from topology.adapters.run_directory import COMPLETE
from topology.adapters.stored_runs import (
    RECORD,
    addresses_of_files,
    clusters_of_files,
    files_of_run,
    latest_run,
)
from topology.catalogue.findings import Verdict
from topology.documents.run_record import RunRecord
from topology.policy import Policy

pytestmark = pytest.mark.spark

KILL_SECONDS_MAX = 240

# Before it audits, it asks the executors where they found the code.
ASKING = """
import sys

if __name__ == "__main__":
    import json
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from spark_audit.adapters import submit

    def places(batches):
        import os, gtid.jit, spark_audit.evaluate_batch, topology
        for batch in batches:
            found = [gtid.jit.__file__, spark_audit.evaluate_batch.__file__, topology.__file__]
            # A name in an archive is relative to where the executor works.
            found = [*map(os.path.abspath, [*found, sys.executable])]
            found = [*found, str(gtid.jit.cache_directory())]
            yield pa.record_batch({"found": pa.array([json.dumps(found)] * batch.num_rows)})

    session = SparkSession.builder.getOrCreate()
    rows = session.range(0, 8, 1, 8).mapInArrow(places, "found string").collect()
    with open(sys.argv[1], "w") as file:
        json.dump(sorted({row["found"] for row in rows}), file)
    sys.exit(submit.main(sys.argv[2:]))
"""


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def python(scratch: Path) -> Path:
    try:
        require_java(os.environ)
    except JavaMissing as missing:
        pytest.skip(f"provider missing: {missing}")
    return bare_python(scratch / "python")


@pytest.fixture(scope="module")
def alone(scratch: Path, python: Path) -> Cluster:
    """Return what runs jobs without any cluster, in one process of Spark."""
    (scratch / "alone").mkdir()
    return Cluster("local[2]", python, scratch / "alone", ())


@pytest.fixture(scope="module")
def cluster(scratch: Path, python: Path) -> Iterator[Cluster]:
    with standalone(scratch / "spark", python=python) as running:
        yield running


@pytest.fixture(scope="module")
def package(scratch: Path) -> Package:
    return write_package(scratch / "gtid-audit.zip")


def written(folder: Path, fleet: GeneratedFleet) -> Path:
    """Write a fleet as we do it: the rows of a cluster lie together."""
    write_fleet(folder, fleet, clusters_per_row_group=1_000)
    return folder


def mixed(folder: Path, stored: Path) -> Path:
    """Write the same rows in any order, and so that nobody can tell which clusters are where."""
    run = latest_run(stored)
    rows = pa.concat_tables(map(pq.read_table, files_of_run(run)))
    other = folder / run.relative_to(stored)
    other.mkdir(parents=True)
    order = np.random.default_rng(7).permutation(rows.num_rows)
    for number, part in enumerate(np.array_split(order, 4)):
        pq.write_table(rows.take(part), other / f"part-{number}.parquet", write_statistics=False)
    written = {file.name: pq.read_metadata(file).num_rows for file in other.glob("*.parquet")}
    (other / RECORD).write_text(RunRecord(0, written).to_text())
    (other / COMPLETE).touch()
    assert pieces_of(files_of_run(other)) is None
    return folder


def evaluated_locally(stored: Path) -> pa.Table:
    pieces = pieces_of(files_of_run(latest_run(stored)))
    assert pieces is not None
    evaluated = [evaluate_piece(piece, policy=Policy()) for piece in pieces]
    return pa.concat_tables(evaluated).sort_by("cluster").combine_chunks()


def assert_results(out: Path, expected: pa.Table, output: str) -> FleetSummary:
    """Hold what was written to what the local engine finds, byte for byte, and nothing beside."""
    summary = FleetSummary.from_text(output)
    (run,) = (out / "audits").glob("day=*/run=*")
    assert sorted(each.name for each in out.rglob("_*")) == ["_SUCCESS", "_summary.json"]
    assert (run / "_summary.json").read_text() == output
    tables = ["carried", "clusters", "findings", "unknown"]
    assert sorted(each.name for each in run.iterdir() if each.is_dir()) == tables
    assert [each.name for each in (out / "audits").iterdir()] == [run.parent.name]
    # Spark writes moments without their zone, which is UTC, and null where nothing was found.
    written = pq.read_table(run / "clusters", coerce_int96_timestamp_unit="us")
    written = written.select(AUDIT_SCHEMA.names).cast(AUDIT_SCHEMA).sort_by("cluster")
    assert written.num_rows == expected.num_rows == summary.cluster_count
    for name in AUDIT_SCHEMA.names:
        column, wanted = written[name].combine_chunks(), expected[name].combine_chunks()
        if name in ("findings", "unknown"):
            found = pc.greater(pc.list_value_length(wanted), 0)
            assert column.is_valid().equals(found), name
            column, wanted = column.drop_null(), wanted.filter(found)
        assert column.equals(wanted), name
    flat = pc.list_flatten(expected["findings"])
    assert pq.read_table(run / "findings").num_rows == len(flat)
    assert summary.verdict is Verdict.CRITICAL
    return summary


def packed(python: Path, folder: Path) -> Path:
    """Pack the environment of a Python, as venv-pack would, except that it is links to libraries."""
    archive = folder / "environment.tar.gz"
    with tarfile.open(archive, "w:gz") as packing:
        packing.add(python.parents[1], ".")
    return archive


def asked_places(
    where: Cluster, package: Package, folder: Path, **more: str
) -> tuple[list[list[str]], str]:
    """Audit a fleet in any order, hold the results to ours; return what executors ran, and where."""
    stored = written(folder / "stored", GeneratedFleet(pairs=600, fault_rate=0.1, busy_rate=0.1))
    missing = subprocess.run(
        [str(where.python), "-P", "-c", "import numba, pyarrow, gtid"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "No module named 'gtid'" in missing.stderr
    program = folder / "asking.py"
    program.write_text(ASKING)
    cache = jit.cache_directory()
    assert cache is not None
    archive = f"{packed(where.python, folder)}#environment" if more else None
    ran = where.run(
        program,
        folder / "places.json",
        "--max-age",
        "none",
        "--snapshots",
        mixed(folder / "mixed", stored),
        "--out",
        folder / "results",
        package=package.archive,
        archive=archive,
        settings={"spark.executorEnv.GTID_AUDIT_CACHE": str(cache.parent.parent), **more},
    )
    assert ran.status == 2, ran.log[-4000:]
    assert_results(folder / "results", evaluated_locally(stored), ran.output)
    asked = [json.loads(each) for each in json.loads((folder / "places.json").read_text())]
    return asked, str(cache)


INSIDE = ("gtid/jit.py", "spark_audit/evaluate_batch.py", "topology/__init__.py")


@pytest.mark.slow  # a cluster of its own: two minutes of processor time
def test_the_package_is_all_that_is_needed_of_us(
    alone: Cluster, package: Package, tmp_path: Path
) -> None:
    asked, cache = asked_places(alone, package, tmp_path)
    assert asked
    for *files, python, cached in asked:
        assert (python, cached) == (str(alone.python), cache)
        archive = files[0].removesuffix(INSIDE[0])
        assert archive.endswith("/gtid-audit.zip/")
        assert files == [archive + name for name in INSIDE]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_was_sent_is_what_runs_and_finds_the_same(
    cluster: Cluster, package: Package, tmp_path: Path
) -> None:
    of_executors = {
        "spark.pyspark.python": "./environment/bin/python",
        "spark.pyspark.driver.python": str(cluster.python),
    }
    asked, cache = asked_places(cluster, package, tmp_path, **of_executors)
    places = set()
    for *files, python, cached in asked:
        assert cached == cache
        home = Path(python.removesuffix("/environment/bin/python"))
        places.add(home.relative_to(cluster.scratch).parts[0])
        assert files == [f"{home}/gtid-audit.zip/{name}" for name in INSIDE]
    assert places == {"work-0", "work-1"}


@pytest.mark.slow
def test_every_cluster_of_the_fleet_file_is_in_the_result(
    alone: Cluster, package: Package, tmp_path: Path
) -> None:
    """One that the run does not have is UNKNOWN: its name arrives beside the package."""
    stored = written(tmp_path / "stored", GeneratedFleet(pairs=4))
    names = clusters_of_files(files_of_run(latest_run(stored)))
    addresses = addresses_of_files(files_of_run(latest_run(stored)), clusters=names)
    listed = [
        ExpectedCluster(
            name, tuple(ExpectedServer(each, *addresses[name][each]) for each in addresses[name])
        )
        for name in names
    ]
    added = ExpectedCluster("added-today", (ExpectedServer("db1", "db1.example", 3306),))
    fleet = ExpectedFleet((added, *listed), Policy())
    write_fleet_archive(tmp_path / "code-fleet.zip", fleet)
    places: list[str | Path] = [
        "--max-age",
        "none",
        "--snapshots",
        stored,
        "--out",
        tmp_path / "results",
    ]
    both = f"{package.archive},{tmp_path / 'code-fleet.zip'}"
    ran = alone.run(package.program, *places, "--fleet", package=both)
    assert ran.status == 3, ran.log[-4000:]
    summary = FleetSummary.from_text(ran.output)
    assert (summary.verdict, summary.cluster_count) == (Verdict.UNKNOWN, 5)
    (unknown,) = tmp_path.glob("results/audits/day=*/run=*/unknown")
    (row,) = pq.read_table(unknown).to_pylist()
    assert (row["cluster"], row["server"], row["fact"]) == ("added-today", "db1", "readings")
    assert row["reason"].endswith(" does not contain this cluster")
    # Without the archive nothing is audited: the cluster would be missing silently.
    ran = alone.run(package.program, *places, "--fleet", package=package.archive)
    assert ran.status == 64, ran.log[-4000:]
    assert "no gtid_audit_fleet in --py-files" in ran.output


def kill_an_executor(cluster: Cluster, job: Job, out: Path) -> None:
    """Wait until tasks have begun to write, and kill an executor that has more to do."""
    until = time.monotonic() + KILL_SECONDS_MAX
    begun = ("clusters/_temporary/0/task_*", "_attempts/*.parquet")  # by Spark; by our own tasks
    while not any(list(out.glob(f"audits/_writing-*/{each}")) for each in begun):
        assert job.process.poll() is None, job.log.read_text()[-4000:]
        assert time.monotonic() < until, job.log.read_text()[-4000:]
        time.sleep(0.01)
    killed, *others = cluster.executors()
    assert others
    os.kill(killed, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("layout", ["mixed", "together"])
def test_an_executor_that_dies_changes_nothing(
    cluster: Cluster, package: Package, tmp_path: Path, layout: str
) -> None:
    # So many that each executor has several tasks: five of 100,000 rows, or forty small ones.
    pairs = {"mixed": 20_000, "together": 120_000}[layout]
    stored = written(tmp_path / "stored", GeneratedFleet(pairs=pairs, fault_rate=0.01))
    out = tmp_path / "results"
    with cluster.job(
        package.program,
        "--max-age",
        "none",
        "--snapshots",
        stored if layout == "together" else mixed(tmp_path / "mixed", stored),
        "--out",
        out,
        package=package.archive,
        settings={
            "spark.sql.shuffle.partitions": "40",
            "spark.sql.adaptive.enabled": "false",
        },
    ) as job:
        kill_an_executor(cluster, job, out)
        ran = job.ended()
    assert ran.status == 2, ran.log[-4000:]
    assert re.search(r"Lost executor \d+ on", ran.log)
    assert re.search(r"Lost task [\d.]+ in stage .* \(executor \d+ exited", ran.log) or re.search(
        "Lost task .*ExecutorLostFailure", ran.log
    )
    assert_results(out, evaluated_locally(stored), ran.output)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_tasks_that_run_twice_are_written_once(
    cluster: Cluster, package: Package, tmp_path: Path
) -> None:
    stored = written(tmp_path / "stored", GeneratedFleet(pairs=20_000, fault_rate=0.01))
    ran = cluster.run(
        package.program,
        "--max-age",
        "none",
        "--snapshots",
        mixed(tmp_path / "mixed", stored),
        "--out",
        tmp_path / "results",
        package=package.archive,
        settings={
            "spark.speculation": "true",
            "spark.speculation.interval": "20ms",
            "spark.speculation.multiplier": "1.01",
            "spark.speculation.quantile": "0.1",
            "spark.speculation.minTaskRuntime": "1ms",
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.shuffleTracking.enabled": "true",
            "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
            "spark.sql.shuffle.partitions": "9",
            "spark.sql.adaptive.enabled": "false",
        },
    )
    assert ran.status == 2, ran.log[-4000:]
    assert re.search("Marking task .* as speculatable", ran.log)
    assert_results(tmp_path / "results", evaluated_locally(stored), ran.output)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_address_that_only_hadoop_knows_is_read_and_written(
    cluster: Cluster, package: Package, tmp_path: Path
) -> None:
    stored = written(tmp_path / "stored", GeneratedFleet(pairs=600, fault_rate=0.1))
    places = [
        "--max-age",
        "none",
        "--snapshots",
        "viewfs://fleet/here/stored",
        "--out",
        "viewfs://fleet/here/results",
    ]
    settings = {"spark.hadoop.fs.viewfs.mounttable.fleet.link./here": f"file://{tmp_path}"}
    for _ in range(2):  # the second time it is there already
        ran = cluster.run(package.program, *places, package=package.archive, settings=settings)
        assert ran.status == 2, ran.log[-4000:]
        assert_results(tmp_path / "results", evaluated_locally(stored), ran.output)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_run_that_executors_cannot_read_is_no_verdict(
    cluster: Cluster, package: Package, tmp_path: Path
) -> None:
    stored = written(tmp_path / "stored", GeneratedFleet(pairs=600))
    (file,) = files_of_run(latest_run(stored))
    content = file.read_bytes()
    file.write_bytes(content[:4] + b"\xff" * 400 + content[404:])  # its foot is sound
    ran = cluster.run(
        package.program,
        "--max-age",
        "none",
        "--snapshots",
        stored,
        "--out",
        tmp_path / "results",
        package=package.archive,
    )
    assert ran.status == 64, ran.log[-4000:]
    assert ran.output.startswith(f"gtid-audit: {file}: ")
    assert [each for each in (tmp_path / "results").rglob("*") if each.is_file()] == []

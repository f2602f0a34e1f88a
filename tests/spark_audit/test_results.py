"""Results of a run: what is written, that it is whole or absent, and that it is the same again."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from gtid_audit.views.report import Engine, report_of
from spark_audit.adapters import results as writing
from spark_audit.adapters.result_place import ResultsDiffer
from spark_audit.adapters.results import (
    NoResults,
    Results,
    latest_results,
    write_results,
)
from spark_audit.schema import CLUSTERS, EVALUATED, FINDINGS, UNKNOWN
from spark_audit.summary import (
    CodeCount,
    FleetSummary,
    MalformedSummary,
    policy_digest,
)
from tests.spark_audit.audits import an_audit, frame_of, night, run_of, verdict_counts
from topology.adapters.run_directory import LocalStorage
from topology.catalogue.findings import Severity, Verdict
from topology.documents.json_items import document_pieces
from topology.policy import Policy

pytestmark = pytest.mark.spark
POLICY = Policy()
FLEET = (
    an_audit("well", at=night(0)),
    an_audit("holed", at=night(0), codes=("H1", "T2")),
    an_audit("by-position", at=night(0), codes=("C3",)),
    an_audit("hung", at=night(0) + timedelta(microseconds=7), unread=("connection", "channels")),
    replace(an_audit("", at=night(0), unread=("cluster",)), read_at=None, servers=()),
)


def written(
    spark: SparkSession,
    directory: Path,
    audits: DataFrame,
    number: int = 0,
    policy: Policy = POLICY,
) -> Results:
    return write_results(spark, audits, directory=str(directory), run=run_of(number), policy=policy)


def document_of(results: Results) -> str:
    return "".join(document_pieces({"engine": "spark"}, results.report_items()))


def visible(directory: Path) -> list[str]:
    """What lies there, without Hadoop's checksums and the random names of parts."""
    found = {
        str(path.relative_to(directory)).split("/part-")[0]
        for path in directory.rglob("*")
        if path.is_file() and path.name[0] != "."
    }
    return sorted(found)


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Results:
    return written(spark, tmp_path_factory.mktemp("whole"), frame_of(spark, FLEET))


def test_a_run_has_its_tables_its_summary_and_its_mark(whole: Results) -> None:
    place = Path(whole.place)
    assert place.parts[-3:] == ("audits", "day=2026-01-02", "run=20260102T030000.000000Z")
    tables = ["carried", "clusters", "findings", "unknown"]
    assert visible(place) == ["_SUCCESS", "_summary.json", *tables]
    assert [path.name for path in place.parents[1].iterdir()] == ["day=2026-01-02"]
    assert whole.tables.clusters.schema == CLUSTERS
    assert whole.tables.findings.schema == FINDINGS
    assert whole.tables.unknown.schema == UNKNOWN


def test_the_document_is_the_local_engines_to_the_byte(whole: Results) -> None:
    local = json.loads("".join(report_of(Engine.SPARK, FLEET).document_pieces()))
    fields = ("schema_version", "engine", "clusters", "findings", "unknown")
    expected = {name: local[name] for name in fields}
    assert document_of(whole) == json.dumps(expected, ensure_ascii=False, indent=2) + "\n"


def test_the_summary_counts_and_names_the_worst(whole: Results) -> None:
    summary = whole.summary
    assert summary.clusters == verdict_counts(OK=1, WARNING=1, CRITICAL=1, UNKNOWN=2)
    assert summary.verdict is Verdict.CRITICAL
    assert (summary.cluster_count, summary.server_count, summary.unknown_count) == (5, 8, 3)
    assert summary.audited_at == night(0) + timedelta(microseconds=7)
    assert summary.findings == (
        CodeCount("C3", Severity.WARNING, 1),
        CodeCount("H1", Severity.CRITICAL, 1),
        CodeCount("T2", Severity.INFO, 1),
    )
    assert [each.cluster for each in summary.worst] == ["holed", "hung", "", "by-position"]
    assert (summary.worst[0].critical_count, summary.worst[0].info_count) == (1, 1)
    assert {each.table: each.rows for each in summary.content} == {
        "clusters": 5,
        "findings": 3,
        "unknown": 3,
        "carried": 0,
    }
    assert FleetSummary.from_text(summary.to_text()) == summary
    assert FleetSummary.from_text((Path(whole.place) / "_summary.json").read_text()) == summary


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"layout": 99}', '{"layout": 1, "run": "x", "audited_at": null}']
)
def test_a_foreign_summary_is_refused(text: str) -> None:
    with pytest.raises(MalformedSummary):
        FleetSummary.from_text(text)


def test_a_spoiled_summary_is_named(spark: SparkSession, whole: Results, tmp_path: Path) -> None:
    shutil.copytree(Path(whole.place).parents[2], tmp_path, dirs_exist_ok=True)
    (summary,) = tmp_path.rglob("_summary.json")
    summary.write_text("{}")
    with pytest.raises(MalformedSummary, match=r"_summary\.json: not the summary of a run"):
        latest_results(spark, str(tmp_path))


def test_a_page_is_told_the_worst_and_no_more_than_it_asks_for(whole: Results) -> None:
    assert [each.code for each in whole.worst_findings(10)] == ["H1", "C3"]
    assert [each.code for each in whole.worst_findings(1)] == ["H1"]
    assert [each.fact for each in whole.first_unknown(2)] == ["cluster", "channels"]


@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.slow), 7])
def test_results_do_not_depend_on_how_rows_are_spread(
    spark: SparkSession, tmp_path: Path, whole: Results, partitions: int
) -> None:
    rows = frame_of(spark, FLEET).orderBy(sf.rand(seed=partitions)).repartition(partitions)
    spread = written(spark, tmp_path, rows)
    assert spread.summary.to_text() == whole.summary.to_text()
    assert document_of(spread) == document_of(whole)


def test_the_evaluating_runs_once(spark: SparkSession, tmp_path: Path) -> None:
    seen = spark.sparkContext.accumulator(0)

    def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            seen.add(batch.num_rows)
            yield batch

    written(spark, tmp_path, frame_of(spark, FLEET).mapInArrow(counted, EVALUATED))
    assert seen.value == len(FLEET)


def test_the_same_run_again_changes_nothing(
    spark: SparkSession, whole: Results, tmp_path: Path
) -> None:
    shutil.copytree(Path(whole.place).parents[2], tmp_path, dirs_exist_ok=True)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    again = written(spark, tmp_path, frame_of(spark, FLEET[::-1]))
    assert again.summary == whole.summary
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before


def test_another_policy_or_other_findings_never_replace_a_run(
    spark: SparkSession, whole: Results, tmp_path: Path
) -> None:
    shutil.copytree(Path(whole.place).parents[2], tmp_path, dirs_exist_ok=True)
    before = visible(tmp_path)
    lenient = Policy(allowed_uuids=frozenset({UUID(int=7)}))
    assert policy_digest(lenient) != policy_digest(POLICY)
    with pytest.raises(ResultsDiffer, match=r"another policy.*move that directory away"):
        written(spark, tmp_path, frame_of(spark, FLEET), policy=lenient)
    with pytest.raises(
        ResultsDiffer, match=r"these results differ when evaluated again \(.*content\)"
    ):
        written(spark, tmp_path, frame_of(spark, FLEET[1:]))
    assert visible(tmp_path) == before
    Path(latest_results(spark, str(tmp_path)).place).rename(tmp_path / "kept")
    redone = written(spark, tmp_path, frame_of(spark, FLEET), policy=lenient)
    assert redone.summary.policy == policy_digest(lenient)


def test_what_stands_in_the_way_of_a_rename_is_not_deleted(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It may be the run of another audit that was faster."""
    half = tmp_path / "audits" / run_of(0).path / "clusters" / "part-00000.parquet"
    half.parent.mkdir(parents=True)
    half.write_text("half a copy")
    with pytest.raises(FileExistsError, match="already exists"):
        written(spark, tmp_path, frame_of(spark, FLEET[:1]))
    assert half.read_text() == "half a copy"
    assert list((tmp_path / "audits").glob("_writing-*")) == []


def test_an_empty_directory_has_no_results(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NoResults, match="no complete results"):
        latest_results(spark, str(tmp_path))


# -- dying ----------------------------------------------------------------------------------------


class Died(Exception):
    """What a test throws where a process would be gone."""


class DyingStorage(LocalStorage):
    """A storage whose process dies before its nth change; `delete` then does nothing either."""

    def __init__(self, *, changes: int, renames_atomically: bool) -> None:
        self._left = changes
        self._atomic = renames_atomically

    @property
    def renames_atomically(self) -> bool:
        return self._atomic

    def _change(self) -> None:
        if self._left == 0:
            raise Died
        self._left -= 1

    def write_text(self, place: str, text: str) -> None:
        self._change()
        super().write_text(place, text)

    def rename(self, place: str, new: str) -> None:
        self._change()
        super().rename(place, new)

    def delete(self, place: str) -> None:
        if self._left:
            super().delete(place)


@pytest.mark.parametrize(
    ("changes", "is_atomic"),
    # Where nothing is renamed, the mark is the last change: after it nobody is left to die.
    [
        (0, True),
        pytest.param(1, True, marks=pytest.mark.slow),  # between the first change and the last
        pytest.param(2, True, marks=pytest.mark.slow),
        pytest.param(0, False, marks=pytest.mark.slow),
        (1, False),
    ],
)
def test_wherever_a_writer_dies_the_last_complete_run_is_the_latest(
    spark: SparkSession,
    whole: Results,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: int,
    *,
    is_atomic: bool,
) -> None:
    shutil.copytree(Path(whole.place).parents[2], tmp_path, dirs_exist_ok=True)
    dying = DyingStorage(changes=changes, renames_atomically=is_atomic)
    audits = frame_of(spark, FLEET)
    with monkeypatch.context() as patched:
        patched.setattr(writing, "storage_of", lambda *_: (dying, str(tmp_path)))
        with pytest.raises(Died):
            written(spark, tmp_path, audits, number=1)
    latest = latest_results(spark, str(tmp_path))
    assert latest.summary == whole.summary
    assert visible(Path(latest.place)) == visible(Path(whole.place))
    if changes == 1:
        with monkeypatch.context() as patched:
            living = DyingStorage(changes=99, renames_atomically=is_atomic)
            patched.setattr(writing, "storage_of", lambda *_: (living, str(tmp_path)))
            again = written(spark, tmp_path, audits, number=1)
        assert latest_results(spark, str(tmp_path)).summary == again.summary
        assert again.summary.previous == whole.summary.run


_SLOW_RUN = """
import sys, time
from pathlib import Path
from spark_audit.adapters.results import write_results
from spark_audit.adapters.session import local_session
from spark_audit.schema import EVALUATED
from tests.spark_audit.audits import an_audit, frame_of, night, run_of
from topology.policy import Policy

directory, begun = sys.argv[1:]

def slowly(batches):
    for batch in batches:
        yield batch
        Path(begun).touch()
        time.sleep(120)

if __name__ == "__main__":
    with local_session(cores=1) as session:
        fleet = [an_audit(f"c{number}", at=night(1), codes=("H1",)) for number in range(50)]
        slow = frame_of(session, fleet).mapInArrow(slowly, EVALUATED)
        write_results(session, slow, directory=directory, run=run_of(1), policy=Policy())
"""


@pytest.mark.slow
def test_a_process_killed_while_it_writes_leaves_the_last_run(
    spark: SparkSession, whole: Results, tmp_path: Path
) -> None:
    directory, begun = tmp_path / "results", tmp_path / "begun"
    shutil.copytree(Path(whole.place).parents[2], directory)
    process = subprocess.Popen(
        [sys.executable, "-c", _SLOW_RUN, str(directory), str(begun)],
        start_new_session=True,
        env=dict(os.environ) | {"TMPDIR": str(tmp_path)},  # what the dead leave goes with the test
    )
    try:
        for _ in range(4_800):  # a busy machine takes more than one minute to start a JVM
            if begun.exists() or process.poll() is not None:
                break
            time.sleep(0.05)
        assert begun.exists(), "it never began to write"
        assert process.poll() is None
        drafts = list((directory / "audits").glob("_writing-*"))
        assert len(drafts) == 1, "it was not writing when it was killed"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    latest = latest_results(spark, str(directory))
    assert latest.summary == whole.summary
    assert document_of(latest) == document_of(whole)
    again = written(spark, directory, frame_of(spark, FLEET), number=1)
    assert latest_results(spark, str(directory)).summary == again.summary

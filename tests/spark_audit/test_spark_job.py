"""The Spark engine: the local engine's findings byte for byte, however the rows are spread."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from gtid_audit.views.report import Engine, report_of
from spark_audit.adapters import evaluated_files
from spark_audit.adapters.job import audit_stored, evaluated_run, latest_snapshots
from spark_audit.adapters.local import audit_snapshots_locally
from spark_audit.adapters.stored_pieces import Piece
from spark_audit.run_context import Beside
from spark_audit.schema import AUDITS, SNAPSHOTS
from spark_audit.transforms import audits_of
from topology.adapters.parquet import read_records
from topology.adapters.snapshot_columns import SNAPSHOT_SCHEMA, records_of_table, table_of_records
from topology.adapters.stored_runs import RECORD, UnreadableSnapshots, files_of_run, latest_run
from topology.catalogue.findings import ClusterAudit, Unknown, Verdict
from topology.documents.records import audit_from_record, audit_to_record, finding_to_record
from topology.facts.accepted_findings import (
    AcceptedFinding,
    is_accepted,
    may_be_accepted,
    shown_by,
)
from topology.policy import Policy

pytestmark = pytest.mark.spark
POLICY = Policy()


def bytes_of(audits: tuple[ClusterAudit, ...]) -> str:
    return json.dumps([audit_to_record(audit) for audit in audits])


def document_of(stored: Path) -> str:
    """Return what the Spark engine must print, as the local one would."""
    audits = audit_snapshots_locally(stored, policy=POLICY)
    return "".join(report_of(Engine.SPARK, audits).document_pieces())


def audited_with_spark(
    stored: Path, *, policy: Policy, session: SparkSession
) -> tuple[ClusterAudit, ...]:
    """Evaluate on Spark and bring everything here: it is a small fleet."""
    evaluated = evaluated_run(session, latest_snapshots(session, str(stored)), policy=policy)
    rows = records_of_table(evaluated.select(*AUDITS.names).toArrow())
    lists = ("findings", "unknown")  # null where there are none
    audits = [
        audit_from_record({**row, **{name: row[name] or [] for name in lists}}) for row in rows
    ]
    return tuple(sorted(audits, key=lambda audit: audit.cluster))


def spoil(stored: Path) -> None:
    """Damage one row of each of three clusters, in three ways."""
    (file,) = files_of_run(latest_run(stored))
    records = [record for _, record in read_records(stored)]
    kept = []
    for record in records:
        match record["cluster"], record["name"], record["phase"]:
            case "hole", "db2", 2:
                record["gtid_executed"] = "1-2-3"
            case "errant", "db1", 1:
                continue
            case "copied", "db1", 1:
                record["cluster"] = None
        kept.append(record)
    pq.write_table(table_of_records(kept, SNAPSHOT_SCHEMA), file)
    (file.parent / RECORD).unlink()  # or the row that is missing would be noticed by it


def test_both_engines_find_the_same_byte_for_byte(stored: Path, spark: SparkSession) -> None:
    local = audit_snapshots_locally(stored, policy=POLICY)
    fleet_wide = audited_with_spark(stored, policy=POLICY, session=spark)
    assert bytes_of(fleet_wide) == bytes_of(local)
    findings = [finding_to_record(one) for audit in fleet_wide for one in audit.findings]
    assert json.dumps(findings) == json.dumps(
        [finding_to_record(one) for audit in local for one in audit.findings]
    )
    assert len(findings) >= 9


def test_both_engines_accept_the_same_findings(
    stored: Path, spark: SparkSession, tmp_path: Path
) -> None:
    before = audit_snapshots_locally(stored, policy=POLICY)
    entries = [
        entry
        for audit in before
        for one in audit.findings
        if may_be_accepted(one)
        for entry in (
            AcceptedFinding(
                one.code,
                one.severity,
                "known",
                one.last_seen.date(),
                cluster=one.cluster,
                source=one.source,
                replica=one.replica,
                channel=one.channel or "",
                gtid_set=one.gtid_set,
                shows="" if one.gtid_set else shown_by(one),
            ),
        )
    ]
    assert len(entries) >= 5
    entries[0] = replace(entries[0], expires=entries[0].expires - timedelta(days=1))
    policy = Policy(accepted_findings=tuple(entries))
    local = audit_snapshots_locally(stored, policy=policy)
    assert bytes_of(audited_with_spark(stored, policy=policy, session=spark)) == bytes_of(local)
    assert {one.cluster for one in local if one.unknown} == {
        one.cluster for one in before if one.unknown
    }
    accepted = sorted(
        (one.cluster, one.code, one.id)
        for audit in local
        for one in audit.findings
        if is_accepted(one)
    )
    assert len(accepted) == len(entries) - 1
    results = audit_stored(spark, snapshots=str(stored), out=str(tmp_path), policy=policy)
    shown = results.accepted_findings(100)
    assert [(one.cluster, one.code, one.id) for one in shown] == accepted
    assert results.accepted_findings(1) == shown[:1]


@pytest.mark.parametrize(
    "partitions",
    [pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow), 7],
)
def test_findings_do_not_depend_on_how_rows_are_spread(
    stored: Path, spark: SparkSession, partitions: int
) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    rows = spark.read.schema(SNAPSHOTS).parquet(str(latest_run(stored)))
    shuffled = rows.orderBy(sf.rand(seed=partitions)).repartition(partitions)
    evaluated = audits_of(shuffled, policy=POLICY)
    assert evaluated.schema == AUDITS
    assert evaluated.rdd.getNumPartitions() == partitions
    audits = [audit_from_record(record) for record in records_of_table(evaluated.toArrow())]
    in_order = tuple(sorted(audits, key=lambda audit: audit.cluster))
    assert bytes_of(in_order) == bytes_of(audit_snapshots_locally(stored, policy=POLICY))


def test_the_zone_of_the_session_changes_nothing(stored: Path, spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    assert before == "UTC"
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        audits = audited_with_spark(stored, policy=POLICY, session=spark)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert bytes_of(audits) == bytes_of(audit_snapshots_locally(stored, policy=POLICY))


def test_damaged_clusters_are_unknown_and_the_others_are_evaluated(
    stored: Path, spark: SparkSession
) -> None:
    whole = {audit.cluster: audit for audit in audit_snapshots_locally(stored, policy=POLICY)}
    spoil(stored)
    audits = audited_with_spark(stored, policy=POLICY, session=spark)
    assert bytes_of(audits) == bytes_of(audit_snapshots_locally(stored, policy=POLICY))
    by_cluster = {audit.cluster: audit for audit in audits}
    damaged = {"", "copied", "errant", "hole"}
    for cluster in damaged:
        assert by_cluster[cluster].verdict is Verdict.UNKNOWN, cluster
    (said,) = by_cluster["hole"].unknown
    assert (said.server, said.fact) == ("db2", "gtid_executed")
    assert by_cluster[""].unknown == (
        Unknown("", "db1", "cluster", "unparseable: expected a text, found null"),
    )
    for cluster in whole.keys() - damaged:
        assert by_cluster[cluster] == whole[cluster]


def test_the_policy_reaches_the_executors(stored: Path, spark: SparkSession) -> None:
    (pair,) = (
        audit
        for audit in audit_snapshots_locally(stored, policy=POLICY)
        if audit.cluster == "errant"
    )
    uuids = frozenset(pair.findings[0].gtid_set.uuids)
    lenient = Policy(allowed_uuids=uuids)
    audits = audited_with_spark(stored, policy=lenient, session=spark)
    assert bytes_of(audits) == bytes_of(audit_snapshots_locally(stored, policy=lenient))
    assert bytes_of(audits) != bytes_of(audit_snapshots_locally(stored, policy=POLICY))


def test_a_damaged_file_is_named_before_a_job_starts(stored: Path, spark: SparkSession) -> None:
    (file,) = files_of_run(latest_run(stored))
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(UnreadableSnapshots, match=file.name):
        audit_stored(spark, snapshots=str(stored), out=str(stored), policy=POLICY)
    assert list((stored / "audits").glob("**/*.parquet")) == []


def test_data_that_cannot_be_read_is_an_error_with_the_name_of_the_file(
    stored: Path, spark: SparkSession
) -> None:
    (file,) = files_of_run(latest_run(stored))
    content = file.read_bytes()
    file.write_bytes(content[:4] + b"\xff" * 400 + content[404:])
    assert files_of_run(latest_run(stored)) == (file,)  # its foot is sound
    with pytest.raises(UnreadableSnapshots, match=file.name):
        audit_stored(spark, snapshots=str(stored), out=str(stored), policy=POLICY)
    assert list((stored / "audits").glob("**/*.parquet")) == []


def test_an_executor_that_does_not_see_the_results_directory_says_so(
    stored: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate = evaluated_files._evaluate_on_executors

    def evaluate_elsewhere(
        session: SparkSession,
        pieces: Sequence[Piece],
        attempts: Path,
        *,
        policy: Policy,
        beside: Beside,
    ) -> list[tuple[str, int]]:
        attempts.rmdir()  # as if it were a disk of the driver's machine only
        return evaluate(session, pieces, attempts, policy=policy, beside=beside)

    monkeypatch.setattr(evaluated_files, "_evaluate_on_executors", evaluate_elsewhere)
    with pytest.raises(evaluated_files.UnwritableTable, match=r"_attempts: .*No such file"):
        audit_stored(spark, snapshots=str(stored), out=str(stored), policy=POLICY)
    assert list((stored / "audits").glob("**/*.parquet")) == []


_OWN_SESSION = """
import os, sys
from gtid_audit import cli

if __name__ == "__main__":
    before = dict(os.environ)
    status = cli.run(["audit", "--max-age", "none", "--snapshots", sys.argv[1], "--engine", "spark", "--json"])
    assert dict(os.environ) == before
    assert status == 2
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        pass  # it was the last
    else:
        sys.exit("a child process is left")
"""


@pytest.mark.slow
def test_a_session_of_its_own_is_quiet_and_leaves_nothing_behind(
    stored: Path, spark: SparkSession, tmp_path: Path
) -> None:
    assert spark.version  # Java is there
    work = tmp_path / "work"
    work.mkdir()
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", _OWN_SESSION, str(stored)],
        capture_output=True,
        text=True,
        cwd=work,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == document_of(stored)
    assert list(work.iterdir()) == []


def audit_alone(stored: Path, cache: Path) -> str:
    """Audit in a process of its own, whose class archive lies in `cache`."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", _OWN_SESSION, str(stored)],
        capture_output=True,
        text=True,
        env=dict(os.environ) | {"GTID_AUDIT_CACHE": str(cache)},
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


@pytest.mark.slow
def test_a_class_archive_changes_nothing_but_the_time(
    stored: Path, spark: SparkSession, tmp_path: Path
) -> None:
    assert spark.version  # Java is there
    local = document_of(stored)
    for _ in range(2):  # the second time it is there already
        made = subprocess.run(
            [sys.executable, "-m", "spark_audit.adapters.archive"],
            capture_output=True,
            text=True,
            env=dict(os.environ) | {"GTID_AUDIT_CACHE": str(tmp_path / "cache")},
            check=False,
        )
        assert (made.returncode, made.stderr) == (0, "")
        (archive,) = (tmp_path / "cache").glob("*.jsa")
        assert made.stdout == f"{archive}\n"
    assert audit_alone(stored, archive.parent) == local
    archive.chmod(0o644)
    archive.write_bytes(b"no archive at all" * 1000)
    assert audit_alone(stored, archive.parent) == local

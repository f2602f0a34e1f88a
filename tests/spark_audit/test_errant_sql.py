"""docs/errant-transactions.sql finds what the audit calls errant, and owns up to the rest."""

import re
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from pyspark.sql import SparkSession

from gtid import GtidSet
from spark_audit.adapters.local import audit_snapshots_locally
from spark_audit.functions import register_functions
from spark_audit.schema import SNAPSHOTS
from topology.adapters.parquet import write_snapshots
from topology.adapters.stored_runs import latest_run
from topology.policy import Policy
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot

pytestmark = pytest.mark.spark

SCRIPT = (Path(__file__).resolve().parents[2] / "docs/errant-transactions.sql").read_text()
ERRANT = "E1"


def answers(session: SparkSession, run: Path) -> list[list[tuple[object, ...]]]:
    """Run the file as it is; give the rows of each SELECT."""
    session.read.schema(SNAPSHOTS).parquet(str(run)).createOrReplaceTempView("snapshots")
    register_functions(session)
    statements = re.sub(r"^--.*$", "", SCRIPT, flags=re.MULTILINE).split(";")
    frames = [session.sql(statement) for statement in statements if statement.strip()]
    return [[tuple(row) for row in frame.collect()] for frame in frames if frame.columns]


def changed(cluster: ClusterSnapshot, name: str, **servers: ServerSnapshot) -> ClusterSnapshot:
    """The same cluster under another name, with other servers in both readings."""

    def reading(before: tuple[ServerSnapshot, ...]) -> tuple[ServerSnapshot, ...]:
        return tuple(
            replace(
                servers.get(server.name, server),
                cluster=name,
                phase=server.phase,
                read_started=server.read_started,
                read_ended=server.read_ended,
            )
            for server in before
        )

    return ClusterSnapshot(name, reading(cluster.first), reading(cluster.last))


def test_the_script_finds_what_the_audit_calls_errant(
    tmp_path: Path, fleet: tuple[ClusterSnapshot, ...], spark: SparkSession
) -> None:
    by_name = {cluster.cluster: cluster for cluster in fleet}
    db1, db2 = by_name["errant"].first
    assert db1.gtid_executed is not None
    assert db2.channels is not None
    (down,) = db2.channels
    up = replace(down, source_uuid=db2.server_uuid, source_host=db2.host)
    both_primary = changed(by_name["errant"], "both primary", db1=replace(db1, channels=(up,)))
    tagged = GtidSet.parse(f"{db2.server_uuid}:1-3:dba:1-4")
    more = changed(
        by_name["errant"], "more", db2=replace(db2, gtid_executed=db1.gtid_executed | tagged)
    )
    stranger = replace(down, source_uuid=UUID(int=1), source_host="elsewhere.example")
    alone = changed(by_name["errant"], "alone", db2=replace(db2, channels=(down, stranger)))
    write_snapshots(tmp_path, (*fleet, both_primary, more, alone))
    audits = audit_snapshots_locally(tmp_path, policy=Policy())
    evaluated = {
        (finding.cluster, finding.replica, str(finding.gtid_set), finding.gtid_set.gtid_count)
        for audit in audits
        for finding in audit.findings
        if finding.code == ERRANT
    }
    errant, unknown = answers(spark.newSession(), latest_run(tmp_path))
    # Of a replica with a source that nobody read, the audit still says something; the script not.
    assert {row for row in evaluated if row[0] == "alone"}
    assert set(errant) == {row for row in evaluated if row[0] != "alone"}
    assert errant[0][:2] == ("more", "db2")
    assert len(errant) == 3  # one of them is of the pair whose sets are vast
    assert unknown == [
        ("alone", "db2", "its source is not among these"),
        ("denied", "db2", "its channels were not read"),
        ("hung", "db2", "gtid_executed was not read"),
    ]

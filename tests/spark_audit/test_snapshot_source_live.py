"""The data source on real servers: what the local engine finds, and servers that are not there."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from compose import faults
from compose.native.server import Server, free_port
from compose.native.shapes import Pair
from spark_audit.adapters.sources import register_sources
from spark_audit.schema import SNAPSHOTS
from spark_audit.transforms import audits_of
from topology.adapters.collect_fleet import collect_fleet
from topology.adapters.inventory.fleet_file import load_fleet
from topology.adapters.snapshot_columns import records_of_table
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Verdict
from topology.documents.records import audit_from_record, cluster_from_servers, snapshot_from_record
from topology.policy import Policy

pytestmark = pytest.mark.spark
POLICY = Policy()


def fleet_file(path: Path, *clusters: tuple[str, Iterable[tuple[str, int]]]) -> Path:
    lines = ["defaults: {user: root}", "limits: {server_seconds_max: 2}", "clusters:"]
    for cluster, servers in clusters:
        lines += [f"  - name: {cluster}", "    servers:"]
        lines += [
            f"      - {{name: {name}, host: 127.0.0.1, port: {port}}}" for name, port in servers
        ]
    path.write_text("\n".join(lines) + "\n")
    return path


def ports_of(pair: Pair) -> list[tuple[str, int]]:
    return [(name, server.port) for name, server in pair.servers.items()]


def load(spark: SparkSession, fleet: Path, **options: str) -> DataFrame:
    register_sources(spark)
    source = spark.read.format("mysql_snapshot").option("fleet", str(fleet))
    return source.options(**options).load()


def audits_on_spark(rows: DataFrame) -> dict[str, ClusterAudit]:
    evaluated = records_of_table(audits_of(rows, policy=POLICY).toArrow())
    return {audit.cluster: audit for audit in map(audit_from_record, evaluated)}


def audits_here(fleet: Path) -> dict[str, ClusterAudit]:
    read = collect_fleet(load_fleet(fleet, environment={}, warn=pytest.fail))
    return {each.cluster: audit_cluster(each, POLICY) for each in read}


def essence(audit: ClusterAudit) -> object:
    """Return what does not depend on the moment of reading."""
    fields = ("id", "severity", "grade", "source", "replica", "channel", "gtid_set", "explanation")
    found = [[getattr(one, field) for field in fields] for one in audit.findings]
    return audit.verdict, audit.servers, audit.unknown, found


@pytest.mark.parametrize("credentials", ["driver", "executor"])
def test_spark_reads_and_finds_what_the_local_engine_does(
    pair97: Pair, spark: SparkSession, tmp_path: Path, credentials: str
) -> None:
    fault = faults.position_bypass(pair97)
    nobody = [(name, free_port("127.0.0.1")) for name in ("x", "y")]
    fleet = fleet_file(tmp_path / "f.yaml", ("faulty", ports_of(pair97)), ("dead", nobody))
    rows = load(spark, fleet, credentials=credentials, partitions="2")
    assert rows.schema == SNAPSHOTS
    assert rows.rdd.getNumPartitions() == 2
    audits = audits_on_spark(rows)
    here = audits_here(fleet)
    assert {name: essence(audit) for name, audit in audits.items()} == {
        name: essence(audit) for name, audit in here.items()
    }
    (finding,) = (one for one in audits["faulty"].findings if one.code == "H1")
    assert str(finding.gtid_set) == fault.skipped
    assert audits["dead"].verdict is Verdict.UNKNOWN
    only = load(spark, fleet, credentials=credentials, cluster="faulty")
    assert [row.cluster for row in only.select("cluster").distinct().collect()] == ["faulty"]


def test_both_readings_have_the_barrier_between_them(
    pair97: Pair, spark: SparkSession, tmp_path: Path
) -> None:
    fleet = fleet_file(tmp_path / "f.yaml", ("pair", ports_of(pair97)))
    rows = records_of_table(load(spark, fleet).toArrow())
    assert [(row["phase"], row["name"]) for row in rows] == [(1, "a"), (1, "b"), (2, "a"), (2, "b")]
    snapshot = cluster_from_servers("pair", map(snapshot_from_record, rows))  # checks the barrier
    assert audit_cluster(snapshot, POLICY).verdict is Verdict.OK
    assert {server.unread for server in (*snapshot.first, *snapshot.last)} == {()}


def unknown_servers(audit: ClusterAudit) -> set[tuple[str, str]]:
    return {(one.server, one.reason.partition(":")[0]) for one in audit.unknown}


def test_a_stopped_and_a_hung_server_are_unknown_rows_and_no_failed_job(
    pair97: Pair, spark: SparkSession, tmp_path: Path
) -> None:
    fleet = fleet_file(tmp_path / "f.yaml", ("pair", ports_of(pair97)))
    with faults.hung_server(pair97.b):
        (hung,) = audits_on_spark(load(spark, fleet)).values()
    assert hung.verdict is Verdict.UNKNOWN
    assert unknown_servers(hung) == {("b", "timeout")}
    pair97.b.kill()
    rows = load(spark, fleet)
    (dead,) = audits_on_spark(rows).values()
    assert dead.verdict is Verdict.UNKNOWN
    assert unknown_servers(dead) == {("b", "unreachable")}
    read = rows.where(sf.col("gtid_executed").isNotNull()).select("name", "phase")
    assert sorted((row.name, row.phase) for row in read.collect()) == [("a", 1), ("a", 2)]


def test_a_password_beyond_latin_1_is_sent_and_not_quoted(
    mysql97: Server, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The executors' own environment is that of the session; an option file can be written now.
    mysql97.execute("CREATE USER beyond@'%' IDENTIFIED BY 'snow-☃-flake'")
    options = tmp_path / "my.cnf"
    options.touch(mode=0o600)
    fleet = tmp_path / "f.yaml"
    fleet.write_text(
        f"defaults: {{user: beyond, password: {{option_file: {options}}}}}\n"
        "clusters:\n"
        f"  - {{name: c, servers: [{{name: s, host: 127.0.0.1, port: {mysql97.port}}}]}}\n"
    )
    try:
        for password, is_let_in in (("snow-☃-flake", True), ("rain-☂-drop", False)):
            options.write_text(f"[client]\npassword={password}\n")
            rows = load(spark, fleet, credentials="executor").collect()
            assert [row.server_uuid is not None for row in rows] == [is_let_in] * 2, rows
            assert "☂" not in str(rows)
    finally:
        mysql97.execute("DROP USER beyond@'%'")

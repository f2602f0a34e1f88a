"""A real server that prints what a server of RDS prints: its basedir, and its service's table.

A folder with the name of RDS's is a basedir like any other to mysqld. This shows the
statements, the parsing and the rules on a real server; the service itself was not tested.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from compose.native import shapes
from compose.native.command import Settings
from compose.native.installation import Installation
from compose.native.shapes import Link, Topology, TopologyPlan
from tests.topology.test_faults_live import targets_of
from topology.adapters.collect import collect_cluster
from topology.adapters.mysql import MysqlReader
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Severity
from topology.policy import Policy
from topology.readings.snapshot import ServerSnapshot, UnreadReason
from topology.readings.target import ServerTarget
from topology.readings.vendors import Vendor

pytestmark = pytest.mark.mysql
CONFIGURATION = (
    "CREATE TABLE mysql.rds_configuration (name VARCHAR(100) PRIMARY KEY, value VARCHAR(100))",
    "INSERT INTO mysql.rds_configuration VALUES ('binlog retention hours', NULL)",
)


@contextmanager
def like_rds(installation: Installation, folder: Path, *extra: str) -> Iterator[Topology]:
    """Run a and its replica b from a basedir in which RDS's folder is part of the path."""
    [given] = [each for each in installation.options if each.startswith("--basedir=")]
    basedir = folder / "rdsdbbin" / "mysql-8.0.35.R4"
    basedir.mkdir(parents=True)
    for each in Path(given.removeprefix("--basedir=")).iterdir():
        (basedir / each.name).symlink_to(each)
    settings = Settings(extra=(f"--basedir={basedir}", *extra))
    plan = TopologyPlan(
        names=("a", "b"),
        links=(Link(source="a", replica="b"),),
        settings={"a": settings, "b": settings},
    )
    with shapes.running(installation, plan) as topology:
        yield topology


def read(topology: Topology, name: str) -> ServerSnapshot:
    return reading_of(target_of(topology, name))


def target_of(topology: Topology, name: str) -> ServerTarget:
    return next(each for each in targets_of(topology) if each.name == name)


def reading_of(target: ServerTarget) -> ServerSnapshot:
    reader = MysqlReader(target, cluster="live", timeout_seconds_max=10)
    try:
        return reader.read(phase=1)
    finally:
        reader.close()


def audited(topology: Topology, policy: Policy | None = None) -> ClusterAudit:
    return audit_cluster(collect_cluster("live", targets_of(topology)), policy or Policy())


def grants_of_page() -> list[str]:
    """Return the statements of docs/managed-services.md that create what an account needs."""
    page = (Path(__file__).parents[2] / "docs/managed-services.md").read_text()
    [grant] = re.findall(r"^GRANT [^;]*;", page, re.MULTILINE)
    return [grant.replace("10.0.0.%", "%").rstrip(";")]


def check_retention(topology: Topology) -> None:
    a = topology["a"]
    assert read(topology, "a").setting("binlog_retention_hours") is None, "there is no table"
    a.execute(*CONFIGURATION)
    assert read(topology, "a").setting("binlog_retention_hours") == "NULL"
    a.execute("UPDATE mysql.rds_configuration SET value = '24'")
    reading = read(topology, "a")
    assert (reading.vendor, reading.setting("binlog_retention_hours")) == (Vendor.RDS, "24")
    assert reading.unread == ()
    topology.settle()
    [short] = [
        each
        for each in audited(topology, Policy(outage_seconds_max=7 * 86_400)).findings
        if each.code == "C8" and each.replica == "a"
    ]
    assert "keeps its binary logs for 1 day" in short.explanation


def test_a_server_of_rds_is_recognised_and_its_own_retention_counts(
    native97: Installation, tmp_path: Path
) -> None:
    with like_rds(native97, tmp_path) as topology:
        assert read(topology, "a").vendor is Vendor.RDS
        audit = audited(topology)
        assert not [each for each in audit.findings if each.severity is not Severity.INFO]
        check_retention(topology)
        a, b = topology["a"], topology["b"]
        a.execute("CREATE USER auditor@'%'", "GRANT REPLICATION CLIENT ON *.* TO auditor@'%'")
        plain = replace(target_of(topology, "a"), user="auditor")
        assert reading_of(plain).setting("binlog_retention_hours") is None
        a.execute(*grants_of_page())
        assert reading_of(plain).setting("binlog_retention_hours") == "24"
        a.execute("DELETE FROM mysql.rds_configuration")
        topology.settle()
        b.execute(b.dialect.stop_replica)
        a.execute("CREATE DATABASE d")
        unknown = audited(topology).unknown
        assert [each.server for each in unknown] == ["a"]
        assert unknown[0].reason.startswith("RDS deletes a binary log as soon as")


def test_a_server_of_rds_5_6_is_recognised(installation56: Installation, tmp_path: Path) -> None:
    with like_rds(installation56, tmp_path) as topology:
        check_retention(topology)


def test_the_reason_of_rds_is_shown_where_threads_are_hidden(
    native97: Installation, tmp_path: Path
) -> None:
    """RDS has performance_schema off by default, and this account may not see the process list."""
    with like_rds(native97, tmp_path, "--performance-schema=OFF") as topology:
        b = topology["b"]
        b.execute(
            "SET sql_log_bin = 0",
            "CREATE USER monitor@'%' IDENTIFIED BY ''",
            "GRANT REPLICATION CLIENT ON *.* TO monitor@'%'",
            "GRANT SELECT ON performance_schema.* TO monitor@'%'",
        )
        reading = reading_of(replace(target_of(topology, "b"), user="monitor"))
        [unread] = reading.unread
        assert (unread.fact, unread.reason) == ("workers", UnreadReason.PRIVILEGE)
        assert "(RDS: performance_schema is off by default" in unread.detail

"""A small fleet with something of everything, and one Spark session for the whole run."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql import SparkSession

from gtid import GtidSet
from spark_audit.adapters.session import JavaMissing, local_session
from topology.adapters.parquet import write_snapshots
from topology.snapshot import (
    ChannelSnapshot,
    ClusterSnapshot,
    LogPosition,
    ServerSnapshot,
    ThreadState,
    UnreadFact,
    UnreadReason,
)
from topology.version import ServerVersion, Vendor

NOON = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)
A, B, C = (UUID(int=number << 120) for number in (0xAA, 0xBB, 0xCC))
HERE = LogPosition.of(file="binlog.000003", position=4711)


def a_server(name: str, uuid: UUID, executed: str, **facts: Any) -> ServerSnapshot:
    server = ServerSnapshot(
        cluster="to be said",
        name=name,
        host=f"{name}.example",
        port=3306,
        phase=1,
        read_started=NOON,
        read_ended=NOON + timedelta(milliseconds=40),
        server_clock=NOON,
        server_uuid=uuid,
        server_id=uuid.bytes[0],
        version=ServerVersion(9, 7, 4),
        version_text="9.7.4",
        vendor=Vendor.MYSQL,
        uptime_seconds=86_400,
        gtid_executed=GtidSet.parse(executed),
        gtid_purged=GtidSet(),
        gtid_owned=GtidSet(),
        log_end=HERE,
        channels=(),
        binary_logs=(),
        settings=(("gtid_mode", "ON"),),
    )
    return replace(server, **facts)


def a_channel(source: str, uuid: UUID, **state: Any) -> ChannelSnapshot:
    channel = ChannelSnapshot(
        name="",
        source_host=f"{source}.example",
        source_port=3306,
        source_uuid=uuid,
        auto_position=True,
        gtid_retrieved=GtidSet(),
        receiver=ThreadState.RUNNING,
        receiver_errno=0,
        receiver_error="",
        receiver_error_at="",
        applier=ThreadState.RUNNING,
        applier_errno=0,
        applier_error="",
        applier_error_at="",
        received_to=HERE,
        applied_to=HERE,
        lag_seconds=0,
    )
    return replace(channel, **state)


def a_cluster(cluster: str, *servers: ServerSnapshot) -> ClusterSnapshot:
    """Read the same servers twice, seconds apart."""
    first = tuple(replace(server, cluster=cluster) for server in servers)
    later = timedelta(seconds=6)
    last = tuple(
        replace(
            server,
            phase=2,
            read_started=server.read_started + later,
            read_ended=server.read_ended + later,
        )
        for server in first
    )
    return ClusterSnapshot(cluster, first, last)


def a_pair(
    cluster: str, source: str, replica: str, *, state: Any = None, **source_facts: Any
) -> ClusterSnapshot:
    """Make db1 → db2 from what each has executed."""
    channel = a_channel("db1", A, **(state or {}))
    return a_cluster(
        cluster,
        a_server("db1", A, source, **source_facts),
        a_server("db2", B, replica, channels=(channel,)),
    )


def unreadable(name: str) -> ServerSnapshot:
    return ServerSnapshot(
        cluster="to be said",
        name=name,
        host=f"{name}.example",
        port=3306,
        phase=1,
        read_started=NOON,
        read_ended=NOON + timedelta(seconds=5),
        unread=(
            UnreadFact("connection", UnreadReason.TIMEOUT, "no answer within 5 s: “hung”"),
            UnreadFact("gtid_executed", UnreadReason.UNREACHABLE, ""),
        ),
    )


@pytest.fixture(scope="session")
def fleet() -> tuple[ClusterSnapshot, ...]:
    denied = UnreadFact("channels", UnreadReason.PRIVILEGE, "Access denied; REPLICATION CLIENT")
    return (
        a_pair("healthy", f"{A}:1-10", f"{A}:1-10"),
        a_pair("hole", f"{A}:1-10", f"{A}:1-3:5-10"),
        a_pair("errant", f"{A}:1-10", f"{A}:1-10,{B}:1-2"),
        a_pair("tagged", f"{A}:1-10:dba:1-3", f"{A}:1-10:dba:1:3"),
        a_pair("purged", f"{A}:1-10", f"{A}:1-3", gtid_purged=GtidSet.parse(f"{A}:1-7")),
        a_pair("by-position", f"{A}:1-10", f"{A}:1-10", state={"auto_position": False}),
        a_pair(
            "stopped",
            f"{A}:1-10",
            f"{A}:1-9",
            state={
                "applier": ThreadState.STOPPED,
                "applier_errno": 1062,
                "applier_error": "Duplicate entry 'ä\t1' for key 't.PRIMARY'",
                "applier_error_at": "260102 12:00:00",
            },
        ),
        # More than 2**63 GTIDs in one finding.
        a_pair("vast", f"{A}:1-9223372036854775806,{C}:1-9223372036854775806", f"{B}:1"),
        a_cluster("copied", a_server("db1", A, f"{A}:1-5"), a_server("db2", A, f"{A}:1-5")),
        a_cluster("hung", a_server("db1", A, f"{A}:1-5"), unreadable("db2")),
        a_cluster(
            "denied",
            a_server("db1", A, f"{A}:1-5"),
            a_server("db2", B, f"{A}:1-5", channels=None, unread=(denied,)),
        ),
    )


@pytest.fixture
def stored(tmp_path: Path, fleet: tuple[ClusterSnapshot, ...]) -> Path:
    """A directory with one complete run of the fleet."""
    write_snapshots(tmp_path / "snapshots", fleet)
    return tmp_path / "snapshots"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    try:
        with local_session(cores=2) as session:
            # Partitions stay as many as a test asks for.
            session.conf.set("spark.sql.adaptive.enabled", "false")
            yield session
    except JavaMissing as missing:
        pytest.skip(f"provider missing: {missing}")

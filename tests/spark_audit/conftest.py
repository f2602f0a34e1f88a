"""A small fleet with something of everything, stored or not."""

from pathlib import Path
from typing import Any

import pytest

from gtid import GtidSet
from tests.one_spark import spark
from tests.server_pool import pair97, pairs97
from tests.snapshots import A, B, C, a_channel, a_cluster, a_server, an_unread
from topology.adapters.parquet import write_snapshots
from topology.readings.snapshot import (
    ClusterSnapshot,
    ServerSnapshot,
    ThreadState,
    UnreadFact,
    UnreadReason,
)

__all__ = ["fleet", "pair97", "pairs97", "spark", "stored"]


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
    return an_unread(
        name,
        UnreadFact("connection", UnreadReason.TIMEOUT, "no answer within 5 s: “hung”"),
        UnreadFact("gtid_executed", UnreadReason.UNREACHABLE, ""),
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

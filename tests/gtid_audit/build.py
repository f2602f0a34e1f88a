"""Small clusters as they would be read, and a way to run the command line as a process."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from gtid import GtidSet
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

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
A, B = (UUID(letter * 8 + "-0000-0000-0000-000000000000") for letter in "ab")
HERE = LogPosition.of(file="binlog.000003", position=4711)
GTID_AUDIT = str(Path(sys.executable).parent / "gtid-audit")


def channel(source: str, uuid: UUID, **state: Any) -> ChannelSnapshot:
    made = ChannelSnapshot(
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
    return replace(made, **state)


def server(name: str, uuid: UUID | None, executed: str, **facts: Any) -> ServerSnapshot:
    made = ServerSnapshot(
        cluster="pair",
        name=name,
        host=f"{name}.example",
        port=3306,
        phase=1,
        read_started=NOON,
        read_ended=NOON + timedelta(milliseconds=40),
        server_uuid=uuid,
        version=ServerVersion(9, 7, 4),
        version_text="9.7.4",
        vendor=Vendor.MYSQL,
        uptime_seconds=100,
        gtid_executed=GtidSet.parse(executed),
        gtid_purged=GtidSet(),
        gtid_owned=GtidSet(),
        log_end=HERE,
        channels=(),
        binary_logs=(),
        settings=(),
    )
    return replace(made, **facts)


def unread(name: str) -> ServerSnapshot:
    lost = UnreadFact("connection", UnreadReason.TIMEOUT, "no answer")
    return ServerSnapshot(
        cluster="pair",
        name=name,
        host=f"{name}.example",
        port=3306,
        phase=1,
        read_started=NOON,
        read_ended=NOON,
        unread=(lost,),
    )


def cluster(*servers: ServerSnapshot, name: str = "pair") -> ClusterSnapshot:
    first = tuple(replace(each, cluster=name) for each in servers)
    later = timedelta(seconds=1)
    last = tuple(
        replace(
            each,
            phase=2,
            read_started=each.read_started + later,
            read_ended=each.read_ended + later,
        )
        for each in first
    )
    return ClusterSnapshot(name, first, last)


def healthy(name: str = "pair") -> ClusterSnapshot:
    """A dual-primary pair that agrees."""
    both = f"{A}:1-100,{B}:1-50"
    return cluster(
        server("a", A, both, channels=(channel("b", B),)),
        server("b", B, both, channels=(channel("a", A),)),
        name=name,
    )


def holed(name: str = "pair") -> ClusterSnapshot:
    """b was pointed past a:51-53 by file position."""
    return cluster(
        server("a", A, f"{A}:1-100", channels=(channel("b", B),)),
        server("b", B, f"{A}:1-50:54-100", channels=(channel("a", A, auto_position=False),)),
        name=name,
    )


def half_read(name: str = "pair") -> ClusterSnapshot:
    """b did not answer."""
    return cluster(
        server("a", A, f"{A}:1-100", channels=(channel("b", B),)), unread("b"), name=name
    )


def run_cli(
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    stdin: str | bytes = "",
    seconds_max: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run `gtid-audit` as a person does: another process, pipes for a terminal."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GTID_AUDIT")}
    kept.pop("MYSQL_PWD", None)
    done = subprocess.run(
        [GTID_AUDIT, *arguments],
        input=stdin if isinstance(stdin, bytes) else stdin.encode(),
        capture_output=True,
        env={**kept, **(environment or {})},
        check=False,
        timeout=seconds_max,
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )

"""Snapshots as they would be read of servers that are well: a test says only what is otherwise.

What tests share is how a snapshot looks; which servers there are, and what ails them, is theirs.
"""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from gtid import GtidSet
from topology.readings.history_evidence import CommitRecord, HistoryEvidence
from topology.readings.snapshot import (
    ChannelSnapshot,
    ClusterSnapshot,
    LogPosition,
    ReadServer,
    ServerSnapshot,
    ThreadState,
    UnreadFact,
    UnreadReason,
    as_read,
)
from topology.readings.vendors import Vendor
from topology.readings.version import ServerVersion

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
A, B, C = (UUID(letter * 8 + "-0000-0000-0000-000000000000") for letter in "abc")
HERE = LogPosition.of(file="binlog.000003", position=4711)


def a_channel(source: str, uuid: UUID | None, **facts: Any) -> ChannelSnapshot:
    """Make a channel that runs, by auto-position, and has read and applied all there is."""
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
    return replace(made, **facts)


def a_server(name: str, uuid: UUID | None, executed: str | GtidSet, **facts: Any) -> ServerSnapshot:
    """Make a whole first reading of a server that replicates from nobody."""
    made = ServerSnapshot(
        cluster="pair",
        name=name,
        host=f"{name}.example",
        port=3306,
        phase=1,
        read_started=NOON,
        read_ended=NOON + timedelta(milliseconds=40),
        server_clock=NOON,
        server_uuid=uuid,
        server_id=1 if uuid is None else uuid.int % 65_521,  # another for each UUID of the tests
        version=ServerVersion(9, 7, 4),
        version_text="9.7.4",
        vendor=Vendor.MYSQL,
        uptime_seconds=86_400,
        gtid_executed=GtidSet.parse(executed) if isinstance(executed, str) else executed,
        gtid_purged=GtidSet(),
        gtid_owned=GtidSet(),
        log_end=HERE,
        channels=(),
        binary_logs=(),
        settings=(
            ("gtid_mode", "ON"),
            ("gtid_mode_source", "EXPLICIT"),
            ("server_id_source", "EXPLICIT"),
        ),
    )
    return replace(made, **facts)


def with_facts(reading: ServerSnapshot, **facts: Any) -> ServerSnapshot:
    """Return a reading with other facts. Unlike with `replace`, a complete one may lose some."""
    values = {each.name: getattr(reading, each.name) for each in fields(ServerSnapshot)}
    return ServerSnapshot(**{**values, **facts})


def read_server(name: str, uuid: UUID, executed: str | GtidSet, **facts: Any) -> ReadServer:
    """Make a reading that has every fact by which servers are compared."""
    made = as_read(a_server(name, uuid, executed, **facts))
    assert isinstance(made, ReadServer)
    return made


def commits_of(*gtids: str) -> HistoryEvidence:
    """Make what a binary log shows of commits that were made a minute before noon, in this order."""
    at = NOON - timedelta(minutes=1)
    records = (
        CommitRecord(GtidSet.parse(each), 1, at, True, at + timedelta(microseconds=number))
        for number, each in enumerate(gtids)
    )
    return HistoryEvidence(None, tuple(records))


def an_unread(name: str, *unread: UnreadFact, **facts: Any) -> ServerSnapshot:
    """Make a reading that brought nothing: the server did not answer, or as is said."""
    made = ServerSnapshot(
        cluster="pair",
        name=name,
        host=f"{name}.example",
        port=3306,
        phase=1,
        read_started=NOON,
        read_ended=NOON,
        unread=unread or (UnreadFact("connection", UnreadReason.TIMEOUT, "no answer"),),
    )
    return replace(made, **facts)


def a_cluster(cluster: str, *servers: ServerSnapshot) -> ClusterSnapshot:
    """Read the same servers twice, a second apart."""
    first = tuple(replace(each, cluster=cluster) for each in servers)
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
    return ClusterSnapshot(cluster, first, last)

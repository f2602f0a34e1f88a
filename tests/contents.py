"""Made-up outcomes of comparing the content of transactions."""

from datetime import UTC, datetime

from binlog.content.server_starts import ServerStart
from gtid import Gtid
from tests.snapshots import A
from topology.readings.contents import (
    ContentDifference,
    ContentReading,
    Difference,
    TransactionVersion,
    UnreadContent,
)

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def a_version(
    server: str, content: str, *, committed_at: datetime | None = NOON
) -> TransactionVersion:
    return TransactionVersion(server, "binlog.000002:198", committed_at, NOON, content)


def differing(*gnos: int, source: str = "a", replica: str = "b") -> ContentReading:
    """What is found where numbers were given twice."""
    return ContentReading(
        read_at=NOON,
        compared_count=len(gnos) + 1,
        starts=(ServerStart(source, NOON, "binlog.000002"),),
        differences=tuple(
            ContentDifference(
                gtid=Gtid.parse(f"{A}:{gno}"),
                difference=Difference.CONTENT,
                is_proved=True,
                reason="committed at different moments",
                source=a_version(source, "d.t: inserted (1, 'after the crash')"),
                replica=a_version(replica, "d.t: inserted (1, NULL)", committed_at=None),
            )
            for gno in gnos
        ),
        unread=(),
    )


def alike(server: str = "a") -> ContentReading:
    """What is found after a start without a loss."""
    return ContentReading(NOON, 4, (ServerStart(server, NOON, "binlog.000002"),), (), ())


def unread(server: str = "b", reason: str = "REPLICATION SLAVE is lacking; “ä”") -> ContentReading:
    return ContentReading(NOON, 0, (), (), (UnreadContent(server, reason),))

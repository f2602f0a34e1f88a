"""What a source can no longer send: purged transactions, and logs that were deleted from disk."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gtid import GtidSet
from tests.snapshots import A, B, a_channel, a_cluster, a_server
from topology.catalogue.findings import Grade
from topology.facts.cluster_facts import gather_facts
from topology.policy import Policy
from topology.readings.snapshot import BinaryLog, LogPosition, ThreadState
from topology.rules.could_join import can_join
from topology.rules.purged import purged_on_source
from topology.rules.threads import replication_not_running

STOPPED = ThreadState.STOPPED
EARLIER = LogPosition.of(file="binlog.000001", position=4)
FOURTH = LogPosition.of(file="binlog.000004", position=4)
FIFTH = LogPosition.of(file="binlog.000005", position=4)


def logs(*sizes: int, lowest: int = 1) -> tuple[BinaryLog, ...]:
    return tuple(BinaryLog(f"binlog.{lowest + at:06}", size) for at, size in enumerate(sizes))


@pytest.mark.parametrize(
    ("sizes", "executed", "words"),
    [
        ((0, 500, 500), "1-5", "a cannot open binlog.000001 of its binary logs"),
        ((0, 0, 500), "1-5", "a cannot open 2 files, the first binlog.000001, of its binary logs"),
        ((500, 0), "1-5", "a cannot open binlog.000002 of its binary logs"),
        ((500, 500), "1-5", ""),
        ((0, 500), "1-9", ""),  # nothing waits: the replica needs none of the logs
    ],
)
def test_a_stopped_replica_may_need_a_log_that_was_deleted_from_disk(
    sizes: tuple[int, ...], executed: str, words: str
) -> None:
    a = a_server("a", A, f"{A}:1-9", binary_logs=logs(*sizes))
    at = {"received_to": EARLIER, "applied_to": EARLIER}
    received = GtidSet.parse(f"{A}:{executed}")
    channel = a_channel("a", A, receiver=STOPPED, gtid_retrieved=received, **at)
    b = a_server("b", B, received, channels=(channel,))
    [found] = replication_not_running(gather_facts(a_cluster("pair", a, b), Policy()))
    assert ("prints 0 bytes" in found.explanation) is bool(words)
    assert words in found.explanation


@pytest.mark.parametrize(("executed", "is_named"), [("1-5", True), ("1-9", False)])
def test_a_server_that_would_join_may_need_a_log_that_was_deleted_from_disk(
    executed: str, *, is_named: bool
) -> None:
    a, b = (
        a_server(name, uuid, f"{A}:{numbers}", binary_logs=logs(0, 500))
        for name, uuid, numbers in (("a", A, "1-9"), ("b", B, executed))
    )
    [found] = can_join(gather_facts(a_cluster("two", a, b), Policy()))
    assert ("cannot open binlog.000001" in found.explanation) is is_named


def test_a_replica_of_an_unread_source_is_reported_without_its_logs() -> None:
    b = a_server("b", B, f"{A}:1-5", channels=(a_channel("a", A, receiver=STOPPED),))
    [found] = replication_not_running(gather_facts(a_cluster("one", b), Policy()))
    assert (found.code, found.source, found.gtid_set) == ("A7", None, GtidSet())


@pytest.mark.parametrize(
    ("lowest", "files", "place", "grade", "words"),
    [
        (5, 1, FIFTH, Grade.PROVED, "its next connection is accepted"),
        (4, 2, FIFTH, Grade.PROVED, "its next connection is accepted"),
        (6, 1, FIFTH, Grade.PROVED, "its next connection is refused with error 1236."),
        (6, 2, FIFTH, Grade.PROVED, "its next connection is refused with error 1236."),
        (5, 1, None, Grade.LIKELY, "if the file of its position is also purged"),
        (5, 0, FIFTH, Grade.LIKELY, "if the file of its position is also purged"),
    ],
)
def test_a_receiver_by_file_position_is_accepted_while_its_file_is_kept(
    lowest: int, files: int, place: LogPosition | None, grade: Grade, words: str
) -> None:
    """The position is in binlog.000005; the source keeps some files, and has purged A:1-5."""
    kept = logs(*[500] * files, lowest=lowest)
    a = a_server("a", A, f"{A}:1-9", gtid_purged=GtidSet.parse(f"{A}:1-5"), binary_logs=kept)
    channel = a_channel("a", A, receiver=STOPPED, auto_position=False, received_to=place)
    b = a_server("b", B, f"{A}:1-2", channels=(channel,))
    [found] = purged_on_source(gather_facts(a_cluster("pair", a, b), Policy()))
    assert (found.gtid_set, found.grade) == (GtidSet.parse(f"{A}:3-5"), grade)
    assert words in found.explanation
    with_gtids = replace(b, channels=(replace(channel, auto_position=True),))
    [refused] = purged_on_source(gather_facts(a_cluster("pair", a, with_gtids), Policy()))
    assert refused.grade is Grade.PROVED
    assert "its next connection is refused with error 1236." in refused.explanation

"""When contents are compared, and what is said where they cannot be."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from gtid_audit.content import read_contents
from gtid_audit.content_due import is_content_due
from gtid_audit.content_text import CLUSTERS_SHOWN_MAX, content_line, content_lines
from tests.gtid_audit.build import half_read, healthy
from topology.contents import ContentReading, StartLookedAt, UnreadContent
from topology.snapshot import BinaryLog, ClusterSnapshot

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def started(snapshot: ClusterSnapshot, *seconds_ago: int) -> ClusterSnapshot:
    last = [
        replace(server, uptime_seconds=seconds)
        for server, seconds in zip(snapshot.last, seconds_ago, strict=True)
    ]
    return replace(snapshot, last=tuple(last))


@pytest.mark.parametrize(
    ("uptimes", "chosen", "due"),
    [
        ((86_400, 86_400), None, False),
        ((86_399, 86_400), None, True),
        ((10, 10), None, True),
        ((10, 10), False, False),
        ((86_400, 86_400), True, True),
    ],
)
def test_contents_are_compared_after_a_start_or_when_asked_for(
    uptimes: tuple[int, int], chosen: bool | None, due: bool
) -> None:
    assert is_content_due(started(healthy(), *uptimes), chosen) is due


def test_a_server_without_logs_or_a_way_to_it_is_said() -> None:
    snapshot = healthy()
    no_logs = read_contents(snapshot, (), every_start=True)
    assert no_logs is not None
    reason = "it has no binary logs (log_bin is off)"
    assert no_logs.unread == (UnreadContent("a", reason), UnreadContent("b", reason))
    logged = tuple(
        replace(server, binary_logs=(BinaryLog("binlog.000001", 200),)) for server in snapshot.last
    )
    no_way = read_contents(replace(snapshot, last=logged), (), every_start=True)
    assert no_way is not None
    assert [each.reason for each in no_way.unread] == ["no way to it is known"] * 2
    assert no_way.compared_count == 0


def test_a_server_that_was_not_read_has_its_say_elsewhere() -> None:
    assert read_contents(half_read(), (), every_start=True) is None


def test_only_recent_starts_are_looked_at_unless_asked() -> None:
    assert read_contents(started(healthy(), 90_000, 90_000), (), every_start=False) is None


def test_what_was_compared_is_said_in_a_line() -> None:
    nothing = ContentReading(NOON, 0, (), (), ())
    assert content_line(nothing).endswith("nothing to compare.")
    start = StartLookedAt("a", NOON, "binlog.000002")
    some = ContentReading(NOON, 1200, (start,) * 6, (), ())
    assert content_line(some) == (
        "Content compared: the first own transactions after the start of"
        + " a (2026-01-02 12:00:00 UTC)," * 4
        + " 2 more; 1,200 GTIDs held by both, all the same."
    )
    many = {f"cluster{number:02}": some for number in range(CLUSTERS_SHOWN_MAX + 2)}
    lines = list(content_lines(many))
    assert len(lines) == CLUSTERS_SHOWN_MAX + 1
    assert lines[-1] == "Contents compared in 12 clusters, 14,400 GTIDs in all."

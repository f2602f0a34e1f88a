"""An applier that reads nothing: for how long, and what shows that it does not."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import NOON, A, a_channel, a_server
from topology.facts.unread_relay_log import has_had_no_work, seconds_without_work
from topology.readings.snapshot import LogPosition
from topology.readings.worker import WorkerSnapshot

ONE = GtidSet.parse(f"{A}:1")
HEADER = LogPosition.of(file="relay.000002", position=4)
BEHIND = LogPosition.of(file="relay.000002", position=197)
WORKERS = tuple(
    WorkerSnapshot(number, GtidSet(), 0, "", "Waiting for an event from Coordinator", seconds)
    for number, seconds in enumerate((90, 80), start=1)
)
SERVER = replace(a_server("b", A, ""), server_clock=NOON)
CHANNEL = replace(a_channel("a", A), workers=WORKERS, relay_applied_to=HEADER)


def test_the_age_is_that_of_the_youngest_worker() -> None:
    assert seconds_without_work(CHANNEL, CHANNEL, SERVER) == 80
    assert seconds_without_work(CHANNEL, None, SERVER) is None


@pytest.mark.parametrize(
    "change",
    [
        {"last_applied": ONE},
        {"applying": ONE},
        {"applying_seconds": None},
        {"state": "Executing event"},
    ],
)
def test_a_worker_that_has_had_work_shows_that_the_file_is_read(change: dict[str, Any]) -> None:
    other = replace(CHANNEL, workers=(WORKERS[0], replace(WORKERS[1], **change)))
    assert not has_had_no_work(other)
    assert seconds_without_work(CHANNEL, other, SERVER) is None
    assert seconds_without_work(other, CHANNEL, SERVER) is None
    assert not has_had_no_work(replace(CHANNEL, workers=()))


@pytest.mark.parametrize(("ago", "expected"), [(30, 30), (300, 80), (-5, 0), (None, None)])
def test_behind_the_header_the_newest_transaction_must_be_as_old(
    ago: int | None, expected: int | None
) -> None:
    committed_at = NOON - timedelta(seconds=ago) if ago is not None else None
    channel = replace(CHANNEL, relay_applied_to=BEHIND, last_queued_committed_at=committed_at)
    assert seconds_without_work(channel, CHANNEL, SERVER) == expected
    unread = replace(channel, relay_applied_to=None)
    assert seconds_without_work(unread, CHANNEL, SERVER) == expected
    without = replace(SERVER, server_clock=None)
    assert seconds_without_work(channel, CHANNEL, without) is None

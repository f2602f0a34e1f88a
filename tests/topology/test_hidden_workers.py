"""States of workers that performance_schema does not show: only where the process list is sure."""

import pytest

from topology.adapters.hidden_workers import Row, hides_threads, with_listed_states

IDLE = "Waiting for an event from Coordinator"
LOCKED = "Waiting for table metadata lock"
READ_ALL = "Replica has read all relay log; waiting for more updates"


def worker(number: int, *, channel: str = "", hidden: int = 1, awaits: int = 0) -> Row:
    return {
        "channel": channel,
        "worker_id": number,
        "state": None,
        "is_hidden": hidden,
        "awaits": awaits,
        "applying_seconds": None,
    }


def thread(number: int, state: str | None, seconds: int = 7) -> Row:
    return {"thread": number, "seconds": seconds, "state": state}


RECEIVER = thread(11, "Waiting for source to send event")


def test_only_a_worker_that_runs_is_hidden() -> None:
    assert hides_threads([worker(1, hidden=0), worker(2)])
    assert not hides_threads([worker(1, hidden=0), {"channel": "", "worker_id": None}])


@pytest.mark.parametrize(
    "receiver",
    [
        "Waiting for source to send event",
        "Queueing source event to the relay log",
        "Reconnecting after a failed source event read",
        "Waiting for the replica SQL thread to free relay log space",
        "Connecting to master",
    ],
)
def test_workers_follow_their_applier_in_their_order(receiver: str) -> None:
    rows = [worker(2), worker(1)]
    threads = [
        thread(14, None),
        thread(13, LOCKED),
        thread(12, "Waiting until SOURCE_DELAY seconds after source executed event"),
        thread(20, receiver),  # it was started again, after the workers
    ]
    seen = with_listed_states(rows, threads)
    assert seen is not None
    assert {row["worker_id"]: row["state"] for row in seen} == {1: LOCKED, 2: ""}
    assert {row["applying_seconds"] for row in seen} == {None}


def test_an_age_counts_only_while_a_worker_has_had_no_work() -> None:
    rows = [worker(1, awaits=1), worker(2)]
    seen = with_listed_states(rows, [thread(12, READ_ALL), thread(13, IDLE), thread(14, IDLE)])
    assert seen is not None
    assert [row["applying_seconds"] for row in seen] == [7, None]


def test_an_applier_without_workers_is_its_own_worker() -> None:
    seen = with_listed_states([worker(0)], [RECEIVER, thread(12, LOCKED)])
    assert seen is not None
    assert [row["state"] for row in seen] == [LOCKED]


@pytest.mark.parametrize(
    "threads", [[], [RECEIVER], [thread(12, READ_ALL)], [thread(each, IDLE) for each in range(4)]]
)
def test_nothing_is_known_where_the_counts_disagree(threads: list[Row]) -> None:
    assert with_listed_states([worker(1), worker(2)], threads) is None


def test_workers_of_two_channels_are_known_only_while_they_rest() -> None:
    rows = [worker(1, channel="x"), worker(1, channel="y")]
    appliers = [thread(12, READ_ALL), thread(22, READ_ALL)]
    seen = with_listed_states(rows, [*appliers, thread(13, IDLE), thread(23, IDLE)])
    assert seen is not None
    assert [row["state"] for row in seen] == [IDLE, IDLE]
    assert with_listed_states(rows, [*appliers, thread(13, IDLE), thread(23, LOCKED)]) is None
    busy = [thread(12, "Reading event from the relay log"), appliers[1]]
    assert with_listed_states(rows, [*busy, thread(13, IDLE), thread(23, IDLE)]) is None


def test_workers_that_are_shown_stay_as_they_are() -> None:
    shown = {**worker(1, channel="x", hidden=0), "state": LOCKED}
    seen = with_listed_states([shown, worker(1, channel="y")], [thread(12, IDLE)])
    assert seen is None, "the threads of x are listed too"

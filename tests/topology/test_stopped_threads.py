"""Which threads failed, and on which transaction, from the facts of each version."""

from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import HERE, A, B, a_channel, a_server
from tests.topology.traces import a_worker
from topology.readings.snapshot import ServerSnapshot, ThreadState
from topology.tracing.stopped_threads import (
    ReplicationThread,
    StoppedThread,
    idle_threads,
    stopped_threads,
)

GTID = f"{A}:9"
QUOTING = f"Worker 1 failed executing transaction '{GTID}' at source log binlog.000001"


def replica(*, parallel: str = "4", **facts: Any) -> ServerSnapshot:
    settings = (("replica_parallel_workers", parallel),)
    return a_server("b", B, f"{A}:1-8", channels=(a_channel("a", A, **facts),), settings=settings)


def failed(**facts: Any) -> StoppedThread:
    [found] = stopped_threads(replica(**{"applier": ThreadState.STOPPED, **facts}))
    return found


def test_a_healthy_or_a_stopped_replica_has_no_error() -> None:
    assert stopped_threads(replica()) == ()
    assert idle_threads(replica()) == ()
    stopped = replica(applier=ThreadState.STOPPED, receiver=ThreadState.STOPPED)
    assert stopped_threads(stopped) == ()
    assert [thread.value for _, thread in idle_threads(stopped)] == ["receiver", "applier"]
    with_error = replica(applier=ThreadState.STOPPED, applier_errno=1)
    assert idle_threads(with_error) == ()
    assert stopped_threads(a_server("b", B, "", channels=None)) == ()


def test_the_worker_has_the_cause_and_the_gtid() -> None:
    worker = a_worker(1, 1062, "Duplicate entry '2' for key 't.PRIMARY'", GTID)
    found = failed(applier_errno=1062, applier_error="Coordinator stopped", workers=(worker,))
    assert (found.errno, found.cause_text) == (1062, worker.error)
    assert (found.text, found.gtids) == ("Coordinator stopped", GtidSet.parse(GTID))
    assert (found.place, found.is_low_water) == (None, False)


@pytest.mark.parametrize("text", [QUOTING, f"Coordinator stopped. {QUOTING}"])
def test_a_text_quotes_the_gtid(text: str) -> None:
    found = failed(applier_errno=1062, applier_error=text)
    assert (found.gtids, found.place) == (GtidSet.parse(GTID), None)
    by_worker = failed(applier_errno=1062, workers=(a_worker(1, 1062, text),))
    assert by_worker.gtids == GtidSet.parse(GTID)


def test_workers_that_only_followed_come_last() -> None:
    followed = a_worker(1, 3030, "worker has stopped after at least one previous worker", f"{A}:8")
    cause = a_worker(2, 1062, "Duplicate entry", GTID)
    well = a_worker(3, 0, "", f"{A}:7")
    found = failed(applier_errno=1062, workers=(followed, cause, well))
    assert [each.worker_id for each in found.workers] == [2, 1]
    assert found.gtids == GtidSet.parse(GTID)


def test_a_vague_number_gives_way_to_that_of_the_worker() -> None:
    cause = a_worker(2, 1062, "Duplicate entry", GTID)
    assert failed(applier_errno=1756, workers=(cause,)).errno == 1062
    assert failed(applier_errno=0, workers=(cause,)).errno == 1062
    assert failed(applier_errno=1205, workers=(cause,)).errno == 1205
    assert failed(applier_errno=1756).errno == 1756


@pytest.mark.parametrize(("parallel", "is_low_water"), [("0", False), ("1", True), ("2", True)])
def test_without_a_gtid_the_position_counts(parallel: str, is_low_water: bool) -> None:
    [found] = stopped_threads(replica(parallel=parallel, applier_errno=1062))
    assert (found.place, found.gtids, found.is_low_water) == (HERE, GtidSet(), is_low_water)


def test_a_text_without_a_number_is_an_error() -> None:
    found = failed(applier_error="Query caused different errors on master and slave.")
    assert (found.errno, found.thread) == (0, ReplicationThread.APPLIER)


@pytest.mark.parametrize("gtid", ["ANONYMOUS", "not a GTID"])
def test_what_is_no_gtid_is_none(gtid: str) -> None:
    text = f"Worker 1 failed executing transaction '{gtid}' at source log binlog.000001"
    assert failed(applier_errno=1062, applier_error=text).place == HERE


def test_both_threads_may_have_failed() -> None:
    found = stopped_threads(
        replica(
            applier=ThreadState.STOPPED,
            applier_errno=1062,
            applier_error_at="260102 12:00:00",
            receiver=ThreadState.CONNECTING,
            receiver_errno=2003,
            receiver_error="error connecting to source",
            receiver_error_at="260102 12:00:01",
        )
    )
    assert [(each.thread.value, each.errno, each.state) for each in found] == [
        ("applier", 1062, ThreadState.STOPPED),
        ("receiver", 2003, ThreadState.CONNECTING),
    ]
    assert [each.failed_at for each in found] == ["260102 12:00:00", "260102 12:00:01"]
    assert found[1].cause_text == "error connecting to source"


def test_a_worker_fails_before_its_coordinator_stops() -> None:
    found = failed(applier=ThreadState.RUNNING, workers=(a_worker(1, 1062, "Duplicate", GTID),))
    assert (found.state, found.errno) == (ThreadState.RUNNING, 1062)


@pytest.mark.parametrize(
    "facts", [{"receiver_errno": 2003}, {"receiver_error": "error connecting to source"}]
)
def test_a_receiver_may_have_only_a_number_or_only_a_text(facts: dict[str, Any]) -> None:
    [found] = stopped_threads(replica(**facts))
    assert found.thread is ReplicationThread.RECEIVER
    assert not found.is_low_water


def test_a_worker_may_have_only_a_number_or_only_a_text() -> None:
    workers = (a_worker(2, 0, "a text"), a_worker(1, 1062, ""), a_worker(3, 0, ""))
    assert [each.worker_id for each in failed(workers=workers).workers] == [1, 2]


def test_a_setting_that_was_not_read_may_be_parallel() -> None:
    server = a_server("b", B, "", channels=(a_channel("a", A, applier_errno=1),), settings=None)
    [found] = stopped_threads(server)
    assert found.is_low_water

"""The error text of a worker has the GTID that failed: before 5.7 nothing else shows it."""

import pytest

from gtid import GtidSet
from tests.snapshots import A, B, a_channel, a_cluster, a_server
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Finding
from topology.facts.failed_transactions import (
    FOLLOWED,
    applier_errno_of,
    failed_workers,
    quoted_as_failed,
)
from topology.readings.snapshot import ThreadState
from topology.readings.worker import WorkerSnapshot

# As 5.6.24 reports it with slave_parallel_workers = 4.
WORKER = (
    "Worker 3 failed executing transaction '{gtid}' at master log binlog.000001, end_log_pos 2314;"
    " Could not execute Write_rows event on table w4.t; Duplicate entry '1' for key 'PRIMARY',"
    " Error_code: 1062"
)


def stopped_with(errno: int, text: str, executed: str = "1-90") -> Finding:
    channel = a_channel(
        "a",
        A,
        applier=ThreadState.STOPPED,
        applier_errno=errno,
        applier_error=text,
        gtid_retrieved=GtidSet.parse(f"{A}:1-100"),
    )
    replica = a_server("b", B, f"{A}:{executed}", channels=(channel,))
    audit = audit_cluster(a_cluster("pair", a_server("a", A, f"{A}:1-100"), replica))
    [found] = [each for each in audit.findings if each.code in ("A1", "A2", "A3")]
    return found


@pytest.mark.parametrize(("errno", "code"), [(1062, "A2"), (1007, "A3")])
def test_a_stopped_worker_names_its_transaction_by_its_text(errno: int, code: str) -> None:
    found = stopped_with(errno, WORKER.format(gtid=f"{A}:91"))
    assert (found.code, found.gtid_set) == (code, GtidSet.parse(f"{A}:91"))


def test_what_counts_as_executed_since_is_not_reported_as_waiting() -> None:
    found = stopped_with(1062, WORKER.format(gtid=f"{A}:91"), executed="1-91")
    assert found.gtid_set == GtidSet()


@pytest.mark.parametrize(
    "text", ["Duplicate entry '1' for key 'PRIMARY'", WORKER.format(gtid="ANONYMOUS"), ""]
)
def test_a_text_without_a_gtid_names_none(text: str) -> None:
    assert quoted_as_failed(text) == GtidSet()


# -- workers that stopped because of another one (3030) ---------------------------------------------

COORDINATOR = (
    "Coordinator stopped because there were error(s) in the worker(s). The most recent failure"
    " being: Worker 4 failed executing transaction '{gtid}' at source log binlog.000001,"
    " end_log_pos 2437."
)


def worker(number: int, gno: int, errno: int) -> WorkerSnapshot:
    gtid = GtidSet.parse(f"{A}:{gno}")
    return WorkerSnapshot(number, gtid, errno, WORKER.format(gtid=gtid) if errno else "")


def stopped_by(errno: int, *workers: WorkerSnapshot) -> Finding:
    channel = a_channel(
        "a",
        A,
        applier=ThreadState.STOPPED,
        applier_errno=errno,
        applier_error=COORDINATOR.format(gtid=f"{A}:94"),
        workers=workers,
        gtid_retrieved=GtidSet.parse(f"{A}:1-100"),
    )
    replica = a_server("b", B, f"{A}:1-90", channels=(channel,))
    audit = audit_cluster(a_cluster("pair", a_server("a", A, f"{A}:1-100"), replica))
    [found] = [each for each in audit.findings if each.code in ("A1", "A2", "A3")]
    return found


@pytest.mark.parametrize(
    ("errno", "workers", "code", "failed"),
    [
        # The coordinator reports the worker that followed, or the one that failed.
        (3030, (worker(1, 91, 1062), worker(4, 94, 3030)), "A2", "91"),
        (1062, (worker(1, 91, 1062), worker(4, 94, 3030)), "A2", "91"),
        (3030, (worker(1, 94, 3030), worker(2, 91, 1032)), "A2", "91"),
        (3030, (worker(1, 91, 1205), worker(4, 94, 3030)), "A3", "91"),
        # Both failed themselves.
        (1062, (worker(1, 91, 1062), worker(4, 94, 1062)), "A2", "91:94"),
        # Nothing shows which one they followed.
        (3030, (worker(4, 94, 3030),), "A3", "94"),
        # The coordinator's own error counts.
        (1756, (worker(1, 91, 1062), worker(4, 94, 3030)), "A3", "91"),
    ],
)
def test_a_worker_that_only_followed_another_one_did_not_fail(
    errno: int, workers: tuple[WorkerSnapshot, ...], code: str, failed: str
) -> None:
    found = stopped_by(errno, *workers)
    assert (found.code, found.gtid_set) == (code, GtidSet.parse(f"{A}:{failed}"))
    text = next(each.value for each in found.evidence if each.fact == "applier error")
    assert (f"Worker 3 failed executing transaction '{A}:94'" in text) is ("94" in failed)


@pytest.mark.parametrize(
    ("workers", "failed", "errno"),
    [
        (((1, 0, ""), (2, 1062, "text"), (3, FOLLOWED, "text")), [2], 1062),
        (((1, 0, "text"), (2, 1062, "")), [1, 2], 1062),  # each is in error; one has a number
        (((1, 0, "text"), (2, 0, "")), [1], FOLLOWED),
        (((1, FOLLOWED, "text"), (2, 0, "")), [1], FOLLOWED),
        ((), [], FOLLOWED),
    ],
)
def test_a_worker_is_in_error_by_its_number_or_its_text(
    workers: tuple[tuple[int, int, str], ...], failed: list[int], errno: int
) -> None:
    made = tuple(WorkerSnapshot(number, GtidSet(), code, text) for number, code, text in workers)
    channel = a_channel("a", A, applier_errno=FOLLOWED, workers=made)
    assert [each.worker_id for each in failed_workers(channel)] == failed
    assert applier_errno_of(channel) == errno

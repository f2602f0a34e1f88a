"""What an applier has passed, where it is at transactions that its source committed since.

A server logs its own transactions in ascending order, so what it committed before is behind them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gtid import GtidSet
from tests.snapshots import A, B, C, a_channel, a_cluster, a_server
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Grade
from topology.readings.snapshot import ClusterSnapshot
from topology.readings.worker import WorkerSnapshot

IDLE = "Waiting for an event from Coordinator"
BUSY = "Executing event"
APPLIES = "Waiting for dependent transaction to commit"


def gtids(text: str) -> GtidSet:
    return GtidSet.parse(text.replace("A:", f"{A}:").replace("C:", f"{C}:"))


def a_worker(number: int, *, applying: str = "", last: str = "", state: str = "") -> WorkerSnapshot:
    state = state or (BUSY if applying else IDLE)
    return WorkerSnapshot(number, gtids(applying), 0, "", state=state, last_applied=gtids(last))


def readings(
    *, owned: str = "", first: str = "A:1-4", has: str = "A:1-3", workers: Any = None
) -> ClusterSnapshot:
    """Return a pair whose replica does not have A:4 and C:1; its only worker is at A:5 or A:8."""
    at = workers or (a_worker(1, applying="A:5"), a_worker(1, last="A:8", state=IDLE))
    channels = [
        a_channel(
            "a",
            A,
            gtid_retrieved=gtids(received),
            workers=(worker,),
            applier_state=APPLIES,
        )
        for received, worker in zip(("A:1-5,C:1", "A:1-8,C:1"), at, strict=True)
    ]
    replica = [a_server("b", B, gtids(has), channels=(each,)) for each in channels]
    source = a_server("a", A, gtids(first), gtid_owned=gtids(owned))
    made = a_cluster("pair", source, replica[0])
    first_read = tuple(replace(each, phase=1) for each in (source, replica[0]))
    last_read = tuple(
        replace(each, read_started=old.read_started, read_ended=old.read_ended, phase=2)
        for each, old in zip(
            (
                replace(source, gtid_executed=gtids(first) | gtids("A:1-9"), gtid_owned=GtidSet()),
                replica[1],
            ),
            made.last,
            strict=True,
        )
    )
    return replace(made, first=first_read, last=last_read)


def codes_of_4(snapshot: ClusterSnapshot, missing: str = "A:4") -> set[tuple[str, Grade]]:
    return {
        (each.code, each.grade)
        for each in audit_cluster(snapshot).findings
        if gtids(missing) & each.gtid_set
    }


def test_what_a_single_worker_passed_is_no_backlog() -> None:
    assert codes_of_4(readings()) == {("H8", Grade.LIKELY)}


def test_what_another_server_committed_has_its_place_in_no_order() -> None:
    """A source with several workers may have logged C:1 behind its own A:5."""
    assert "H8" not in {code for code, _ in codes_of_4(readings(first="A:1-3,C:1"), "C:1")}


def test_what_was_being_committed_may_be_in_the_log_before_what_was_executed() -> None:
    """A:2 has its place in the log before A:3 and A:4, of which clients already see the commits."""
    snapshot = readings(
        owned="A:2",
        first="A:1:3-4",
        has="A:1",
        workers=(a_worker(1, applying="A:2"), a_worker(1, applying="A:2")),
    )
    assert "H8" not in {code for code, _ in codes_of_4(snapshot)}

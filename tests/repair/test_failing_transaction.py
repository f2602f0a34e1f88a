"""Which transaction a plan repairs if workers of an applier stopped (A2, A3)."""

from __future__ import annotations

from typing import Any

import pytest

from binlog.errors import BinlogError
from gtid import Gtid, GtidSet
from repair.adapters.failing_transaction import failing_transaction
from repair.adapters.servers_to_read import ServersToRead
from tests.snapshots import A, B, a_channel, a_cluster, a_server
from topology.audit_cluster import audit_cluster
from topology.readings.snapshot import LogPosition, ThreadState
from topology.readings.worker import WorkerSnapshot

PLACE = LogPosition.of(file="binlog.000001", position=500)


class Logged:
    """A transaction of the source's log."""

    def __init__(self, gno: int) -> None:
        self.gtid = Gtid.parse(f"{A}:{gno}")


class Logs:
    """The source's log from the applier's place."""

    def __init__(self, *gnos: int) -> None:
        self._gnos = gnos

    def transactions_from(
        self, *, file: str, position: int, transactions_max: int
    ) -> tuple[Logged, ...]:
        assert (file, position) == ("binlog.000001", 500)
        if not self._gnos:
            raise BinlogError("no event begins there")
        return tuple(map(Logged, self._gnos))[:transactions_max]


def found(
    monkeypatch: pytest.MonkeyPatch, log: Logs, *failed: tuple[int, int], executed: str = "1-90"
) -> GtidSet:
    channel = a_channel(
        "a",
        A,
        applier=ThreadState.STOPPED,
        applier_errno=1062,
        applier_error=text(95),
        applied_to=PLACE,
        workers=tuple(
            WorkerSnapshot(number, GtidSet.parse(f"{A}:{gno}"), errno, text(gno))
            for number, (gno, errno) in enumerate(failed, start=1)
        ),
    )
    settings = (("replica_parallel_workers", "4"),)
    replica = a_server("b", B, f"{A}:{executed}", channels=(channel,), settings=settings)
    snapshot = a_cluster("pair", a_server("a", A, f"{A}:1-100"), replica)
    [finding] = [each for each in audit_cluster(snapshot).findings if each.code == "A2"]
    monkeypatch.setattr(ServersToRead, "logs", lambda _self, _name: log)
    targets: dict[str, Any] = dict.fromkeys("ab")
    return failing_transaction(finding, ServersToRead.of(snapshot, targets, 1.0))


def text(gno: int) -> str:
    return f"Worker 1 failed executing transaction '{A}:{gno}' at source log binlog.000001"


@pytest.mark.parametrize(
    ("log", "failed", "wanted"),
    [
        (Logs(91, 92), [(92, 1062)], "92"),
        # The first in the log, which need not be the lowest number.
        (Logs(91, 92, 93, 94), [(94, 1062), (92, 1062)], "92"),
        (Logs(94, 92), [(94, 1062), (92, 1062)], "94"),
        # A worker that only followed another one is not repaired.
        (Logs(91, 92, 93), [(91, 3030), (93, 1062)], "93"),
        # What failed is not in the log, or the log was not read.
        (Logs(91), [(94, 1062), (92, 1062)], ""),
        (Logs(), [(94, 1062), (92, 1062)], ""),
        # No worker is in error: the coordinator's text.
        (Logs(91), [], "95"),
    ],
)
def test_of_several_workers_the_first_in_the_log_of_the_source_is_repaired(
    monkeypatch: pytest.MonkeyPatch, log: Logs, failed: list[tuple[int, int]], wanted: str
) -> None:
    expected = GtidSet.parse(f"{A}:{wanted}") if wanted else GtidSet()
    assert found(monkeypatch, log, *failed) == expected


@pytest.mark.parametrize(
    ("executed", "wanted"),
    [("1-90:92", "94"), ("1-94", "92:94"), ("1-100", "92:94")],
)
def test_what_was_executed_since_is_the_transaction_only_if_nothing_else_failed(
    monkeypatch: pytest.MonkeyPatch, executed: str, wanted: str
) -> None:
    """Another channel or a session executed it: a start continues after it."""
    both = [(94, 1062), (92, 1062)]
    assert found(monkeypatch, Logs(), *both, executed=executed) == GtidSet.parse(f"{A}:{wanted}")

import threading
from collections.abc import Callable, Generator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from gtid import GtidSet
from topology.adapters import collect_fleet as collecting
from topology.adapters.collect import DEFECT_OR_PROTOCOL, CollectLimits, collect_cluster
from topology.adapters.collect_fleet import Permits, collect_fleet, unread_by_defect
from topology.adapters.inventory.fleet import Cluster, Fleet
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Verdict
from topology.policy import Policy
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot, UnreadFact, UnreadReason
from topology.readings.target import ServerTarget

A = UUID(int=0xAA << 120)
SOON = 30.0  # for a test that hangs; nothing is measured by it


class Reader:
    """A server in memory; `before` is called before it answers."""

    def __init__(self, target: ServerTarget, before: Callable[[ServerTarget], None]) -> None:
        self._target = target
        self._before = before

    def read(self, *, phase: int) -> ServerSnapshot:
        started = datetime.now(UTC)
        self._before(self._target)
        return ServerSnapshot(
            cluster=self._target.user,
            name=self._target.name,
            host=self._target.host,
            port=self._target.port,
            phase=phase,
            read_started=started,
            read_ended=datetime.now(UTC),
            server_uuid=A,
            gtid_executed=GtidSet.parse(f"{A}:1-5"),
        )

    def close(self) -> None:
        pass


def fleet(*names: str, servers: int = 1, connections_max: int = 4, seconds: float = 5) -> Fleet:
    clusters = tuple(
        Cluster(
            name,
            tuple(
                ServerTarget(f"{name}{number}", f"{name}{number}", 3306, user=name)
                for number in range(servers)
            ),
        )
        for name in names
    )
    return Fleet(clusters, CollectLimits(server_seconds_max=seconds), connections_max, Policy())


def collect(fleet: Fleet, before: Callable[[ServerTarget], None]) -> list[ClusterSnapshot]:
    return list(
        collect_fleet(
            fleet, readers_of=lambda _cluster, _limits: lambda target: Reader(target, before)
        )
    )


def test_every_cluster_is_read_once_and_progress_is_told() -> None:
    said: list[str] = []
    names = [f"c{number:02}" for number in range(20)]
    found = collect_fleet(
        fleet(*names),
        say=said.append,
        readers_of=lambda _cluster, _limits: lambda target: Reader(target, lambda _target: None),
    )
    assert sorted(snapshot.cluster for snapshot in found) == names
    assert len(said) == 20
    assert said[-1].startswith("read 20 of 20 clusters")


@pytest.mark.parametrize(("servers", "connections_max"), [(1, 3), (2, 4), (2, 5), (3, 2)])
def test_no_more_connections_at_once_than_allowed(servers: int, connections_max: int) -> None:
    lock = threading.Lock()
    open_now: dict[str, int] = {}
    most = 0

    def before(target: ServerTarget) -> None:
        nonlocal most
        with lock:
            open_now[target.user] = servers
            most = max(most, sum(open_now.values()))
        threading.Event().wait(0.002)
        with lock:
            open_now.pop(target.user, None)

    names = [f"c{number:02}" for number in range(12)]
    collect(fleet(*names, servers=servers, connections_max=connections_max), before)
    assert most <= max(servers, connections_max)
    assert most >= servers


def test_a_hung_server_delays_no_other_cluster() -> None:
    release = threading.Event()
    others_done = threading.Event()

    def before(target: ServerTarget) -> None:
        if target.user == "a-hung":
            release.wait(SOON)

    found = collect_fleet(
        fleet("a-hung", "b", "c", "d", connections_max=2, seconds=SOON),
        readers_of=lambda _cluster, _limits: lambda target: Reader(target, before),
    )
    first_three = [next(found).cluster for _ in range(3)]
    others_done.set()
    release.set()
    assert sorted(first_three) == ["b", "c", "d"]
    assert next(found).cluster == "a-hung"


def test_an_exception_in_reading_one_server_makes_that_server_unread() -> None:
    def before(target: ServerTarget) -> None:
        if target.name == "b1":
            raise KeyError("File")

    found = {each.cluster: each for each in collect(fleet("a", "b", "c", servers=2), before)}
    assert sorted(found) == ["a", "b", "c"]
    for server in (*found["b"].first, *found["b"].last):
        if server.name == "b1":
            (fact,) = server.unread
            assert (fact.fact, fact.reason) == ("reading", UnreadReason.ERROR)
            assert fact.detail == f"{DEFECT_OR_PROTOCOL}: KeyError: 'File'"
        else:
            assert server.gtid_executed is not None
    assert audit_cluster(found["b"]).verdict is Verdict.UNKNOWN


def test_a_defect_in_one_cluster_costs_only_that_one(monkeypatch: pytest.MonkeyPatch) -> None:

    def fails_for_b(cluster: str, *given: Any, **more: Any) -> ClusterSnapshot:
        if cluster == "b":
            raise RuntimeError("boom")
        return collect_cluster(cluster, *given, **more)

    monkeypatch.setattr(collecting, "collect_cluster", fails_for_b)
    found = {each.cluster: each for each in collect(fleet("a", "b", "c"), lambda _target: None)}
    assert sorted(found) == ["a", "b", "c"]
    (unread,) = found["b"].last[0].unread
    assert unread.detail == "defect of the auditor: RuntimeError: boom"
    assert all(not each.last[0].unread for name, each in found.items() if name != "b")


def test_who_stops_asking_stops_the_reading() -> None:
    begun: list[str] = []
    may_go_on = threading.Event()

    def before(target: ServerTarget) -> None:
        begun.append(target.user)
        if len(begun) > 2:  # the first cluster is read twice, and the second is on its way
            may_go_on.wait(SOON)

    found = collect_fleet(
        fleet("a", "b", "c", "d", connections_max=1),
        readers_of=lambda _cluster, _limits: lambda target: Reader(target, before),
    )
    assert isinstance(found, Generator)
    assert next(found).cluster == "a"
    found.close()
    readers = [one for one in threading.enumerate() if one.name.startswith("collector")]
    may_go_on.set()
    for thread in readers:
        thread.join(SOON)
    assert {"c", "d"}.isdisjoint(begun)


def test_a_cluster_not_read_by_a_defect_says_so_twice_for_every_server() -> None:
    (cluster,) = fleet("a", servers=2).clusters
    now = datetime.now(UTC)
    snapshot = unread_by_defect(cluster, ValueError("boom"), at=now)
    assert snapshot.cluster == "a"
    assert [server.name for server in snapshot.last] == ["a0", "a1"]
    for server in (*snapshot.first, *snapshot.last):
        assert server.unread == (
            UnreadFact("reading", UnreadReason.ERROR, "defect of the auditor: ValueError: boom"),
        )
    assert audit_cluster(snapshot).verdict is Verdict.UNKNOWN


def test_permits_are_given_in_order() -> None:
    permits = Permits(3)
    assert permits.take(2) == 2
    order: list[str] = []
    waiting = threading.Event()

    def big() -> None:
        waiting.set()
        taken = permits.take(9)
        order.append(f"big {taken}")
        permits.give_back(taken)

    thread = threading.Thread(target=big)
    thread.start()
    waiting.wait(SOON)
    permits.give_back(2)
    thread.join(SOON)
    assert permits.take(1) == 1
    assert order == ["big 3"]

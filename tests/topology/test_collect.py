"""The two-phase collection, with readers in memory: the barrier, the limits, the second look."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from gtid import GtidSet
from tests.snapshots import a_channel, a_server
from topology.adapters.collect import (
    DEFECT_OR_PROTOCOL,
    CollectLimits,
    Reader,
    collect_cluster,
)
from topology.adapters.recorded_servers import MemoryReader, Prepared
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Verdict
from topology.policy import Policy
from topology.readings.snapshot import (
    ChannelSnapshot,
    LogPosition,
    ReadServer,
    ServerSnapshot,
    UnreadFact,
    UnreadReason,
    as_read,
)
from topology.readings.target import ServerTarget

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
UUIDS = {name: UUID(int=ord(name)) for name in "abcz"}
QUICK = CollectLimits(server_seconds_max=5.0, looks_max=4, pause_seconds=0.0)


def target(name: str) -> ServerTarget:
    return ServerTarget(name=name, host=name, port=3306, user="root")


def gtids(text: str) -> GtidSet:
    """Read `a:1-3 b:2`: a letter stands for the server's UUID."""
    return GtidSet.parse(",".join(f"{UUIDS[item[0]]}{item[1:]}" for item in text.split()))


def place(position: int) -> LogPosition | None:
    return LogPosition.of(file="binlog.000001", position=position)


def channel(source: str, *, retrieved: str = "", read_to: int = 1000) -> ChannelSnapshot:
    return a_channel(
        source,
        UUIDS[source],
        source_host=source,
        gtid_retrieved=gtids(retrieved),
        received_to=place(read_to),
        applied_to=None,
        lag_seconds=None,
    )


def reading(name: str, executed: str, *channels: ChannelSnapshot) -> ServerSnapshot:
    return a_server(name, UUIDS[name], gtids(executed), log_end=place(1000), channels=channels)


Answer = ServerSnapshot | UnreadFact | Exception | Prepared


@dataclass
class Fleet:
    """Readers in memory by name, and what became of them."""

    readers: dict[str, Reader] = field(default_factory=dict)

    def add(self, name: str, first: Sequence[Answer], last: Sequence[Answer]) -> None:
        answers = {
            phase: [one if isinstance(one, Prepared) else Prepared(one) for one in prepared]
            for phase, prepared in ((1, first), (2, last))
        }
        self.readers[name] = MemoryReader(target(name), "c", answers)

    def open(self, target: ServerTarget) -> Reader:
        return self.readers[target.name]


def steady(*names: str) -> Fleet:
    fleet = Fleet()
    for name in names:
        fleet.add(name, [reading(name, "a:1-9")], [reading(name, "a:1-9")])
    return fleet


@dataclass
class Watched:
    """A reader that notes when its readings begin and end, and meets the others at a gate."""

    inner: Reader
    log: list[tuple[str, int]]
    meet: threading.Barrier

    def read(self, *, phase: int) -> ServerSnapshot:
        self.log.append(("begin", phase))
        if phase == 1:
            self.meet.wait(timeout=30)  # all are read at once, or this never opens
        snapshot = self.inner.read(phase=phase)
        self.log.append(("end", phase))
        return snapshot

    def close(self) -> None:
        self.inner.close()


def test_servers_are_read_at_once_and_no_second_reading_begins_before_the_first_have_ended() -> (
    None
):
    fleet = steady("a", "b", "c")
    fleet.add("c", [Prepared(reading("c", "a:1-9"), after_seconds=0.05)], [reading("c", "a:1-9")])
    log: list[tuple[str, int]] = []
    meet = threading.Barrier(3)
    snapshot = collect_cluster(
        "c",
        [target(name) for name in "abc"],
        limits=QUICK,
        open_reader=lambda one: Watched(fleet.open(one), log, meet),
    )
    last_end = max(at for at, event in enumerate(log) if event == ("end", 1))
    first_begin = min(at for at, event in enumerate(log) if event == ("begin", 2))
    assert last_end < first_begin
    assert len(log) == 12
    assert [server.phase for server in snapshot.first + snapshot.last] == [1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("order", ["abc", "cba", "bca"])
def test_the_order_of_the_fleet_file_does_not_matter(order: str) -> None:
    snapshot = collect_cluster(
        "c", [target(name) for name in order], limits=QUICK, open_reader=steady(*order).open
    )
    assert [server.name for server in snapshot.first] == ["a", "b", "c"]
    assert [server.name for server in snapshot.last] == ["a", "b", "c"]
    assert [server.server_uuid for server in snapshot.last] == [UUIDS[name] for name in "abc"]


@pytest.mark.long
@pytest.mark.parametrize("hangs_in", [1, 2])
def test_a_reader_that_hangs_is_given_up_and_the_others_are_read(hangs_in: int) -> None:
    gate = threading.Event()
    fleet = steady("a", "b", "c")
    good, hung = Prepared(reading("b", "a:1-9")), Prepared(reading("b", "a:1-9"), held_by=gate)
    fleet.add("b", [hung if hangs_in == 1 else good], [hung if hangs_in == 2 else good])
    limits = CollectLimits(server_seconds_max=0.05, looks_max=2, pause_seconds=0.0)
    try:
        snapshot = collect_cluster(
            "c", [target(name) for name in "abc"], limits=limits, open_reader=fleet.open
        )
    finally:
        gate.set()
    for server in snapshot.first + snapshot.last:
        if server.name == "b" and server.phase >= hangs_in:
            assert server.unread == (
                UnreadFact(
                    "connection", UnreadReason.TIMEOUT, "no complete answer within 0.05 seconds"
                ),
            )
            assert server.unread[0].reason is UnreadReason.TIMEOUT
            assert not isinstance(as_read(server), ReadServer)
        else:
            assert server.unread == ()
    audit = audit_cluster(snapshot)
    assert audit.verdict is Verdict.UNKNOWN
    assert [(one.code, one.replica) for one in audit.findings] == [("U1", "b")]


def test_a_server_that_is_not_there_is_not_waited_for_twice() -> None:
    fleet = steady("a")
    lost = UnreadFact("connection", UnreadReason.UNREACHABLE, "Can't connect")
    fleet.add("b", [lost], [RuntimeError("it was asked again")])
    snapshot = collect_cluster(
        "c", [target("a"), target("b")], limits=QUICK, open_reader=fleet.open
    )
    assert snapshot.first[1].unread == snapshot.last[1].unread == (lost,)
    assert snapshot.last[1].phase == 2


@pytest.mark.parametrize("phase", [1, 2])
def test_a_bug_in_a_reader_makes_its_server_unread_and_every_reader_is_let_go(phase: int) -> None:
    fleet = steady("a", "b")
    bug: list[Answer] = [ZeroDivisionError("ours")]
    good: list[Answer] = [reading("b", "a:1-9")]
    fleet.add("b", bug if phase == 1 else good, bug if phase == 2 else good)
    snapshot = collect_cluster(
        "c", [target("a"), target("b")], limits=QUICK, open_reader=fleet.open
    )
    readings = {1: snapshot.first[1], 2: snapshot.last[1]}
    (unread,) = readings.pop(phase).unread
    assert (unread.fact, unread.reason) == ("reading", UnreadReason.ERROR)
    assert unread.detail == f"{DEFECT_OR_PROTOCOL}: ZeroDivisionError: ours"
    assert all(one.gtid_executed is not None for one in readings.values())
    assert audit_cluster(snapshot).verdict is Verdict.UNKNOWN


# -- another look ---------------------------------------------------------------------------------


def looks(fleet: Fleet, *, policy: Policy | None = None) -> tuple[list[str], Verdict]:
    said: list[str] = []
    snapshot = collect_cluster(
        "c",
        [target(name) for name in fleet.readers],
        limits=QUICK,
        policy=policy,
        progress=said.append,
        open_reader=fleet.open,
    )
    return said, audit_cluster(snapshot, policy).verdict


def pair(*replicas_last: ServerSnapshot) -> Fleet:
    fleet = Fleet()
    fleet.add("a", [reading("a", "a:1-9")], [reading("a", "a:1-9")])
    fleet.add("b", [replicas_last[0]], replicas_last)
    return fleet


def test_what_is_not_grave_is_read_twice_only() -> None:
    fleet = pair(reading("b", "a:1-7", channel("a", retrieved="a:1-7", read_to=900)))
    assert looks(fleet) == (
        ["c: first reading of 2 servers", "c: reading again"],
        Verdict.OK,
    )


def test_what_is_grave_is_reported_when_two_looks_show_the_same() -> None:
    said, verdict = looks(pair(reading("b", "a:1-5 a:8-9", channel("a", retrieved="a:8-9"))))
    assert said[-1] == "c: reading again (2)"
    assert verdict is Verdict.CRITICAL


def test_a_torn_row_of_status_is_gone_at_the_second_look() -> None:
    """The retrieved set is printed before the position is: a receiver can be in between."""
    torn = reading("b", "a:1-8", channel("a", retrieved="a:1-8", read_to=1000))
    whole = reading("b", "a:1-8", channel("a", retrieved="a:1-9", read_to=1000))
    said, verdict = looks(pair(torn, whole))
    assert said[-1] == "c: reading again (3)"  # once more, to see that it stays away
    assert verdict is Verdict.OK


def test_what_never_stays_the_same_is_looked_at_a_bounded_number_of_times() -> None:
    restless = [
        reading("b", f"a:1-{number} a:9", channel("a", retrieved=f"a:1-{number} a:9"))
        for number in range(1, 6)
    ]
    said, verdict = looks(pair(*restless))
    assert said[-1] == f"c: reading again ({QUICK.looks_max})"
    assert verdict is Verdict.CRITICAL


def test_what_the_policy_allows_deserves_no_second_look() -> None:
    fleet = pair(reading("b", "a:1-9 z:1", channel("a", retrieved="a:1-9")))
    said, verdict = looks(fleet, policy=Policy(allowed_uuids=frozenset({UUIDS["z"]})))
    assert said[-1] == "c: reading again"
    assert verdict is Verdict.OK


# -- limits and misuse ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"server_seconds_max": 0.0},
        {"server_seconds_max": -1.0},
        {"looks_max": 0},
        {"pause_seconds": -0.1},
    ],
)
def test_limits_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="limits out of range"):
        replace(CollectLimits(), **wrong)  # type: ignore[arg-type]


def test_two_servers_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="a server name appears twice"):
        collect_cluster("c", [target("a"), target("a")], limits=QUICK, open_reader=steady("a").open)

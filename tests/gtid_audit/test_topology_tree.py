"""The topology as a tree: every server and channel once, rings end, and states are on their lines."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from gtid import GtidSet
from gtid_audit.views.topology_tree import TreeLine, tree_of
from tests.gtid_audit.build import half_read, healthy
from tests.snapshots import A, B, a_channel, a_cluster, a_server
from topology.readings.group_view import GroupMember, GroupSnapshot
from topology.readings.snapshot import ChannelSnapshot, ClusterSnapshot, ServerSnapshot, ThreadState
from topology.readings.vendors import Vendor

STOPPED = "receiver connecting, applier stopped by an error, auto-position off, 7 s behind"
GROUP = "cccccccc-0000-0000-0000-000000000000"


def drawn(snapshot: ClusterSnapshot, **found: list[str]) -> list[str]:
    return [text_of(line) for line in tree_of(snapshot, found)]


def text_of(line: TreeLine) -> str:
    state = f"  {', '.join(line.state)}" if line.state else ""
    return f"{line.indent}{line.link.value}{line.name}{state}"


def uuid_of(name: str) -> UUID:
    return UUID(int=sum(ord(each) << (8 * at) for at, each in enumerate(name)))


def replica(name: str, *sources: str, **facts: Any) -> ServerSnapshot:
    channels = tuple(
        a_channel(each, uuid_of(each), name=each if len(sources) > 1 else "") for each in sources
    )
    return a_server(name, uuid_of(name), "", **{"channels": channels, **facts})


def test_a_replica_is_below_its_source_with_the_state_of_both() -> None:
    stopped = replace(
        a_channel("db2", uuid_of("db2")),
        receiver=ThreadState.CONNECTING,
        applier=ThreadState.STOPPED,
        applier_error="no",
        auto_position=False,
        lag_seconds=7,
    )
    servers = (
        replica("db1"),
        replica("db2", "db1"),
        replica("db3", "db1"),
        replica("db4", channels=(stopped,)),
        replica("db9"),
    )
    assert drawn(a_cluster("c", *servers), db3=["H1", "C3"]) == [
        "db1",
        "├─▶ db2",
        f"│   └─✗▶ db4  {STOPPED}",
        "└─▶ db3  H1 C3",
        "db9  no channels",
    ]


def test_a_service_is_part_of_the_state() -> None:
    servers = (replica("a", vendor=Vendor.RDS), replica("b", "a", vendor=Vendor.PERCONA))
    assert drawn(a_cluster("c", *servers), a=["C8"]) == ["a  RDS, C8", "└─▶ b"]


def test_a_ring_ends_where_it_began() -> None:
    assert drawn(healthy()) == ["a", "└─▶ b", "    └─▶ a  above"]
    ring = (replica("a", "c"), replica("b", "a"), replica("c", "b"), replica("d", "b"))
    assert drawn(a_cluster("c", *ring)) == [
        "a",
        "└─▶ b",
        "    ├─▶ c",
        "    │   └─▶ a  above",
        "    └─▶ d",
    ]


def test_a_replica_of_two_sources_is_below_both() -> None:
    servers = (replica("a"), replica("b"), replica("m", "a", "b"), replica("x", "m"))
    assert drawn(a_cluster("c", *servers)) == [
        "a",
        "└─▶ m  channel a",
        "    └─▶ x",
        "b",
        "└─▶ m  channel b, above",
    ]


def test_sources_that_were_not_read_or_are_outside() -> None:
    assert drawn(half_read()) == ["b  not read", "└─▶ a"]
    outside = a_cluster("c", a_server("a", A, "", channels=(a_channel("elsewhere", B),)))
    assert drawn(outside) == ["elsewhere.example:3306  outside this cluster", "└─▶ a"]


def member(name: str, state: str, role: str, **facts: Any) -> ServerSnapshot:
    listed = (
        GroupMember(uuid_of("g1"), "g1.example", 3306, "ONLINE", "PRIMARY"),
        GroupMember(uuid_of("g2"), "g2.example", 3306, "RECOVERING", "SECONDARY"),
        GroupMember(uuid_of("g3"), "g3.example", 3306, "ONLINE", "SECONDARY"),
    )
    group = GroupSnapshot(GROUP, state, role, GtidSet(), listed)
    return replica(name, group=group, settings=(("group_replication_group_name", GROUP),), **facts)


def test_members_are_drawn_below_their_group() -> None:
    servers = (
        replica("dr", "g1"),
        member("g1", "ONLINE", "PRIMARY"),
        member("g2", "RECOVERING", "SECONDARY"),
        replica("g4", settings=(("group_replication_group_name", GROUP),)),
    )
    assert drawn(a_cluster("c", *servers)) == [
        f"group {GROUP}",
        "├── g1  ONLINE PRIMARY",
        "│   └─▶ dr",
        "├── g2  RECOVERING SECONDARY",
        "├── g4  not a member now",
        "└── g3.example:3306  ONLINE SECONDARY, not read",
    ]


def test_replicas_that_are_alike_are_counted() -> None:
    names = [f"r{number:02}" for number in range(50)]
    servers = [replica(name, "a") for name in names]
    late = replace(servers[30].channels[0], lag_seconds=9) if servers[30].channels else None
    assert late is not None
    servers[30] = replace(servers[30], channels=(late,))
    found = drawn(a_cluster("c", replica("a"), *servers), r40=["H1"])
    assert found[1:7] == [f"├─▶ r{number:02}" for number in range(6)]
    assert found[7:] == ["├─▶ r30  9 s behind", "├─▶ r40  H1", "└─▶ 42 more, running"]


def test_of_one_more_replica_than_fits_none_is_counted() -> None:
    seven = [replica(f"r{number}", "a") for number in range(7)]
    assert len(drawn(a_cluster("c", replica("a"), *seven))) == 8
    eight = [*seven, replica("r7", "a")]
    assert drawn(a_cluster("c", replica("a"), *eight))[-1] == "└─▶ 2 more, running"
    below = replica("z", "r7")
    assert drawn(a_cluster("c", replica("a"), *eight, below))[-2:] == ["└─▶ r7", "    └─▶ z"]


def test_one_stopped_thread_is_enough() -> None:
    for thread in ("receiver", "applier"):
        channel = a_channel("a", uuid_of("a"), **{thread: ThreadState.STOPPED})
        servers = (replica("a"), replica("b", channels=(channel,)))
        assert drawn(a_cluster("c", *servers)) == ["a", f"└─✗▶ b  {thread} stopped"]


def test_a_server_whose_channels_were_not_read() -> None:
    servers = (replica("a"), replica("b", channels=None))
    assert drawn(a_cluster("c", *servers)) == ["a  no channels", "b  channels not read"]


@st.composite
def clusters(draw: st.DrawFn) -> ClusterSnapshot:
    names = [f"s{number}" for number in range(draw(st.integers(1, 7)))]
    servers = []
    for name in names:
        sources = draw(st.sets(st.sampled_from([*names, "far"]), max_size=3)) - {name}
        servers.append(replica(name, *sorted(sources)))
    return a_cluster("c", *servers)


@given(clusters())
def test_every_server_and_every_channel_is_there(snapshot: ClusterSnapshot) -> None:
    found = tree_of(snapshot)
    names = [line.name for line in found]
    assert {each.name for each in snapshot.last} <= set(names)
    channels: list[ChannelSnapshot] = [
        channel for each in snapshot.last for channel in each.channels or ()
    ]
    assert sum("▶" in line.link.value for line in found) == len(channels)

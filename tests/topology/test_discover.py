"""Which servers are found from which: walks over topologies in memory, and rows of servers."""

from dataclasses import dataclass, field, replace
from uuid import UUID

import pytest

from tests.snapshots import A, B, C, a_channel, a_server
from topology.adapters.answered_rows import Row
from topology.adapters.discover import (
    SERVERS_MAX,
    AddressAnswer,
    Discovery,
    discover,
)
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.neighbours import (
    MEMBER,
    REPLICA,
    REPLICAS,
    SOURCE,
    Neighbour,
    ServerAddress,
    connected_of,
    members_of,
    replicas_of,
    sources_of,
)
from topology.readings.connected_replica import ConnectedReplica
from topology.readings.snapshot import ServerSnapshot, UnreadFact, UnreadReason
from topology.readings.target import Secret, ServerTarget, SslMode

UUIDS = {"a": A, "b": B, "c": C, "d": UUID("d" * 8 + "-0000-0000-0000-000000000000")}
START = ServerTarget("a:3306", "a", 3306, "auditor", Secret("hidden"), ssl_mode=SslMode.REQUIRED)


def address(name: str) -> ServerAddress:
    host, _, port = name.partition(":")
    return ServerAddress(host, int(port or 3306))


def source(name: str, uuid: UUID | None = None) -> Neighbour:
    return Neighbour(SOURCE, (address(name),), uuid)


def replica(uuid: UUID, *names: str) -> Neighbour:
    return Neighbour(REPLICA, tuple(map(address, names)), uuid)


def reading_of(name: str) -> ServerSnapshot:
    settings = (("datadir", "/d"), ("hostname", name), ("pid_file", "p"), ("port", "3306"))
    return a_server(name, UUIDS[name], f"{A}:1-9", settings=settings)


@dataclass
class World:
    """What answers at which `host:port`: a server by name, and the neighbours that it names."""

    names: dict[str, list[Neighbour]]
    also_at: dict[str, str] = field(default_factory=dict)  # another address of a server
    refused: dict[str, UnreadFact] = field(default_factory=dict)
    asked: list[ServerTarget] = field(default_factory=list)

    def ask(self, target: ServerTarget) -> AddressAnswer:
        self.asked.append(target)
        name = self.also_at.get(target.name, target.host if target.port == 3306 else "")
        if name not in self.names:
            lost = UnreadFact("connection", UnreadReason.UNREACHABLE, "refused")
            silent = replace(a_server(target.name, None, ""), version_text=None, unread=(lost,))
            return AddressAnswer(target, silent)
        unread = (self.refused[name],) if name in self.refused else ()
        return AddressAnswer(target, reading_of(name), tuple(self.names[name]), unread)

    def found(self, *starts: ServerTarget) -> Discovery:
        found = discover(starts or (START,), ask=self.ask, say=lambda _text: None)
        addresses = [target.name for target in self.asked]
        assert len(addresses) == len(set(addresses)), "an address is asked once"
        return found


def names(found: Discovery) -> list[str]:
    return [server.target.name for server in found.servers]


def test_sources_and_replicas_are_followed_in_both_directions() -> None:
    world = World(
        {
            "a": [source("b", B)],
            "b": [replica(A, "a"), replica(C, "c")],
            "c": [source("b", B), replica(UUIDS["d"], "d")],
            "d": [source("c", C)],
        }
    )
    found = world.found()
    assert names(found) == ["a:3306", "b:3306", "c:3306", "d:3306"]
    assert not found.unknown("x")
    assert found.lines[:3] == (
        "found b:3306: a:3306 names it as its source",
        "found c:3306: b:3306 names it as its replica",
        "found d:3306: c:3306 names it as its replica",
    )
    assert all(
        (each.user, each.password, each.ssl_mode) == ("auditor", Secret("hidden"), SslMode.REQUIRED)
        for each in found.targets
    )


def test_a_ring_ends() -> None:
    world = World({"a": [source("c")], "b": [source("a")], "c": [source("b")]})
    assert names(world.found()) == ["a:3306", "b:3306", "c:3306"]


def test_every_start_leads_further() -> None:
    world = World({"a": [], "b": [source("c")], "c": []})
    other = replace(START, name="b:3306", host="b")
    assert names(world.found(START, other)) == ["a:3306", "b:3306", "c:3306"]


def test_a_server_at_a_second_address_is_one_server() -> None:
    world = World({"a": [source("10.0.0.2")], "b": [replica(A, "10.0.0.1")]})
    world.also_at = {"10.0.0.2:3306": "b", "10.0.0.1:3306": "a"}
    assert names(world.found()) == ["10.0.0.2:3306", "a:3306"]


def test_two_servers_with_a_copied_uuid_are_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(UUIDS, "b", A)
    world = World({"a": [source("b", A)], "b": []})
    assert names(world.found()) == ["a:3306", "b:3306"], "C1 is for the audit to find"


def test_loopback_is_the_machine_of_the_server_that_named_it() -> None:
    here = World({"a": [source("127.0.0.1:3307", B)], "b": []}, also_at={"a:3307": "b"})
    assert names(here.found()) == ["a:3306", "a:3307"]
    there = World({"a": [source("b", B)], "b": [replica(C, "localhost:3307")], "c": []})
    there.also_at = {"b:3307": "c"}
    assert names(there.found()) == ["a:3306", "b:3306", "b:3307"]


def test_a_socket_leads_to_addresses() -> None:
    start = replace(START, name="/run/a.sock", host="localhost", unix_socket="/run/a.sock")
    world = World({"a": [source("b", B)], "b": []}, also_at={"/run/a.sock": "a"})
    found = world.found(start)
    assert names(found) == ["/run/a.sock", "b:3306"]
    assert found.targets[1].unix_socket is None


def test_a_neighbour_that_does_not_answer_is_a_server_of_the_audit() -> None:
    found = World({"a": [source("b", B), replica(C, "c")]}).found()
    assert names(found) == ["a:3306", "b:3306", "c:3306"]


def test_a_silent_address_of_a_server_that_is_found_otherwise_is_no_server() -> None:
    world = World({"a": [source("private", B), source("c")], "b": [], "c": [replica(B, "b")]})
    assert names(world.found()) == ["a:3306", "b:3306", "c:3306"]


def test_a_silent_source_with_the_uuid_of_its_replica_is_still_a_server() -> None:
    assert names(World({"a": [source("b", A)]}).found()) == ["a:3306", "b:3306"]


def test_a_replica_is_the_one_whose_server_uuid_was_named() -> None:
    world = World({"a": [replica(C, "b", "c")], "b": [], "c": []})
    found = world.found()
    assert names(found) == ["a:3306", "c:3306"], "b answers with another server_uuid"
    nowhere = World({"a": [replica(C, "b")], "b": []}).found()
    assert names(nowhere) == ["a:3306"]
    [unknown] = nowhere.unknown("x")
    assert (unknown.server, unknown.fact) == (f"server_uuid {C}", "address")
    assert "another server answers at b:3306" in unknown.reason


def test_a_replica_without_an_address_is_unknown() -> None:
    [unknown] = World({"a": [replica(C)]}).found().unknown("x")
    assert unknown.server == f"server_uuid {C}"
    assert "a:3306 names it as its replica, without an address" in unknown.reason


def test_a_source_is_accepted_as_it_answers() -> None:
    world = World({"a": [source("b", C)], "b": []})
    assert names(world.found()) == ["a:3306", "b:3306"], "it was rebuilt, or is behind a proxy"


def test_what_a_server_refused_to_answer_is_unknown() -> None:
    refused = UnreadFact(REPLICAS, UnreadReason.PRIVILEGE, "denied")
    [unknown] = World({"a": []}, refused={"a": refused}).found().unknown("x")
    assert (unknown.server, unknown.fact) == ("a:3306", REPLICAS)
    assert unknown.reason == "privilege: denied"


def test_more_servers_than_the_limit_are_a_fleet() -> None:
    count = SERVERS_MAX
    world = World({"a": [source(f"{number}.x") for number in range(count)]})
    with pytest.raises(InventoryProblem, match="fleet file"):
        world.found()
    world = World({"a": [source(f"{number}.x") for number in range(count - 1)]})
    assert len(world.found().servers) == SERVERS_MAX


# -- rows of servers ------------------------------------------------------------------------------


def test_a_replica_without_report_host_is_where_its_receiver_connects_from() -> None:
    rows: list[Row] = [
        {"Host": "named", "Port": 3306, "Replica_UUID": str(A)},
        {"Host": "", "Port": 3307, "Replica_UUID": str(B)},
        {"Host": "consumer", "Port": 0, "Replica_UUID": ""},
    ]
    hosts: list[Row] = [
        {"host": "10.0.0.1", "uuid": str(A).encode()},
        {"host": "10.0.0.2", "uuid": str(B)},
    ]
    assert [*replicas_of(rows, hosts)] == [
        replica(A, "named", "10.0.0.1"),
        replica(B, "10.0.0.2:3307"),
    ]


def test_every_receiver_is_a_candidate_on_5_6() -> None:
    rows: list[Row] = [{"Host": None, "Port": 3306, "Slave_UUID": str(B)}]
    hosts = [{"host": "10.0.0.1"}, {"host": "10.0.0.2"}, {"host": "10.0.0.1"}]
    assert [*replicas_of(rows, hosts)] == [replica(B, "10.0.0.1", "10.0.0.2")]
    assert [*replicas_of([{**rows[0], "Port": 0}], hosts)] == [replica(B)]


def test_every_reader_of_binary_logs_is_connected() -> None:
    rows: list[Row] = [
        {"Host": "named", "Port": 3306, "Replica_UUID": str(A)},
        {"Host": "registered", "Port": 0, "Replica_UUID": ""},
    ]
    hosts: list[Row] = [
        {"host": "10.0.0.1", "uuid": str(A).encode()},
        {"host": "10.0.0.2", "uuid": str(B)},  # it did not register
        {"host": "10.0.0.9", "uuid": None},
    ]
    assert [*connected_of(rows, hosts)] == [
        ConnectedReplica(str(A), ("named:3306", "10.0.0.1:3306")),
        ConnectedReplica(str(B), ("10.0.0.2",)),
        ConnectedReplica("", ("10.0.0.9",)),
    ]
    free: list[Row] = [{"host": "10.0.0.8", "uuid": "my reader"}]
    assert [*connected_of([{**rows[0], "Replica_UUID": "my reader"}], free)] == [
        ConnectedReplica("", ("10.0.0.8",))
    ]
    of_a = ConnectedReplica(str(A), ("named:3306",))
    assert [*connected_of(rows, None)] == [of_a, ConnectedReplica("", ("registered",))]
    assert [*connected_of(None, None)] == []


def test_5_6_counts_the_readers_that_did_not_register() -> None:
    rows: list[Row] = [{"Host": None, "Port": 3306, "Slave_UUID": str(B)}]
    at_b = ConnectedReplica(str(B), ("10.0.0.1:3306",))
    assert [*connected_of(rows, [{"host": "10.0.0.1"}])] == [at_b]
    more = [{"host": "10.0.0.9"}, {"host": "10.0.0.1"}]
    assert [*connected_of(rows, more)] == [
        replace(at_b, addresses=("10.0.0.9:3306", "10.0.0.1:3306")),
        ConnectedReplica("", ("10.0.0.1", "10.0.0.9")),
    ]
    assert [*connected_of(None, more)] == [], "not known which of them are replicas"
    without_uuid: list[Row] = [{"Host": "", "Port": 3306, "Slave_UUID": ""}]
    assert [*connected_of(without_uuid, more[:1])] == [ConnectedReplica("", ())]


def test_sources_are_those_of_the_channels() -> None:
    channels = (a_channel("b", B), a_channel("c", None), a_channel("", A, source_host=""))
    group = a_channel("c", C, source_host="c.example", source_port=0)
    server = a_server("a", A, "", channels=(*channels, group))
    assert [*sources_of(server)] == [source("b.example", B), source("c.example")]


def test_members_are_the_others_of_the_group() -> None:
    rows: list[Row] = [
        {"uuid": str(A), "host": "a", "port": 3306},
        {"uuid": str(B), "host": b"b", "port": 3306},
        {"uuid": str(C), "host": "", "port": None},
    ]
    expected = [Neighbour(MEMBER, (address("b"),), B), Neighbour(MEMBER, (), C)]
    assert [*members_of(rows, A)] == expected


def test_loopback_names() -> None:
    loopback = [
        ServerAddress(host, 1).is_loopback
        for host in ("localhost", "LOCALHOST", "127.3.0.1", "::1")
    ]
    assert all(loopback)
    assert not any(
        ServerAddress(host, 1).is_loopback for host in ("db1", "10.0.0.1", "localhost.example")
    )

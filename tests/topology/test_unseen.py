"""What the audit does not see of a topology: addresses, groups, and nodes of other kinds."""

from dataclasses import replace
from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import A, B, C, a_channel, a_cluster, a_server
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Grade, Verdict
from topology.facts.cluster_facts import gather_facts
from topology.facts.graph import Graph
from topology.facts.memberships import configured_together, is_galera
from topology.facts.unseen import address_of, outside_channels, undeclared_channels, unseen_sources
from topology.policy import Policy
from topology.readings.group_view import GroupSnapshot
from topology.readings.snapshot import ServerSnapshot
from topology.readings.vendors import Vendor

GROUP = "aaaaaaaa-0000-0000-0000-00000000000a"
MEMBER = GroupSnapshot(GROUP, "ONLINE", "PRIMARY", GtidSet())


def of_kind(vendor: Vendor, *settings: tuple[str, str]) -> ServerSnapshot:
    return a_server("a", A, f"{A}:1", vendor=vendor, settings=settings)


@pytest.mark.parametrize(
    ("host", "expected"),
    [("db1", "db1:3306"), ("10.0.0.1", "10.0.0.1:3306"), ("::1", "[::1]:3306")],
)
def test_an_address_of_ipv6_has_brackets(host: str, expected: str) -> None:
    assert address_of(a_channel("x", None, source_host=host)) == expected


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (of_kind(Vendor.GALERA), True),
        (of_kind(Vendor.GALERA, ("wsrep_on", "ON")), True),
        (of_kind(Vendor.GALERA, ("wsrep_on", "OFF")), False),  # it replicates like any other
        (of_kind(Vendor.MYSQL, ("wsrep_on", "ON")), True),
        (of_kind(Vendor.MYSQL, ("wsrep_on", "OFF")), False),
        (of_kind(Vendor.MYSQL), False),
        (of_kind(Vendor.MARIADB), False),
    ],
)
def test_a_galera_node_is_one_that_replicates_write_sets(
    server: ServerSnapshot, *, expected: bool
) -> None:
    assert is_galera(server) is expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, ()),
        ({"vendor": Vendor.GALERA}, ("the other nodes of the Galera cluster",)),
        ({"group": MEMBER}, (f"the other members of the group {GROUP}",)),
        (
            {"settings": (("group_replication_group_name", GROUP),)},
            (f"the other members of the group {GROUP}",),
        ),
    ],
)
def test_the_other_members_of_a_source_are_not_seen(
    facts: dict[str, Any], expected: tuple[str, ...]
) -> None:
    cluster = a_cluster(
        "pair",
        a_server("a", A, f"{A}:1", **facts),
        a_server("b", B, f"{A}:1", channels=(a_channel("a", A),)),
    )
    read = gather_facts(cluster, Policy())
    assert unseen_sources("b", graph=read.graph, servers=read.last) == expected
    assert unseen_sources("a", graph=read.graph, servers=read.last) == expected


def test_channels_of_group_replication_come_from_no_server() -> None:
    names = ("", "group_replication_applier", "group_replication_recovery", "x")
    graph = Graph((), tuple(("b", a_channel("a", None, name=name)) for name in names))
    assert [channel.name for _, channel in outside_channels(graph)] == ["", "x"]
    declared = Policy(external_sources=frozenset({"a.example:3306"}))
    assert list(undeclared_channels(graph, declared, read=())) == []
    assert list(undeclared_channels(graph, Policy(), read={"a.example:3306"})) == []
    assert len(list(undeclared_channels(graph, Policy(), read=()))) == 2


@pytest.mark.parametrize(
    ("executed", "facts", "gap"),
    [
        (f"{A}:1-3:5-9", {}, f"{A}:4"),
        (f"{A}:1-9", {}, ""),
        (f"{A}:1-3", {}, f"{A}:4-9"),  # behind, and nothing of the same origin arrives
        (f"{A}:1-9,{B}:1:3", {}, f"{B}:1:3"),  # its own: a receives from no server
        (f"{C}:1-9", {}, ""),  # it has nothing of a
        (f"{A}:1-3:5-9", {"gtid_owned": GtidSet.parse(f"{A}:4")}, ""),
    ],
)
def test_a_gap_below_an_external_source_is_not_ok(
    executed: str, facts: dict[str, Any], gap: str
) -> None:
    declared = Policy(external_sources=frozenset({"m.example:3306"}))
    c = a_server("c", B, executed, channels=(a_channel("m", C),), **facts)
    snapshot = a_cluster("chain", a_server("a", A, f"{A}:1-9"), c)
    audit = audit_cluster(snapshot, declared)
    found = [(str(each.gtid_set), each.grade) for each in audit.findings if each.code == "J4"]
    assert found == ([(gap, Grade.LIKELY)] if gap else [])
    assert audit.unknown == ()
    assert audit.verdict is (Verdict.WARNING if gap else Verdict.OK)


def test_a_gap_that_closed_meanwhile_is_none() -> None:
    declared = Policy(external_sources=frozenset({"m.example:3306"}))
    c = a_server("c", B, f"{A}:1-3:5-9", channels=(a_channel("m", C),))
    snapshot = a_cluster("chain", a_server("a", A, f"{A}:1-9"), c)
    closed = replace(snapshot.last[1], gtid_executed=GtidSet.parse(f"{A}:1-9"))
    audit = audit_cluster(replace(snapshot, last=(snapshot.last[0], closed)), declared)
    assert audit.verdict is Verdict.OK


def test_members_of_one_group_are_peers_whatever_the_case_of_its_name() -> None:
    servers = (
        a_server("a", A, "", group=MEMBER),
        a_server("b", B, "", settings=(("group_replication_group_name", GROUP.upper()),)),
        a_server("c", None, "", vendor=Vendor.GALERA),
        a_server("d", None, "", vendor=Vendor.GALERA),
        a_server("e", None, ""),
    )
    assert configured_together(servers) == (("a", "b"), ("c", "d"))


@pytest.mark.parametrize(
    ("facts", "assumes"),
    [
        ({"vendor": Vendor.GALERA}, True),
        ({"vendor": Vendor.MARIADB}, False),
    ],
)
def test_what_is_assumed_of_galera_nodes_is_stated(facts: dict[str, Any], *, assumes: bool) -> None:
    audit = audit_cluster(a_cluster("one", a_server("a", A, f"{A}:1", **facts)))
    [finding] = [each for each in audit.findings if each.code == "U4"]
    assumption = "each node still receives what any other node has"
    assert (assumption in finding.explanation) is assumes

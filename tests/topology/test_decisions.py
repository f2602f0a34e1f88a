"""Single decisions of facts and rules that no scenario tells apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import A, B, C, a_channel, a_cluster, a_server
from topology.catalogue.findings import Finding, Grade
from topology.facts.applier_movement import has_moved
from topology.facts.cluster_facts import ClusterFacts, gather_facts, severe_differences
from topology.facts.graph import Edge, Graph
from topology.facts.joining import Joining, Parts
from topology.facts.lost import _is_isolated
from topology.policy import Policy
from topology.readings.snapshot import LogPosition, ThreadState
from topology.readings.worker import WorkerSnapshot
from topology.rules import could_join as joining
from topology.rules import failed_appliers, threads

SOME = GtidSet.parse(f"{A}:3")
CLOSED = {"log_bin": "ON", "binary_log": "CLOSED"}
FURTHER = LogPosition.of(file="binlog.000003", position=9999)


def of_pair(**facts: Any) -> ClusterFacts:
    """Return the facts of a -> b, with an edge that a test changes."""
    cluster = a_cluster(
        "pair",
        a_server("a", A, f"{A}:1-3"),
        a_server("b", B, f"{A}:1-3", channels=(a_channel("a", A, **facts),)),
    )
    return gather_facts(cluster, Policy())


def with_edges(facts: ClusterFacts, *changes: dict[str, Any]) -> ClusterFacts:
    [edge] = facts.edges
    return replace(facts, edges=tuple(replace(edge, **each) for each in changes))


# -- looked at twice ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "is_grave"),
    [
        *((name, True) for name in ("errant", "bypassed", "purged", "passed", "ignored")),
        *((name, False) for name in ("expected", "queued_above", "queued_below", "allowed")),
    ],
)
def test_what_stays_is_looked_at_twice(part: str, *, is_grave: bool) -> None:
    facts = of_pair()
    assert severe_differences(facts) == ()
    found = severe_differences(with_edges(facts, {part: SOME}))
    assert found == ((("a", "b", "", SOME),) if is_grave else ())


# -- an applier that moves ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "is_moving"),
    [
        ({}, False),
        ({"applied_to": FURTHER}, True),
        ({"relay_applied_to": FURTHER}, True),
        ({"last_applied": SOME}, True),
        ({"workers": (WorkerSnapshot(1, SOME, 0, ""),)}, True),
        ({"workers": ()}, False),  # they could be read once only
        ({"received_to": FURTHER, "gtid_retrieved": SOME}, False),  # that is its receiver
    ],
)
def test_an_applier_moves_if_any_of_its_places_does(
    changes: dict[str, Any], *, is_moving: bool
) -> None:
    before = a_channel("a", A, workers=(WorkerSnapshot(1, GtidSet(), 0, ""),))
    server = a_server("b", B, f"{A}:1-2")
    after = replace(before, **changes)
    assert has_moved(before, after, first=server, last=server) is is_moving


@pytest.mark.parametrize(
    ("executed", "is_moving"), [(f"{A}:1-3", True), (f"{A}:1-2:4", False), (f"{A}:1-2", False)]
)
def test_it_moves_if_it_has_executed_what_it_received(executed: str, *, is_moving: bool) -> None:
    channel = a_channel("a", A, gtid_retrieved=GtidSet.parse(f"{A}:2-3"))
    first, last = (a_server("b", B, each) for each in (f"{A}:1-2", executed))
    assert has_moved(channel, channel, first=first, last=last) is is_moving


# -- who is above whom ----------------------------------------------------------------------------

STOPPED = ThreadState.STOPPED


def edge(source: str, replica: str, **facts: Any) -> Edge:
    return Edge(source, replica, a_channel(source, A, **facts))


CHAIN = (edge("a", "b"), edge("b", "c"))
BY_HAND = (edge("a", "b", receiver=STOPPED), edge("b", "c"))
FAILED = (edge("a", "b", receiver=STOPPED, receiver_errno=1236), edge("b", "c"))


@pytest.mark.parametrize(
    ("edges", "peers", "name", "above", "with_stopped"),
    [
        (CHAIN, (), "c", "ab", "ab"),
        (CHAIN, (), "b", "a", "a"),
        (CHAIN, (), "a", "", ""),
        (BY_HAND, (), "c", "b", "ab"),
        (FAILED, (), "c", "ab", "ab"),
        ((*CHAIN, edge("x", "y")), (), "c", "ab", "ab"),
        ((*CHAIN, edge("c", "a")), (), "c", "abc", "abc"),  # a ring
        # Members of a group deliver to each other, and what reaches one reaches all.
        ((edge("a", "b"),), (("b", "c"),), "c", "ab", "ab"),
        ((edge("a", "b"),), (("x", "y"),), "b", "a", "a"),
        ((edge("b", "d"),), (("b", "c"),), "d", "bc", "bc"),
    ],
)
def test_whose_transactions_arrive(
    edges: tuple[Edge, ...],
    peers: tuple[tuple[str, ...], ...],
    name: str,
    above: str,
    with_stopped: str,
) -> None:
    graph = Graph(edges, (), together=peers)
    assert graph.upstream_of(name) - {name} == set(above) - {name}
    assert graph.upstream_of(name, stopped_too=True) - {name} == set(with_stopped) - {name}


# -- what a finding names -------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["expected", "queued_above", "queued_below"])
def test_a_stopped_channel_names_all_that_waits(part: str) -> None:
    facts = with_edges(of_pair(receiver=STOPPED), {part: SOME})
    [found] = threads.replication_not_running(facts)
    assert (found.code, found.gtid_set) == ("A7", SOME)
    assert "Until_Condition" not in [each.fact for each in found.evidence]


@pytest.mark.parametrize(
    ("stopped", "text"),
    [
        ("applier", "Find out why before you start it"),
        ("receiver", "runs with UNTIL"),
    ],
)
def test_a_condition_of_until_is_named_once_for_a_channel(stopped: str, text: str) -> None:
    facts = of_pair(**{stopped: STOPPED, "until": "SQL_AFTER_GTIDS"})
    [found] = threads.replication_not_running(facts)
    assert "Until_Condition" in [each.fact for each in found.evidence]
    assert "SQL_AFTER_GTIDS" in found.explanation
    assert text in found.explanation
    assert list(threads.stops_at_until(facts)) == []


def test_errant_transactions_are_those_of_this_edge() -> None:
    facts = of_pair()
    [one] = facts.edges
    other = replace(one, errant=SOME, edge=replace(one.edge, source="c"))
    third = replace(one, errant=SOME, edge=replace(one.edge, replica="c"))
    both = replace(facts, edges=(one, other, third))
    assert failed_appliers._errant(both, "a", "b") == GtidSet()
    assert (
        failed_appliers._errant(both, "c", "b") == failed_appliers._errant(both, "a", "c") == SOME
    )


@pytest.mark.parametrize("part", ["extra", "purged", "lost"])
def test_a_server_joins_only_with_nothing_extra_purged_or_lost(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = a_cluster("two", a_server("a", A, f"{A}:1-3"), a_server("b", B, f"{A}:1-3"))
    facts = gather_facts(cluster, Policy())
    sets_of = ("missing", "own", "purged", "extra", "elsewhere", "lost", "ahead")
    nothing = {name: GtidSet() for name in sets_of}

    def codes(**sets: GtidSet) -> list[Finding]:
        found = Joining(
            candidate="a",
            server="b",
            is_purged_now=True,
            unread=(),
            has_all=False,
            **{**nothing, **sets},
        )
        monkeypatch.setattr(joining, "evaluate_parts", lambda _facts: Parts((found,), ()))
        return list(joining.can_join(facts))

    assert [each.code for each in codes()] == ["J1"]
    assert codes(**{part: SOME}) == []


@pytest.mark.parametrize(
    ("own", "owned", "held", "is_isolated"),
    [
        (f"{A}:1-3", "", "", True),  # nobody has A:4-8
        (f"{A}:1-8", "", "", False),  # it is the next one
        (f"{A}:1-3", f"{A}:4-8", "", False),  # they are being committed
        (f"{A}:1-3", "", f"{A}:4", False),
    ],
)
def test_a_gtid_is_isolated_if_nobody_has_what_lies_below_it(
    own: str, owned: str, held: str, *, is_isolated: bool
) -> None:
    part = GtidSet.parse(f"{A}:9")
    cluster = a_cluster(
        "pair",
        a_server("a", A, own, gtid_owned=GtidSet.parse(owned) if owned else GtidSet()),
        a_server("b", B, f"{own},{A}:9" + (f",{held}" if held else "")),
        a_server("c", C, own),
    )
    assert _is_isolated(gather_facts(cluster, Policy()), "a", part) is is_isolated


@pytest.mark.parametrize("reading", ["first", "last"])
def test_a_gtid_is_not_isolated_if_either_reading_shows_what_lies_below_it(reading: str) -> None:
    a, b = a_server("a", A, f"{A}:1-3"), a_server("b", B, f"{A}:1-3:9")
    cluster = a_cluster("pair", a, b)
    assert _is_isolated(gather_facts(cluster, Policy()), "a", GtidSet.parse(f"{A}:9"))
    shown = tuple(
        replace(each, gtid_executed=GtidSet.parse(f"{A}:1-4:9")) if each.name == "b" else each
        for each in getattr(cluster, reading)
    )
    changed: dict[str, Any] = {reading: shown}
    facts = gather_facts(replace(cluster, **changed), Policy())
    assert not _is_isolated(facts, "a", GtidSet.parse(f"{A}:9"))


def test_a_server_that_refuses_receivers_is_the_last_candidate() -> None:
    """Of two servers that another one could join, the one with a binary log is named."""
    found = {}
    for notable in ({}, {"gtid_mode": "ON_PERMISSIVE"}, {"log_bin": "OFF"}, CLOSED):
        cluster = a_cluster(
            "two and one",
            a_server("a", A, f"{A}:1-3", settings=tuple(notable.items())),
            a_server("b", B, f"{A}:1-3", channels=(a_channel("a", A),)),
            a_server("c", C, f"{A}:1-3"),
        )
        [one] = joining.can_join(gather_facts(cluster, Policy()))
        found[one.source] = (one.grade, "refuses" in one.explanation)
    assert found == {"a": (Grade.PROVED, False), "b": (Grade.PROVED, False)}


def test_nothing_but_a_server_that_refuses_receivers_is_only_likely() -> None:
    for refusing in ({"gtid_mode": "ON_PERMISSIVE"}, {"log_bin": "OFF"}, CLOSED):
        cluster = a_cluster(
            "two",
            a_server("a", A, f"{A}:1-3", settings=tuple(refusing.items())),
            a_server("b", B, f"{A}:1-3", settings=tuple(refusing.items())),
        )
        [one] = joining.can_join(gather_facts(cluster, Policy()))
        assert (one.grade, "refuses" in one.explanation) == (Grade.LIKELY, True)


def test_two_clusters_in_one_audit_are_named_where_they_share_nothing() -> None:
    for theirs, is_shared in ((f"{A}:1-3", False), (f"{A}:1-3,{B}:1", True)):
        cluster = a_cluster(
            "two",
            a_server("a", A, theirs),
            a_server("c", C, f"{C}:1-9" if not is_shared else f"{C}:1-9,{B}:1"),
        )
        [one] = joining.cannot_join_diverged(gather_facts(cluster, Policy()))
        assert ("may belong to two clusters" in one.explanation) is not is_shared

"""Decisions about GTID sets and channels that one fact turns: unread clocks, owned GTIDs, edges."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from gtid import GtidSet
from tests.snapshots import NOON, A, B, C, a_channel, a_cluster, a_server, with_facts
from tests.topology.test_accepted import THREE, UNDONE, seen
from tests.topology.test_declared import findings, pair
from tests.topology.test_log_places import FROM_C, gtids, three
from tests.topology.test_not_received import found as not_received_with
from tests.topology.test_siblings import found as siblings_with
from tests.topology.transcript_words import gtids as by_letter
from topology.facts.accepted import Acceptance
from topology.facts.cluster_facts import gather_facts
from topology.facts.former_ids import maybe_by_hand, under_uuids_of_others
from topology.facts.graph import build_graph
from topology.facts.reset_signs import _may_reorder, received_present_ones
from topology.policy import Policy
from topology.readings.history_evidence import HistoryEvidence, LogStart
from topology.readings.snapshot import ThreadState


def test_without_a_comparison_no_server_is_known_to_have_an_empty_transaction() -> None:
    """The plan takes the rows back on b only, and c executed them as well."""
    decision = Acceptance([UNDONE], THREE.last).decision_on(seen("b:1"))
    assert decision is not None
    assert "no step that undoes their rows on c" in decision.why_not


def test_nothing_follows_the_highest_gno() -> None:
    last = 2**63 - 2
    assert not not_received_with(channel=f"retrieved=A:1-30:{last}") - by_letter(f"A:31-{last}")


@pytest.mark.parametrize(("unread", "expected"), [("", True), ("a", False), ("b", False)])
def test_what_was_received_is_present_only_if_both_clocks_were_read(
    unread: str, *, expected: bool
) -> None:
    log = LogStart("binlog.000001", NOON - timedelta(days=9), GtidSet())
    source = a_server("a", A, f"{A}:1-9", history_evidence=HistoryEvidence(log, ()))
    settings = (("relay_log_recovery", "ON"),)
    channel = a_channel("a", A)
    replica = a_server("b", B, f"{A}:1-9", channels=(channel,), settings=settings)
    source, replica = (
        with_facts(each, server_clock=None) if each.name == unread else each
        for each in (source, replica)
    )
    received = GtidSet.parse(f"{A}:9")
    assert received_present_ones(replica, channel, received, source) is expected


@pytest.mark.parametrize("name", ["a", "b"])
def test_times_of_two_servers_are_compared_only_if_both_clocks_were_read(name: str) -> None:
    snapshot = pair()
    assert [each.code for each in findings(snapshot)] == ["E4"]
    last = tuple(
        with_facts(each, server_clock=None) if each.name == name else each for each in snapshot.last
    )
    assert "E4" not in [each.code for each in findings(replace(snapshot, last=last))]


def test_what_the_replica_is_committing_it_has_not_lost() -> None:
    """b sent B:7 and B:8 to a; c, which is their former sender, commits B:8."""
    channels = (replace(FROM_C, gtid_retrieved=gtids("B:7-8")),)
    graph, servers = three(
        a={"gtid_executed": gtids("B:7-8"), "channels": channels},
        b={"gtid_executed": GtidSet()},
        c={"server_uuid": FROM_C.source_uuid, "gtid_executed": None, "gtid_owned": gtids("B:8")},
    )
    found = maybe_by_hand(graph.edges[1], graph=graph, servers=servers)
    assert found == {"a": gtids("B:7")}


@pytest.mark.parametrize("receiver", [ThreadState.RUNNING, ThreadState.STOPPED])
def test_a_stopped_channel_may_bring_back_what_a_replica_has_lost(receiver: ThreadState) -> None:
    """a received B:7 from c, and b will receive it when its channel is started."""
    channels = (replace(FROM_C, gtid_retrieved=gtids("B:7")),)
    graph, servers = three(
        a={"gtid_executed": gtids("B:7"), "channels": channels},
        b={"gtid_executed": GtidSet()},
        c={"server_uuid": FROM_C.source_uuid, "gtid_executed": None},
    )
    below, edge = graph.edges
    link = replace(below, channel=replace(below.channel, receiver=receiver))
    found = maybe_by_hand(edge, graph=replace(graph, edges=(link, edge)), servers=servers)
    assert found == {"a": gtids("B:7")}


def test_the_source_of_another_replica_explains_nothing() -> None:
    more = (
        "server d uuid=D executed=A:1-30,Z:1-5\n"
        "server e uuid=E executed=A:1-30,Z:1-5\n  from d retrieved=Z:1-5\n"
    )
    assert siblings_with(b=",Z:1-5", c=",Z:3-9", more=more) == {("b", "c"): by_letter("Z:3-5")}


@pytest.mark.parametrize(
    ("workers", "expected"), [(None, False), ("0", False), ("1", False), ("4", True)]
)
def test_only_more_than_one_worker_reorders(workers: str | None, *, expected: bool) -> None:
    order = ("replica_preserve_commit_order", "OFF")
    settings = (order, *((("replica_parallel_workers", workers),) if workers else ()))
    assert _may_reorder(a_server("b", B, "", settings=settings)) is expected


def test_a_stopped_channel_at_the_replicas_own_address_has_the_source_with_the_uuid() -> None:
    """A tunnel listens at the address at which the replica itself was read."""
    channel = a_channel("b", A, receiver=ThreadState.STOPPED)
    servers = (a_server("a", A, ""), a_server("b", B, "", channels=(channel,)))
    [edge] = build_graph(a_cluster("pair", *servers)).edges
    assert (edge.source, edge.replica) == ("a", "b")


def test_edges_are_in_order_of_replica_before_channel() -> None:
    servers = (
        a_server("a", A, ""),
        a_server("b", B, "", channels=(a_channel("a", A, name="two"), a_channel("a", A))),
        a_server("c", C, "", channels=(a_channel("a", A, name="one"),)),
    )
    found = [
        (each.replica, each.channel.name) for each in build_graph(a_cluster("star", *servers)).edges
    ]
    assert found == [("b", ""), ("b", "two"), ("c", "one")]


@pytest.mark.parametrize(
    ("receiver", "is_doubted"),
    [
        (ThreadState.STOPPED, True),
        (ThreadState.CONNECTING, True),
        (ThreadState.RUNNING, False),  # it is connected to the server with this UUID
    ],
)
def test_a_connected_receiver_shows_its_source(receiver: ThreadState, *, is_doubted: bool) -> None:
    """Its port is that of a tunnel."""
    channel = replace(a_channel("a", A, receiver=receiver), source_port=3307)
    servers = (a_server("a", A, ""), a_server("b", B, "", channels=(channel,)))
    [edge] = build_graph(a_cluster("pair", *servers)).edges
    assert bool(edge.doubt) is is_doubted


@pytest.mark.parametrize("receiver", [ThreadState.STOPPED, ThreadState.RUNNING])
def test_a_channel_that_never_connected_has_received_from_no_other_server(
    receiver: ThreadState,
) -> None:
    channel = a_channel("a", None, receiver=receiver)
    servers = (a_server("a", A, ""), a_server("b", B, "", channels=(channel,)))
    [edge] = build_graph(a_cluster("pair", *servers)).edges
    assert (edge.source, edge.doubt) == ("a", "")


def test_a_server_whose_uuid_was_not_read_has_no_gtids_of_others() -> None:
    b, c = a_server("b", B, ""), a_server("c", None, "")
    servers = {"a": a_server("a", A, ""), "b": b, "c": c}
    some = GtidSet.parse(f"{A}:1,{B}:2,{C}:3")
    assert under_uuids_of_others(some, b, servers) == GtidSet.parse(f"{A}:1")


@pytest.mark.parametrize(("skip_counter", "queued"), [(0, ""), (1, "A:9")])
def test_what_a_source_still_commits_may_be_skipped(skip_counter: int, queued: str) -> None:
    received = gtids("A:1-9")
    channel = a_channel("a", A, gtid_retrieved=received, skip_counter=skip_counter)
    a = a_server("a", A, gtids("A:1-8"), gtid_owned=gtids("A:9"))
    b = a_server("b", B, gtids("A:1-8"), channels=(channel,))
    [edge] = gather_facts(a_cluster("pair", a, b), Policy()).edges
    assert edge.queued_above == gtids(queued)

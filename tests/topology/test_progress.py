"""What the channels of a replica leave open together, and what equal server_ids make it drop."""

from dataclasses import replace
from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import A, B, C, a_channel, a_cluster, a_server
from topology.facts.cluster_facts import gather_facts
from topology.facts.progress import _applier_facts, behind_appliers, same_server_id, stalls_of
from topology.policy import Policy
from topology.readings.group_view import GroupSnapshot
from topology.readings.snapshot import (
    ChannelSnapshot,
    ReadServer,
    ReadTwice,
    ServerSnapshot,
    ThreadState,
    as_read,
)
from topology.readings.worker import WorkerSnapshot

STOPPED = ThreadState.STOPPED
READ_ALL = "Replica has read all relay log; waiting for more updates"


def gtids(text: str) -> GtidSet:
    return GtidSet.parse(text.replace("A:", f"{A}:").replace("B:", f"{B}:").replace("C:", f"{C}:"))


def behind(
    *, others: tuple[dict[str, Any], ...] = (), source: dict[str, Any] | None = None
) -> tuple[GtidSet, bool]:
    """Return what b left behind of A:4-9, which it received from a by an applier that is idle."""
    passed = {"gtid_retrieved": gtids("A:1-9"), "applier_state": READ_ALL}
    channels = [a_channel("a", A, **passed)]
    for facts in others:
        name = facts.get("source_host", "c.example").partition(".")[0]
        made = a_channel(name, C if name == "c" else None, name="two", receiver=STOPPED)
        channels.append(replace(made, **facts))
    a = a_server("a", A, gtids("A:1-9"))
    b = a_server("b", B, gtids("A:1-3"), channels=tuple(channels))
    c = a_server("c", C, gtids("A:1-9"), **(source or {}))
    facts_of = gather_facts(a_cluster("cluster", a, b, c), Policy())
    edge = next(each for each in facts_of.graph.edges if each.channel.name == "")
    return behind_appliers(
        edge, graph=facts_of.graph, first=facts_of.first, appliers=facts_of.appliers
    )


RUNS = {"receiver": ThreadState.RUNNING}
IDLE = {"applier_state": READ_ALL}


@pytest.mark.parametrize(
    ("facts", "passed", "is_proved"),
    [
        ({}, "A:1-9", True),
        # Another channel that received nothing, and whose receiver is stopped, brings nothing.
        ({"others": ({},)}, "A:1-9", True),
        # One that has some of them before its applier applies them.
        ({"others": ({"gtid_retrieved": gtids("A:5")},)}, "A:1-4:6-9", True),
        # One with a running receiver brings what its source has and it has not passed itself.
        ({"others": (RUNS,)}, "", True),
        ({"others": ({"receiver": ThreadState.CONNECTING},)}, "", True),
        ({"others": (RUNS,), "source": {"gtid_executed": gtids("A:1-5")}}, "A:6-9", True),
        ({"others": (RUNS,), "source": {"gtid_executed": None}}, "A:1-9", False),
        # It never sends what it has purged, or had in no log: the receiver stays connected.
        ({"others": (RUNS,), "source": {"gtid_purged": gtids("A:1-5")}}, "A:1-5", True),
        ({"others": (RUNS,), "source": {"gtid_purged": None}}, "A:1-9", False),
        ({"others": ({**RUNS, **IDLE, "gtid_retrieved": gtids("A:5")},)}, "A:5", True),
        # What a channel from a server that was not read brings is not known.
        ({"others": ({"source_host": "z.example", "source_uuid": None},)}, "A:1-9", False),
    ],
)
def test_what_no_channel_of_the_replica_brings(
    facts: dict[str, Any], passed: str, *, is_proved: bool
) -> None:
    found, proved = behind(**facts)
    assert (found, proved) == (gtids(passed), is_proved)


def test_both_channels_must_prove_what_both_passed() -> None:
    idle = {**IDLE, "gtid_retrieved": gtids("A:1-9")}
    at_end = {**idle, "applier": STOPPED}  # likely only: an operator may have moved its place
    assert behind(others=(idle,)) == (gtids("A:1-9"), True)
    assert behind(others=(at_end,)) == (gtids("A:1-9"), False)
    assert behind(others=({**at_end, "gtid_retrieved": gtids("C:1")},)) == (gtids("A:1-9"), True)


@pytest.mark.parametrize(
    ("c", "dropped"),
    [
        ({"server_id": 2}, "C:1-5"),
        ({"server_id": 3}, ""),
        ({"server_id": None}, ""),
        ({"server_id": 2, "server_uuid": None}, ""),
        ({"server_id": 2, "server_uuid": B}, ""),  # a copied server_uuid is another fault
    ],
)
def test_a_replica_drops_what_a_server_with_its_server_id_committed(
    c: dict[str, Any], dropped: str
) -> None:
    a = a_server("a", A, gtids("A:1-9,C:1-5"), server_id=1)
    b = a_server("b", B, gtids("A:1-3"), server_id=2)
    servers: dict[str, ServerSnapshot] = {"a": a, "b": b}
    servers["c"] = replace(a_server("c", C, gtids("A:1-3,C:1-3")), **c)
    assert same_server_id(b, servers) == gtids(dropped)
    assert same_server_id(replace(b, server_id=None), servers) == GtidSet()


def test_an_applier_that_stands_still_is_looked_at_twice() -> None:
    def stalls(seconds: int) -> tuple[object, ...]:
        worker = WorkerSnapshot(1, gtids("A:4"), 0, "", "Applying batch of row changes", seconds)
        channel = a_channel("a", A, gtid_retrieved=gtids("A:1-9"), workers=(worker,))
        b = a_server("b", B, gtids("A:1-3"), channels=(channel,))
        policy = Policy(stall_seconds_max=60)
        facts = gather_facts(a_cluster("pair", a_server("a", A, gtids("A:1-9")), b), policy)
        return stalls_of(facts.appliers, policy)

    [(replica, channel, waits)] = [each for each in stalls(61) if isinstance(each, tuple)]
    assert (replica, channel) == ("b", "")
    assert waits == (("Applying batch of row changes", str(gtids("A:4"))),)
    assert stalls(60) == ()


def read_twice(first: ServerSnapshot, last: ServerSnapshot) -> ReadTwice:
    before, after = as_read(first), as_read(last)
    assert isinstance(before, ReadServer)
    assert isinstance(after, ReadServer)
    return ReadTwice(before, after)


@pytest.mark.parametrize(
    ("received", "owned", "in_group", "passed"),
    [
        # Of the source's own: in ascending order in its log, also what it committed since.
        ("A:1-8", "", False, "A:1-5"),
        # Another origin's number says nothing about the source's own.
        ("A:1-5,C:9", "", False, ""),
        # A number behind a gap of which nothing is known may have been set by hand ...
        ("A:1-5:8", "", False, ""),
        # ... unless the source was committing the gap: a replica may have what is in its log.
        ("A:1-5:8", "A:6-8", False, "A:1-5"),
        # Members of a group take blocks of numbers.
        ("A:1-8", "", True, ""),
    ],
)
def test_a_single_worker_may_be_at_what_its_source_committed_since(
    received: str, owned: str, *, in_group: bool, passed: str
) -> None:
    def channel(retrieved: str, applying: str, last: str) -> ChannelSnapshot:
        state = "Applying batch of row changes" if applying else "Waiting for an event"
        worker = WorkerSnapshot(1, gtids(applying), 0, "", state, None, gtids(last))
        return a_channel("a", A, gtid_retrieved=gtids(retrieved), workers=(worker,))

    group = GroupSnapshot(str(C), "ONLINE", "PRIMARY", GtidSet()) if in_group else None
    a = replace(a_server("a", A, gtids("A:1-4")), group=group)
    later = replace(a, gtid_executed=gtids("A:1-5"), gtid_owned=gtids(owned))
    source = read_twice(a, later)
    first = a_server("b", B, gtids("A:1-3"), channels=(channel("A:1-5", "A:5", ""),))
    at_end = channel(received, "", "A:8" if "8" in received else "C:9")
    last = replace(first, channels=(at_end,), phase=2)
    facts = _applier_facts(read_twice(first, last), source, at_end)
    assert facts.passed == gtids(passed) - gtids("A:5")

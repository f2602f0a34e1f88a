"""Decisions that one reading turns: a server that was read once or in part, and its group."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from binlog.log_times import EPOCH
from gtid import GtidSet
from tests.snapshots import (
    HERE,
    NOON,
    A,
    B,
    C,
    a_channel,
    a_cluster,
    a_server,
    read_server,
    with_facts,
)
from tests.topology.test_declared import findings, pair
from tests.topology.test_log_places import gtids, three
from topology.facts.applier_facts import may_hide_received
from topology.facts.applier_workers import behind_workers
from topology.facts.assigned_gtids import assigned_text
from topology.facts.channel_places import still_purged
from topology.facts.cluster_facts import ClusterFacts, gather_facts
from topology.facts.declared import declared_early
from topology.facts.former_ids import of_unknown_uuids
from topology.facts.graph import Edge, Graph
from topology.facts.half_received import half_received, may_be_half_received
from topology.facts.memberships import Membership
from topology.facts.since_reading import may_have_come
from topology.policy import Policy
from topology.readings.group_view import GROUP_APPLIER, GroupMember, GroupSnapshot
from topology.readings.history_evidence import CommitRecord, HistoryEvidence
from topology.readings.read_once import as_last_reading
from topology.readings.snapshot import LogPosition, ThreadState
from topology.readings.version import ServerVersion
from topology.readings.worker import WorkerSnapshot

GROUP = "99999999-0000-0000-0000-000000000000"
_NOTHING = GtidSet()
READ_ALL = "Slave has read all relay log; waiting for the slave I/O thread to update it"
UUIDS = {"a": A, "b": B, "c": C}


# -- groups ---------------------------------------------------------------------------------------


def group_of(
    *read_once: str, view_id: str = "", received: GtidSet = _NOTHING, **facts: Any
) -> ClusterFacts:
    """Gather the facts of a group in which each server is ONLINE and has executed what is given."""
    executed = {name: facts.pop(name) for name in sorted(UUIDS.keys() & facts.keys())}
    members = tuple(
        GroupMember(UUIDS[name], f"{name}.example", 3306, "ONLINE", "PRIMARY") for name in executed
    )
    group = GroupSnapshot(GROUP, "ONLINE", "PRIMARY", received, members, view_id=view_id)
    snapshot = a_cluster(
        "group",
        *(
            a_server(name, UUIDS[name], gtids(text), group=group, **facts)
            for name, text in executed.items()
        ),
    )
    last = [
        as_last_reading(first) if last.name in read_once else last
        for first, last in zip(snapshot.first, snapshot.last, strict=True)
    ]
    return gather_facts(replace(snapshot, last=tuple(last)), Policy())


@pytest.mark.parametrize(("read_once", "is_compared"), [((), True), (("b",), False)])
def test_members_are_compared_if_each_was_read_twice(
    read_once: tuple[str, ...], *, is_compared: bool
) -> None:
    assert bool(group_of(*read_once, a="A:1-9", b="A:1-8").groups) is is_compared


@pytest.mark.parametrize(
    ("a", "b", "holder"),
    [("A:4-5", "A:5,B:1-90", "a"), ("A:5,B:1-90", "A:4-5", "b"), ("A:4-5", "A:4-5", "a")],
)
def test_a_member_holds_the_most_of_what_another_is_missing(a: str, b: str, holder: str) -> None:
    """What a member has besides does not count."""
    [group] = group_of(a=f"{a},A:1-3", b=f"{b},A:1-3", c="A:1-3,B:1-90").groups
    [backlog] = [each for each in group.backlogs if each.server == "c"]
    assert (backlog.coming, backlog.holder) == (gtids("A:4-5"), holder)


@pytest.mark.parametrize(
    ("doubt", "expected"),
    [("", (("a", "b"),)), ("a and b list different members", (("a", "b", "c"),))],
)
def test_in_doubt_every_configured_server_may_deliver(
    doubt: str, expected: tuple[tuple[str, ...], ...]
) -> None:
    group = Membership(GROUP, ("a", "b", "c"), (("a", "b"),), (), ("c",), doubt)
    assert Graph((), (), (group,)).peers == expected


@pytest.mark.parametrize(("days", "is_long"), [(2, True), (1, False)])
def test_how_long_a_group_runs_its_members_clock_shows(days: int, *, is_long: bool) -> None:
    """The clock of the members is ahead of that of the auditor."""
    since = (NOON - EPOCH) // timedelta(microseconds=1)
    facts = group_of(
        view_id=f"{since}0:1",
        server_clock=NOON + timedelta(days=days),
        uptime_seconds=9 * 86_400,
        a="A:1-9",
        b="A:1-8",
    )
    [group] = facts.groups
    assert {each.is_long for each in group.backlogs} == {is_long}


@pytest.mark.parametrize("server_id", [3, None])
def test_a_members_own_group_may_have_its_server_id(server_id: int | None) -> None:
    """The server_id of c was not read: its own transactions may come back to it all the same."""
    member = GroupSnapshot(str(C), "OFFLINE", "", GtidSet())
    graph, servers = three(c={"group": member, "server_id": server_id})
    found = of_unknown_uuids(graph.edges[1], graph=graph, servers=servers)
    assert found == {"b": gtids("C:4-9")}


@pytest.mark.parametrize(
    ("first", "last", "states", "expected"),
    [
        (("A:1-5", ""), ("A:1-6", "A:6"), ("ONLINE", "ONLINE"), (False, True)),
        # It executed what it had received: nothing arrived.
        (("A:1-5", "A:6"), ("A:1-6", "A:6"), ("ONLINE", "ONLINE"), (False, False)),
        # What arrived is under another UUID.
        (("A:1-5,B:1", ""), ("A:1-5,B:1-2", ""), ("ONLINE", "ONLINE"), (False, False)),
        (("A:1-5,B:1", ""), ("A:1-5,B:1-2", ""), ("RECOVERING", "ONLINE"), (True, True)),
        (("A:1-5", ""), ("A:1-5", ""), ("RECOVERING", "ONLINE"), (True, False)),
    ],
)
def test_a_member_moves_if_what_it_is_missing_follows_what_arrived(
    first: tuple[str, str],
    last: tuple[str, str],
    states: tuple[str, str],
    expected: tuple[bool, bool],
) -> None:
    """The member a has A:1-9: is b recovering, and does it move?"""
    a, b = (GroupMember(UUIDS[name], name, 3306, "ONLINE", "PRIMARY") for name in "ab")
    readings = []
    for (executed, received), state in zip((first, last), states, strict=True):
        members = (a, replace(b, state=state))
        views = (
            GroupSnapshot(GROUP, shown, "PRIMARY", gtids(each), members)
            for shown, each in (("ONLINE", ""), (state, received))
        )
        of_a, of_b = views
        readings.append(
            a_cluster(
                "group",
                a_server("a", A, gtids("A:1-9"), group=of_a),
                a_server("b", B, gtids(executed), group=of_b),
            )
        )
    [group] = gather_facts(replace(readings[0], last=readings[1].last), Policy()).groups
    [backlog] = [each for each in group.backlogs if each.server == "b"]
    assert (backlog.is_recovering, backlog.moved) == expected


def test_the_queue_of_a_member_has_what_it_has_not_executed() -> None:
    facts = group_of(received=gtids("A:1-9"), a="A:1-9", b="A:1-7")
    assert facts.appliers["b", GROUP_APPLIER].backlog == gtids("A:8-9")


@pytest.mark.parametrize(
    ("is_member", "expected"), [(True, f"{A}:10,{GROUP}:4"), (False, f"{A}:10")]
)
def test_a_server_that_was_read_once_may_have_what_it_had_not_then(
    expected: str, *, is_member: bool
) -> None:
    """It had executed A:1-9 and the group's 1-3: only later ones can have come since."""
    group = GroupSnapshot(GROUP, "ONLINE", "PRIMARY", GtidSet())
    had = f"{A}:1-9,{GROUP}:1-3"
    one = as_last_reading(a_server("a", A, had, group=group if is_member else None))
    servers = {"a": one, "b": a_server("b", B, "", group=group)}
    extra = GtidSet.parse(f"{A}:9-10,{C}:4,{GROUP}:3-4")
    assert may_have_come(extra, ("a",), servers) == GtidSet.parse(expected)


# -- what a source has purged ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "receiver", "expected"),
    [
        ({"phase": 1}, ThreadState.RUNNING, "A:2-4"),  # below what it received last
        ({"phase": 1}, ThreadState.CONNECTING, "A:2-4"),
        ({"phase": 1}, ThreadState.STOPPED, "A:2-4:6-7"),
        ({"phase": 2}, ThreadState.RUNNING, "A:2-4:6-7"),
        ({"phase": 1, "executed": gtids("A:1:8")}, ThreadState.RUNNING, "A:2-4:6-7"),
        ({"phase": 1, "channels": ()}, ThreadState.RUNNING, ""),
    ],
)
def test_a_replica_that_was_read_once_may_have_fetched_what_follows(
    facts: dict[str, Any], receiver: ThreadState, expected: str
) -> None:
    channel = a_channel("a", A, receiver=receiver, gtid_retrieved=gtids("A:5"))
    made = {"executed": gtids("A:1"), "channels": (channel,), **facts}
    replica = read_server("b", B, **made)
    assert still_purged(gtids("A:2-4:6-7"), Edge("a", "b", channel), replica) == gtids(expected)


def test_what_the_source_has_purged_no_channel_ignores() -> None:
    channel = replace(a_channel("b", B), ignored_server_ids=(1,))
    servers = (
        a_server("a", A, "", server_id=1),
        a_server("b", B, gtids("A:1-9"), gtid_purged=gtids("A:1-3")),
        a_server("c", C, "", channels=(channel,)),
    )
    [edge] = gather_facts(a_cluster("chain", *servers), Policy()).edges
    assert (edge.purged, edge.ignored) == (gtids("A:1-3"), gtids("A:4-9"))


@pytest.mark.parametrize(
    ("version", "facts", "may_hide"),
    [
        (ServerVersion(5, 6, 24), {}, True),
        (ServerVersion(5, 6, 24), {"applier_state": READ_ALL}, False),
        (ServerVersion(5, 6, 24), {"applier_state": READ_ALL, "applied_to": None}, True),
        (ServerVersion(9, 7, 4), {"applied_to": None}, False),
    ],
)
def test_an_idle_applier_at_the_receivers_position_hides_nothing(
    version: ServerVersion, facts: dict[str, Any], *, may_hide: bool
) -> None:
    server = a_server("b", B, "", version=version, channels=(a_channel("a", A, **facts),))
    assert may_hide_received(server) is may_hide


# -- appliers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "log_end", "expected"),
    [
        ({}, None, True),
        ({}, HERE, False),
        ({"received_to": None}, HERE, True),
        ({"applier_state": "Reading event from the relay log"}, None, False),  # it is at work
        ({"applier": ThreadState.STOPPED}, None, False),
    ],
)
def test_an_unread_position_matters_where_the_applier_has_read_all(
    facts: dict[str, Any], log_end: LogPosition | None, *, expected: bool
) -> None:
    channel = a_channel("a", A, **{"applier_state": READ_ALL, **facts})
    replica = a_server("b", B, "", version=ServerVersion(5, 6, 24))
    assert may_be_half_received(replica, channel, log_end=log_end) is expected


NO_WORK = "Waiting for an event from Coordinator"
BEFORE = LogPosition.of(file="binlog.000003", position=9)
AT_NINE = WorkerSnapshot(1, gtids("A:9"), 0, "", state=NO_WORK)
OLD: dict[str, Any] = {"version": ServerVersion(5, 6, 24)}
NO_WORKERS = {"settings": (("replica_parallel_workers", "0"),)}


@pytest.mark.parametrize(
    ("replica", "channel", "expected"),
    [
        # 5.6: it is the only transaction that is received and not executed.
        (OLD, {}, "A:9"),
        (OLD, {"workers": ()}, ""),  # it has workers that the account may not see
        ({**OLD, **NO_WORKERS}, {"workers": ()}, "A:9"),
        (OLD, {"workers": (AT_NINE,)}, ""),  # a worker has all of it
        (OLD, {"applied_to": None}, ""),
        (OLD, {"applied_to": HERE}, ""),  # the applier is between two transactions
        (OLD, {"gtid_retrieved": gtids("A:1-10")}, ""),
        ({"version": ServerVersion(5, 7, 44)}, {}, ""),  # it shows no worker's transaction
        # 8.0: a worker has it, and it is not among the received ones.
        ({}, {"gtid_retrieved": gtids("A:1-8"), "workers": (AT_NINE,)}, "A:9"),
        ({}, {"workers": (AT_NINE,)}, ""),
        (
            {},
            {
                "gtid_retrieved": gtids("A:1-8"),
                "workers": (AT_NINE,),
                "applier_state": "Reading event from the relay log",  # the rest may be there
            },
            "",
        ),
    ],
)
def test_a_transaction_is_half_received_if_its_applier_waits_for_the_rest(
    replica: dict[str, Any], channel: dict[str, Any], expected: str
) -> None:
    """The receiver is before the end of the source's log."""
    idle = WorkerSnapshot(1, GtidSet(), 0, "", state=NO_WORK)
    usual = {"gtid_retrieved": gtids("A:1-9"), "applied_to": BEFORE, "workers": (idle,)}
    shown = a_channel("a", A, **{"applier_state": READ_ALL, **usual, **channel})
    server = a_server("b", B, gtids("A:1-8"), channels=(shown,), **replica)
    end = LogPosition.of(file="binlog.000003", position=9999)
    assert half_received(server, shown, log_end=end) == gtids(expected)


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (("A:4", "", "Executing event"), "A:1-3"),
        (("", "A:3", "Executing event"), "A:1-2"),  # it has not read its next one yet
        (("", "", "Executing event"), ""),  # where it is was not read
        (("", "A:3", "Waiting for an event from Coordinator"), "A:1-6"),
        (("", "A:8", "Waiting for an event from Coordinator"), "A:1-6"),
    ],
)
def test_what_a_busy_worker_applied_last_is_its_place(
    first: tuple[str, str, str], expected: str
) -> None:
    """The other worker applies A:7."""
    applying, last_applied, state = first
    workers = (
        WorkerSnapshot(1, gtids(applying), 0, "", state=state, last_applied=gtids(last_applied)),
        WorkerSnapshot(2, gtids("A:7"), 0, "", state="Executing event"),
    )
    channel = a_channel("a", A, workers=workers)
    assert behind_workers(channel, gtids("A:1-9")) == gtids(expected)


def test_idle_workers_have_applied_what_was_handed_out() -> None:
    state = "Waiting for an event from Coordinator"
    worker = WorkerSnapshot(1, GtidSet(), 0, "", state=state, last_applied=gtids("A:8"))
    channel = a_channel("a", A, workers=(worker,))
    assert behind_workers(channel, gtids("A:1-9")) == gtids("A:1-7")


# -- logs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "b"])
def test_what_was_declared_early_needs_the_logs_of_both_servers(name: str) -> None:
    snapshot = pair()
    assert [each.code for each in findings(snapshot)] == ["E4"]
    last = tuple(
        with_facts(each, history_evidence=None) if each.name == name else each
        for each in snapshot.last
    )
    assert "E4" not in [each.code for each in findings(replace(snapshot, last=last))]


def test_only_the_changes_that_were_too_early_have_a_time() -> None:
    """A change a second before the readings added the GTIDs again, after their commit."""
    snapshot = pair()
    evidence = snapshot.last[1].history_evidence
    assert evidence is not None
    [change] = evidence.purged_changes or ()
    changes = (change, replace(change, at=NOON - timedelta(seconds=1)))
    b = replace(snapshot.last[1], history_evidence=replace(evidence, purged_changes=changes))
    [found] = declared_early(replace(snapshot, last=(snapshot.last[0], b)))
    assert (found.server, found.set_at) == ("b", change.at)


@pytest.mark.parametrize(("extra", "is_assigned"), [("B:1", True), ("A:10", False)])
def test_no_channel_assigns_gtids_of_its_source(extra: str, *, is_assigned: bool) -> None:
    """Under the UUID of a the server_id of a is no surprise."""
    records = (CommitRecord(gtids(extra), 1, NOON, True),)
    source = a_server("a", A, gtids("A:1-9"), server_id=1)
    replica = a_server(
        "b",
        B,
        gtids(f"A:1-9,{extra}"),
        server_id=2,
        channels=(a_channel("a", A),),
        history_evidence=HistoryEvidence(None, records),
    )
    [edge] = gather_facts(a_cluster("pair", source, replica), Policy()).edges
    assert bool(assigned_text(edge, gtids(extra), replica, source)) is is_assigned

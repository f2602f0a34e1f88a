"""Decisions that one fact turns, each with both outcomes: what scenarios and histories do not have."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

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
from topology.catalogue.findings import Evidence, Finding, Grade, Severity
from topology.facts.applier_facts import _is_at_end, gather_applier_facts
from topology.facts.applier_workers import SourceLog, commits_in_order, is_without_work
from topology.facts.cluster_facts import gather_facts, severe_differences
from topology.facts.declared_later import _is_before
from topology.facts.errant import still_to_apply
from topology.facts.graph import Edge, Graph
from topology.facts.gtid_waits import waits_for_gtid
from topology.facts.ignored_servers import ignored_by, ignored_servers
from topology.facts.loss_history import _is_own
from topology.facts.lost import _own_id
from topology.facts.not_received import not_received, purged_instead
from topology.facts.reset_signs import received_present_ones
from topology.facts.runway import reach_in_logs
from topology.facts.siblings import held_by_siblings
from topology.facts.skipping import can_have_skipped
from topology.policy import Policy
from topology.readings.history_evidence import CommitRecord, HistoryEvidence
from topology.readings.one_server import same_servers
from topology.readings.snapshot import BinaryLog, LogPosition, ThreadState
from topology.readings.torn_readings import sign_of_tearing
from topology.readings.version import ServerVersion
from topology.readings.worker import WorkerSnapshot

STOPPED, CONNECTING = ThreadState.STOPPED, ThreadState.CONNECTING
SOME = GtidSet.parse(f"{A}:3")
BEHIND = LogPosition.of(file="binlog.000003", position=4)
BEYOND = LogPosition.of(file="binlog.000009", position=4)


def a5(code: str = "A5", fact: str = "state", value: str = "") -> Finding:
    evidence = (Evidence(fact, value, "b", NOON),)
    return Finding(
        *(code, "an applier waits", Severity.WARNING, Grade.LIKELY, "c", "a", "b", ""),
        *(SOME, NOON, NOON, evidence, "", ()),
    )


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        (a5(value="Waiting for GTID to be committed"), True),
        (a5(value="waiting for GTID to be written to binary log"), True),
        (a5(value="Waiting for table metadata lock"), False),
        (a5(fact="applier state", value="Waiting for GTID to be committed"), False),
        (a5(code="A8", value="Waiting for GTID to be committed"), False),
    ],
)
def test_a_wait_for_a_gtid_is_an_a5_whose_state_says_so(
    finding: Finding, *, expected: bool
) -> None:
    assert waits_for_gtid(finding) is expected


# -- absent facts ---------------------------------------------------------------------------------


def star(b: dict[str, Any] | None = None, a: dict[str, Any] | None = None) -> Any:
    """Return b and c below a, both with a stranger's C:7."""
    extra = f"{A}:1-9,{C}:7"
    return (
        a_server("a", A, f"{A}:1-9", **(a or {})),
        a_server("b", B, extra, **{"channels": (a_channel("a", A),), **(b or {})}),
        a_server("c", C, extra, channels=(a_channel("a", A),)),
    )


@pytest.mark.parametrize("reading", ["first", "last"])
@pytest.mark.parametrize("name", ["a", "b"])
def test_replicas_are_compared_only_with_servers_that_were_read_whole(
    name: str, reading: str
) -> None:
    snapshot = a_cluster("star", *star())
    assert held_by_siblings(snapshot) == {("b", "c"): GtidSet.parse(f"{C}:7")}
    unread = tuple(
        with_facts(each, gtid_owned=None) if each.name == name else each
        for each in getattr(snapshot, reading)
    )
    changed: dict[str, Any] = {reading: unread}
    found = held_by_siblings(replace(snapshot, **changed))
    assert bool(found) is (name == "a" and reading == "first")


def holes(**facts: Any) -> Any:
    """Return b, which has all of a and did not receive A:4 in its place."""
    made = {"gtid_retrieved": GtidSet.parse(f"{A}:1-3:5-9"), **facts.pop("channel", {})}
    return a_cluster(
        "pair",
        a_server("a", A, f"{A}:1-9", **facts.pop("source", {})),
        a_server("b", B, f"{A}:1-9", channels=(a_channel("a", A, **made),), **facts),
    )


FOUR = GtidSet.parse(f"{A}:4")


@pytest.mark.parametrize(
    ("facts", "logged", "purged"),
    [
        ({}, True, False),
        ({"gtid_purged": GtidSet.parse(f"{A}:1-6")}, False, True),
        ({"gtid_purged": GtidSet.parse(f"{A}:1-3")}, True, False),
        ({"channel": {"auto_position": False}}, False, False),
        ({"channel": {"auto_position": False}, "gtid_purged": FOUR}, False, False),
        ({"source": {"gtid_purged": FOUR}}, False, False),
        ({"source": {"gtid_purged": FOUR}, "gtid_purged": FOUR}, False, False),
        ({"source": {"gtid_owned": None}, "gtid_purged": FOUR}, False, False),
        ({"gtid_owned": None, "gtid_purged": FOUR}, False, False),
        ({"gtid_owned": None}, False, False),
        ({"channel": {"gtid_retrieved": GtidSet.parse(f"{A}:1-9")}}, False, False),
    ],
)
def test_what_was_not_received_in_its_place(
    facts: dict[str, Any], *, logged: bool, purged: bool
) -> None:
    snapshot = holes(**facts)
    assert not_received(snapshot) == (FOUR if logged else GtidSet())
    instead = purged_instead(snapshot).get("b", GtidSet())
    assert instead == (FOUR if purged else GtidSet())


SETTINGS = (("datadir", "/d"), ("hostname", "h"), ("pid_file", "/p"), ("port", "3306"))


@pytest.mark.parametrize("reading", ["first", "last"])
@pytest.mark.parametrize(
    "facts",
    [
        {"server_uuid": B},
        {"server_id": 99},
        {"settings": SETTINGS[1:]},
        {"server_clock": None},
        {"uptime_seconds": None},
        {"gtid_executed": None},
        {"gtid_executed": GtidSet.parse(f"{A}:1-3")},
    ],
)
def test_one_server_is_the_same_in_both_readings(facts: dict[str, Any], reading: str) -> None:
    one = a_server("db1", A, f"{A}:1-9", settings=SETTINGS)
    snapshot = a_cluster("pair", one, replace(one, name="db2"))
    assert same_servers(snapshot) == (("db1", "db2"),)
    for at in (0, 1):
        servers = list(getattr(snapshot, reading))
        servers[at] = with_facts(servers[at], **facts)
        changed: dict[str, Any] = {reading: tuple(servers)}
        other = replace(snapshot, **changed)
        grows = reading == "first" and facts.get("gtid_executed")
        assert bool(same_servers(other)) is bool(grows), "a smaller set read first may grow"


@pytest.mark.parametrize(
    ("first", "last", "is_torn"),
    [
        (9, 10, False),
        (9, 9, False),
        (9, 8, True),
        (0, 0, False),
        (None, 9, False),
        (9, None, False),
    ],
)
def test_an_uptime_that_falls_is_a_restart(
    first: int | None, last: int | None, *, is_torn: bool
) -> None:
    before, after = (read_server("a", A, f"{A}:1", uptime_seconds=each) for each in (first, last))
    assert (sign_of_tearing(before, after) is not None) is is_torn


def test_a_receiver_ignores_other_servers_that_were_read() -> None:
    servers = {
        "a": a_server("a", A, "", server_id=1),
        "b": a_server("b", B, "", server_id=2),
        "c": a_server("c", None, "", server_id=3),
        "d": a_server("d", B, "", server_id=4),  # the replica's own UUID: a copy of it
    }
    channel = a_channel("a", A, ignored_server_ids=(1, 2, 3, 4))
    assert ignored_servers(channel, replica=servers["b"], last=servers) == ("a",)
    other = replace(channel, ignored_server_ids=(9,))
    assert ignored_servers(other, replica=servers["b"], last=servers) == ()


@pytest.mark.parametrize(
    ("replica", "name", "elsewhere"),
    [
        ("c", "second", f"{A}:1"),  # another channel of this replica delivers it
        ("d", "first", ""),  # a channel of another replica, of the same name
        ("d", "second", ""),
    ],
)
def test_only_another_channel_of_the_replica_delivers_what_one_ignores(
    replica: str, name: str, elsewhere: str
) -> None:
    had = GtidSet.parse(f"{A}:1")
    servers = {
        "a": a_server("a", A, str(had), server_id=1),
        "b": a_server("b", B, str(had), server_id=2),
        "c": a_server("c", C, "", server_id=3),
        "d": a_server("d", None, "", server_id=4),
    }
    edge = Edge("b", "c", a_channel("b", B, name="first", ignored_server_ids=(1,)))
    graph = Graph((edge, Edge("a", replica, a_channel("a", A, name=name))), ())
    expected = GtidSet.parse(elsewhere)
    assert ignored_by(edge, had, graph=graph, last=servers) == (had - expected, expected)


@pytest.mark.parametrize(("group", "upstream"), [(("a",), ""), (("a", "b"), "ab"), (("b",), "")])
def test_a_server_alone_in_its_group_has_nothing_upstream(
    group: tuple[str, ...], upstream: str
) -> None:
    assert Graph((), (), together=(group,)).upstream_of("a") == frozenset(upstream)


# -- the applier ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "workers", "expected"),
    [
        ((("replica_parallel_workers", "0"),), 0, True),
        ((("replica_parallel_workers", "1"),), 0, True),
        ((("replica_parallel_workers", "4"),), 0, False),
        ((("replica_parallel_workers", "4"), ("replica_preserve_commit_order", "ON")), 0, True),
        ((("replica_parallel_workers", "4"), ("replica_preserve_commit_order", "1")), 0, True),
        ((("replica_parallel_workers", "4"), ("replica_preserve_commit_order", "OFF")), 0, False),
        ((("replica_parallel_workers", "4"),), 1, True),  # one is seen
        ((("replica_parallel_workers", "1"),), 2, False),
        ((), 0, False),
    ],
)
def test_one_worker_or_the_setting_keeps_the_order_of_commits(
    settings: tuple[tuple[str, str], ...], workers: int, *, expected: bool
) -> None:
    at_work = tuple(WorkerSnapshot(number, GtidSet(), 0, "") for number in range(workers))
    server = a_server("b", B, "", settings=settings)
    assert commits_in_order(server, a_channel("a", A, workers=at_work)) is expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"relay_applied_to": HERE}, {"relay_applied_to": HERE, "applied_to": BEHIND}, True),
        ({"relay_applied_to": BEHIND}, {"relay_applied_to": HERE, "applied_to": BEHIND}, False),
        ({}, {"applied_to": HERE}, True),
        ({}, {"applied_to": BEYOND}, True),
        ({}, {"applied_to": BEHIND}, False),
        ({}, {"applied_to": None}, False),
        ({"received_to": None}, {"applied_to": HERE}, False),
    ],
)
def test_places_confirm_that_nothing_is_left(
    before: dict[str, Any], after: dict[str, Any], *, expected: bool
) -> None:
    assert _is_at_end(a_channel("a", A, **before), a_channel("a", A, **after)) is expected


def test_what_a_session_owns_was_not_left_behind_by_a_stopped_applier() -> None:
    channel = a_channel("a", A, applier=STOPPED, gtid_retrieved=SOME)
    for owned_by, owned in ((0, SOME), (1, SOME), (0, GtidSet())):
        readings = [
            a_server("b", B, f"{A}:1-2", gtid_owned=owned if at == owned_by else GtidSet())
            for at in (0, 1)
        ]
        first, last = (replace(each, channels=(channel,)) for each in readings)
        facts = gather_applier_facts(first, replace(last, phase=2), channel, SourceLog())
        assert facts.passed == SOME - owned


@pytest.mark.parametrize(
    ("state", "worker", "expected"),
    [
        ("Replica has read all relay log", None, True),
        ("Executing event", None, False),
        ("Replica has read all relay log", ("Waiting for an event from Coordinator", ""), True),
        ("Replica has read all relay log", ("Replica has read all relay log", ""), True),
        ("Replica has read all relay log", ("Executing event", ""), False),
        ("Replica has read all relay log", ("Waiting for an event from Coordinator", "3"), False),
    ],
)
def test_an_applier_is_without_work_if_each_worker_is(
    state: str, worker: tuple[str, str] | None, *, expected: bool
) -> None:
    workers: tuple[WorkerSnapshot, ...] = ()
    if worker is not None:
        applying = GtidSet.parse(f"{A}:{worker[1]}" if worker[1] else "")
        workers = (WorkerSnapshot(1, applying, 0, "", state=worker[0]),)
    assert is_without_work(a_channel("a", A, applier_state=state, workers=workers)) is expected


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (ServerVersion(5, 6, 51), False),
        (ServerVersion(5, 7, 5), False),
        (ServerVersion(5, 7, 6), True),  # SET GLOBAL gtid_mode exists from here on
        (ServerVersion(9, 7, 4), True),
        (None, True),
    ],
)
def test_only_a_server_with_a_dynamic_gtid_mode_can_have_skipped_transactions(
    version: ServerVersion | None, *, expected: bool
) -> None:
    assert can_have_skipped(a_server("b", B, "", version=version)) is expected


# -- times and ids of single transactions ------------------------------------------------------------


def committed(gno: int, *, exact: bool = True, server_id: int = 1) -> CommitRecord:
    return CommitRecord(
        GtidSet.parse(f"{A}:{gno}"), server_id, NOON, exact, NOON if exact else None
    )


@pytest.mark.parametrize(("exact", "expected"), [(True, True), (False, False)])
def test_only_an_exact_time_shows_that_a_transaction_is_the_present_one(
    *, exact: bool, expected: bool
) -> None:
    """Before 8.0.1 times are truncated to the second: two transactions may share one."""
    received = GtidSet.parse(f"{A}:9")
    evidence = HistoryEvidence(None, (committed(9, exact=exact),))
    source = a_server("a", A, f"{A}:1-9", history_evidence=evidence)
    channel = a_channel("a", A, last_queued=received, last_queued_committed_at=NOON)
    replica = a_server("b", B, f"{A}:1-9", channels=(channel,))
    assert received_present_ones(replica, channel, received, source) is expected


@pytest.mark.parametrize(("server_id", "expected"), [(1, True), (2, False), (None, True)])
def test_a_commit_is_the_origins_own_unless_another_server_id_is_known(
    server_id: int | None, *, expected: bool
) -> None:
    assert _is_own(committed(9), with_facts(a_server("a", A, ""), server_id=server_id)) is expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [(True, True, False), (False, True, False), (True, False, False)],
)
def test_a_commit_without_its_own_time_precedes_nothing(
    *, left: bool, right: bool, expected: bool
) -> None:
    assert _is_before(committed(8, exact=left), committed(9, exact=right)) is expected


def test_a_commit_precedes_one_that_was_logged_later() -> None:
    later = replace(committed(9), logged_at=NOON + timedelta(seconds=1))
    assert _is_before(committed(8), later)
    assert not _is_before(later, committed(8))


def test_what_no_applier_was_compared_of_is_still_to_be_applied() -> None:
    received = GtidSet.parse(f"{A}:1-9")
    channel = a_channel("a", A, gtid_retrieved=received)
    assert still_to_apply(a_server("b", B, "", channels=(channel,)), {}) == received


def test_a_set_that_has_all_reaches_back_to_the_last_log() -> None:
    logs = tuple(BinaryLog(f"binlog.00000{each}", 200) for each in (1, 2, 3))
    reach = reach_in_logs(a_server("a", A, f"{A}:1-9", binary_logs=logs), GtidSet())
    assert reach is not None
    assert reach.file == "binlog.000003"


def test_an_id_that_another_server_has_is_no_sign_of_its_owner() -> None:
    servers = [
        a_server(name, uuid, "", server_id=at) for name, uuid, at in (("a", A, 1), ("b", B, 2))
    ]
    assert _own_id(gather_facts(a_cluster("pair", *servers), Policy()), "a") == 1
    same = [replace(each, server_id=1) for each in servers]
    assert _own_id(gather_facts(a_cluster("pair", *same), Policy()), "a") is None


HAS_READ_ALL = "Replica has read all relay log; waiting for more updates"


@pytest.mark.parametrize(
    ("mode", "state", "counter", "is_read_again"),
    [
        ("ON_PERMISSIVE", HAS_READ_ALL, 0, True),
        ("ON", HAS_READ_ALL, 1, True),
        ("ON", HAS_READ_ALL, 0, False),  # under load, this is seen at any time
        ("ON_PERMISSIVE", "Reading event from the relay log", 0, False),
    ],
)
def test_what_an_idle_applier_may_have_skipped_is_read_again(
    mode: str, state: str, counter: int, *, is_read_again: bool
) -> None:
    """gtid_executed was read before its state: it applied the backlog meanwhile, or skipped it."""
    channel = a_channel(
        "a",
        A,
        gtid_retrieved=GtidSet.parse(f"{A}:1-9"),
        applier_state=state,
        skip_counter=counter,
        workers=(),
    )
    settings = (("gtid_mode", mode),)
    b = a_server("b", B, f"{A}:1-7", channels=(channel,), settings=settings)
    snapshot = a_cluster("pair", a_server("a", A, f"{A}:1-9"), b)
    first = tuple(
        replace(each, channels=(replace(channel, applier_state="Reading"),))
        if each.name == "b"
        else each
        for each in snapshot.first
    )
    found = severe_differences(gather_facts(replace(snapshot, first=first), Policy()))
    assert (("b", "", GtidSet.parse(f"{A}:8-9")) in found) is is_read_again

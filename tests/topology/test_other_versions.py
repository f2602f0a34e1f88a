"""GTIDs under which two servers have two transactions: a replica's own, and a source's own."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import NOON, A, B, C, a_channel, a_cluster, a_server, with_facts
from topology.facts.cluster_facts import gather_facts
from topology.facts.graph import Edge, build_graph
from topology.facts.other_versions import (
    around_start_samples,
    given_again,
    own_at_other_sources,
    own_of_stopped_source,
    received_around_start,
    with_other_versions,
)
from topology.policy import Policy
from topology.questions.log_questions import LogQuestions, questions_of
from topology.readings.history_evidence import CommitRecord, HistoryEvidence
from topology.readings.snapshot import BinaryLog, ClusterSnapshot, ServerSnapshot, ThreadState

LATER = NOON + timedelta(seconds=1)
OWN = GtidSet.parse(f"{C}:1")


def recorded(server_id: int, *, is_exact: bool = True, at: timedelta = timedelta()) -> CommitRecord:
    return CommitRecord(OWN, server_id, NOON + at, is_exact)


def two_sources(
    ours: CommitRecord | None = None, theirs: CommitRecord | None = None, **of_b: object
) -> ClusterSnapshot:
    """Return c with its own c:1, which its source b has as well, and its source a has not."""
    channels = (a_channel("a", A), replace(a_channel("b", B), name="two"))
    servers = (
        a_server("a", A, ""),
        a_server("b", B, OWN, **of_b),
        a_server("c", C, OWN, channels=channels),
    )

    def read(server: ServerSnapshot, record: CommitRecord | None) -> ServerSnapshot:
        evidence = None if record is None else HistoryEvidence(None, (record,))
        return replace(
            server, phase=2, read_started=LATER, read_ended=LATER, history_evidence=evidence
        )

    last = (read(servers[0], None), read(servers[1], theirs), read(servers[2], ours))
    return ClusterSnapshot("pair", servers, last)


def errant(snapshot: ClusterSnapshot) -> dict[str, GtidSet]:
    facts = gather_facts(snapshot, Policy())
    return {each.source: each.errant for each in facts.edges if each.errant}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (recorded(3), recorded(2)),  # of another server: made by hand
        (recorded(3, is_exact=False), recorded(2, is_exact=False)),
        (recorded(3), recorded(3, at=timedelta(microseconds=1))),  # done again
    ],
)
def test_what_another_source_committed_itself_is_errant_for_the_rest(
    ours: CommitRecord, theirs: CommitRecord
) -> None:
    snapshot = two_sources(ours, theirs)
    assert errant(snapshot) == {"a": OWN}
    assert with_other_versions(snapshot) == OWN


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (recorded(3), recorded(3)),  # b received it, before it became a source of c
        (recorded(3, is_exact=False), recorded(3, is_exact=False, at=timedelta(seconds=5))),
        (recorded(3), recorded(3, is_exact=False, at=timedelta(seconds=5))),
        (recorded(3, is_exact=False), recorded(3, at=timedelta(seconds=5))),
        (recorded(3), None),
        (None, recorded(2)),
        (None, None),
    ],
)
def test_one_commit_or_an_unread_one_counts_as_sent(
    ours: CommitRecord | None, theirs: CommitRecord | None
) -> None:
    snapshot = two_sources(ours, theirs)
    assert errant(snapshot) == {}
    assert with_other_versions(snapshot) == GtidSet()


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_a_server_whose_uuid_could_not_be_read_has_no_transactions_of_its_own(name: str) -> None:
    snapshot = two_sources(recorded(3), recorded(2))
    last = tuple(
        with_facts(each, server_uuid=None) if each.name == name else each for each in snapshot.last
    )
    found = with_other_versions(replace(snapshot, last=last))
    assert found == (GtidSet() if name == "c" else OWN)


def asked(snapshot: ClusterSnapshot) -> dict[str, LogQuestions]:
    return dict(questions_of(gather_facts(snapshot, Policy())))


def test_both_logs_are_asked_where_no_channel_explains_it() -> None:
    question = LogQuestions(commits=(OWN,))
    assert asked(two_sources()) == {"b": question, "c": question}
    back = replace(a_channel("c", C), name="back")
    assert asked(two_sources(channels=(back,))) == {}, "b receives from c"
    assert asked(two_sources(gtid_purged=OWN)) == {}, "b has it in no log"
    assert "b" not in asked(two_sources(gtid_executed=GtidSet())), "b does not have it"


@pytest.mark.parametrize("receiver", [ThreadState.RUNNING, ThreadState.STOPPED])
def test_what_a_source_received_from_its_replica_is_not_made_by_hand(receiver: ThreadState) -> None:
    """Also if an operator has stopped the channel from c to b since: b has c:1 from it."""
    for channels, expected in (((), {"b": OWN}), ((a_channel("c", C, receiver=receiver),), {})):
        snapshot = two_sources(channels=channels)
        graph, servers = build_graph(snapshot), {each.name: each for each in snapshot.last}
        [edge] = [each for each in graph.edges if (each.source, each.replica) == ("a", "c")]
        assert own_at_other_sources(edge, graph=graph, servers=servers) == expected


def test_what_a_source_is_committing_comes_by_the_channel() -> None:
    for owned, expected in (("", {"b": OWN}), (OWN, {})):
        snapshot = two_sources()
        last = tuple(
            replace(each, gtid_owned=GtidSet.parse(str(owned))) if each.name == "a" else each
            for each in snapshot.last
        )
        graph, servers = build_graph(snapshot), {each.name: each for each in last}
        [edge] = [each for each in graph.edges if (each.source, each.replica) == ("a", "c")]
        assert own_at_other_sources(edge, graph=graph, servers=servers) == expected


# -- a source that used its GTIDs again ------------------------------------------------------------

STOPPED = ThreadState.STOPPED


def stopped(
    executed: str = "1-5",
    *,
    purged: str = "",
    **threads: Any,
) -> tuple[Edge, dict[str, ServerSnapshot]]:
    """Return a -> b, of which both have A:1-5 and a has more."""
    channel = a_channel("a", A, **({"receiver": STOPPED} | threads))
    gone = GtidSet.parse(purged and f"{A}:{purged}")
    b = a_server("b", B, f"{A}:{executed},{B}:1-9", channels=(channel,), gtid_purged=gone)
    return Edge("a", "b", channel), {"a": a_server("a", A, f"{A}:1-9,{B}:1-9"), "b": b}


def with_times(
    servers: dict[str, ServerSnapshot], **seconds: tuple[int, ...]
) -> dict[str, ServerSnapshot]:
    """Return them with what their logs show of A:1 and A:5: when each was committed."""
    return {
        name: replace(
            server,
            history_evidence=HistoryEvidence(
                None,
                tuple(
                    CommitRecord(GtidSet.parse(f"{A}:{gno}"), 1, NOON + timedelta(seconds=at), True)
                    for gno, at in zip((1, 5), seconds[name], strict=False)
                ),
            ),
        )
        for name, server in servers.items()
    }


@pytest.mark.parametrize(
    ("asked", "edge_and_servers"),
    [
        ("1:5", stopped()),
        ("1:5", stopped("1-3:5")),
        ("4-5", stopped(purged="1-3")),
        ("1", stopped("1")),
        ("", stopped(receiver=ThreadState.RUNNING)),
        ("1:5", stopped(receiver=ThreadState.RUNNING, applier=STOPPED)),
        ("", stopped(receiver=ThreadState.RUNNING, applier=STOPPED, applier_errno=1062)),
        ("", stopped(receiver=ThreadState.RUNNING, applier=STOPPED, applier_error="a text")),
        ("", stopped(receiver=ThreadState.CONNECTING)),
        ("", stopped(purged="1-5")),
    ],
)
def test_both_ends_of_what_a_stopped_replica_shares_are_asked_for(
    asked: str, edge_and_servers: tuple[Edge, dict[str, ServerSnapshot]]
) -> None:
    edge, servers = edge_and_servers
    found = own_of_stopped_source(edge, servers=servers)
    assert found == GtidSet.parse(asked and f"{A}:{asked}")
    questions = questions_of(gather_facts(a_cluster("pair", *servers.values()), Policy()))
    for name in ("a", "b"):
        wanted = GtidSet.union_of(questions[name].commits) if name in questions else GtidSet()
        assert found <= wanted


@pytest.mark.parametrize(
    ("at_a", "at_b", "again"),
    [
        ((0, 5), (0, 5), ""),
        ((1, 5), (0, 5), "1"),  # b has received again since
        ((1, 6), (0, 5), "1:5"),
        ((1, 6), (), ""),
        ((), (0, 5), ""),
    ],
)
def test_two_commits_of_one_gtid_are_two_transactions(
    at_a: tuple[int, ...], at_b: tuple[int, ...], again: str
) -> None:
    edge, servers = stopped()
    assert given_again(edge, servers=servers) == GtidSet()
    found = given_again(edge, servers=with_times(servers, a=at_a, b=at_b))
    assert found == GtidSet.parse(again and f"{A}:{again}")


# -- what waits, and a start of its source ---------------------------------------------------------


def waiting(
    *,
    applied: str = "1-5",
    applied_at: int | None = 0,
    newest_at: int | None = 100,
    up_for: int | None = 50,
    logs: int = 2,
    applier: ThreadState = STOPPED,
    **of_a: object,
) -> tuple[Edge, dict[str, ServerSnapshot]]:
    """Return a -> b: b has A:1-5 and has received A:6-8, a has A:1-7. a started 50 s before 100."""
    channel = a_channel("a", A, applier=applier, gtid_retrieved=GtidSet.parse(f"{A}:1-8"))
    b = a_server("b", B, GtidSet.parse(applied and f"{A}:{applied}"), channels=(channel,))
    commits = tuple(
        CommitRecord(GtidSet.parse(f"{A}:{gno}"), 1, NOON + timedelta(seconds=at), True)
        for gno, at in ((5, applied_at), (7, newest_at))
        if at is not None
    )
    files = tuple(BinaryLog(f"log.{number}", 1000) for number in range(1, logs + 1))
    a = a_server(
        "a",
        A,
        f"{A}:1-7",
        server_clock=NOON + timedelta(seconds=100),
        uptime_seconds=up_for,
        history_evidence=HistoryEvidence(None, commits),
        binary_logs=files,
        **of_a,
    )
    return Edge("a", "b", channel), {"a": a, "b": b}


@pytest.mark.parametrize(
    ("facts", "asked"),
    [
        ({}, "5:7"),
        ({"applied": ""}, ""),
        ({"applied": "1-7"}, ""),
        ({"applier": ThreadState.RUNNING}, ""),
    ],
)
def test_the_commits_around_the_place_of_a_stopped_applier_are_asked_for(
    facts: dict[str, Any], asked: str
) -> None:
    edge, servers = waiting(**facts)
    expected = GtidSet.parse(asked and f"{A}:{asked}")
    samples = dict(around_start_samples(edge, servers=servers))
    assert samples == ({"a": expected, "b": GtidSet()} if asked else {})
    found = questions_of(gather_facts(a_cluster("pair", *servers.values()), Policy()))
    if asked:
        assert expected <= GtidSet.union_of(found["a"].commits)


@pytest.mark.parametrize(
    ("facts", "is_around"),
    [
        ({}, True),
        ({"applied_at": None}, True),  # nothing shows that it was started before
        ({"applied": ""}, False),
        ({"applied_at": 53}, False),  # all of it was committed since the start
        ({"applied_at": 52}, True),  # within what an uptime leaves open
        ({"newest_at": 47}, False),  # all of it was committed before the start
        ({"newest_at": 48}, True),
        ({"newest_at": None}, False),  # not read: no contents were read either
        ({"up_for": None}, False),
        ({"applier": ThreadState.RUNNING}, False),
        ({"applied_at": None, "logs": 1}, False),  # each start begins another one
        ({"applied_at": None, "logs": 1, "gtid_purged": GtidSet.parse(f"{A}:1")}, True),
    ],
)
def test_what_waits_may_be_of_before_a_start_in_the_middle_of_it(
    facts: dict[str, Any], is_around: bool
) -> None:
    edge, servers = waiting(**facts)
    expected = GtidSet.parse(f"{A}:6-7") if is_around else GtidSet()
    assert received_around_start(edge, servers=servers) == expected


@pytest.mark.parametrize(
    ("at", "is_around"),
    [
        (0, True),  # the source restarted between the two
        (53, False),  # all of it was committed since the start
        (None, False),  # no log shows it, and every server was started once
    ],
)
def test_the_log_of_the_replica_has_what_the_source_has_purged(
    at: int | None, *, is_around: bool
) -> None:
    edge, servers = waiting(applied_at=None, gtid_purged=GtidSet.parse(f"{A}:1-5"))
    last = GtidSet.parse(f"{A}:5")
    assert around_start_samples(edge, servers=servers) == (
        ("a", GtidSet.parse(f"{A}:7")),
        ("b", last),
    )
    found = questions_of(gather_facts(a_cluster("pair", *servers.values()), Policy()))
    assert last <= GtidSet.union_of(found["b"].commits)
    assert not last & GtidSet.union_of(found["a"].commits)
    if at is not None:
        commit = CommitRecord(last, 1, NOON + timedelta(seconds=at), True)
        servers["b"] = replace(servers["b"], history_evidence=HistoryEvidence(None, (commit,)))
    expected = GtidSet.parse(f"{A}:6-7") if is_around else GtidSet()
    assert received_around_start(edge, servers=servers) == expected


@pytest.mark.parametrize(("at", "is_around"), [(0, True), (53, False)])
def test_what_waits_may_be_purged_on_the_source_too(at: int, *, is_around: bool) -> None:
    """Nothing shows when it was committed. That no restart came since the last one excludes it."""
    edge, servers = waiting(applied_at=None, newest_at=None, gtid_purged=GtidSet.parse(f"{A}:1-7"))
    last = GtidSet.parse(f"{A}:5")
    assert around_start_samples(edge, servers=servers) == (("a", GtidSet()), ("b", last))
    commit = CommitRecord(last, 1, NOON + timedelta(seconds=at), True)
    servers["b"] = replace(servers["b"], history_evidence=HistoryEvidence(None, (commit,)))
    expected = GtidSet.parse(f"{A}:6-7") if is_around else GtidSet()
    assert received_around_start(edge, servers=servers) == expected


def test_what_neither_logs_is_asked_of_neither() -> None:
    edge, servers = waiting(applied_at=None, gtid_purged=GtidSet.parse(f"{A}:1-5"))
    servers["b"] = replace(servers["b"], gtid_purged=GtidSet.parse(f"{A}:1-5"))
    assert dict(around_start_samples(edge, servers=servers))["b"] == GtidSet()
    assert received_around_start(edge, servers=servers) == GtidSet()

"""Decisions of rules that one fact turns, each with both outcomes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import HERE, NOON, A, B, C, a_channel, a_cluster, a_server, commits_of
from tests.topology.test_decisions import of_pair, with_edges
from topology.catalogue.findings import Grade, Severity
from topology.facts.accepted import (
    PLAN_SCHEMA_VERSION,
    Acceptance,
    AcceptedRepair,
    Decision,
    NotAPlan,
    accepted_from_plan,
    accepted_from_text,
)
from topology.facts.cluster_facts import gather_facts
from topology.policy import Policy
from topology.readings.contents import ContentDifference, Difference, TransactionVersion
from topology.readings.history_evidence import HistoryEvidence
from topology.readings.snapshot import LogPosition, ServerSnapshot, ThreadState
from topology.readings.version import ServerVersion
from topology.rules import backlogs, passed, threads
from topology.rules import could_join as joining
from topology.rules.purged import purged_on_source

STOPPED, CONNECTING = ThreadState.STOPPED, ThreadState.CONNECTING
EARLIER = LogPosition.of(file="binlog.000001", position=4)
SOME, FOUR = GtidSet.parse(f"{A}:3"), GtidSet.parse(f"{A}:4")


# -- words and grades of backlogs -----------------------------------------------------------------


def outlook(**channel: Any) -> str:
    facts = with_edges(of_pair(**channel), {"queued_above": SOME})
    [found] = backlogs.applier_backlog(facts)
    return found.explanation


def test_a_delay_is_named_with_what_remains() -> None:
    delayed = {"applier_state": "Waiting until SOURCE_DELAY seconds after", "delay_seconds": 60}
    assert "SOURCE_DELAY delays them by 60 s. " in outlook(**delayed) + " "
    text = outlook(**delayed, delay_remaining_seconds=7)
    assert "by 60 s; 7 s remain for the next one." in text
    assert "0 s remain" in outlook(**delayed, delay_remaining_seconds=0)


@pytest.mark.parametrize(
    ("delay", "words"), [(0, "progress."), (60, "progress; SOURCE_DELAY is 60 s.")]
)
def test_an_applier_that_moves_is_reported_with_its_delay(delay: int, words: str) -> None:
    facts = with_edges(of_pair(delay_seconds=delay, gtid_retrieved=SOME), {"queued_above": SOME})
    key = ("b", "")
    moving = {key: replace(facts.appliers[key], moved=True)}
    [found] = backlogs.applier_backlog(replace(facts, appliers=moving))
    assert f"Its applier makes {words}" in found.explanation


def test_an_applier_that_stops_at_a_place_promises_nothing() -> None:
    assert "it stops there" in outlook(until="SQL_BEFORE_GTIDS")
    [edge] = of_pair().edges
    for until, grade in (("", Grade.PROVED), ("SQL_BEFORE_GTIDS", Grade.LIKELY)):
        facts = with_edges(of_pair(until=until, gtid_retrieved=SOME), {"queued_above": SOME})
        key = (edge.replica, "")
        moving = {key: replace(facts.appliers[key], moved=True)}
        [found] = backlogs.applier_backlog(replace(facts, appliers=moving))
        assert found.grade is grade


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"receiver": CONNECTING}, "Its receiver is connecting: when it has connected"),
        ({"receiver": CONNECTING, "receiver_errno": 2003}, "waits for a connection: error 2003"),
        ({"receiver": CONNECTING, "receiver_error": "odd"}, "waits for a connection: error 0"),
        ({}, "received nothing between the readings"),
    ],
)
def test_what_is_expected_arrives_by_a_receiver(facts: dict[str, Any], words: str) -> None:
    read = with_edges(of_pair(**facts), {"expected": SOME})
    [found] = backlogs.receiver_backlog(read)
    assert words in found.explanation
    by_file = with_edges(of_pair(auto_position=False, **facts), {"expected": SOME})
    [other] = backlogs.receiver_backlog(by_file)
    assert "runs by file position, which may be after them" in other.explanation
    assert "by file position" not in found.explanation


@pytest.mark.parametrize(
    ("channel", "source", "expected"),
    [
        ({"receiver": CONNECTING, "receiver_errno": 2003}, {}, True),
        ({"receiver": CONNECTING, "receiver_errno": 1045}, {}, False),
        ({"receiver": STOPPED, "receiver_errno": 2003}, {}, False),
    ],
)
def test_a_source_that_is_away_may_come_back(
    channel: dict[str, Any], source: dict[str, Any], *, expected: bool
) -> None:
    [found] = threads.receiver_error(of_pair(receiver_error="lost", **channel, **source))
    assert (found.severity is Severity.WARNING) is expected


# -- donors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("executed", "purged", "is_donor"),
    [("1-9", "", True), ("1-9", "1", True), ("1-9", "3", False), ("1-2", "", False)],
)
def test_a_donor_has_all_that_was_purged_in_its_logs(
    executed: str, purged: str, *, is_donor: bool
) -> None:
    gone = GtidSet.parse(f"{A}:{purged}" if purged else "")
    a = a_server("a", A, f"{A}:1-9", gtid_purged=GtidSet.parse(f"{A}:1-5"))
    b = a_server("b", B, f"{A}:1-2", channels=(a_channel("a", A, receiver=STOPPED),))
    c = a_server("c", C, f"{A}:{executed}", gtid_purged=gone)
    facts = gather_facts(a_cluster("three", a, b, c), Policy())
    [found] = purged_on_source(facts)
    assert (found.strategies[0].name == "donor_refetch") is is_donor
    assert found.gtid_set == GtidSet.parse(f"{A}:3-5")


# -- joining --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("executed", "schemas", "words"),
    [
        ("", 0, ""),  # a new server
        ("", None, "If it was reset, it has the rows already"),
        ("", 1, " It has 1 schema of its own."),
        ("", 2, " It has 2 schemas of its own."),
        (f"{B}:1", 0, "If it was reset, it has the rows already"),
        (f"{A}:1", 0, ""),  # its logs have an earlier transaction
    ],
)
def test_a_server_without_a_history_may_have_been_reset(
    executed: str, schemas: int | None, words: str
) -> None:
    a = a_server("a", A, f"{A}:1-9,{B}:1")
    b: ServerSnapshot = replace(
        a_server("b", B, executed),
        history_evidence=HistoryEvidence(None, (), schemas_count=schemas),
    )
    facts = gather_facts(a_cluster("two", a, b), Policy())
    [found] = joining.can_join(facts)
    assert words in found.explanation
    assert ("RESET BINARY LOGS" in found.explanation) is bool(words)


# -- accepted repairs -----------------------------------------------------------------------------


def a_version(name: str, *, empty: bool, committed: float | None) -> TransactionVersion:
    at = None if committed is None else NOON + timedelta(seconds=committed)
    logged = NOON + timedelta(hours=1)
    return TransactionVersion(name, "binlog.1:4", at, logged, "", is_empty=empty)


@pytest.mark.parametrize(
    ("committed", "empty", "plan"),
    [
        (-1.0, (True, False), "p1"),
        (0.0, (True, False), "p1"),  # at the moment of the plan
        (0.5, (True, False), None),  # later: another transaction
        (None, (True, False), None),  # its log is from later
        (-1.0, (False, True), "p1"),
        (-1.0, (True, True), None),
        (-1.0, (False, False), None),
    ],
)
def test_what_a_plan_emptied_was_committed_before_it(
    committed: float | None, empty: tuple[bool, bool], plan: str | None
) -> None:
    repair = AcceptedRepair("p1", NOON, (A, B), ((B, SOME),))
    a, b = (
        a_version(name, empty=is_empty, committed=committed)
        for name, is_empty in zip("ab", empty, strict=True)
    )
    [gtid] = SOME.gtids()
    difference = ContentDifference(gtid, Difference.EMPTY, True, "", a, b)
    source, executed = a_server("a", A, f"{A}:1-3"), a_server("b", B, f"{A}:1-3")
    expected = None if plan is None else Decision(plan)
    assert Acceptance((repair,), (source, executed)).decision_on(difference) == expected
    for other in (a_server("b", B, f"{A}:1-2"), a_server("c", C, f"{A}:1-3")):
        assert Acceptance((repair,), (source, other)).decision_on(difference) is None


def test_an_accepted_repair_has_a_moment_with_a_zone_and_sets_that_are_joined() -> None:
    one = AcceptedRepair("p1", NOON, (A, B), ((A, SOME), (B, FOUR)))
    assert accepted_from_text(one.to_text()) == one
    with pytest.raises(NotAPlan):
        accepted_from_text(one.to_text().replace("+00:00", ""))
    step = '{"change": {"type": "%s", "server": "b", "gtids": "%s"}}'
    steps = ", ".join(
        step % each
        for each in (
            ("InjectEmpty", SOME),
            ("AppendPurged", FOUR),
            ("StartChannel", ""),
            ("ResetAndPurge", f"{A}:9"),
        )
    )
    plan = (
        '{"schema_version": %s, "id": "p1", "snapshot_read_at": "%s", "steps": [%s],'
        ' "assumed": [{"server": "b", "server_uuid": "%s"}]}'
    )
    text = plan % (PLAN_SCHEMA_VERSION, NOON.isoformat(), steps, B)
    assert accepted_from_plan(text) == AcceptedRepair("p1", NOON, (B,), ((B, SOME | FOUR),))
    older = text.replace("schema_version", "format_version")  # as earlier versions named it
    assert accepted_from_plan(older) == accepted_from_plan(text)
    for other in (PLAN_SCHEMA_VERSION + 1, '"2"'):
        with pytest.raises(NotAPlan):
            accepted_from_plan(plan % (other, NOON.isoformat(), steps, B))


# -- what a backlog does not promise --------------------------------------------------------------


@pytest.mark.parametrize(
    ("channel", "grade", "words"),
    [
        ({"gtid_retrieved": SOME}, Grade.PROVED, "Its applier makes progress."),
        ({}, Grade.LIKELY, "Another channel of b has received 1 transaction of these"),
        (
            {"gtid_retrieved": SOME, "applier_state": "Replica has read all relay log"},
            Grade.LIKELY,
            "nothing left to do a moment later: it has applied or passed what it had received",
        ),
    ],
)
def test_a_backlog_is_that_of_its_channel(
    channel: dict[str, Any], grade: Grade, words: str
) -> None:
    facts = with_edges(of_pair(**channel), {"queued_above": SOME})
    [edge] = facts.edges
    key = (edge.replica, "")
    moving = {key: replace(facts.appliers[key], moved=True)}
    [found] = backlogs.applier_backlog(replace(facts, appliers=moving))
    assert (found.grade, words in found.explanation) == (grade, True), found.explanation


def test_a_backlog_that_a_session_owns_was_not_received() -> None:
    facts = with_edges(of_pair(), {"applying_above": SOME})
    [found] = backlogs.applier_backlog(facts)
    assert found.grade is Grade.LIKELY
    assert found.explanation.startswith("b owns 1 transaction of its source")
    assert "No channel of b has completely received 1 transaction of these" in found.explanation
    assert "Another channel" not in found.explanation


@pytest.mark.parametrize(
    ("auto_position", "retrieved", "words"),
    [
        (True, SOME, ""),
        (
            False,
            SOME,
            "an operator moved its applier (RELAY_LOG_POS), it may have skipped 1 transaction",
        ),
        (True, GtidSet(), "Another channel of b has received 1 transaction of these"),
    ],
)
def test_a_gap_is_that_of_its_channel(
    auto_position: bool,
    retrieved: GtidSet,
    words: str,
) -> None:
    read = of_pair(auto_position=auto_position, gtid_retrieved=retrieved)
    [found] = backlogs.tail_gap(with_edges(read, {"queued_below": SOME}))
    assert words in found.explanation
    if not words:
        assert "RELAY_LOG_POS" not in found.explanation
        assert "Another channel" not in found.explanation


@pytest.mark.parametrize(
    ("below", "above", "queued", "words"),
    [
        ("", "", f"{A}:8-9", "skipped 2 transactions of these"),  # nothing shows where it is
        (f"{A}:2", "", f"{A}:8-9", ""),  # it is below all of them
        ("", f"{A}:8", f"{A}:7:9", "skipped 1 transaction of these"),
        (f"{A}:2", f"{A}:8", f"{A}:7:9", "skipped 1 transaction of these"),
        (f"{C}:1", "", f"{A}:8-9", "skipped 2 transactions of these"),  # of another origin
    ],
)
def test_an_applier_by_position_may_have_skipped_what_is_below_its_transactions(
    below: str, above: str, queued: str, words: str
) -> None:
    sets = {"applying_below": below, "applying_above": above, "queued_above": queued}
    edge = {name: GtidSet.parse(text) for name, text in sets.items()}
    [found] = backlogs.applier_backlog(with_edges(of_pair(auto_position=False), edge))
    assert ("if an operator moved its applier" in found.explanation) is bool(words)
    assert words in found.explanation


@pytest.mark.parametrize(
    ("receiver_error", "applier_error", "stopped"),
    [
        ("", "", "receiver and applier"),
        ("", "no table", "receiver"),
        ("gone", "", "applier"),
        ("x", "y", ""),
    ],
)
def test_a_thread_that_was_stopped_is_reported_beside_an_error_of_the_other_one(
    receiver_error: str, applier_error: str, stopped: str
) -> None:
    channel = a_channel(
        "a",
        A,
        receiver=ThreadState.STOPPED,
        applier=ThreadState.STOPPED,
        receiver_error=receiver_error,
        applier_error=applier_error,
    )
    a, b = a_server("a", A, f"{A}:1-9"), a_server("b", B, f"{A}:1-5", channels=(channel,))
    found = [*threads.replication_not_running(gather_facts(a_cluster("two", a, b), Policy()))]
    assert [f"its {stopped} " in each.explanation for each in found] == [True] * bool(stopped)


# -- what an applier has passed, and a receiver reads again ------------------------------------------


@pytest.mark.parametrize(
    ("channel", "behind", "is_again"),
    [
        ({"auto_position": False, "received_to": EARLIER}, GtidSet(), True),
        ({"auto_position": False, "received_to": EARLIER}, SOME, False),  # its log shows the place
        ({"auto_position": False, "received_to": HERE}, GtidSet(), False),
        ({"auto_position": False, "received_to": None}, GtidSet(), False),
        ({"auto_position": True, "received_to": EARLIER}, GtidSet(), False),
    ],
)
def test_a_receiver_by_position_may_come_again_to_what_the_applier_has_passed(
    channel: dict[str, Any], behind: GtidSet, *, is_again: bool
) -> None:
    read = of_pair(gtid_retrieved=SOME, **channel)
    of_edge = {"passed": SOME, "passed_is_proved": True, "behind": behind}
    [found] = passed.passed_by_applier(with_edges(read, of_edge))
    assert ("it fetches again those" in found.explanation) is is_again
    assert ("will not get them" in found.explanation) is not is_again


@pytest.mark.parametrize(
    ("version", "channel", "is_again"),
    [
        (ServerVersion(5, 6, 24), {"receiver": CONNECTING}, True),
        (ServerVersion(5, 6, 24), {"receiver": ThreadState.RUNNING}, False),
        (ServerVersion(5, 6, 24), {"receiver": CONNECTING, "auto_position": False}, False),
        (ServerVersion(5, 7, 0), {"receiver": CONNECTING}, False),
    ],
)
def test_an_old_receiver_asks_again_for_the_last_that_it_has_received(
    version: ServerVersion, channel: dict[str, Any], *, is_again: bool
) -> None:
    cluster = a_cluster(
        "pair",
        a_server("a", A, f"{A}:1-3", gtid_purged=SOME, history_evidence=commits_of(f"{A}:3")),
        a_server(
            "b",
            B,
            f"{A}:1-2",
            version=version,
            channels=(a_channel("a", A, gtid_retrieved=SOME, **channel),),
        ),
    )
    facts = gather_facts(cluster, Policy())
    [hole] = passed.passed_by_applier(with_edges(facts, {"passed": SOME, "passed_is_proved": True}))
    assert ("That one arrives again" in hole.explanation) is is_again
    [waits] = backlogs.applier_backlog(with_edges(facts, {"queued_above": SOME}))
    assert ("may refuse the connection" in waits.explanation) is is_again
    assert (waits.severity is Severity.WARNING) is is_again

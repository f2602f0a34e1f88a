"""A GTID of the source that a session of a stopped replica committed, and what it is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import HERE, NOON, A, B, C, a_channel, a_cluster, a_server
from topology.catalogue.findings import Finding, Grade, Severity
from topology.facts.accepted import AcceptedRepair
from topology.facts.cluster_facts import ClusterFacts, gather_facts
from topology.facts.committed_by_hand import (
    BELOW_MAX,
    applied_above,
    around_gaps,
    asked_of_logs,
    committed_by_hand,
    every_by_hand,
    explains_other_versions,
    newest_done,
    only_by_hand_above,
    source_reused,
)
from topology.facts.graph import Edge
from topology.policy import Policy
from topology.questions.contents_to_compare import suspects_now
from topology.questions.log_questions import questions_of
from topology.questions.log_searches import Search
from topology.readings.contents import (
    ContentDifference,
    ContentReading,
    Difference,
    TransactionVersion,
    UnreadContent,
)
from topology.readings.history_evidence import CommitRecord, HistoryEvidence, LogSearch
from topology.readings.snapshot import LogPosition, ServerSnapshot, ThreadState
from topology.rules.crash_gaps import crash_gap
from topology.rules.without_content import session_made_another

STOPPED, RUNNING = ThreadState.STOPPED, ThreadState.RUNNING
OF_A, OF_B = a_server("a", A, "").server_id or 0, a_server("b", B, "").server_id or 0
LATER = timedelta(seconds=30)


def own(numbers: str) -> GtidSet:
    return GtidSet.parse(numbers and f"{A}:{numbers}")


def commit(number: int, server_id: int = OF_A, *, later: bool = False) -> CommitRecord:
    at = NOON + timedelta(seconds=number) + (LATER if later else timedelta())
    return CommitRecord(own(str(number)), server_id, at, True)


def log(*commits: CommitRecord) -> HistoryEvidence:
    return HistoryEvidence(None, commits)


# b has A:1-7:9, has received A:8-10, and its applier is stopped. On a, all are its own.
ON_A = log(*(commit(number) for number in (6, 7, 8, 9, 10)))
BY_HAND = log(commit(6), commit(7), commit(9, OF_B, later=True))
BY_WORKER = log(commit(6), commit(7), commit(9))


def servers(
    on_b: HistoryEvidence | None = BY_HAND,
    on_a: HistoryEvidence | None = ON_A,
    *,
    executed: str = "1-7:9",
    of_b: dict[str, Any] | None = None,
    of_a: dict[str, Any] | None = None,
    **channel: Any,
) -> tuple[Edge, dict[str, ServerSnapshot]]:
    facts = {"receiver": STOPPED, "applier": STOPPED, "gtid_retrieved": own("8-10"), **channel}
    made = a_channel("a", A, **facts)
    settings = (("replica_parallel_workers", "4"), ("gtid_mode", "ON"))
    b = a_server(
        "b",
        B,
        own(executed),
        **{"channels": (made,), "history_evidence": on_b, "settings": settings, **(of_b or {})},
    )
    a = a_server("a", A, own("1-10"), **{"history_evidence": on_a, **(of_a or {})})
    return Edge("a", "b", made), {"a": a, "b": b}


def facts_of(
    edge_and_servers: tuple[Edge, dict[str, ServerSnapshot]], **policy: Any
) -> ClusterFacts:
    _, known = edge_and_servers
    return gather_facts(a_cluster("pair", *known.values()), Policy(**policy))


# -- what is looked up -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "asked"),
    [
        ({}, "4-7:9"),
        ({"executed": "1-30:32", "gtid_retrieved": own("31-33")}, "27-30:32"),
        ({"executed": "1-3:5:7-9", "gtid_retrieved": own("4-10")}, "1-3:5:7-9"),
        ({"executed": "1-7"}, ""),  # nothing is above
        ({"executed": "1-9", "gtid_retrieved": own("1-9")}, ""),  # nothing waits
        ({"executed": ""}, ""),
        ({"of_b": {"gtid_purged": own("1-7")}}, "9"),
        ({"of_a": {"gtid_purged": own("1-7")}}, "9"),
        ({"receiver": RUNNING, "applier": RUNNING}, ""),
        ({"receiver": RUNNING}, "4-7:9"),
        ({"receiver": RUNNING, "applier_errno": 1062}, "4-7:9"),
        ({"of_b": {"server_uuid": A}}, ""),  # its own
    ],
)
def test_both_logs_are_asked_for_what_is_above_a_gap_and_just_below(
    facts: dict[str, Any], asked: str
) -> None:
    edge, known = servers(**facts)
    if "of_a" not in facts and facts.get("executed", "").startswith("1-30"):
        known["a"] = replace(known["a"], gtid_executed=own("1-40"))
    assert around_gaps(edge, servers=known) == own(asked)
    assert BELOW_MAX == 4


_BEHIND = LogPosition.of(file="binlog.000003", position=3_000)
assert _BEHIND is not None, "a file with a number"
BEHIND: LogPosition = _BEHIND
# b has A:1-9, has received A:8-9, and its applier is before A:8.
ALL_BY_HAND: dict[str, Any] = {
    "executed": "1-9",
    "gtid_retrieved": own("6-9"),
    "applied_to": BEHIND,
    "receiver": RUNNING,
    "applier": RUNNING,
    "delay_seconds": 3600,
    "delay_remaining_seconds": 3599,
}


@pytest.mark.parametrize(
    ("facts", "asked"),
    [
        ({}, "6-9"),
        ({"gtid_retrieved": own("8-9")}, "8-9"),
        ({"gtid_retrieved": own("1-9")}, "6-9"),  # the newest are enough
        ({"gtid_retrieved": own("6-10")}, "6-9"),  # one more waits
        ({"delay_remaining_seconds": None}, ""),  # a busy applier
        ({"delay_remaining_seconds": None, "applier": STOPPED}, "6-9"),
        ({"applied_to": HERE}, ""),  # it has passed them
        ({"applied_to": None}, ""),
        ({"of_b": {"gtid_purged": own("1-8")}}, "9"),
        ({"of_a": {"gtid_purged": own("1-8")}}, "9"),
        ({"of_b": {"server_uuid": A}}, ""),
    ],
)
def test_the_newest_are_looked_up_if_the_applier_is_before_what_was_received(
    facts: dict[str, Any], asked: str
) -> None:
    edge, known = servers(**{**ALL_BY_HAND, **facts})
    assert newest_done(edge, servers=known) == own(asked)
    assert asked_of_logs(edge, servers=known) == own(asked)
    assert around_gaps(edge, servers=known) == own("")


def searched(before: str = "") -> HistoryEvidence:
    """Return the log of a, searched for A:6-9 up to the position of the applier."""
    place = f"binlog.000003:{BEHIND.position}"
    found = LogSearch("b", "", place, own("6-9"), own(before))
    return replace(ON_A, searches=(found,))


def test_the_log_of_the_source_is_searched_up_to_the_applier() -> None:
    questions = questions_of(facts_of(servers(None, None, **ALL_BY_HAND)))
    assert Search("b", "", BEHIND, own("6-9")) in questions["a"].searches
    passed = questions_of(facts_of(servers(None, None, **{**ALL_BY_HAND, "applied_to": HERE})))
    assert all(not each.searches for each in passed.values())


def test_the_questions_go_to_both_servers() -> None:
    questions = questions_of(facts_of(servers(None, None)))
    for name in ("a", "b"):
        assert own("4-7:9") <= GtidSet.union_of(questions[name].commits)


# -- what the logs show ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on_b", "on_a", "by_hand", "applied"),
    [
        (BY_HAND, ON_A, "9", ""),
        (BY_WORKER, ON_A, "", "9"),
        (None, ON_A, "", ""),
        (BY_HAND, None, "", ""),
        (BY_HAND, log(commit(7)), "", ""),  # a has purged it, or it was not read
        (BY_HAND, log(commit(9, OF_B)), "", ""),  # a received it from b
        (log(commit(7), commit(9, OF_B)), ON_A, "", ""),  # the log of a was replayed on b
        (log(commit(9, 77, later=True)), ON_A, "", "9"),  # of a former history
    ],
)
def test_the_server_id_shows_who_committed_it(
    on_b: HistoryEvidence | None, on_a: HistoryEvidence | None, by_hand: str, applied: str
) -> None:
    edge, known = servers(on_b, on_a)
    assert committed_by_hand(edge, servers=known) == own(by_hand)
    assert applied_above(edge, servers=known) == own(applied)
    assert every_by_hand(a_cluster("pair", *known.values())) == own(by_hand)
    assert only_by_hand_above(edge, own("8"), servers=known) == own("8" if by_hand else "")
    known["b"] = replace(known["b"], server_id=None)
    assert committed_by_hand(edge, servers=known) == applied_above(edge, servers=known) == own("")


def test_a_worker_above_what_was_made_by_hand_leaves_a_gap() -> None:
    edge, known = servers(
        log(commit(9, OF_B, later=True), commit(11)),
        log(commit(9), commit(11)),
        executed="1-7:9:11",
        gtid_retrieved=own("8-11"),
    )
    known["a"] = replace(known["a"], gtid_executed=own("1-11"))
    assert committed_by_hand(edge, servers=known) == own("9")
    assert only_by_hand_above(edge, own("8:10"), servers=known) == own("")
    known["b"] = replace(known["b"], gtid_executed=own("1-7:9"))
    assert only_by_hand_above(edge, own("8:10"), servers=known) == own("8:10")


@pytest.mark.parametrize(
    ("on_b", "explains", "is_reused"),
    [
        (BY_HAND, True, False),
        (BY_WORKER, False, False),
        (log(commit(9, OF_B, later=True)), False, False),  # nothing below was read
        (log(commit(7, later=True), commit(9, OF_B, later=True)), False, True),
        (log(commit(6), commit(7, OF_B, later=True), commit(9, OF_B, later=True)), True, False),
        (log(commit(9, later=True)), False, True),
    ],
)
def test_commits_by_hand_explain_all_only_above_a_common_transaction(
    on_b: HistoryEvidence, *, explains: bool, is_reused: bool
) -> None:
    edge, known = servers(on_b)
    assert explains_other_versions(edge, servers=known) is explains
    assert source_reused(edge, servers=known) is is_reused


def test_the_lowest_common_transaction_counts_as_well() -> None:
    """own_of_stopped_source reads it: two commits there are a history that was given again."""
    edge, known = servers(
        log(commit(1, later=True), *BY_HAND.commits), log(commit(1), *ON_A.commits)
    )
    assert not explains_other_versions(edge, servers=known)


# -- H2 --------------------------------------------------------------------------------------------


def with_gap(facts: ClusterFacts, gap: str = "8") -> ClusterFacts:
    """Return facts in which this much waits below what was applied."""
    edges = tuple(replace(each, queued_below=own(gap), ahead=own("8-10")) for each in facts.edges)
    return replace(facts, edges=edges)


def h2(on_b: HistoryEvidence | None, **facts: Any) -> list[Finding]:
    return list(crash_gap(with_gap(facts_of(servers(on_b, **facts)))))


def test_what_a_session_committed_leaves_no_gap_of_workers() -> None:
    assert h2(BY_HAND) == []
    [proved] = h2(BY_WORKER)
    assert proved.grade is Grade.PROVED
    assert ["none" in each.risk for each in proved.strategies] == [True]


def test_h2_is_likely_where_the_log_was_not_read() -> None:
    for on_b in (None, log(commit(7))):
        [found] = h2(on_b)
        assert found.grade is Grade.LIKELY
        assert "an empty transaction under a wrong GTID" in found.explanation
        assert "its workers had applied" not in found.explanation
        [strategy] = found.strategies
        assert strategy.name == "until_after_gaps"
        assert "none" not in strategy.risk


# -- E4 --------------------------------------------------------------------------------------------


def test_its_content_is_compared() -> None:
    known = servers()[1]
    snapshot = a_cluster("pair", *known.values())
    assert own("9") <= suspects_now(snapshot, None)
    assert suspects_now(snapshot, chosen=False) == own("")


def compared(*numbers: int) -> ContentReading:
    def version(server: str) -> TransactionVersion:
        return TransactionVersion(server, "log.1:4", NOON, NOON, "nothing")

    found = tuple(
        ContentDifference(
            next(own(str(number)).gtids()),
            Difference.EMPTY,
            True,
            "empty",
            version("a"),
            version("b"),
        )
        for number in numbers
    )
    return ContentReading(NOON, 1, (), found, ())


@pytest.mark.parametrize(("contents", "is_found"), [(None, True), ((), True), ((9,), False)])
def test_e4_reports_it_unless_its_content_was_compared(
    contents: tuple[int, ...] | None, *, is_found: bool
) -> None:
    facts = with_gap(facts_of(servers()))
    reading = None if contents is None else compared(*contents)
    facts = replace(facts, snapshot=replace(facts.snapshot, contents=reading))
    found = list(session_made_another(facts))
    assert bool(found) is is_found
    for each in found:
        assert (each.code, each.grade, each.severity) == ("E4", Grade.LIKELY, Severity.WARNING)
        assert (each.source, each.replica, each.gtid_set) == ("a", "b", own("9"))
        assert each.strategies == ()
        assert [one.read_from for one in each.evidence] == ["b", "a"]


@pytest.mark.parametrize(
    ("reading", "is_found"),
    [
        ({}, False),
        ({"pairs": ()}, True),
        ({"is_cut": True}, True),
        ({"unread": (UnreadContent("b", "its log was purged"),)}, True),
        ({"unread": (UnreadContent("c", "its log was purged"),)}, False),
    ],
)
def test_what_was_compared_and_is_the_same_is_no_e4(
    reading: dict[str, Any], *, is_found: bool
) -> None:
    """A binary log that was replayed: before 8.0.1 the commits alone do not show that."""
    logs = (log(*(commit(each, OF_B, later=True) for each in (8, 9))), searched())
    facts = facts_of(servers(*logs, **ALL_BY_HAND))
    contents = replace(compared(), **{"pairs": (("b", "a"),), **reading})
    facts = replace(facts, snapshot=replace(facts.snapshot, contents=contents))
    assert bool(list(session_made_another(facts))) is is_found


@pytest.mark.parametrize("kind", [None, Difference.COMMIT, Difference.CONTENT])
def test_equal_contents_in_another_order_are_e4(kind: Difference | None) -> None:
    """A:9 was committed by hand, and A:8 will be applied after it."""
    contents = replace(compared(*(() if kind is None else (9,))), pairs=(("a", "b"),))
    if kind is not None:
        changed = tuple(replace(each, difference=kind) for each in contents.differences)
        contents = replace(contents, differences=changed)
    facts = with_gap(facts_of(servers()))
    facts = replace(facts, snapshot=replace(facts.snapshot, contents=contents))
    found = list(session_made_another(facts))
    if kind is Difference.CONTENT:
        assert found == [], "rules/content.py reports it"
    else:
        [order] = found
        assert order.gtid_set == own("9")
        assert "contents are equal, and 1 transaction below them will be" in order.explanation
        assert "Contents were not compared" not in order.explanation


def test_e4_reports_what_was_made_by_hand_for_all_that_waits() -> None:
    logs = (log(*(commit(each, OF_B, later=True) for each in (8, 9))), searched("6-7"))
    [found] = session_made_another(facts_of(servers(*logs, **ALL_BY_HAND)))
    assert (found.grade, found.gtid_set) == (Grade.LIKELY, own("8-9"))
    assert "a binary log was replayed on b" in found.explanation
    # A repair committed them empty, behind the applier: it has passed them (H8).
    behind = facts_of(servers(logs[0], searched("6-9"), **ALL_BY_HAND))
    assert list(session_made_another(behind)) == []
    passed = facts_of(servers(*logs, **{**ALL_BY_HAND, "applied_to": HERE}))
    assert list(session_made_another(passed)) == []
    before = log(commit(8, OF_B, later=True), commit(9, OF_B, later=False))
    # a reached what b had made before
    of_later = replace(searched(), commits=(commit(8), commit(9, later=True)))
    [found] = session_made_another(facts_of(servers(before, of_later, **ALL_BY_HAND)))
    assert found.gtid_set == own("8")
    by_worker = log(*(commit(each) for each in (6, 7, 8, 9)))
    assert list(session_made_another(facts_of(servers(by_worker, searched(), **ALL_BY_HAND)))) == []


def test_what_an_accepted_repair_emptied_is_not_reported() -> None:
    for uuid, expected in ((B, 0), (C, 1)):
        repair = AcceptedRepair("plan", NOON, (), ((uuid, own("9")),))
        found = facts_of(servers(), accepted=(repair,))
        assert len(list(session_made_another(with_gap(found)))) == expected
    assert list(session_made_another(with_gap(facts_of(servers(BY_WORKER))))) == []
    assert list(session_made_another(with_gap(facts_of(servers()), ""))) == [], "nothing waits"

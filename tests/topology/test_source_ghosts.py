"""H5: what each fact changes about a gap that is in no binary log of the source."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import A, B, C, a_channel, a_cluster, a_server, an_unread
from topology.catalogue.findings import Finding, Grade
from topology.facts.cluster_facts import ClusterFacts, gather_facts
from topology.facts.unlogged import without_event
from topology.policy import Policy
from topology.readings.history_evidence import HistoryEvidence
from topology.rules.ghosts import source_ghost


def own(numbers: str) -> GtidSet:
    return GtidSet.parse(numbers and f"{A}:{numbers}")


def star(
    *,
    absent: str = "41-42",
    bypassed: str = "41-42",
    c: dict[str, Any] | None = None,
    is_c_read: bool = True,
) -> ClusterFacts:
    """Gather the facts of a -> b and a -> c. A position is after what b is missing of a."""
    evidence = HistoryEvidence(None, (), absent=own(absent))
    facts = {"gtid_executed": own("1-100"), "channels": (a_channel("a", A),), **(c or {})}
    servers = (
        a_server("a", A, own("1-100"), history_evidence=evidence),
        a_server("b", B, own("1-100") - own(bypassed), channels=(a_channel("a", A),)),
        replace(a_server("c", C, ""), **facts) if is_c_read else an_unread("c"),
    )
    return gather_facts(a_cluster("star", *servers), Policy())


def h5(facts: ClusterFacts) -> Finding:
    [found] = source_ghost(facts)
    return found


def test_h5_names_the_server_that_has_the_transactions() -> None:
    found = h5(star())
    assert (found.source, found.replica, found.gtid_set) == ("a", "b", own("41-42"))
    assert found.grade is Grade.PROVED
    assert [each.name for each in found.strategies] == ["donor_refetch", "reclone"]
    assert [(each.read_from, each.value) for each in found.evidence] == [
        ("a", f"{A}:41-42"),
        ("b", f"{A}:41-42"),
        ("a", "c"),
    ]
    assert "b does not have 2 transactions of a, and no binary log of a has" in found.explanation
    assert "the binary logs of c have them" in found.explanation
    assert "a bug of mysqld" not in found.explanation
    assert "both ends of these ranges" not in found.explanation


def test_a_donor_may_have_nothing_else_in_its_binary_logs() -> None:
    found = h5(star(c={"gtid_purged": own("1-40:43-100")}))
    assert [each.name for each in found.strategies] == ["donor_refetch", "reclone"]


@pytest.mark.parametrize(
    ("c", "is_read"),
    [
        ({"gtid_executed": own("1-41:43-100")}, True),  # a part of them
        ({"gtid_purged": own("1-41")}, True),
        ({}, False),
    ],
)
def test_a_donor_has_all_of_them_in_its_binary_logs(c: dict[str, Any], *, is_read: bool) -> None:
    found = next(source_ghost(star(c=c, is_c_read=is_read)))
    assert [each.name for each in found.strategies] == ["reclone"]
    assert found.evidence[-1].value == "no audited server"
    assert "the binary logs of" not in found.explanation
    assert "a bug of mysqld" in found.explanation


def test_each_replica_and_each_range_is_reported() -> None:
    found = list(source_ghost(star(c={"gtid_executed": own("1-40:42-100")})))
    assert [(each.replica, each.gtid_set) for each in found] == [
        ("b", own("41-42")),
        ("c", own("41")),
    ]


@pytest.mark.parametrize(
    ("absent", "bypassed", "expected", "grade"),
    [
        ("41-42", "41-42:50", "41-42", Grade.PROVED),
        ("41:43", "41-43", "41-43", Grade.LIKELY),  # nothing was searched between the ends
        ("41:43:50", "41-43:50", "41-43:50", Grade.LIKELY),
    ],
)
def test_what_was_not_searched_of_a_large_gap_is_likely(
    absent: str, bypassed: str, expected: str, grade: Grade, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topology.readings.history_evidence.GAP_SEARCHED_MAX", 2)
    found = h5(star(absent=absent, bypassed=bypassed))
    assert (found.gtid_set, found.grade) == (own(expected), grade)
    is_in_part = "gtid-audit did not search for what is between the two ends" in found.explanation
    assert is_in_part is (grade is Grade.LIKELY)
    assert ("has both ends of these ranges" in found.explanation) is is_in_part


@pytest.mark.parametrize(
    ("absent", "bypassed", "expected"),
    [("41-42", "41-43", "41-42"), ("41:43", "41-43", "41:43"), ("42", "41-43", "42")],
)
def test_of_a_small_gap_only_what_no_log_has_is_h5(
    absent: str, bypassed: str, expected: str
) -> None:
    """The source can send the rest: leaving that out would lose its rows."""
    found = h5(star(absent=absent, bypassed=bypassed))
    assert (found.gtid_set, found.grade) == (own(expected), Grade.PROVED)


@pytest.mark.parametrize(("absent", "bypassed"), [("", "41-43"), ("41", "41-43"), ("41", "")])
def test_without_both_ends_of_a_large_gap_there_is_no_h5(
    absent: str, bypassed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topology.readings.history_evidence.GAP_SEARCHED_MAX", 1)
    assert not list(source_ghost(star(absent=absent, bypassed=bypassed)))


@pytest.mark.parametrize(("expected", "grade"), [("42", Grade.LIKELY), ("43", Grade.PROVED)])
def test_another_channel_may_deliver_the_gap(expected: str, grade: Grade) -> None:
    back = a_channel("c", C, name="two")
    a, _, c = star().snapshot.first
    b = a_server("b", B, own("1-40:43-100"), channels=(a_channel("a", A), back))
    facts = gather_facts(a_cluster("star", a, b, c), Policy())
    edges = [
        replace(each, expected=own(expected), bypassed=own(""))
        if (each.source, each.replica) == ("c", "b")
        else each
        for each in facts.edges
    ]
    found = h5(replace(facts, edges=tuple(edges)))
    assert found.grade is grade
    assert ("Channel two from c may deliver them" in found.explanation) is (grade is Grade.LIKELY)


def test_an_unread_log_shows_nothing() -> None:
    a = a_server("a", A, own("1-9"))
    assert without_event(own("1-9"), a) == GtidSet()
    searched = replace(a, history_evidence=HistoryEvidence(None, ()))
    assert without_event(own("1-9"), searched) == GtidSet()

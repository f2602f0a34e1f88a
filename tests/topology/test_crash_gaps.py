"""H2, A6: what each fact changes about a gap that parallel workers left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import A, B, a_channel, a_cluster, a_server, commits_of
from topology.catalogue.findings import Finding, Grade
from topology.facts.cluster_facts import ClusterFacts, gather_facts
from topology.policy import Policy
from topology.questions.log_questions import questions_of
from topology.readings.history_evidence import HistoryEvidence, LogSearch
from topology.readings.snapshot import ThreadState
from topology.rules.crash_gaps import crash_gap, gap_not_recovered

STOPPED, RUNNING = ThreadState.STOPPED, ThreadState.RUNNING


def own(numbers: str) -> GtidSet:
    return GtidSet.parse(numbers and f"{A}:{numbers}")


def pair(
    *,
    executed: str = "1-5:7-9",
    workers: str | None = "4",
    recovery: str | None = "ON",
    of_a: str = "1-20",
    of_b: dict[str, Any] | None = None,
    **channel: Any,
) -> ClusterFacts:
    """Gather the facts of a -> b, whose applier is stopped and has not applied A:6."""
    facts = {"receiver": STOPPED, "applier": STOPPED, **channel}
    kept = (("replica_parallel_workers", workers), ("relay_log_recovery", recovery))
    settings = tuple((name, value) for name, value in kept if value is not None)
    made = {"channels": (a_channel("a", A, **facts),), "settings": settings, **(of_b or {})}
    made = {"history_evidence": commits_of(f"{A}:9"), **made}  # an applier logged it
    servers = (a_server("a", A, own(of_a)), a_server("b", B, own(executed), **made))
    return gather_facts(a_cluster("pair", *servers), Policy())


# -- H2 -------------------------------------------------------------------------------------------


def h2(*, ahead: str = "6", gap: str = "6", **facts: Any) -> list[Finding]:
    """Return H2 of a gap in the relay log, of which this much is after the applier's position."""
    found = pair(**{"gtid_retrieved": own(gap), **facts})
    edges = tuple(replace(each, queued_below=own(gap), ahead=own(ahead)) for each in found.edges)
    return list(crash_gap(replace(found, edges=edges)))


def test_h2_is_proved_by_the_log_of_the_source() -> None:
    [found] = h2()
    assert (found.code, found.gtid_set, found.grade) == ("H2", own("6"), Grade.PROVED)
    assert [(each.read_from, each.value) for each in found.evidence] == [
        ("b", f"{A}:6"),
        ("b", f"{A}:6"),
        ("b", f"{A}:6"),
        ("b", f"{A}:6"),
        ("b", STOPPED.value),
        ("b", "4"),
    ]
    assert "stopped within a gap" in found.explanation
    assert "does not show whether" not in found.explanation


@pytest.mark.parametrize(
    ("facts", "grade", "is_open"),
    [
        ({"gap": "6", "ahead": "6-20"}, Grade.PROVED, False),
        ({"gap": "6:8", "ahead": "6"}, Grade.LIKELY, True),
        ({"ahead": ""}, Grade.LIKELY, True),
        ({"workers": None}, Grade.LIKELY, False),
        ({"workers": None, "ahead": ""}, Grade.LIKELY, True),
        # Nothing below the gap: a RESET, or the first transactions of a new replica.
        ({"executed": "7-9"}, Grade.LIKELY, False),
        ({"executed": "5:7-9"}, Grade.PROVED, False),
    ],
)
def test_h2_is_likely_where_a_skip_looks_the_same(
    facts: dict[str, Any], grade: Grade, *, is_open: bool
) -> None:
    [found] = h2(**facts)
    assert found.grade is grade
    assert ("The log of a does not show whether" in found.explanation) is is_open
    ahead = own(facts.get("gap", "6")) & own(facts.get("ahead", "6"))
    assert found.evidence[1].value == (str(ahead) or "(empty)")
    assert ("If it was reset" in found.explanation) is (facts.get("executed") == "7-9")
    if "workers" in facts:
        assert found.evidence[-1].value == "unknown"


@pytest.mark.parametrize(
    ("before", "is_backlog"),
    [
        ("7-9", True),  # all that is above was applied in its turn
        ("7-8", False),  # a worker applied A:9, which is after the position
        ("", False),
    ],
)
def test_what_the_source_logged_behind_later_ones_is_no_gap(
    before: str, *, is_backlog: bool
) -> None:
    searched = LogSearch("b", "", "binlog.000003:4711", own("6-9"), own(before))
    shown = HistoryEvidence(None, (), searches=(searched,))
    found = pair(gtid_retrieved=own("6-9"))
    of_a = found.fully_read["a"]
    of_a = replace(of_a, last=replace(of_a.last, history_evidence=shown))
    read = {**found.fully_read, "a": of_a}
    last = {**found.last, "a": of_a.last}
    edges = tuple(replace(each, queued_below=own("6"), ahead=own("6")) for each in found.edges)
    there = list(crash_gap(replace(found, edges=edges, last=last, fully_read=read)))
    assert (there == []) is is_backlog


def test_what_is_above_a_gap_is_searched_for_as_well() -> None:
    [search] = questions_of(pair(gtid_retrieved=own("6-9")))["a"].searches
    assert search.wanted == own("6-9")


@pytest.mark.parametrize(
    ("purged", "below_logged", "grade"),
    [
        ("1-4", "6", Grade.PROVED),  # older logs were purged, and its binary log has A:5 and A:7-9
        ("1-4:7-8", "6", Grade.PROVED),
        # A purged one below the gap may have been declared after a RESET.
        ("1-5", "6", Grade.LIKELY),
        ("1-5:7-9", "", Grade.LIKELY),
    ],
)
def test_h2_is_likely_where_gtid_purged_may_have_been_set_with_the_hole(
    purged: str, below_logged: str, grade: Grade
) -> None:
    [found] = h2(of_b={"gtid_purged": own(purged)})
    assert found.grade is grade
    assert found.evidence[2].value == (str(own(below_logged)) or "(empty)")
    assert ("If it was reset" in found.explanation) is (grade is Grade.LIKELY)
    assert ("If gtid_purged was set by hand" in found.explanation) is (not below_logged)


@pytest.mark.parametrize(
    "facts",
    [
        {"gap": ""},
        {"applier": RUNNING},
        {"workers": "0"},
        {"workers": "1"},
        {"of_b": {"channels": (a_channel("a", A, applier=STOPPED), a_channel("a", A, name="two"))}},
    ],
)
def test_without_each_of_these_facts_there_is_no_h2(facts: dict[str, Any]) -> None:
    assert h2(**facts) == []


# -- A6 -------------------------------------------------------------------------------------------


def a6(errno: int = 1872, **facts: Any) -> list[Finding]:
    """Return A6 of an applier that reports an error."""
    made = {"applier_errno": errno, "applier_error": f"error {errno}", **facts}
    return list(gap_not_recovered(pair(**made)))


@pytest.mark.parametrize(
    ("errno", "grade"), [(1803, Grade.PROVED), (1872, Grade.LIKELY), (13124, Grade.LIKELY)]
)
def test_only_one_error_names_the_gaps(errno: int, grade: Grade) -> None:
    settings = (("replica_parallel_workers", "4"), ("relay_log_recovery", "ON"))
    [found] = a6(errno, of_b={"settings": settings})
    assert (found.code, found.gtid_set, found.grade) == ("A6", own("6"), grade)
    assert [(each.read_from, each.value) for each in found.evidence] == [
        ("b", str(errno)),
        ("b", f"error {errno}"),
        ("b", f"{A}:6"),
        ("b", "4"),
        ("b", "ON"),
    ]
    is_open = "mysqld cannot read its applier's position" in found.explanation
    assert is_open is (grade is Grade.LIKELY)


def test_an_unread_number_of_workers_is_reported_as_such() -> None:
    [found] = a6(workers=None)
    assert [each.value for each in found.evidence[-2:]] == ["unknown", "ON"]


@pytest.mark.parametrize(
    "facts",
    [
        {"recovery": "OFF"},  # mysqld fills gaps then
        {"recovery": "0"},
        {"recovery": None},
        {"errno": 1062},
        {"errno": 0},
        {"workers": "0"},
        {"workers": "1"},
        {"applier": RUNNING},
        {"executed": "1-9"},
        {"executed": "1-5"},  # what follows is a backlog
        {"of_a": "1-5:7-9"},  # a does not have it either
        {"of_b": {"gtid_owned": own("6")}},
    ],
)
def test_without_each_of_these_facts_there_is_no_a6(facts: dict[str, Any]) -> None:
    assert a6(**facts) == []


@pytest.mark.parametrize(
    ("facts", "gap"),
    [({"executed": "1-4:8-9"}, "5-7"), ({"executed": "1-4:8", "of_a": "1-6:8-9"}, "5-6")],
)
def test_the_gap_is_what_the_source_had_below_the_highest_applied(
    facts: dict[str, Any], gap: str
) -> None:
    [found] = a6(**facts)
    assert found.gtid_set == own(gap)


def test_every_channel_is_evaluated() -> None:
    """One that runs does not end the search."""
    first = a_channel("a", A)
    second = a_channel("a", A, name="two", applier=STOPPED, applier_errno=1872)
    [found] = gap_not_recovered(pair(of_b={"channels": (first, second)}))
    assert found.channel == "two"

"""What an audit compares: which restarts, how far back, and which suspects."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gtid import GtidSet
from tests.repair.cases import a_finding
from tests.snapshots import NOON, A, B, C, a_channel, a_cluster, a_server, an_unread, commits_of
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Evidence, Grade
from topology.questions.contents_to_compare import (
    LASTING,
    SUSPECTED,
    gtids_apart,
    held_by_two,
    looked_back,
    suspects_in,
    suspects_now,
)
from topology.readings.contents import Difference
from topology.readings.snapshot import ClusterSnapshot, ThreadState
from topology.readings.worker import WorkerSnapshot
from topology.rules.failed_appliers import FAILED_AND_EXECUTED

DAY = 86_400


def alone(**facts: Any) -> ClusterSnapshot:
    return a_cluster("pair", a_server("a", A, f"{A}:1", read_ended=NOON, **facts))


@pytest.mark.parametrize(
    ("uptime", "seen_ago", "back"),
    [
        (DAY - 1, None, DAY),
        (DAY, None, None),
        (0, None, DAY),
        (None, None, None),  # the audit reports that the uptime was not read
        (0, 60, DAY),  # a restart of the last day stays in sight
        # Two audits read a second apart, two seconds count as slack.
        (2 * DAY + 2, 2 * DAY, 2 * DAY + 3),
        (2 * DAY + 3, 2 * DAY, None),
    ],
)
def test_a_restart_since_the_last_audit_or_of_the_last_day_is_looked_at(
    uptime: int | None, seen_ago: int | None, back: int | None
) -> None:
    seen = {} if seen_ago is None else {A: NOON - timedelta(seconds=seen_ago)}
    found = looked_back(alone(uptime_seconds=uptime), None, {**seen, B: NOON})
    assert found == ({} if back is None else {"a": timedelta(seconds=back)})


def test_the_operator_decides_for_all_that_was_read() -> None:
    snapshot = a_cluster("pair", a_server("a", A, "", uptime_seconds=5), an_unread("b"))
    assert looked_back(snapshot, True) == {"a": None}
    assert looked_back(snapshot, False) == {}
    assert looked_back(snapshot, None) == {"a": timedelta(days=1)}


@pytest.mark.parametrize("code", ["E1", "E2", "E3", "E6", "H7", "J1", "J3", "T4"])
def test_what_one_server_has_alone_is_suspect(code: str) -> None:
    found = suspects_in(
        a_cluster("no server"),
        [a_finding(code, "a:1"), a_finding("H1", "a:2"), a_finding(code, "b:3")],
    )
    assert found == a_finding("E1", "a:1 b:3").gtid_set
    assert code in SUSPECTED


@pytest.mark.parametrize(
    ("has", "apart"),
    [
        (f"{A}:1-4,{C}:1-3", f"{B}:1-2,{C}:1-3"),  # a in turn has something
        (f"{A}:1-4,{C}:1-1000", f"{B}:1-2,{C}:1-1000"),
        (f"{A}:1-4,{C}:1-1001", f"{B}:1-2"),  # it went on without b
    ],
)
def test_either_side_of_j3_is_suspect(has: str, apart: str) -> None:
    two = a_cluster("pair", a_server("a", A, has), a_server("b", B, f"{A}:1-4,{B}:1-2"))
    [j3] = [each for each in audit_cluster(two).findings if each.code == "J3"]
    assert (j3.source, j3.replica) == ("a", "b")
    assert suspects_in(two, [j3]) == GtidSet.parse(apart)
    assert gtids_apart(two, replace(j3, code="E1")) == GtidSet.parse(f"{B}:1-2")
    alone = replace(two, first=two.first[1:], last=two.last[1:])
    assert suspects_in(alone, [j3]) == GtidSet.parse(f"{B}:1-2")


@pytest.mark.parametrize(("behind", "apart"), [(1_000, "5-1004"), (1_001, "")])
def test_what_a_copy_has_yet_to_fetch_is_suspect(behind: int, apart: str) -> None:
    """An operator may declare it in place of fetching it."""
    two = a_cluster("pair", a_server("a", A, f"{A}:1-{4 + behind}"), a_server("b", B, f"{A}:1-4"))
    [j1] = [each for each in audit_cluster(two).findings if each.code == "J1"]
    assert suspects_in(two, [j1]) == GtidSet.parse(apart and f"{A}:{apart}")


def test_what_failed_and_counts_as_executed_is_suspect() -> None:
    gtids = GtidSet.parse("3e11fa47-71ca-11e1-9e33-c80aa9429562:5")
    fact = Evidence(FAILED_AND_EXECUTED, str(gtids), "b", NOON)
    assert (
        suspects_in(a_cluster("no server"), [replace(a_finding("A2", ""), evidence=(fact,))])
        == gtids
    )


@pytest.mark.parametrize(
    ("errno", "source", "code", "words"),
    [
        (
            1062,
            "a",
            "A2",
            "`repair plan` compares them, and plans the start if all of them are there",
        ),
        (1062, "elsewhere", "A2", "compare them before you start it"),
        (1146, "a", "A3", "compare them before you start it"),
    ],
)
def test_what_counts_as_executed_is_not_said_to_be_missing(
    errno: int, source: str, code: str, words: str
) -> None:
    """Another channel may have executed all of it: no rows were read."""
    text = f"Worker 1 failed executing transaction '{A}:5' at source log binlog.000001"
    worker = WorkerSnapshot(1, GtidSet.parse(f"{A}:5"), errno, text)
    facts: dict[str, Any] = {"applier": ThreadState.STOPPED, "workers": (worker,)}
    facts |= {"applier_errno": errno, "applier_error": text}
    channel = a_channel(source, A if source == "a" else C, **facts)
    b = a_server("b", B, f"{A}:1-9", channels=(channel,))
    audit = audit_cluster(a_cluster("pair", a_server("a", A, f"{A}:1-9"), b))
    [found] = [each for each in audit.findings if each.code in ("A2", "A3")]
    assert (found.code, found.grade) == (code, Grade.PROVED)
    assert f"{A}:5 counts as executed on b although it failed" in found.explanation
    assert words in found.explanation
    assert "stays missing" not in found.explanation


@pytest.mark.parametrize(
    ("code", "state", "is_suspect"),
    [
        ("A5", "Waiting for GTID to be committed", True),
        ("A5", "Waiting for table metadata lock", False),
        ("A6", "Waiting for GTID to be committed", False),
    ],
)
def test_what_a_session_may_commit_under_its_gtid_is_suspect(
    code: str, state: str, *, is_suspect: bool
) -> None:
    waiting = replace(a_finding(code, "a:4"), evidence=(Evidence("state", state, "b", NOON),))
    assert suspects_in(a_cluster("no server"), [waiting]) == (
        waiting.gtid_set if is_suspect else GtidSet()
    )


def test_no_other_code_is_suspect_and_no_other_difference_lasts() -> None:
    assert len(SUSPECTED) == 8
    lasting = ("CONTENT", "DRIFT", "SKIPPED", "ADDED", "EMPTY")
    assert {each for each in Difference if each.name in lasting} == LASTING


def test_siblings_of_what_the_source_has_not_are_compared_unless_the_operator_forbids_it() -> None:
    """Two replicas have c:1, which their source has not: each may have another under it."""
    b, c = (
        a_server(name, uuid, f"{A}:1,{C}:1", channels=(a_channel("a", A),))
        for name, uuid in (("b", B), ("c", C))
    )
    snapshot = a_cluster("pair", a_server("a", A, f"{A}:1"), b, c)
    assert suspects_now(snapshot, None) == suspects_now(snapshot, True) == GtidSet.parse(f"{C}:1")
    assert suspects_now(snapshot, False) == GtidSet()


def test_what_a_replica_executed_without_receiving_it_is_compared() -> None:
    """It started by auto-position, has a:2 from elsewhere, and its source has it as well."""
    b = a_server(
        "b",
        B,
        f"{A}:1-3",
        channels=(a_channel("a", A, gtid_retrieved=GtidSet.parse(f"{A}:1,{A}:3")),),
    )
    snapshot = a_cluster("pair", a_server("a", A, f"{A}:1-3"), b)
    assert suspects_now(snapshot, None) == GtidSet.parse(f"{A}:2")


def test_a_gtid_that_was_committed_on_two_servers_is_compared() -> None:
    """c receives from a and from b; a session on b committed c:1 by hand, a second later."""
    gtid = GtidSet.parse(f"{C}:1")
    evidence = commits_of(f"{C}:1")
    [record] = evidence.commits
    by_hand = replace(record, committed_at=record.committed_at + timedelta(seconds=1))
    c = a_server(
        "c",
        C,
        gtid,
        channels=(a_channel("a", A), a_channel("b", B, name="b")),
        history_evidence=evidence,
    )
    for commits, compared in (((by_hand,), gtid), (evidence.commits, GtidSet())):
        b = a_server("b", B, gtid, history_evidence=replace(evidence, commits=commits))
        assert suspects_now(a_cluster("pair", a_server("a", A, ""), b, c), None) == compared


@pytest.mark.parametrize(
    ("executed", "held"),
    [
        (("1-3", "2-4"), "2-3"),
        (("1-3", "2-4", "4"), "2-4"),
        (("1-2", "3-4"), ""),
        (("1-4", None), ""),
        (("1-9", "1-9"), "1-4"),
        (("1", "2", "2", "1"), "1-2"),
    ],
)
def test_what_two_servers_have_can_be_compared(executed: tuple[str | None, ...], held: str) -> None:
    servers = [
        a_server(f"s{at}", None, f"{A}:{numbers}") if numbers else an_unread(f"s{at}")
        for at, numbers in enumerate(executed)
    ]
    found = held_by_two(a_cluster("pair", *servers), GtidSet.parse(f"{A}:1-4"))
    assert found == GtidSet.parse(f"{A}:{held}" if held else "")

"""Gaps in what a third server committed: whether the source logged them before what came since.

b replicates to c; a, whose transactions they are, is gone. c has not executed a:3. Each case changes
one fact.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from gtid import GtidSet
from tests.snapshots import NOON, A, B, C, a_channel, a_cluster, a_server, with_facts
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Finding
from topology.facts.cluster_facts import gather_facts
from topology.facts.log_order import received_by
from topology.policy import Policy
from topology.questions.log_questions import questions_of
from topology.readings.history_evidence import CommitRecord, HistoryEvidence
from topology.readings.snapshot import ClusterSnapshot

IN_ORDER = (("gtid_mode", "ON"), ("replica_parallel_workers", "1"))
OUT_OF_ORDER = (
    ("gtid_mode", "ON"),
    ("replica_parallel_workers", "4"),
    ("replica_preserve_commit_order", "OFF"),
)
PERMISSIVE = (("gtid_mode", "ON_PERMISSIVE"), ("replica_parallel_workers", "1"))
OTHER = a_channel("x", None, name="two", gtid_retrieved=GtidSet.parse(f"{A}:4"))


def gtids(text: str) -> GtidSet:
    return GtidSet.parse(text.replace("A:", f"{A}:").replace("B:", f"{B}:"))


def logged(gtid: str, seconds: int | None) -> CommitRecord:
    """Return a commit of the source's log, so many seconds after noon."""
    at = None if seconds is None else NOON + timedelta(seconds=seconds)
    return CommitRecord(gtids(gtid), 1, NOON, is_exact=True, logged_at=at)


def snapshot(
    *,
    answers: HistoryEvidence | None = None,
    executed: str = "A:1-2:4-9",
    settings: tuple[tuple[str, str], ...] = IN_ORDER,
    source: tuple[tuple[str, str], ...] = IN_ORDER,
    channels: tuple[Any, ...] = (),
    retrieved: str = "",
) -> ClusterSnapshot:
    channel = a_channel("b", B, gtid_retrieved=gtids(retrieved), received_to=None)
    b = a_server("b", B, gtids("A:1-9"), settings=source)
    c = a_server("c", C, gtids(executed), settings=settings, channels=(channel, *channels))
    read = a_cluster("pair", b, c)
    return replace(read, last=(replace(read.last[0], history_evidence=answers), read.last[1]))


def backlog(found: ClusterSnapshot) -> Finding:
    [one] = [each for each in audit_cluster(found, Policy()).findings if each.code in ("T1", "T3")]
    return one


def log(*records: CommitRecord) -> HistoryEvidence:
    return HistoryEvidence(None, records)


BEFORE, AFTER = log(logged("A:3", 1), logged("A:4", 2)), log(logged("A:3", 2), logged("A:4", 1))


@pytest.mark.parametrize(
    ("facts", "severity"),
    [
        ({"answers": BEFORE}, "warning"),
        ({"answers": BEFORE, "retrieved": "A:3"}, "warning"),  # received: T1
        ({"answers": AFTER}, "info"),  # a relay with parallel workers logs so
        ({"answers": log(logged("A:3", 1), logged("A:4", 1))}, "info"),  # in either order
        ({"answers": log(logged("A:3", None), logged("A:4", None))}, "info"),  # before 8.0.1
        ({"answers": log(logged("A:3", 1))}, "info"),
        ({"answers": log(logged("A:4", 1))}, "info"),
        ({"answers": None}, "info"),
        ({"answers": BEFORE, "settings": OUT_OF_ORDER}, "info"),
        # Another channel of now may have brought what follows.
        ({"answers": BEFORE, "channels": (OTHER,)}, "info"),
        ({"answers": BEFORE, "channels": (OTHER,), "retrieved": "A:4"}, "info"),
        (
            {
                "answers": BEFORE,
                "channels": (replace(OTHER, gtid_retrieved=GtidSet()),),
                "retrieved": "A:4",
            },
            "warning",
        ),
        # What follows the gap is missing as well.
        ({"answers": BEFORE, "executed": "A:1-2"}, "info"),
    ],
)
def test_what_was_logged_before_a_later_one_that_is_there_was_passed(
    facts: dict[str, Any], severity: str
) -> None:
    found = backlog(snapshot(**facts))
    assert found.severity.value == severity
    assert ("compare the rows first" in found.explanation) is (severity == "warning")


UNREAD = HistoryEvidence(None, (), "commits: access denied")


@pytest.mark.parametrize(
    ("facts", "severity"),
    [
        ({}, "warning"),
        ({"retrieved": "A:3"}, "warning"),
        ({"settings": IN_ORDER}, "info"),  # nothing permits sql_replica_skip_counter
        ({"settings": (("gtid_mode", "ON_PERMISSIVE"), *OUT_OF_ORDER[1:])}, "info"),
        ({"source": OUT_OF_ORDER}, "info"),
        ({"answers": None}, "info"),
        ({"answers": AFTER}, "info"),
        ({"executed": "A:1-2"}, "info"),
    ],
)
def test_a_gap_whose_order_was_not_read_is_no_matter_of_course(
    facts: dict[str, Any], severity: str
) -> None:
    one = backlog(snapshot(**{"answers": UNREAD, "settings": PERMISSIVE, **facts}))
    assert one.severity.value == severity
    assert ("could not read it" in one.explanation) is (severity == "warning")


@pytest.mark.parametrize(
    ("facts", "asked"),
    [
        ({}, "A:3-4"),
        ({"retrieved": "A:3"}, "A:3-4"),
        ({"executed": "A:1-2:5-9"}, "A:4-5"),
        ({"executed": "A:1-2:4:6-9"}, "A:3-6"),
        ({"executed": "A:1-2"}, ""),
        ({"settings": OUT_OF_ORDER}, ""),
        ({"channels": (OTHER,)}, ""),
    ],
)
def test_the_log_is_asked_for_both_sides_of_each_gap(facts: dict[str, Any], asked: str) -> None:
    found = questions_of(gather_facts(snapshot(**facts), Policy()))
    wanted = GtidSet.union_of(found["b"].commits) if "b" in found else GtidSet()
    assert gtids(asked) <= wanted
    assert bool(asked) or not wanted & gtids("A:4")


@pytest.mark.parametrize(("uuid", "expected"), [(C, "A:1-2"), (None, f"A:1-2,{C}:1")])
def test_a_channel_has_not_delivered_what_the_replica_committed(
    uuid: UUID | None, expected: str
) -> None:
    facts = gather_facts(snapshot(executed=f"A:1-2,{C}:1"), Policy())
    [edge] = facts.edges
    replica = with_facts(facts.last["c"], server_uuid=uuid)
    assert received_by(edge, replica) == gtids(expected)

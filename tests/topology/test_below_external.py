"""Two servers with an external source between them: what may never arrive, and what may."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from gtid import GtidSet
from tests.snapshots import A, B, C, a_channel, a_cluster, a_server
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Finding, Grade, Severity
from topology.facts.below_external import missing_below_external
from topology.facts.cluster_facts import gather_facts, severe_differences
from topology.policy import Policy
from topology.readings.read_once import as_last_reading
from topology.readings.snapshot import ServerSnapshot, ThreadState

D = UUID("dddddddd-0000-0000-0000-000000000000")
DECLARED = Policy(external_sources=frozenset({"m.example:3306", "n.example:3306"}))


def gtids(text: str) -> GtidSet:
    for letter, uuid in (("A", A), ("B", B), ("C", C), ("D", D)):
        text = text.replace(f"{letter}:", f"{uuid}:")
    return GtidSet.parse(text)


def below(name: str, executed: str, external: str = "m", **facts: Any) -> ServerSnapshot:
    """Make a server below an external source."""
    uuid = {"b": B, "c": C}[name]
    return a_server(name, uuid, gtids(executed), channels=(a_channel(external, None, **facts),))


def audited(
    *servers: ServerSnapshot, first: dict[str, str] | None = None, policy: Policy = DECLARED
) -> ClusterAudit:
    """Audit servers; `first` are the sets of the first reading where they are others."""
    snapshot = a_cluster("apart", *servers)
    before = tuple(
        replace(each, gtid_executed=gtids((first or {})[each.name]))
        if each.name in (first or {})
        else each
        for each in snapshot.first
    )
    return audit_cluster(replace(snapshot, first=before), policy)


def apart(audit: ClusterAudit) -> list[Finding]:
    return [each for each in audit.findings if each.code == "J4"]


SOURCE = a_server("a", A, gtids("A:1-9"), channels=())


def test_what_stands_is_read_again_before_it_is_reported() -> None:
    """A large transaction of the external source stands for as long as it takes."""
    for first, is_severe in (("A:1-6", True), ("A:1-5", False)):
        snapshot = a_cluster("apart", SOURCE, below("b", "A:1-6"))
        before = (snapshot.first[0], replace(snapshot.first[1], gtid_executed=gtids(first)))
        facts = gather_facts(replace(snapshot, first=before), DECLARED)
        assert bool(severe_differences(facts)) is is_severe
        assert not severe_differences(replace(facts, policy=Policy()))


@pytest.mark.parametrize(
    ("facts", "first", "missing"),
    [
        ({}, {}, "A:7-9"),
        ({}, {"b": "A:1-5"}, ""),  # A:6 arrived between the readings
        ({}, {"a": "A:1-6"}, ""),  # a committed the rest between the readings
        ({"gtid_retrieved": gtids("A:1-9")}, {}, ""),  # it waits for the applier of b
        ({"receiver": ThreadState.STOPPED}, {}, ""),  # A7 says so
        ({"applier": ThreadState.STOPPED}, {}, ""),
        ({"external": "other"}, {}, ""),  # not declared: the verdict is UNKNOWN
    ],
)
def test_what_stands_below_an_external_source_is_a_warning(
    facts: dict[str, Any], first: dict[str, str], missing: str
) -> None:
    found = [
        each
        for each in apart(audited(SOURCE, below("b", "A:1-6", **facts), first=first))
        if each.grade is not Grade.UNKNOWN
    ]
    assert [(str(each.gtid_set), each.replica) for each in found] == (
        [(str(gtids(missing)), "b")] if missing else []
    )
    for each in found:
        assert (each.grade, each.severity) == (Grade.LIKELY, Severity.WARNING)
        assert "Nothing of the same origin arrived between the readings." in each.explanation


@pytest.mark.parametrize(("external", "is_found"), [("m", True), ("n", False)])
def test_what_a_server_below_the_same_source_wrote_counts_from_the_first_one_on(
    external: str, *, is_found: bool
) -> None:
    """b wrote B:1; c has nothing of b, and is below the same source, or below another one."""
    [*found] = apart(audited(below("b", "A:1-9,B:1"), below("c", "A:1-9", external)))
    assert [(each.replica, str(each.gtid_set)) for each in found] == (
        [("c", str(gtids("B:1")))] if is_found else []
    )


def test_what_a_follower_wrote_never_arrives_on_a_server_without_a_source() -> None:
    written = below("b", "A:1-9,B:1-2")
    [found] = apart(audited(SOURCE, written))
    assert (found.replica, found.gtid_set) == ("b", gtids("B:1-2"))
    assert "a, whose transactions it has, receives from no server" in found.explanation
    # a received from b once: it was detached, and J1 says so.
    detached = replace(SOURCE, gtid_executed=gtids("A:1-9,B:1"))
    assert apart(audited(detached, written)) == []
    assert "J1" in {each.code for each in audited(detached, written).findings}
    allowed = replace(DECLARED, allowed_uuids=frozenset({B}))
    assert apart(audited(SOURCE, written, policy=allowed)) == []
    fed = replace(SOURCE, channels=(a_channel("n", None),))
    assert apart(audited(fed, written)) == []
    assert apart(audited(replace(SOURCE, gtid_executed=gtids("C:1")), below("b", "B:1"))) == []


def test_a_gap_that_no_other_server_fills_is_not_known_to_be_one() -> None:
    gap = "A:1-3:5-9"
    assert apart(audited(replace(SOURCE, gtid_executed=gtids(gap)), below("b", gap))) == []
    [found] = apart(audited(SOURCE, below("b", gap)))
    assert found.gtid_set == gtids("A:4")


def test_what_several_servers_have_is_reported_once() -> None:
    other = a_server("d", D, gtids("A:1-9,D:1"), channels=())
    assert len(apart(audited(SOURCE, below("b", "A:1-6"), other))) == 1
    assert len(apart(audited(SOURCE, below("b", "A:1-9,B:1,D:1"), other))) == 1


def test_a_server_that_is_below_is_compared_by_its_channel() -> None:
    """Also while that channel is stopped: what c has beyond b is errant there."""
    for receiver in (ThreadState.RUNNING, ThreadState.STOPPED):
        fed = a_server("c", C, gtids("A:1-9"), channels=(a_channel("b", B, receiver=receiver),))
        assert apart(audited(below("b", "A:1-6"), fed)) == []


def test_a_server_with_an_audited_source_is_compared_with_that() -> None:
    both = below("b", "A:1-6")
    of_two = replace(both, channels=(*(both.channels or ()), a_channel("a", A, name="a")))
    assert apart(audited(SOURCE, of_two)) == []


def test_what_a_server_lost_of_its_own_is_no_backlog() -> None:
    """E3, E6 and H7 report that."""
    holder = replace(SOURCE, gtid_executed=gtids("A:1-9,B:1-3:5"))
    assert apart(audited(holder, below("b", "A:1-9,B:1-3"))) == []


def test_one_reading_shows_no_progress() -> None:
    snapshot = a_cluster("apart", SOURCE, below("b", "A:1-6"))
    once = replace(snapshot, last=tuple(map(as_last_reading, snapshot.first)))
    facts = gather_facts(once, DECLARED)
    found = missing_below_external(facts.graph, DECLARED, facts.fully_read)
    assert [each.sign for each in found] == []

"""Holes that a connection would fill after later transactions: never a plain "yes"."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from gtid import GtidSet
from tests.snapshots import A, B, a_channel, a_cluster, a_server
from tests.topology.test_group_handshake import CONFIGURED, member, server
from tests.topology.test_group_handshake import matrix as group_matrix
from tests.topology.test_group_handshake import sets as group_sets
from tests.topology.test_handshake import matrix, one, sets
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Grade, Verdict
from topology.facts.cluster_facts import gather_facts
from topology.facts.late_transactions import late_part
from topology.facts.source_answer import Outcome
from topology.handshake.matrix import handshake_matrix
from topology.handshake.promotion import Promotion, PromotionStep, promotion_of
from topology.handshake.promotion_steps import promotion_steps
from topology.policy import Policy
from topology.readings.snapshot import ReadServer, ServerSnapshot
from topology.rules.build import evidence, finding
from topology.rules.could_join import can_join

D = UUID("dddddddd-0000-0000-0000-000000000000")


@pytest.mark.parametrize(
    ("executed", "fetched", "late"),
    [
        ("a:1-7:9-10", "a:8:11", "a:8"),
        ("a:1-7", "a:8-9", ""),
        ("a:5-9", "a:1-4", "a:1-4"),
        ("", "a:1-4", ""),
        # Each origin has an order of its own, and so has each tag.
        ("a:1-9", "b:1-3", ""),
        ("a:1-9 b:2", "b:1:3", "b:1"),
    ],
)
def test_what_is_below_a_later_one_of_its_origin_is_late(
    executed: str, fetched: str, late: str
) -> None:
    server = a_server("r", B, sets(executed))
    assert isinstance(server, ServerSnapshot)
    [read] = [each for each in a_cluster("one", server).last if isinstance(each, ReadServer)]
    assert late_part(read, sets(fetched), ()) == sets(late)


@pytest.mark.parametrize(
    ("executed", "fetched", "late"),
    [
        ("1-7:9", "8:10", "8"),
        # Another member had the second block, and the first one goes on.
        ("1-7:1000001-1000003", "8", ""),
        ("1-7:1000001-1000003", "8-1000000", ""),
        ("1-7:1000001:1000003", "1000002:1000004", "1000002"),
        # An interval in two blocks.
        ("1-7:999999:1000002", "8-999998:1000000-1000001", "8-999998:1000001"),
    ],
)
def test_numbers_of_a_group_have_an_order_within_a_block(
    executed: str, fetched: str, late: str
) -> None:
    def of_group(numbers: str) -> GtidSet:
        return GtidSet.parse(f"{D}:{numbers}" if numbers else "")

    [read] = a_cluster("one", a_server("r", B, of_group(executed))).last
    assert isinstance(read, ReadServer)
    assert late_part(read, of_group(fetched), (D,)) == of_group(late)


# r was moved by position past a:8, and has executed what followed.
SOURCE, WHOLE = one("a", "a:1-10"), one("b", "a:1-10")
HOLED = one("c", "a:1-7:9-10")


def steps_of(found: Promotion, *servers: ServerSnapshot) -> tuple[PromotionStep, ...]:
    return promotion_steps(found, a_cluster("cluster", *servers))


def test_a_server_with_a_hole_is_not_simply_served() -> None:
    found = matrix(SOURCE, WHOLE, HOLED)
    answer = found.answer(replica="c", source="b")
    assert (answer.outcome, answer.late, answer.attaches) == (Outcome.SERVED, sets("a:8"), False)
    [doubt] = answer.doubts
    assert "c would execute" in doubt
    assert "after later transactions that it has" in doubt
    assert found.answer(replica="b", source="c").outcome is not Outcome.SERVED
    assert found.verdict is Verdict.CRITICAL, "no server is a source for all"


def test_a_promotion_does_not_point_a_server_with_a_hole() -> None:
    found = promotion_of(matrix(SOURCE, WHOLE, HOLED), "b")
    assert (found.verdict, found.doubts) == (Verdict.WARNING, ())
    assert found.blocked == {"c"}
    steps = [each for each in steps_of(found, SOURCE, WHOLE, HOLED) if each.server == "c"]
    assert [each.statements for each in steps] == [(), ()]
    assert "after later transactions that it has. Older rows may replace" in steps[0].what
    assert "Do not point it to b before the repair" in steps[1].what


def test_a_candidate_with_a_hole_fetches_nothing_before_a_repair() -> None:
    found = promotion_of(matrix(SOURCE, WHOLE, HOLED), "c")
    [missing] = found.missing
    assert (missing.donor, missing.late, missing.is_open) == (None, sets("a:8"), False)
    assert found.verdict is Verdict.CRITICAL
    assert found.best == "a"
    steps = [each for each in steps_of(found, SOURCE, WHOLE, HOLED) if each.server == "c"]
    assert not any(each.statements for each in steps)
    assert any("It misses" in each.what and "Plan the repair" in each.what for each in steps)


def test_what_waits_in_its_relay_log_is_not_late() -> None:
    """Workers execute it out of order, and only what is independent (T1)."""
    waiting = replace(
        one("c", "a:1-7:9-10"), channels=(a_channel("a", A, gtid_retrieved=sets("a:1-10")),)
    )
    answer = matrix(SOURCE, WHOLE, waiting).answer(replica="c", source="b")
    assert (answer.late, answer.attaches) == (GtidSet(), True)


def test_what_its_applier_has_passed_does_not_wait() -> None:
    """H8: Retrieved_Gtid_Set lists it for good, and nothing executes it."""
    channel = a_channel("a", A, gtid_retrieved=sets("a:1-10"))
    passed = replace(one("c", "a:1-7:9-10"), channels=(channel,))
    snapshot = a_cluster("cluster", SOURCE, WHOLE, passed)
    facts, audit = gather_facts(snapshot, Policy()), audit_cluster(snapshot)
    found = finding(
        facts,
        "H8",
        source="a",
        replica="c",
        gtid_set=sets("a:8"),
        grade=Grade.LIKELY,
        proof=(evidence("missing", sets("a:8"), facts.last["c"]),),
        explanation="",
    )
    for findings, late in (((found,), "a:8"), ((replace(found, replica="b"),), "")):
        shown = handshake_matrix(snapshot, replace(audit, findings=findings), Policy())
        assert shown.answer(replica="c", source="b").late == sets(late)


# -- groups ---------------------------------------------------------------------------------------


def test_a_server_with_a_hole_does_not_join_its_group_before_a_repair() -> None:
    left = server("c", "g:1-7:9-10", settings=CONFIGURED)
    members = [member(name, "g:1-10", sees="ab") for name in "ab"]
    servers = (*members, left)
    shown = group_matrix(*servers)
    answer = shown.answer(replica="c", source="a")
    assert (answer.outcome, answer.joins, answer.late) == (Outcome.SERVED, "c", group_sets("g:8"))
    for candidate in "bc":
        found = promotion_of(shown, candidate)
        steps = promotion_steps(found, a_cluster("cluster", *servers))
        joins = [each for each in steps if "START GROUP_REPLICATION;" in each.statements]
        assert (joins, found.verdict is Verdict.OK) == ([], False)
        assert any(each.server == "c" and "this hole" in each.what for each in steps), steps
    whole = server("c", "g:1-7", settings=CONFIGURED)
    found = promotion_of(group_matrix(*members, whole), "b")
    steps = promotion_steps(found, a_cluster("cluster", *members, whole))
    assert any("START GROUP_REPLICATION;" in each.statements for each in steps)
    [a7] = [each for each in audit_cluster(a_cluster("g", *servers)).findings if each.code == "A7"]
    assert "Repair this hole first" in a7.explanation


def test_an_unlinked_server_with_a_hole_is_likely_to_join_at_most() -> None:
    cluster = a_cluster("two", one("a", "a:1-10"), one("c", "a:1-7:9-10"))
    [found] = can_join(gather_facts(cluster, Policy()))
    assert (found.code, found.grade) == ("J1", Grade.LIKELY)
    assert "c would execute" in found.explanation
    assert "Repair this hole first" in found.explanation

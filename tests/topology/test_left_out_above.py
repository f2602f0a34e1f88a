"""Filters above a candidate: its GTIDs are complete, and its rows may not be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.snapshots import A, B, C, a_channel, a_cluster
from tests.topology.test_group_handshake import TWO, D, server
from tests.topology.test_handshake import matrix, one, sets
from tests.topology.test_promotion_order import of, of_servers
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Verdict
from topology.handshake.offered_sets import answers_to_set
from topology.policy import Policy
from topology.readings.snapshot import ServerSnapshot, ThreadState

TABLE = "Replicate_Ignore_Table=d.u"
FILTERED = a_channel("a", A, filters=(TABLE,))
IGNORED = (("binlog_ignore_db", "d"), ("gtid_mode", "ON"))


def chain(middle: dict[str, Any], **last: Any) -> tuple[ServerSnapshot, ...]:
    """Return a ─▶ b ─▶ c, with what is otherwise on b and on c."""
    return (
        one("a", "a:1-5"),
        one("b", "a:1-5", **{"channels": (a_channel("a", A),), **middle}),
        one("c", "a:1-5", **{"channels": (a_channel("b", B),), **last}),
    )


@pytest.mark.parametrize(
    ("middle", "said"),
    [
        ({"channels": (FILTERED,)}, f"does not apply all that it receives ({TABLE}), and c"),
        (
            {"channels": (a_channel("a", A, filters=("Replicate_Rewrite_DB=(d,e)",)),)},
            "does not apply all that it receives (Replicate_Rewrite_DB=(d,e)), and c receives",
        ),
        ({"settings": IGNORED}, "does not log all of its changes (binlog_ignore_db = d), and c"),
        (
            {"settings": (("binlog_do_db", "x"), ("gtid_mode", "ON"))},
            "does not log all of its changes (binlog_do_db = x), and c receives through it",
        ),
        ({}, ""),
    ],
)
def test_a_candidate_below_a_filter_may_not_have_all_rows(
    middle: dict[str, Any], said: str
) -> None:
    servers = chain(middle)
    promotion, steps = of_servers("c", *servers)
    assert promotion.verdict is (Verdict.WARNING if said else Verdict.OK)
    warned = [step.what for step in of(steps, "c") if step.what.startswith("B does not")]
    assert [said in each for each in warned] == ([True] if said else [])
    found = matrix(*servers)
    for replica in "ab":
        doubts = found.answer(replica=replica, source="c").doubts
        assert [said in each for each in doubts] == ([True] if said else [])
    # What is above the filter has all rows.
    assert of_servers("a", *servers)[0].verdict is Verdict.OK


def test_a_filter_counts_over_any_hops_and_on_a_stopped_channel() -> None:
    stopped = replace(a_channel("c", C), receiver=ThreadState.STOPPED)
    far = server("d", "a:1-5", channels=(stopped,))
    promotion, _ = of_servers("d", *chain({"channels": (FILTERED,)}), far)
    assert [each.partition(" does")[0] for each in promotion.doubts] == ["b"]
    promotion, _ = of_servers("d", *chain({}), far)
    assert promotion.doubts == ()


def test_in_a_pair_nothing_of_the_candidate_is_lost_by_the_filter_of_the_other_one() -> None:
    """All that passes the channel of b from a was on a before."""
    back = a_channel("b", B)
    both = (one("a", "a:1-5", channels=(back,)), one("b", "a:1-5", channels=(FILTERED,)))
    assert of_servers("a", *both)[0].verdict is Verdict.OK
    # What b receives from another source reaches a without its rows.
    other = replace(FILTERED, name="other", source_host="d.example", source_uuid=D)
    for channels, warned in (((FILTERED, other), True), ((FILTERED,), False)):
        servers = (both[0], replace(both[1], channels=channels), server("d", "a:1-5"))
        assert bool(of_servers("a", *servers)[0].doubts) is warned
    # A ring goes through a again: only what lies between counts.
    ring = (
        one("a", "a:1-5", channels=(a_channel("c", C),)),
        one("b", "a:1-5", channels=(FILTERED,)),
        one("c", "a:1-5", channels=(a_channel("b", B, filters=(TABLE,)),)),
    )
    assert [each.partition(" does")[0] for each in of_servers("a", *ring)[0].doubts] == ["c"]


def test_a_filter_of_a_source_that_is_not_one_of_the_servers_counts() -> None:
    policy = Policy(external_sources=frozenset({"x.example:3306"}))
    outside = a_channel("x", D, filters=(TABLE,))
    servers = chain({"channels": (outside,)})
    found = matrix(*servers, policy=policy)
    assert [TABLE in each for each in found.answer(replica="a", source="c").doubts] == [True]


def test_what_a_donor_does_not_log_does_not_arrive_with_what_it_sends() -> None:
    for settings, warned in ((IGNORED, True), ((("gtid_mode", "ON"),), False)):
        servers = (one("a", "a:1-5"), one("b", "a:1-5 b:1", settings=settings))
        promotion, steps = of_servers("a", *servers)
        assert [each.donor for each in promotion.missing] == ["b"]
        assert any("does not log all" in step.what for step in steps) is warned
        source = one("a", "a:1-5", purged="a:1-4")
        donor, behind = one("b", "a:1-5", settings=settings), one("c", "a:1-2")
        promotion, _ = of_servers("a", source, donor, behind)
        assert [each.donor for each in promotion.obstacles] == ["b"]
        assert bool(promotion.doubts) is warned


def test_a_member_of_a_group_may_not_have_what_another_one_does_not_log() -> None:
    settings = (*(TWO[0].settings or ()), ("binlog_ignore_db", "d"))
    unlogged = replace(TWO[0], settings=tuple(sorted(settings)))
    for first, said in ((unlogged, True), (TWO[0], False)):
        for candidate in "ab":
            promotion, _ = of_servers(candidate, first, TWO[1])
            assert any("does not log all" in each for each in promotion.doubts) is said
            assert promotion.verdict is (Verdict.WARNING if said else Verdict.OK)
        # A server that receives nothing from the group has all that it wrote.
        assert of_servers("d", first, TWO[1], server("d", "g:1-9"))[0].doubts == ()


def test_a_refused_connection_has_no_remark_about_filters() -> None:
    servers = (*chain({"channels": (FILTERED,)}), server("d", "a:1-5 c:1"))
    assert matrix(*servers).answer(replica="d", source="c").doubts == ()


def test_the_answer_to_a_set_has_the_filters_above_its_source() -> None:
    snapshot = a_cluster("cluster", *chain({"settings": IGNORED}))
    audit = audit_cluster(snapshot)
    found = answers_to_set(snapshot, audit, Policy(), sets("a:1-5"))
    assert ["receives through" in str(each.doubts) for each in found.answers] == [
        *(False, False, True)
    ]

"""Promotions at the edges: several primaries, partitions, named channels, two channels."""

from __future__ import annotations

from dataclasses import replace

from tests.snapshots import A, B, a_channel, a_cluster, an_unread
from tests.topology.test_group_handshake import (
    JOIN,
    REPLICA,
    TWO,
    D,
    G,
    left,
    matrix,
    member,
    promoted,
    server,
    sets,
)
from tests.topology.test_handshake import one
from tests.topology.test_promotion_order import (
    OTHER,
    PURGED,
    QUEUE,
    RESET,
    STOP,
    of,
    of_servers,
    written,
)
from tests.topology.test_unlike_contents import compared, with_differences
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Verdict
from topology.handshake.matrix import handshake_matrix
from topology.handshake.promotion import promotion_of
from topology.handshake.promotion_steps import promotion_steps
from topology.policy import Policy


def test_one_primary_of_several_fetches_itself() -> None:
    several = tuple(member(name, "g:1-9", sees="ab", primaries="ab") for name in "ab")
    promotion, steps = promoted("b", *several, server("d", "g:1-10"))
    assert [each.receiver for each in promotion.missing] == ["b"]
    assert of(steps, "b")[-1].statements == (STOP, RESET)


def test_a_member_recovers_nothing_from_another_part_of_its_group() -> None:
    """Both parts use the GTIDs of the group; a would have to leave its part first."""
    other = member("c", "g:1-10", sees="c", primaries="c")
    promotion, steps = promoted("a", *TWO, other)
    assert (promotion.verdict, promotion.blocked) == (Verdict.CRITICAL, frozenset("c"))
    assert [(each.gtid_set, each.donor) for each in promotion.missing] == [(sets("g:10"), None)]
    assert not any(step.statements for step in of(steps, "c"))


def test_nothing_is_fetched_for_a_candidate_that_is_kept_out() -> None:
    servers = (*TWO, left("c", "g:1-9 c:1"), server("d", "g:1-9 d:1"))
    promotion, steps = promoted("c", *servers)
    assert (promotion.is_kept_out, bool(promotion.missing)) == (True, True)
    assert not any(step.statements for step in steps)
    assert sets("d:1").shortened() not in written(tuple(of(steps, "c")))


def test_each_missing_set_has_its_own_holders_and_only_the_groups_own_is_used_again() -> None:
    far = replace(server("c", "g:1-9 c:1"), channels=(a_channel("a", A),))
    promotion, steps = promoted("a", *TWO, far, server("d", "g:1-10"))
    assert {(each.donor, each.holders) for each in promotion.missing} == {
        ("c", ("c",)),
        ("d", ("d",)),
    }
    by_c, by_d = of(steps, "a")[:2]
    assert ("(E4)" in by_c.what, "(E4)" in by_d.what) == (False, True)


def test_a_blocked_queue_of_another_member_does_not_have_it() -> None:
    servers = (member("a", "g:1-9", sees="ab"), QUEUE[1], server("d", "g:1-10", purged="g:1-10"))
    snapshot = a_cluster("cluster", QUEUE[0], *servers[1:])
    [queued] = (each for each in audit_cluster(snapshot).findings if each.code == "T2")
    snapshot = a_cluster("cluster", *servers)
    audit = replace(audit_cluster(snapshot), findings=(replace(queued, code="A5"),))
    found = handshake_matrix(snapshot, audit, Policy())
    assert found.queues == (("b", sets("g:10")),)
    assert [each.gtid_set for each in promotion_of(found, "a").missing] == [sets("g:10")]
    assert promotion_of(found, "b").missing == ()


def test_a_server_that_fetched_before_it_joins_is_detached_first() -> None:
    """A group with one primary accepts no server whose channel runs (3092)."""
    assert matrix(*PURGED, left("c", "g:1-5")).beyond == ()  # no member is rebuilt
    _, steps = promoted("b", *PURGED, left("c", "g:1-5"), REPLICA)
    fetch, join = of(steps, "c")
    assert fetch.what.startswith(f"Each member has purged {G}:6-8")
    assert fetch.statements[-2:] == (STOP, RESET)
    assert join.statements == JOIN


def test_a_server_of_another_group_without_members_is_pointed() -> None:
    _, steps = promoted("a", *TWO, server("c", "g:1-9", settings=OTHER))
    assert "SOURCE_HOST = 'a.example'" in of(steps, "c")[-1].statements[1]


def test_a_candidate_is_detached_from_the_channels_that_it_has() -> None:
    channels = (a_channel("a", A, name="one"),)
    settings = (("read_only", "ON"), ("super_read_only", "ON"))
    servers = (one("a", "a:1"), one("b", "a:1", channels=channels, settings=settings))
    _, steps = of_servers("b", *servers)
    assert of(steps, "b")[-1].statements == (
        "STOP REPLICA FOR CHANNEL 'one';",
        "RESET REPLICA ALL FOR CHANNEL 'one';",
        "SET GLOBAL super_read_only = OFF;",
        "SET GLOBAL read_only = OFF;",
    )


def test_a_pair_that_replicates_in_both_directions_stays_one() -> None:
    """The text said to keep the channel, above statements that ended it."""
    settings = (("read_only", "ON"),)
    servers = (
        one("a", "a:1", channels=(a_channel("b", B),)),
        one("b", "a:1", channels=(a_channel("a", A),), settings=settings),
    )
    _, steps = of_servers("b", *servers)
    [last] = of(steps, "b")
    assert last.statements == ("SET GLOBAL read_only = OFF;",)
    assert last.what.startswith("Let clients write. It keeps its channel from a")
    third = (a_channel("a", A), a_channel("d", D, name="other"))
    three = (servers[0], one("b", "a:1", channels=third), one("d", "a:1"))
    _, steps = of_servers("b", *three)
    assert of(steps, "b")[-1].statements == (
        "STOP REPLICA FOR CHANNEL 'other';",
        "RESET REPLICA ALL FOR CHANNEL 'other';",
    )
    assert "It keeps its channel from a" in of(steps, "b")[-1].what


def test_of_two_channels_the_operator_chooses() -> None:
    channels = (a_channel("d", D, name="one"), a_channel("b", B, name="two"))
    servers = (
        one("a", "a:1"),
        one("b", "a:1"),
        one("c", "a:1", channels=channels),
        server("d", "a:1"),
    )
    _, steps = of_servers("a", *servers)
    [point] = of(steps, "c")
    assert (point.statements, "It has 2 channels: choose" in point.what) == ((), True)


def test_a_donor_with_two_channels_below_it_has_no_statement_either() -> None:
    channels = (a_channel("a", A, name="one"), a_channel("d", D, name="two"))
    servers = (
        one("a", "a:1-5", purged="a:1-4"),
        one("b", "a:1-5"),
        one("c", "a:1-2", channels=channels),
        server("d", "a:1-5"),
    )
    _, steps = of_servers("a", *servers)
    assert of(steps, "c")[0].what.endswith("choose the one to change.")
    assert of(steps, "c")[0].statements == ()
    assert matrix(*servers).beyond == ()


def test_what_is_not_known_is_said_before_a_group_is_bootstrapped() -> None:
    """A member that crashed may have more than all others."""
    promotion, steps = promoted("a", left("a", "g:1-9"), left("b", "g:1-9"), an_unread("c"))
    assert promotion.verdict is Verdict.UNKNOWN
    [unread] = of(steps, "c")
    [bootstrap] = of(steps, "a")
    assert steps.index(unread) < steps.index(bootstrap)
    assert "would use its GTIDs for other transactions (E4)" in unread.what


def test_a_server_of_which_the_answer_is_not_known_does_not_join() -> None:
    """c may have the content of b, which its group does not have."""
    servers = (member("a", "a:1-9", sees="a"), left("b", "a:1-9"), left("c", "a:1-9"))
    snapshot = a_cluster("cluster", *servers)
    for contents, joins in ((None, False), (compared(("a", "c")), True)):
        known = snapshot.with_contents(contents)
        audit = with_differences(known, "a:9", ("a", "b"))
        promotion = promotion_of(handshake_matrix(known, audit, Policy()), "a")
        steps = promotion_steps(promotion, known)
        assert any(step.statements == JOIN for step in of(steps, "c")) is joins
        assert not any(step.statements for step in of(steps, "b"))


def test_what_a_group_with_members_loses_it_uses_again() -> None:
    _, steps = promoted("a", *TWO, server("d", "g:1-10", purged="g:1-10"))
    lost = of(steps, "a")[0].what
    assert lost.endswith(
        "Without them, the group would use these GTIDs for other transactions (E4)."
    )


def test_a_donor_spreads_nothing_that_the_candidate_does_not_get() -> None:
    """a and b have one server_id, so a cannot fetch b:1; c would get it from b."""
    a, c = one("a", "a:1-5", purged="a:1-4", server_id=7), one("c", "a:1-2")
    for executed, donor in (("a:1-5 b:1", None), ("a:1-5", "b")):
        promotion, steps = of_servers("a", a, one("b", executed, server_id=7), c)
        assert {each.answer.replica: each.donor for each in promotion.obstacles}["c"] == donor
        assert any("CHANGE" in text for step in of(steps, "c") for text in step.statements) is bool(
            donor
        )
    # A candidate that fetches it first has it, too.
    promotion, _ = of_servers("a", a, one("b", "a:1-5 b:1"), c)
    assert {each.answer.replica: each.donor for each in promotion.obstacles} == {
        "b": None,
        "c": "b",
    }


def test_a_server_with_more_than_the_candidate_gets_is_not_pointed_after_its_donor() -> None:
    """c has b:1 already, and a cannot fetch it."""
    a = one("a", "a:1-5", purged="a:1-4", server_id=7)
    servers = (a, one("b", "a:1-5 b:1", server_id=7), one("c", "a:1-2 b:1"))
    promotion, steps = of_servers("a", *servers)
    assert (promotion.verdict, "c" in promotion.blocked) == (Verdict.CRITICAL, True)
    assert not any(step.statements for step in of(steps, "c"))


def test_a_candidate_brings_nothing_into_its_group_by_the_channel_before_it_joins() -> None:
    """d also has d:1. If the primary fetches that, c may have it; otherwise the group refuses c."""
    outside = server("d", "g:1-9 d:1", channels=(a_channel("a", A),))
    promotion, _ = promoted("c", *PURGED, left("c", "g:1-5"), outside)
    assert [(each.gtid_set, each.receiver) for each in promotion.missing] == [
        (sets("d:1"), "a"),
        (sets("g:6-9"), "c"),
    ]
    assert not promotion.is_kept_out
    same_id = replace(PURGED[0], server_id=7)
    promotion, steps = promoted(
        "c", same_id, PURGED[1], left("c", "g:1-5"), replace(outside, server_id=7)
    )
    assert (promotion.verdict, promotion.is_kept_out) == (Verdict.CRITICAL, True)
    assert not any(step.statements for step in of(steps, "c"))

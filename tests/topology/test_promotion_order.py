"""The order of a promotion where a wrong step would lose rows, or give one GTID two contents.

Each pair of tests holds what looks the same: a cause that clears by itself, and one that does not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from tests.snapshots import A, B, C, a_channel, a_cluster, an_unread, commits_of
from tests.topology.test_group_handshake import (
    BOOTSTRAP,
    CONFIGURED,
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
from tests.topology.test_handshake import EIGHT, OLD, one
from tests.topology.test_unlike_contents import with_differences
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Finding, Severity, Verdict
from topology.facts.source_answer import Outcome
from topology.handshake.matrix import handshake_matrix
from topology.handshake.promotion import Promotion, PromotionStep, promotion_of
from topology.handshake.promotion_steps import promotion_steps
from topology.policy import Policy
from topology.readings.group_view import GROUP_APPLIER
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot, ThreadState

STOP, RESET = "STOP REPLICA FOR CHANNEL '';", "RESET REPLICA ALL FOR CHANNEL '';"


def written(steps: tuple[PromotionStep, ...]) -> str:
    return "\n".join(text for step in steps for text in (step.what, *step.statements))


def of(steps: tuple[PromotionStep, ...], name: str) -> list[PromotionStep]:
    return [step for step in steps if step.server == name]


# -- a group is bootstrapped ----------------------------------------------------------------------


def test_a_group_is_not_bootstrapped_without_what_a_replica_outside_has() -> None:
    """The group would use g:10 again, and d would count it as executed."""
    promotion, steps = promoted("a", left("a", "g:1-9"), left("b", "g:1-9"), server("d", "g:1-10"))
    [missing] = promotion.missing
    assert (missing.donor, missing.receiver, missing.holders) == ("d", "a", ("d",))
    assert promotion.verdict is Verdict.WARNING
    [fetch], [waits] = of(steps, "a"), of(steps, "d")
    assert fetch.what.startswith(f"d has {G}:10, which a does not have. Without them, the group")
    assert "SOURCE_HOST = 'd.example'" in fetch.statements[1]
    assert f"WAIT_FOR_EXECUTED_GTID_SET('{G}:10')" in fetch.statements[3]
    assert fetch.statements[4:] == (STOP, RESET)
    assert waits.statements == ()
    assert "START GROUP_REPLICATION" not in written(steps)
    assert steps[-1].what == "Run this again: only then can the group be bootstrapped."


def test_a_group_is_bootstrapped_from_a_server_that_has_it_all() -> None:
    """The replica is behind, or has as much: nothing is used again."""
    for executed in ("g:1-9", "g:1-7"):
        servers = (left("a", "g:1-9"), left("b", "g:1-9"), server("d", executed))
        promotion, steps = promoted("a", *servers)
        assert (promotion.verdict, promotion.missing) == (Verdict.WARNING, ())
        assert [step.statements for step in of(steps, "a")] == [BOOTSTRAP]
        assert [step.statements for step in of(steps, "b")] == [JOIN]
        assert "SOURCE_HOST = 'a.example'" in of(steps, "d")[0].statements[1]


def test_what_no_server_can_send_is_repaired_before_the_bootstrap() -> None:
    outside = server("d", "g:1-10", purged="g:1-10")
    promotion, steps = promoted("a", left("a", "g:1-9"), left("b", "g:1-9"), outside)
    assert promotion.verdict is Verdict.CRITICAL
    assert not any(step.statements for step in steps)
    assert "No server can send them to it: plan the repair of d" in of(steps, "a")[0].what


def test_what_no_group_commits_is_lost_and_keeps_no_group_from_its_bootstrap() -> None:
    outside = server("d", "g:1-9 d:1", purged="g:1-9 d:1")
    promotion, steps = promoted("a", left("a", "g:1-9"), left("b", "g:1-9"), outside)
    assert promotion.verdict is Verdict.CRITICAL
    assert of(steps, "a")[-1].statements == BOOTSTRAP
    assert not of(steps, "d")[0].statements


def test_a_server_of_the_group_that_has_more_bootstraps_it_instead() -> None:
    """It was counted as what recovery brings: a group of one recovers nothing."""
    outside = server("d", "g:1-10", purged="g:1-10")
    promotion, steps = promoted("a", left("a", "g:1-9"), left("b", "g:1-10"), outside)
    assert (promotion.verdict, promotion.best) == (Verdict.CRITICAL, "b")
    assert {"b", "d"} <= promotion.blocked
    assert not any(step.statements for step in steps)
    assert "Bootstrap the group from b instead (handshake --promote b)" in of(steps, "a")[0].what
    _, steps = promoted("b", left("a", "g:1-9"), left("b", "g:1-10"), outside)
    assert of(steps, "b")[0].statements == BOOTSTRAP


def test_what_a_replica_outside_sends_lets_the_others_join() -> None:
    promotion, steps = promoted("a", left("a", "g:1-9"), left("b", "g:1-10"), server("d", "g:1-10"))
    assert [(each.donor, each.holders) for each in promotion.missing] == [("d", ("b", "d"))]
    assert promotion.verdict is Verdict.WARNING  # b is refused only until a has it
    assert [step.server for step in steps] == ["", "a", "b", "d", ""]
    assert [bool(step.statements) for step in steps] == [False, True, False, False, False]


def test_a_server_in_state_error_stops_its_plugin_before_it_fetches() -> None:
    gone = member("a", "g:1-9", sees="a", state="ERROR")
    _, steps = promoted("a", gone, left("b", "g:1-9"), server("d", "g:1-10"))
    assert of(steps, "a")[-1].statements[:2] == ("STOP GROUP_REPLICATION;", STOP)


# -- a group with members -------------------------------------------------------------------------


def test_the_primary_fetches_what_its_group_misses() -> None:
    """A secondary has no receiver; a server that joins with more than the group is refused."""
    for candidate, servers in (("b", TWO), ("c", (*TWO, left("c", "g:1-9")))):
        promotion, steps = promoted(candidate, *servers, server("d", "g:1-10"))
        assert [(each.donor, each.receiver) for each in promotion.missing] == [("d", "a")]
        [fetch] = of(steps, "a")
        assert fetch.what.startswith(f"Its group misses {G}:10. Without them, the group would use")
        assert "SOURCE_HOST = 'd.example'" in fetch.statements[1]
        assert fetch.statements[-2:] == (STOP, RESET)
        assert not any(
            "CHANGE" in text for step in of(steps, candidate) for text in step.statements
        )


def test_the_primary_that_fetches_is_detached_at_the_end() -> None:
    promotion, steps = promoted("a", *TWO, server("d", "g:1-10"))
    assert [each.receiver for each in promotion.missing] == ["a"]
    assert RESET not in of(steps, "a")[0].statements
    assert of(steps, "a")[-1].statements == (STOP, RESET)


def test_a_channel_that_was_there_before_is_only_stopped() -> None:
    primary = member("a", "g:1-9", sees="ab", channels=(a_channel("d", D, name="outside"),))
    _, steps = promoted("b", primary, TWO[1], server("d", "g:1-10"))
    fetch = of(steps, "a")[0].statements
    assert "SOURCE_HOST = 'd.example'" in fetch[1]
    assert fetch[-1] == "STOP REPLICA FOR CHANNEL 'outside';"
    assert "RESET" not in "".join(fetch)


def test_a_server_with_what_the_primary_fetches_may_join_after_it() -> None:
    servers = (*TWO, left("c", "g:1-9 c:1"), server("d", "g:1-9 c:1"))
    promotion, steps = promoted("a", *servers)
    assert (promotion.verdict, promotion.blocked) == (Verdict.WARNING, frozenset())
    assert [step.statements for step in of(steps, "c")] == [JOIN]
    # Without a server that sends it, the group refuses it for good.
    promotion, steps = promoted("a", *servers[:3])
    assert promotion.verdict is Verdict.CRITICAL
    assert [step.statements for step in of(steps, "c")] == [()]


# -- clones and rebuilds --------------------------------------------------------------------------

PURGED = tuple(member(name, "g:1-9", sees="ab", purged="g:1-8") for name in "ab")


def test_a_candidate_fetches_what_each_member_has_purged_and_joins() -> None:
    promotion, steps = promoted("c", *PURGED, left("c", "g:1-5"), REPLICA)
    assert (promotion.verdict, promotion.is_kept_out) == (Verdict.WARNING, False)
    texts = [step.what for step in of(steps, "c")]
    assert any(
        "each member has purged some of it. Let it replicate from d" in each for each in texts
    )
    statements = [text for step in of(steps, "c") for text in step.statements]
    assert statements.index(RESET) < statements.index(JOIN[0])


def test_nothing_follows_the_clone_of_a_candidate() -> None:
    """Its sets are those of the donor then: what it fetches before is replaced."""
    outside = server("d", "g:1-9", purged="g:1-9", channels=(a_channel("a", A),))
    candidate = left("c", "g:1-5", channels=(a_channel("d", D),))
    promotion, steps = promoted("c", *PURGED, candidate, outside)
    assert (promotion.verdict, promotion.is_kept_out) == (Verdict.CRITICAL, True)
    assert not any(step.statements for step in steps)
    assert "let clients write" not in written(steps)
    assert of(steps, "c")[-1].what.endswith("then run this again: it has the sets of that member.")
    assert "Do not point it to c" in of(steps, "d")[0].what


def test_what_a_rebuild_would_lose_is_named() -> None:
    source = one("a", "a:1-5", purged="a:1-4")
    for executed, said in (("a:1-2 c:1", True), ("a:1-2", False)):
        servers = (source, one("c", executed))
        steps = promotion_steps(promotion_of(matrix(*servers), "a"), a_cluster("cluster", *servers))
        rebuild = of(steps, "c")[0].what
        assert "rebuild this server" in rebuild
        assert (f"It has {sets('c:1')}, which a does not have: save" in rebuild) is said
    allowed = Policy(allowed_uuids=frozenset({UUID(str(sets("c:1"))[:36])}))
    assert not matrix(source, one("c", "a:1-2 c:1"), policy=allowed).beyond


# -- channels that the steps make, and waits ------------------------------------------------------


def test_a_candidate_is_detached_from_what_it_fetched_from() -> None:
    servers = (one("a", "a:1-5"), one("b", "a:1-5 b:1"))
    steps = promotion_steps(promotion_of(matrix(*servers), "a"), a_cluster("cluster", *servers))
    assert of(steps, "a")[-1].statements == ("STOP REPLICA;", "RESET REPLICA ALL;")
    # Neither a channel before nor one by the steps: there is nothing to detach.
    equal = (one("a", "a:1-5"), one("b", "a:1-5"))
    steps = promotion_steps(promotion_of(matrix(*equal), "a"), a_cluster("cluster", *equal))
    assert of(steps, "a") == []


@pytest.mark.parametrize(
    ("version", "option"), [(EIGHT, "SOURCE_DELAY"), (OLD, "MASTER_DELAY"), (None, "SOURCE_DELAY")]
)
def test_a_wait_names_the_delay_of_its_channel(version: object, option: str) -> None:
    delayed = a_channel("a", A, gtid_retrieved=sets("a:1-5"), delay_seconds=3600)
    for channel, said in ((delayed, True), (replace(delayed, delay_seconds=0), False)):
        servers = (
            one("a", "a:1-5"),
            one("b", "a:1-5", version=version),
            one("c", "a:1-4", version=version, channels=(channel,)),
        )
        steps = promotion_steps(promotion_of(matrix(*servers), "b"), a_cluster("cluster", *servers))
        [wait] = of(steps, "c")
        assert (f"{option} delays c by 3,600 s: the wait takes as long" in wait.what) is said
        assert ("delays" in wait.what) is said


def test_the_delay_of_a_server_above_the_candidate_counts() -> None:
    behind = a_channel("a", A, gtid_retrieved=sets("a:1-5"), delay_seconds=60, applied_to=None)
    servers = (
        one("a", "a:1-5"),
        one("b", "a:1-4", channels=(behind,)),
        one("c", "a:1-4", channels=(a_channel("b", B),)),
    )
    promotion = replace(promotion_of(matrix(*servers), "c"), arrives=sets("a:5"))
    steps = promotion_steps(promotion, a_cluster("cluster", *servers))
    assert "SOURCE_DELAY delays b by 60 s" in of(steps, "c")[0].what
    promotion = replace(promotion_of(matrix(*servers), "b"), arrives=sets("a:5"))
    steps = promotion_steps(promotion, a_cluster("cluster", *servers))
    assert "SOURCE_DELAY delays b by 60 s" in of(steps, "b")[0].what


def test_a_fetch_by_a_delayed_channel_names_the_delay() -> None:
    delayed = a_channel("b", B, delay_seconds=60)
    stopped = replace(delayed, receiver=ThreadState.STOPPED, applier=ThreadState.STOPPED)
    servers = (one("a", "a:1-5", channels=(stopped,)), one("b", "a:1-5 b:1"))
    steps = promotion_steps(promotion_of(matrix(*servers), "a"), a_cluster("cluster", *servers))
    [fetch, _] = of(steps, "a")
    assert "SOURCE_DELAY delays a by 60 s" in fetch.what


def of_servers(
    candidate: str, *servers: ServerSnapshot
) -> tuple[Promotion, tuple[PromotionStep, ...]]:
    """Return a promotion without groups, and its steps."""
    promotion = promotion_of(matrix(*servers), candidate)
    return promotion, promotion_steps(promotion, a_cluster("cluster", *servers))


def test_a_donor_serves_a_replica_until_it_has_what_the_candidate_purged() -> None:
    servers = (one("a", "a:1-5", purged="a:1-4"), one("b", "a:1-5"), one("c", "a:1-2"))
    promotion, steps = of_servers("a", *servers)
    assert promotion.verdict is Verdict.WARNING
    fetch, point = of(steps, "c")
    assert "SOURCE_HOST = 'b.example'" in fetch.statements[1]
    assert f"WAIT_FOR_EXECUTED_GTID_SET('{sets('a:3-4')}')" in fetch.statements[-1]
    assert "SOURCE_HOST = 'a.example'" in point.statements[1]


def test_each_obstacle_that_no_statement_clears_has_its_reason() -> None:
    logged = commits_of(f"{B}:2")  # with the server_id of b
    own_id = logged.commits[0].server_id
    holder = one("a", "a:1-3 b:1-2", history_evidence=logged)
    _, steps = of_servers("a", holder, one("b", "a:1-3 b:1", server_id=own_id))
    lost, kept = of(steps, "b")
    assert lost.what.startswith(f"It committed {sets('b:2')} itself and lost them")
    assert kept.what.startswith("Do not point it to a before the repair")
    _, steps = of_servers("a", one("a", "a:1", server_id=7), one("b", "a:1", server_id=7))
    assert of(steps, "b")[0].what.startswith("Its server_id, 7, is also that of a (C2).")
    assert of(steps, "b")[1].what == "a would refuse it: same_server_id."
    _, steps = of_servers("a", one("a", "a:1-3"), one("b", "a:1-5"))
    assert not any("would refuse it" in step.what for step in steps)
    _, steps = of_servers("a", one("a", "a:1-3"), an_unread("b"))
    assert [step.what[:24] for step in of(steps, "b")] == ["This server was not read"]
    assert "bootstrapped" not in written(steps)


def test_contents_that_differ_are_repaired_before_a_server_is_pointed() -> None:
    servers = (one("a", "a:1-9"), one("b", "a:1-9"))
    snapshot = a_cluster("cluster", *servers)
    audit = with_differences(snapshot, "a:9", ("a", "b"))
    promotion = promotion_of(handshake_matrix(snapshot, audit, Policy()), "a")
    unlike, kept = of(promotion_steps(promotion, snapshot), "b")
    assert unlike.what.startswith(f"{sets('a:9')} has another content than on a")
    assert (unlike.statements, kept.statements) == ((), ())


# -- the queue of a member ------------------------------------------------------------------------

QUEUE = (
    member("a", "g:1-10", sees="ab"),
    member("b", "g:1-9", sees="ab", received="g:1-10"),
)


def with_queue(
    code: str, *more: ServerSnapshot, **changed: Any
) -> tuple[Promotion, ClusterSnapshot]:
    """Return the promotion of b where its queue has this finding."""
    snapshot = a_cluster("cluster", *QUEUE, *more)
    audit: ClusterAudit = audit_cluster(snapshot)
    [queued] = (each for each in audit.findings if each.code == "T2")
    assert queued.channel == GROUP_APPLIER
    found: Finding = replace(queued, code=code, strategies=(), **changed)
    audit = replace(audit, findings=(found,))
    return promotion_of(handshake_matrix(snapshot, audit, Policy()), "b"), snapshot


@pytest.mark.parametrize("code", ["A5", "A8", "T2"])
def test_what_a_blocked_queue_has_is_not_lost_and_comes_first(code: str) -> None:
    for more in ((), (replace(REPLICA, gtid_executed=sets("g:1-10")),)):
        promotion, snapshot = with_queue(code, *more)
        assert (promotion.verdict, promotion.missing) == (Verdict.WARNING, ())
        assert promotion.unapplied == (("b", sets("g:10")),)
        steps = promotion_steps(promotion, snapshot)
        [wait] = of(steps, "b")
        assert "has received" in wait.what
        assert "Nothing is lost" in wait.what
        assert "relay log" not in wait.what
        assert f"WAIT_FOR_EXECUTED_GTID_SET('{G}:10')" in wait.statements[0]
        assert "set_as_primary" not in written(steps)
        assert steps[-1].what.startswith("Run this again")


def test_a_queue_is_not_the_relay_log_of_a_channel() -> None:
    """The relay log is deleted by a change of its source; the queue is not."""
    received = a_channel("d", D, gtid_retrieved=sets("d:1"), applier=ThreadState.STOPPED)
    member_b = replace(QUEUE[1], channels=(received,))
    snapshot = a_cluster("cluster", QUEUE[0], member_b, server("d", "g:1-9 d:1"))
    audit = audit_cluster(snapshot)
    [queued] = (each for each in audit.findings if (each.code, each.replica) == ("T2", "b"))
    blocked = replace(audit, findings=(replace(queued, code="A5"),))
    promotion = promotion_of(handshake_matrix(snapshot, blocked, Policy()), "b")
    log, queue = of(promotion_steps(promotion, snapshot), "b")[-2:]
    assert (f"received {sets('d:1')}" in log.what, "delete its relay log" in log.what) == (
        True,
        True,
    )
    assert (f"received {G}:10" in queue.what, "Nothing is lost" in queue.what) == (True, True)


def test_a_queue_that_moves_is_no_reason_to_wait() -> None:
    """Under load, a member has always received more than it has executed."""
    snapshot = a_cluster("cluster", *QUEUE)
    audit = audit_cluster(snapshot)
    moves = tuple(replace(each, severity=Severity.INFO) for each in audit.findings)
    audit = replace(audit, findings=moves)
    promotion = promotion_of(handshake_matrix(snapshot, audit, Policy()), "b")
    assert (promotion.verdict, promotion.unapplied) == (Verdict.OK, ())


def test_what_a_member_has_not_received_is_lost_without_a_donor() -> None:
    outside = server("d", "g:1-11", purged="g:1-11")
    promotion, _ = with_queue("A5", outside)
    assert promotion.verdict is Verdict.CRITICAL
    assert [(each.gtid_set, each.donor) for each in promotion.missing] == [(sets("g:11"), None)]


def test_a_blocked_queue_of_another_member_does_not_count() -> None:
    snapshot = a_cluster("cluster", *QUEUE)
    audit = audit_cluster(snapshot)
    [queued] = (each for each in audit.findings if each.code == "T2")
    blocked = replace(queued, code="A5", strategies=())
    for other in (replace(blocked, replica="a"), replace(blocked, channel="")):
        found = handshake_matrix(snapshot, replace(audit, findings=(other,)), Policy())
        assert found.queues == ()
    waiting = replace(queued, severity=Severity.INFO)
    assert waiting.strategies
    assert handshake_matrix(snapshot, replace(audit, findings=(waiting,)), Policy()).queues == ()


# -- names of groups ------------------------------------------------------------------------------

WRONG = str(UUID(int=8))
OTHER = (("gtid_mode", "ON"), ("group_replication_group_name", WRONG))


def test_another_name_of_the_group_is_named_and_where_it_is() -> None:
    strayed = server("c", "g:1-9", settings=OTHER)
    promotion, steps = promoted("a", *TWO, strayed)
    said = (
        f"The names of the groups differ: group_replication_group_name is {WRONG} on c, and {G} on"
        " a, b. Only a channel would link them."
    )
    assert promotion.verdict is Verdict.WARNING
    assert [step.what for step in steps if step.what.startswith(said)]
    found = matrix(*TWO, strayed)
    for name in "ab":
        doubts = {
            *found.answer(replica="c", source=name).doubts,
            *found.answer(replica=name, source="c").doubts,
        }
        assert len(doubts) == 1  # one text for all of them
    assert not any(found.answer(replica="a", source="b").doubts)
    assert found.answer(replica="c", source="a").outcome is Outcome.SERVED


def test_two_groups_with_a_channel_between_them_have_two_names() -> None:
    """So has a server that follows the group, and is configured for one of its own."""
    for follower, source in (("c", "a"), ("c", "b")):
        channel = a_channel(source, A if source == "a" else B)
        apart = server(follower, "g:1-9", settings=OTHER, channels=(channel,))
        found = matrix(*TWO, apart)
        assert not any(each.doubts for each in found.answers)
        assert found.verdict is Verdict.OK
    assert not any(each.doubts for each in matrix(*TWO, REPLICA).answers)
    capitals = (("gtid_mode", "ON"), ("group_replication_group_name", str(G).upper()))
    same = server("c", "g:1-9", settings=capitals)
    assert dict(CONFIGURED)["group_replication_group_name"] == str(G)
    assert not any(each.doubts for each in matrix(*TWO, same).answers)


def test_a_channel_to_a_server_of_neither_group_links_no_groups() -> None:
    strayed = server("c", "g:1-9", settings=OTHER)
    for outside in (
        replace(REPLICA, channels=(a_channel("a", A),)),
        replace(REPLICA, channels=(a_channel("c", C),)),
    ):
        assert matrix(*TWO, strayed, outside).answer(replica="c", source="a").doubts


def test_each_two_of_three_groups_have_their_own_text() -> None:
    third = (("gtid_mode", "ON"), ("group_replication_group_name", str(UUID(int=9))))
    found = matrix(*TWO, server("c", "g:1-9", settings=OTHER), server("d", "g:1-9", settings=third))
    [first] = found.answer(replica="c", source="a").doubts
    [other] = found.answer(replica="c", source="d").doubts
    assert f"{WRONG} on c, and {G} on a, b" in first
    assert f"{WRONG} on c, and {UUID(int=9)} on d" in other

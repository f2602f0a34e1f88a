"""What a replication group answers, without servers: its members, those outside, and promotions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from gtid import GtidSet
from tests.snapshots import A, B, C, a_channel, a_cluster, a_server
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Grade, Severity, Verdict
from topology.facts.cluster_facts import gather_facts
from topology.facts.source_answer import FailedCheck, Offer, Outcome, SourceAnswer
from topology.handshake.matrix import HandshakeMatrix, handshake_matrix
from topology.handshake.offered_sets import OFFERED, answers_to_set
from topology.handshake.promotion import Promotion, PromotionStep, promotion_of
from topology.handshake.promotion_steps import promotion_steps
from topology.policy import Policy
from topology.readings.group_view import GroupMember, GroupSnapshot
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot
from topology.readings.version import ServerVersion
from topology.readings.worker import WorkerSnapshot
from topology.rules.answering_sources import answers_to
from topology.rules.build import evidence, finding

D, G = (UUID(letter * 8 + "-0000-0000-0000-000000000000") for letter in "de")
UUID_OF = {"a": A, "b": B, "c": C, "d": D, "g": G}
CONFIGURED = (
    ("gtid_mode", "ON"),
    ("group_replication_group_name", str(G)),
)
BOOTSTRAP = (
    "SET GLOBAL group_replication_bootstrap_group = ON;",
    "START GROUP_REPLICATION;",
    "SET GLOBAL group_replication_bootstrap_group = OFF;",
)
JOIN = ("START GROUP_REPLICATION;",)


def sets(text: str) -> GtidSet:
    parts = (part.partition(":") for part in text.split())
    return GtidSet.parse(",".join(f"{UUID_OF[name]}:{rest}" for name, _, rest in parts))


def server(name: str, executed: str, *, purged: str = "", **facts: Any) -> ServerSnapshot:
    made = a_server(name, UUID_OF[name], sets(executed))
    return replace(made, gtid_purged=sets(purged), **facts)


def member(
    name: str,
    executed: str,
    *,
    sees: str = "abc",
    primaries: str = "a",
    state: str = "ONLINE",
    received: str = "",
    purged: str = "",
    **facts: Any,
) -> ServerSnapshot:
    """Make a member of the group G, in the view `sees`."""
    members = tuple(
        GroupMember(
            UUID_OF[each],
            f"{each}.example",
            3306,
            state if each == name else "ONLINE",
            "PRIMARY" if each in primaries else "SECONDARY",
        )
        for each in sees
    )
    role = "PRIMARY" if name in primaries else "SECONDARY"
    group = GroupSnapshot(str(G), state, role, sets(received or executed), members)
    return server(name, executed, purged=purged, group=group, settings=CONFIGURED, **facts)


def left(name: str, executed: str, **facts: Any) -> ServerSnapshot:
    """Make a server that is configured for the group and is OFFLINE."""
    return server(name, executed, settings=CONFIGURED, **facts)


def matrix(*servers: ServerSnapshot, policy: Policy | None = None) -> HandshakeMatrix:
    snapshot, policy = a_cluster("cluster", *servers), policy or Policy()
    return handshake_matrix(snapshot, audit_cluster(snapshot, policy), policy)


def outcomes(found: HandshakeMatrix) -> dict[str, str]:
    return {f"{each.replica}<{each.source}": each.outcome.value for each in found.answers}


def promoted(name: str, *servers: ServerSnapshot) -> tuple[Promotion, tuple[PromotionStep, ...]]:
    promotion = promotion_of(matrix(*servers), name)
    return promotion, promotion_steps(promotion, a_cluster("cluster", *servers))


THREE = tuple(member(name, "g:1-9") for name in "abc")
TWO = (member("a", "g:1-9", sees="ab"), member("b", "g:1-9", sees="ab"))
REPLICA = server("d", "g:1-9", channels=(a_channel("a", A),))


# -- members --------------------------------------------------------------------------------------


def test_the_group_links_its_members_and_the_primary_receives_for_a_secondary() -> None:
    found = matrix(*THREE, server("d", "g:1-9 d:1", channels=(a_channel("a", A),)))
    assert [each.outcome for each in found.of_source("a")] == [
        *(Outcome.GROUP, Outcome.GROUP, Outcome.DIVERGED)
    ]
    assert {each.group for each in found.answers if "d" not in (each.source, each.replica)} == {
        str(G)
    }
    by_primary = {each.replica: each for each in found.of_source("d")}
    assert {name: each.through for name, each in by_primary.items()} == {
        "a": "",
        "b": "a",
        "c": "a",
    }
    for each in by_primary.values():
        assert (each.outcome, each.fetched, each.group) == (Outcome.SERVED, sets("d:1"), "")
    assert found.verdict is Verdict.WARNING
    assert matrix(*THREE, REPLICA).verdict is Verdict.OK
    assert not matrix(*THREE, REPLICA).unread


def test_each_primary_of_several_has_receivers_of_its_own() -> None:
    three = (member(name, "g:1-9", primaries="abc") for name in "abc")
    found = matrix(*three, server("d", "g:1-9"))
    assert {each.through for each in found.of_source("d")} == {""}


def test_a_replica_ahead_of_a_member_hides_nothing_that_the_group_delivers() -> None:
    """The replica read from a; b has received g:10, and applies it."""
    servers = (
        member("a", "g:1-10", sees="ab"),
        member("b", "g:1-9", sees="ab", received="g:1-10"),
        server("d", "g:1-10", channels=(a_channel("a", A),)),
    )
    # As under load: both readings of a are older than that of d, and no finding lists g:10.
    snapshot = a_cluster("cluster", *servers)
    audit = audit_cluster(snapshot)
    quiet = replace(audit, findings=())
    answer = handshake_matrix(snapshot, quiet, Policy()).answer(replica="d", source="b")
    assert (answer.outcome, answer.ahead) == (Outcome.SERVED, sets("g:10"))


def test_what_a_member_had_when_it_joined_is_not_delivered() -> None:
    found = matrix(member("a", "a:1-3 g:1-9", sees="ab"), member("b", "g:1-9", sees="ab"))
    holder = found.answer(replica="a", source="b")
    assert (holder.outcome, holder.gtid_set) == (Outcome.DIVERGED, sets("a:1-3"))
    other = found.answer(replica="b", source="a")
    assert (other.outcome, other.dropped) == (Outcome.INCOMPLETE, sets("a:1-3"))
    assert not other.fetched
    assert promotion_of(found, "a").missing == ()
    [missing] = promotion_of(found, "b").missing
    assert (missing.gtid_set, missing.donor) == (sets("a:1-3"), None)
    # ... and a server below b may not count on it either.
    below = matrix(
        member("a", "a:1-3 g:1-9", sees="ab"),
        member("b", "g:1-9", sees="ab"),
        server("d", "a:1-3 g:1-9", channels=(a_channel("a", A),)),
    )
    answer = below.answer(replica="d", source="b")
    assert (answer.outcome, answer.gtid_set) == (Outcome.DIVERGED, sets("a:1-3"))


def test_an_accepted_difference_between_members_is_not_hidden() -> None:
    snapshot = a_cluster(
        "cluster", member("a", "a:1-3 g:1-9", sees="ab"), member("b", "g:1-9", sees="ab")
    )
    audit = audit_cluster(snapshot)
    accepted = tuple(replace(each, severity=Severity.INFO) for each in audit.findings)
    found = handshake_matrix(snapshot, replace(audit, findings=accepted), Policy())
    assert {each.outcome for each in found.answers} == {Outcome.GROUP}


def test_a_member_is_not_pointed_to_another_for_what_its_queue_keeps_back() -> None:
    """A worker of b waits for a lock (A5): d has applied g:10, and so has a."""
    servers = (
        member("a", "g:1-10", sees="ab"),
        member("b", "g:1-9", sees="ab", received="g:1-10"),
        server("d", "g:1-10", channels=(a_channel("a", A),)),
    )
    snapshot = a_cluster("cluster", *servers)
    audit = audit_cluster(snapshot)
    [queued] = (each for each in audit.findings if each.code == "T2")
    blocked = replace(audit, findings=(replace(queued, strategies=()),))
    found = handshake_matrix(snapshot, blocked, Policy())
    answer = found.answer(replica="d", source="b")
    assert (answer.outcome, answer.received) == (Outcome.DIVERGED, sets("g:10"))
    promotion = promotion_of(found, "b")
    assert (promotion.missing, promotion.unapplied) == ((), (("b", sets("g:10")),))
    steps = promotion_steps(promotion, snapshot)
    assert not any(
        "CHANGE" in text for step in steps for text in step.statements if step.server == "b"
    )


def with_two_contents(snapshot: ClusterSnapshot) -> HandshakeMatrix:
    """Return the matrix where the contents of a and b were compared, and g:9 differs (E4)."""
    facts = gather_facts(snapshot, Policy())
    unlike = finding(
        facts,
        "E4",
        source="a",
        replica="b",
        gtid_set=sets("g:9"),
        grade=Grade.PROVED,
        proof=(evidence("digests", "differ", facts.last["a"]),),
        explanation="",
    )
    audit = replace(audit_cluster(snapshot), findings=(unlike,))
    return handshake_matrix(snapshot, audit, Policy())


def test_two_contents_of_one_gtid_are_hidden_by_the_group_too() -> None:
    """The group was bootstrapped from a member without its last transactions (E4)."""
    snapshot = a_cluster("cluster", *TWO)
    found = with_two_contents(snapshot)
    for answer in both(found, "a", "b"):
        assert (answer.outcome, answer.unlike) == (Outcome.DIVERGED, sets("g:9"))
    steps = promotion_steps(promotion_of(found, "b"), snapshot)
    assert "The group does not deliver" in steps[0].what


def test_a_member_in_recovery_is_unknown_until_it_is_online() -> None:
    recovering = member("c", "g:1-5", state="RECOVERING", received="g:6-9")
    found = matrix(member("a", "g:1-9"), member("b", "g:1-9"), recovering)
    answer = found.answer(replica="c", source="a")
    assert answer.unread == "whether the recovery of c ends (it is RECOVERING)"
    assert found.answer(replica="b", source="a").outcome is Outcome.GROUP
    promotion, steps = promoted("b", member("a", "g:1-9"), member("b", "g:1-9"), recovering)
    assert promotion.verdict is Verdict.UNKNOWN
    assert [step.what for step in steps if step.server == "c"] == [
        "Not known: whether the recovery of c ends (it is RECOVERING). Run this again."
    ]


def test_a_member_that_is_not_one_of_the_servers_leaves_the_answer_open() -> None:
    found = matrix(*THREE[:2])
    [(address, reason)] = found.unread
    assert (address, "is a member of the group" in reason) == ("c.example:3306", True)
    assert found.verdict is Verdict.UNKNOWN
    declared = Policy(external_sources=frozenset({"c.example:3306"}))
    assert matrix(*THREE[:2], policy=declared).verdict is Verdict.OK


def test_a_primary_that_is_not_known_leaves_the_answers_of_its_secondaries_open() -> None:
    found = matrix(*(member(name, "g:1-9", sees="ab", primaries="") for name in "ab"), REPLICA)
    answer = found.answer(replica="b", source="d")
    assert (answer.outcome, answer.unread) == (Outcome.UNKNOWN, "the primary of the group of b")


def test_members_that_are_not_known_are_not_evaluated() -> None:
    """Neither are sets that are offered to them: what is on its way to them is not known."""
    servers = (member("a", "g:1-9", sees="abc"), member("b", "g:1-9", sees="ab"))
    found = matrix(*servers)
    assert {each.outcome for each in found.answers} == {Outcome.UNKNOWN}
    assert next(reason for _, reason in found.unread) == (
        "the members of its group are not known: a and b list different members"
    )
    snapshot = a_cluster("cluster", *servers)
    offered = answers_to_set(snapshot, audit_cluster(snapshot), Policy(), sets("g:1-9"))
    assert [each.outcome for each in offered.answers] == [Outcome.UNKNOWN] * 2


def test_a_set_is_answered_by_members_like_any_server() -> None:
    servers = (member("a", "g:1-9", sees="ab", purged="g:1-4"), member("b", "g:1-9", sees="ab"))
    snapshot = a_cluster("cluster", *servers)
    found = answers_to_set(snapshot, audit_cluster(snapshot), Policy(), sets("g:1-3"))
    assert [(each.replica, each.refusal) for each in found.answers] == [
        (OFFERED, FailedCheck.PURGED),
        (OFFERED, None),
    ]


@pytest.mark.parametrize(
    ("received", "outcome"), [("g:1-10", Outcome.UNKNOWN), ("g:1-9", Outcome.DIVERGED)]
)
def test_what_waits_in_the_queue_of_a_group_may_arrive(received: str, outcome: Outcome) -> None:
    """a has left, and executed what the members have only received yet."""
    left = server("a", "g:1-10", settings=CONFIGURED)
    b, c = (member(name, "g:1-9", sees="bc", primaries="b", received=received) for name in "bc")
    snapshot = a_cluster("cluster", left, b, c)
    found = answers_to_set(snapshot, audit_cluster(snapshot), Policy(), sets("g:1-10"))
    assert [each.outcome for each in found.answers] == [Outcome.SERVED, outcome, outcome]
    # P4 counts as arriving what a finding reports as likely: none reports this.
    facts = gather_facts(snapshot, Policy())
    offer = Offer("cdc", sets("g:1-10"), GtidSet(), sets("g:1-10"))
    answers = answers_to(facts, audit_cluster(snapshot).findings, offer, likely_arrives=True)
    assert [each.outcome for each in answers] == [Outcome.SERVED, outcome, outcome]


def test_what_a_group_commits_under_the_uuid_of_a_replica_is_not_the_replicas_own() -> None:
    """The receiver drops events with its own server_id; the members committed these."""
    replica = replace(REPLICA, server_uuid=G, gtid_executed=sets("g:1-7"))
    answer = matrix(*THREE, replica).answer(replica="d", source="a")
    assert (answer.outcome, answer.fetched) == (Outcome.SERVED, sets("g:8-9"))


# -- servers that are not members -----------------------------------------------------------------


def both(found: HandshakeMatrix, one: str, other: str) -> tuple[SourceAnswer, SourceAnswer]:
    return found.answer(replica=one, source=other), found.answer(replica=other, source=one)


def test_a_member_that_left_may_join_again_with_what_it_is_missing() -> None:
    found = matrix(*TWO, left("c", "g:1-5"))
    here, back = both(found, "c", "a")
    assert (here.outcome, here.fetched, here.joins) == (Outcome.SERVED, sets("g:6-9"), "c")
    assert (back.outcome, back.fetched, back.joins) == (Outcome.SERVED, GtidSet(), "c")
    assert not here.doubts
    assert found.verdict is Verdict.OK


def test_a_server_that_may_have_been_reset_has_a_doubt() -> None:
    """Its binary logs have nothing below what it is missing."""
    [doubt] = matrix(*TWO, left("c", "")).answer(replica="c", source="a").doubts
    assert "do not exclude RESET BINARY LOGS AND GTIDS" in doubt
    assert not matrix(*TWO, left("c", "g:1-9")).answer(replica="c", source="a").doubts


def test_a_member_with_more_than_the_group_is_refused_by_the_group() -> None:
    found = matrix(*TWO, left("c", "g:1-5 c:1"), REPLICA)
    for answer in both(found, "c", "a"):
        assert (answer.refusal, answer.gtid_set) == (FailedCheck.NOT_IN_GROUP, sets("c:1"))
        assert answer.text is not None
        assert (answer.text.errno, answer.text.seen_on) == (3092, "9.7.4")
    # For a channel to a server outside the group, its sets decide.
    assert found.answer(replica="c", source="d").outcome is Outcome.DIVERGED
    assert found.answer(replica="d", source="c").outcome is Outcome.DIVERGED
    assert found.verdict is Verdict.CRITICAL


def test_what_a_member_has_received_counts_as_the_groups() -> None:
    two = (TWO[0], member("b", "g:1-9", sees="ab", received="g:1-10"))
    assert matrix(*two, left("c", "g:1-10")).answer(replica="c", source="b").attaches


@pytest.mark.parametrize(("purged", "refusal"), [("g:1-7", FailedCheck.PURGED), ("g:1-5", None)])
def test_what_every_member_has_purged_needs_a_clone(
    purged: str, refusal: FailedCheck | None
) -> None:
    """One member that still has all of it is enough: recovery asks each of them."""
    two = (
        member("a", "g:1-9", sees="ab", purged="g:1-8"),
        member("b", "g:1-9", sees="ab", purged=purged),
    )
    found = matrix(*two, left("c", "g:1-5"))
    here, back = both(found, "c", "a")
    assert (here.refusal, back.refusal, here.through) == (refusal, refusal, "b")
    if refusal is not None:
        assert here.gtid_set == sets("g:6-7")
        assert here.text is not None
        assert here.text.errno == 13467


def test_a_server_that_has_the_name_of_its_group_cannot_join() -> None:
    found = matrix(*TWO, replace(left("c", "g:1-5"), server_uuid=G))
    assert found.answer(replica="c", source="a").refusal is FailedCheck.GROUP_NAME


def test_state_error_keeps_its_channels_from_working() -> None:
    gone = member("c", "g:1-9", sees="c", state="ERROR")
    failed = WorkerSnapshot(1, sets("g:9"), 1032, "no row")
    assert gone.group is not None
    stopped = replace(gone, group=replace(gone.group, workers=(failed,)))
    found = matrix(*TWO, stopped, REPLICA)
    assert found.answer(replica="c", source="a").attaches
    [doubt] = found.answer(replica="c", source="a").doubts
    assert doubt.startswith("a worker of c stopped with error 1032 (group_replication_applier)")
    [doubt] = found.answer(replica="c", source="d").doubts
    assert "before STOP GROUP_REPLICATION" in doubt
    [doubt] = found.answer(replica="d", source="c").doubts
    assert "offline_mode" in doubt


def test_a_channel_that_runs_keeps_a_server_from_joining_a_group_with_one_primary() -> None:
    follower = left("c", "g:1-9", channels=(a_channel("d", D),))
    [doubt] = matrix(*TWO, follower, REPLICA).answer(replica="c", source="a").doubts
    assert doubt.startswith("channels of c run: ")
    _, steps = promoted("c", *TWO, follower, REPLICA)
    assert steps[-1].server == "c"  # it is detached
    assert (
        steps[-1].statements[0],
        [each.statements for each in steps if each.server == "c"][1],
    ) == (
        "STOP REPLICA FOR CHANNEL '';",
        ("STOP REPLICA FOR CHANNEL '';", *JOIN),
    )
    several = (member(name, "g:1-9", sees="ab", primaries="ab") for name in "ab")
    assert not matrix(*several, follower, REPLICA).answer(replica="c", source="a").doubts


def test_what_recovery_brings_is_not_fetched_by_a_channel() -> None:
    promotion, steps = promoted("c", *TWO, left("c", "g:1-5"), REPLICA)
    [missing] = promotion.missing
    assert (missing.gtid_set, missing.is_recovered) == (sets("g:6-9"), True)
    assert (promotion.verdict, promotion.blocked) == (Verdict.WARNING, frozenset())
    assert [step.server for step in steps] == ["", "c", "c", "d"]


def test_an_older_server_than_each_member_may_be_refused() -> None:
    old = left("c", "g:1-9", version=ServerVersion(8, 0, 36))
    [doubt] = matrix(*TWO, old).answer(replica="c", source="a").doubts
    assert "group_replication_allow_local_lower_version_join" in doubt
    [mixed] = (matrix(TWO[0], replace(TWO[1], version=ServerVersion(8, 0, 30)), old),)
    assert not mixed.answer(replica="c", source="a").doubts


def test_what_may_still_arrive_is_a_doubt_about_the_refusal() -> None:
    unseen = a_channel("x", UUID(int=7))
    one, other = TWO
    found = matrix(replace(one, channels=(unseen,)), other, left("c", "g:1-9 c:1"))
    [doubt] = found.answer(replica="c", source="b").doubts
    assert doubt == "what only c has may still arrive in the group from x.example:3306"


def test_two_servers_outside_both_have_to_join() -> None:
    found = matrix(member("a", "g:1-9", sees="a"), left("b", "g:1-5 b:1"), left("c", "g:1-5"))
    for answer in both(found, "b", "c"):
        assert (answer.joins, answer.refusal) == ("b", FailedCheck.NOT_IN_GROUP)


def test_without_any_member_the_source_would_bootstrap_the_group() -> None:
    """c has what b is missing, and not the other way round."""
    found = matrix(left("b", "g:1-5"), left("c", "g:1-9"))
    assert found.answer(replica="b", source="c").fetched == sets("g:6-9")
    refused = found.answer(replica="c", source="b")
    assert (refused.refusal, refused.gtid_set) == (FailedCheck.NOT_IN_GROUP, sets("g:6-9"))
    assert found.verdict is Verdict.WARNING
    assert promotion_of(found, "b").best == "c"


def test_after_a_partition_the_replica_would_join_the_part_of_the_source() -> None:
    parts = (member("a", "g:1-9", sees="ab"), member("b", "g:1-9", sees="ab"))
    other = member("c", "g:1-7 c:1", sees="c", primaries="c")
    found = matrix(*parts, other)
    here, back = both(found, "c", "a")
    assert (here.joins, here.gtid_set) == ("c", sets("c:1"))
    assert (back.joins, back.gtid_set) == ("a", sets("g:8-9"))


def test_a_member_whose_server_uuid_another_server_has_leaves_the_answers_open() -> None:
    """C1: which of the two is a member is not known. It ended in an error of gtid-audit."""
    found = matrix(*TWO, replace(left("c", "g:1-5"), server_uuid=A))
    for one, other in (("a", "b"), ("b", "c"), ("a", "c")):
        assert {each.outcome for each in both(found, one, other)} == {Outcome.UNKNOWN}

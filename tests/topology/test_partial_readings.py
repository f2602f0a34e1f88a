"""A fact that was not read of one server is UNKNOWN: each answer, verdict and step has its twin.

The twin is the same cluster with the fact read. Only there may the answer be "none".
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.snapshots import A, a_channel, a_cluster, an_unread
from tests.topology.test_group_handshake import TWO, left, member, server
from tests.topology.test_handshake import matrix, one, sets
from tests.topology.test_promotion_order import of, of_servers, written
from tests.topology.test_unlike_contents import with_differences
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Verdict
from topology.facts.source_answer import FailedCheck, Outcome
from topology.handshake.matrix import handshake_matrix
from topology.handshake.offered_sets import answers_to_set
from topology.handshake.promotion import promotion_of
from topology.handshake.promotion_steps import promotion_steps
from topology.policy import Policy
from topology.readings.snapshot import ServerSnapshot, ThreadState, UnreadFact, UnreadReason

DENIED = "Access denied; you need REPLICATION CLIENT"


def without(made: ServerSnapshot, *names: str, **facts: Any) -> ServerSnapshot:
    """Return a reading without these facts, as the adapter reports a missing privilege."""
    unread = tuple(UnreadFact(name, UnreadReason.PRIVILEGE, DENIED) for name in names)
    return replace(made, unread=unread, **facts)


def without_channels(made: ServerSnapshot) -> ServerSnapshot:
    return without(made, "channels", channels=None)


# What is not read, the reading without it, and the words of the answer about server c.
UNREAD = [
    ("channels", {"channels": None}, "the channels of c"),
    ("settings", {"settings": None, "notable_settings": None}, "the settings of c"),
    ("log_end", {"log_end": None}, "the end of the binary log of c"),
    ("group", {}, "the group of c"),
    ("server_id", {"server_id": None}, "the server_id of c"),
]


@pytest.mark.parametrize(("fact", "facts", "words"), UNREAD)
def test_each_unread_fact_leaves_the_answers_of_its_server_open(
    fact: str, facts: dict[str, Any], words: str
) -> None:
    servers = [one(name, "a:1-5") for name in "abc"]
    assert matrix(*servers).verdict is Verdict.OK
    servers[2] = without(servers[2], fact, **facts)
    found = matrix(*servers)
    open_cells = {(each.replica, each.source): each.unread for each in found.answers}
    column = {("a", "c"): words, ("b", "c"): words}
    row = {} if fact == "log_end" else {("c", "a"): words, ("c", "b"): words}
    assert {cell: said for cell, said in open_cells.items() if said} == column | row
    assert found.verdict is Verdict.UNKNOWN
    assert [(each.server, each.detail) for each in found.partial] == [("c", f"{fact}: {DENIED}")]


@pytest.mark.parametrize(("fact", "facts", "words"), UNREAD)
def test_no_step_of_a_promotion_changes_anything_while_a_fact_is_unread(
    fact: str, facts: dict[str, Any], words: str
) -> None:
    servers = [one(name, "a:1-5") for name in "abc"]
    promotion, steps = of_servers("a", *servers)
    assert promotion.verdict is Verdict.OK
    assert any(step.statements for step in steps)
    servers[2] = without(servers[2], fact, **facts)
    for candidate in "abc":
        promotion, steps = of_servers(candidate, *servers)
        assert promotion.verdict is Verdict.UNKNOWN
        assert not any(step.statements for step in steps)
        assert [step.what for step in of(steps, "c") if words in step.what] == [
            step.what for step in of(steps, "c")
        ]
        assert len(of(steps, "c")) == 1  # once, although each of its answers is open
        assert steps[-1].what == "Run this again: the next steps follow from what was read."


@pytest.mark.parametrize(("fact", "facts", "words"), UNREAD)
def test_each_unread_fact_leaves_the_answer_to_a_set_open(
    fact: str, facts: dict[str, Any], words: str
) -> None:
    servers = [one(name, "a:1-5") for name in "abc"]
    for last, verdict, said in (
        (servers[2], Verdict.OK, ["", "", ""]),
        (without(servers[2], fact, **facts), Verdict.UNKNOWN, ["", "", words]),
    ):
        snapshot = a_cluster("cluster", *servers[:2], last)
        audit = audit_cluster(snapshot)
        found = answers_to_set(snapshot, audit, Policy(), sets("a:1-5"))
        assert found.verdict is verdict
        assert [each.unread for each in found.answers] == said


def test_a_relay_log_that_was_not_read_may_have_the_last_copy() -> None:
    """a crashed. c has received a:7 and not applied it: a change of its source would delete it."""
    policy = Policy(external_sources=frozenset({"a.example:3306"}))
    lost = replace(a_channel("a", A), receiver=ThreadState.CONNECTING)
    waiting = replace(lost, gtid_retrieved=sets("a:1-7"), applier=ThreadState.STOPPED)
    above = one("b", "a:1-6", channels=(lost,))
    below = one("c", "a:1-6", channels=(waiting,))
    for last, verdict, said in (
        (below, Verdict.CRITICAL, "has received"),
        (without_channels(below), Verdict.UNKNOWN, "Not known: the channels of c. It may have"),
    ):
        snapshot = a_cluster("cluster", above, last)
        found = handshake_matrix(snapshot, audit_cluster(snapshot, policy), policy)
        promotion = promotion_of(found, "b")
        steps = promotion_steps(promotion, snapshot)
        assert promotion.verdict is verdict
        assert said in written(tuple(of(steps, "c")))
        assert "CHANGE" not in written(steps)
        assert "It has no channel" not in written(steps)


def test_one_reading_without_a_fact_is_enough() -> None:
    """The first reading of a replica and the last one of a source decide an answer."""
    whole = a_cluster("cluster", one("a", "a:1"), one("b", "a:1"))
    in_first = replace(whole, first=(whole.first[0], without_channels(whole.first[1])))
    in_last = replace(whole, last=(whole.last[0], without_channels(whole.last[1])))
    for snapshot in (in_first, in_last):
        found = handshake_matrix(snapshot, audit_cluster(snapshot), Policy())
        assert [each.server for each in found.partial] == ["b"]
        assert {each.outcome for each in found.answers} == {Outcome.UNKNOWN}


def test_a_message_for_several_facts_is_shown_once() -> None:
    both = without(one("b", "a:1"), "channels", "log_end", channels=None, log_end=None)
    [partial] = matrix(one("a", "a:1"), both).partial
    assert partial.detail == f"channels, log_end: {DENIED}"
    assert partial.what == "the channels and the end of the binary log of b"


def test_a_closed_log_and_a_list_of_logs_that_was_not_read_look_the_same() -> None:
    """No row of the status is a closed log, if the list of the logs is empty as well."""
    shown = one("b", "a:1", log_end=None)
    assert matrix(one("a", "a:1"), shown).partial == ()
    hidden = without(shown, "binary_logs", binary_logs=None)
    [partial] = matrix(one("a", "a:1"), hidden).partial
    assert partial.facts == ("log_end",)


def test_a_stored_reading_without_a_fact_and_without_a_reason_is_unread() -> None:
    [partial] = matrix(one("a", "a:1"), one("b", "a:1", channels=None)).partial
    assert (partial.facts, partial.detail) == (("channels",), "channels")


# -- what the sets show stays -----------------------------------------------------------------


def test_a_refusal_that_the_sets_show_stays() -> None:
    source, ahead = one("a", "a:1-3"), one("b", "a:1-5")
    found = matrix(source, without_channels(ahead))
    answer = found.answer(replica="b", source="a")
    assert (answer.refusal, answer.gtid_set) == (FailedCheck.MORE_GTIDS, sets("a:4-5"))
    assert found.verdict is Verdict.UNKNOWN


def test_a_relay_log_may_have_what_the_source_has_purged() -> None:
    source, behind = one("a", "a:1-5", purged="a:1-4"), one("b", "a:1-3")
    answer = matrix(source, behind).answer(replica="b", source="a")
    assert answer.refusal is FailedCheck.PURGED
    answer = matrix(source, without_channels(behind)).answer(replica="b", source="a")
    assert (answer.outcome, answer.unread) == (Outcome.UNKNOWN, "the channels of b")
    no_end = without(behind, "log_end", log_end=None)
    answer = matrix(source, no_end).answer(replica="b", source="a")
    assert answer.refusal is FailedCheck.PURGED
    # What only the source's own channels could have brought is not purged less.
    answer = matrix(without_channels(source), behind).answer(replica="b", source="a")
    assert answer.refusal is FailedCheck.PURGED


def test_what_only_a_replica_has_stays_hidden_whatever_its_relay_log_has() -> None:
    found = matrix(one("a", "a:1-5"), without_channels(one("b", "a:1-5 b:1")))
    answer = found.answer(replica="b", source="a")
    assert (answer.outcome, answer.gtid_set) == (Outcome.DIVERGED, sets("b:1"))


def test_what_is_extra_may_arrive_from_above_a_server_with_unread_channels() -> None:
    """d ─▶ a ─▶ b: only the channels of a show that d exists, and b:1 may be on its way."""
    above = one("a", "a:1-5")
    servers = (one("b", "a:1-5", channels=(a_channel("a", A),)), one("c", "a:1-5 c:1"))
    answer = matrix(above, *servers).answer(replica="c", source="b")
    assert (answer.outcome, answer.gtid_set) == (Outcome.DIVERGED, sets("c:1"))
    answer = matrix(without_channels(above), *servers).answer(replica="c", source="b")
    assert (answer.outcome, answer.unread) == (Outcome.UNKNOWN, "the channels of a")
    # The end of the log of a decides nothing about what arrives.
    closed = without(above, "log_end", log_end=None)
    answer = matrix(closed, *servers).answer(replica="c", source="b")
    assert answer.outcome is Outcome.DIVERGED


def test_two_contents_stay_hidden_whatever_arrives() -> None:
    for end in ("a", "b"):
        servers = [one(name, "a:1-5") for name in "ab"]
        servers = [without_channels(each) if each.name == end else each for each in servers]
        snapshot = a_cluster("cluster", *servers)
        audit = with_differences(snapshot, "a:5", ("a", "b"))
        answer = handshake_matrix(snapshot, audit, Policy()).answer(replica="b", source="a")
        assert (answer.outcome, answer.unlike) == (Outcome.DIVERGED, sets("a:5"))


def test_another_reason_for_an_open_answer_stays() -> None:
    found = matrix(an_unread("a"), without_channels(one("b", "a:1")))
    assert found.answer(replica="b", source="a").unread == "the sets of a"
    assert [name for name, _ in found.unread] == ["a"]
    assert [each.server for each in found.partial] == ["b"]


# -- candidates, and who could send what is missing ---------------------------------------------


def test_a_holder_of_which_a_fact_is_unread_may_send_what_is_missing() -> None:
    """ "No server can send it" would be CRITICAL, and is not known."""
    servers = (one("a", "a:1-5"), one("b", "a:1-5 b:1"))
    promotion, _ = of_servers("a", *servers)
    assert [each.donor for each in promotion.missing] == ["b"]
    promotion, _ = of_servers("a", servers[0], without_channels(servers[1]))
    [missing] = promotion.missing
    assert (missing.donor, missing.is_open, promotion.verdict) == (None, True, Verdict.UNKNOWN)


def test_a_holder_whose_list_of_logs_is_unread_may_send_what_is_missing() -> None:
    hidden = without(one("b", "a:1-5 b:1"), "binary_logs", binary_logs=None)
    promotion, steps = of_servers("a", one("a", "a:1-5"), hidden)
    assert promotion.verdict is Verdict.UNKNOWN
    [fetch] = [step for step in of(steps, "a") if str(sets("b:1")) in step.what]
    assert fetch.what.startswith(f"Whether b can send it {sets('b:1')} is not known. Run this")
    purged = one("b", "a:1-5 b:1", purged="b:1")
    promotion, steps = of_servers("a", one("a", "a:1-5"), purged)
    assert promotion.verdict is Verdict.CRITICAL
    assert "No server can send it" in written(steps)


def test_a_donor_whose_list_of_logs_is_unread_leaves_a_refused_server_open() -> None:
    """ "Rebuild this server" would be CRITICAL, and b may still have the logs."""
    source, behind = one("a", "a:1-5", purged="a:1-4"), one("c", "a:1-2")
    hidden = without(one("b", "a:1-5"), "binary_logs", binary_logs=None)
    promotion, steps = of_servers("a", source, hidden, behind)
    assert promotion.verdict is Verdict.UNKNOWN
    assert "whether another server can send it is not known" in of(steps, "c")[0].what
    assert not any(step.statements for step in of(steps, "c"))
    gone = one("b", "a:1-5", purged="a:1-4")
    promotion, steps = of_servers("a", source, gone, behind)
    assert promotion.verdict is Verdict.CRITICAL
    assert "rebuild this server" in of(steps, "c")[0].what


def test_a_donor_that_may_have_more_than_the_candidate_is_not_used() -> None:
    """b has b:1 in addition. Whether it arrives on a from d is not known: c would get it."""
    source = without_channels(one("a", "a:1-5", purged="a:1-4"))
    servers = (one("b", "a:1-5 b:1"), one("c", "a:1-2"))
    promotion, steps = of_servers("a", source, *servers)
    assert promotion.verdict is Verdict.UNKNOWN
    [refused] = [each for each in promotion.obstacles if each.answer.replica == "c"]
    assert (refused.donor, refused.is_open) == (None, True)
    assert not any(step.statements for step in steps)


def test_a_server_is_not_called_better_if_a_fact_of_one_of_the_two_is_unread() -> None:
    """What was not read may make either of them better."""
    servers = (one("a", "a:1-5"), one("b", "a:1-4"), one("c", "a:1-3"))
    assert promotion_of(matrix(*servers), "c").best == "a"
    for unread in (0, 2):
        partly = tuple(
            without_channels(each) if number == unread else each
            for number, each in enumerate(servers)
        )
        assert promotion_of(matrix(*partly), "c").best != "a"


def test_a_server_id_is_not_changed_on_a_server_with_unread_channels() -> None:
    servers = (one("a", "a:1", server_id=7), one("b", "a:1", server_id=7))
    _, steps = of_servers("a", *servers)
    assert "SET GLOBAL server_id" in written(tuple(of(steps, "b")))
    _, steps = of_servers("a", servers[0], without_channels(servers[1]))
    assert not any(step.statements for step in steps)


# -- groups -------------------------------------------------------------------------------------


def test_a_member_of_which_a_fact_is_unread_leaves_the_answers_of_its_group_open() -> None:
    for name, facts in (("channels", {"channels": None}), ("log_end", {"log_end": None})):
        second = without(TWO[1], name, **facts)
        found = matrix(TWO[0], second)
        assert found.answer(replica="a", source="b").outcome is Outcome.UNKNOWN
        assert found.verdict is Verdict.UNKNOWN
        promotion, steps = of_servers("b", TWO[0], second)
        assert promotion.verdict is Verdict.UNKNOWN
        assert "set_as_primary" not in written(steps)


def test_a_secondary_whose_own_channels_are_unread_is_open_although_its_primary_is_not() -> None:
    outside = server("d", "g:1-9")
    assert matrix(*TWO, outside).answer(replica="b", source="d").attaches
    found = matrix(TWO[0], without_channels(TWO[1]), outside)
    assert found.answer(replica="b", source="d").outcome is Outcome.UNKNOWN
    assert found.answer(replica="a", source="d").attaches


def test_a_view_that_was_not_read_does_not_make_a_member_an_outsider() -> None:
    """b could be a secondary, which has no receiver, or ONLINE: START would fail there."""
    hidden = without(left("b", "g:1-9"), "group")
    outside = server("d", "g:1-9", channels=(a_channel("a", A),))
    found = matrix(member("a", "g:1-9", sees="ab"), hidden, outside)
    assert found.answer(replica="b", source="d").outcome is Outcome.UNKNOWN
    assert found.answer(replica="d", source="b").outcome is Outcome.UNKNOWN
    _, steps = of_servers("a", member("a", "g:1-9", sees="ab"), hidden, outside)
    assert "START GROUP_REPLICATION" not in written(steps)


def test_what_a_group_refuses_may_arrive_by_a_channel_that_was_not_read() -> None:
    """A source of the primary that no channel shows may bring c:1 into the group."""
    outsider = left("c", "g:1-9 c:1")
    answer = matrix(*TWO, outsider).answer(replica="c", source="a")
    assert answer.refusal is FailedCheck.NOT_IN_GROUP
    answer = matrix(without_channels(TWO[0]), TWO[1], outsider).answer(replica="c", source="b")
    assert (answer.outcome, answer.unread) == (Outcome.UNKNOWN, "the channels of a")
    assert answer.group
    found = matrix(without_channels(TWO[0]), TWO[1], outsider)
    assert found.answer(replica="b", source="c").outcome is Outcome.UNKNOWN


def test_no_group_is_bootstrapped_while_a_fact_is_unread() -> None:
    servers = (left("a", "g:1-9"), left("b", "g:1-9"))
    _, steps = of_servers("a", *servers)
    assert "bootstrap_group = ON" in written(steps)
    _, steps = of_servers("a", servers[0], without_channels(servers[1]))
    assert not any(step.statements for step in steps)

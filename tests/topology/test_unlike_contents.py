"""Which content a third server has under a GTID of which two servers differ (E4), without servers.

The two causes that look the same: c copied the transaction from the one, or from the other.
"""

from __future__ import annotations

import pytest

from gtid import GtidSet
from tests.snapshots import NOON, a_cluster
from tests.topology.test_group_handshake import CONFIGURED, member, server
from tests.topology.test_handshake import one, sets
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Finding, Grade, Severity, Verdict
from topology.facts.cluster_facts import gather_facts
from topology.facts.source_answer import Outcome, SourceAnswer
from topology.handshake.matrix import HandshakeMatrix, handshake_matrix
from topology.handshake.promotion import promotion_of
from topology.handshake.promotion_steps import promotion_steps
from topology.policy import Policy
from topology.readings.contents import ContentReading, UnreadContent
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot
from topology.rules.build import evidence, finding

THREE = tuple(one(name, "a:1-9") for name in "abc")


def compared(*pairs: tuple[str, str], unread: str = "", is_cut: bool = False) -> ContentReading:
    """Make the result of comparing these pairs; the contents of `unread` could not be read."""
    missing = (UnreadContent(unread, "no privilege"),) if unread else ()
    return ContentReading(NOON, 9, (), (), missing, is_cut=is_cut, pairs=pairs)


def differs(snapshot: ClusterSnapshot, gtids: str, pair: tuple[str, str]) -> Finding:
    """Make the E4 of two servers."""
    facts = gather_facts(snapshot, Policy())
    return finding(
        facts,
        "E4",
        source=pair[0],
        replica=pair[1],
        gtid_set=sets(gtids),
        grade=Grade.PROVED,
        proof=(evidence("digests", "differ", facts.last[pair[0]]),),
        explanation="",
    )


def with_differences(
    snapshot: ClusterSnapshot, gtids: str, *pairs: tuple[str, str]
) -> ClusterAudit:
    """Return the audit of a snapshot with only these E4."""
    found = [differs(snapshot, gtids, pair) for pair in pairs]
    return ClusterAudit(
        snapshot.cluster,
        Verdict.CRITICAL,
        tuple(each.name for each in snapshot.last),
        tuple(found),
        audit_cluster(snapshot).unknown,
        NOON,
    )


def matrix(
    *pairs: tuple[str, str],
    contents: ContentReading | None = None,
    servers: tuple[ServerSnapshot, ...] = THREE,
) -> HandshakeMatrix:
    snapshot = a_cluster("cluster", *servers).with_contents(contents)
    return handshake_matrix(snapshot, with_differences(snapshot, "a:9", *pairs), Policy())


def cell(found: HandshakeMatrix, pair: str) -> SourceAnswer:
    """Return the answer to the first server by the second; both directions have the same."""
    here, back = (found.answer(replica=pair[at], source=pair[1 - at]) for at in (0, 1))
    assert (here.outcome, here.unlike, here.doubts) == (back.outcome, back.unlike, back.doubts)
    return here


def outcomes(found: HandshakeMatrix) -> dict[str, Outcome]:
    return {pair: cell(found, pair).outcome for pair in ("ab", "ac", "bc")}


def test_a_third_server_has_one_content_or_the_other() -> None:
    """Nothing shows which: neither a nor b may be called its source without that."""
    found = matrix(("a", "b"))
    assert outcomes(found) == {
        "ab": Outcome.DIVERGED,
        "ac": Outcome.UNKNOWN,
        "bc": Outcome.UNKNOWN,
    }
    unread = cell(found, "ac").unread
    assert unread.startswith(f"whether c has the content of a or of b under {sets('a:9')} (E4")
    assert found.verdict is Verdict.UNKNOWN  # c was counted as a source of all
    steps = promotion_steps(promotion_of(found, "b"), a_cluster("cluster", *THREE))
    assert [step.statements for step in steps if step.server == "c"] == [()]


@pytest.mark.parametrize(
    ("pairs", "alike", "unlike"),
    [
        ((("a", "b"), ("b", "c")), "bc", "ac"),
        ((("a", "b"), ("a", "c")), "ac", "bc"),
    ],
)
def test_a_comparison_shows_which_one(
    pairs: tuple[tuple[str, str], ...], alike: str, unlike: str
) -> None:
    found = matrix(("a", "b"), contents=compared(*pairs))
    assert cell(found, alike).outcome is Outcome.SERVED
    hides = cell(found, unlike)
    assert (hides.outcome, hides.unlike) == (Outcome.DIVERGED, sets("a:9"))
    assert found.verdict is Verdict.CRITICAL


@pytest.mark.parametrize(
    "contents",
    [
        compared(("a", "b"), ("b", "c"), unread="c"),
        compared(("a", "b"), ("b", "c"), is_cut=True),
        compared(("a", "b")),
    ],
)
def test_a_comparison_that_may_have_left_it_out_shows_nothing(contents: ContentReading) -> None:
    assert cell(matrix(("a", "b"), contents=contents), "bc").outcome is Outcome.UNKNOWN


def test_a_server_that_does_not_log_it_agrees_with_none() -> None:
    """c has purged it: comparing the logs of b and c was not about it, whatever else they share."""
    servers = (*THREE[:2], one("c", "a:1-9", purged="a:1-9"))
    found = matrix(("a", "b"), contents=compared(("a", "b"), ("b", "c")), servers=servers)
    assert found.answer(replica="c", source="b").outcome is Outcome.UNKNOWN


def test_servers_that_agree_with_each_side_of_a_difference_differ() -> None:
    """Two pairs, of which one server each was compared with one of the other pair."""
    servers = tuple(one(name, "a:1-9") for name in "abcd")
    pairs = compared(("a", "b"), ("b", "c"), ("c", "d"))
    found = matrix(("b", "c"), contents=pairs, servers=servers)
    for two in ("bc", "ac", "bd", "ad"):
        assert (cell(found, two).outcome, cell(found, two).unlike) == (
            Outcome.DIVERGED,
            sets("a:9"),
        )
    for two in ("ab", "cd"):
        assert cell(found, two).outcome is Outcome.SERVED
    # Without the comparisons, a and d may have the content of either.
    found = matrix(("b", "c"), servers=servers)
    assert {cell(found, two).outcome for two in ("ab", "ad", "cd")} == {Outcome.UNKNOWN}


@pytest.mark.parametrize("known", [("a", "b"), ("c", "d")])
def test_a_server_that_was_not_compared_has_either_of_two_contents(known: tuple[str, str]) -> None:
    """Of b and c, which differ, one has the content of a or d; the other one of these is open."""
    servers = tuple(one(name, "a:1-9") for name in "abcd")
    found = matrix(("b", "c"), contents=compared(known, ("b", "c")), servers=servers)
    assert (cell(found, "ad").outcome, cell(found, "ad").unlike) == (Outcome.UNKNOWN, GtidSet())
    assert "has the content of b or of c" in cell(found, "ad").unread


def test_a_difference_is_nothing_to_servers_that_do_not_have_it() -> None:
    servers = (*THREE[:2], one("c", "a:1-8"), one("d", "a:1-8"))
    found = matrix(("a", "b"), servers=servers)
    assert (cell(found, "cd").outcome, cell(found, "cd").unread) == (Outcome.SERVED, "")
    assert found.answer(replica="c", source="a").doubts == ()


def test_of_two_servers_only_their_own_unread_contents_count() -> None:
    found = matrix(contents=compared(("b", "c"), unread="c"))
    assert outcomes(found)["ab"] is Outcome.SERVED, "c was not read, and nothing differs"
    # What differs, differs, also if the contents of others were not read.
    found = matrix(("a", "b"), contents=compared(("a", "b"), unread="a"))
    assert (cell(found, "ab").outcome, cell(found, "ab").unread) == (Outcome.DIVERGED, "")


def test_contents_that_could_not_be_read_leave_the_answer_open() -> None:
    """The audit of the same servers is UNKNOWN then: "yes" would be more than is known."""
    found = matrix(contents=compared(("a", "b"), ("b", "c"), unread="c"))
    assert outcomes(found) == {
        "ab": Outcome.SERVED,
        "ac": Outcome.UNKNOWN,
        "bc": Outcome.UNKNOWN,
    }
    assert cell(found, "bc").unread == "whether b and c have one content: c: no privilege"
    # Other pairs that were compared, without a difference, lead from one to the other.
    found = matrix(contents=compared(("a", "b"), ("b", "c")))
    assert set(outcomes(found).values()) == {Outcome.SERVED}


# a and b have a:8-9, and c does not; under a:9 they differ.
LAGGING = (one("a", "a:1-9"), one("b", "a:1-9"), one("c", "a:1-7"))


def test_a_candidate_does_not_fetch_one_of_two_contents() -> None:
    """Either would decide which content it has, and all that follow it."""
    found = promotion_of(matrix(("a", "b"), servers=LAGGING), "c")
    [missing] = found.missing
    assert (missing.donor, missing.gtid_set, missing.apart) == (None, sets("a:8-9"), sets("a:9"))
    assert (found.verdict, found.best) == (Verdict.CRITICAL, None)
    [step] = [
        each
        for each in promotion_steps(found, a_cluster("cluster", *LAGGING))
        if "It misses" in each.what
    ]
    assert step.statements == ()
    assert "a and b cannot send it" in step.what
    # Without a difference one of them sends it.
    [missing] = promotion_of(matrix(servers=LAGGING), "c").missing
    assert (missing.donor, missing.apart) == ("a", GtidSet())


def test_a_candidate_does_not_fetch_from_a_server_that_it_differs_from() -> None:
    """Its applier may stop at the first change of these rows, or change others."""
    servers = (one("a", "a:1-12"), one("b", "a:1-9"))
    found = promotion_of(matrix(("a", "b"), servers=servers), "b")
    [missing] = found.missing
    assert (missing.donor, missing.gtid_set, missing.apart) == (None, sets("a:10-12"), sets("a:9"))
    steps = promotion_steps(found, a_cluster("cluster", *servers))
    assert not any("WAIT_FOR" in line for each in steps for line in each.statements)


def test_of_two_contents_no_count_decides_which_server_would_do_better() -> None:
    servers = (one("a", "a:1-9"), one("b", "a:1-9 b:1"))
    assert promotion_of(matrix(servers=servers), "a").best == "b"
    assert promotion_of(matrix(("a", "b"), servers=servers), "a").best is None


def test_servers_that_both_differ_from_a_third_are_likely_to_agree() -> None:
    """A source used a GTID again: its replicas have the former transaction, both."""
    found = matrix(("a", "b"), ("a", "c"))
    answer = cell(found, "bc")
    assert answer.outcome is Outcome.SERVED
    [doubt] = answer.doubts
    assert doubt == (
        f"b and c both have another content than a under {sets('a:9')} (E4), and were not compared"
        " with each other"
    )
    assert not cell(matrix(("a", "b"), ("a", "c"), contents=compared(("b", "c"))), "bc").doubts


def test_a_server_without_the_gtid_takes_no_part() -> None:
    """It fetches the content of its source; and a comparison with it is not about the GTID."""
    behind = (*THREE[:2], one("c", "a:1-8"))
    assert cell(matrix(("a", "b"), servers=behind), "ab").outcome is Outcome.DIVERGED
    served = matrix(("a", "b"), servers=behind).answer(replica="c", source="b")
    assert (served.outcome, served.fetched) == (Outcome.SERVED, sets("a:9"))
    four = (*THREE[:2], one("c", "a:1-8"), server("d", "a:1-9"))
    found = matrix(("a", "b"), contents=compared(("b", "c"), ("c", "d")), servers=four)
    assert found.answer(replica="d", source="b").outcome is Outcome.UNKNOWN


def test_an_accepted_difference_leaves_nothing_open() -> None:
    snapshot = a_cluster("cluster", *THREE)
    audit = with_differences(snapshot, "a:9", ("a", "b"))
    object.__setattr__(audit.findings[0], "severity", Severity.INFO)
    found = handshake_matrix(snapshot, audit, Policy())
    assert {each.outcome for each in found.answers} == {Outcome.SERVED}


def test_a_third_member_of_a_group_has_one_content_or_the_other() -> None:
    three = tuple(member(name, "a:1-9") for name in "abc")
    assert three[0].settings == CONFIGURED
    found = matrix(("a", "b"), servers=three)
    assert (cell(found, "bc").outcome, bool(cell(found, "bc").group)) == (Outcome.UNKNOWN, True)
    found = matrix(("a", "b"), servers=three, contents=compared(("a", "b"), ("b", "c")))
    assert outcomes(found) == {
        "ab": Outcome.DIVERGED,
        "ac": Outcome.DIVERGED,
        "bc": Outcome.GROUP,
    }


def test_a_doubt_is_added_to_an_answer_that_is_bad_already() -> None:
    servers = (*THREE[:2], one("c", "a:1-9 c:1"))
    answer = matrix(("a", "b"), servers=servers).answer(replica="c", source="b")
    assert (answer.outcome, answer.gtid_set) == (Outcome.DIVERGED, sets("c:1"))
    assert any(each.startswith("whether c has the content of a or of b") for each in answer.doubts)

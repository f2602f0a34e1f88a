"""A candidate with extra transactions: the others would execute them after later ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gtid import GtidSet
from tests.repair.cases import a_finding
from tests.snapshots import NOON, A, a_channel, a_cluster
from tests.topology.test_handshake import one, sets
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Evidence, Severity, Verdict
from topology.facts.accepted_findings import NOT_ACCEPTED_SEVERITY
from topology.handshake.late_extras import extras_of
from topology.handshake.matrix import HandshakeMatrix, handshake_matrix
from topology.handshake.promotion import Promotion, PromotionStep, promotion_of
from topology.handshake.promotion_steps import promotion_steps
from topology.policy import Policy
from topology.readings.content_class import ContentClass
from topology.readings.history_evidence import ExtraTransaction, HistoryEvidence

DATA, EMPTY, HARMLESS = ContentClass.DATA, ContentClass.EMPTY, ContentClass.HARMLESS


def answered(
    *contents: ContentClass, policy: Policy | None = None, d: str = ""
) -> tuple[HandshakeMatrix, list[Promotion], list[tuple[PromotionStep, ...]]]:
    """Evaluate a star in which b has extra transactions; `contents` is what its log has of them."""
    channel = a_channel("a", A)
    extras = tuple(
        ExtraTransaction(sets(f"b:{number}"), content, NOON, ())
        for number, content in enumerate(contents, start=1)
    )
    snapshot = a_cluster(
        "star",
        one("a", "a:1-5"),
        replace(
            one("b", "a:1-5 b:1-2", channels=(channel,)),
            history_evidence=HistoryEvidence(None, (), extras=extras),
        ),
        one("c", "a:1-5", channels=(channel,)),
        one("d", d, channels=(channel,)),
    )
    policy = policy or Policy()
    matrix = handshake_matrix(snapshot, audit_cluster(snapshot, policy), policy)
    promotions = [promotion_of(matrix, name) for name in ("b", "c")]
    return matrix, promotions, [promotion_steps(each, snapshot) for each in promotions]


def extra_on(matrix: HandshakeMatrix, name: str) -> GtidSet:
    return matrix.answer(replica=name, source="b").extra


@pytest.mark.parametrize(
    ("contents", "extra"),
    [
        ((), "b:1-2"),  # not read
        ((DATA, DATA), "b:1-2"),
        ((EMPTY, DATA), "b:2"),
        ((ContentClass.DDL, HARMLESS), "b:1"),
        ((ContentClass.UNREAD, EMPTY), "b:1"),
        ((EMPTY, HARMLESS), ""),
    ],
)
def test_extra_is_what_may_change_rows(contents: tuple[ContentClass, ...], extra: str) -> None:
    matrix, [promotion, _], [steps, _] = answered(*contents, d="a:1-4")
    assert [extra_on(matrix, name) for name in "acd"] == [sets(extra)] * 3
    pointed = {each.server for each in steps if each.statements}
    if extra:
        assert promotion.blocked == {"a", "c", "d"}
        assert (promotion.verdict, pointed) == (Verdict.WARNING, {"b"})
        told = [each.what for each in steps if each.server == "c"]
        assert "Plan the repair of these transactions" in told[0]
        assert told[1].startswith("Do not point it to b before the repair")
        assert not promotion.doubts, "it has a step of its own"
    else:
        assert (promotion.blocked, pointed) == (frozenset(), {"a", "b", "c", "d"})


def test_the_table_says_it_and_the_source_answers_yes_all_the_same() -> None:
    matrix, _, _ = answered(d="a:1-4")
    answer = matrix.answer(replica="c", source="b")
    assert (answer.attaches, answer.may_be_pointed) == (True, False)
    assert any("which only some servers should have" in each for each in answer.doubts)


def test_a_server_without_any_transaction_executes_all_in_order() -> None:
    matrix, [promotion, _], _ = answered()
    assert extra_on(matrix, "d") == GtidSet()
    assert promotion.blocked == {"a", "c"}


def test_what_the_policy_allows_is_not_extra() -> None:
    """Accepted work of one server: T6."""
    uuids = frozenset(each.uuid for each in sets("b:1").tsids)
    matrix, _, _ = answered(policy=Policy(allowed_uuids=uuids))
    assert extra_on(matrix, "c") == GtidSet()


@pytest.mark.parametrize("code", ["E1", "E2", "H7", "J3"])
def test_what_is_accepted_is_extra_all_the_same(code: str) -> None:
    """Accepted: the errant transactions. Not that others execute them after later ones."""
    noted = Evidence(NOT_ACCEPTED_SEVERITY, "critical", "b", NOON)
    found = replace(a_finding(code, "b:1"), severity=Severity.INFO, evidence=(noted,))
    assert extras_of([found], ()) == found.gtid_set
    assert extras_of([replace(found, evidence=(replace(noted, fact="x"),))], ()) == GtidSet()
    assert extras_of([replace(found, code="E3")], ()) == GtidSet()


def test_a_candidate_that_fetches_them_is_warned() -> None:
    _, [_, promotion], [_, steps] = answered()
    [missing] = promotion.missing
    assert (missing.donor, missing.extra) == ("b", sets("b:1-2"))
    [step] = [each for each in steps if each.server == "c" and "It misses" in each.what]
    assert "But c may execute" in step.what
    _, [_, harmless], [_, steps] = answered(EMPTY, EMPTY)
    assert [each.extra for each in harmless.missing] == [GtidSet()]
    assert not any("But c may execute" in each.what for each in steps)

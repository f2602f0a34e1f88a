"""What one source answers: what it is committing, what may arrive, and two contents of one GTID."""

from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import A, B, a_channel, a_cluster, a_server
from topology.facts.cluster_readings import read_twice
from topology.facts.source_answer import (
    AnsweringSource,
    FailedCheck,
    Offer,
    Outcome,
    SourceAnswer,
    source_answer,
)
from topology.readings.history_evidence import HistoryEvidence
from topology.readings.snapshot import ThreadState

NOTHING = GtidSet()


def gtids(text: str) -> GtidSet:
    return GtidSet.parse(f"{A}:{text}")


def answer(*, unlike: GtidSet = NOTHING, offered: str = "1-9", **facts: Any) -> SourceAnswer:
    """Return the answer of a, which has 1-8 of its own, to b."""
    read = read_twice(a_cluster("pair", a_server("a", A, f"{A}:1-8"), a_server("b", B, "")))
    source = AnsweringSource(
        "a",
        read["a"].last,
        **{"committing": NOTHING, "arriving": NOTHING, "may_arrive": NOTHING, **facts},
    )
    offer = Offer("b", gtids(offered), NOTHING, gtids(offered), read["b"].last)
    return source_answer(offer, source, allowed=NOTHING, unlike=unlike)


def test_what_the_source_is_committing_is_its_own() -> None:
    assert answer().refusal is FailedCheck.MORE_GTIDS
    assert answer(committing=gtids("9")).outcome is Outcome.SERVED


def test_two_contents_of_one_gtid_are_hidden_although_all_else_is_there() -> None:
    assert answer(offered="1-8").outcome is Outcome.SERVED
    found = answer(offered="1-8", unlike=gtids("3"))
    assert (found.outcome, found.unlike) == (Outcome.DIVERGED, gtids("3"))


def test_two_contents_of_one_gtid_are_hidden_whatever_else_may_arrive() -> None:
    other = GtidSet.parse(f"{B}:1")
    read = read_twice(a_cluster("pair", a_server("a", A, f"{A}:1-8"), a_server("b", B, "")))
    source = AnsweringSource("a", read["a"].last, NOTHING, NOTHING, may_arrive=other)
    has = gtids("1-8") | other
    offer = Offer("b", has, NOTHING, has, read["b"].last)
    assert source_answer(offer, source, allowed=NOTHING, unlike=NOTHING).outcome is Outcome.UNKNOWN
    found = source_answer(offer, source, allowed=NOTHING, unlike=gtids("3"))
    assert found.outcome is Outcome.DIVERGED


def test_a_server_in_offline_mode_accepts_few_accounts() -> None:
    settings = (("gtid_mode", "ON"), ("offline_mode", "ON"))
    a = a_server("a", A, f"{A}:1-8", settings=settings)
    read = read_twice(a_cluster("pair", a, a_server("b", B, "")))
    source = AnsweringSource("a", read["a"].last, NOTHING, NOTHING, NOTHING)
    offer = Offer("b", NOTHING, NOTHING, NOTHING, read["b"].last)
    found = source_answer(offer, source, allowed=NOTHING, unlike=NOTHING)
    assert found.outcome is Outcome.SERVED
    [doubt] = [each for each in found.doubts if "offline_mode" in each]
    assert "without CONNECTION_ADMIN (or SUPER) with error 3032" in doubt


@pytest.mark.parametrize(
    ("executed", "schemas", "is_connected", "is_doubted"),
    [
        ("", None, False, True),
        ("", 2, False, True),
        ("", 0, False, False),  # it is new
        ("", None, True, False),  # it receives them now
        (f"{A}:1-2", None, False, False),
        (f"{B}:1-2", None, False, False),  # a primary that was never a replica
    ],
)
def test_a_server_without_gtids_may_have_the_rows(
    executed: str, schemas: int | None, *, is_connected: bool, is_doubted: bool
) -> None:
    """After a reset, or a dump without its GTID set, it would execute everything once more."""
    receiver = ThreadState.RUNNING if is_connected else ThreadState.CONNECTING
    b = a_server(
        "b",
        B,
        executed,
        channels=(a_channel("a", A, receiver=receiver),),
        history_evidence=HistoryEvidence(None, (), schemas_count=schemas),
    )
    read = read_twice(a_cluster("pair", a_server("a", A, f"{A}:1-8"), b))
    source = AnsweringSource("a", read["a"].last, NOTHING, NOTHING, NOTHING)
    has = GtidSet.parse(executed)
    found = source_answer(
        Offer("b", has, NOTHING, has, read["b"].last), source, allowed=NOTHING, unlike=NOTHING
    )
    words = "b has executed nothing: if it was reset (RESET BINARY LOGS AND GTIDS)"
    assert any(words in each for each in found.doubts) is is_doubted

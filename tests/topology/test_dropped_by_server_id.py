"""What a replica would drop because of the server_id that transactions carry, and what arrives.

The sets are the same in each pair of tests; the server_ids in the logs, or of the servers, differ.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from gtid_audit.views.handshake_text import show_handshakes
from tests.gtid_audit.test_handshake_command import shown
from tests.snapshots import A, B, a_channel, a_cluster, commits_of
from tests.topology.test_group_handshake import matrix
from tests.topology.test_handshake import one, sets
from tests.topology.test_promotion_order import of, of_servers, written
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Grade, Verdict
from topology.facts.source_answer import Outcome
from topology.handshake.matrix import handshake_matrix
from topology.policy import Policy
from topology.readings.history_evidence import HistoryEvidence
from topology.readings.snapshot import ServerSnapshot


def logged(*gtids: str, server_id: int) -> HistoryEvidence:
    """Return the commits of a log, all with one server_id."""
    made = commits_of(*gtids)
    return replace(made, commits=tuple(replace(each, server_id=server_id) for each in made.commits))


def chain(*, last_id: int, last: str = "a:1-3") -> tuple[ServerSnapshot, ...]:
    """Return a ─▶ b ─▶ c; the server_id of a is 7."""
    return (
        one("a", "a:1-4", server_id=7),
        one("b", "a:1-4", server_id=8, channels=(a_channel("a", A, gtid_retrieved=sets("a:1-4")),)),
        one("c", last, server_id=last_id, channels=(a_channel("b", B),)),
    )


# -- another server has the replica's server_id (C2) ----------------------------------------------


def test_what_a_server_with_the_same_server_id_committed_is_dropped() -> None:
    answer = matrix(*chain(last_id=7)).answer(replica="c", source="b")
    assert (answer.outcome, answer.dropped) == (Outcome.INCOMPLETE, sets("a:4"))
    assert (answer.same_id, answer.fetched) == (sets("a:4"), sets(""))
    answer = matrix(*chain(last_id=9)).answer(replica="c", source="b")
    assert (answer.outcome, answer.fetched) == (Outcome.SERVED, sets("a:4"))


def test_what_its_receiver_counts_as_received_is_dropped_as_well() -> None:
    *above, last = chain(last_id=7)
    last = replace(last, channels=(a_channel("b", B, gtid_retrieved=sets("a:1-4")),))
    answer = matrix(*above, last).answer(replica="c", source="b")
    assert (answer.outcome, answer.dropped) == (Outcome.INCOMPLETE, sets("a:4"))


def test_a_promotion_gives_the_server_another_server_id_first() -> None:
    promotion, steps = of_servers("b", *chain(last_id=7))
    assert promotion.verdict is Verdict.WARNING
    change, kept = of(steps, "c")
    assert change.what == (
        f"Its server_id, 7, is also that of a (C2). It drops {A}:4, without an error. Give it"
        " another server_id, in its configuration file too, and run this again."
    )
    assert change.statements == (
        "STOP REPLICA;",
        "SET GLOBAL server_id = (a number that no other server has);",
        "START REPLICA;",
    )
    assert kept.what.startswith("Do not point it to b before the repair")


def test_equal_sets_and_one_server_id_are_a_warning_too() -> None:
    """What one of the two commits later, the other one drops."""
    promotion, steps = of_servers("b", *chain(last_id=7, last="a:1-4"))
    assert promotion.verdict is Verdict.WARNING
    [change] = of(steps, "c")
    assert "(C2). It drops what a server with the same server_id commits" in change.what
    promotion, steps = of_servers("b", *chain(last_id=9, last="a:1-4"))
    assert (promotion.verdict, of(steps, "c")) == (Verdict.OK, [])


def test_the_candidate_keeps_its_server_id_unless_it_drops_something() -> None:
    two = one("a", "a:1", server_id=7), one("b", "a:1", server_id=7)
    promotion, _ = of_servers("b", *two)
    assert [each.server for each in promotion.shared_ids] == ["a"]
    promotion, _ = of_servers("c", *chain(last_id=7))
    assert [each.server for each in promotion.shared_ids] == ["c"]


def test_what_the_candidate_drops_is_not_called_lost() -> None:
    promotion, steps = of_servers("c", *chain(last_id=7))
    assert promotion.verdict is Verdict.CRITICAL  # a would be refused, too
    assert f"It gets {A}:4 only with another server_id: give it that first." in written(steps)
    assert "No server can send it" not in written(steps)


def test_a_server_id_that_no_server_has_any_more_shows_in_a_log() -> None:
    """a is gone: only the log of b shows that c has its server_id."""
    _, middle, last = chain(last_id=7)
    gone = replace(middle, channels=())
    found = matrix(replace(gone, history_evidence=logged(f"{A}:4", server_id=7)), last)
    answer = found.answer(replica="c", source="b")
    assert (answer.outcome, answer.dropped) == (Outcome.INCOMPLETE, sets("a:4"))
    found = matrix(replace(gone, history_evidence=logged(f"{A}:4", server_id=6)), last)
    answer = found.answer(replica="c", source="b")
    assert (answer.outcome, answer.fetched) == (Outcome.SERVED, sets("a:4"))
    promotion, steps = of_servers(
        "b", replace(gone, history_evidence=logged(f"{A}:4", server_id=7)), last
    )
    assert promotion.verdict is Verdict.WARNING
    assert steps[1].what.startswith(
        "Another server committed transactions with its server_id, 7 (C2)."
    )


# -- transactions of the replica's own UUID (E3, E6, H7) ------------------------------------------


def lost_and_held(server_id: int | None) -> tuple[ServerSnapshot, ServerSnapshot]:
    """Return a, which does not have a:4, and b, which has it; the server_id of a is 7."""
    evidence = None if server_id is None else logged(f"{A}:4", server_id=server_id)
    return (
        one("a", "a:1-2", server_id=7),
        one("b", "a:1-2:4", server_id=8, history_evidence=evidence),
    )


@pytest.mark.parametrize(
    ("server_id", "outcome", "dropped", "undecided"),
    [
        (7, Outcome.INCOMPLETE, "a:4", ""),
        (8, Outcome.SERVED, "", ""),  # a session on b set gtid_next: a receives it
        (None, Outcome.INCOMPLETE, "a:4", "a:4"),
    ],
)
def test_the_log_shows_whether_a_transaction_of_its_own_uuid_arrives(
    server_id: int | None, outcome: Outcome, dropped: str, undecided: str
) -> None:
    answer = matrix(*lost_and_held(server_id)).answer(replica="a", source="b")
    assert (answer.outcome, answer.dropped) == (outcome, sets(dropped))
    assert (answer.undecided, answer.fetched) == (
        sets(undecided),
        sets("a:4") - sets(dropped),
    )


@pytest.mark.parametrize(
    ("code", "grade", "dropped", "undecided"),
    [
        ("E3", Grade.PROVED, "a:4", ""),
        ("E6", Grade.PROVED, "a:4", ""),
        ("E3", Grade.LIKELY, "a:4", "a:4"),
        ("H7", Grade.PROVED, "", ""),
        ("H7", Grade.LIKELY, "a:4", "a:4"),
        ("E1", Grade.PROVED, "a:4", "a:4"),
    ],
)
def test_without_a_log_a_proved_finding_separates_the_causes(
    code: str, grade: Grade, dropped: str, undecided: str
) -> None:
    snapshot = a_cluster("cluster", *lost_and_held(None))
    audit = audit_cluster(snapshot)
    [found] = [each for each in audit.findings if each.source == "a"]
    findings = (replace(found, code=code, grade=grade),)
    changed = handshake_matrix(snapshot, replace(audit, findings=findings), Policy())
    answer = changed.answer(replica="a", source="b")
    assert (answer.dropped, answer.undecided) == (sets(dropped), sets(undecided))
    others = (replace(found, code=code, grade=grade, source="b"),)
    changed = handshake_matrix(snapshot, replace(audit, findings=others), Policy())
    assert changed.answer(replica="a", source="b").undecided == sets("a:4")


def test_both_causes_are_in_the_text_if_no_log_separates_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def text_of(server_id: int | None) -> str:
        show_handshakes(shown(*lost_and_held(server_id), promote="b"))
        return " ".join(capsys.readouterr().out.split())

    text = text_of(None)
    assert "If a committed them and lost them, its receiver drops them" in text
    assert "If a session on another server set gtid_next to them (H7), they arrive." in text
    assert "itself and lost them" not in text
    text = text_of(7)
    assert f"a committed {A}:4 itself and lost them" in text
    text = text_of(8)
    assert "lost" not in text
    assert "yes, +1" in text


def test_a_promotion_does_not_bring_a_server_what_was_made_by_hand() -> None:
    """It would arrive, after what its origin has committed since (late_extras.py)."""
    promotion, steps = of_servers("b", *lost_and_held(8))
    assert promotion.verdict is Verdict.WARNING
    assert "Plan the repair of these transactions" in of(steps, "a")[0].what
    assert not any(step.statements for step in of(steps, "a"))
    promotion, steps = of_servers("b", *lost_and_held(None))
    assert promotion.verdict is Verdict.WARNING
    [why, _] = of(steps, "a")
    assert "if a session on another server committed them (H7), they arrive" in why.what
    assert not any(step.statements for step in of(steps, "a"))


# -- a channel by file position -------------------------------------------------------------------


@pytest.mark.parametrize("auto_position", [True, False])
def test_what_a_channel_by_file_position_received_is_not_sent_with_auto_position(
    auto_position: bool,
) -> None:
    """The change to auto-position deletes the relay log."""
    channel = a_channel("a", A, gtid_retrieved=sets("a:1-5"), auto_position=auto_position)
    below = one("b", "a:1-3:5", channels=(channel,))
    answer = matrix(one("a", "a:1-5", purged="a:1-5"), below).answer(replica="b", source="a")
    assert answer.attaches is auto_position

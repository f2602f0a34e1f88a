"""A source whose binary logs are incomplete: what it surely sends, and what is not known.

The list shows a missing log by its size or by a gap in the numbers. What the heads of the logs and
a search of them showed decides whether that log is needed.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from gtid import GtidSet
from gtid_audit.views.handshake_text import show_handshakes
from gtid_audit.views.handshakes import handshakes_of_consumer
from tests.consumers import a_consumer
from tests.gtid_audit.test_handshake_command import shown
from tests.snapshots import A, a_cluster, commits_of
from tests.topology.test_handshake import matrix, one, sets
from tests.topology.test_promotion_order import of, of_servers
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Verdict
from topology.facts.cluster_facts import gather_facts
from topology.facts.source_answer import FailedCheck, Outcome
from topology.policy import Policy
from topology.questions.log_questions import questions_of
from topology.readings.history_evidence import HistoryEvidence, LogReach
from topology.readings.snapshot import BinaryLog, ServerSnapshot, UnreadFact, UnreadReason

GONE = (BinaryLog("binlog.000001", 900), BinaryLog("binlog.000002", 0))
UNLISTED = (BinaryLog("binlog.000001", 900), BinaryLog("binlog.000003", 900))
WHOLE = (BinaryLog("binlog.000001", 900), BinaryLog("binlog.000002", 900))
LATER = BinaryLog("binlog.000004", 900)


def begins_in(file: str, *found: str, absent: str = "") -> HistoryEvidence:
    """Return what was read about a:3-4: the first log with any, and which a search found."""
    made = commits_of(*(f"{A}:{each}" for each in found))
    reach = LogReach(sets("a:3-4"), file, None)
    return replace(made, reaches=(reach,) if file else (), absent=sets(absent))


def source(logs: tuple[BinaryLog, ...], evidence: HistoryEvidence | None = None) -> ServerSnapshot:
    return one("a", "a:1-4", binary_logs=logs, history_evidence=evidence)


@pytest.mark.parametrize(
    ("logs", "evidence", "is_served"),
    [
        (WHOLE, None, True),
        (GONE, None, False),
        (UNLISTED, None, False),
        ((*GONE, LATER), begins_in("binlog.000002"), False),
        ((*GONE, LATER), begins_in("binlog.000001"), False),
        ((*GONE, LATER), begins_in("binlog.000004"), True),
        # The dump ends at a log that cannot be opened, even if nothing of it is needed.
        ((*GONE, LATER), begins_in("binlog.000001", "3", "4"), False),
        ((*UNLISTED, LATER), begins_in("binlog.000001"), False),
        ((*UNLISTED, LATER), begins_in("binlog.000003"), True),
        ((*UNLISTED, LATER), begins_in("other.000003"), False),
        (UNLISTED, begins_in("binlog.000001", "3", "4"), True),
        (UNLISTED, begins_in("binlog.000001", "4"), False),
        (UNLISTED, begins_in("binlog.000001", "4", absent="a:3"), False),
    ],
)
def test_a_missing_log_leaves_the_answer_open_unless_it_is_not_needed(
    logs: tuple[BinaryLog, ...], evidence: HistoryEvidence | None, *, is_served: bool
) -> None:
    holder = source(logs, evidence)
    found = matrix(holder, one("b", "a:1-2")).answer(replica="b", source="a")
    assert found.outcome is (Outcome.SERVED if is_served else Outcome.UNKNOWN)
    [offered] = shown(holder, offered="a:1-2").matrix.answers
    assert offered.outcome is found.outcome
    assert shown(holder, offered="a:1-2").verdict is (Verdict.OK if is_served else Verdict.UNKNOWN)


def test_nothing_is_needed_from_a_missing_log_where_nothing_is_sent() -> None:
    found = matrix(source(GONE), one("b", "a:1-4"))
    assert found.verdict is Verdict.OK


def test_what_no_log_has_any_more_is_in_the_reason() -> None:
    holder = source(UNLISTED, begins_in("binlog.000001", "4", absent="a:3"))
    answer = matrix(holder, one("b", "a:1-2")).answer(replica="b", source="a")
    assert answer.unread == (
        f"whether a can send {A}:3-4 (the binary logs of a have no binlog.000002, and do not have"
        f" {A}:3 any more: b never gets these from there, and no error shows it); another reading"
        " does not change that"
    )


def test_an_answer_that_stays_open_asks_for_no_other_reading(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_handshakes(shown(source(GONE), offered="a:1-2"))
    text = " ".join(capsys.readouterr().out.split())
    assert "a cannot open its binary log binlog.000002" in text
    assert "another reading does not change that." in text
    assert "Run it again" not in text


def test_a_list_of_logs_that_was_not_read_leaves_the_answer_open(
    capsys: pytest.CaptureFixture[str],
) -> None:
    refused = UnreadFact("binary_logs", UnreadReason.PRIVILEGE, "access denied")
    unlisted = one("a", "a:1-2", binary_logs=None, unread=(refused,))
    found = matrix(unlisted, one("b", "a:1"), one("c", "a:1-2"))
    answer = found.answer(replica="b", source="a")
    assert "the list of binary logs of a was not read" in answer.unread
    assert found.answer(replica="c", source="a").attaches
    show_handshakes(shown(unlisted, offered="a:1"))
    assert "Run it again" in " ".join(capsys.readouterr().out.split())


def test_a_refusal_and_a_difference_stay_what_they_are() -> None:
    purged = replace(source(GONE), gtid_purged=sets("a:1-3"))
    answer = matrix(purged, one("b", "a:1-2")).answer(replica="b", source="a")
    assert answer.refusal is FailedCheck.PURGED
    answer = matrix(source(GONE), one("b", "a:1-2 b:1")).answer(replica="b", source="a")
    assert answer.outcome is Outcome.DIVERGED
    assert "cannot open its binary log binlog.000002" in answer.doubts[0]


def test_a_server_is_not_pointed_to_a_source_with_a_missing_log() -> None:
    servers = (source(GONE), one("b", "a:1-2"), one("c", "a:1-4"))
    promotion, steps = of_servers("a", *servers)
    assert promotion.verdict is Verdict.UNKNOWN
    [not_known] = of(steps, "b")
    assert not_known.what.endswith("another reading does not change that. Do not point it there.")
    assert promotion.best == "c"
    [point] = of(steps, "c")
    assert point.statements


def test_a_consumer_has_the_answer_of_the_audit() -> None:
    consumer = a_consumer("cdc", sets("a:1-2"))
    for evidence, verdict in (
        (None, Verdict.UNKNOWN),
        (begins_in("binlog.000003"), Verdict.OK),
    ):
        snapshot = replace(a_cluster("shop", source(UNLISTED, evidence)), consumers=(consumer,))
        audit = audit_cluster(snapshot)
        assert bool(audit.unknown) is (verdict is Verdict.UNKNOWN)
        shown_one = handshakes_of_consumer(snapshot, audit, Policy(), consumer)
        assert shown_one.verdict is verdict


# -- what the logs are asked ----------------------------------------------------------------------


def asked(*servers: ServerSnapshot, offered: GtidSet | None = None, pairs: bool = False) -> str:
    facts = gather_facts(a_cluster("shop", *servers), Policy())
    found = questions_of(facts, offered, pairs=pairs).get("a")
    return "" if found is None else str(GtidSet.union_of(found.commits))


def test_logs_are_searched_only_where_one_is_missing() -> None:
    two = (source(UNLISTED), one("b", "a:1-3"))
    assert asked(*two, offered=sets("a:1-2")) == f"{A}:3-4"
    assert asked(*two, pairs=True) == f"{A}:4"
    assert asked(*two) == ""
    whole = (source(WHOLE), one("b", "a:1-3"))
    assert asked(*whole, offered=sets("a:1-2")) == asked(*whole, pairs=True) == ""


def test_a_log_that_is_listed_and_gone_is_not_searched() -> None:
    """A search would end with its error; the heads of the other logs decide."""
    two = (source((*GONE, LATER)), one("b", "a:1-3"))
    facts = gather_facts(a_cluster("shop", *two), Policy())
    question = questions_of(facts, pairs=True)["a"]
    assert (set(question.reaches), question.commits) == ({sets("a:4")}, ())

"""H5: what each fact changes about a gap that is in no binary log of the source."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from gtid import GtidSet
from tests.snapshots import NOON, A, B, C, a_channel, a_cluster, a_server, an_unread
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Finding, Grade, Severity, Verdict
from topology.facts.cluster_facts import ClusterFacts, gather_facts
from topology.facts.unlogged import without_event
from topology.handshake.matrix import handshake_matrix
from topology.policy import Policy
from topology.questions.log_questions import questions_of
from topology.readings.history_evidence import CommitRecord, HistoryEvidence
from topology.readings.snapshot import BinaryLog, ClusterSnapshot, ThreadState
from topology.readings.version import ServerVersion
from topology.rules.ghosts import source_ghost

READ_ALL = "Slave has read all relay log; waiting for the slave I/O thread to update it"


def own(numbers: str) -> GtidSet:
    return GtidSet.parse(numbers and f"{A}:{numbers}")


D = UUID("dddddddd-0000-0000-0000-000000000000")


def star(
    *,
    absent: str = "41-42",
    bypassed: str = "41-42",
    c: dict[str, Any] | None = None,
    is_c_read: bool = True,
) -> ClusterFacts:
    """Gather the facts of a -> b and a -> c. A position is after what b is missing of a."""
    evidence = HistoryEvidence(None, (), absent=own(absent))
    facts = {"gtid_executed": own("1-100"), "channels": (a_channel("a", A),), **(c or {})}
    servers = (
        a_server("a", A, own("1-100"), history_evidence=evidence),
        a_server("b", B, own("1-100") - own(bypassed), channels=(a_channel("a", A),)),
        replace(a_server("c", C, ""), **facts) if is_c_read else an_unread("c"),
    )
    return gather_facts(a_cluster("star", *servers), Policy())


def h5(facts: ClusterFacts) -> Finding:
    [found] = source_ghost(facts)
    return found


def test_h5_names_the_server_that_has_the_transactions() -> None:
    found = h5(star())
    assert (found.source, found.replica, found.gtid_set) == ("a", "b", own("41-42"))
    assert found.grade is Grade.PROVED
    assert [each.name for each in found.strategies] == ["donor_refetch", "reclone"]
    assert [(each.read_from, each.value) for each in found.evidence] == [
        ("a", f"{A}:41-42"),
        ("b", f"{A}:41-42"),
        ("a", "c"),
    ]
    assert "b does not have 2 transactions of a, and no binary log of a has" in found.explanation
    assert "the binary logs of c have them" in found.explanation
    assert "a bug of mysqld" not in found.explanation
    assert "both ends of these ranges" not in found.explanation


def test_a_donor_may_have_nothing_else_in_its_binary_logs() -> None:
    found = h5(star(c={"gtid_purged": own("1-40:43-100")}))
    assert [each.name for each in found.strategies] == ["donor_refetch", "reclone"]


@pytest.mark.parametrize(
    ("c", "is_read"),
    [
        ({"gtid_executed": own("1-41:43-100")}, True),  # a part of them
        ({"gtid_purged": own("1-41")}, True),
        ({}, False),
    ],
)
def test_a_donor_has_all_of_them_in_its_binary_logs(c: dict[str, Any], *, is_read: bool) -> None:
    found = next(source_ghost(star(c=c, is_c_read=is_read)))
    assert [each.name for each in found.strategies] == ["reclone"]
    assert found.evidence[-1].value == "no audited server"
    assert "the binary logs of" not in found.explanation
    assert "a bug of mysqld" in found.explanation


def test_each_replica_and_each_range_is_reported() -> None:
    found = list(source_ghost(star(c={"gtid_executed": own("1-40:42-100")})))
    assert [(each.replica, each.gtid_set) for each in found] == [
        ("b", own("41-42")),
        ("c", own("41")),
    ]


@pytest.mark.parametrize(
    ("absent", "bypassed", "expected", "grade"),
    [
        ("41-42", "41-42:50", "41-42", Grade.PROVED),
        ("41:43", "41-43", "41-43", Grade.LIKELY),  # nothing was searched between the ends
        ("41:43:50", "41-43:50", "41-43:50", Grade.LIKELY),
    ],
)
def test_what_was_not_searched_of_a_large_gap_is_likely(
    absent: str, bypassed: str, expected: str, grade: Grade, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topology.readings.history_evidence.GAP_SEARCHED_MAX", 2)
    found = h5(star(absent=absent, bypassed=bypassed))
    assert (found.gtid_set, found.grade) == (own(expected), grade)
    is_in_part = "gtid-audit did not search for what is between the two ends" in found.explanation
    assert is_in_part is (grade is Grade.LIKELY)
    assert ("has both ends of these ranges" in found.explanation) is is_in_part


@pytest.mark.parametrize(
    ("version", "state", "grade"),
    [
        ((5, 6, 24), READ_ALL, Grade.PROVED),
        ((5, 6, 24), "System lock", Grade.LIKELY),
        ((5, 7, 24), "System lock", Grade.PROVED),
    ],
)
def test_before_5_7_one_of_them_may_be_in_the_relay_log(
    version: tuple[int, int, int], state: str, grade: Grade
) -> None:
    """5.6 forgets the last GTID that it received when it connects, and applies it all the same."""
    facts = star()
    channel = a_channel("a", A, applier_state=state)
    [b] = [each for each in facts.last.values() if each.name == "b"]
    b = replace(b, channels=(channel,), version=ServerVersion(*version))
    servers = (facts.last["a"], b, facts.last["c"])
    found = h5(gather_facts(a_cluster("star", *servers), Policy()))
    assert (found.gtid_set, found.grade) == (own("41-42"), grade)
    is_open = "if it is one of these, b applies it. Audit again" in found.explanation
    assert is_open is (grade is Grade.LIKELY)


@pytest.mark.parametrize(
    ("absent", "bypassed", "expected"),
    [("41-42", "41-43", "41-42"), ("41:43", "41-43", "41:43"), ("42", "41-43", "42")],
)
def test_of_a_small_gap_only_what_no_log_has_is_h5(
    absent: str, bypassed: str, expected: str
) -> None:
    """The source can send the rest: leaving that out would lose its rows."""
    found = h5(star(absent=absent, bypassed=bypassed))
    assert (found.gtid_set, found.grade) == (own(expected), Grade.PROVED)


@pytest.mark.parametrize(("absent", "bypassed"), [("", "41-43"), ("41", "41-43"), ("41", "")])
def test_without_both_ends_of_a_large_gap_there_is_no_h5(
    absent: str, bypassed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topology.readings.history_evidence.GAP_SEARCHED_MAX", 1)
    assert not list(source_ghost(star(absent=absent, bypassed=bypassed)))


@pytest.mark.parametrize(("expected", "grade"), [("42", Grade.LIKELY), ("43", Grade.PROVED)])
def test_another_channel_may_deliver_the_gap(expected: str, grade: Grade) -> None:
    back = a_channel("c", C, name="two")
    a, _, c = star().snapshot.first
    b = a_server("b", B, own("1-40:43-100"), channels=(a_channel("a", A), back))
    facts = gather_facts(a_cluster("star", a, b, c), Policy())
    edges = [
        replace(each, expected=own(expected), bypassed=own(""))
        if (each.source, each.replica) == ("c", "b")
        else each
        for each in facts.edges
    ]
    found = h5(replace(facts, edges=tuple(edges)))
    assert found.grade is grade
    assert ("Channel two from c may deliver them" in found.explanation) is (grade is Grade.LIKELY)


@pytest.mark.parametrize(
    ("c", "d", "grade"),
    [
        # c has received them, and applies them later.
        ({"gtid_executed": "1-40", "retrieved": "1-42"}, "1-40", Grade.LIKELY),
        # d has committed them, or still does, and sends them to c next.
        ({"gtid_executed": "1-40", "retrieved": ""}, "1-42", Grade.LIKELY),
        ({"gtid_executed": "1-40", "retrieved": ""}, "1-40 41-42", Grade.LIKELY),
        ({"gtid_executed": "1-40", "retrieved": ""}, "1-40", Grade.PROVED),
        # c has passed them.
        ({"gtid_executed": "1-40:43-50", "retrieved": ""}, "1-42", Grade.PROVED),
    ],
)
def test_what_waits_above_another_source_may_arrive(
    c: dict[str, str], d: str, grade: Grade
) -> None:
    """a has lost a log, and d is above c: b receives from both a and c."""
    executed, _, owned = d.partition(" ")
    channel = a_channel("d", D, gtid_retrieved=own(c["retrieved"]))
    a, _, _ = star().snapshot.first
    ends = (a_channel("a", A), a_channel("c", C, name="two"))
    facts = gather_facts(
        a_cluster(
            "star",
            a,
            a_server("b", B, own("1-40:43-100"), channels=ends),
            a_server("c", C, own(c["gtid_executed"]), channels=(channel,)),
            replace(a_server("d", D, own(executed)), gtid_owned=own(owned)),
        ),
        Policy(),
    )
    [found] = [each for each in source_ghost(facts) if each.source == "a"]
    assert found.grade is grade
    assert ("Channel two from c may deliver them" in found.explanation) is (grade is Grade.LIKELY)


def test_an_unread_log_shows_nothing() -> None:
    a = a_server("a", A, own("1-9"))
    assert without_event(own("1-9"), a) == GtidSet()
    searched = replace(a, history_evidence=HistoryEvidence(None, ()))
    assert without_event(own("1-9"), searched) == GtidSet()


# -- a log that was deleted shows in the list of logs ----------------------------------------------


def logs(*numbers: int, gone: int = 0, base: str = "binlog") -> tuple[BinaryLog, ...]:
    return tuple(BinaryLog(f"{base}.{each:06}", 0 if each == gone else 200) for each in numbers)


@pytest.mark.parametrize(
    ("listed", "unlisted"),
    [
        ((), ()),
        (logs(7, 8), ()),
        (logs(1, 3), ("binlog.000002",)),
        (logs(1, 3, 4, 8), ("binlog.000002", "binlog.000005")),
        (logs(999_999, 1_000_000), ()),
        ((*logs(1), *logs(3, base="newbin")), ()),
        (logs(3, 1), ()),
    ],
)
def test_a_gap_in_the_numbers_is_a_log_that_is_not_listed(
    listed: tuple[BinaryLog, ...], unlisted: tuple[str, ...]
) -> None:
    assert a_server("a", A, own("1-9"), binary_logs=listed).unlisted_logs == unlisted


def on_its_way(evidence: HistoryEvidence | None, listed: tuple[BinaryLog, ...]) -> ClusterSnapshot:
    """Return a -> b: b has not received a:41-42, and its receiver moves."""
    a = a_server("a", A, own("1-42"), binary_logs=listed)
    b = a_server("b", B, own("1-40"), channels=(a_channel("a", A),))
    read = a_cluster("pair", a, b)
    moved = a_channel("a", A, gtid_retrieved=own("1-40"), received_to=None)
    last = (
        replace(read.last[0], history_evidence=evidence),
        replace(read.last[1], channels=(moved,)),
    )
    return replace(read, last=last)


HELD = HistoryEvidence(
    None, tuple(CommitRecord(own(each), 1, NOON, is_exact=True) for each in ("41", "42"))
)


@pytest.mark.parametrize("listed", [logs(1, 3), logs(1, 2, 3, gone=2)])
def test_what_is_due_is_searched_for_where_a_log_was_deleted(
    listed: tuple[BinaryLog, ...],
) -> None:
    asked = questions_of(gather_facts(on_its_way(None, listed), Policy()))
    assert own("41-42") in asked["a"].commits
    intact = questions_of(gather_facts(on_its_way(None, logs(1, 2, 3)), Policy()))
    assert own("41-42") not in (intact["a"].commits if "a" in intact else ())


@pytest.mark.parametrize(
    ("evidence", "listed", "severity", "said"),
    [
        (None, logs(1, 2), Severity.INFO, ""),
        (None, logs(1, 3), Severity.WARNING, "The binary logs of a have no binlog.000002"),
        (None, logs(1, 2, 3, gone=2), Severity.WARNING, "a cannot open binlog.000002"),
        (HELD, logs(1, 3), Severity.INFO, ""),
        (HELD, logs(1, 2, 3, gone=2), Severity.INFO, ""),
        (replace(HELD, commits=HELD.commits[:1]), logs(1, 3), Severity.WARNING, "never arrive"),
    ],
)
def test_what_a_deleted_log_may_have_is_not_said_to_arrive(
    evidence: HistoryEvidence | None,
    listed: tuple[BinaryLog, ...],
    severity: Severity,
    said: str,
) -> None:
    [found] = audit_cluster(on_its_way(evidence, listed)).findings
    assert (found.code, found.severity) == ("T3", severity)
    assert said in found.explanation
    assert ("deleted by hand" in found.explanation) is ("have no" in found.explanation)
    assert bool(found.strategies) is (severity is Severity.INFO)


def test_what_no_log_has_is_h5_before_the_receiver_has_passed_it() -> None:
    absent = HistoryEvidence(None, HELD.commits[1:], absent=own("41"))
    audit = audit_cluster(on_its_way(absent, logs(1, 3)))
    found = {each.code: each for each in audit.findings}
    assert {code: each.gtid_set for code, each in found.items()} == {
        "H5": own("41"),
        "T3": own("42"),
    }
    assert found["H5"].grade is Grade.PROVED
    assert audit.verdict is Verdict.CRITICAL


@pytest.mark.parametrize(("listed", "is_doubted"), [(logs(1, 2, 3), False), (logs(1, 3), True)])
def test_a_start_is_not_said_to_deliver_what_a_deleted_log_may_have(
    listed: tuple[BinaryLog, ...], is_doubted: bool
) -> None:
    """a's channel from b is stopped by hand, and b has committed two transactions of its own."""
    both = own("1-40") | GtidSet.parse(f"{B}:1-2")
    stopped = ThreadState.STOPPED
    back = a_channel("b", B, receiver=stopped, applier=stopped, received_to=None, applied_to=None)
    a = a_server("a", A, own("1-40"), channels=(back,))
    b = a_server("b", B, both, channels=(a_channel("a", A),), binary_logs=listed)
    [errant] = [
        each for each in audit_cluster(a_cluster("pair", a, b)).findings if each.code == "E1"
    ]
    assert "When it is started, a applies them" in errant.explanation
    assert ("have no binlog.000002" in errant.explanation) is is_doubted


def test_a_handshake_says_that_a_log_was_deleted() -> None:
    snapshot = on_its_way(None, logs(1, 3))
    matrix = handshake_matrix(snapshot, audit_cluster(snapshot), Policy())
    answer = matrix.answer(replica="b", source="a")
    assert "the binary logs of a have no binlog.000002" in answer.unread

"""Why a server has lost transactions: each piece of evidence, and what it must not prove."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import NOON, A, B, C, a_channel, a_cluster, a_server
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Finding, Grade
from topology.facts.cluster_facts import gather_facts
from topology.facts.lost import commits_until, losses_of
from topology.policy import Policy
from topology.readings.history_evidence import CommitRecord, HistoryEvidence, LogStart
from topology.readings.snapshot import BinaryLog, ClusterSnapshot, ServerSnapshot, ThreadState

LOST = f"{A}:98-100"


def ago(seconds: float) -> Any:
    return NOON - timedelta(seconds=seconds)


def record(
    gno: int,
    seconds: float,
    *,
    server_id: int = 1,
    exact: bool = True,
    logged: float | None = None,
) -> CommitRecord:
    """Return a commit so many seconds ago; `logged`: this server logged it later than that."""
    at = ago(logged) if logged is not None else ago(seconds) if exact else None
    return CommitRecord(GtidSet.parse(f"{A}:{gno}"), server_id, ago(seconds), exact, at)


def story(
    *,
    up: int | None = 30,
    ours: tuple[CommitRecord, ...] = (),
    theirs: tuple[CommitRecord, ...] = (record(98, 60), record(100, 50)),
    first_log: LogStart | None = None,
    origin: dict[str, Any] | None = None,
    channel: dict[str, Any] | None = None,
    holder: str = f"{A}:1-100",
    executed: str = f"{A}:1-97",
) -> ClusterSnapshot:
    """Read a source `a` that restarted 30 s ago, and its replica, which has more."""
    a = a_server("a", A, executed, server_id=1, uptime_seconds=up, **(origin or {}))
    facts = {"gtid_retrieved": GtidSet.parse(LOST), **(channel or {})}
    b = a_server("b", B, holder, server_id=2, channels=(a_channel("a", A, **facts),))
    snapshot = a_cluster("pair", a, b)
    evidence = {"a": HistoryEvidence(first_log, ours), "b": HistoryEvidence(None, theirs)}
    last = tuple(replace(each, history_evidence=evidence[each.name]) for each in snapshot.last)
    return replace(snapshot, last=last)


ENDED_BY_A_COPY = a_channel(
    "c",
    C,
    receiver=ThreadState.STOPPED,
    receiver_errno=13114,
    receiver_error="A replica with the same server_uuid/server_id as this replica has connected to"
    " the source",
)


def found(snapshot: ClusterSnapshot) -> Finding:
    [finding] = [one for one in audit_cluster(snapshot).findings if one.code in ("E3", "E6", "H7")]
    return finding


def test_neither_a_crash_nor_a_reset_is_another_server_with_the_uuid() -> None:
    records = (record(1, 500), record(98, 60, server_id=7), record(100, 50, server_id=7))
    ours = (record(1, 500),)
    finding = found(story(ours=ours, theirs=records, up=900, channel={"gtid_retrieved": GtidSet()}))
    assert (finding.code, finding.grade) == ("E6", Grade.LIKELY)
    assert "was reset" not in finding.explanation
    assert "They carry server_id 7, and a has 1." in finding.explanation
    assert (
        "do not exclude these causes: a session elsewhere that set gtid_next" in finding.explanation
    )
    assert "RESET" not in finding.explanation
    # The clock may have been behind at a restart that the uptime then does not show.
    assert "a crash after which its clock was behind" in finding.explanation


def test_a_crash_is_named_once() -> None:
    """Where the server has restarted since, the uptime excludes no crash."""
    text = found(story(theirs=(), up=None)).explanation
    assert "a crash that lost the end of its binary log" in text
    assert "its clock was behind" not in text


@pytest.mark.parametrize(
    ("purged", "received", "is_a_cause"),
    [
        (f"{A}:1-100", "", True),
        (f"{A}:98-200", "", True),
        (f"{A}:1-99", "", False),  # the holder has logged one of them
        ("", "", False),
        (f"{A}:1-100", LOST, False),
        (f"{A}:1-100", f"{A}:98", False),  # it has received one of them
    ],
)
def test_more_than_was_committed_may_have_been_declared(
    purged: str, received: str, *, is_a_cause: bool
) -> None:
    """Only the set of gtid_purged has them: a server that sets too much has no row of them."""
    made = story(theirs=(), channel={"gtid_retrieved": GtidSet.parse(received)})
    held = GtidSet.parse(purged)
    executed = GtidSet.parse(f"{A}:1-100") | held
    first, last = (
        (a, replace(b, gtid_purged=held, gtid_executed=executed))
        for a, b in (made.first, made.last)
    )
    text = found(replace(made, first=first, last=last)).explanation
    assert ("SET GLOBAL gtid_purged on b, by hand or with a backup" in text) is is_a_cause
    assert "{" not in text


def graded(snapshot: ClusterSnapshot) -> tuple[str, Grade]:
    return found(snapshot).code, found(snapshot).grade


SAME: dict[str, Any] = {
    "ours": (record(1, 500),),
    "theirs": (record(1, 500), record(98, 60), record(100, 50)),
}
OTHER: dict[str, Any] = {
    "ours": (record(1, 20),),
    "theirs": (record(1, 500), record(98, 60), record(100, 50)),
}
BEFORE = LogStart("binlog.000001", ago(400), GtidSet())
AFTER = LogStart("binlog.000001", ago(40), GtidSet())
NOT_RECEIVED = {"gtid_retrieved": GtidSet()}
COPY: dict[str, Any] = {"source_host": "other.example", "source_server_id": 1}
ELSEWHERE = {"source_host": "other.example", "source_server_id": 9}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        # A restart since, and the history goes back beyond it.
        (SAME, ("E3", Grade.PROVED)),
        ({"first_log": BEFORE}, ("E3", Grade.PROVED)),
        # A restart since, and nothing about a reset: SET GLOBAL gtid_purged, or FLUSH and PURGE,
        # make these after one.
        ({"origin": {"gtid_purged": GtidSet.parse(f"{A}:1-9")}}, ("E3", Grade.LIKELY)),
        (
            {"origin": {"binary_logs": (BinaryLog("binlog.000007", 1),)}},
            ("E3", Grade.LIKELY),
        ),
        ({}, ("E3", Grade.LIKELY)),
        ({"first_log": LogStart("binlog.000001", ago(55), GtidSet())}, ("E3", Grade.LIKELY)),
        # Whether it restarted since is not known, or it did between the commits.
        (SAME | {"up": None}, ("E3", Grade.LIKELY)),
        (SAME | {"up": 55}, ("E3", Grade.LIKELY)),
        ({"theirs": (), "first_log": BEFORE}, ("E3", Grade.LIKELY)),
        # A restart since, and a reset.
        (OTHER | {"first_log": AFTER}, ("E6", Grade.LIKELY)),
        # One number was used twice: by a reset, or by a copy. Only a log that was begun after the
        # lost ones shows the reset.
        (OTHER, ("E6", Grade.LIKELY)),
        (OTHER | {"up": 900, "first_log": BEFORE}, ("E6", Grade.LIKELY)),
        ({"first_log": AFTER}, ("E6", Grade.LIKELY)),
        # One of two commits was made by hand: the times show nothing.
        (
            OTHER | {"theirs": (record(1, 500, server_id=2), record(98, 60), record(100, 50))},
            ("E3", Grade.LIKELY),
        ),
        (
            {"first_log": AFTER, "origin": {"gtid_purged": GtidSet.parse(f"{A}:1-9")}},
            ("E6", Grade.LIKELY),
        ),
        # No restart since.
        ({"up": 900}, ("E6", Grade.PROVED)),
        (OTHER | {"up": 900}, ("E6", Grade.PROVED)),
        # ... against evidence that the history was not reset: one of the two is wrong.
        (SAME | {"up": 900}, ("E6", Grade.LIKELY)),
        # The moment of the last queued one decides where the holder's log was not read.
        (
            {
                "theirs": (),
                "up": 900,
                "channel": {
                    "last_queued": GtidSet.parse(f"{A}:100"),
                    "last_queued_committed_at": ago(50),
                },
            },
            ("E6", Grade.PROVED),
        ),
        # A log that was begun after them and goes back beyond them was not begun by a reset.
        (
            {"first_log": LogStart("binlog.000001", ago(40), GtidSet.parse(f"{A}:1-9"))},
            ("E3", Grade.LIKELY),
        ),
        # The server_id in the log is that of another server of the audit: by hand.
        ({"theirs": (record(98, 60, server_id=2),)}, ("H7", Grade.LIKELY)),
        # ... of no server of the audit: the origin's own id may have been changed, or copied.
        (SAME | {"theirs": (record(1, 500), record(98, 60, server_id=7))}, ("E3", Grade.LIKELY)),
        # What came from another server with this server_uuid is not this server's.
        ({"theirs": (), "first_log": BEFORE, "channel": ELSEWHERE}, ("E3", Grade.LIKELY)),
        ({"theirs": (), "up": 900, "channel": ELSEWHERE}, ("E3", Grade.LIKELY)),
        # A copy of the origin has its server_id too. No channel received them from the origin ...
        (SAME | {"channel": NOT_RECEIVED}, ("E3", Grade.LIKELY)),
        ({"up": 900, "channel": NOT_RECEIVED}, ("E6", Grade.LIKELY)),
        # ... or from another address, unless that server does not have them either.
        (SAME | {"channel": COPY}, ("E3", Grade.LIKELY)),
        (SAME | {"channel": COPY | {"receiver_errno": 13114}}, ("E3", Grade.PROVED)),
        # ... or its own receiver ended because a replica with its server_uuid had connected.
        (OTHER | {"up": 900, "origin": {"channels": (ENDED_BY_A_COPY,)}}, ("E6", Grade.LIKELY)),
        # Logs that show a reset need no channel.
        (
            OTHER | {"up": 900, "channel": NOT_RECEIVED, "first_log": AFTER},
            ("E6", Grade.PROVED),
        ),
        (OTHER | {"up": 900, "channel": NOT_RECEIVED}, ("E6", Grade.LIKELY)),
        (
            OTHER | {"up": 900, "channel": NOT_RECEIVED, "first_log": BEFORE},
            ("E6", Grade.LIKELY),
        ),
    ],
)
def test_the_evidence_decides(facts: dict[str, Any], expected: tuple[str, Grade]) -> None:
    assert graded(story(**facts)) == expected


def test_what_is_likely_names_the_causes_that_remain() -> None:
    cases: list[dict[str, Any]] = [{}, OTHER, {"first_log": AFTER}]
    for facts in cases:
        text = found(story(**facts)).explanation
        assert "crash" in text
        assert "RESET BINARY LOGS AND GTIDS" in text
        assert "gtid_next" in text
    assert "crash" not in found(story(up=900)).explanation


@pytest.mark.parametrize("facts", [{}, OTHER, {"up": 900}, {"first_log": AFTER}])
def test_only_a_proved_crash_offers_to_redo_first(facts: dict[str, Any]) -> None:
    first = found(story(**facts)).strategies[0].name
    assert first == "check_data"
    assert found(story(**SAME)).strategies[0].name == "redo_on_source"


# Binary logs were replayed 35 s ago: the first commit is that of the holder's log.
REPLAYED: dict[str, Any] = SAME | {"ours": (record(1, 500, logged=35),)}
OLD_REPLAYED: dict[str, Any] = {
    "ours": (record(1, 500, exact=False),),
    "theirs": tuple(record(*each, exact=False) for each in ((1, 500), (98, 60), (100, 50))),
    "first_log": AFTER,
}


@pytest.mark.parametrize("up", [30, 900])
@pytest.mark.parametrize("facts", [REPLAYED, REPLAYED | {"first_log": AFTER}, OLD_REPLAYED])
def test_a_replay_of_binary_logs_proves_neither_a_crash_nor_that_the_rows_are_there(
    facts: dict[str, Any], up: int
) -> None:
    """After a point-in-time recovery the rows that were left out are gone, as after a crash."""
    finding = found(story(**facts, up=up))
    assert (finding.code, finding.grade) == ("E6", Grade.LIKELY)
    text = finding.explanation
    assert "binary logs were replayed into it" in text
    assert "the replay left out are probably not on a, and are on b" in text
    assert "followed by a replay of binary logs (point-in-time recovery)" in text
    assert "still there" not in text
    assert "redoing the transactions would double them" not in text
    assert ("a crash that lost" in text) is (up == 30)


def test_a_replay_before_the_lost_transactions_excludes_a_reset_behind_them() -> None:
    earlier = SAME | {"ours": (record(1, 500, logged=400),)}
    assert graded(story(**earlier)) == ("E3", Grade.PROVED)
    # Between them, or where it is not known when they were committed, it excludes nothing.
    for facts in (
        {"ours": (record(1, 500, logged=55),)},
        {"ours": (record(1, 500, logged=35),), "theirs": (record(1, 500),)},
        {"ours": (record(1, 500, logged=35, server_id=7),)},
    ):
        assert graded(story(**(SAME | facts))) == ("E3", Grade.LIKELY)


def test_a_first_log_that_has_nothing_older_shows_no_replay() -> None:
    """As after a RESET that was not followed by a replay: the rows are there."""
    facts = OLD_REPLAYED | {"ours": (), "up": 900}
    assert graded(story(**facts)) == ("E6", Grade.PROVED)
    ours = (record(1, 500, exact=False, server_id=7),)
    assert "replay" not in found(story(**(OLD_REPLAYED | {"ours": ours}))).explanation


def test_an_isolated_number_is_by_hand_unless_it_was_received() -> None:
    alone: dict[str, Any] = {"holder": f"{A}:1-97:150", "theirs": ()}
    assert graded(story(**alone, channel=NOT_RECEIVED)) == ("H7", Grade.LIKELY)
    received = {"gtid_retrieved": GtidSet.parse(f"{A}:150")}
    assert graded(story(**alone, channel=received)) == ("E3", Grade.LIKELY)
    # Held by a server: there is no gap.
    third = a_server("c", C, f"{A}:1-149", server_id=3)
    snapshot = story(**alone, channel=NOT_RECEIVED)
    whole = a_cluster("pair", *snapshot.first, third)
    assert {one.code for one in audit_cluster(whole).findings} & {"E3", "H7"} == {"E3"}


@pytest.mark.parametrize(
    ("executed_by_c", "id_of_c", "ids", "grade"),
    [
        ("1-97:150-151", 3, (3, 3), Grade.PROVED),
        ("1-97", 3, (3, 3), Grade.LIKELY),
        ("1-97:150-151", 3, (3, 9), Grade.LIKELY),  # no server has 9
        ("1-97:150-151", 0, (0, 0), Grade.LIKELY),  # 0 is the id of no server
    ],
)
def test_by_hand_is_proved_only_if_the_server_with_the_id_has_logged_it(
    executed_by_c: str, id_of_c: int, ids: tuple[int, int], grade: Grade
) -> None:
    """A:150-151 carry the server_id of c. If c has no such transactions, a server that had this id
    and the UUID of a at that time may have committed them.
    """
    by_c = tuple(record(gno, 10, server_id=each) for gno, each in zip((150, 151), ids, strict=True))
    made = story(holder=f"{A}:1-97:150-151", theirs=by_c, channel=NOT_RECEIVED)
    third = a_cluster("pair", a_server("c", C, f"{A}:{executed_by_c}", server_id=id_of_c))
    whole = ClusterSnapshot("pair", (*made.first, *third.first), (*made.last, *third.last))
    losses = {each.holder: each for each in losses_of(gather_facts(whole, Policy()))}
    assert (losses["b"].cause.value, losses["b"].grade) == ("H7", grade)


def test_two_causes_are_two_findings() -> None:
    both = story(
        holder=f"{A}:1-100:150",
        theirs=(record(98, 60), record(100, 50), record(150, 10, server_id=2)),
    )
    losses = {loss.cause.value: loss for loss in losses_of(gather_facts(both, Policy()))}
    assert losses["E3"].gtid_set == GtidSet.parse(LOST)
    assert losses["H7"].gtid_set == GtidSet.parse(f"{A}:150")
    # 98, 99, 100 are free, and 101 to 149, before 150 is given to a new transaction.
    assert (losses["H7"].commits_until_first, losses["H7"].commits_until_all) == (53, 53)


@pytest.mark.parametrize(
    ("executed", "owned", "lost", "expected"),
    [
        ("1-97", "", "98-100", (1, 3)),
        ("1-3", "", "50", (47, 47)),
        ("1-3:5", "", "50", (46, 46)),
        ("1-3", "4", "50", (46, 46)),
        ("1-3", "", "5:9", (2, 6)),
        ("1-97:dba:1-3", "", "dba:7", (4, 4)),
        ("1-97", "", "98:dba:2", (1, 2)),
    ],
)
def test_the_countdown_is_a_distance(
    executed: str, owned: str, lost: str, expected: tuple[int, int]
) -> None:
    origin = a_server(
        "a",
        A,
        f"{A}:{executed}",
        gtid_owned=GtidSet.parse(f"{A}:{owned}" if owned else ""),
    )
    assert commits_until(GtidSet.parse(f"{A}:{lost}"), origin) == expected


def test_what_could_not_be_read_is_in_the_finding() -> None:
    snapshot = story()
    last = tuple(
        replace(each, history_evidence=HistoryEvidence(None, (), "commits: access denied"))
        for each in snapshot.last
    )
    finding = found(replace(snapshot, last=last))
    assert finding.grade is Grade.LIKELY
    assert ("not read from the binary logs", "commits: access denied") in {
        (fact.fact, fact.value) for fact in finding.evidence
    }


def test_a_reset_source_makes_no_errant_transaction_of_what_it_had_received() -> None:
    def servers(own: str) -> tuple[ServerSnapshot, ...]:
        a = a_server("a", A, f"{A}:1", server_id=1, uptime_seconds=9000)
        b = a_server(
            "b",
            B,
            f"{A}:1-100,{C}:1-5{own}",
            server_id=2,
            channels=(a_channel("a", A, gtid_retrieved=GtidSet.parse(f"{A}:1-100,{C}:1-5")),),
        )
        return a, b

    for own, errant in (("", ""), (f",{B}:1", f"{B}:1")):
        snapshot = a_cluster("pair", *servers(own))
        evidence = HistoryEvidence(None, (record(2, 60), record(100, 50)))
        last = tuple(
            replace(each, history_evidence=evidence if each.name == "b" else None)
            for each in snapshot.last
        )
        findings = audit_cluster(replace(snapshot, last=last)).findings
        sets = {one.code: str(one.gtid_set) for one in findings}
        assert sets["E6"] == f"{A}:2-100"
        assert sets.get("E1", "") == errant


def test_commits_that_were_read_for_another_question_exclude_no_reset() -> None:
    """What both have of another server, or the newest of the origin, may be younger than a reset."""
    known = (record(98, 60), record(100, 50))
    of_b = CommitRecord(GtidSet.parse(f"{B}:3"), 2, ago(20), is_exact=True)
    sets: dict[str, Any] = {"executed": f"{A}:1-97,{B}:3", "holder": f"{A}:1-100,{B}:3", "up": 900}
    without = found(story(theirs=known, **sets))
    for shared in (of_b, record(97, 70)):
        other = found(story(ours=(shared,), theirs=(shared, *known), **sets))
        assert (other.code, other.grade) == (without.code, without.grade)
        assert other.explanation == without.explanation
    # Nor does the oldest own one, if it came behind them, or from a session elsewhere.
    for at, server_id in ((20, 1), (500, 7)):
        later = record(1, at, server_id=server_id)
        other = found(story(ours=(later,), theirs=(later, *known), **sets))
        assert other.explanation == without.explanation
    # The oldest own one that both have does.
    oldest = record(1, 500)
    excluded = found(story(ours=(oldest,), theirs=(oldest, *known), **sets))
    assert excluded.explanation != without.explanation


@pytest.mark.parametrize(
    ("purged", "text"),
    [("", ""), (f"{A}:1-99", "b has 2 transactions of them in no binary log"), (LOST, "3 tran")],
)
def test_what_the_holder_has_in_no_log_either_is_said(purged: str, text: str) -> None:
    """log_replica_updates = OFF, or a purged log: there is nothing to redo from."""
    snapshot = story()
    gone = GtidSet.parse(purged)
    changed = tuple(
        replace(each, gtid_purged=gone) if each.name == "b" else each for each in snapshot.last
    )
    audit = audit_cluster(replace(snapshot, first=snapshot.first, last=changed))
    [found] = [each for each in audit.findings if each.code in ("E3", "E6")]
    assert ("in no binary log either" in found.explanation) is bool(text)
    assert text in found.explanation

"""What is asked of binary logs, and what a receiver that does not move has left: one fact a time."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import HERE, NOON, A, B, C, a_channel, a_server
from topology.audit_cluster import audit_cluster
from topology.facts.cluster_facts import ClusterFacts, gather_facts
from topology.facts.receivers import Waiting, hanging, overdue, samples_in
from topology.policy import Policy
from topology.questions.log_questions import LogQuestions, questions_of
from topology.questions.log_searches import Search
from topology.readings.history_evidence import CommitRecord, HistoryEvidence, LogSearch
from topology.readings.snapshot import (
    BinaryLog,
    ClusterSnapshot,
    LogPosition,
    ServerSnapshot,
    ThreadState,
)
from topology.readings.version import ServerVersion
from topology.readings.worker import WorkerSnapshot
from topology.rules.backlogs import tail_gap

STOPPED, CONNECTING = ThreadState.STOPPED, ThreadState.CONNECTING
FURTHER = LogPosition.of(file="binlog.000003", position=9999)
BEFORE = LogPosition.of(file="binlog.000003", position=100)
APPLIED = LogPosition.of(file="binlog.000003", position=50)
LATER = timedelta(seconds=1)


def gtids(text: str) -> GtidSet:
    return GtidSet.parse(text.replace("A:", f"{A}:").replace("B:", f"{B}:").replace("C:", f"{C}:"))


def twice(*servers: ServerSnapshot, later: Mapping[str, Any] | None = None) -> ClusterFacts:
    """Return the facts of servers that were read twice, `later` with other facts."""
    last = tuple(
        replace(
            each,
            phase=2,
            read_started=NOON + LATER,
            read_ended=NOON + LATER,
            **(later or {}).get(each.name, {}),
        )
        for each in servers
    )
    return gather_facts(ClusterSnapshot("pair", servers, last), Policy(stall_seconds_max=60))


# -- what the log of a source is searched for -----------------------------------------------------


def behind(
    *,
    source: dict[str, Any] | None = None,
    replica: dict[str, Any] | None = None,
    channel: dict[str, Any] | None = None,
    later: dict[str, Any] | None = None,
) -> ClusterFacts:
    """Return a -> b: b has A:1-3, has received A:1-5, and does not have A:6-9."""
    facts = {
        "gtid_retrieved": gtids("A:1-5"),
        "received_to": BEFORE,
        "applied_to": APPLIED,
        **(channel or {}),
    }
    a = a_server("a", A, gtids("A:1-9"), **(source or {}))
    b = a_server("b", B, gtids("A:1-3"), channels=(a_channel("a", A, **facts),), **(replica or {}))
    changed = {"channels": (a_channel("a", A, **{**facts, **later}),)} if later else {}
    return twice(a, b, later={"b": changed})


RECEIVED, ABSENT = gtids("A:4-5"), gtids("A:6-9")
NO_EARLIER = {"gtid_purged": gtids("A:1-3")}
RECOVERED = (("relay_log_recovery", "ON"),)
BEFORE_IT = LogPosition.of(file="binlog.000003", position=4)
IDLE = {
    "received_to": APPLIED,
    "applied_to": APPLIED,
    "applier_state": "Slave has read all relay log",
}
TAKEN_BACK: dict[str, dict[str, Any]] = {
    "replica": {"version": ServerVersion(5, 6, 24)},
    "channel": IDLE,
    "later": {"received_to": FURTHER, "applied_to": FURTHER, "applier_state": "System lock"},
}
MOVED = {"later": {"relay_applied_to": BEFORE}}


@pytest.mark.parametrize(
    ("facts", "searches"),
    [
        # Both threads run by auto-position, and an earlier transaction excludes a RESET.
        (MOVED, []),
        # It stands still: it may have skipped while gtid_mode permitted it, which 5.6 never does. A
        # crash of 5.6 may have left it behind what it lost, unless relay_log_recovery is on.
        ({}, [(APPLIED, RECEIVED)]),
        ({"replica": {"version": ServerVersion(5, 7, 6)}}, [(APPLIED, RECEIVED)]),
        ({"replica": {"version": ServerVersion(5, 7, 5)}}, [(APPLIED, RECEIVED)]),
        ({"replica": {"version": ServerVersion(5, 7, 5), "settings": RECOVERED}}, []),
        ({"replica": {"version": ServerVersion(8, 0, 16)}, **MOVED}, [(APPLIED, RECEIVED)]),
        ({"replica": {"version": ServerVersion(8, 0, 16), "settings": RECOVERED}, **MOVED}, []),
        ({"replica": {"version": ServerVersion(8, 0, 17)}, **MOVED}, []),
        ({"channel": {"receiver": STOPPED}}, [(APPLIED, RECEIVED), (APPLIED, ABSENT)]),
        ({"channel": {"receiver": CONNECTING}}, [(APPLIED, RECEIVED)]),
        # What a stopped applier's replica has may have been committed by hand, and not applied.
        (
            {"channel": {"applier": STOPPED}},
            [(APPLIED, "A:1-3"), (APPLIED, RECEIVED), (BEFORE, ABSENT)],
        ),
        ({"channel": {"auto_position": False}}, [(APPLIED, RECEIVED), (BEFORE, ABSENT)]),
        (
            {"channel": {"auto_position": False, "receiver": STOPPED}},
            [(APPLIED, RECEIVED), (BEFORE, ABSENT)],
        ),
        ({"channel": {"skip_counter": 1}}, [(APPLIED, RECEIVED)]),
        ({"replica": {"settings": (("gtid_mode", "ON_PERMISSIVE"),)}}, [(APPLIED, RECEIVED)]),
        # It may as well have declared executed what it received first.
        ({"replica": NO_EARLIER}, [(APPLIED, "A:1-3"), (APPLIED, RECEIVED), (BEFORE, ABSENT)]),
        # An idle applier was taken back by its receiver, which began again, and both moved on since.
        (TAKEN_BACK, [(FURTHER, RECEIVED)]),
        ({**TAKEN_BACK, "channel": {**IDLE, "received_to": FURTHER}}, [(APPLIED, RECEIVED)]),
        (
            {**TAKEN_BACK, "channel": {**IDLE, "applier_state": "System lock"}},
            [(APPLIED, RECEIVED)],
        ),
        ({**TAKEN_BACK, "later": {"applied_to": BEFORE_IT}}, [(APPLIED, RECEIVED)]),
        ({**TAKEN_BACK, "later": {"applied_to": None}}, [(APPLIED, RECEIVED)]),
        # What it received since may still wait.
        (
            {**TAKEN_BACK, "later": {**TAKEN_BACK["later"], "gtid_retrieved": gtids("A:1-7")}},
            [(FURTHER, RECEIVED), (APPLIED, gtids("A:6-7"))],
        ),
        # Without a place there is nothing to search up to.
        ({"channel": {"applier": STOPPED, "applied_to": None}}, [(BEFORE, ABSENT)]),
        ({"channel": {"applier": STOPPED, "received_to": None}}, [(APPLIED, RECEIVED)]),
        ({"channel": {"applier": STOPPED, "gtid_retrieved": GtidSet()}}, [(BEFORE, "A:4-9")]),
        (
            {"channel": {"applier": STOPPED, "gtid_retrieved": gtids("A:1-9")}},
            [(APPLIED, "A:1-3"), (APPLIED, "A:4-9")],
        ),
    ],
)
def test_a_log_is_searched_where_the_sets_leave_it_open(
    facts: dict[str, Any], searches: list[tuple[LogPosition, Any]]
) -> None:
    found = questions_of(behind(**facts)).get("a", LogQuestions()).searches
    wanted = [(place, gtids(each) if isinstance(each, str) else each) for place, each in searches]
    assert [(each.place, each.wanted) for each in found] == wanted
    assert {(each.replica, each.channel) for each in found} <= {("b", "")}


@pytest.mark.parametrize(
    ("later", "is_asked"),
    [
        ({}, True),
        ({"received_to": FURTHER}, True),
        ({"received_to": APPLIED}, False),  # it began again at another place
        ({"received_to": None}, False),
        ({"receiver": CONNECTING}, False),  # another connection
        ({"receiver": STOPPED}, True),  # it continues there
    ],
)
def test_a_place_counts_while_the_connection_is_the_same(
    later: dict[str, Any], *, is_asked: bool
) -> None:
    made = behind(channel={"auto_position": False}, later=later)
    found = questions_of(made).get("a", LogQuestions()).searches
    assert (Search("b", "", BEFORE, ABSENT) in found) is is_asked  # type: ignore[arg-type]  # a place of the cases has one


@pytest.mark.parametrize("place", [APPLIED, BEFORE, FURTHER])
def test_a_stopped_receiver_continues_where_it_was_read_last(place: LogPosition) -> None:
    """CHANGE REPLICATION SOURCE between the readings moves it, forward or back."""
    stopped = {"auto_position": False, "receiver": STOPPED}
    made = behind(channel=stopped, later={"received_to": place})
    found = questions_of(made)["a"].searches
    assert [each.place for each in found if each.wanted == ABSENT] == [place]


@pytest.mark.parametrize("change", [{"source_host": "z"}, {"source_port": 1}, {"name": "two"}])
def test_a_channel_that_was_changed_between_the_readings_is_not_searched(
    change: dict[str, Any],
) -> None:
    made = behind(channel={"applier": STOPPED}, later=change)
    assert questions_of(made).get("a", LogQuestions()).searches == ()


# -- commits, first logs, schemas -----------------------------------------------------------------


def test_a_healthy_pair_is_asked_nothing() -> None:
    a = a_server("a", A, gtids("A:1-9"))
    b = a_server("b", B, gtids("A:1-9"), channels=(a_channel("a", A),))
    assert questions_of(twice(a, b)) == {}


def test_a_loss_asks_both_servers() -> None:
    a = a_server("a", A, gtids("A:1-9"))
    received = {"gtid_retrieved": gtids("A:1-20")}
    b = a_server("b", B, gtids("A:1-20"), channels=(a_channel("a", A, **received),))
    assert questions_of(twice(a, b)) == {
        "a": LogQuestions(first_log=True, commits=(gtids("A:1"),)),
        "b": LogQuestions(
            commits=(gtids("A:1"), gtids("A:10:20")),
            reaches=(gtids("A:10-20"),),
            extras=gtids("A:10-20"),
        ),
    }


def test_what_a_channel_has_gone_past_is_dated_beside_an_earlier_one() -> None:
    """Their order in the log of the source excludes a RESET of the replica; so does its own log."""
    a = a_server("a", A, gtids("A:1-9"))
    b = a_server("b", B, gtids("A:1-3"), channels=(a_channel("a", A, auto_position=False),))
    asked = questions_of(twice(a, b))
    assert asked["a"].commits == (gtids("A:4-9"), gtids("A:1"))
    assert asked["b"] == LogQuestions(first_log=True, commits=(gtids("A:1"),))
    by_set = replace(b, channels=(a_channel("a", A),))
    assert questions_of(twice(a, by_set))["a"].commits == asked["a"].commits


def test_what_an_applier_passed_is_dated() -> None:
    a = a_server("a", A, gtids("A:1-9"))
    idle = "Replica has read all relay log; waiting for more updates"
    facts = {"gtid_retrieved": gtids("A:1-9"), "applier_state": idle}
    b = a_server("b", B, gtids("A:1-3"), channels=(a_channel("a", A, **facts),))
    made = twice(a, b)
    assert made.edges[0].passed == gtids("A:4-9")
    assert questions_of(made)["a"].commits == (gtids("A:4:9"), gtids("A:1"))


def test_what_the_source_has_purged_needs_no_date() -> None:
    """It is older than all that the log of the source has."""
    a = a_server("a", A, gtids("A:1-9"), gtid_purged=gtids("A:1-2"))
    b = a_server("b", B, gtids("A:1-3"), channels=(a_channel("a", A, auto_position=False),))
    assert questions_of(twice(a, b))["a"].commits == (gtids("A:4-9"),)


@pytest.mark.parametrize(("last", "wanted"), [(131, "A:4-131"), (132, "A:4:132")])
def test_of_a_large_gap_only_the_ends_are_searched(last: int, wanted: str) -> None:
    """The source sends each transaction whole: 128 of them, and not more."""
    a = a_server("a", A, gtids(f"A:1-{last}"), gtid_purged=gtids("A:1-2"))
    b = a_server("b", B, gtids("A:1-3"), channels=(a_channel("a", A, auto_position=False),))
    assert questions_of(twice(a, b))["a"].commits == (gtids(wanted),)


def test_an_unknown_uuid_is_dated_for_its_server_id() -> None:
    a = a_server("a", A, gtids("A:1-9,C:1-5"))
    channel = a_channel("a", A, receiver=STOPPED, received_to=None, applied_to=None)
    b = a_server("b", B, gtids("A:1-9"), channels=(channel,))
    assert gtids("C:1:5") in questions_of(twice(a, b))["a"].commits


def test_only_an_empty_server_is_asked_for_its_schemas() -> None:
    a, b = a_server("a", A, gtids("A:1-9")), a_server("b", B, "")
    joining = {"a": LogQuestions(reaches=(gtids("A:1-9"),)), "b": LogQuestions(schemas=True)}
    assert questions_of(twice(a, b)) == joining
    has_some = questions_of(twice(a, replace(b, gtid_executed=gtids("A:1"))))
    assert has_some == {"a": LogQuestions(reaches=(gtids("A:2-9"),))}


# -- a receiver that does not move ----------------------------------------------------------------


def dated(gtid: str, seconds: float, *, logged: float | None = None) -> dict[str, Any]:
    logged_at = None if logged is None else NOON - timedelta(seconds=logged)
    record = CommitRecord(gtids(gtid), 1, NOON - timedelta(seconds=seconds), True, logged_at)
    return {"history_evidence": HistoryEvidence(None, (record,))}


def receiving(
    *,
    evidence: dict[str, Any],
    channel: dict[str, Any] | None = None,
    later: dict[str, Any] | None = None,
    executed: str = "A:1-9",
) -> ClusterFacts:
    facts = {"gtid_retrieved": gtids("A:1-3"), "received_to": BEFORE, **(channel or {})}
    a = a_server("a", A, gtids(executed))
    b = a_server("b", B, gtids("A:1-3"), channels=(a_channel("a", A, **facts),))
    changed = {"channels": (a_channel("a", A, **{**facts, **later}),)} if later else {}
    return twice(a, b, later={"a": evidence, "b": changed})


FIRST = Waiting(gtids("A:4"), 500)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"evidence": dated("A:4", 500, logged=500)}, FIRST),
        ({"evidence": dated("A:4", 900, logged=500)}, FIRST),  # when this server logged it
        ({"evidence": dated("A:4", 500)}, FIRST),  # before 8.0.1: its own commit
        ({"evidence": dated("A:4", 61, logged=61)}, Waiting(gtids("A:4"), 61)),
        ({"evidence": dated("A:4", 60, logged=60)}, None),
        ({"evidence": dated("A:5", 500, logged=500)}, None),  # not the first one
        ({"evidence": {}}, None),
        ({"evidence": {**dated("A:4", 500, logged=500), "server_clock": None}}, None),
        ({"evidence": dated("A:4", 500, logged=500), "channel": {"receiver": STOPPED}}, None),
        ({"evidence": dated("A:4", 500, logged=500), "channel": {"receiver": CONNECTING}}, None),
        ({"evidence": dated("A:4", 500, logged=500), "later": {"received_to": HERE}}, None),
        (
            {"evidence": dated("A:4", 500, logged=500), "later": {"last_queued": gtids("A:4")}},
            None,
        ),
        # It reads on when the applier has freed a relay log (5.6.24, 9.7.4).
        *(
            (
                {"evidence": dated("A:4", 500, logged=500), "channel": {"receiver_state": state}},
                None,
            )
            for state in (
                "Waiting for the slave SQL thread to free enough relay log space",
                "Waiting for the replica SQL thread to free relay log space",
            )
        ),
        # Of another origin, before 8.0.1: this server may have had it much later.
        ({"evidence": dated("C:1", 500), "executed": "A:1-3,C:1-2"}, None),
        (
            {"evidence": dated("C:1", 900, logged=500), "executed": "A:1-3,C:1-2"},
            Waiting(gtids("C:1"), 500),
        ),
    ],
)
def test_what_a_receiver_left_for_too_long(facts: dict[str, Any], expected: Waiting | None) -> None:
    made = receiving(**facts)
    [edge] = made.edges
    assert overdue(made, edge) == expected


def test_what_is_purged_is_not_due() -> None:
    made = receiving(evidence=dated("A:4", 500, logged=500))
    assert list(samples_in(made)) == [("a", gtids("A:4"))]
    read = made.fully_read["a"]
    purged = replace(read, last=replace(read.last, gtid_purged=gtids("A:4-5")))
    made = replace(made, fully_read={**made.fully_read, "a": purged})
    assert list(samples_in(made)) == [("a", gtids("A:6"))]
    assert overdue(made, made.edges[0]) is None


def test_a_commit_that_hangs_is_dated_by_the_log_of_the_replica() -> None:
    a = a_server("a", A, gtids("A:1-8"), gtid_owned=gtids("A:9"))
    received = {"gtid_retrieved": gtids("A:1-9")}
    b = a_server("b", B, gtids("A:1-9"), channels=(a_channel("a", A, **received),))
    for seconds, expected in ((500, Waiting(gtids("A:9"), 500)), (60, None)):
        made = twice(a, b, later={"b": dated("A:9", 900, logged=seconds)})
        [lost] = made.lost
        assert list(samples_in(made)) == [("b", gtids("A:9"))]
        assert hanging(made, lost) == expected
    assert hanging(made, replace(lost, leading=GtidSet())) is None


@pytest.mark.parametrize(
    ("version", "settings", "answer", "words"),
    [
        (ServerVersion(5, 6, 24), (), "access denied", "could not be read: access denied"),
        (ServerVersion(5, 6, 24), (), "", "no longer has them"),
        (ServerVersion(5, 6, 24), RECOVERED, "access denied", ""),
        (ServerVersion(8, 0, 17), (), "access denied", ""),
    ],
)
def test_a_backlog_that_a_crash_may_have_left_behind_is_not_proved(
    version: ServerVersion, settings: tuple[tuple[str, str], ...], answer: str, words: str
) -> None:
    evidence = HistoryEvidence(None, (), answer)
    facts = behind(
        replica={"version": version, "settings": settings},
        source={"history_evidence": evidence},
        later={"relay_applied_to": BEFORE},
    )
    found = next(each for each in audit_cluster(facts.snapshot).findings if each.code == "T2")
    assert ("crashed since" in found.explanation) is bool(words)
    assert words in found.explanation


def test_a_crash_can_have_lost_only_what_the_replica_had_received_before() -> None:
    """b has received A:4-5 at the first reading, and A:6 since: a crash of today has not lost it."""
    facts = behind(
        replica={"version": ServerVersion(5, 6, 24)},
        source={"history_evidence": HistoryEvidence(None, (), "access denied")},
        later={"relay_applied_to": BEFORE, "gtid_retrieved": gtids("A:1-6")},
    )
    found = next(each for each in audit_cluster(facts.snapshot).findings if each.code == "T2")
    assert found.gtid_set == gtids("A:4-6")
    assert "it may have lost 2 transactions of these" in found.explanation


def test_a_crash_may_have_left_a_gap_behind_as_well() -> None:
    """Two of the transactions that wait are below one that the workers have applied."""
    facts = behind(
        replica={"version": ServerVersion(5, 6, 24)},
        source={"history_evidence": HistoryEvidence(None, (), "access denied")},
    )
    [edge] = facts.edges
    below = replace(edge, queued_above=GtidSet(), queued_below=RECEIVED)
    [found] = tail_gap(replace(facts, edges=(below,)))
    assert "it may have lost 2 transactions of these" in found.explanation


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("Waiting for an event from Coordinator", "A:6:8-9"),  # it has a part of A:6
        ("Applying batch of row changes", "A:8-9"),  # it has all of it
    ],
)
def test_a_transaction_that_arrived_in_part_is_still_to_come_whatever_a_log_shows(
    state: str, expected: str
) -> None:
    worker = WorkerSnapshot(1, gtids("A:6"), 0, "", state=state)
    at = {"received_to": BEFORE, "applied_to": BEFORE, "gtid_retrieved": gtids("A:1-5")}
    idle = {"applier_state": "Replica has read all relay log", "workers": (worker,)}
    search = LogSearch("b", "", str(BEFORE), gtids("A:6-7"), before=gtids("A:6-7"))
    evidence = HistoryEvidence(None, (), searches=(search,))
    a = a_server("a", A, gtids("A:1-9"), history_evidence=evidence)
    channels = (a_channel("a", A, **at, **idle),)
    [edge] = twice(a, a_server("b", B, gtids("A:1-5"), channels=channels)).edges
    assert (edge.expected, edge.bypassed) == (gtids(expected), gtids("A:7"))


@pytest.mark.parametrize("mode", ["ON", "ON_PERMISSIVE", None])
def test_a_gap_that_a_counter_may_have_left_is_a_gap_of_the_channel(mode: str | None) -> None:
    """The source had not executed A:4 when it was read first; b has A:1-3 and A:5 by now."""
    waits = a_channel("a", A, gtid_retrieved=gtids("A:1-5"), applied_to=APPLIED)
    settings = (("gtid_mode", mode),) if mode is not None else ()
    a = a_server("a", A, gtids("A:1-3"), gtid_owned=gtids("A:4-5"))
    b = a_server("b", B, gtids("A:1-3:5"), settings=settings, channels=(waits,))
    [edge] = twice(a, b).edges
    left = edge.queued_below | edge.queued_above
    assert (gtids("A:4") <= left) is (mode == "ON_PERMISSIVE")


LAST_LOG, EARLIER = (
    BinaryLog("binlog.000003", 1, encrypted=None),
    BinaryLog("binlog.000002", 1, encrypted=None),
)


@pytest.mark.parametrize(
    ("received", "source", "is_told"),
    [
        # a may have lost C:1 in a crash, and received it again in the log that it began then.
        ("A:1-2,C:1", {"binary_logs": (EARLIER, LAST_LOG)}, True),
        ("A:1-2,C:1", {"binary_logs": (LAST_LOG,), "gtid_purged": gtids("C:8")}, True),
        ("A:1-2,C:1", {"binary_logs": None}, True),  # not read
        ("A:1-2,C:1", {"binary_logs": (LAST_LOG,)}, False),  # it was never restarted
        ("A:1-2", {"binary_logs": (EARLIER, LAST_LOG)}, False),  # a would commit others
    ],
)
def test_what_a_source_may_have_received_again_shows_no_place_of_an_empty_replica(
    received: str, source: dict[str, Any], *, is_told: bool
) -> None:
    facts = {"gtid_retrieved": gtids(received), "received_to": BEFORE, "applied_to": APPLIED}
    search = LogSearch("b", "", str(APPLIED), gtids(received), before=GtidSet())
    evidence = HistoryEvidence(None, (), searches=(search,))
    a = a_server("a", A, gtids("A:1-2,C:1,C:8"), history_evidence=evidence, **source)
    b = a_server("b", B, "", channels=(a_channel("a", A, applier=STOPPED, **facts),))
    audit = audit_cluster(twice(a, b).snapshot)
    found = next(each for each in audit.findings if each.code == "T2")
    assert found.gtid_set == gtids(received)
    assert ("If b was reset" in found.explanation) is is_told

"""What the moments of a restart, of commits and of logs show of a loss: to the second."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import NOON, A, B, C, a_channel, a_cluster, a_server
from tests.topology.test_lost import LOST, ago, record, story
from topology.catalogue.findings import Grade
from topology.facts.cluster_facts import ClusterFacts, gather_facts
from topology.facts.loss_history import ResetSigns, signs_of_reset
from topology.facts.lost import _committed, losses_of
from topology.facts.receivers import Waiting, hanging
from topology.facts.reset_signs import has_earlier
from topology.facts.restarts import Restart, restart_of
from topology.policy import Policy
from topology.readings.history_evidence import (
    INTERVALS_MAX,
    CommitRecord,
    HistoryEvidence,
    LogStart,
    ends_of,
)

COMMITTED = (ago(60), ago(50))


@pytest.mark.parametrize(
    ("up", "committed", "expected"),
    [
        (0, COMMITTED, Restart.SINCE),
        (50, COMMITTED, Restart.SINCE),  # in the second of the last commit, or later
        (51, COMMITTED, Restart.UNKNOWN),
        (61, COMMITTED, Restart.UNKNOWN),  # the start was within two seconds from there on
        (62, COMMITTED, Restart.NOT_SINCE),
        (900, COMMITTED, Restart.NOT_SINCE),
        (None, COMMITTED, Restart.UNKNOWN),
        (900, None, Restart.UNKNOWN),
    ],
)
def test_a_restart_is_compared_with_the_commits(
    up: int | None, committed: tuple[datetime, datetime] | None, expected: Restart
) -> None:
    server, holder = a_server("a", A, "", uptime_seconds=up), a_server("b", B, "")
    assert restart_of(server, holder, committed) is expected
    late = replace(server, server_clock=NOON + timedelta(seconds=0.9))  # whole seconds count
    assert restart_of(late, holder, committed) is expected
    unread = replace(server, server_clock=None)
    assert restart_of(unread, holder, committed) is Restart.UNKNOWN


@pytest.mark.parametrize(
    ("behind", "expected"),
    [(2, Restart.NOT_SINCE), (2.1, Restart.UNKNOWN), (3600, Restart.UNKNOWN)],
)
def test_a_clock_that_was_set_back_shows_no_start_before_commits(
    behind: float, expected: Restart
) -> None:
    """A crashed server whose clock is behind now: its start seems to be before its commits."""
    origin, holder = a_server("a", A, "", uptime_seconds=900), a_server("b", B, "")
    holder = replace(holder, server_clock=NOON)
    back = replace(origin, server_clock=NOON - timedelta(seconds=behind))
    assert origin.read_ended == holder.read_ended, "both clocks are compared at one moment"
    committed = (NOON - timedelta(seconds=30), NOON - timedelta(seconds=20))
    assert restart_of(back, holder, committed) is expected
    ahead = replace(origin, server_clock=NOON + timedelta(seconds=2.1))
    assert restart_of(ahead, holder, committed) is Restart.NOT_SINCE
    assert restart_of(back, replace(holder, server_clock=None), committed) is Restart.NOT_SINCE


def facts_of(**parts: Any) -> ClusterFacts:
    return gather_facts(story(**parts), Policy())


def begun(seconds: float, *, number: int = 1, previous: str = "") -> LogStart:
    return LogStart(f"binlog.{number:06}", ago(seconds), GtidSet.parse(previous))


PURGED = {"gtid_purged": GtidSet.parse(f"{A}:1-9")}
EXACT, COARSE = record(1, 500), record(1, 500, exact=False)
TWICE: dict[str, Any] = {"ours": (record(1, 499.5),), "theirs": (EXACT,)}
SHOWN = {**TWICE, "first_log": begun(49.5)}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        # The oldest transaction that both logs hold.
        ({"ours": (EXACT,), "theirs": (EXACT,)}, False),
        # Used twice: a reset began the log again, a copy has an older one.
        (SHOWN, True),
        ({**TWICE, "first_log": begun(50)}, True),
        ({**TWICE, "first_log": begun(60.5)}, True),
        ({**TWICE, "first_log": begun(61)}, False),
        (TWICE, True),
        ({"ours": (COARSE,), "theirs": (EXACT,)}, None),
        ({"ours": (EXACT,), "theirs": (COARSE,)}, None),
        ({"ours": (EXACT,), "theirs": (record(2, 500),)}, None),
        # The first log: begun a whole second before the first commit, or after the last.
        ({"first_log": begun(61)}, False),
        ({"first_log": begun(60.5)}, None),
        ({"first_log": begun(50)}, None),
        ({"first_log": begun(49.5)}, True),
        ({"first_log": begun(40, previous=f"{A}:1-9")}, None),
        # Number 1 is a reset's, whatever is purged; another number only where nothing is.
        ({"first_log": begun(40), "origin": PURGED}, True),
        ({"first_log": begun(40, number=7)}, True),
        ({"first_log": begun(40, number=7), "origin": PURGED}, None),
        ({"first_log": begun(40, number=11), "origin": PURGED}, None),
    ],
)
def test_logs_show_a_reset_exclude_it_or_neither(
    parts: dict[str, Any], *, expected: bool | None
) -> None:
    facts = facts_of(**parts)
    [lost] = facts.lost
    signs = signs_of_reset(facts, lost, COMMITTED)
    assert signs.is_reset is expected
    assert not signs.is_replayed
    assert (signs.history == "unknown") is (expected is None)
    # Within the second of a start, a copy with an older log leaves the same.
    assert signs.is_sure is ("ours" not in parts or expected is not True or parts == SHOWN)
    if "ours" not in parts:
        assert signs_of_reset(facts, lost, None) == ResetSigns(None, "unknown")


@pytest.mark.parametrize(
    ("ours", "is_reset", "is_replayed"),
    [
        # The origin committed it once: before the first lost one, or later.
        (record(1, 60), False, False),
        (record(1, 59.9), None, False),
        (record(1, 60.2, logged=59.6), False, False),  # a slow commit, not a second one
        (record(1, 50.2, logged=49.8), None, False),
        # It logged it again: before the lost ones, among them, or after them.
        (record(1, 500, logged=60), False, False),
        (record(1, 500, logged=59.9), None, False),
        (record(1, 500, logged=50), None, False),
        (record(1, 500, logged=49.9), True, True),
        (record(1, 50, logged=20), True, True),
        (record(1, 49.9, logged=20), None, False),  # all of it is later than the lost ones
        # Another server, or a session there, committed it.
        (record(1, 500, server_id=7), None, False),
        (record(1, 500, server_id=7, logged=20), None, False),
    ],
)
def test_what_the_origin_still_has_from_before_the_loss_excludes_a_reset(
    ours: CommitRecord, *, is_reset: bool | None, is_replayed: bool
) -> None:
    theirs = replace(ours, logged_at=ours.committed_at)
    facts = facts_of(ours=(ours,), theirs=(theirs,))
    [lost] = facts.lost
    signs = signs_of_reset(facts, lost, COMMITTED)
    assert (signs.is_reset, signs.is_replayed) == (is_reset, is_replayed)
    assert ("is the same commit in the log of b" in signs.history) is (is_reset is not None)
    assert ("and a logged it again at" in signs.history) is is_replayed


@pytest.mark.parametrize(
    ("ours", "is_reset"),
    [
        (record(1, 500), False),
        (record(1, 500, logged=499), False),  # within the second of its commit
        (record(1, 500, logged=498.9), None),  # perhaps replayed after a reset
    ],
)
def test_without_the_moment_of_the_loss_only_a_transaction_that_was_not_replayed_shows_it(
    ours: CommitRecord, *, is_reset: bool | None
) -> None:
    facts = facts_of(ours=(ours,), theirs=(replace(ours, logged_at=ours.committed_at),))
    [lost] = facts.lost
    assert signs_of_reset(facts, lost, None).is_reset is is_reset


@pytest.mark.parametrize(
    ("seconds", "is_replayed"),
    [(500, True), (41.1, True), (41, False), (30, False)],  # a whole second before the log
)
def test_a_first_log_with_older_transactions_was_filled_by_a_replay(
    seconds: float, *, is_replayed: bool
) -> None:
    """Before 8.0.1 the log has the time of the first commit only; it was created 40 s ago."""
    shared = record(1, seconds, exact=False)
    facts = facts_of(ours=(shared,), theirs=(shared,), first_log=begun(40))
    [lost] = facts.lost
    signs = signs_of_reset(facts, lost, COMMITTED)
    assert (signs.is_reset, signs.is_replayed) == (True, is_replayed)
    assert "was created after them, without previous GTIDs" in signs.history
    assert ("and has transactions that are older than it" in signs.history) is is_replayed


@pytest.mark.parametrize(
    ("queued", "at", "expected"),
    [
        (LOST, ago(10), (ago(10), ago(10))),
        (f"{A}:90-100", ago(10), None),  # not all of it was lost
        ("", ago(10), None),  # nothing was queued
        (LOST, None, None),
    ],
)
def test_the_last_transaction_that_was_queued_dates_a_loss(
    queued: str, at: datetime | None, expected: tuple[datetime, datetime] | None
) -> None:
    last = {"last_queued": GtidSet.parse(queued), "last_queued_committed_at": at}
    facts = facts_of(theirs=(), channel=last)
    [lost] = facts.lost
    assert _committed(facts, lost, lost.lost) == expected


@pytest.mark.parametrize(
    ("copy", "grade"),
    [
        ({}, Grade.LIKELY),  # another server has the UUID, by address and server_id
        ({"source_server_id": 1}, Grade.PROVED),
        ({"source_host": "a.example"}, Grade.PROVED),  # its server_id was another one then
        ({"source_server_id": None}, Grade.PROVED),
        ({"source_uuid": C}, Grade.PROVED),
    ],
)
def test_what_a_copy_of_the_server_committed_was_not_made_by_hand(
    copy: dict[str, Any], grade: Grade
) -> None:
    other = {"source_host": "copy.example", "source_server_id": 9, **copy}
    seen = HistoryEvidence(None, (record(99, 60, server_id=2), record(100, 50, server_id=2)))
    first, second = story().first
    second = replace(second, gtid_executed=GtidSet.parse(f"{A}:1-97:99-100"), channels=())
    third = a_server("c", C, f"{A}:1-97", server_id=3, channels=(a_channel("x", A, **other),))
    read = a_cluster("pair", first, replace(second, history_evidence=seen), third)
    losses = [loss for loss in losses_of(gather_facts(read, Policy())) if loss.holder == "b"]
    assert [(loss.cause.value, loss.grade) for loss in losses] == [("H7", grade)]


@pytest.mark.parametrize(("server_id", "cause"), [(2, "H7"), (1, "E3")])
def test_a_server_id_that_the_origin_has_as_well_shows_no_commit_by_hand(
    server_id: int, cause: str
) -> None:
    records = (record(98, 60, server_id=server_id), record(100, 50, server_id=server_id))
    seen = HistoryEvidence(None, records)
    first, second = story().first
    holder = replace(second, server_id=server_id, history_evidence=seen)
    facts = gather_facts(a_cluster("pair", first, holder), Policy())
    assert {loss.cause.value for loss in losses_of(facts)} == {cause}


def test_a_gtid_made_by_hand_ends_a_lost_tail() -> None:
    """98 and 99 were received from the origin; 100 carries another server_id, or none is known."""
    received = {"gtid_retrieved": GtidSet.parse(f"{A}:98-99")}
    for records, expected in (
        ((record(98, 60), record(100, 50, server_id=2)), {f"{A}:100": "H7", f"{A}:98-99": "E3"}),
        ((record(98, 60),), {LOST: "E3"}),
        ((record(98, 60), record(100, 50, server_id=7)), {LOST: "E3"}),
    ):
        facts = facts_of(channel=received, theirs=records)
        losses = {str(loss.gtid_set): loss.cause.value for loss in losses_of(facts)}
        assert losses == expected


def test_both_ends_of_the_first_and_last_intervals_decide() -> None:
    assert list(map(str, ends_of(GtidSet.parse(f"{A}:1-3:5")))) == [f"{A}:{n}" for n in (1, 3, 5)]
    many = GtidSet.parse(f"{A}:" + ":".join(str(2 * n) for n in range(1, INTERVALS_MAX + 3)))
    half = INTERVALS_MAX // 2
    expected = [*range(2, 2 * half + 1, 2), *range(2 * half + 6, 4 * half + 5, 2)]
    assert list(map(str, ends_of(many))) == [f"{A}:{n}" for n in expected]


@pytest.mark.parametrize(
    ("executed", "hole", "expected"),
    [
        (f"{A}:1-3", f"{A}:4-5", True),
        (f"{A}:1-3:6", f"{A}:4-5", True),
        (f"{A}:6", f"{A}:4-5", False),  # above it
        (f"{B}:1-3", f"{A}:4-5", False),
        (f"{A}:dba:1-3", f"{A}:4-5", False),
        ("", f"{A}:4-5", False),
        (f"{A}:2", f"{A}:1:3", False),  # the lowest of the hole counts
        (f"{A}:1-3", f"{A}:4-5,{B}:4", False),  # for each UUID
    ],
)
def test_an_earlier_transaction_of_the_same_origin(
    executed: str, hole: str, *, expected: bool
) -> None:
    assert has_earlier(GtidSet.parse(executed), GtidSet.parse(hole)) is expected


def test_a_commit_hangs_from_the_limit_of_the_policy_on() -> None:
    """The replica has A:4 since then; its source is committing it."""
    for seconds, expected in ((60, None), (61, Waiting(GtidSet.parse(f"{A}:4"), 61))):
        four = GtidSet.parse(f"{A}:4")
        logged = CommitRecord(four, 1, ago(900), is_exact=True, logged_at=ago(seconds))
        evidence = HistoryEvidence(None, (logged,))
        a = a_server("a", A, f"{A}:1-3", gtid_owned=four)
        b = a_server("b", B, f"{A}:1-4", channels=(a_channel("a", A, gtid_retrieved=four),))
        read = a_cluster("pair", a, replace(b, history_evidence=evidence))
        [lost] = gather_facts(read, Policy(stall_seconds_max=60)).lost
        facts = gather_facts(read, Policy(stall_seconds_max=60))
        assert hanging(facts, lost) == expected
        assert hanging(facts, replace(lost, leading=GtidSet())) is None

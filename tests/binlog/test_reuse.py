"""Where numbers may have been given twice, and how far the search goes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from binlog.content import compare, reuse
from binlog.content.compare import Agreement, Comparison, Version, compare_versions
from binlog.content.reuse import (
    FIRST_COMPARED,
    INTERVALS_MAX,
    Compared,
    ContentSearch,
    Unread,
    compare_after_starts,
    compare_given,
    first_of_each,
    last_of_each,
)
from binlog.content.server_starts import ServerStart
from binlog.errors import BinlogError, DumpRefused
from binlog.event_types import EventType
from binlog.scan import EventGroup
from gtid import GtidSet, Tsid
from tests.binlog.builders import NOON_SECONDS, UUID_A, Log, query_body
from tests.binlog.ledger_shapes import gtid_of_8_0
from tests.binlog.logs_in_memory import MemoryLogs

STARTED_AT = datetime(2026, 1, 2, tzinfo=UTC)


def a(ranges: str) -> GtidSet:
    return GtidSet.parse(f"{UUID_A}:{ranges}") if ranges else GtidSet()


@dataclass
class Told:
    """Logs in memory: a statement under each GTID, and what the server did after its start."""

    name: str
    held: Mapping[int, str]
    own: GtidSet = field(default_factory=GtidSet)
    purged: GtidSet = field(default_factory=GtidSet)
    refusal: BinlogError | None = None
    unread: Unread | None = None
    asked: list[GtidSet] = field(default_factory=list)
    earlier: GtidSet = field(default_factory=GtidSet)
    folds: bool | None = False
    committed_at: int | None = None  # in microseconds; None: as before 8.0.1
    seconds_later: int = 0  # the clock of the statements
    has_each_once: bool = True
    lost: GtidSet = field(default_factory=GtidSet)  # listed, and in none of the logs

    def starts(self) -> Iterator[ServerStart | Unread]:
        if self.unread is not None:
            yield self.unread
        if self.own:
            yield ServerStart(self.name, STARTED_AT, "binlog.000007")

    def own_since(self, start: ServerStart, *, sizes: Iterator[int]) -> Iterator[GtidSet]:
        assert start == ServerStart(self.name, STARTED_AT, "binlog.000007")
        left = self.own
        while left:
            window = first_of_each(left, next(sizes))
            left -= window
            yield window

    @property
    def names_fold(self) -> bool | None:
        return self.folds

    def own_before(self, start: ServerStart, *, sizes: Iterator[int]) -> Iterator[GtidSet]:
        assert start == ServerStart(self.name, STARTED_AT, "binlog.000007")
        left = self.earlier
        while left:
            window = last_of_each(left, next(sizes))
            left -= window
            yield window

    def unheld(self, wanted: GtidSet) -> GtidSet:
        return wanted & self.purged

    def holes(self, absent: GtidSet) -> GtidSet:
        return absent & self.lost

    def groups_of(self, wanted: GtidSet) -> Iterator[EventGroup]:
        if self.refusal is not None:
            raise self.refusal
        self.asked.append(wanted)
        log = Log()
        for gno, sql in self.held.items():
            if self.committed_at is None:
                log.gtid(gno)
            else:
                moment = self.committed_at + gno
                head = gtid_of_8_0(gno, transaction_bytes=None, immediate=moment)
                log.add(EventType.GTID, head)
            for word in (sql,) if sql else ("BEGIN", "COMMIT"):
                seconds = NOON_SECONDS + self.seconds_later
                log.add(EventType.QUERY, query_body(word), at_seconds=seconds)
        return MemoryLogs({"log": bytes(log)}).events_of(wanted)


def same(*numbers: int) -> dict[int, str]:
    return {number: f"CREATE TABLE t{number} (a INT)" for number in numbers}


def other(*numbers: int) -> dict[int, str]:
    return {number: f"DROP TABLE t{number}" for number in numbers}


def test_after_a_start_without_loss_the_first_are_compared_and_no_more() -> None:
    left = Told("a", same(*range(1, 101)), own=a("50-100"))
    found = compare_after_starts(left, Told("b", same(*range(1, 101))))
    assert found.comparisons == ()
    assert found.gtids == a("50-53")
    assert found.gtids.gtid_count == FIRST_COMPARED
    assert found.starts == (ServerStart("a", STARTED_AT, "binlog.000007"),)
    assert (found.unread, found.is_cut) == ((), False)


def test_two_are_compared_around_the_restart_of_a_third_server() -> None:
    """Neither committed what differs: one has it from before the crash, and one from after it."""
    numbers = range(1, 101)
    third = Told("c", same(*numbers), own=a("50-100"), earlier=a("40-49"))
    left = Told("a", same(*numbers))
    right = Told("b", {**same(*numbers), **other(50, 51)})
    assert compare_after_starts(left, right).gtids == GtidSet()
    found = compare_after_starts(left, right, others=(third,))
    assert GtidSet.of(each.gtid for each in found.comparisons) == a("50-51")
    assert found.gtids >= a("46-53")
    assert found.starts == (ServerStart("c", STARTED_AT, "binlog.000007"),)
    assert third.asked == []  # only where its restarts are


@pytest.mark.parametrize("lost", [1, 3, 8, 9, 30])
def test_the_search_goes_on_until_both_agree_again(lost: int) -> None:
    numbers = range(1, 101)
    left = Told("a", same(*numbers), own=a("50-100"))
    right = Told("b", {**same(*numbers), **other(*range(50, 50 + lost))})
    for found in (compare_after_starts(left, right), compare_after_starts(right, left)):
        assert GtidSet.of(each.gtid for each in found.comparisons) == a(f"50-{49 + lost}")
        assert found.gtids >= a(f"50-{50 + lost}")
        assert not found.is_cut


def test_work_that_was_done_again_under_its_numbers_does_not_end_the_search() -> None:
    """The contents of the first are equal, not their commits; what comes then differs."""
    numbers = range(1, 101)
    left = Told("a", same(*numbers), own=a("50-100"), committed_at=10**15)
    right = Told("b", {**same(*numbers), **other(60, 61)}, committed_at=2 * 10**15)
    found = compare_after_starts(left, right)
    told = {each.gtid.gno: each.agreement for each in found.comparisons}
    assert told[50] is Agreement.TWICE
    assert [gno for gno in told if told[gno] is Agreement.DIFFERENT] == [60, 61]


def test_before_commit_times_the_clock_shows_that_work_was_done_again() -> None:
    numbers = range(1, 101)
    left = Told("a", same(*numbers), own=a("50-100"))
    right = Told("b", {**same(*numbers), **other(56, 57)}, seconds_later=1)
    found = compare_after_starts(left, right)
    agreed = {each.gtid.gno: each.agreement for each in found.comparisons}
    assert agreed[50] is Agreement.TWICE
    assert [gno for gno in agreed if agreed[gno] is Agreement.DIFFERENT] == [56, 57]
    unseen = Told("b", right.held)  # one clock: the first four agree
    assert compare_after_starts(left, unseen).comparisons == ()


def test_numbers_free_below_are_given_first_and_the_lost_ones_are_found_all_the_same() -> None:
    numbers = range(1, 101)
    left = Told("a", same(*numbers), own=a("5:9:12:15-16:20:90-100"))
    right = Told("b", {**same(*numbers), **other(90, 91)})
    found = compare_after_starts(left, right)
    assert GtidSet.of(each.gtid for each in found.comparisons) == a("90-91")


@pytest.mark.parametrize("last", [12, 40])
def test_a_lost_tail_above_free_numbers_is_found_by_the_order_of_the_other_log(last: int) -> None:
    """The origin fills :6-9, and they agree; it reuses what lies above, which was logged before."""
    lost = range(10, last + 1)
    left = Told("a", same(*range(1, last + 1)), own=a(f"6-{last}"))
    right = Told("b", {**same(*range(1, 6)), **other(*lost), **same(6, 7, 8, 9)})
    for one, two in ((left, right), (right, left)):
        found = compare_after_starts(one, two)
        assert GtidSet.of(each.gtid for each in found.comparisons) == a(f"10-{last}")
    third = Told("c", same(*range(1, last + 1)))
    found = compare_after_starts(third, right, others=(left,))
    assert GtidSet.of(each.gtid for each in found.comparisons) == a(f"10-{last}")


def test_a_refusal_of_the_order_of_the_other_log_is_reported() -> None:
    refusal = DumpRefused(code=1236, text="no")
    left = Told("a", same(*range(1, 101)), own=a("50-100"))
    found = compare_after_starts(left, Told("b", same(1), refusal=refusal))
    assert [each.log for each in found.unread] == ["b"]


def test_the_search_begins_behind_what_a_log_has_purged() -> None:
    numbers = range(1, 101)
    left = Told("a", same(*numbers), own=a("2-20"))
    right = Told("b", {**same(*numbers), **other(13, 14, 15, 16, 17)}, purged=a("1-12"))
    found = compare_after_starts(left, right)
    assert GtidSet.of(each.gtid for each in found.comparisons) == a("13-17")
    assert [each.log for each in found.unread] == ["b"]
    assert f"11 GTIDs, {UUID_A}:2-12" in found.unread[0].reason


def test_a_purge_behind_the_first_compared_is_not_worth_a_note() -> None:
    left = Told("a", same(*range(1, 101)), own=a("2-90"))
    right = Told("b", same(*range(1, 101)), purged=a("50-60"))
    assert compare_after_starts(left, right).unread == ()


def test_of_very_many_intervals_the_first_and_the_last_are_looked_at() -> None:
    numbers = [(Tsid(UUID_A), gno, gno + 5) for gno in range(1, 10_001, 10)]
    first = first_of_each(GtidSet.from_intervals(numbers), 2)
    assert first.interval_count == INTERVALS_MAX
    assert first.gtid_count == 2 * INTERVALS_MAX
    assert a("1-2:9991-9992") <= first


def test_differences_without_end_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse, "COMPARED_MAX", 50)
    left = Told("a", same(*range(1, 201)), own=a("1-200"))
    found = compare_after_starts(left, Told("b", other(*range(1, 201))))
    assert found.is_cut
    assert 50 <= found.gtids.gtid_count < 200


@pytest.mark.parametrize(
    ("most", "compared"), [(4, "1-4"), (5, "1-12"), (12, "1-12"), (13, "1-28")]
)
def test_the_search_ends_with_the_sizes_that_reach_the_limit(
    most: int, compared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reuse, "COMPARED_MAX", most)
    left = Told("a", same(*range(1, 201)), own=a("1-200"))
    found = compare_after_starts(left, Told("b", other(*range(1, 201))))
    assert (found.gtids, found.is_cut) == (a(compared), True)
    agreeing = compare_after_starts(left, Told("b", same(*range(1, 201))))
    assert not agreeing.is_cut, "they agree, and nothing is left to compare"


def test_what_one_server_skipped_does_not_end_the_search() -> None:
    numbers = range(1, 101)
    left = Told("a", same(*numbers), own=a("50-100"))
    right = Told("b", {**same(*numbers), **dict.fromkeys(range(50, 58), "")})
    found = compare_after_starts(left, right)
    assert [each.gtid.gno for each in found.comparisons] == list(range(50, 58))
    assert {each.agreement for each in found.comparisons} == {Agreement.SKIPPED}


def test_others_are_compared_besides_and_the_search_may_go_on() -> None:
    searches: list[ContentSearch] = []

    def more(search: ContentSearch) -> None:
        searches.append(search)
        search.agree(a("90"))
        search.cut()

    numbers = range(1, 81)
    left = Told("a", same(*numbers), own=a("50-80"))
    right = Told("b", {**same(*numbers), **other(20)})
    found = compare_after_starts(left, right, also=a("20-21"), more=more)
    assert [each.gtid.gno for each in found.comparisons] == [20]
    assert found.gtids == a("20-21:50-53:90")
    assert (len(searches), found.is_cut, found.unread) == (1, True, ())


def test_what_was_compared_after_a_start_may_be_given_once_more() -> None:
    numbers = range(1, 81)
    left = Told("a", same(*numbers), own=a("50-80"))
    found = compare_after_starts(left, Told("b", same(*numbers)), also=a("49-55"))
    assert (found.gtids, found.unread) == (a("49-55"), ())


def test_what_the_other_does_not_hold_is_not_compared() -> None:
    left = Told("a", same(1, 2, 3), own=a("1-3"))
    found = compare_after_starts(left, Told("b", {}))
    assert (found.gtids, found.unread) == (GtidSet(), ())


def test_what_is_listed_and_in_no_file_is_said() -> None:
    left = Told("a", same(1, 2, 3), own=a("1-3"))
    right = Told("b", same(1, 3), lost=a("2"))
    for found in (
        compare_after_starts(left, right),
        compare_given(left, right, wanted=a("1-3")),
    ):
        assert found.gtids == GtidSet.parse(f"{UUID_A}:1:3")
        assert [(each.log, each.is_lasting) for each in found.unread] == [("b", True)]
        assert f"never in these logs: 1 GTID, {UUID_A}:2" in found.unread[0].reason


def test_what_is_purged_is_said_and_the_rest_compared() -> None:
    left = Told("a", same(1, 2, 3), own=a("1-3"))
    right = Told("b", same(2, 3), purged=a("1"))
    found = compare_after_starts(left, right)
    assert found.unread == (
        Unread("b", f"purged, or never in these logs: 1 GTID, {UUID_A}:1", is_lasting=True),
    )
    assert found.gtids == a("2-3")
    other_way = compare_given(right, left, wanted=a("1-3"))
    assert (other_way.unread, other_way.gtids) == (found.unread, found.gtids)


def test_a_refusal_is_said_and_is_not_agreement() -> None:
    refusal = DumpRefused(code=1227, text="you need a privilege")
    left = Told("a", same(1), own=a("1"))
    found = compare_after_starts(left, Told("b", same(1), refusal=refusal))
    assert found.gtids == GtidSet()
    assert found.unread == (Unread("b", str(refusal)),)
    assert not found.unread[0].is_lasting
    # What was refused may be in the log: nothing says that it is not.
    given = compare_given(left, Told("b", same(1), refusal=refusal), wanted=a("1"))
    assert given.unread == found.unread


def test_a_start_that_cannot_be_found_is_said() -> None:
    unread = Unread("a", "the log that began at its latest restart is purged")
    found = compare_after_starts(Told("a", same(1), unread=unread), Told("b", same(1)))
    assert (found.unread, found.starts) == ((unread,), ())


def test_given_transactions_are_compared_as_far_as_both_hold_them() -> None:
    left, right = Told("a", same(1, 2, 3)), Told("b", {**same(1), **other(2)}, purged=a("3"))
    found = compare_given(left, right, wanted=a("1-9"))
    assert [each.gtid.gno for each in found.comparisons] == [2]
    assert found.gtids == a("1-2")
    assert found.unread == (
        Unread("b", f"purged, or never in these logs: 1 GTID, {UUID_A}:3", is_lasting=True),
        Unread("a, b", f"not in both logs: 6 GTIDs, {UUID_A}:4-9", is_lasting=True),
    )


def test_given_transactions_are_compared_only_where_both_logs_hold_them() -> None:
    more, fewer = Told("a", same(1, 2)), Told("b", same(1))
    for left, right in ((more, fewer), (fewer, more)):
        found = compare_given(left, right, wanted=a("1-2"))
        assert found.gtids == a("1")
        assert [each.reason for each in found.unread] == [f"not in both logs: 1 GTID, {UUID_A}:2"]
    whole = compare_given(more, more, wanted=a("1-2"))
    assert whole == Compared((), a("1-2"), (), ())
    assert not whole.is_cut


def test_many_given_transactions_are_read_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse, "GIVEN_AT_ONCE", 2)
    left, right = Told("a", same(1, 2, 3)), Told("b", same(1, 3))
    found = compare_given(left, right, wanted=a("1-3"))
    assert left.asked == right.asked == [a("1-2"), a("3")]
    assert found.gtids == a("1:3")
    assert [each.reason for each in found.unread] == [f"not in both logs: 1 GTID, {UUID_A}:2"]


@pytest.mark.parametrize("injected", [1, 3, 8, 30])
def test_the_last_own_transactions_before_a_start_are_compared_backwards(injected: int) -> None:
    """An old primary returns with a tail under whose GTIDs others committed something else."""
    numbers = range(1, 201)
    left = Told("a", same(*numbers), own=a("201"), earlier=a("1-200"))
    right = Told("b", {**same(*numbers), **other(*range(201 - injected, 201))})
    for found in (compare_after_starts(left, right), compare_after_starts(right, left)):
        assert GtidSet.of(each.gtid for each in found.comparisons) == a(f"{201 - injected}-200")
        assert not found.is_cut
        assert found.gtids.gtid_count < 200


def test_few_questions_to_each_server_find_that_all_is_well_around_a_start() -> None:
    left = Told("a", same(*range(1, 101)), own=a("51-100"), earlier=a("1-50"))
    right = Told("b", same(*range(1, 101)))
    found = compare_after_starts(left, right)
    assert found.gtids == a("47-54")
    assert [each.gtid_count for each in left.asked] == [8]
    # Of what the origin committed since, the first four in the other log's order are read there,
    # with the last before: then nothing is left to ask.
    assert right.asked == [a("47-100")]


def test_only_what_was_not_read_for_the_order_is_asked_for_again() -> None:
    left = Told("a", same(*range(1, 101)), own=a("51-100"), earlier=a("1-50"))
    right = Told("b", same(*range(49, 101), 47, 48))
    assert compare_after_starts(left, right).gtids == a("47-54")
    assert right.asked == [a("47-100"), a("47-48")]
    differing = Told(
        "b", {**same(49), **other(50), **same(*range(51, 101)), **other(47), **same(48)}
    )
    found = compare_after_starts(left, differing)
    assert GtidSet.of(each.gtid for each in found.comparisons) == a("47:50")


def test_logs_that_may_have_a_number_twice_are_read_again_to_be_compared() -> None:
    left = Told("a", same(*range(1, 101)), own=a("51-100"), earlier=a("1-50"))
    right = Told("b", same(*range(1, 101)), has_each_once=False)
    assert compare_after_starts(left, right).gtids == a("47-54")
    assert right.asked == [a("51-100"), a("47-54")]


@pytest.mark.parametrize(
    ("ours", "theirs", "both"),
    [
        *((False, False, False), (False, True, True), (True, None, True)),
        *((None, False, None), (None, None, None)),
    ],
)
def test_how_names_compare_is_decided_by_both_servers(
    ours: bool | None, theirs: bool | None, both: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def compared(left: Version, right: Version, *, names_fold: bool | None) -> Comparison:
        asked.append(names_fold)
        return compare_versions(left, right, names_fold=names_fold)

    monkeypatch.setattr(compare, "compare_versions", compared)
    for left, right in ((ours, theirs), (theirs, ours)):
        compare_given(
            Told("a", same(1), folds=left), Told("b", same(1), folds=right), wanted=a("1")
        )
    assert asked == [both, both]

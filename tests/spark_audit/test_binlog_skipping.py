"""Passing over files: never one that may hold what is sought, whatever has happened to the logs.

The law is tried on made-up histories: a server commits, rotates, stops, is killed and loses its
tail, is put back to an older state, sets its clock; and an archive copies its files at any moment,
some of them never again.
"""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gtid import GtidSet, Tsid
from spark_audit.binlog_skipping import (
    CLOCK_SECONDS_MAX,
    ROTATION_SECONDS_MAX,
    LogFacts,
    bounds_of,
    may_hold,
)
from spark_audit.binlog_sought import Sought
from tests.hypothesis_profiles import laws

A, B = (UUID(int=number << 120) for number in (0xAA, 0xBB))
NOW_SECONDS = 1_767_355_200


def interval(start: int, end: int, uuid: UUID = A) -> GtidSet:
    return GtidSet.from_intervals([(Tsid(uuid), start, end)])


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def log(previous: GtidSet | None, opened: int = NOW_SECONDS, **facts: object) -> LogFacts:
    plain = LogFacts(
        previous_gtids=previous,
        opened_at_seconds=opened,
        server_version=(9, 7, 4),
        is_opened_by_start=False,
        is_relay_log=False,
    )
    return replace(plain, **facts)  # type: ignore[arg-type]


FIRST = log(interval(1, 10), rotates_to="binlog.000002", rotated_at_seconds=NOW_SECONDS + 500)
SECOND = log(interval(1, 20), NOW_SECONDS + 500)


def answer(first: LogFacts, second: LogFacts | None, sought: Sought) -> bool:
    folder = {"binlog.000001": first}
    if second is not None:
        folder["binlog.000002"] = second
    return may_hold(bounds_of("binlog.000001", folder), sought)


def test_two_files_of_one_history_bound_what_the_first_holds() -> None:
    for gno, is_there in ((9, False), (10, True), (19, True), (20, False)):
        assert answer(FIRST, SECOND, Sought(gtids=interval(gno, gno + 1))) is is_there, gno
    assert not answer(FIRST, SECOND, Sought(uuids=frozenset({B})))
    assert not answer(FIRST, SECOND, Sought(tags=frozenset({"dba"})))
    assert answer(FIRST, SECOND, Sought(tags=frozenset({""})))
    assert not answer(FIRST, SECOND, Sought(gno_start=20))
    assert answer(FIRST, SECOND, Sought())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (FIRST, None),  # the newest, or the next is not in the archive
        (replace(FIRST, rotates_to=None, rotated_at_seconds=None), SECOND),  # crashed, or open
        (replace(FIRST, rotates_to="binlog.000003"), SECOND),
        (FIRST, replace(SECOND, is_opened_by_start=True)),  # crashed after the rotation
        (FIRST, replace(SECOND, opened_at_seconds=NOW_SECONDS + 500 + ROTATION_SECONDS_MAX + 1)),
        (FIRST, replace(SECOND, opened_at_seconds=NOW_SECONDS + 500 - ROTATION_SECONDS_MAX - 1)),
        (FIRST, replace(SECOND, previous_gtids=interval(1, 8))),  # it knows less than the first
        (FIRST, replace(SECOND, previous_gtids=None)),
        (FIRST, replace(SECOND, is_relay_log=True)),
    ],
)
def test_two_files_that_may_not_be_of_one_history_bound_nothing_from_above(
    first: LogFacts, second: LogFacts | None
) -> None:
    assert answer(first, second, Sought(gtids=interval(20, 30)))
    assert not answer(first, second, Sought(gtids=interval(1, 10))), "what it had before, it has"
    assert answer(first, second, Sought(uuids=frozenset({A})))


def test_a_file_that_says_nothing_is_read() -> None:
    old = replace(FIRST, previous_gtids=None)
    relayed = replace(FIRST, is_relay_log=True)
    for facts in (old, relayed):
        assert answer(facts, SECOND, Sought(gtids=interval(1, 10)))
        assert answer(facts, SECOND, Sought(uuids=frozenset({B})))
    assert answer(relayed, SECOND, Sought(committed_from=at(NOW_SECONDS * 2)))


def test_time_bounds_a_file_but_for_a_clock_that_was_set_back() -> None:
    closed = NOW_SECONDS + 500
    assert answer(FIRST, SECOND, Sought(committed_from=at(closed + CLOCK_SECONDS_MAX)))
    assert not answer(FIRST, SECOND, Sought(committed_from=at(closed + CLOCK_SECONDS_MAX + 1)))
    assert answer(FIRST, None, Sought(committed_from=at(NOW_SECONDS * 2))), "it may still grow"
    assert answer(FIRST, SECOND, Sought(committed_until=at(NOW_SECONDS - CLOCK_SECONDS_MAX)))
    assert not answer(
        FIRST, SECOND, Sought(committed_until=at(NOW_SECONDS - CLOCK_SECONDS_MAX - 1))
    )
    before_commit_times = replace(FIRST, server_version=(5, 7, 44))
    assert answer(before_commit_times, SECOND, Sought(committed_until=at(0))), "a replica, perhaps"
    assert answer(replace(FIRST, server_version=()), SECOND, Sought(committed_until=at(0)))


# -- the law --------------------------------------------------------------------------------------


@dataclass
class File:
    facts: LogFacts
    transactions: list[tuple[GtidSet, int]] = field(default_factory=list)

    def copy(self) -> "File":
        return File(self.facts, list(self.transactions))


@dataclass
class World:
    """A server that numbers its own transactions, applies another's, and an archive of its logs."""

    seconds: int = NOW_SECONDS
    executed: GtidSet = field(default_factory=GtidSet)
    files: dict[str, File] = field(default_factory=dict)
    archive: dict[str, File] = field(default_factory=dict)
    saved: tuple[GtidSet, dict[str, File]] | None = None

    @property
    def last(self) -> str:
        return max(self.files)

    def open(self, *, by_start: bool) -> None:
        number = 1 + max((int(name[-6:]) for name in self.files), default=0)
        facts = log(self.executed, self.seconds, is_opened_by_start=by_start)
        self.files[f"binlog.{number:06}"] = File(facts)

    def commit(self, uuid: UUID) -> None:
        gtids = interval(1, 1000, uuid) - self.executed
        one = gtids.first(1)
        self.files[self.last].transactions.append((one, self.seconds))
        self.executed |= one

    def rotate(self) -> None:
        file = self.files[self.last]
        following = f"binlog.{int(self.last[-6:]) + 1:06}"
        file.facts = replace(file.facts, rotates_to=following, rotated_at_seconds=self.seconds)
        self.open(by_start=False)

    def crash(self, lost: int) -> None:
        """Lose the last transactions of the open file; start again, in a new file."""
        file = self.files[self.last]
        for gtids, _ in file.transactions[len(file.transactions) - lost :] if lost else []:
            self.executed -= gtids
        del file.transactions[max(0, len(file.transactions) - lost) :]
        self.open(by_start=True)

    def save(self) -> None:
        self.saved = (self.executed, {name: file.copy() for name, file in self.files.items()})

    def put_back(self) -> None:
        """Start from an older copy of the data directory."""
        if self.saved is not None:
            self.executed, files = self.saved
            self.files = {name: file.copy() for name, file in files.items()}
            self.open(by_start=True)

    def archive_all(self) -> None:
        for which in range(len(self.files)):
            self.archive_one(which)

    def archive_one(self, which: int) -> None:
        name = sorted(self.files)[which % len(self.files)]
        self.archive[name] = self.files[name].copy()


steps = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), st.sampled_from((A, B))),
        st.tuples(st.just("rotate")),
        st.tuples(st.just("crash"), st.integers(0, 3)),
        st.tuples(st.just("save")),
        st.tuples(st.just("put_back")),
        st.tuples(st.just("archive_one"), st.integers(0, 9)),
        st.tuples(st.just("archive_all")),
        st.tuples(st.just("wait"), st.integers(0, 200)),
    ),
    min_size=4,
    max_size=24,
)


# An archived file that rotated, beside one of its follower's name from another history.
SAVED = [("commit", A), ("save",), ("commit", A), ("rotate",), ("archive_all",)]
# An archived file with the tail that a crash took, beside the file the server opened then.
CRASHED = [*[("commit", A)] * 3, ("archive_all",), ("crash", 2), ("archive_one", 1)]


@laws(400)
@example(history=[*SAVED, ("put_back",), ("archive_one", 1)])
@example(history=CRASHED)
@given(steps)
def test_a_file_that_holds_what_is_sought_is_never_passed_over(
    history: list[tuple[object, ...]],
) -> None:
    world = World()
    world.open(by_start=True)
    for name, *arguments in history:
        # A server takes longer to come back than a rotation may take.
        world.seconds += ROTATION_SECONDS_MAX + 1 if name in ("crash", "put_back") else 1
        if name == "wait":
            world.seconds += int(str(arguments[0]))
        else:
            getattr(world, str(name))(*arguments)
    folder = {name: file.facts for name, file in world.archive.items()}
    for name, file in world.archive.items():
        bounds = bounds_of(name, folder)
        for gtids, seconds in file.transactions:
            (tsid,) = gtids.tsids
            ((_, start, end),) = gtids.intervals()
            committed = at(seconds) + timedelta(microseconds=5)
            assert may_hold(bounds, Sought(gtids=gtids))
            assert may_hold(bounds, Sought(uuids=frozenset({tsid.uuid}), gno_end=end))
            assert may_hold(bounds, Sought(tags=frozenset({""}), gno_start=start))
            assert may_hold(bounds, Sought(committed_from=committed, committed_until=committed))

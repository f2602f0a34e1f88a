"""Who waits for whom: readings in memory, chains, and what is not known."""

import pytest

from gtid import GtidError
from gtid_audit.views.server_locks import locks_of
from tests.snapshots import A, B
from topology.adapters.status import parse_owners
from topology.locks.lock_waits import (
    LockReading,
    LockSession,
    MetadataLock,
    RowWait,
    end_of,
    waits_of,
)
from topology.locks.metadata_conflicts import waits_for

TABLE = ("TABLE", "d", "t")


def session(number: int, *, state: str = "", channel: str | None = None) -> LockSession:
    return LockSession(number, "app", "h", "Sleep", state, number, "", channel=channel)


def sessions(*numbers: int) -> dict[int, LockSession]:
    return {number: session(number) for number in numbers}


def lock(number: int | None, kind: str, *, pending: bool = False) -> MetadataLock:
    return MetadataLock(*TABLE, kind, not pending, number)


def test_a_request_waits_for_the_granted_locks_that_exclude_it() -> None:
    locks = (
        lock(1, "SHARED_READ"),
        lock(2, "SHARED_HIGH_PRIO"),
        lock(3, "EXCLUSIVE", pending=True),
        MetadataLock("TABLE", "d", "other", "SHARED_READ", True, 4),
    )
    [wait] = waits_of(LockReading(sessions(1, 2, 3, 4), locks))
    assert (wait.session.session_id, wait.lock, wait.place) == (3, "metadata lock", "d.t")
    assert [each.session_id for each in wait.blockers] == [1, 2]


def test_what_waits_behind_a_request_ends_with_its_holder() -> None:
    locks = (
        lock(1, "SHARED_READ"),
        lock(2, "EXCLUSIVE", pending=True),
        lock(3, "SHARED_READ", pending=True),
    )
    waits = waits_of(LockReading(sessions(1, 2, 3), locks))
    by_number = {each.session.session_id: each for each in waits}
    assert [each.session_id for each in by_number[3].blockers] == [2]
    assert [each.session_id for each in end_of(by_number[3], waits).sessions] == [1]


def test_those_who_wait_behind_one_request_do_not_wait_for_each_other() -> None:
    locks = (
        lock(1, "SHARED_READ"),
        lock(2, "EXCLUSIVE", pending=True),
        lock(3, "SHARED_READ", pending=True),
        lock(4, "SHARED_WRITE", pending=True),
    )
    waits = waits_of(LockReading(sessions(1, 2, 3, 4), locks))
    found = {
        each.session.session_id: [blocker.session_id for blocker in each.blockers] for each in waits
    }
    assert found == {2: [1], 3: [2], 4: [2]}


def test_a_pending_request_that_nothing_excludes_has_no_known_holder() -> None:
    locks = (lock(1, "SHARED_READ"), lock(2, "SHARED_READ", pending=True))
    [wait] = waits_of(LockReading(sessions(1, 2), locks))
    assert (wait.is_hidden, wait.blockers) == (True, ())


def test_no_kill_where_a_link_of_the_chain_is_uncertain() -> None:
    """An applier holds a row and waits for a GTID that one of two sessions owns."""
    applier = session(1, state="Waiting for GTID to be committed", channel="")
    found = {1: applier, **sessions(2, 3, 4)}
    reading = LockReading(
        found, rows=(RowWait(4, 1, "d", "t"),), owners=((f"{A}:5", 2), (f"{A}:6", 3))
    )
    locks = locks_of("s", reading, ())
    by_number = {each.session.session_id: each for each in locks.waits}
    assert [each.session_id for each in locks.end(by_number[4]).sessions] == [2, 3]
    assert locks.kills(by_number[4]) == ()


def test_sessions_that_wait_for_each_other_have_no_end() -> None:
    rows = (RowWait(1, 2, "d", "t"), RowWait(2, 1, "d", "t"))
    waits = waits_of(LockReading(sessions(1, 2), rows=rows))
    assert [end_of(each, waits).sessions for each in waits] == [(), ()]


def test_a_chain_that_ends_at_a_hidden_wait_is_no_circle() -> None:
    """FTWRL waits for a query, which no table shows, and an applier waits for FTWRL."""
    ftwrl = session(1, state="Waiting for table flush")
    locks = (
        MetadataLock("GLOBAL", "", "", "SHARED", True, 1),
        MetadataLock("GLOBAL", "", "", "INTENTION_EXCLUSIVE", False, 2),
    )
    waits = waits_of(LockReading({1: ftwrl, 2: session(2, channel="")}, locks))
    by_number = {each.session.session_id: each for each in waits}
    assert by_number[1].is_hidden
    assert end_of(by_number[2], waits).is_hidden
    assert not end_of(by_number[2], waits).sessions
    circle = waits_of(
        LockReading(sessions(1, 2), rows=(RowWait(1, 2, "d", "t"), RowWait(2, 1, "d", "t")))
    )
    assert not any(end_of(each, circle).is_hidden for each in circle)


def test_a_replication_thread_is_never_killed() -> None:
    found = {1: session(1, channel=""), 2: session(2)}
    locks = locks_of("s", LockReading(found, rows=(RowWait(2, 1, "d", "t"),)), ())
    assert [each.session_id for each in locks.end(locks.waits[0]).sessions] == [1]
    assert locks.kills(locks.waits[0]) == ()


def test_a_scope_is_named() -> None:
    locks = (
        MetadataLock("GLOBAL", "", "", "SHARED", True, 1),
        MetadataLock("GLOBAL", "", "", "INTENTION_EXCLUSIVE", False, 2),
        MetadataLock("BACKUP LOCK", "", "", "INTENTION_EXCLUSIVE", True, 2),
    )
    [wait] = waits_of(LockReading(sessions(1, 2), locks))
    assert (wait.lock, wait.place) == ("global lock", "")
    assert [each.session_id for each in wait.blockers] == [1]


@pytest.mark.parametrize("kind", ["row", "metadata"])
def test_a_holder_may_have_no_session(kind: str) -> None:
    rows = (RowWait(2, None, "d", "t"),) if kind == "row" else ()
    locks = (lock(None, "SHARED_WRITE"), lock(2, "EXCLUSIVE", pending=True))
    [wait] = waits_of(LockReading(sessions(2), locks if kind == "metadata" else (), rows))
    assert (wait.is_without_session, wait.is_hidden, wait.blockers) == (True, False, ())


def test_a_row_may_have_several_holders() -> None:
    rows = (RowWait(1, 2, "d", "t"), RowWait(1, 3, "d", "t"), RowWait(1, None, "d", "t"))
    [wait] = waits_of(LockReading(sessions(1, 2, 3), rows=rows))
    assert [each.session_id for each in wait.blockers] == [2, 3]
    assert wait.is_without_session
    assert end_of(wait, [wait]).is_without_session


def test_a_wait_whose_holder_no_table_shows_is_not_left_out() -> None:
    for state in ("Waiting for table metadata lock", "Waiting for global read lock"):
        [wait] = waits_of(LockReading({7: session(7, state=state)}))
        assert (wait.is_hidden, wait.lock) == (True, state.removeprefix("Waiting for "))
    quiet = ("", "Waiting for source to send event", "Waiting for preceding transaction to commit")
    assert not waits_of(LockReading({at: session(at, state=each) for at, each in enumerate(quiet)}))


def test_an_owner_of_a_gtid_may_block() -> None:
    waiting = session(1, state="Waiting for GTID to be committed", channel="")
    owners = ((f"{A}:5", 2), (f"{A}:6", 1))
    [wait] = waits_of(LockReading({1: waiting, 2: session(2)}, owners=owners))
    assert [each.session_id for each in wait.blockers] == [2]
    assert not wait.may_be_one_of
    more = LockReading({1: waiting, **sessions(2, 3)}, owners=(*owners, (f"{A}:7", 3)))
    found = locks_of("s", more, ())
    assert (found.waits[0].may_be_one_of, found.kills(found.waits[0])) == (True, ())
    assert waits_of(LockReading({1: waiting}))[0].is_hidden


def test_appliers_come_first_then_the_longest() -> None:
    state = "Waiting for table metadata lock"
    found = {
        1: session(1, state=state, channel=""),
        2: session(2, state=state),
        3: session(3, state=state),
    }
    assert [each.session.session_id for each in waits_of(LockReading(found))] == [1, 3, 2]


def test_the_state_of_a_session_does_not_hide_its_holder() -> None:
    waiting = session(2, state="Waiting for table metadata lock")
    locks = (lock(1, "SHARED_READ"), lock(2, "EXCLUSIVE", pending=True))
    [wait] = waits_of(LockReading({1: session(1), 2: waiting}, locks))
    assert not wait.is_hidden


# One row for each requested type: "-" where it waits for the granted type of the column.
OBJECT_TYPES = (
    *("SHARED", "SHARED_HIGH_PRIO", "SHARED_READ", "SHARED_WRITE", "SHARED_WRITE_LOW_PRIO"),
    *("SHARED_UPGRADABLE", "SHARED_READ_ONLY", "SHARED_NO_WRITE", "SHARED_NO_READ_WRITE"),
    "EXCLUSIVE",
)
OF_OBJECTS = [
    "+++++++++-",
    "+++++++++-",
    "++++++++--",
    "++++++----",
    "++++++----",
    "+++++-+---",
    "+++--+++--",
    "+++---+---",
    "++--------",
    "----------",
]
SCOPE_TYPES = ("INTENTION_EXCLUSIVE", "SHARED", "EXCLUSIVE")
OF_SCOPES = ("+--", "-+-", "---")
SCOPES = (
    *("GLOBAL", "COMMIT", "BACKUP LOCK", "SCHEMA", "TABLESPACE", "RESOURCE_GROUPS"),
    *("FOREIGN KEY", "CHECK CONSTRAINT"),
)


@pytest.mark.parametrize("object_type", ["TABLE", "PROCEDURE", *SCOPES])
def test_which_locks_exclude_each_other(object_type: str) -> None:
    is_scope = object_type in SCOPES
    kinds, matrix = (SCOPE_TYPES, OF_SCOPES) if is_scope else (OBJECT_TYPES, OF_OBJECTS)
    found = [
        "".join("-" if waits_for(object_type, requested, granted) else "+" for granted in kinds)
        for requested in kinds
    ]
    assert found == list(matrix)


def test_an_unknown_type_is_taken_to_conflict() -> None:
    assert waits_for("TABLE", "OF_2040", "SHARED")
    assert waits_for("TABLE", "SHARED", "OF_2040")


def test_only_the_same_object_of_the_same_kind_counts() -> None:
    request = MetadataLock("TABLE", "d", "t", "EXCLUSIVE", False, 9)
    others = (
        MetadataLock("TABLE", "d", "u", "EXCLUSIVE", True, 1),
        MetadataLock("TABLE", "e", "t", "EXCLUSIVE", True, 2),
        MetadataLock("PROCEDURE", "d", "t", "EXCLUSIVE", True, 3),
        MetadataLock("TABLE", "d", "t", "SHARED_UPGRADABLE", True, 9),  # its own
        MetadataLock("TABLE", "d", "t", "SHARED_READ", True, 4),
    )
    [wait] = waits_of(LockReading(sessions(1, 2, 3, 4, 9), (request, *others)))
    assert [each.session_id for each in wait.blockers] == [4]


@pytest.mark.parametrize(
    ("object_type", "schema", "name", "expected"),
    [
        ("SCHEMA", "d", "", ("metadata lock", "d")),
        ("TABLESPACE", "", "d/t", ("metadata lock", "d/t")),
        ("BACKUP LOCK", "", "", ("backup lock", "")),
        ("USER LEVEL LOCK", "", "job", ("GET_LOCK lock", "job")),
        ("LOCKING SERVICE", "jobs", "j", ("locking service lock", "jobs.j")),
    ],
)
def test_what_is_locked_is_named(
    object_type: str, schema: str, name: str, expected: tuple[str, str]
) -> None:
    locks = (
        MetadataLock(object_type, schema, name, "SHARED", True, 1),
        MetadataLock(object_type, schema, name, "EXCLUSIVE", False, 2),
    )
    [wait] = waits_of(LockReading(sessions(1, 2), locks))
    assert (wait.lock, wait.place) == expected


def test_a_session_that_has_ended_in_between_is_not_shown() -> None:
    locks = (lock(1, "SHARED_READ"), lock(5, "EXCLUSIVE", pending=True))
    rows = (RowWait(6, 1, "d", "t"), RowWait(1, 7, "d", "t"))
    [wait] = waits_of(LockReading(sessions(1), locks, rows))
    assert (wait.session.session_id, wait.place, wait.is_hidden) == (1, "d.t", True)
    assert not wait.may_be_one_of


def test_a_row_wait_is_shown_in_place_of_an_earlier_request_of_the_session() -> None:
    locks = (lock(1, "SHARED_READ"), lock(2, "EXCLUSIVE", pending=True))
    rows = (RowWait(2, 3, "d", "u"), RowWait(2, 3, "d", "u"))
    [wait] = waits_of(LockReading(sessions(1, 2, 3), locks, rows))
    assert (wait.lock, wait.place) == ("row lock", "d.u")
    assert [each.session_id for each in wait.blockers] == [3]
    assert not wait.is_without_session


def test_a_row_of_a_holder_without_session_stays_with_the_next_one() -> None:
    rows = (RowWait(1, None, "d", "t"), RowWait(1, 2, "d", "t"))
    [wait] = waits_of(LockReading(sessions(1, 2), rows=rows))
    assert (wait.is_without_session, wait.is_hidden) == (True, False)


def test_a_worker_that_waits_for_a_gtid_itself_owns_none_that_matters() -> None:
    state = "Waiting for GTID to be committed"
    found = {1: session(1, state=state, channel=""), 2: session(2, state=state, channel="x")}
    owners = ((f"{A}:5", 2), (f"{A}:6", 1), (f"{A}:7", 99))
    waits = waits_of(LockReading(found, owners=owners))
    assert [(each.blockers, each.is_hidden) for each in waits] == [((), True), ((), True)]


# -- gtid_owned -----------------------------------------------------------------------------------


def test_the_owners_of_gtids() -> None:
    text = f"{A}:5#12:6#13{B}:1#9:tag:2#8"
    expected = ((f"{A}:5", 12), (f"{A}:6", 13), (f"{B}:1", 9), (f"{B}:tag:2", 8))
    assert parse_owners(text) == expected
    assert parse_owners("") == ()
    for wrong in (f"{A}:5#x", f"{A}:#4", f"{A}:x#4"):
        with pytest.raises(GtidError):
            parse_owners(wrong)

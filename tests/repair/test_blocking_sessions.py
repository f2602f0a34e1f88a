"""The session that blocks an applier in the instruction of a plan: who, since when, what is lost.

Locks are made by hand. test_blockers_live.py does what the texts state on real servers.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from repair import LogEvidence, plan_repair
from repair.content.locks_read import LocksRead
from repair.model.strategy_case import NOTHING_BESIDE, KnownBeside
from repair.repair_plan import NotPlanned
from repair.strategies.done_by_hand import by_hand
from tests.repair.build import channel, model, server, snapshot_of
from tests.repair.cases import a_finding
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Evidence, Finding
from topology.facts.gtid_waits import OWNER
from topology.locks.lock_waits import LockReading, LockSession, MetadataLock, RowWait

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
SERVERS = model(server("a", "a:1-9"), server("b", "a:1-3", channel("a")))
BLOCKED = replace(a_finding("A5", "a:4"), evidence=(Evidence("state", "lock", "b", NOON),))
IN_GTID_WAIT = "Waiting for GTID to be committed"
COMMAND = "`gtid-audit locks (DSN of b)`"


def client(
    number: int, *, seconds: int | None = None, rows: int | None = None, gtid: str = ""
) -> LockSession:
    return LockSession(
        number, "app", "h", "Sleep", "", 1, "", seconds, transaction_rows=rows, gtid=gtid
    )


def applier(number: int, *, state: str = "", channel: str = "") -> LockSession:
    return LockSession(number, "", "", "Query", state, 1, "", channel=channel, worker=1)


def metadata(number: int | None, *, pending: bool = False) -> MetadataLock:
    kind = "EXCLUSIVE" if pending else "SHARED_READ"
    return MetadataLock("TABLE", "d", "t", kind, not pending, number)


def held_by(*holders: LockSession | None, waiting: LockSession | None = None) -> LockReading:
    """Return locks of which the applier, session 9, waits for one that these hold."""
    found = [each for each in (*holders, waiting or applier(9)) if each is not None]
    numbers = [None if each is None else each.session_id for each in holders]
    locks = (*map(metadata, numbers), metadata(9, pending=True))
    return LockReading({each.session_id: each for each in found}, locks)


def said(
    reading: LockReading, finding: Finding = BLOCKED, *, unread: tuple[tuple[str, str], ...] = ()
) -> str:
    locks = {"b": LocksRead(NOON, reading, unread)}
    return by_hand("kill_blocker", finding, SERVERS, KnownBeside((), locks))


def test_the_kill_of_the_holder_is_complete_and_dated() -> None:
    text = said(held_by(client(41, seconds=1300, rows=12)))
    assert text.startswith("on b run `KILL 41`. When its locks were read, at 2026-01-02 12:00:00")
    assert "the applier waited for session 41, app@h (metadata lock on d.t)." in text
    assert (
        "rolls back the transaction of session 41, open for 1,300 s with 12 changed rows." in text
    )
    assert f"Directly before, run {COMMAND}, and run the KILL only if this prints the same" in text
    assert "(id of the thread)" not in text
    assert "It must not commit" not in text


def test_what_a_kill_rolls_back_is_what_the_server_shows() -> None:
    assert "open for 5 s." in said(held_by(client(41, seconds=5)))
    idle = held_by(client(41))
    assert "had no open InnoDB transaction: KILL releases its locks and rolls" in said(idle)
    unread = said(idle, unread=(("transactions", "denied: PROCESS"),))
    assert "could not be read whether session 41 has an open transaction: KILL rolls it" in unread
    other = said(idle, unread=(("statements", "denied"),))
    assert "rolls nothing back" in other


def test_several_holders_are_ended_and_each_is_described() -> None:
    text = said(held_by(client(42, seconds=2), client(41, seconds=1)))
    assert text.startswith("on b run `KILL 41`, `KILL 42`. ")
    assert "waited for session 41, app@h (metadata lock on d.t); session 42, app@h" in text
    assert "of session 41, open for 1 s. KILL rolls back the transaction of session 42" in text


def test_only_the_waits_of_the_channel_count() -> None:
    other = held_by(client(41, seconds=2), waiting=applier(9, channel="second"))
    assert "`KILL 41`" not in said(other)
    assert "`KILL 41`" in said(other, replace(BLOCKED, channel="second"))


@pytest.mark.parametrize(
    ("reading", "why"),
    [
        (
            held_by(applier(8)),
            "a thread of replication holds the metadata lock on d.t: do not KILL",
        ),
        (held_by(None), "a holder of the metadata lock on d.t has no session: a prepared XA"),
        (
            LockReading({9: applier(9, state="Waiting for table metadata lock")}),
            "b does not show who holds the table metadata lock",
        ),
        (
            LockReading(
                {number: applier(number) for number in (8, 9)},
                rows=(RowWait(9, 8, "d", "t"), RowWait(8, 9, "d", "t")),
            ),
            "the sessions wait for each other",
        ),
        (LockReading({}), "the applier waited for no lock that the server shows: audit again"),
    ],
)
def test_without_a_session_to_end_the_command_is_named_with_the_reason(
    reading: LockReading, why: str
) -> None:
    text = said(reading)
    assert text.startswith(f"run {COMMAND}: it prints the session, and the KILL with its id. When")
    assert f"at 2026-01-02 12:00:00 UTC, this was not known: {why}" in text
    assert "`KILL (id of the thread)`" in text
    assert "`XA RECOVER`" in text


def test_what_else_holds_the_lock_stands_beside_the_kill() -> None:
    text = said(held_by(client(41, seconds=2), None))
    assert text.startswith("on b run `KILL 41`")
    assert "a holder of the metadata lock on d.t has no session" in text


def test_unread_locks_are_named() -> None:
    text = said(LockReading({}), unread=(("connection", "timeout: no answer"),))
    assert "this was not known: connection not read: timeout: no answer" in text
    plain = by_hand("kill_blocker", BLOCKED, SERVERS, NOTHING_BESIDE)
    assert plain.startswith(f"run {COMMAND}: it prints the session, and the KILL with its id. Oth")


def owning(*owners: LockSession) -> LockReading:
    sessions = {each.session_id: each for each in (*owners, applier(9, state=IN_GTID_WAIT))}
    return LockReading(sessions, owners=tuple(("g:1", each.session_id) for each in owners))


IN_WAIT = replace(BLOCKED, evidence=(Evidence("state", IN_GTID_WAIT, "b", NOON),))


def test_the_one_owner_of_a_gtid_is_ended_and_must_not_commit() -> None:
    text = said(owning(client(41, seconds=2)), IN_WAIT)
    assert text.startswith("on b run `KILL 41`. ")
    assert "waited for session 41, app@h (owned GTID)." in text
    assert text.endswith("the transaction as executed, without its rows")
    several = said(owning(client(41), client(42)), IN_WAIT)
    assert "one of several sessions may be the one: 41, 42" in several
    assert "`KILL (id of the thread)`. This rolls back its transaction. It must not" in several


def test_of_two_channels_the_worker_with_the_lowest_number_is_ended() -> None:
    both = replace(BLOCKED, evidence=(Evidence(OWNER, "second", "b", NOON),))
    text = said(owning(client(3), applier(7, channel="second"), applier(8)), both)
    assert (
        "at 2026-01-02 12:00:00 UTC, the lowest number was 7. If it still is, run `KILL 7`" in text
    )
    assert "(id of the thread)" not in text
    assert "rolls back the transaction that this worker applies. Its applier stops with" in text
    none = said(LockReading({}), both)
    assert "Run `KILL (id of the thread)` for the thread with the lowest number" in none


def left_of(code: str, reading: LockReading) -> tuple[str, ...]:
    """Return what a plan prints to do by hand about a finding that has no other strategy."""
    snapshot = snapshot_of(SERVERS)
    finding = replace(BLOCKED, code=code, cluster=snapshot.cluster)
    audit = replace(audit_cluster(snapshot), findings=(finding,))
    evidence = LogEvidence(locks={"b": LocksRead(NOON, reading)})
    [left] = plan_repair(snapshot, audit, evidence=evidence).not_planned
    assert isinstance(left, NotPlanned)
    return left.by_hand


def test_a_plan_has_the_kill_also_for_an_applier_that_seemed_to_wait_for_nothing() -> None:
    [text] = left_of("A8", held_by(client(41, seconds=2)))
    assert text.startswith("kill_blocker: on b run `KILL 41`")
    assert left_of("A8", LockReading({})) == ()
    assert left_of("A7", held_by(client(41, seconds=2))) == ()

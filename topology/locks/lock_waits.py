"""The waits of one server: each session that waits, and the sessions that it waits for.

How it works
------------
A server shows locks and sessions in separate tables, none of which says who blocks whom:

* metadata locks: a request that is pending waits for every lock on the same object that excludes it
  (metadata_conflicts.py). If no granted lock does, it waits behind a request that excludes it.
* row locks: the server itself lists the transaction that waits and the one that blocks it.
* The holder of a lock may have no session: a prepared XA transaction whose session has ended, a
  transaction that InnoDB rolls back after a crash, or a background thread. Nothing here separates
  them, so the text names all three, and no KILL is given.
* GTIDs: an applier waits for a GTID that another session owns. The server does not say for which
  one: all sessions that own a GTID and are no waiting workers are candidates.
* Before 5.7 no table shows who holds a metadata lock, a table lock or the global read lock. The
  state of a session shows that it waits. Such a wait has no blocker, and `is_hidden` is true.

Waits form chains: a SELECT waits behind an ALTER, which waits for a transaction that is idle. Only
the sessions at the end of a chain are worth ending.

    SELECT (30) ─▶ ALTER (12, applier) ─▶ BEGIN; SELECT … (28, idle)      KILL 28 frees both
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from topology.facts.gtid_waits import is_gtid_wait
from topology.locks.metadata_conflicts import waits_for

# States of sessions that wait for a lock whose holder no table of the server shows.
_HIDDEN_WAIT: Final = re.compile(r"Waiting for (?:.* lock|table flush)", re.IGNORECASE)
_ROW: Final = "row lock"
OWNED_GTID: Final = "owned GTID"
# Locks that programs make for themselves, by a name of their own: not the lock of a table.
_OF_PROGRAMS: Final[Mapping[str, str]] = {
    "USER LEVEL LOCK": "GET_LOCK",
    "LOCKING SERVICE": "locking service",
}


@dataclass(frozen=True, slots=True)
class LockSession:
    """One session of a server, or one thread of its replication."""

    session_id: int  # as in SHOW PROCESSLIST and KILL
    user: str
    host: str
    command: str
    state: str
    seconds: int | None  # in this command
    query: str  # that it executes now; without passwords
    transaction_seconds: int | None = None  # since its InnoDB transaction began; None: it has none
    transaction_rows: int | None = None  # that its InnoDB transaction has changed so far
    gtid: str = ""  # that it owns, or that its worker applies
    channel: str | None = None  # of a replication thread; None: it is a client
    worker: int | None = None
    statements: tuple[str, ...] = ()  # the last ones that it executed, as digests, oldest first

    @property
    def is_replication(self) -> bool:
        """Return whether it is a thread of replication."""
        return self.channel is not None

    @property
    def kill(self) -> str:
        """Return the statement that ends it."""
        return f"KILL {self.session_id}"


@dataclass(frozen=True, slots=True)
class MetadataLock:
    """One metadata lock, or the request for one."""

    object_type: str  # TABLE, GLOBAL, COMMIT, BACKUP LOCK, …
    schema: str
    name: str
    lock_type: str
    is_granted: bool
    session_id: int | None  # None: the holder has no session

    @property
    def key(self) -> tuple[str, str, str]:
        """Return what is locked."""
        return self.object_type, self.schema, self.name


@dataclass(frozen=True, slots=True)
class RowWait:
    """A transaction that waits for a row that another one has locked."""

    waiting: int
    blocking: int | None  # None: the transaction has no session
    schema: str
    table: str


@dataclass(frozen=True, slots=True)
class LockReading:
    """What one server shows of its locks."""

    sessions: Mapping[int, LockSession]
    metadata: tuple[MetadataLock, ...] = ()
    rows: tuple[RowWait, ...] = ()
    owners: tuple[tuple[str, int], ...] = ()  # a GTID, and the session that owns it


@dataclass(frozen=True, slots=True)
class LockWait:
    """A session that waits, and those that it waits for."""

    session: LockSession
    lock: str  # "metadata lock", "row lock", "global read lock", …
    place: str  # the table, `schema.name`; "" for locks of the whole server
    blockers: tuple[LockSession, ...]
    is_without_session: bool = False  # a holder has no session
    is_hidden: bool = False  # this version does not show who holds the lock
    may_be_one_of: bool = False  # not every blocker holds the lock for certain


def waits_of(reading: LockReading) -> tuple[LockWait, ...]:
    """Return every wait, appliers first, then the longest. Pure."""
    found: dict[int, LockWait] = {}
    for lock in reading.metadata:
        number = lock.session_id
        if not lock.is_granted and number is not None and number in reading.sessions:
            found[number] = _of_metadata(reading, lock)
    for row in reading.rows:
        if row.waiting in reading.sessions:
            found[row.waiting] = _of_row(reading, row, found.get(row.waiting))
    for session in reading.sessions.values():
        if session.session_id in found:
            continue
        if is_gtid_wait(session.state):
            found[session.session_id] = _of_gtid(reading, session)
        elif _HIDDEN_WAIT.fullmatch(session.state):
            lock_name = session.state.removeprefix("Waiting for ")
            found[session.session_id] = LockWait(session, lock_name, "", (), is_hidden=True)
    return tuple(sorted(found.values(), key=_order))


@dataclass(frozen=True, slots=True)
class WaitEnd:
    """Where the chains of a wait end: at sessions that wait for nothing themselves."""

    sessions: tuple[LockSession, ...]  # empty if the sessions wait for each other
    is_certain: bool  # no link of the chains is only one of several possible ones
    is_without_session: bool  # a chain ends at a holder that has no session
    is_hidden: bool  # a chain ends at a wait whose holder this server does not show

    @property
    def to_kill(self) -> tuple[LockSession, ...]:
        """Return the sessions whose KILL ends the wait.

        It is empty if a thread of replication holds the lock, or if it is not certain which session
        does: a KILL of the wrong one only rolls back its work.
        """
        clients = (each for each in self.sessions if not each.is_replication)
        return tuple(clients) if self.is_certain else ()


def end_of(wait: LockWait, waits: Iterable[LockWait]) -> WaitEnd:
    """Return where the chains of one of these waits end. Pure."""
    waiting = {each.session.session_id: each for each in waits}
    seen: set[int] = set()
    ends: dict[int, LockSession] = {}
    links = [wait]
    for link in links:  # grows
        for blocker in link.blockers:
            number = blocker.session_id
            if number not in seen and number in waiting:
                links.append(waiting[number])
            elif number not in seen:
                ends[number] = blocker
            seen.add(number)
    return WaitEnd(
        tuple(ends[number] for number in sorted(ends)),
        is_certain=not any(link.may_be_one_of for link in links),
        is_without_session=any(link.is_without_session for link in links),
        is_hidden=any(not link.blockers and not link.is_without_session for link in links),
    )


def _order(wait: LockWait) -> tuple[bool, int, int]:
    return not wait.session.is_replication, -(wait.session.seconds or 0), wait.session.session_id


def _of_metadata(reading: LockReading, lock: MetadataLock) -> LockWait:
    others = [
        each
        for each in reading.metadata
        if each.key == lock.key and each.session_id != lock.session_id
    ]
    excluding = [
        each for each in others if waits_for(lock.object_type, lock.lock_type, each.lock_type)
    ]
    granted = [each.session_id for each in excluding if each.is_granted]
    requested = [each.session_id for each in excluding if not each.is_granted]
    blockers = _sessions(reading, granted or requested)
    is_without_session = None in granted
    assert lock.session_id is not None, "looked up by its session"
    is_scope = not lock.name and not lock.schema
    name = _OF_PROGRAMS.get(lock.object_type) or (
        lock.object_type.lower() if is_scope else "metadata"
    )
    return LockWait(
        reading.sessions[lock.session_id],
        f"{name.removesuffix(' lock')} lock",
        ".".join(part for part in (lock.schema, lock.name) if part),
        blockers,
        is_without_session=is_without_session,
        is_hidden=not blockers and not is_without_session,
    )


def _of_row(reading: LockReading, row: RowWait, before: LockWait | None) -> LockWait:
    blocking = () if row.blocking is None else _sessions(reading, [row.blocking])
    known = before.blockers if before is not None and before.lock == _ROW else ()
    blockers = tuple({each.session_id: each for each in (*known, *blocking)}.values())
    is_without_session = row.blocking is None or (before is not None and before.is_without_session)
    return LockWait(
        reading.sessions[row.waiting],
        _ROW,
        ".".join(part for part in (row.schema, row.table) if part),
        blockers,
        is_without_session=is_without_session,
        is_hidden=not blockers and not is_without_session,
    )


def _of_gtid(reading: LockReading, session: LockSession) -> LockWait:
    owners = {
        owner: gtid
        for gtid, owner in reading.owners
        if owner != session.session_id
        and owner in reading.sessions
        and not is_gtid_wait(reading.sessions[owner].state)
    }
    return LockWait(
        session,
        OWNED_GTID,
        "",
        _sessions(reading, owners),
        is_hidden=not owners,
        may_be_one_of=len(owners) > 1,
    )


def _sessions(reading: LockReading, numbers: Iterable[int | None]) -> tuple[LockSession, ...]:
    found = {number for number in numbers if number is not None and number in reading.sessions}
    return tuple(reading.sessions[number] for number in sorted(found))

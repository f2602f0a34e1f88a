"""The manual instruction that ends the session for which an applier waits (A5, A8).

1. If the locks of the server were read for the plan and show which session that is, the instruction
   has the complete statement, as `gtid-audit locks` prints it. It states when the locks were read,
   and how to see that the session is still the one: a lock may pass to another session.
2. Otherwise it has the command that prints the statement, and why the plan does not have it.
3. It states what KILL rolls back, as far as the server shows it. A thread of replication is ended
   only if it owns the GTID for which the applier of another channel waits.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from gtid.counted_nouns import counted
from repair.content.locks_read import LocksRead
from repair.strategies.instruction_context import Situation, in_order
from topology.facts.gtid_waits import owning_channel, waits_for_gtid
from topology.locks.lock_waits import OWNED_GTID, LockSession, LockWait, WaitEnd

BLOCKED: Final = ("A5", "A8")  # the findings about an applier that may wait for a session

_OWNED, _KILL = in_order("SELECT @@GLOBAL.gtid_owned"), in_order("KILL (id of the thread)")
_OF_BOTH: Final = (
    "Its applier stops with error 1317, and the other channel applies its transaction. When that"
    " channel has caught up, start the stopped one again"
)
_NO_COMMIT: Final = (
    "It must not commit: the server would then count the transaction as executed, without its rows"
)


def kill_blocker(situation: Situation) -> str:
    """Return how to find and end the session that blocks an applier."""
    if owning_channel(situation.finding) is not None:
        return _of_two_channels(situation)
    known = known_kill(situation)
    return known or (_of_gtid if waits_for_gtid(situation.finding) else _of_lock)(situation)


def known_kill(situation: Situation) -> str:
    """Return the KILL of each session that blocks the applier; empty if it is not known."""
    locks, here = situation.locks, situation.finding.replica
    if locks is None:
        return ""
    found = _found(situation, locks)
    if not found.sessions:
        return ""
    kills = in_order(*(each.kill for each in found.sessions))
    text = (
        f"on {here} run {kills}. {_when(locks)}, the applier waited for"
        f" {'; '.join(found.described)}. {' '.join(_rolled_back(locks, found.sessions))} Ask the"
        f" owner of the transaction first. Directly before, run {_command(situation)}, and run the"
        " KILL only if this prints the same one: the lock may have passed to another session, and"
        f" after a restart of {here} another session has the id"
    )
    return ". ".join((text, *found.rest))


@dataclass(frozen=True, slots=True)
class _Found:
    """The sessions to end, what each holds, and what else the applier waits for."""

    sessions: tuple[LockSession, ...]
    described: tuple[str, ...]
    rest: tuple[str, ...]


def _found(situation: Situation, locks: LocksRead) -> _Found:
    sessions: dict[int, LockSession] = {}
    described: dict[int, str] = {}
    rest: dict[str, None] = {}
    for wait, end in locks.waits_on(situation.finding.channel or ""):
        for each in end.to_kill:
            sessions[each.session_id] = each
            described.setdefault(each.session_id, f"{_name(each)} ({_lock(wait)})")
        if end.to_kill and wait.lock == OWNED_GTID:
            rest[_NO_COMMIT] = None
        rest |= dict.fromkeys(_not_ended(situation, wait, end))
    numbers = sorted(sessions)
    return _Found(
        tuple(sessions[number] for number in numbers),
        tuple(described[number] for number in numbers),
        tuple(rest),
    )


def _not_ended(situation: Situation, wait: LockWait, end: WaitEnd) -> Iterator[str]:
    """Yield what a KILL of client sessions does not end, or does not end for certain."""
    if not end.is_certain:
        numbers = ", ".join(str(each.session_id) for each in end.sessions)
        yield f"one of several sessions may be the one: {numbers}"
    elif any(each.is_replication for each in end.sessions):
        yield (
            f"a thread of replication holds the {_lock(wait)}: do not KILL it, because a parallel"
            " applier can leave gaps"
        )
    if end.is_without_session:
        yield (
            f"a holder of the {_lock(wait)} has no session: a prepared XA transaction, or one that"
            " InnoDB rolls back after a crash"
        )
    if not (end.sessions or end.is_without_session or end.is_hidden):
        yield "the sessions wait for each other"
    if end.is_hidden:
        yield f"{situation.finding.replica} does not show who holds the {_lock(wait)}"


def _name(session: LockSession) -> str:
    return f"session {session.session_id}, {session.user}@{session.host}"


def _lock(wait: LockWait) -> str:
    return f"{wait.lock} on {wait.place}" if wait.place else wait.lock


def _rolled_back(locks: LocksRead, sessions: Iterable[LockSession]) -> Iterator[str]:
    """Yield what the KILL of each session rolls back."""
    for each in sessions:
        if each.transaction_seconds is not None:
            rows = each.transaction_rows
            changed = f" with {counted(rows, 'changed row')}" if rows is not None else ""
            yield (
                f"KILL rolls back the transaction of session {each.session_id}, open for"
                f" {each.transaction_seconds:,} s{changed}."
            )
        elif locks.are_transactions_known:
            yield (
                f"Session {each.session_id} had no open InnoDB transaction: KILL releases its locks"
                " and rolls nothing back."
            )
        else:
            yield (
                f"It could not be read whether session {each.session_id} has an open transaction:"
                " KILL rolls it back."
            )


def _when(locks: LocksRead) -> str:
    return f"When its locks were read, at {locks.read_at:%F %T} UTC"


def _command(situation: Situation) -> str:
    return f"`gtid-audit locks (DSN of {situation.finding.replica})`"


def _printed(situation: Situation) -> str:
    """Return the command that prints the KILL, and why this text does not have it."""
    text = f"run {_command(situation)}: it prints the session, and the KILL with its id"
    locks = situation.locks
    if locks is None:
        return text
    reasons = [
        *dict.fromkeys(
            reason
            for wait, end in locks.waits_on(situation.finding.channel or "")
            for reason in _not_ended(situation, wait, end)
        ),
        *(f"{fact} not read: {why}" for fact, why in locks.unread),
    ]
    why = "; ".join(reasons) or "the applier waited for no lock that the server shows: audit again"
    return f"{text}. {_when(locks)}, this was not known: {why}"


def _of_two_channels(situation: Situation) -> str:
    here = situation.finding.replica
    text = (
        f"on {here} run {_OWNED}. It lists GTID#thread: the threads are workers of two channels"
        " that deliver the same transactions and wait for each other."
    )
    locks = situation.locks
    owners = [each for each in locks.owners() if each.is_replication] if locks is not None else []
    if locks is None or not owners:
        return f"{text} Run {_KILL} for the thread with the lowest number. {_OF_BOTH}"
    return (
        f"{text} {_when(locks)}, the lowest number was {owners[0].session_id}. If it still is, run"
        f" {in_order(owners[0].kill)}. This rolls back the transaction that this worker applies."
        f" {_OF_BOTH}"
    )


def _of_gtid(situation: Situation) -> str:
    return (
        f"{_printed(situation)}. Otherwise, on {situation.finding.replica} run {_OWNED}. It lists"
        " GTID#thread: end the session of that thread with ROLLBACK, or run"
        f" {_KILL}. This rolls back its transaction. {_NO_COMMIT}"
    )


def _of_lock(situation: Situation) -> str:
    return (
        f"{_printed(situation)}. Otherwise, find the session that holds the lock, not a replication"
        " thread, in performance_schema.metadata_locks or data_locks (before 8.0:"
        " information_schema.INNODB_TRX and SHOW PROCESSLIST). KILL rolls back all that its"
        " transaction has not committed: make sure that it may. Then on"
        f" {situation.finding.replica} run {_KILL}. A prepared XA transaction holds its locks"
        " without a session (information_schema.INNODB_TRX shows thread 0): run"
        f" {in_order('XA RECOVER')}, and end it with {in_order('XA COMMIT (xid)')} or"
        f" {in_order('XA ROLLBACK (xid)')}"
    )

"""Reads what a story says about a member of a replication group."""

from datetime import datetime, timedelta

from binlog.log_times import EPOCH
from gtid import GtidSet
from tests.topology.transcript_words import gtids, uuid_of
from topology.readings.group_view import GroupMember, GroupSnapshot
from topology.readings.worker import WorkerSnapshot

_STATES = {"*": "RECOVERING", "!": "ERROR", "?": "UNREACHABLE"}
_AT_WORK = "Applying batch of row changes (update)"
_IDLE = "Waiting for an event from Coordinator"


def group_of(
    facts: dict[str, str], letters: dict[str, str], *, started: datetime
) -> GroupSnapshot | None:
    """Take the facts of a group out of those of a server.

    `group=G/G:1-7/A+B*+C?`: a member of the group G, which has received G:1-7, and sees A ONLINE, B
    RECOVERING and C UNREACHABLE; the first one is this server. `group-since=-500`: bootstrapped 500
    seconds before it was read. `group-busy=G:7`, `group-lock=G:7/30`: a worker applies G:7, or
    waits for a lock for 30 seconds. `recovery-error=1236/text`. `group-error=1032/G:7/text` and
    `recovery-worker-error=1007/G:1/text`: a worker failed, of the queue or of recovery.
    """
    text = facts.pop("group", "")
    since = int(facts.pop("group-since", "-500"))
    busy, lock = facts.pop("group-busy", ""), facts.pop("group-lock", "")
    errno, _, error = facts.pop("recovery-error", "0").partition("/")
    failed, recovery_failed = facts.pop("group-error", ""), facts.pop("recovery-worker-error", "")
    if not text:
        return None
    name, _, rest = text.partition("/")
    received, _, seen = rest.partition("/")
    by_letter = {letter: server for server, letter in letters.items()}
    members = [_member(each, by_letter) for each in seen.split("+") if each]
    waits, _, seconds = lock.partition("/")
    bootstrapped = (started + timedelta(seconds=since) - EPOCH) // timedelta(microseconds=1)
    return GroupSnapshot(
        group_name=str(uuid_of(name)),
        member_state=members[0].state if members else "ONLINE",
        member_role="SECONDARY",
        received=gtids(received),
        members=tuple(sorted(members)),
        workers=_failed(failed)
        if failed
        else (
            WorkerSnapshot(
                1,
                gtids(waits or busy),
                0,
                "",
                state=_LOCKED if waits else _AT_WORK if busy else _IDLE,
                applying_seconds=int(seconds or 0) if waits or busy else None,
                last_applied=GtidSet(),
            ),
        ),
        recovery_workers=_failed(recovery_failed) if recovery_failed else (),
        recovery_errno=int(errno),
        recovery_error=error,
        view_id=f"{bootstrapped}0:1",
    )


def _failed(text: str) -> tuple[WorkerSnapshot, ...]:
    errno, applying, error = text.split("/", 2)
    return (WorkerSnapshot(1, gtids(applying), int(errno), error),)


_LOCKED = "Waiting for table metadata lock"


def _member(text: str, by_letter: dict[str, str]) -> GroupMember:
    letter, state = text[0], _STATES.get(text[1:], "ONLINE")
    host = by_letter.get(letter, letter.lower())
    return GroupMember(uuid_of(letter), f"{host}.example", 3306, state, "SECONDARY")

"""Workers that performance_schema does not show: their states, from SHOW PROCESSLIST.

With performance_schema = OFF, or with more threads than performance_schema_max_thread_instances,
the table of workers shows their transactions but no thread. So it has no state and no age (seen on
9.7.4). The process list shows the states, but not the channel or the worker.

How it works
------------
Every replication thread is a "system user". A receiver's state contains its source. The applier of
a channel starts before its workers, and the workers start in their order. So the lowest id is the
applier's, and the next ids belong to the workers in order. Nothing is concluded if the counts
disagree (a thread has just ended, or other threads run as this user). Nothing is concluded either
if several channels have such workers and one of their threads is busy.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from topology.readings.dialect import RECEIVER_STATE
from topology.readings.worker import IDLE_WORKER

Row = Mapping[str, Any]

SYSTEM_USER: Final = "system user"
NOT_SHOWN: Final = (
    "performance_schema shows no thread of the workers (performance_schema = OFF, or"
    " performance_schema_max_thread_instances is too small)"
)
NEEDS_PROCESS: Final = f"{NOT_SHOWN}; SHOW PROCESSLIST shows them only with the privilege PROCESS"
NOT_ASSIGNED: Final = (
    f"{NOT_SHOWN}; SHOW PROCESSLIST does not show which channel's threads are working"
)
_RECEIVER: Final = re.compile(RECEIVER_STATE, re.IGNORECASE)
_AT_REST: Final = re.compile("has read all relay log", re.IGNORECASE)


def hides_threads(rows: Sequence[Row]) -> bool:
    """Return whether a worker runs and its thread is not shown."""
    return any(map(_is_hidden, rows))


def threads_in(process_list: Sequence[Row]) -> list[Row]:
    """Return the replication threads of SHOW PROCESSLIST, including receivers."""
    return [
        {"thread": int(row["Id"]), "seconds": int(row["Time"] or 0), "state": row["State"]}
        for row in process_list
        if row["User"] == SYSTEM_USER
    ]


def with_listed_states(rows: Sequence[Row], threads: Sequence[Row]) -> list[Row] | None:
    """Return the rows of the workers with the states of their threads; None if not known.

    `threads` has the id (`thread`), seconds and state of each system user, and possibly
    `waits_for_row`.
    """
    hidden = [row for row in rows if _is_hidden(row)]
    found = _threads_of(hidden, [each for each in threads if not _RECEIVER.search(_state(each))])
    if found is None:
        return None
    by_worker = {
        (row["channel"], row["worker_id"]): thread
        for row, thread in zip(hidden, found, strict=True)
    }
    return [
        _seen(row, by_worker[row["channel"], row["worker_id"]]) if _is_hidden(row) else row
        for row in rows
    ]


def _threads_of(hidden: Sequence[Row], appliers: Sequence[Row]) -> list[Row] | None:
    """Return the thread of each hidden worker; `appliers` are all threads except receivers."""
    if len({row["channel"] for row in hidden}) > 1:
        idle = [each for each in appliers if IDLE_WORKER.match(_state(each))]
        others = [each for each in appliers if each not in idle]
        are_idle = len(idle) == len(hidden) and all(
            _AT_REST.search(_state(each)) for each in others
        )
        return idle if are_idle else None
    ordered = sorted(appliers, key=lambda thread: int(thread["thread"]))
    # Worker 0 is an applier without workers.
    ordered = ordered if [row["worker_id"] for row in hidden] == [0] else ordered[1:]
    in_order = sorted(hidden, key=lambda row: int(row["worker_id"]))
    if len(ordered) != len(hidden):
        return None
    return [ordered[in_order.index(row)] for row in hidden]


def _seen(row: Row, thread: Row) -> Row:
    """Return a worker with its thread's state. Its age counts only while it has had no work.

    While it works, its time is the age of its event: negative if that is dated in the future.
    """
    return {
        **row,
        "state": _state(thread),
        "waits_for_row": thread.get("waits_for_row"),
        "applying_seconds": thread["seconds"] if row.get("awaits") else None,
        "event_seconds": min(int(thread["seconds"]), 0),
    }


def _is_hidden(row: Row) -> bool:
    return bool(row.get("is_hidden"))


def _state(thread: Row) -> str:
    return str(thread["state"] or "")

"""One worker of an applier, and the words for its states."""

import re
from dataclasses import dataclass

from gtid import GtidSet

# The state of a worker without work, in the terms of every version.
IDLE_WORKER = re.compile("Waiting for an event from Coordinator", re.IGNORECASE)
# Added to the state of a worker that waits for a row lock. MySQL has no thread state for it.
ROW_LOCK_WAIT = "waiting for a row lock"
# Added if its last attempt has just ended in error 1205, and it waits or tries again.
ROW_LOCK_RETRY = "retried after error 1205, lock wait timeout"


@dataclass(frozen=True, slots=True)
class WorkerSnapshot:
    """One applier worker (performance_schema.replication_applier_status_by_worker)."""

    worker_id: int
    applying: GtidSet  # the one GTID it is applying, or empty
    errno: int
    error: str
    state: str = ""  # of its thread, as in SHOW PROCESSLIST; empty if not read
    # Since it began to apply, by the server's clock (8.0 and later). For 5.6 it is the time of SHOW
    # PROCESSLIST, which counts from the commit on the source. If a worker has applied nothing (8.0
    # and later): since it started, if its channel has received what is not executed.
    applying_seconds: int | None = None
    last_applied: GtidSet = GtidSet()  # noqa: RUF009 - immutable. 8.0 and later

"""The history file of the service: findings of audits that end at any time.

1. Many clusters may be audited per second, and a transaction waits for the disk. So audits that end
   while another one is being recorded wait, and are recorded together in the next transaction.
2. An audit is recorded before its result is shown: what was shown once is in the file.
"""

import threading
from dataclasses import dataclass, field

from gtid_audit.exits import UsageProblem
from gtid_audit.tasks.kept_history import KeptHistory
from topology.adapters.history_file import Episode, UnusableHistory
from topology.catalogue.findings import ClusterAudit


@dataclass(slots=True)
class _Waiting:
    """One audit that is to be recorded, and what came of it."""

    audit: ClusterAudit
    dated: ClusterAudit | None = None
    problem: Exception | None = None
    is_done: threading.Event = field(default_factory=threading.Event)


class ServedHistory:
    """A history file that many threads use."""

    def __init__(self, kept: KeptHistory) -> None:
        assert not kept.of_servers, "the service audits clusters of a fleet file"
        self._kept = kept
        self.writing = threading.Lock()  # of the file, by threads of this process
        self._queue_lock = threading.Lock()
        self._queue: list[_Waiting] = []

    def dated(self, audit: ClusterAudit) -> ClusterAudit:
        """Record an audit; return it with its history. Raises UsageProblem."""
        mine = _Waiting(audit)
        with self._queue_lock:
            self._queue.append(mine)
        with self.writing:
            if not mine.is_done.is_set():
                self._record_all()
        if mine.problem is not None:
            raise mine.problem
        assert mine.dated is not None, "recorded, or there is a problem"
        return mine.dated

    def _record_all(self) -> None:
        with self._queue_lock:
            waiting, self._queue = self._queue, []
        try:
            dated = self._kept.dated([each.audit for each in waiting])
        except Exception as problem:  # noqa: BLE001 - each audit of the transaction raises it
            for each in waiting:
                each.problem = problem
        else:
            for each, one in zip(waiting, dated, strict=True):
                each.dated = one
        for each in waiting:
            each.is_done.set()

    def open_findings(self, cluster: str) -> tuple[Episode, ...]:
        """Return the findings of a cluster that earlier audits left open. Raises UsageProblem."""
        try:
            return self._kept.file.open_episodes(f"cluster {cluster}")
        except UnusableHistory as problem:
            raise UsageProblem(str(problem)) from problem

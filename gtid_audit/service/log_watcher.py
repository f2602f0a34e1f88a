"""Writes to the log what the audits of the service show."""

from collections.abc import Sequence

from gtid_audit.service.cluster_results import ClusterResult
from gtid_audit.service.finding_changes import FindingChange
from gtid_audit.service.log_words import LogLevel
from gtid_audit.service.service_log import ServiceLog


class LogWatcher:
    """See repeated_audit.Watcher. Threads that audit different clusters call it."""

    def __init__(self, log: ServiceLog) -> None:
        self._log = log
        self._failing: set[str] = set()

    def audited(self, result: ClusterResult, changes: Sequence[FindingChange]) -> None:
        """Write each change, and that a cluster can be audited again."""
        if result.cluster in self._failing:
            self._failing.discard(result.cluster)
            text = f"the audit of {result.cluster} works again"
            self._log.write(LogLevel.INFO, "audit_works", text, cluster=result.cluster)
        for change in changes:
            self._log.change(change)

    def failed(self, result: ClusterResult) -> None:
        """Write the reason of every failure: each one is an audit that is missing."""
        self._failing.add(result.cluster)
        self._log.failure(result)

    def left(self, cluster: str) -> None:
        """Write that a cluster has left the fleet; its findings have neither gone nor stayed."""
        self._failing.discard(cluster)
        text = f"{cluster} is not in the fleet file any more"
        self._log.write(LogLevel.INFO, "cluster_left", text, cluster=cluster)

"""Audits one cluster of a fleet for the service, while others are audited by other threads.

1. Everything that one audit keeps for the next is in a `ServedMemory`, which all threads share.
2. With a history file, findings and memory are recorded there. They outlive the process.
3. No exception is caught here: the service counts an audit that fails, and reports it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gtid_audit.tasks.fleet_reading import read_fleet
from gtid_audit.tasks.history_memory import HistoryMemory
from gtid_audit.tasks.kept_history import history_at
from gtid_audit.tasks.served_history import ServedHistory
from gtid_audit.tasks.served_memory import ServedMemory
from gtid_audit.views.audited_now import AuditedNow
from topology.adapters.history_file import Episode
from topology.adapters.inventory.fleet import Cluster, Fleet


@dataclass(frozen=True, slots=True)
class ServedAudit:
    """Audits clusters, one in each call."""

    memory: ServedMemory
    history: ServedHistory | None

    def __call__(self, fleet: Fleet, cluster: Cluster) -> AuditedNow:
        """Read and evaluate one cluster. Raises UsageProblem if the history file is unusable."""
        alone = replace(fleet, clusters=(cluster,))
        read = read_fleet(
            alone, for_audit=False, content=None, memory=self.memory.of_cluster(cluster.name)
        )
        [snapshot], [audit] = read.snapshots, read.evaluated(fleet.policy)
        contents = (read.contents or {}).get(cluster.name)
        definitions = (read.definitions or {}).get(cluster.name)
        whole = snapshot.with_contents(contents).with_definitions(definitions)
        dated = audit if self.history is None else self.history.dated(audit)
        return AuditedNow(dated, whole, fleet.policy)

    def open_findings(self, cluster: str) -> Sequence[Episode]:
        """Return what earlier processes left open in the history. Raises UsageProblem."""
        return () if self.history is None else self.history.open_findings(cluster)


def served_audit(history: Path | None) -> ServedAudit:
    """Return the audits of a service, with a history file or without. Raises UsageProblem."""
    kept = history_at(history, of_servers=False)
    if kept is None:
        return ServedAudit(ServedMemory(), None)
    recorded = ServedHistory(kept)
    stored = HistoryMemory(kept.file, writing=recorded.writing)
    return ServedAudit(ServedMemory(stored), recorded)

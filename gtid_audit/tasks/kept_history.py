"""Keeps the history of findings in a file: `--history`, and `--out`; with it, what is remembered.

The file is opened before any server is read, so that an unusable file costs nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gtid_audit.exits import UsageProblem
from gtid_audit.views.report import AuditReport
from topology.catalogue.findings import ClusterAudit

if TYPE_CHECKING:  # sqlite3 is imported only where a history is kept
    from gtid_audit.tasks.compared_restarts import Memory
    from topology.adapters.history_file import Episode, HistoryFile

HISTORY: Final = "_history.sqlite3"  # in a directory of stored runs, beside them


@dataclass(frozen=True, slots=True)
class KeptHistory:
    """Where an audit looks up, and records, since when its findings exist."""

    file: "HistoryFile"
    of_servers: bool  # of servers on the command line: their history is theirs, not the cluster's

    def dated(self, audits: Sequence[ClusterAudit]) -> tuple[ClusterAudit, ...]:
        """Record audits; return them with their history. Raises UsageProblem."""
        from topology.adapters.history_file import (
            UnusableHistory,
            scope_of_cluster,
            scope_of_servers,
        )

        scope_of = scope_of_servers if self.of_servers else scope_of_cluster
        try:
            return self.file.record(audits, scope_of=scope_of)
        except UnusableHistory as problem:
            raise UsageProblem(str(problem)) from problem

    def memory_of_fleet(self) -> "Memory":
        """Return what audits of the fleet file remember."""
        from gtid_audit.tasks.history_memory import HistoryMemory, MemoryOfAudit

        return MemoryOfAudit(HistoryMemory(self.file))

    def memory_of_servers(self, cluster: str, servers: Iterable[str]) -> "Memory":
        """Return what audits of exactly these servers remember."""
        from gtid_audit.tasks.history_memory import HistoryMemory, MemoryOfAudit
        from topology.adapters.history_file import scope_of_names

        return MemoryOfAudit(HistoryMemory(self.file, scope_of_names(cluster, servers)))

    def dated_report(self, report: AuditReport) -> AuditReport:
        """Record a report; return it with its history. Raises UsageProblem."""
        return replace(report, audits=self.dated(report.audits))


def history_at(path: Path | None, *, of_servers: bool) -> KeptHistory | None:
    """Open or create a history file; None if no file was given. Raises UsageProblem."""
    if path is None:
        return None
    from topology.adapters.history_file import HistoryFile, UnusableHistory

    try:
        return KeptHistory(HistoryFile.at(path), of_servers)
    except UnusableHistory as problem:
        raise UsageProblem(str(problem)) from problem


def episodes_of(path: Path) -> "tuple[Episode, ...]":
    """Return every episode in a history file. Raises UsageProblem."""
    from topology.adapters.history_file import HistoryFile, UnusableHistory

    try:
        return HistoryFile(path).episodes()
    except UnusableHistory as problem:
        raise UsageProblem(str(problem)) from problem

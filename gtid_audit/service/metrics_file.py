"""Writes the metrics of one audit to a file, for the textfile collector of node_exporter.

1. The file appears under its name complete, in one rename: the collector never reads half of it. It
   is first written beside that name, with an ending that the collector does not read.
2. Any account may read it: the collector runs as another one. No metric contains a secret.
3. If the audit cannot run, the file stays as it was, and `gtid_audit_last_audit_timestamp_seconds`
   in it becomes old. There is no schedule, so there are no counters and no interval.
"""

import os
import tempfile
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest

from gtid_audit import clock
from gtid_audit.exits import UsageProblem
from gtid_audit.service.cluster_state import ClusterState, LatestAudit, measured_audits
from gtid_audit.service.metrics import AuditCollector
from gtid_audit.views.audit_results import InMemory
from gtid_audit.views.report import Engine
from gtid_audit.views.verdict_answers import VerdictAnswer
from topology.policy import Policy

_MODE: Final = 0o644


def require_metrics_file(path: Path, engine: Engine) -> None:
    """Raise UsageProblem if metrics cannot be written there; before any server is read."""
    if engine is not Engine.LOCAL:
        raise UsageProblem("--write-metrics is for --engine local")
    if not path.absolute().parent.is_dir():
        raise UsageProblem(f"{path}: no such directory")
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise UsageProblem(f"{path}: not a regular file: the file of metrics replaces its place")


def write_metrics(outcome: VerdictAnswer, policy: Policy, path: Path) -> None:
    """Write the metrics of an audit; an existing file is replaced. Raises UsageProblem."""
    assert isinstance(outcome, InMemory), "require_metrics_file refused the other engine"
    ended = clock.now()
    measured = measured_audits(outcome.report.audits, outcome.snapshots, policy)
    states = [
        ClusterState(
            each.audit.cluster,
            each.audit.labels,
            LatestAudit(each.audit, each.series, ended, each.reading_seconds),
            schedule=None,
        )
        for each in measured
    ]
    registry = CollectorRegistry(auto_describe=False)
    registry.register(AuditCollector(lambda: states))
    _replace(path, generate_latest(registry))


def _replace(path: Path, content: bytes) -> None:
    try:
        with tempfile.NamedTemporaryFile(
            dir=path.absolute().parent, prefix=f".{path.name}.", suffix=".partial", delete=False
        ) as file:
            partial = Path(file.name)
            try:
                file.write(content)
                file.flush()
                os.fchmod(file.fileno(), _MODE)
                os.fsync(file.fileno())
                partial.replace(path)
            except BaseException:
                partial.unlink()
                raise
    except OSError as error:
        raise UsageProblem(f"{path}: {error.strerror or error}") from error

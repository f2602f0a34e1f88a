"""Decides whether a stored run may stand for the current state of the fleet.

1. An old run, a run from the future and a run without a record are not evaluated. Every cluster is
   then UNKNOWN, with the reason (topology/documents/run_record.py). Such a run shows another time,
   or a part of the fleet.
2. With a fleet file, every cluster, server and consumer in it is in the result
   (spark_audit/absent_readings.py).
3. Accounts are not looked up: no server is queried.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gtid_audit.views.audit_results import Refused
from gtid_audit.views.report import Engine, report_of
from gtid_audit.views.verdict_answers import VerdictAnswer
from spark_audit.absent_readings import NOTHING_ABSENT, NotInRun, unknown_cluster
from topology.adapters.inventory.fleet import Roster
from topology.audit_cluster import EVERY_SERVER
from topology.catalogue.findings import ClusterAudit
from topology.documents.run_record import AgeLimit, ReadSpan, refusal
from topology.policy import Policy

RUN_FACT: Final = "stored run"


@dataclass(frozen=True, slots=True)
class StoredQuestion:
    """The request for an audit of stored snapshots."""

    directory: Path
    limit: AgeLimit
    policy: Policy
    roster: Roster | None = None  # all of its clusters are in the result, read or not


def answer_if_refused(run: Path, asked: StoredQuestion, *, engine: Engine) -> VerdictAnswer | None:
    """Return the answer for a run that must not be evaluated; None for any other run.

    Raises NoSnapshots and UnreadableSnapshots.
    """
    from topology.adapters.stored_labels import labels_of_run
    from topology.adapters.stored_runs import (
        clusters_of_files,
        files_of_run,
        moment_of_run,
        record_of_run,
        span_of_files,
    )

    files = files_of_run(run)
    span = span_of_files(files)
    reason = refusal(
        run.resolve().name,
        moment=moment_of_run(run),
        record=record_of_run(run),
        span=span,
        limit=asked.limit,
    )
    if reason is None:
        return None
    servers = {name: [EVERY_SERVER] for name in clusters_of_files(files)}
    if asked.roster is not None:
        servers = {each.name: [one.name for one in each.servers] for each in asked.roster.clusters}
    audits = [unknown_cluster(name, servers[name], RUN_FACT, reason) for name in sorted(servers)]
    labels = {**labels_of_run(run), **(asked.roster.labels if asked.roster else {})}
    audits = [replace(audit, labels=labels.get(audit.cluster, ())) for audit in audits]
    return Refused(report_of(engine, [_read_at(audit, span) for audit in audits]), reason)


def absent_from(run: Path, roster: Roster | None) -> NotInRun:
    """Compare the servers of a fleet file with those of a run. Raises UnreadableSnapshots."""
    if roster is None:
        return NOTHING_ABSENT
    from spark_audit.adapters.fleet_archive import expected_of
    from spark_audit.adapters.run_readings import not_in_folder

    return not_in_folder(run, expected_of(roster))


def _read_at(audit: ClusterAudit, span: ReadSpan | None) -> ClusterAudit:
    return audit if span is None else replace(audit, read_at=span.last)

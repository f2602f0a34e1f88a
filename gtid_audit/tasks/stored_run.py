"""Decides whether a stored run may stand for the current state of the fleet.

1. An old run, a run from the future and a run without a record are not evaluated. Every cluster is
   then UNKNOWN, with the reason (topology/documents/run_record.py). Such a run shows another time,
   or a part of the fleet.
2. With a fleet file, every cluster, server and consumer in it is in the result. It is UNKNOWN if
   the run has no reading of it, or of a server a reading of another address.
3. Accounts are not looked up: no server is queried.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from gtid_audit.views.audit_results import Refused
from gtid_audit.views.report import Engine, report_of
from gtid_audit.views.verdict_answers import VerdictAnswer
from topology.adapters.inventory.fleet import Roster
from topology.audit_cluster import EVERY_SERVER, not_evaluated
from topology.catalogue.findings import ClusterAudit, Unknown
from topology.documents.run_record import AgeLimit, ReadSpan, refusal
from topology.policy import Policy
from topology.rules.consumer_sets import CONSUMER_SET
from topology.rules.schema_differences import DEFINITIONS

RUN_FACT: Final = "stored run"
READINGS: Final = "readings"
_NO_DEFINITIONS: Final = "the stored run has none, and the policy asks for them"
_NO_CONSUMER: Final = "the stored run has no reading of this consumer"


@dataclass(frozen=True, slots=True)
class StoredQuestion:
    """The request for an audit of stored snapshots."""

    directory: Path
    limit: AgeLimit
    policy: Policy
    roster: Roster | None = None  # all of its clusters are in the result, read or not


@dataclass(frozen=True, slots=True)
class NotInRun:
    """The servers of the fleet file that the run does not have."""

    clusters: tuple[ClusterAudit, ...] = ()
    # In clusters that are in the run.
    gaps: Mapping[str, tuple[Unknown, ...]] = field(default_factory=dict)


NOTHING_ABSENT: Final = NotInRun()


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
    audits = [_unknown_cluster(name, servers[name], RUN_FACT, reason) for name in sorted(servers)]
    labels = {**labels_of_run(run), **(asked.roster.labels if asked.roster else {})}
    audits = [replace(audit, labels=labels.get(audit.cluster, ())) for audit in audits]
    return Refused(report_of(engine, [_read_at(audit, span) for audit in audits]), reason)


def not_in_run(run: Path, roster: Roster | None) -> NotInRun:
    """Compare the servers of a fleet file with those of a run. Raises UnreadableSnapshots."""
    if roster is None:
        return NOTHING_ABSENT
    from topology.adapters.stored_consumers import consumers_of_run
    from topology.adapters.stored_definitions import definitions_of_run
    from topology.adapters.stored_runs import addresses_of_files, files_of_run, record_of_run

    consumers = consumers_of_run(run)
    defined = definitions_of_run(run) or {}
    names = [cluster.name for cluster in roster.clusters]
    addresses = addresses_of_files(files_of_run(run), clusters=names)
    record = record_of_run(run)
    partial = None if record is None else record.partial
    absent: list[ClusterAudit] = []
    gaps: dict[str, tuple[Unknown, ...]] = {}
    for cluster in roster.clusters:
        found = addresses.get(cluster.name)
        if found is None:
            reason = f"{run.resolve().name} does not contain this cluster"
            if partial is not None:
                reason += f": it was taken with `--cluster {', '.join(partial)}`"
            servers = [server.name for server in cluster.servers]
            audit = _unknown_cluster(cluster.name, servers, READINGS, reason)
            absent.append(replace(audit, labels=cluster.labels))
            continue
        wanted = {each.name: (each.dsn.host, each.dsn.port) for each in cluster.servers}
        read = {each.name for each in consumers.get(cluster.name, ())}
        unknown = (
            *_gaps(cluster.name, wanted, found),
            *(
                Unknown(cluster.name, each.name, CONSUMER_SET, _NO_CONSUMER)
                for each in cluster.consumers
                if each.name not in read
            ),
            *(
                (Unknown(cluster.name, EVERY_SERVER, DEFINITIONS, _NO_DEFINITIONS),)
                if roster.policy.definitions and cluster.name not in defined
                else ()
            ),
        )
        if unknown:
            gaps[cluster.name] = unknown
    return NotInRun(tuple(absent), gaps)


def _gaps(
    cluster: str, wanted: dict[str, tuple[str, int]], found: dict[str, tuple[str, int]]
) -> Iterator[Unknown]:
    for name in sorted(wanted):
        if name not in found:
            yield Unknown(cluster, name, READINGS, "the stored run has no reading of this server")
        elif found[name] != wanted[name]:
            read, named = (f"{host}:{port}" for host, port in (found[name], wanted[name]))
            reason = f"the stored run has a reading of {read}, but the fleet file has {named}"
            yield Unknown(cluster, name, READINGS, reason)


def _unknown_cluster(cluster: str, servers: Sequence[str], fact: str, reason: str) -> ClusterAudit:
    return not_evaluated(cluster, {Unknown(cluster, server, fact, reason) for server in servers})


def _read_at(audit: ClusterAudit, span: ReadSpan | None) -> ClusterAudit:
    return audit if span is None else replace(audit, read_at=span.last)

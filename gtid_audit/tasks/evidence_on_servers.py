"""Queries the servers of a plan for transactions, and for what surrounds its steps.

The modules for it are imported only if a plan needs the answer.
"""

from collections.abc import Mapping
from dataclasses import replace

from gtid_audit.tasks.audited_cluster import AuditedCluster
from repair import LogEvidence
from repair.strategies.blocking_sessions import BLOCKED
from topology.readings.target import ServerTarget


def read_transactions_behind(
    read: AuditedCluster, targets: Mapping[str, ServerTarget], *, seconds_max: float
) -> LogEvidence:
    """Read the findings' transactions. The modules for it are imported only then."""
    if not any(each.gtid_set or each.code[0] in "AC" for each in read.audit.findings):
        return LogEvidence()
    from repair.adapters.transactions_for_plan import read_transactions
    from repair.adapters.transactions_without_gtid import read_without_gtid

    found = read_transactions(read.snapshot, read.audit, targets, seconds_max=seconds_max)
    ahead = read_without_gtid(read.snapshot, targets, seconds_max=seconds_max)
    return replace(found, without_gtid=ahead)


def with_servers_queried(
    evidence: LogEvidence,
    read: AuditedCluster,
    targets: Mapping[str, ServerTarget],
    *,
    seconds_max: float,
) -> LogEvidence:
    """Return the evidence with what the servers answer; `seconds_max` applies to each of them."""
    evidence = _with_connected(evidence, read, targets, seconds_max)
    evidence = _with_locks(evidence, read, targets, seconds_max)
    return _with_side_effects(evidence, read, targets, seconds_max)


def _with_connected(
    evidence: LogEvidence,
    read: AuditedCluster,
    targets: Mapping[str, ServerTarget],
    seconds_max: float,
) -> LogEvidence:
    """Query which replicas are connected to the servers, if there is anything to repair."""
    if not any(each.strategies for each in read.audit.findings):
        return evidence
    from repair.adapters.connected_there import read_connected_replicas

    connected, unread = read_connected_replicas(read.snapshot, targets, seconds_max=seconds_max)
    return replace(evidence, connected=connected, connected_unread=unread)


def _with_locks(
    evidence: LogEvidence,
    read: AuditedCluster,
    targets: Mapping[str, ServerTarget],
    seconds_max: float,
) -> LogEvidence:
    """Query which sessions block the appliers that wait; import the modules only if one does."""
    if not any(each.code in BLOCKED for each in read.audit.findings):
        return evidence
    from repair.adapters.locks_there import read_blocking_locks

    found = read_blocking_locks(read.audit.findings, targets, seconds_max=seconds_max)
    return replace(evidence, locks=found)


def _with_side_effects(
    evidence: LogEvidence,
    read: AuditedCluster,
    targets: Mapping[str, ServerTarget],
    seconds_max: float,
) -> LogEvidence:
    """Query the side effects of writing the rows, and what writes beside, if there are rows."""
    if not (evidence.contents or evidence.rows):
        return evidence
    from repair.adapters.events_there import read_running_events
    from repair.adapters.side_effects_there import read_side_effects

    effects = read_side_effects(evidence, read.snapshot, targets, seconds_max=seconds_max)
    events = read_running_events(read.snapshot, targets, seconds_max=seconds_max)
    return replace(evidence, side_effects=effects, running_events=events)

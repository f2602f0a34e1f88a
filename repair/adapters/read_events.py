"""Reads the events that stop an applier, or would stop one, from the sources' binary logs.

1. For an applier that stopped because errors differ (A1): the event at which it stopped.
2. For a gap that a source could send again (H1): whether one of its transactions was logged with an
   error, and so would stop the applier if it were fetched.
3. What cannot be read is reported by finding id, with the reason. Nothing is guessed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from binlog.adapters.stream import ServerLogs
from binlog.errors import BinlogError
from gtid import GtidSet, GtidSetTooLarge
from repair.adapters.failing_transaction import channel_of
from repair.adapters.servers_to_read import logs_of
from repair.content.failing_event import FailingEvent, NoSuchEvent, event_of, find_failing_event
from topology.catalogue.findings import ClusterAudit, Finding
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot
from topology.readings.target import ServerTarget

# From the applier's low-water mark on. A multithreaded applier never has more than this many
# transactions in flight; a longer search means that the log was misread.
LOOKED_AT_MAX = 2_000
# The limit for one gap. A larger one is not read: the operator decides whether to fetch it again.
HOLE_READ_MAX = 2_000


@dataclass(frozen=True, slots=True)
class _Source:
    """The source whose binary log is read."""

    name: str
    server_uuid: UUID
    logs: ServerLogs


@dataclass(frozen=True, slots=True)
class EventsRead:
    """The events that were found, by finding id, and the reasons why others could not be read."""

    events: Mapping[str, FailingEvent] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)


def read_events(
    snapshot: ClusterSnapshot,
    audit: ClusterAudit,
    targets: Mapping[str, ServerTarget],
    *,
    timeout_seconds_max: float,
) -> EventsRead:
    """Read the failing events of an audit's findings.

    Args:
        snapshot: the snapshot of the audit.
        audit: its findings.
        targets: the servers' addresses and accounts, by name. The account needs the
            privilege to read binary logs, like the account of a replica.
        timeout_seconds_max: for one finding, including the connect.
    """
    events: dict[str, FailingEvent] = {}
    unread: dict[str, str] = {}
    servers = {server.name: server for server in snapshot.last}
    for finding in audit.findings:
        if finding.code not in ("A1", "H1") and not _reports_workers_only(finding):
            continue
        source = servers.get(finding.source or "")
        if source is None or source.server_uuid is None:
            unread[finding.id] = "the source is not a server of this snapshot, or was not read"
        elif source.name not in targets:
            unread[finding.id] = f"no connection to {source.name} is configured"
        else:
            look = _LOOKS.get(finding.code, _in_hole)
            try:
                logs = logs_of(targets[source.name], seconds_max=timeout_seconds_max)
                read_from = _Source(source.name, source.server_uuid, logs)
                found = look(finding, read_from, servers[finding.replica or ""])
            except (BinlogError, GtidSetTooLarge) as error:
                unread[finding.id] = f"{source.name}: {error}"
                continue
            if isinstance(found, FailingEvent):
                events[finding.id] = found
            elif found is not None:
                unread[finding.id] = found.reason
    return EventsRead(events=events, unread=unread)


def _stopping(
    finding: Finding, source: _Source, replica: ServerSnapshot
) -> FailingEvent | NoSuchEvent:
    channel = channel_of(finding, replica)
    if channel is None or channel.applied_to is None:
        return NoSuchEvent(f"{replica.name} does not report the position of its applier")
    transactions = source.logs.transactions_from(
        file=channel.applied_to.file,
        position=channel.applied_to.position,
        transactions_max=LOOKED_AT_MAX,
    )
    return find_failing_event(
        transactions,
        error_text="; ".join(
            [channel.applier_error, *(worker.error for worker in channel.workers if worker.error)]
        ),
        source=source.name,
        source_uuid=source.server_uuid,
    )


def _behind_workers(
    finding: Finding, source: _Source, replica: ServerSnapshot
) -> FailingEvent | NoSuchEvent | None:
    """Return the first event logged with an error from the applier's low-water mark on.

    Before 5.7 a channel with workers reports only 1756. Such an event may be what stopped them; the
    error log has the worker's own message.
    """
    channel = channel_of(finding, replica)
    if channel is None or channel.applied_to is None:
        return NoSuchEvent(f"{replica.name} does not report the position of its applier")
    before = GtidSet()
    for transaction in source.logs.transactions_from(
        file=channel.applied_to.file,
        position=channel.applied_to.position,
        transactions_max=LOOKED_AT_MAX,
    ):
        if transaction.gtid is None:
            return None
        if transaction.error_code and transaction.is_complete:
            return event_of(
                transaction, source=source.name, source_uuid=source.server_uuid, before=before
            )
        before |= GtidSet.of(transaction.gtid)
    return None


def _reports_workers_only(finding: Finding) -> bool:
    """Return whether an applier stopped with 1756 and without the text of any worker."""
    return finding.code == "A3" and any(
        (fact.fact, fact.value) == ("applier errno", "1756") for fact in finding.evidence
    )


def _in_hole(
    finding: Finding, source: _Source, _replica: ServerSnapshot
) -> FailingEvent | NoSuchEvent | None:
    if finding.gtid_set.gtid_count > HOLE_READ_MAX:
        return NoSuchEvent(f"more than {HOLE_READ_MAX} transactions: not read")
    for transaction in source.logs.transactions_of(finding.gtid_set):
        if transaction.error_code:
            return event_of(
                transaction,
                source=source.name,
                source_uuid=source.server_uuid,
                before=GtidSet(),
            )
    return None


_LOOKS = {"A1": _stopping, "A3": _behind_workers}

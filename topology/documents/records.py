"""Snapshots, findings and audits as plain records, and back: the one declaration of their fields.

A record consists of dict, list, str, int, bool and None only. So it is valid JSON, and one row of a
Parquet file once the columns are typed (topology/adapters/snapshot_columns.py).

1. A table per dataclass defines how each field is written and read, and its type. Parquet columns,
   Spark schemas and JSON Schemas are derived from these tables. Everything that is written can be
   read back. Reading returns an equal value or raises MalformedRecord with the field.
2. Reading is strict. It rejects a missing or extra field, a number in place of a text, a time
   without its zone, and a set that is not in canonical form.
3. Times are ISO-8601 in UTC, with microseconds and `Z`. GTID sets are MySQL's text on one line.
   Counts are exact integers: a set may hold more than 2**63 GTIDs.
4. This module is independent of file formats and servers.
"""

from collections.abc import Iterable

from topology.catalogue.findings import (
    ClusterAudit,
    Evidence,
    Finding,
    Grade,
    Severity,
    Strategy,
    Unknown,
    Verdict,
)
from topology.documents.label_records import LABELS
from topology.documents.record_codec import (
    COUNT,
    FLAG,
    GTID_SET,
    NUMBER,
    SMALL_NUMBER,
    TEXT,
    TIME,
    UUID_TEXT,
    VERSION,
    MalformedRecord,
    Plain,
    Record,
    RecordShape,
    many,
    optional,
    text_pair,
    time_from_text,
    time_to_text,
    word,
)
from topology.readings.content_class import ContentClass
from topology.readings.group_view import GroupMember, GroupSnapshot
from topology.readings.history_evidence import (
    ChangedRows,
    CommitRecord,
    ExtraTransaction,
    HistoryEvidence,
    LogReach,
    LogSearch,
    LogStart,
    PurgedChange,
)
from topology.readings.snapshot import (
    BinaryLog,
    ChannelSnapshot,
    ClusterSnapshot,
    LogPosition,
    ServerSnapshot,
    ThreadState,
    UnreadFact,
    UnreadReason,
)
from topology.readings.vendors import Vendor
from topology.readings.worker import WorkerSnapshot

__all__ = [
    "MalformedRecord",
    "Plain",
    "Record",
    "audit_from_record",
    "audit_to_record",
    "cluster_from_servers",
    "finding_from_record",
    "finding_to_record",
    "snapshot_from_record",
    "snapshot_to_record",
    "time_from_text",
    "time_to_text",
    "unknown_from_record",
    "unknown_to_record",
]

# -- the tables -----------------------------------------------------------------------------------


def _make_position(*, file: str, position: int) -> LogPosition:
    made = LogPosition.of(file=file, position=position)
    if made is None:
        raise ValueError(f"expected a file name that ends in a number, found {file!r}")
    return made


_POSITION = RecordShape(_make_position, {"file": TEXT, "position": NUMBER}).codec

_WORKER = RecordShape(
    WorkerSnapshot,
    {
        "worker_id": NUMBER,
        "applying": GTID_SET,
        "errno": SMALL_NUMBER,
        "error": TEXT,
        "state": TEXT,
        "applying_seconds": optional(NUMBER),
        "last_applied": GTID_SET,
    },
).codec

_CHANNEL = RecordShape(
    ChannelSnapshot,
    {
        "name": TEXT,
        "source_host": TEXT,
        "source_port": SMALL_NUMBER,
        "source_uuid": optional(UUID_TEXT),
        "auto_position": FLAG,
        "gtid_retrieved": GTID_SET,
        "receiver": word(ThreadState),
        "receiver_errno": SMALL_NUMBER,
        "receiver_error": TEXT,
        "receiver_error_at": TEXT,
        "applier": word(ThreadState),
        "applier_errno": SMALL_NUMBER,
        "applier_error": TEXT,
        "applier_error_at": TEXT,
        "received_to": optional(_POSITION),
        "applied_to": optional(_POSITION),
        "lag_seconds": optional(NUMBER),
        "filters": many(TEXT),
        "workers": many(_WORKER),
        "applier_state": TEXT,
        "receiver_state": TEXT,
        "relay_applied_to": optional(_POSITION),
        "delay_seconds": NUMBER,
        "delay_remaining_seconds": optional(NUMBER),
        "source_server_id": optional(NUMBER),
        "ignored_server_ids": many(NUMBER),
        "until": TEXT,
        "skip_counter": NUMBER,
        "last_queued": GTID_SET,
        "last_queued_committed_at": optional(TIME),
        "last_applied": GTID_SET,
        "last_applied_at": optional(TIME),
    },
).codec

_BINARY_LOG = RecordShape(
    BinaryLog, {"name": TEXT, "size_bytes": NUMBER, "encrypted": optional(FLAG)}
).codec


_SETTING = text_pair("name", "value")

_MEMBER = RecordShape(
    GroupMember,
    {
        "server_uuid": UUID_TEXT,
        "host": TEXT,
        "port": SMALL_NUMBER,
        "state": TEXT,
        "role": TEXT,
    },
).codec

_GROUP = RecordShape(
    GroupSnapshot,
    {
        "group_name": TEXT,
        "member_state": TEXT,
        "member_role": TEXT,
        "received": GTID_SET,
        "members": many(_MEMBER),
        "workers": many(_WORKER),
        "recovery_workers": many(_WORKER),
        "recovery_errno": SMALL_NUMBER,
        "recovery_error": TEXT,
        "view_id": TEXT,
    },
).codec

_COMMIT = RecordShape(
    CommitRecord,
    {
        "gtid": GTID_SET,
        "server_id": NUMBER,
        "committed_at": TIME,
        "is_exact": FLAG,
        "logged_at": optional(TIME),
    },
).codec

_LOG_START = RecordShape(
    LogStart, {"file": TEXT, "begun_at": TIME, "previous_gtids": GTID_SET}
).codec

_LOG_SEARCH = RecordShape(
    LogSearch,
    {"replica": TEXT, "channel": TEXT, "place": TEXT, "wanted": GTID_SET, "before": GTID_SET},
).codec

_LOG_REACH = RecordShape(
    LogReach, {"wanted": GTID_SET, "file": TEXT, "closed_at": optional(TIME)}
).codec

_PURGED_CHANGE = RecordShape(PurgedChange, {"at": TIME, "added": GTID_SET}).codec

_EXTRA = RecordShape(
    ExtraTransaction,
    {
        "gtid": GTID_SET,
        "content": word(ContentClass),
        "committed_at": TIME,
        "rows": many(RecordShape(ChangedRows, {"table": TEXT, "count": NUMBER}).codec),
    },
).codec

_HISTORY_EVIDENCE = RecordShape(
    HistoryEvidence,
    {
        "first_log": optional(_LOG_START),
        "commits": many(_COMMIT),
        "unread": TEXT,
        "searches": many(_LOG_SEARCH),
        "purged_changes": optional(many(_PURGED_CHANGE)),
        "schemas_count": optional(NUMBER),
        "reaches": many(_LOG_REACH),
        "absent": GTID_SET,
        "extras": many(_EXTRA),
        "extras_unread": TEXT,
    },
).codec

_UNREAD = RecordShape(
    UnreadFact, {"fact": TEXT, "reason": word(UnreadReason), "detail": TEXT}
).codec

SNAPSHOT = RecordShape(
    ServerSnapshot,
    {
        "cluster": TEXT,
        "name": TEXT,
        "host": TEXT,
        "port": SMALL_NUMBER,
        "phase": SMALL_NUMBER,
        "read_started": TIME,
        "read_ended": TIME,
        "server_clock": optional(TIME),
        "server_uuid": optional(UUID_TEXT),
        "server_id": optional(NUMBER),
        "version": optional(VERSION),
        "version_text": optional(TEXT),
        "vendor": optional(word(Vendor)),
        "uptime_seconds": optional(NUMBER),
        "gtid_executed": optional(GTID_SET),
        "gtid_purged": optional(GTID_SET),
        "gtid_owned": optional(GTID_SET),
        "log_end": optional(_POSITION),
        "channels": optional(many(_CHANNEL)),
        "binary_logs": optional(many(_BINARY_LOG)),
        "settings": optional(many(_SETTING)),
        "group": optional(_GROUP),
        "notable_settings": optional(TEXT),
        "history_evidence": optional(_HISTORY_EVIDENCE),
        "unread": many(_UNREAD),
    },
)

_EVIDENCE = RecordShape(
    Evidence, {"fact": TEXT, "value": TEXT, "read_from": TEXT, "read_at": TIME}
).codec

_STRATEGY = RecordShape(
    Strategy, {"name": TEXT, "automatic": FLAG, "risk": TEXT, "why": TEXT}
).codec


def _get_of_finding(finding: Finding, name: str) -> object:
    return finding.gtid_set.gtid_count if name == "gtid_count" else getattr(finding, name)


FINDING = RecordShape(
    Finding,
    {
        "id": TEXT,
        "code": TEXT,
        "name": TEXT,
        "severity": word(Severity),
        "grade": word(Grade),
        "cluster": TEXT,
        "source": optional(TEXT),
        "replica": optional(TEXT),
        "channel": optional(TEXT),
        "gtid_set": GTID_SET,
        "gtid_count": COUNT,
        "first_seen": TIME,
        "last_seen": TIME,
        "deadline": optional(TIME),
        "evidence": many(_EVIDENCE),
        "explanation": TEXT,
        "strategies": many(_STRATEGY),
    },
    derived=frozenset({"id", "gtid_count"}),
    get=_get_of_finding,
)

UNKNOWN = RecordShape(Unknown, {"cluster": TEXT, "server": TEXT, "fact": TEXT, "reason": TEXT})

AUDIT = RecordShape(
    ClusterAudit,
    {
        "cluster": TEXT,
        "verdict": word(Verdict),
        "servers": many(TEXT),
        "read_at": optional(TIME),
        "labels": LABELS,
        "findings": many(FINDING.codec),
        "unknown": many(UNKNOWN.codec),
    },
)


# -- the interface --------------------------------------------------------------------------------


def snapshot_to_record(snapshot: ServerSnapshot) -> Record:
    """Write one reading of one server."""
    return SNAPSHOT.write(snapshot)


def snapshot_from_record(record: Record) -> ServerSnapshot:
    """Read one reading of one server. Raises MalformedRecord."""
    return SNAPSHOT.read(record)


def finding_to_record(finding: Finding) -> Record:
    """Write a finding with the fields, and in the order, of its contract."""
    return FINDING.write(finding)


def finding_from_record(record: Record) -> Finding:
    """Read a finding; its id and count must follow from the rest. Raises MalformedRecord."""
    return FINDING.read(record)


def unknown_to_record(unknown: Unknown) -> Record:
    """Write a fact that was not read."""
    return UNKNOWN.write(unknown)


def unknown_from_record(record: Record) -> Unknown:
    """Read a fact that was not read. Raises MalformedRecord."""
    return UNKNOWN.read(record)


def audit_to_record(audit: ClusterAudit) -> Record:
    """Write the audit of a cluster."""
    return AUDIT.write(audit)


def audit_from_record(record: Record) -> ClusterAudit:
    """Read the audit of a cluster. Raises MalformedRecord."""
    return AUDIT.read(record)


def cluster_from_servers(cluster: str, servers: Iterable[ServerSnapshot]) -> ClusterSnapshot:
    """Combine the readings of one cluster, in any order.

    Raises ValueError if they are not two readings of the same servers, the second after the first.
    """
    ordered = sorted(servers, key=lambda server: (server.phase, server.name))
    strangers = sorted({server.cluster for server in ordered} - {cluster})
    if strangers:
        raise ValueError(f"{cluster}: a reading of cluster {strangers[0]} among its own")
    return ClusterSnapshot(
        cluster,
        first=tuple(server for server in ordered if server.phase == 1),
        last=tuple(server for server in ordered if server.phase != 1),
    )

"""The Python interface: what the commands `pair`, `audit`, `snapshot` and `binlog scan` do.

1. `audit`, `read_snapshot` and `ledger` return typed values. Each has `to_arrow()` and
   `to_pandas()`; times in them are microseconds with the zone UTC.
2. They raise `GtidAuditError` and nothing else for what the caller or the world can do wrong. They
   never print, prompt, or end the process.
3. A server that cannot be read is not an error of `audit` and `read_snapshot`: it is in `unknown`,
   and the verdict is UNKNOWN.
4. Importing this package imports neither PyArrow nor pandas.

docs/python-api.md has an example of each.
"""

from gtid_audit.api.api_errors import (
    GtidAuditError,
    GtidAuditWarning,
    InvalidRequest,
    MissingPackage,
    UnreadableSource,
)
from gtid_audit.api.audit_result import AuditResult
from gtid_audit.api.auditing import audit
from gtid_audit.api.ledger_result import LedgerResult, ledger
from gtid_audit.api.snapshot_result import SnapshotResult, read_snapshot
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
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot, UnreadFact

__all__ = [
    "AuditResult",
    "ClusterAudit",
    "ClusterSnapshot",
    "Evidence",
    "Finding",
    "Grade",
    "GtidAuditError",
    "GtidAuditWarning",
    "InvalidRequest",
    "LedgerResult",
    "MissingPackage",
    "ServerSnapshot",
    "Severity",
    "SnapshotResult",
    "Strategy",
    "Unknown",
    "UnreadFact",
    "UnreadableSource",
    "Verdict",
    "audit",
    "ledger",
    "read_snapshot",
]

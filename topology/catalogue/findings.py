"""The types of an audit's results: findings, their evidence, and the overall verdict.

1. A finding is data. A rule creates it from facts, and it carries the facts as evidence.
2. The constructor rejects a finding without evidence.
3. The identity of a finding is the fact that it states (code, cluster, servers, channel), not its
   size or time. A growing gap keeps its id, so that monitoring can show since when it exists.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Final

from gtid import GtidSet

CONTENT: Final = "content of transactions"  # the fact of an `Unknown`


class Severity(Enum):
    """How severe a finding is."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Grade(Enum):
    """How certain a finding is. `proved` needs a fact that excludes every benign cause."""

    PROVED = "proved"
    LIKELY = "likely"
    UNKNOWN = "unknown"


class Verdict(Enum):
    """The verdict of an audit, in the terms of the monitoring plugins."""

    OK = "OK"
    WARNING = "WARNING"
    CRITICAL = "CRITICAL"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One fact that supports a finding: its name, its value, the reporting server, and the time."""

    fact: str
    value: str
    read_from: str
    read_at: datetime


@dataclass(frozen=True, slots=True)
class Strategy:
    """One way to repair."""

    name: str
    # `reconcile` may apply it where the policy lists it: a plan that takes it by default has read
    # what it needs to lose no data, and its script checks that again.
    automatic: bool
    risk: str
    why: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding, with its evidence and the possible repairs.

    `source` and `replica` are server names, and None where the finding is not about an edge. A
    finding about a single server has that server in `replica`. One about a consumer (P4) has the
    consumer there: no server of the cluster has its name.
    """

    code: str
    name: str
    severity: Severity
    grade: Grade
    cluster: str
    source: str | None
    replica: str | None
    channel: str | None
    gtid_set: GtidSet
    first_seen: datetime
    last_seen: datetime
    evidence: tuple[Evidence, ...]
    explanation: str
    strategies: tuple[Strategy, ...]
    deadline: datetime | None = None
    id: str = field(init=False)

    def __post_init__(self) -> None:
        if not self.evidence:
            raise ValueError(f"a finding {self.code} without evidence")
        object.__setattr__(self, "id", self._identity())

    def _identity(self) -> str:
        parts = (self.code, self.cluster, self.source, self.replica, self.channel)
        text = "\0".join("\1" if part is None else part for part in parts)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def order(self) -> tuple[str, int, str, str, str, str]:
        """Return the sort key of every list of findings: most severe first within a cluster."""
        worst_first = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.INFO: 2}
        return (
            self.cluster,
            worst_first[self.severity],
            self.code,
            self.source or "",
            self.replica or "",
            self.channel or "",
        )


@dataclass(frozen=True, slots=True, order=True)
class Unknown:
    """One fact that was not read, and so was not evaluated."""

    cluster: str
    server: str
    fact: str
    reason: str


@dataclass(frozen=True, slots=True)
class ClusterAudit:
    """The audit of one cluster."""

    cluster: str
    verdict: Verdict
    servers: tuple[str, ...]
    findings: tuple[Finding, ...]
    unknown: tuple[Unknown, ...]
    read_at: datetime | None  # when the last reading ended
    # Names and values that the operator gave the cluster, in order of name. No rule reads them.
    labels: tuple[tuple[str, str], ...] = ()


def verdict_of(*, findings: Iterable[Finding], unknown: Iterable[Unknown]) -> Verdict:
    """Combine findings into one verdict.

    A critical finding stays critical even if something else could not be read. Otherwise UNKNOWN
    outweighs a warning, because an unread fact may hide any fault.
    """
    severities = {finding.severity for finding in findings if not finding.code.startswith("U")}
    if Severity.CRITICAL in severities:
        return Verdict.CRITICAL
    if any(True for _ in unknown):
        return Verdict.UNKNOWN
    return Verdict.WARNING if Severity.WARNING in severities else Verdict.OK


def worst_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the combined verdict of several clusters."""
    by_weight = (Verdict.CRITICAL, Verdict.UNKNOWN, Verdict.WARNING)
    seen = set(verdicts)
    return next((verdict for verdict in by_weight if verdict in seen), Verdict.OK)

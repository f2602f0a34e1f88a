"""The shape of what we found: findings, their evidence, the verdict over them.

1. A finding is data. It is made by a rule, from facts, and carries the facts as evidence.
2. No evidence, no finding: the constructor refuses one without.
3. The identity of a finding is the fact it states (code, cluster, servers, channel), not its size
   or the moment: a growing hole keeps its id, so that "since when" has an answer.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from gtid import GtidSet


class Severity(Enum):
    """How much it matters."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Grade(Enum):
    """How sure we are. `proved` needs a fact that excludes every benign cause."""

    PROVED = "proved"
    LIKELY = "likely"
    UNKNOWN = "unknown"


class Verdict(Enum):
    """The verdict of an audit, in the words of the monitoring plugins."""

    OK = "OK"
    WARNING = "WARNING"
    CRITICAL = "CRITICAL"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One fact that a finding stands on: what, its value, which server said so, and when."""

    fact: str
    value: str
    read_from: str
    read_at: datetime


@dataclass(frozen=True, slots=True)
class Strategy:
    """One way to repair."""

    name: str
    automatic: bool  # may be done unattended
    risk: str
    why: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found, with its proof and what can be done about it.

    `source` and `replica` are server names; None where the finding is not about an edge. A finding
    about one server names it in `replica`.
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
        """Return the sort key of every list of findings: worst first within a cluster."""
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
    """One fact that was not read, and so is not evaluated."""

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


def verdict_of(*, findings: Iterable[Finding], unknown: Iterable[Unknown]) -> Verdict:
    """Fold findings into one verdict.

    A critical fault stays critical although something else could not be read; short of that, what
    could not be read outweighs what is merely worrying, because it may hide anything.
    """
    severities = {finding.severity for finding in findings if not finding.code.startswith("U")}
    if Severity.CRITICAL in severities:
        return Verdict.CRITICAL
    if any(True for _ in unknown):
        return Verdict.UNKNOWN
    return Verdict.WARNING if Severity.WARNING in severities else Verdict.OK


def worst_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict of several clusters together."""
    by_weight = (Verdict.CRITICAL, Verdict.UNKNOWN, Verdict.WARNING)
    seen = set(verdicts)
    return next((verdict for verdict in by_weight if verdict in seen), Verdict.OK)

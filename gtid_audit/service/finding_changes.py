"""Decides which findings have come, changed or gone between two audits of a cluster. Pure.

1. The rule is that of the history (topology/finding_history.py): an audit that could not read all
   of a cluster ends no finding. A finding that it does not show is still open, and has not gone.
2. A finding that stays keeps its `first_seen`.
3. A change is a new severity or grade, and above info another set, or a deadline that is new or
   gone. The sets of backlogs (info) and the exact deadlines of logs change with every audit of a
   busy server: that is no event.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeVar

from topology.catalogue.findings import ClusterAudit, Finding, Severity
from topology.finding_history import SeenBefore, with_history


class OpenFinding(SeenBefore, Protocol):
    """What is known of a finding of an earlier audit. A Finding and an Episode are one."""

    @property
    def name(self) -> str:
        """Return the name of its code."""

    @property
    def severity(self) -> Severity:
        """Return its severity."""

    @property
    def source(self) -> str | None:
        """Return the server from which the transactions come."""

    @property
    def replica(self) -> str | None:
        """Return the server that it is about."""

    @property
    def channel(self) -> str | None:
        """Return its channel."""


Known = TypeVar("Known", bound=OpenFinding)


class ChangeKind(Enum):
    """What happened to a finding."""

    CAME = "came"
    CHANGED = "changed"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class FindingChange:
    """A finding that came, changed or went. `fields`: what differs, of a finding that changed."""

    kind: ChangeKind
    finding: OpenFinding
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ComparedAudit:
    """An audit compared with what was open before: dated, with its changes and what is open now."""

    audit: ClusterAudit
    open: tuple[OpenFinding, ...]
    changes: tuple[FindingChange, ...]


def compared_with(audit: ClusterAudit, known: Sequence[OpenFinding]) -> ComparedAudit:
    """Compare an audit with the findings that were open before it.

    An audit of which no server was read has no time. It disproves nothing and changes nothing.
    """
    if audit.read_at is None:
        return ComparedAudit(audit, tuple(known), ())
    [dated], carried = with_history([audit], known=known, run_at=audit.read_at)
    before = {each.id: each for each in known}
    now = {each.id for each in dated.findings} | {each.id for each in carried}
    changes = (
        *_of_findings(dated.findings, before),
        *(FindingChange(ChangeKind.GONE, each) for each in known if each.id not in now),
    )
    return ComparedAudit(dated, (*dated.findings, *carried), changes)


def _of_findings(
    findings: Iterable[Finding], before: dict[str, OpenFinding]
) -> Iterator[FindingChange]:
    for finding in findings:
        known = before.get(finding.id)
        if known is None:
            yield FindingChange(ChangeKind.CAME, finding)
        elif fields := tuple(_differing(known, finding)):
            yield FindingChange(ChangeKind.CHANGED, finding, fields)


def _differing(known: OpenFinding, finding: Finding) -> Iterator[str]:
    if known.severity is not finding.severity:
        yield "severity"
    if not isinstance(known, Finding):
        return  # an episode of the history has no more than that
    if known.grade is not finding.grade:
        yield "grade"
    if finding.severity is Severity.INFO:
        return
    if known.gtid_set != finding.gtid_set:
        yield "gtid_set"
    if (known.deadline is None) is not (finding.deadline is None):
        yield "deadline"

"""Decides which findings have come, changed or gone between two audits of a cluster. Pure.

1. The rule is that of the history (topology/finding_history.py): an audit that could not read all
   of a cluster ends no finding. A finding that it does not show is still open, and has not gone.
   What the previous audit showed is `lasting`: metrics, API and page go on showing it, as it was
   last seen. Otherwise an alert on it would end because a server hangs.
2. A finding that stays keeps its `first_seen`.
3. A change is a new severity or grade, and above info another set, or a deadline that is new or
   gone. The sets of backlogs (info) and the exact deadlines of logs change with every audit of a
   busy server: that is no event.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Final, Protocol, TypeAlias, TypeVar

from topology.catalogue.findings import ClusterAudit, Finding, Severity
from topology.finding_history import NOT_LOOKED_FOR_AGAIN, SeenBefore, with_history

SHOWN_BEFORE: Final = timedelta(days=1)


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


# The server and the name of each fact that an audit did not read.
Unread: TypeAlias = frozenset[tuple[str, str]]
# What was not read when a finding was last seen, by the id of each finding that is shown.
SeenWithout: TypeAlias = Mapping[str, Unread]


@dataclass(frozen=True, slots=True)
class ComparedAudit:
    """An audit compared with what was open before: dated, with its changes and what is open now.

    `lasting` are findings that were shown before and that this audit could not look for.
    """

    audit: ClusterAudit
    open: tuple[OpenFinding, ...]
    changes: tuple[FindingChange, ...]
    lasting: tuple[OpenFinding, ...]
    seen_without: SeenWithout  # of its findings, and of the lasting ones


def compared_with(
    audit: ClusterAudit, known: Sequence[OpenFinding], before: SeenWithout | None = None
) -> ComparedAudit:
    """Compare an audit with the findings that were open before it.

    `before` is `seen_without` of the previous audit; None if another process made that. An audit of
    which no server was read has no time. It disproves nothing and changes nothing.
    """
    if audit.read_at is None:
        dated, carried = audit, tuple(known)
        changes: tuple[FindingChange, ...] = ()
    else:
        [dated], carried = with_history([audit], known=known, run_at=audit.read_at)
        earlier = {each.id: each for each in known}
        now = {each.id for each in dated.findings} | {each.id for each in carried}
        changes = (
            *_of_findings(dated.findings, earlier),
            *(FindingChange(ChangeKind.GONE, each) for each in known if each.id not in now),
        )
    unread = frozenset((each.server, each.fact) for each in audit.unknown)
    lasting = tuple(_lasting(dated, carried, unread, before))
    return ComparedAudit(
        dated,
        carried if audit.read_at is None else (*dated.findings, *carried),
        changes,
        lasting,
        {each.id: (before or {}).get(each.id, frozenset()) for each in lasting}
        | {each.id: unread for each in dated.findings},
    )


def _lasting(
    audit: ClusterAudit,
    carried: Sequence[OpenFinding],
    unread: Unread,
    before: SeenWithout | None,
) -> Iterator[OpenFinding]:
    """Yield the carried findings that are still shown.

    A finding lasts while something is not read that was read when it was last seen. So a fact that
    is never read, as without a privilege, does not keep a finding that was repaired. Of another
    process only findings of the last day are known to have been shown. It compared contents, which
    this one does not do again (E4). What could not be read (U) is a finding of each audit.
    """
    found = {each.id for each in audit.findings}
    at = audit.read_at or max((each.last_seen for each in carried), default=None)
    for each in carried:
        if each.id in found or each.code.startswith("U"):
            continue
        if before is None:
            is_recent = at is not None and each.last_seen >= at - SHOWN_BEFORE
            if unread and is_recent and each.code not in NOT_LOOKED_FOR_AGAIN:
                yield each
        elif each.id in before and unread - before[each.id]:
            yield each


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

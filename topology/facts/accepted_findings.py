"""Findings that the operator accepts: an entry of the fleet file, and what it covers.

An accepted finding stays in the report, at severity info, with the reason, the ticket and the last
day of the acceptance. An entry covers one fault of a known size, for a limited time. A finding is
accepted only if an entry covers all of this:

1. the code, and the place: cluster, source, replica, channel;
2. the severity: the same finding at a higher severity is a worse fault;
3. the size. A finding with a GTID set: with one transaction more it is not accepted. A finding
   without one: what its evidence shows, word for word (`shows`). So one more filter or setting is
   another fault;
4. the day of the reading, in UTC. The time of the readings decides, and not that of the
   evaluation: a stored run gives the same result whenever it is evaluated.

Facts that were not read are never accepted: neither a U finding nor one of grade `unknown`. The
verdict UNKNOWN follows from unread facts, and an entry does not remove these.

An accepted finding must not hide another fault. So `audit_cluster` accepts *before* it suppresses,
and an accepted finding explains only findings about its own transactions (rule 6 of
topology/suppression.py). Example: b is missing A:51-53 (H1), which is accepted.

    A7  the thread of the channel is stopped          H1 explains it, but it is reported now
    C3  the channel replicates by file position       the same
    E1  A:51-53 is extra on a, seen as replica of b   the same transactions: H1 still explains it
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import Evidence, Finding, Grade, Severity

ANY_SERVER: Final = "*"  # as source or replica of an entry
# What an entry cannot limit: the next object that differs (S2), and what waits behind an applier or
# a receiver that an error stopped.
UNLIMITED: Final = frozenset({"S2", "A1", "A2", "A3", "A4", "A5", "A6", "A8", "A9"})
# Evidence that changes while nothing else does.
_PASSING: Final = frozenset({"receiver has read to"})
_RANK: Final = tuple(Severity)

# The evidence of an accepted finding, read from the policy.
POLICY: Final = "the fleet file"
ACCEPTED_BECAUSE: Final = "accepted because"
ACCEPTED_IN: Final = "accepted in ticket"
ACCEPTED_BY: Final = "accepted by"
ACCEPTED_UNTIL: Final = "accepted until"
NOT_ACCEPTED_SEVERITY: Final = "severity if it were not accepted"


class NotAnEntry(ValueError):
    """A text that is not an accepted finding as `to_text` writes it."""


@dataclass(frozen=True, slots=True)
class AcceptedFinding:
    """One entry: which finding is accepted, how large it may be, why, and until when."""

    code: str
    severity: Severity  # the highest that is accepted; above info
    reason: str
    expires: date  # the last day, in UTC
    cluster: str | None = None  # None: any cluster of the fleet
    source: str | None = None  # None: a finding without a source; ANY_SERVER: any, or none
    replica: str | None = None
    channel: str = ""
    gtid_set: GtidSet = field(default_factory=GtidSet)
    shows: str = ""  # the evidence of a finding without a GTID set, as `shown_by` returns it
    ticket: str = ""
    by: str = ""  # the person or the team who accepts it

    def __post_init__(self) -> None:
        if self.code.startswith("U"):
            raise ValueError(f"{self.code}: facts that were not read cannot be accepted")
        if self.code in UNLIMITED:
            raise ValueError(f"{self.code}: an entry cannot limit how far it grows")
        if self.severity is Severity.INFO:
            raise ValueError(f"{self.code}: a finding of severity info needs no acceptance")
        if not self.reason.strip():
            raise ValueError(f"{self.code}: an accepted finding needs a reason")

    def is_about(self, finding: Finding) -> bool:
        """Return whether the entry has the code and the place of a finding."""
        return (
            self.code == finding.code
            and self.cluster in (None, finding.cluster)
            and self.source in (ANY_SERVER, finding.source)
            and self.replica in (ANY_SERVER, finding.replica)
            and self.channel == (finding.channel or "")
        )

    def why_not(self, finding: Finding) -> str:
        """Return why the entry does not cover a finding that it is about; empty if it does."""
        day = finding.last_seen.astimezone(UTC).date()
        if day > self.expires:
            return f"the acceptance ended on {self.expires.isoformat()}"
        if _RANK.index(finding.severity) > _RANK.index(self.severity):
            return f"only severity {self.severity.value} is accepted"
        if bool(finding.gtid_set) != bool(self.gtid_set):
            has = "no set" if self.gtid_set else "a GTID set"
            return f"the finding has {has}, unlike the accepted one"
        more = finding.gtid_set - self.gtid_set
        if more:
            return f"{more.shortened()} is not in the accepted set"
        if not finding.gtid_set and self.shows != (shows := shown_by(finding)):
            return f"its evidence is not the accepted one, but: {shows}"
        return ""

    def to_text(self) -> str:
        """Return the entry as one line, for a command line."""
        return json.dumps(
            {
                "code": self.code,
                "severity": self.severity.value,
                "reason": self.reason,
                "expires": self.expires.isoformat(),
                "cluster": self.cluster,
                "source": self.source,
                "replica": self.replica,
                "channel": self.channel,
                "gtid_set": str(self.gtid_set),
                "shows": self.shows,
                "ticket": self.ticket,
                "by": self.by,
            }
        )


def accepted_finding_from_text(text: str) -> AcceptedFinding:
    """Read what `to_text` wrote. Raises NotAnEntry."""
    try:
        found = json.loads(text)
        return AcceptedFinding(
            **{
                **found,
                "severity": Severity(found["severity"]),
                "expires": date.fromisoformat(found["expires"]),
                "gtid_set": GtidSet.parse(found["gtid_set"]),
            }
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise NotAnEntry("expected an accepted finding as `spark command` writes it") from error


def with_acceptance(
    findings: Iterable[Finding], entries: Sequence[AcceptedFinding]
) -> Iterator[Finding]:
    """Yield the findings; those that an entry covers are of severity info, with its reason.

    If entries are about a finding and none covers it, its explanation says why not.
    """
    for finding in findings:
        about = [entry for entry in entries if entry.is_about(finding)]
        if not about or not may_be_accepted(finding):
            yield finding
            continue
        covering = [entry for entry in about if not entry.why_not(finding)]
        if covering:
            # The entry that covers longest; then by text, so that the order has no influence.
            yield _accepted(finding, max(covering, key=lambda each: (each.expires, each.to_text())))
            continue
        why = sorted({entry.why_not(finding) for entry in about})
        note = f" Not accepted by the fleet file: {'; '.join(why)}."
        yield replace(finding, explanation=finding.explanation + note)


def shown_by(finding: Finding) -> str:
    """Return the evidence of a finding as one line, which bounds a finding without a GTID set."""
    return "; ".join(
        f"{each.fact} = {' '.join(each.value.split())}"
        for each in finding.evidence
        if each.fact not in _PASSING
    )


def is_accepted(finding: Finding) -> bool:
    """Return whether an entry of the policy covers a finding."""
    return any(each.fact == ACCEPTED_UNTIL for each in finding.evidence)


def severity_before(finding: Finding) -> Severity:
    """Return the severity of a finding before it was accepted; its own if it was not."""
    if finding.severity is not Severity.INFO:
        return finding.severity
    values = [each.value for each in finding.evidence if each.fact == NOT_ACCEPTED_SEVERITY]
    return Severity(values[0]) if values else finding.severity


def may_be_accepted(finding: Finding) -> bool:
    """Return whether an entry may cover a finding: above info, read, and limited by the entry."""
    return (
        finding.severity is not Severity.INFO
        and finding.grade is not Grade.UNKNOWN
        and not finding.code.startswith("U")
        and finding.code not in UNLIMITED
    )


def _accepted(finding: Finding, entry: AcceptedFinding) -> Finding:
    ticket = f", {entry.ticket}" if entry.ticket else ""
    by = f" by {entry.by}" if entry.by else ""
    until = f"Accepted{by} until {entry.expires.isoformat()}{ticket}"
    note = f"{until}: {entry.reason.strip().rstrip('.')}. "
    return replace(
        finding,
        severity=Severity.INFO,
        explanation=note + finding.explanation,
        evidence=(*finding.evidence, *_evidence(finding, entry, finding.last_seen)),
    )


def _evidence(finding: Finding, entry: AcceptedFinding, read_at: datetime) -> tuple[Evidence, ...]:
    facts = {
        ACCEPTED_BECAUSE: entry.reason,
        ACCEPTED_IN: entry.ticket,
        ACCEPTED_BY: entry.by,
        ACCEPTED_UNTIL: entry.expires.isoformat(),
        NOT_ACCEPTED_SEVERITY: finding.severity.value,
    }
    return tuple(Evidence(fact, value, POLICY, read_at) for fact, value in facts.items() if value)

"""Which findings of an audit after a strategy make a server worse, so that it is refused.

Two audits of simulated servers are compared, from before and after the actions of a strategy
(audit_after_plan.py). What both report existed before. A finding above info that only the second
reports, or a difference that has grown, makes a server worse.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gtid import GtidSet
from repair.model.actions import Action, AppendPurged, ResetAndPurge
from repair.model.former_places import at_former_places, only_shows
from repair.model.replication_model import Model
from repair.plan_parts import in_short
from topology.catalogue.findings import ClusterAudit, Finding, Severity
from topology.readings.snapshot import ClusterSnapshot
from topology.rules.threads import RECEIVER_ERROR

# For these families a larger set is worse; for a stopped channel it only means that more waits.
_GROWTH_IS_WORSE = frozenset("HEPJ")
# A repaired cause reveals these (topology/suppression.py). No action of a plan leaves them.
_UNCOVERED = frozenset({"A7", "C3"})
# Findings about a server that no channel links, the least severe first.
_JOINING = frozenset({"J1", "J2", "J3"})


@dataclass(frozen=True, slots=True)
class Change:
    """What a strategy does to the servers of a plan."""

    snapshot: ClusterSnapshot  # as it was read
    started: Model  # at the start of the plan
    model: Model  # after the strategy's actions
    actions: tuple[Action, ...]
    is_chosen: bool


def made_worse(
    before: ClusterAudit, after: ClusterAudit, *, purged: Mapping[str, GtidSet]
) -> Iterator[Finding]:
    """Yield findings above info that only the second audit has, and differences that have grown.

    `purged` is gtid_purged of each server at the start of the plan, plus what the evaluated steps
    add to it. GTIDs in it that were never logged (E4) become visible once the server logs lower
    ones. The added ones are announced by the strategy. No action makes a server worse by either.
    """
    known = {finding.id: finding for finding in before.findings}
    holes: dict[str | None, GtidSet] = {}
    for finding in before.findings:
        if finding.code == "H8":
            holes[finding.replica] = holes.get(finding.replica, GtidSet()) | finding.gtid_set
    for finding in after.findings:
        old = known.get(finding.id)
        has_grown = old is not None and (
            finding.code[0] in _GROWTH_IS_WORSE and bool(finding.gtid_set - old.gtid_set)
        )
        if old is not None and not has_grown:
            continue
        if finding.severity is Severity.INFO or finding.code.startswith("U"):
            continue
        if finding.code in _UNCOVERED or _joins_more_easily(finding, before):
            continue
        if _was_named_before(finding, before):
            continue
        if finding.code == "E4" and finding.gtid_set <= purged.get(str(finding.replica), GtidSet()):
            continue
        if finding.code == "A4" and any(fact.fact == RECEIVER_ERROR for fact in finding.evidence):
            continue  # an error that was read: no simulated receiver has one
        if finding.code == "H8" and finding.gtid_set <= holes.get(finding.replica, GtidSet()):
            continue  # another channel has passed them as well
        yield finding


def why_worse(before: ClusterAudit, after: ClusterAudit, change: Change) -> str:
    """Return what makes a server worse, one line each; "" if nothing does.

    A finding that only becomes visible (`only_shows`) does not refuse a strategy that the operator
    selected. The plan lists it among what the audit will report.
    """
    purged = {name: server.purged for name, server in change.started.servers.items()}
    for action in change.actions:
        if isinstance(action, AppendPurged | ResetAndPurge):
            purged[action.server] |= action.gtids  # an E4 about them is announced, not worse
    worse = [*made_worse(before, after, purged=purged)]
    former = {*at_former_places(change.snapshot)} if worse else set()
    found = []
    for finding in worse:
        text = in_short(finding)
        if (finding.replica, finding.channel) in former and only_shows(finding, change.started):
            if change.is_chosen:
                continue
            text += (
                f" ({finding.replica} does not have them now either. Its channel is at a position"
                f" in a former log of {finding.source}, and the current log may become as long."
                " Start that channel first, or select this strategy)"
            )
        found.append(text)
    return "; ".join(found)


def _was_named_before(finding: Finding, before: ClusterAudit) -> bool:
    """Return whether an errant set was reported for another source of its server.

    It is reported once, for the first source without it. A step that delivers it to that source
    leaves it to the next one.
    """
    return finding.code in ("E1", "E2") and any(
        (each.code, each.replica) == (finding.code, finding.replica)
        and finding.gtid_set <= each.gtid_set
        for each in before.findings
    )


def _joins_more_easily(finding: Finding, before: ClusterAudit) -> bool:
    """Return whether a server was further from joining before: J3 and J2 hide lesser findings.

    A server that diverged (J3), and no longer does, needs transactions that are purged (J2) or can
    join (J1). Each unlinked server has one finding of the family.
    """
    return any(
        each.code > finding.code
        for each in before.findings
        if {each.code, finding.code} <= _JOINING and each.replica == finding.replica
    )

"""Compares the audit after a plan with what the plan announced."""

from typing import Final

from repair.applying.written_plan import WrittenPlan
from repair.plan_parts import about
from topology.catalogue.findings import ClusterAudit, Finding, Severity, Verdict, verdict_of

# Of errant, lost and missing transactions each one counts: with one more it is another fault.
_OF_TRANSACTIONS: Final = "EH"


def compare_with_plan(audit: ClusterAudit, plan: WrittenPlan) -> tuple[Verdict, str]:
    """Return the verdict on what the plan did not announce, and the result of the audit as text.

    Findings that the plan left, or that it announced, do not count, unless they have transactions
    by now that the plan did not know. Something unread does.
    """
    loud = [each for each in audit.findings if each.severity is not Severity.INFO]
    others = [each for each in loud if not _is_announced(each, plan)]
    verdict = verdict_of(findings=others, unknown=audit.unknown)
    parts = [f"the audit afterwards: {audit.verdict.value}"]
    if audit.unknown:
        unread = "; ".join(f"{each.server}, {each.fact}" for each in audit.unknown)
        parts.append(f"not read: {unread}")
    if others:
        shown = "; ".join(f"{each.code} {each.name}, {about(each)}" for each in others)
        parts.append(f"the plan did not announce: {shown}")
    if announced := [each for each in loud if each not in others]:
        shown = ", ".join(sorted({each.code for each in announced}))
        parts.append(f"the plan announced: {shown}")
    return verdict, ". ".join(parts)


def _is_announced(finding: Finding, plan: WrittenPlan) -> bool:
    if finding.id not in plan.announced:
        return False
    grows_by_itself = finding.code[0] not in _OF_TRANSACTIONS
    return grows_by_itself or finding.gtid_set <= plan.announced[finding.id]

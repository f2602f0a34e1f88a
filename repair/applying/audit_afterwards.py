"""Compares the audit after a plan with what the plan announced."""

from repair.applying.written_plan import WrittenPlan
from repair.plan_parts import about
from topology.catalogue.findings import ClusterAudit, Severity, Verdict, verdict_of


def compare_with_plan(audit: ClusterAudit, plan: WrittenPlan) -> tuple[Verdict, str]:
    """Return the verdict on what the plan did not announce, and the result of the audit as text.

    Findings that the plan left, or that it announced, do not count. Something unread does.
    """
    loud = [each for each in audit.findings if each.severity is not Severity.INFO]
    others = [each for each in loud if each.id not in plan.announced]
    verdict = verdict_of(findings=others, unknown=audit.unknown)
    parts = [f"the audit afterwards: {audit.verdict.value}"]
    if audit.unknown:
        unread = "; ".join(f"{each.server}, {each.fact}" for each in audit.unknown)
        parts.append(f"not read: {unread}")
    if others:
        shown = "; ".join(f"{each.code} {each.name}, {about(each)}" for each in others)
        parts.append(f"the plan did not announce: {shown}")
    if announced := [each for each in loud if each.id in plan.announced]:
        shown = ", ".join(sorted({each.code for each in announced}))
        parts.append(f"the plan announced: {shown}")
    return verdict, ". ".join(parts)

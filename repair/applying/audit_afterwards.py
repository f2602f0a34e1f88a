"""Compares the audit after a plan with what the plan announced.

An E4 whose rows the plan wrote alike stays in the logs. It is as announced only if the rows were
read again, and are equal: the audit itself compares logs. What the plan leaves different and no
audit reports is at least a warning.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from repair.applying.written_plan import WrittenPlan
from repair.content.row_versions import RowsRead
from repair.plan_parts import about
from topology.catalogue.findings import (
    ClusterAudit,
    Finding,
    Severity,
    Verdict,
    verdict_of,
    worst_verdict,
)

# Of errant, lost and missing transactions each one counts: with one more it is another fault.
_OF_TRANSACTIONS: Final = "EH"
_ROWS_SHOWN_MAX: Final = 3
_NO_ROWS: Final[Mapping[str, RowsRead]] = MappingProxyType({})


def made_alike(audit: ClusterAudit, plan: WrittenPlan) -> tuple[Finding, ...]:
    """Return the findings that stay in the logs only, as announced, if their rows are equal."""
    return tuple(
        each
        for each in audit.findings
        if each.id in plan.made_alike and each.gtid_set <= plan.announced[each.id]
    )


def compare_with_plan(
    audit: ClusterAudit,
    plan: WrittenPlan,
    rows: Mapping[str, RowsRead] = _NO_ROWS,
    earlier: Sequence[str] = (),
) -> tuple[Verdict, str]:
    """Return the verdict on what the plan did not announce, and the result of the audit as text.

    Findings that the plan left, or that it announced, do not count, unless they have transactions
    by now that the plan did not know. Something unread does. `rows` are those of `made_alike`, by
    finding. `earlier`: what repairs that were not finished left out.
    """
    loud = [each for each in audit.findings if each.severity is not Severity.INFO]
    others = [each for each in loud if not _is_announced(each, plan, rows)]
    left = [Verdict.WARNING] if plan.unreported or earlier else []
    verdict = worst_verdict([verdict_of(findings=others, unknown=audit.unknown), *left])
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
    parts += [_of_rows(each, rows[each.id]) for each in loud if each.id in rows]
    parts += (f"As the plan announced, {each}" for each in plan.left_out)
    parts += (*plan.unreported, *earlier)
    return verdict, ". ".join(parts)


def _of_rows(finding: Finding, read: RowsRead) -> str:
    """Return what the rows of an E4 showed after the plan."""
    if read.rows:
        differing = ", ".join(
            f"{each.table.name}, {each.where}" for each in read.rows[:_ROWS_SHOWN_MAX]
        )
        count = len(read.rows)
        how_many = f"1 row of {finding.code} differs"
        if count > 1:
            how_many = f"{count:,} rows of {finding.code} differ"
        return f"{how_many}, among them {differing}"
    if not read.is_equal:
        return f"rows of {finding.code} were not read: {'; '.join(read.unread) or 'none is left'}"
    return f"the rows of {finding.code} were read again: {read.equal_count:,} are equal"


def _is_announced(finding: Finding, plan: WrittenPlan, rows: Mapping[str, RowsRead]) -> bool:
    if finding.id not in plan.announced:
        return False
    if finding.id in plan.made_alike and not rows.get(finding.id, RowsRead()).is_equal:
        return False
    grows_by_itself = finding.code[0] not in _OF_TRANSACTIONS
    return grows_by_itself or finding.gtid_set <= plan.announced[finding.id]

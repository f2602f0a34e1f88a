"""Shows what `reconcile` found in a cluster, what it applies, and what it left to an operator."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from gtid_audit.output import printable
from gtid_audit.views.reconciled import Reconciled, WrittenRepair
from gtid_audit.views.report_parts import QUIET
from gtid_audit.views.report_text import VERDICT_STYLE, show
from repair.plan_parts import about

_INDENT: Final = 8


def show_reconciled(found: Reconciled, *, is_short: bool = False) -> None:
    """Show one cluster; if `is_short`, only its verdict."""
    show(*islice(_parts(found), 1 if is_short else None))


def _parts(found: Reconciled) -> Iterator[RenderableType]:
    head = Text(f" {found.verdict.value} ", style=VERDICT_STYLE[found.verdict])
    yield head.append(f" {printable(found.cluster)}", style="bold")
    for each in found.unread:
        yield Text(printable(f"  not read: {each}"), style="yellow")
    if not found.found and not found.unread:
        yield Text("  nothing to repair")
    if not found.compares_definitions:
        yield Text("  definitions were not compared (`definitions: true` in the policy)", QUIET)
    if found.applied is not None:
        names = ", ".join(found.applied.strategies)
        yield Text(printable(f"  procedure {found.applied.procedure} applies {names}"))
        yield Text(f"  gtid-audit repair state {found.applied.procedure} shows how far it is")
    for finding in found.left:
        yield Text(printable(f"  left: {finding.code} {finding.name}, {about(finding)}"))
        if why := found.reasons.get(finding.id):
            yield Padding(Text(printable(why)), (0, 0, 0, _INDENT))
    if found.why_kept:
        yield Text(printable(f"  {found.why_kept}"))
    if found.kept is not None:
        yield Text(printable(f"  gtid-audit repair apply {found.kept.directory}"))


def reconcile_document(results: Iterable[Reconciled]) -> dict[str, Any]:
    """Return the JSON document of all clusters."""
    return {"clusters": [_record(each) for each in results]}


def _record(found: Reconciled) -> dict[str, Any]:
    return {
        "cluster": found.cluster,
        "verdict": found.verdict.value,
        "findings": [each.id for each in found.found],
        "left": [each.id for each in found.left],
        "applied": _repair(found.applied),
        "kept": _repair(found.kept),
        "why_kept": found.why_kept,
        "reasons": [
            {"finding": each.id, "why": found.reasons[each.id]}
            for each in found.left
            if each.id in found.reasons
        ],
        "compares_definitions": found.compares_definitions,
        "unread": list(found.unread),
    }


def _repair(written: WrittenRepair | None) -> dict[str, Any] | None:
    if written is None:
        return None
    return {
        "plan": written.plan,
        "directory": str(written.directory),
        "strategies": list(written.strategies),
        "procedure": written.procedure,
    }

"""Shows a plan to the operator: the steps in order, and what remains to be done by hand."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gtid.counted_nouns import counted
from gtid_audit.output import printable
from gtid_audit.views.report_parts import QUIET, rest_of
from gtid_audit.views.report_text import show
from repair import Plan, Step
from repair.instruction_steps import steps_of
from repair.render import address_of
from repair.repair_plan import NotPlanned, shown_version
from repair.scripts.steps import Check
from topology.catalogue.findings import ClusterAudit

ROWS_SHOWN_MAX = 20


_SAME_OPTIONS: Final = (
    "An audit with --content or --definitions may find more: plan with the options of the audit."
)


def show_plan(plan: Plan, audit: ClusterAudit, *, files: Sequence[Path]) -> None:
    """Show a plan, and the paths of its files."""
    show(*_parts(plan, audit, files))


def _parts(plan: Plan, audit: ClusterAudit, files: Sequence[Path]) -> Iterator[RenderableType]:
    for unknown in audit.unknown:
        what = f"Not read: {unknown.server}, {unknown.fact}: {unknown.reason}"
        yield Text(printable(what), style="yellow")
    if not audit.findings and audit.unknown:
        yield Text(
            f"No repair was planned for {printable(plan.cluster)}: some facts were not read."
        )
        return
    if not audit.findings:
        yield Text(f"No findings in {printable(plan.cluster)}: there is nothing to repair.")
        yield Text(_SAME_OPTIONS, style=QUIET)
        return
    head = Text(f"Plan {plan.id}", style="bold")
    about = f"{counted(plan.scripts_count, 'step')}, about {plan.estimated_seconds} s"
    yield head.append(f"  {about}", style=QUIET)
    for step in plan.steps:
        yield Text()
        yield from (_check(step, each) for each in step.checks)
        yield _step(step)
    if plan.rows:
        yield Text()
        yield from _rows(plan)
    if plan.warnings:
        yield Text()
        for warning in plan.warnings:
            yield Text(f"! {printable(warning)}", style="yellow")
    if plan.afterwards and plan.steps:
        yield Text()
        yield Text("After these steps an audit will report:", style="bold")
        for left in plan.afterwards:
            what = f"{left.code} {left.name}, {left.about or 'the cluster'}"
            yield Text(printable(f"  {what} ({'new' if left.is_new else 'as now'})"))
    if plan.not_planned:
        yield Text()
        yield Text("Findings without steps:", style="bold")
        for each in plan.not_planned:
            yield from _without_steps(each)
    yield Text()
    yield _where(plan, files)


def _without_steps(left: NotPlanned) -> Iterator[RenderableType]:
    """Show why a finding has no steps, and what to do by hand, a sentence a line."""
    about = f"{printable(left.about)}: " if left.about else ""
    head = Text.assemble((f"{left.code} {left.name}", "bold"), f"  {about}{printable(left.why)}")
    yield Padding(head, (0, 0, 0, 2))
    for text in left.by_hand:
        instruction = steps_of(printable(text))
        way = f"By hand{f', {instruction.name}' if instruction.name else ''}:"
        if len(instruction.steps) == 1:
            yield Padding(Text(f"{way} {instruction.steps[0]}"), (0, 0, 0, 4))
            continue
        yield Padding(Text(way), (0, 0, 0, 4))
        grid = Table.grid(padding=(0, 1, 0, 0))
        for number, step in enumerate(instruction.steps, start=1):
            grid.add_row(Text(f"{number}."), Text(step))
        yield Padding(grid, (0, 0, 0, 6))


def _rows(plan: Plan) -> Iterator[RenderableType]:
    """Show both versions of the first rows that differ."""
    yield Text("Rows that differ:", style="bold")
    grid = Table.grid(padding=(0, 2, 0, 0))
    for row in plan.rows[:ROWS_SHOWN_MAX]:
        versions = (
            f"{name}: {shown_version(version)}"
            for name, version in ((row.source, row.source_row), (row.replica, row.replica_row))
        )
        grid.add_row(
            Text(printable(f"{row.table}, {row.where}")),
            Text("\n".join(map(printable, versions))),
        )
    yield Padding(grid, (0, 0, 0, 2))
    yield from rest_of(len(plan.rows), ROWS_SHOWN_MAX, "rows")


def _check(step: Step, check: Check) -> RenderableType:
    title = f"{step.check_number(check)}. check {check.server} before step {step.number}"
    rows = (
        ("on", f"{check.server} ({address_of(check)}); the check changes nothing"),
        ("why", check.why),
        ("script", step.check_name(check)),
    )
    return _numbered(title, rows)


def _step(step: Step) -> RenderableType:
    rows = (
        ("on", f"{step.server} ({address_of(step)}), about {step.procedure.estimated_seconds} s"),
        ("why", step.why),
        ("risk", step.procedure.risk),
        ("undo", step.procedure.undo),
        ("script", step.file_name),
    )
    return _numbered(f"{step.number}. {step.procedure.title}", rows)


def _numbered(title: str, rows: Iterable[tuple[str, str]]) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(style=QUIET, no_wrap=True)
    for label, text in rows:
        grid.add_row(label, Text(printable(text)))
    outer = Table.grid()
    outer.add_row(Text(printable(title), style="bold"))
    outer.add_row(Padding(grid, (0, 0, 0, 3)))
    return outer


def _where(plan: Plan, files: Sequence[Path]) -> Text:
    if files:
        directory = files[0].parent
        return Text(f"Written to {directory}: read {directory / 'RUNBOOK.md'} first.", style="bold")
    if plan.steps:
        return Text("Not written: --out DIR writes the scripts and the runbook.", style=QUIET)
    return Text("There is nothing to run.", style=QUIET)

"""The texts of a plan: one script for each step, the runbook, and the plan itself as JSON.

1. Pure: plan in, texts out. Same plan, same bytes.
2. A script is plain SQL for the `mysql` client: comments, guards, statements, verification. It
   holds no client commands, no account and no secret.
3. Whatever a server or an operator has named ends up in comments on one line: a name cannot become
   a statement.
"""

import json
import shlex
import textwrap
from itertools import groupby

from repair.plan import DifferingRow, NotChosen, Plan, shown_version
from repair.steps import Step

RUNBOOK = "RUNBOOK.md"
PLAN = "plan.json"
_WIDTH = 96
_TURNS_PER_LINE = 5
# A session may inherit another completion_type or autocommit from the server, and either would keep
# a transaction open where gtid_next must be set (error 1766).
_PROLOGUE = "SET SESSION autocommit = 1, SESSION completion_type = 'NO_CHAIN', @go = 1, @done = 0;"


def render_files(plan: Plan) -> dict[str, str]:
    """Return the plan's files by name, scripts first, in order."""
    files = {step.file_name: render_script(plan, step) for step in plan.steps}
    assert len(files) == len(plan.steps), "the number makes every name different"
    files[RUNBOOK] = render_runbook(plan)
    files[PLAN] = json.dumps(plan.as_json(), indent=2, ensure_ascii=False) + "\n"
    return files


def render_script(plan: Plan, step: Step) -> str:
    """Return the script of one step."""
    header = (
        f"Plan {plan.id}, step {step.number} of {len(plan.steps)}: {step.title}",
        f"Server: {step.server} ({step.host}:{step.port})",
        f"Why: {step.why}",
        f"Findings: {', '.join(step.finding_ids)}",
        f"Risk: {step.risk}",
        *(f"Warning: {warning}" for warning in step.warnings),
        f"Takes: about {step.estimated_seconds} s, assuming {step.estimate_assumes}",
        f"If it stops here: {step.if_stopped}",
        f"Undo: {step.undo}",
        f"Check: {step.check}",
        f"Run: {_command(step)}",
        (
            "It stops at the first line that does not find what the plan assumes, and says what"
            " that is. Running it again is safe."
        ),
    )
    lines = [line for text in header for line in _comment(text)]
    lines += ["", _PROLOGUE, *step.session]
    for guard in step.preconditions:
        lines += ["", *_comment("must hold, or nothing is changed:"), *guard.statements()]
    lines += ["", *_comment("the change"), *_joined(step.statements)]
    for guard in step.verifications:
        lines += ["", *_comment("the goal:"), *guard.statements()]
    done = f"step {step.number} is done"
    lines += ["", f"SELECT IF(@go, '{done}', 'NOT done') AS `plan {plan.id}`;"]
    return "\n".join(lines) + "\n"


def render_runbook(plan: Plan) -> str:
    """Return what a person reads before and while running the scripts."""
    lines = [
        f"# Repair of {_line(plan.cluster)}",
        "",
        (
            f"Plan `{plan.id}`, made from the state of {plan.snapshot_read_at or 'no reading'}:"
            f" {len(plan.steps)} steps, about {plan.estimated_seconds} s."
        ),
        "",
        *_findings(plan),
        *_bullets("## Rows that differ", [_row(each) for each in plan.rows]),
        *_bullets("## Before you begin", plan.warnings),
    ]
    if plan.steps:
        lines += _HOW_TO_RUN
    for step in plan.steps:
        lines += _step_section(step)
    lines += _rest(plan)
    return "\n".join(lines).rstrip() + "\n"


_HOW_TO_RUN = [
    "## How to run it",
    "",
    "One script after the other, in order, with the ordinary `mysql` client and an account that",
    "may do it: SUPER; from 8.0 REPLICATION_SLAVE_ADMIN, REPLICATION_APPLIER,",
    "SYSTEM_VARIABLES_ADMIN and SELECT on performance_schema. Put the account into an option file",
    "(`--defaults-extra-file=…` or `--login-path=…`, first on the line); it does not belong on the",
    "command line. Go on only if a script exits with 0 and prints that its step is done. Do not",
    "use `--force`.",
    "",
    "A script that stops names what it did not find (error 1231 shows the message). You may stop",
    "after any step, run a script again, or audit and plan again: all three lead to the same end.",
    "",
]


def _findings(plan: Plan) -> list[str]:
    lines = ["## What it answers", ""]
    for each in plan.answered:
        steps = ", ".join(map(str, each.steps))
        by = f"steps {steps}" if steps else "nothing left to do after the other steps"
        lines.append(
            f"* **{each.code} {each.name}**, {_line(each.about)}: {each.strategy}, {by}"
            f" (finding `{each.finding_id}`)"
        )
    return [*(lines if plan.answered else [*lines, "Nothing."]), ""]


def _row(row: DifferingRow) -> str:
    """Show both versions of a row on one line."""
    return (
        f"{row.table}, {row.where} (finding `{row.finding_id}`):"
        f" on {row.source} {shown_version(row.source_row)};"
        f" on {row.replica} {shown_version(row.replica_row)}"
    )


def _step_section(step: Step) -> list[str]:
    return [
        f"## Step {step.number}: {_line(step.title)}",
        "",
        "```",
        _command(step),
        "```",
        "",
        f"* Why: {_line(step.why)}",
        f"* Risk: {_line(step.risk)}",
        f"* Takes about {step.estimated_seconds} s, assuming {step.estimate_assumes}.",
        f"* If it stops here: {_line(step.if_stopped)}",
        f"* Check: `{_line(step.check)}`",
        f"* Undo: {_line(step.undo)}",
        *(f"* **Warning:** {_line(warning)}" for warning in step.warnings),
        "",
    ]


def _rest(plan: Plan) -> list[str]:
    not_planned = [
        f"**{each.code} {each.name}**, {_line(each.about) or 'the cluster'}: not planned, because"
        f" {_line(each.why)}."
        + (f" Do this by hand: {_line('; or '.join(each.by_hand))}." if each.by_hand else "")
        for each in plan.not_planned
    ]
    return [
        *_bullets("## Not planned", not_planned),
        *_bullets("## Not chosen", [_not_chosen(plan, each) for each in plan.not_chosen]),
        *_bullets(
            "## What the plan assumes",
            [
                f"{_line(each.server)} ({each.host}:{each.port}, {each.version}), server_uuid"
                f" {each.server_uuid}"
                + "".join(f"; channel {_line(channel)}" for channel in each.channels)
                for each in plan.assumed
            ],
        ),
    ]


def _not_chosen(plan: Plan, each: NotChosen) -> str:
    code = next(item.code for item in plan.answered if item.finding_id == each.finding_id)
    return f"{code} `{each.finding_id}`: {each.strategy}: {_line(each.why)}"


def _bullets(heading: str, items: list[str] | tuple[str, ...]) -> list[str]:
    return [heading, "", *(f"* {_line(item)}" for item in items), ""] if items else []


def _command(step: Step) -> str:
    return (
        f"mysql --host={shlex.quote(_line(step.host))} --port={step.port} --protocol=TCP"
        f" < {step.file_name}"
    )


def _joined(statements: tuple[str, ...]) -> list[str]:
    """Put the turns of a bounded wait, which are all the same, on few lines."""
    lines: list[str] = []
    for statement, group in groupby(statements):
        count = len(list(group))
        while count:
            turns = min(count, _TURNS_PER_LINE)
            lines.append(" ".join([statement] * turns))
            count -= turns
    return lines


def _comment(text: str) -> list[str]:
    """Return comment lines. `-- ` comments end with the line, so a line is all they are given."""
    return [
        f"-- {line}"
        for line in textwrap.wrap(
            _line(text), _WIDTH, subsequent_indent="   ", break_on_hyphens=False
        )
    ]


def _line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())

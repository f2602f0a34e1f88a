"""The texts of a plan: one script for each step, the runbook, and the plan itself as JSON.

1. Pure: plan in, texts out. Same plan, same bytes.
2. A script is plain SQL for the `mysql` client: comments, guards, statements, verification. It
   contains no client commands, no account and no secret.
3. Names from a server or an operator appear in comments on one line, so a name cannot become a
   statement.
"""

import hashlib
import json
import shlex
import textwrap
from collections.abc import Iterator
from itertools import groupby

from gtid.counted_nouns import counted
from repair.instruction_steps import steps_of
from repair.model.actions import AppendPurged, InjectEmpty
from repair.model.strategy_case import SavedContent
from repair.repair_plan import (
    Afterwards,
    ContentShown,
    DifferingRow,
    NotChosen,
    NotPlanned,
    Plan,
    shown_version,
)
from repair.scripts.steps import Check, Step
from repair.sql.guard import CLIENT_READS_UTF8, KEEP_CLIENT_CHARSET

RUNBOOK = "RUNBOOK.md"
PLAN = "plan.json"
_WIDTH = 96
_TURNS_PER_LINE = 5
# A session inherits settings from its client and its server that would change a script:
# * the client's character set, in which channel names would differ (3074), and with which the
#   client itself would split the script differently;
# * sql_mode: a backslash must be literal in FOR CHANNEL, PAD_CHAR_TO_FULL_LENGTH pads the names in
#   performance_schema, HIGH_NOT_PRECEDENCE changes conditions;
# * completion_type and autocommit, which would keep a transaction open where gtid_next must be set
#   (1766);
# * time_zone: a TIMESTAMP is compared as its text in UTC, as it was read.
PROLOGUE = (
    KEEP_CLIENT_CHARSET,
    "SET NAMES utf8mb4;",
    (
        "SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES', SESSION autocommit = 1,"
        " SESSION completion_type = 'NO_CHAIN', SESSION time_zone = '+00:00', @go = 1, @done = 0;"
    ),
    *CLIENT_READS_UTF8.statements(),
)


_AGAIN = "It is safe to run it again."
_AGAIN_AFTER_CHECKS = (
    "Run it, and run it again, only directly after its checks, and not after the last step of the"
    " plan: if another server has written a row as the plan saw it, it would take that back."
)


def render_files(plan: Plan) -> dict[str, str]:
    """Return the plan's files by name, scripts first, in order; without what is streamed."""
    files: dict[str, str] = {}
    for step in plan.steps:
        for check in step.checks:
            files[step.check_name(check)] = render_check(plan, step, check)
        files[step.file_name] = render_script(plan, step)
    assert len(files) == plan.scripts_count, "number and server make every name different"
    files |= {each.file_name: each.text for each in plan.saved if isinstance(each, SavedContent)}
    files[RUNBOOK] = render_runbook(plan)
    document = {**plan.as_json(), "digests": _digests(plan, files)}
    files[PLAN] = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return files


def _digests(plan: Plan, files: dict[str, str]) -> dict[str, str]:
    """Return the SHA-256 of each script, by which `repair apply` notices that one was edited."""
    names = [
        name for step in plan.steps for name in (*map(step.check_name, step.checks), step.file_name)
    ]
    return {name: hashlib.sha256(files[name].encode()).hexdigest() for name in names}


def render_script(plan: Plan, step: Step) -> str:
    """Return the script of one step."""
    header = (
        f"Plan {plan.id}, step {step.number} of {plan.scripts_count}: {step.procedure.title}",
        f"Server: {step.server} ({address_of(step)})",
        f"Why: {step.why}",
        f"Findings: {', '.join(step.finding_ids)}",
        f"Risk: {step.procedure.risk}",
        *(f"Warning: {warning}" for warning in step.procedure.warnings),
        f"Takes: {_duration(step)}",
        f"If it stops here: {step.procedure.if_stopped}",
        f"Undo: {step.procedure.undo}",
        f"Check: {step.procedure.check}",
        f"Privileges: {'; '.join(step.privileges) or 'none'}",
        *(f"First: {_command(check, step.check_name(check))}" for check in step.checks),
        f"Run: {_command(step, step.file_name)}",
        (
            "The script stops at the first condition that is false; the message of error 1231 is"
            f" the reason. {_AGAIN_AFTER_CHECKS if step.may_undo_later_writes else _AGAIN}"
        ),
    )
    lines = [line for text in header for line in _comment(text)]
    lines += ["", *PROLOGUE, *step.procedure.session]
    for guard in step.procedure.preconditions:
        lines += ["", *_comment("must be true, or nothing is changed:"), *guard.statements()]
    lines += ["", *_comment("the change"), *_joined(step.procedure.statements)]
    for guard in step.procedure.verifications:
        lines += ["", *_comment("the goal:"), *guard.statements()]
    done = f"step {step.number} is done"
    lines += ["", f"SELECT IF(@go, '{done}', 'NOT done') AS `plan {plan.id}`;"]
    return "\n".join(lines) + "\n"


def render_check(plan: Plan, step: Step, check: Check) -> str:
    """Return the script that reads another server before a step, and changes nothing."""
    header = (
        (
            f"Plan {plan.id}, step {step.check_number(check)} of {plan.scripts_count}:"
            f" a check before step {step.number}; it changes nothing"
        ),
        f"Server: {check.server} ({address_of(check)})",
        f"Why: {check.why}",
        f"Privileges: {'; '.join(check.privileges) or 'none'}",
        f"Run: {_command(check, step.check_name(check))}",
    )
    lines = [line for text in header for line in _comment(text)]
    lines += ["", *PROLOGUE]
    for guard in check.guards:
        lines += ["", *_comment("must be true:"), *guard.statements()]
    done = f"go on with step {step.number}"
    lines += ["", f"SELECT IF(@go, '{done}', 'do NOT go on') AS `plan {plan.id}`;"]
    return "\n".join(lines) + "\n"


def render_runbook(plan: Plan) -> str:
    """Return what the operator reads before and while running the scripts."""
    steps = counted(plan.scripts_count, "step")
    lines = [
        f"# Repair of {_line(plan.cluster)}",
        "",
        (
            f"Plan `{plan.id}`, made from the state at {plan.snapshot_read_at or 'no reading'}:"
            f" {steps}, about {plan.estimated_seconds} s."
        ),
        "",
        *_findings(plan),
        *_bullets(
            "## Choices made", [f"{key}: {strategy}" for key, strategy in plan.choices.items()]
        ),
        *_bullets("## What the transactions did", [_content(plan, each) for each in plan.contents]),
        *_bullets("## Rows that differ", [_row(each) for each in plan.rows]),
        *_bullets("## Before you begin", plan.warnings),
    ]
    if plan.steps:
        lines += [*_HOW_TO_RUN, *_privileges(plan), *_how_to_stop(plan)]
    for step in plan.steps:
        lines += _step_section(step)
    lines += [*_how_to_go_back(plan), *_record(plan), *_rest(plan)]
    return "\n".join(lines).rstrip() + "\n"


_HOW_TO_RUN = [
    "## How to run it",
    "",
    "Run the scripts in order, one at a time, with the ordinary `mysql` client. Put the account",
    "into an option file (`--defaults-extra-file=…` or `--login-path=…`, first on the line), not",
    "on the command line. Continue only if a script exits with 0 and prints that its step is done.",
    "Run the checks of a step directly before it, and again before you run it again.",
    "Do not use `--force`. A script that stops prints the reason as error 1231.",
    "",
]


def _privileges(plan: Plan) -> list[str]:
    """Return the list of privileges, server by server, exactly as the scripts check them."""
    needed: dict[str, set[str]] = {}
    for step in plan.steps:
        needed.setdefault(step.server, set()).update(step.privileges)
        for check in step.checks:
            needed.setdefault(check.server, set()).update(check.privileges)
    return _bullets(
        "### Privileges",
        [f"{server}: {'; '.join(sorted(each))}" for server, each in sorted(needed.items()) if each],
    )


def _how_to_stop(plan: Plan) -> list[str]:
    again = ["", "To plan again:", "", "```", _line(plan.command), "```"] if plan.command else []
    return [
        "## How to stop",
        "",
        "You may stop after any script, or interrupt one (Ctrl-C). At each step below, the text",
        '"If it stops here" describes the resulting state. Continue in one of three ways, with the',
        "same result: run the next script, run the same script again (its checks first), or plan",
        'again with the same choices. If "If it stops here" asks for one of them, use that one.',
        *again,
        "",
    ]


def _duration(step: Step) -> str:
    procedure = step.procedure
    return f"about {procedure.estimated_seconds} s, assuming {procedure.estimate_assumes}"


def _how_to_go_back(plan: Plan) -> list[str]:
    """Return how each step is undone, the last one first."""
    undone = [
        f"Step {step.number}, on {step.server}: {step.procedure.undo}"
        for step in reversed(plan.steps)
    ]
    return _bullets("## How to go back", undone)


def _record(plan: Plan) -> list[str]:
    """Explain why to keep the directory, if transactions are left out: see accepted.py.

    Without it, an audit would report them as E4, as missing transactions.
    """
    if not any(isinstance(step.effect, InjectEmpty | AppendPurged) for step in plan.steps):
        return []
    return _bullets(
        "## Keep this directory",
        [
            (
                "This directory records which transactions were left out by decision. An audit"
                " reports them as E4 (empty ones only if it compares contents), unless this"
                " directory is accepted: `gtid-audit pair … --accepted DIR`, or `accepted: [DIR]`"
                " under `policy` in the fleet file."
            ),
        ],
    )


def _content(plan: Plan, content: ContentShown) -> str:
    """Return what the transactions of a finding did, as text."""
    saved = [each.file_name for each in plan.saved if content.finding_id in each.file_name]
    return (
        f"finding `{content.finding_id}`, read from {content.read_from or 'no server'}:"
        f" {content.summary}" + "".join(f"; saved as `{name}`" for name in saved)
    )


def _afterwards(each: Afterwards) -> str:
    """Return what the audit will report after the plan, as text."""
    return (
        f"{each.severity} **{each.code} {each.name}**, {each.about or 'the cluster'}"
        f" ({'new' if each.is_new else 'as now'}): {each.explanation}"
    )


def _findings(plan: Plan) -> list[str]:
    lines = ["## Findings that this plan answers", ""]
    for each in plan.answered:
        steps = ", ".join(map(str, each.steps))
        by = f"steps {steps}" if steps else "nothing left to do after the other steps"
        lines.append(
            f"* **{each.code} {each.name}**, {_line(each.about)}: {each.strategy}, {by}"
            f" (finding `{each.finding_id}`)"
        )
    return [*(lines if plan.answered else [*lines, "Nothing."]), ""]


def _row(row: DifferingRow) -> str:
    """Return both versions of a row on one line."""
    return (
        f"{row.table}, {row.where} (finding `{row.finding_id}`):"
        f" on {row.source} {shown_version(row.source_row)};"
        f" on {row.replica} {shown_version(row.replica_row)}"
    )


def _step_section(step: Step) -> list[str]:
    numbers = f"Step {step.number}"
    if step.checks:
        first = step.number - len(step.checks)
        numbers = f"Steps {first} {'and' if len(step.checks) == 1 else 'to'} {step.number}"
    return [
        f"## {numbers}: {_line(step.procedure.title)}",
        "",
        "```",
        *(f"{_command(check, step.check_name(check))}" for check in step.checks),
        _command(step, step.file_name),
        "```",
        "",
        f"* Why: {_line(step.why)}",
        *(
            f"* First, `{step.check_name(check)}`: {_line(check.why)}. It changes nothing."
            for check in step.checks
        ),
        f"* Risk: {_line(step.procedure.risk)}",
        f"* Takes {_duration(step)}.",
        f"* If it stops here: {_line(step.procedure.if_stopped)}",
        f"* Check: `{_line(step.procedure.check)}`",
        f"* Undo: {_line(step.procedure.undo)}",
        *(f"* **Warning:** {_line(warning)}" for warning in step.procedure.warnings),
        "",
    ]


def _rest(plan: Plan) -> list[str]:
    not_planned = [line for each in plan.not_planned for line in _by_hand(each)]
    return [
        *(("## Not planned", "", *not_planned) if not_planned else ()),
        *_bullets(
            "## What the audit will show afterwards", list(map(_afterwards, plan.afterwards))
        ),
        *_bullets("## Not chosen", [_not_chosen(plan, each) for each in plan.not_chosen]),
        *_bullets(
            "## What the plan assumes",
            [
                f"{_line(each.server)} ({_line(each.address)}, {each.version}), server_uuid"
                f" {each.server_uuid}"
                + "".join(f"; channel {_line(channel)}" for channel in each.channels)
                for each in plan.assumed
            ],
        ),
    ]


def _by_hand(left: NotPlanned) -> Iterator[str]:
    """Yield why a finding has no steps, and what to do by hand, a sentence a line."""
    yield (
        f"* **{left.code} {left.name}**, {_line(left.about) or 'the cluster'}: not planned, because"
        f" {_line(left.why)}."
    )
    for way in left.by_hand:
        instruction = steps_of(_line(way))
        head = f"  By hand{f', `{instruction.name}`' if instruction.name else ''}:"
        yield ""
        if len(instruction.steps) == 1:
            yield f"{head} {instruction.steps[0]}"
            continue
        yield head
        yield ""
        yield from (f"  {number}. {step}" for number, step in enumerate(instruction.steps, start=1))
    yield ""


def _not_chosen(plan: Plan, each: NotChosen) -> str:
    code = next(item.code for item in plan.answered if item.finding_id == each.finding_id)
    return f"{code} `{each.finding_id}`: {each.strategy}: {_line(each.why)}"


def _bullets(heading: str, items: list[str] | tuple[str, ...]) -> list[str]:
    return [heading, "", *(f"* {_line(item)}" for item in items), ""] if items else []


def _command(where: Step | Check, file_name: str) -> str:
    """Return the exact command line; a server reached by socket may have no other address."""
    if where.unix_socket is not None:
        # An option file may set another host, with which the client refuses the socket (2047).
        socket = shlex.quote(_line(where.unix_socket))
        way = f"--host=localhost --socket={socket} --protocol=SOCKET"
    else:
        way = f"--host={shlex.quote(_line(where.host))} --port={where.port} --protocol=TCP"
    return f"mysql {way} < {file_name}"


def address_of(where: Step | Check) -> str:
    """Return how to connect to a server, for the operator."""
    return where.unix_socket or f"{where.host}:{where.port}"


def _joined(statements: tuple[str, ...]) -> list[str]:
    """Return the statements with the equal iterations of a bounded wait on few lines."""
    lines: list[str] = []
    for statement, group in groupby(statements):
        count = len(list(group))
        while count:
            turns = min(count, _TURNS_PER_LINE)
            lines.append(" ".join([statement] * turns))
            count -= turns
    return lines


def _comment(text: str) -> list[str]:
    """Return comment lines. A `-- ` comment ends with its line, so each is given one line."""
    return [
        f"-- {line}"
        for line in textwrap.wrap(
            _line(text), _WIDTH, subsequent_indent="   ", break_on_hyphens=False
        )
    ]


def _line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())

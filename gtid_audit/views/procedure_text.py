"""Shows procedures: the scripts before they run, events as they happen, states and lists."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from gtid.counted_nouns import counted
from gtid_audit import exits
from gtid_audit.output import printable, write_json, write_line
from gtid_audit.views.report_parts import QUIET, rest_of
from gtid_audit.views.report_text import moment_of, show
from repair.applying.procedures_applied import (
    AppliedProcedure,
    EventKind,
    ProcedureEvent,
    ProcedureState,
)
from repair.applying.script_reader import ScriptReader
from repair.applying.written_plan import WrittenPlan
from topology.documents.records import time_to_text
from topology.readings.hidden_passwords import without_secrets

PROCEDURES_SHOWN_MAX: Final = 50
_ID_CHARACTERS: Final = 8
_SENT_CHARACTERS_MAX: Final = 160  # of a statement as text; the JSON document has more
_STYLES: Final = {
    ProcedureState.DONE: "green",
    ProcedureState.FAILED: "bold red",
    ProcedureState.STOPPED: "yellow",
    ProcedureState.INTERRUPTED: "yellow",
}


def show_scripts(plan: WrittenPlan, directory: Path, *, done: int) -> None:
    """Show what a plan will run, for the question whether to apply it."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style=QUIET)
    for heading in ("script", "server", "what", "risk"):
        table.add_column(heading)
    for script in plan.scripts[done:]:
        table.add_row(
            script.file_name,
            printable(f"{script.server} ({plan.server(script.server).address})"),
            Text(printable(script.title)),
            Text(printable(script.risk or "none: it changes nothing")),
        )
    left = len(plan.scripts) - done
    head = Text(f"Plan {plan.id} for {printable(plan.cluster)}: ", style="bold")
    head.append(f"{counted(left, 'script')} to run; {directory / 'RUNBOOK.md'} has the details")
    warnings = [Text(f"! {printable(each)}", style="yellow") for each in plan.warnings]
    show(head, table, *warnings)


def show_what_is_sent(plan: WrittenPlan, texts: Mapping[str, str], *, as_json: bool) -> int:
    """Show every statement in the order in which it would be sent. Return the exit status.

    As text, control characters are escaped; the JSON document has them as they are.
    """
    scripts = [
        {
            "script": script.file_name,
            "server": script.server,
            "address": plan.server(script.server).address,
            "statements": _statements(texts[script.file_name]),
        }
        for script in plan.scripts
    ]
    if as_json:
        write_json({"plan": plan.id, "cluster": plan.cluster, "scripts": scripts})
        return exits.OK
    for each in scripts:
        where = printable(f"{each['server']} ({each['address']})")
        write_line(f"-- {each['script']} to {where}")
        for statement in each["statements"]:
            write_line(printable(f"{statement};"))
    return exits.OK


def _statements(text: str) -> list[str]:
    """Return the statements of a script, without passwords and their hashes.

    Its sessions have NO_BACKSLASH_ESCAPES from the start.
    """
    reader, found = ScriptReader(text), []
    while (statement := reader.next(backslash_escapes=False)) is not None:
        found.append(without_secrets(statement))
    return found


def event_text(event: ProcedureEvent) -> str:
    """Return an event as a line for a person."""
    where = f" {event.server}" if event.server else ""
    number = f" {event.script}." if event.script else ""
    text = f"{event.at:%H:%M:%S}{number}{where} {event.kind.value}: {event.text}"
    line = printable(" ".join(text.split()))
    is_long = event.kind is EventKind.SENT and len(line) > _SENT_CHARACTERS_MAX
    return line[:_SENT_CHARACTERS_MAX] + "…" if is_long else line


def event_line(event: ProcedureEvent, procedure_id: str) -> str:
    """Return an event as one line of JSON, for a log."""
    return json.dumps({"procedure": procedure_id, **_event(event)}, ensure_ascii=False)


def show_end(procedure: AppliedProcedure) -> None:
    """Show how a run ended, and how to go on."""
    show(*_end(procedure))


def show_procedure(
    procedure: AppliedProcedure, events: Sequence[ProcedureEvent], *, every: bool
) -> None:
    """Show one procedure, with its events."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style=QUIET, no_wrap=True)
    for label, text in (
        ("plan", f"{procedure.plan_id} for {procedure.cluster}, in {procedure.directory}"),
        ("started", f"{moment_of(procedure.started_at)} by {procedure.operator}"),
        ("ended", _moment(procedure.ended_at)),
        ("scripts", f"{procedure.scripts_done} of {procedure.scripts_total} done"),
    ):
        grid.add_row(label, Text(printable(text)))
    shown = [each for each in events if every or each.kind is not EventKind.SENT]
    lines = [Text(f"  {event_text(each)}") for each in shown]
    show(Text(f"Procedure {procedure.id}", style="bold"), grid, *lines, *_end(procedure))


def _end(procedure: AppliedProcedure) -> list[RenderableType]:
    state = Text(procedure.state.value, style=_STYLES.get(procedure.state, "bold"))
    parts: list[RenderableType] = [
        state.append(f": {printable(procedure.message)}" if procedure.message else "", style="")
    ]
    if procedure.is_stop_requested and procedure.state.is_going_on:
        parts.append(Text("It stops before its next step.", style="yellow"))
    if procedure.state.is_going_on or procedure.verdict is not None:
        return parts
    parts.append(
        Text(
            f"To go on: gtid-audit repair resume {procedure.id}. Or audit and plan again: both lead"
            " to the same end, unless the text above says which one to use."
        )
    )
    return parts


def show_procedures(procedures: Sequence[AppliedProcedure]) -> None:
    """Show the procedures of a journal as a table."""
    if not procedures:
        show(Text("No plan was applied yet.", style=QUIET))
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style=QUIET)
    for heading in ("procedure", "started", "cluster", "plan", "state", "scripts"):
        table.add_column(heading)
    for each in procedures[:PROCEDURES_SHOWN_MAX]:
        table.add_row(
            each.id[:_ID_CHARACTERS],
            moment_of(each.started_at),
            printable(each.cluster),
            each.plan_id,
            Text(each.state.value, style=_STYLES.get(each.state, "bold")),
            f"{each.scripts_done} of {each.scripts_total}",
        )
    show(table, *rest_of(len(procedures), PROCEDURES_SHOWN_MAX, "procedures"))


def procedure_document(
    procedure: AppliedProcedure, events: Sequence[ProcedureEvent]
) -> dict[str, Any]:
    """Return the JSON document of one procedure."""
    return {**_procedure(procedure), "events": [_event(each) for each in events]}


def list_document(procedures: Sequence[AppliedProcedure]) -> dict[str, Any]:
    """Return the JSON document of a journal, without events."""
    return {"procedures": [_procedure(each) for each in procedures]}


def _procedure(procedure: AppliedProcedure) -> dict[str, Any]:
    return {
        "procedure": procedure.id,
        "plan": procedure.plan_id,
        "cluster": procedure.cluster,
        "directory": procedure.directory,
        "servers": list(procedure.servers),
        "operator": procedure.operator,
        "started_at": time_to_text(procedure.started_at),
        "ended_at": None if procedure.ended_at is None else time_to_text(procedure.ended_at),
        "state": procedure.state.value,
        "scripts_total": procedure.scripts_total,
        "scripts_done": procedure.scripts_done,
        "message": procedure.message,
        "verdict": None if procedure.verdict is None else procedure.verdict.value,
        "is_stop_requested": procedure.is_stop_requested,
    }


def _event(event: ProcedureEvent) -> dict[str, Any]:
    return {
        "number": event.number,
        "at": time_to_text(event.at),
        "event": event.kind.value,
        "script": event.script,
        "server": event.server,
        "text": event.text,
    }


def _moment(moment: datetime | None) -> str:
    return "not yet" if moment is None else moment_of(moment)

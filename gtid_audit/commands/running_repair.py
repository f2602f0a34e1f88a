"""Runs a procedure for `apply` and `resume`: in this process, or in the background."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import typer

from gtid_audit import exits
from gtid_audit.exits import UsageProblem
from gtid_audit.output import OutputLost, progress, warn, write_json, write_line
from gtid_audit.tasks.applied_repair import Application, JournalLost, PreparedRepair
from gtid_audit.tasks.background_repair import start_in_background
from gtid_audit.tasks.procedure_journal import status_of
from gtid_audit.views.procedure_text import (
    event_line,
    event_text,
    procedure_document,
    show_end,
)
from repair.applying.procedures_applied import AppliedProcedure, EventKind, ProcedureEvent
from topology.catalogue.findings import Verdict

if TYPE_CHECKING:
    from repair.adapters.journal import Journal
    from repair.applying.written_plan import PlannedScript


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run, and what to write."""

    step: bool
    detach: bool
    json_lines: bool
    as_json: bool
    asks_password: bool


def run(
    journal: "Journal", procedure: AppliedProcedure, repair: PreparedRepair, options: RunOptions
) -> int:
    """Run a procedure, and return the exit status. Raises UsageProblem.

    A run whose journal is lost ends with the status of a script that failed.
    """
    if options.detach:
        return _detach(journal.path, procedure, options)
    is_text = not (options.as_json or options.json_lines)
    if is_text:
        write_line(f"procedure {procedure.id}")
    with progress() as line, _stopping() as is_stopping:

        def say(event: ProcedureEvent) -> None:
            if options.json_lines:
                write_line(event_line(event, procedure.id))
            elif event.kind is EventKind.SENT:
                line.say(f"{event.server}: {' '.join(event.text.split())[:60]}")
            elif is_text:
                line.clear()
                write_line(event_text(event))

        def may_run(script: "PlannedScript") -> bool:
            if not options.step:
                return True
            line.clear()
            try:
                return typer.confirm(f"Run {_with_checks(script, repair)}?", err=True)
            except typer.Abort:  # the terminal is gone, or Ctrl-C: stop here, as for "no"
                return False

        application = Application(
            journal=journal,
            procedure=procedure,
            repair=repair,
            may_run=may_run,
            is_stopping=is_stopping.is_set,
            say=say,
        )
        try:
            ended = application.run()
        except JournalLost as problem:
            warn(
                f"{problem}. The run has ended, and the servers may be between two statements."
                f" Repair the journal, then: gtid-audit repair resume {procedure.id}; or audit and"
                " plan again"
            )
            return exits.status_of(Verdict.CRITICAL)
        except OutputLost as lost:
            warn(
                f"{lost}. The run has ended after the last statement that the journal has. Go on"
                f" with: gtid-audit repair resume {procedure.id}; or audit and plan again"
            )
            return exits.status_of(Verdict.CRITICAL)
    try:
        if options.as_json:
            write_json(procedure_document(ended, journal.events(ended.id)))
        elif is_text:
            show_end(ended)
    except OutputLost as lost:  # the procedure has ended, and its status says how
        warn(f"{lost}. The journal has it: gtid-audit repair state {procedure.id}")
    return status_of(ended)


def _with_checks(script: "PlannedScript", repair: PreparedRepair) -> str:
    """Return a step as text, with the checks that run directly before it."""
    checks = ", ".join(each.file_name for each in repair.plan.checks_of(script))
    first = f", after its checks {checks}" if checks else ""
    return f"{script.file_name} ({script.title}){first}"


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    """Provide an event that the first SIGINT or SIGTERM sets. The second one ends the process."""
    event = threading.Event()

    def stop(number: int, _frame: FrameType | None) -> None:
        if event.is_set():
            raise KeyboardInterrupt
        event.set()
        warn(f"{signal.Signals(number).name}: stops after the present step; once more: at once")

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _detach(journal: Path, procedure: AppliedProcedure, options: RunOptions) -> int:
    """Start a process that resumes the procedure, and print the id."""
    if options.asks_password:
        raise UsageProblem("--detach: a process in the background cannot ask for a password")
    log = start_in_background(journal, procedure)
    if options.as_json or options.json_lines:
        write_json({"procedure": procedure.id, "plan": procedure.plan_id, "log": str(log)})
    else:
        write_line(f"procedure {procedure.id}")
        write_line(f"gtid-audit repair state {procedure.id} shows how far it is")
        write_line(f"its events and errors: {log}")
    return exits.OK

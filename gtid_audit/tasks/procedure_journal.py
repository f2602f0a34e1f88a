"""Asks the journal of applied plans, and turns its errors into the user's."""

import getpass
import os
import socket
from pathlib import Path

from gtid_audit import exits
from gtid_audit.exits import UsageProblem
from repair.adapters.journal import Journal, UnknownProcedure, default_path
from repair.applying.procedures_applied import (
    AppliedProcedure,
    ProcedureEvent,
    ProcedureState,
)
from repair.applying.written_plan import WrittenPlan
from topology.adapters.sqlite_files import UnusableFile
from topology.catalogue.findings import Verdict


def place_of_journal(path: Path | None) -> Path | None:
    """Return where the journal is, whether it exists or not; None without a home directory."""
    try:
        return path or default_path(os.environ, Path.home())
    except RuntimeError:
        return None


def journal_at(path: Path | None) -> Journal:
    """Open or create the journal. Raises UsageProblem."""
    try:
        return Journal.at(path or default_path(os.environ, Path.home()))
    except (UnusableFile, RuntimeError) as problem:  # RuntimeError: no home directory
        raise UsageProblem(str(problem)) from problem


def procedure_of(journal: Journal, beginning: str) -> AppliedProcedure:
    """Return the procedure whose id begins with a text. Raises UsageProblem."""
    try:
        return journal.find(beginning)
    except (UnknownProcedure, UnusableFile) as problem:
        raise UsageProblem(str(problem)) from problem


def procedures_of(journal: Journal) -> tuple[AppliedProcedure, ...]:
    """Return all procedures, the newest first. Raises UsageProblem."""
    try:
        return journal.procedures()
    except UnusableFile as problem:
        raise UsageProblem(str(problem)) from problem


def events_of(journal: Journal, procedure: AppliedProcedure) -> tuple[ProcedureEvent, ...]:
    """Return the events of a procedure, in order. Raises UsageProblem."""
    try:
        return journal.events(procedure.id)
    except UnusableFile as problem:
        raise UsageProblem(str(problem)) from problem


def request_stop(journal: Journal, procedure: AppliedProcedure) -> None:
    """Request that a procedure stops before its next step. Raises UsageProblem."""
    try:
        journal.request_stop(procedure.id)
    except UnusableFile as problem:
        raise UsageProblem(str(problem)) from problem


def begin(
    journal: Journal, plan: WrittenPlan, directory: Path, words: tuple[str, ...]
) -> AppliedProcedure:
    """Record a new procedure for a plan. Raises UsageProblem."""
    try:
        return journal.begin(
            plan_id=plan.id,
            cluster=plan.cluster,
            directory=directory.absolute(),
            servers=words,
            operator=operator(),
            scripts_total=len(plan.scripts),
        )
    except UnusableFile as problem:
        raise UsageProblem(str(problem)) from problem


def operator() -> str:
    """Return who runs this process, as the operating system says."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # an account without a name, as in a container
        user = f"uid {os.getuid()}"
    return f"{user}@{socket.gethostname()}"


def status_of(procedure: AppliedProcedure) -> int:
    """Return the exit status of a procedure: 1 if it is not done (yet), 2 if it failed.

    If it is done: the status of what the audit found that the plan did not announce.
    """
    if procedure.verdict is not None:
        return exits.status_of(procedure.verdict)
    failed = procedure.state is ProcedureState.FAILED
    return exits.status_of(Verdict.CRITICAL if failed else Verdict.WARNING)

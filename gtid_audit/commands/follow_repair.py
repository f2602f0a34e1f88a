"""`repair state`, `repair list` and `repair stop`: what is or was applied."""

from typing import Annotated

import typer

from gtid_audit import exits
from gtid_audit.commands.apply_repair import JournalFile
from gtid_audit.commands.options import AsJson
from gtid_audit.exits import UsageProblem
from gtid_audit.output import write_json, write_line

ProcedureId = Annotated[str, typer.Argument(metavar="ID", help="Or how the id begins.")]


def state(
    *,
    procedure_id: ProcedureId,
    events: Annotated[
        bool, typer.Option("--events", help="Also show every event, with every statement.")
    ] = False,
    journal: JournalFile = None,
    as_json: AsJson = False,
) -> int:
    """Show how far a procedure is, why it ended, and how to go on.

    Exit status: that of `repair apply`. A procedure that is not done is 1, one that failed 2.
    """
    from gtid_audit.tasks.procedure_journal import (
        events_of,
        journal_at,
        procedure_of,
        status_of,
    )
    from gtid_audit.views.procedure_text import procedure_document, show_procedure

    kept = journal_at(journal)
    procedure = procedure_of(kept, procedure_id)
    found = events_of(kept, procedure)
    if as_json:
        write_json(procedure_document(procedure, found))
    else:
        show_procedure(procedure, found, every=events)
    return status_of(procedure)


def list_all(*, journal: JournalFile = None, as_json: AsJson = False) -> int:
    """List the procedures of the journal, the newest first."""
    from gtid_audit.tasks.procedure_journal import journal_at, procedures_of
    from gtid_audit.views.procedure_text import list_document, show_procedures

    found = procedures_of(journal_at(journal))
    if as_json:
        write_json(list_document(found))
    else:
        show_procedures(found)
    return exits.OK


def stop(*, procedure_id: ProcedureId, journal: JournalFile = None, as_json: AsJson = False) -> int:
    """Request that a procedure stops before its next step."""
    from gtid_audit.tasks.procedure_journal import journal_at, procedure_of, request_stop

    kept = journal_at(journal)
    procedure = procedure_of(kept, procedure_id)
    if not procedure.state.is_going_on:
        raise UsageProblem(
            f"procedure {procedure.id} is {procedure.state.value}: nothing is running"
        )
    request_stop(kept, procedure)
    if as_json:
        write_json({"procedure": procedure.id, "is_stop_requested": True})
    else:
        write_line(f"procedure {procedure.id} will stop before its next step")
    return exits.OK

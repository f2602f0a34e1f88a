"""`gtid-audit binlog show`: shows the contents of transactions, and SQL to redo or undo them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gtid.counted_nouns import counted
from gtid_audit.commands.log_options import LogSources, TrackedServer, WantedSet
from gtid_audit.commands.options import AsJson, AskPassword, ServerSeconds, seconds_of
from gtid_audit.exits import UsageProblem
from gtid_audit.operands.logs_from_operands import (
    SECONDS_DEFAULT,
    one_source,
    read_log_operands,
    said_if_unread,
)
from gtid_audit.operands.sets_from_operands import read_wanted
from gtid_audit.output import progress

if TYPE_CHECKING:
    from gtid_audit.tasks.requested_transactions import RequestedTransactions

TRANSACTIONS_SHOWN_MAX: Final = 50

Redo = Annotated[bool, typer.Option("--redo", help="Write SQL that redoes the transactions.")]
Undo = Annotated[bool, typer.Option("--undo", help="Write SQL that undoes the transactions.")]
KeepGtids = Annotated[
    bool, typer.Option("--keep-gtids", help="Redo with the same GTIDs, not with new ones.")
]
Definitions = Annotated[
    list[Path] | None,
    typer.Option("--definitions", metavar="FILE", help="CREATE TABLE statements, for old logs."),
]
Store = Annotated[
    str | None,
    typer.Option("--store", metavar="FILE", help="Definitions of `binlog schema follow`."),
]
SchemaFrom = Annotated[
    str | None,
    typer.Option(
        "--schema-from", metavar="DSN", help="Use the tables of this server as they are now."
    ),
]


def show(
    wanted: WantedSet,
    sources: LogSources,
    *,
    redo: Redo = False,
    undo: Undo = False,
    keep_gtids: KeepGtids = False,
    definitions: Definitions = None,
    store: Store = None,
    server: TrackedServer = None,
    schema_from: SchemaFrom = None,
    as_json: AsJson = False,
    ask_password: AskPassword = False,
    timeout: ServerSeconds = None,
) -> int:
    """Show the content of the transactions in SET, or write SQL for the mysql client.

    Exit status: 0 all were read; 1 some are not in the logs; 3 something could not be read, or
    could not be written as SQL.
    """
    if redo and undo:
        raise UsageProblem("use --redo or --undo, not both")
    if keep_gtids and not redo:
        raise UsageProblem("--keep-gtids: only with --redo")
    gtids = read_wanted(wanted)
    seconds = seconds_of(timeout) or SECONDS_DEFAULT
    source = one_source(read_log_operands(sources, ask=ask_password))
    if server is not None and store is None:
        raise UsageProblem("--server: only with --store")
    from gtid_audit.operands.definition_options import DefinitionOptions, opened_definitions
    from gtid_audit.tasks.requested_transactions import RequestedTransactions

    options = DefinitionOptions(tuple(definitions or ()), store, server, schema_from)
    with opened_definitions(options, source, seconds, ask=ask_password) as known:
        run = RequestedTransactions(gtids, source, seconds, known)
        if not (redo or undo):
            return said_if_unread(lambda: _show(run, as_json=as_json))
        from gtid_audit.tasks.replay_output import write_script

        return said_if_unread(
            lambda: write_script(run, is_undo=undo, keeps_gtids=keep_gtids, as_json=as_json)
        )


def _show(run: RequestedTransactions, *, as_json: bool) -> int:
    if as_json:
        from gtid_audit.output import write_streamed_json
        from gtid_audit.views.transactions_json import show_document

        with progress("reading logs"):
            write_streamed_json(
                show_document(run.wanted, run.contents(), lambda: run.missing, lambda: run.misfits)
            )
        return run.status()
    from rich.text import Text

    from gtid_audit.views.report_parts import QUIET
    from gtid_audit.views.report_text import show as show_parts
    from gtid_audit.views.transactions_text import transaction_parts

    notes: set[str] = set()
    hidden = 0
    with progress("reading logs"):
        for number, (group, items) in enumerate(run.contents()):
            if number >= TRANSACTIONS_SHOWN_MAX:
                hidden += 1
                continue
            for part in transaction_parts(group, items, notes=notes):
                show_parts(part)
            show_parts(Text())
    if hidden:
        more = counted(hidden, "more transaction")
        show_parts(Text(f"… and {more}; --json has all", style=QUIET))
    return run.status()

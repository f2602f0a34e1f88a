"""The command line: registers the commands, and ends every run with an exit status.

1. Commands are thin: they read the arguments, call the core, and return an exit status.
2. Every run ends in `main`; exits.py defines the numbers. Only verdicts end in 0 to 3. An error on
   the command line is 64, a defect of ours 70.
3. This module, and the top level of the command modules, import nothing expensive: `pair` must
   answer within half a second.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from gtid_audit import __version__, exits
from gtid_audit.commands import (
    audit,
    audit_pair,
    binlog,
    explain,
    handshake,
    history,
    locks,
    monitoring,
    reconcile,
    repair,
    serve,
    server_schemas,
    sets,
    spark,
    store_snapshot,
    trace,
)
from gtid_audit.commands.fast_start import FastCommand, FastGroup
from gtid_audit.output import ReaderGone, speak_utf8, warn, without_credentials, write_line

# Typer would import Rich for help and errors. Plain output needs no import.
PLAIN: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
    "cls": FastGroup,
}


_NO_COMMAND = "Missing command."


@dataclass(slots=True)
class _Run:
    """The options before the command."""

    debug: bool = False


app = typer.Typer(
    name="gtid-audit",
    help="Finds where MySQL servers disagree about GTIDs, proves why, and writes the repair.",
    epilog="Exit status: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN; 64 wrong usage, 70 a defect.",
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    **PLAIN,
)


def _show_version(value: bool) -> None:
    if value:
        write_line(f"gtid-audit {__version__}")
        raise typer.Exit(exits.OK)


@app.callback()
def _options(
    context: typer.Context,
    *,
    version: Annotated[  # noqa: ARG001 - its callback handles it
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a defect.")] = False,
) -> None:
    if isinstance(context.obj, _Run):
        context.obj.debug = debug


app.add_typer(sets.commands(PLAIN), name="sets")
app.command("pair", cls=FastCommand)(audit_pair.pair)
app.command("audit")(audit.audit)
app.command("snapshot")(store_snapshot.snapshot)
app.command("handshake")(handshake.handshake)
app.command("history", cls=FastCommand)(history.history)
app.command("locks")(locks.locks)
app.command("trace", cls=FastCommand)(trace.trace)
app.add_typer(server_schemas.commands(PLAIN), name="schema")
app.command("explain", cls=FastCommand)(explain.explain)
app.add_typer(binlog.commands(PLAIN), name="binlog")
app.add_typer(repair.commands(PLAIN), name="repair")
app.command("reconcile")(reconcile.reconcile)
app.command("serve")(serve.serve)
app.command("monitoring", cls=FastCommand)(monitoring.monitoring)
app.add_typer(spark.commands(PLAIN), name="spark")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and end the process with its exit status."""
    speak_utf8()
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status. Report errors on standard error."""
    options = _Run()
    command = typer.main.get_command(app)
    try:
        status = command.main(
            args=list(arguments), prog_name="gtid-audit", standalone_mode=False, obj=options
        )
    except typer.TyperException as mistake:
        return _say_usage(mistake)
    except exits.USAGE_PROBLEMS as problem:
        for line in problem.problems:
            warn(without_credentials(line))
        return exits.USAGE
    except ReaderGone:
        return exits.BROKEN_PIPE
    except (KeyboardInterrupt, typer.Abort):
        warn("interrupted")
        return exits.INTERRUPTED
    except Exception as defect:  # noqa: BLE001 - every other exception is a defect; see exits.py
        return _say_defect(defect, debug=options.debug)
    return status if isinstance(status, int) else exits.OK


def _say_usage(mistake: typer.TyperException) -> int:
    context = getattr(mistake, "ctx", None)
    message = getattr(mistake, "format_message", mistake.__str__)()
    if context is not None and message == _NO_COMMAND:
        sys.stderr.write(context.get_help() + "\n")
        return exits.USAGE
    warn(without_credentials(message))
    if context is not None:
        sys.stderr.write(f"{context.get_usage()}\nTry '{context.command_path} --help'.\n")
    return exits.USAGE


def _say_defect(defect: Exception, *, debug: bool) -> int:
    if debug:
        import traceback

        text = "".join(traceback.format_exception(defect))
        sys.stderr.write(without_credentials(text))
    text = f"{type(defect).__name__}: {without_credentials(str(defect))}"
    hint = "" if debug else "; run 'gtid-audit --debug …' for the traceback"
    warn(f"a defect of gtid-audit, not of your servers: {text}{hint}")
    return exits.DEFECT

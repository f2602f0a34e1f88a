"""The command line: registers the commands, and ends every run with an exit status.

1. Commands are thin: they read the arguments, call the core, and return an exit status.
2. Every run ends in `main`; exits.py defines the numbers. Only verdicts end in 0 to 3. An error on
   the command line is 64, a defect of ours 70.
3. This module, and the top level of the command modules, import nothing expensive: `pair` must
   answer within half a second.
"""

import atexit
import gc
import sys
from collections.abc import Iterable, Sequence
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
    manual,
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
from gtid_audit.commands.plain_commands import PlainCommand, PlainGroup, environment_notes
from gtid_audit.global_options import GLOBAL_OPTIONS
from gtid_audit.optional_packages import AUDIT_NEEDS, NEEDS_COLUMNS, NEEDS_SERVE
from gtid_audit.output import (
    OutputLost,
    ReaderGone,
    speak_utf8,
    warn,
    without_credentials,
    write_line,
    written_answer,
)

# Typer would import Rich for help and errors. Plain output needs no import.
PLAIN: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
    "cls": PlainGroup,
}


_NO_COMMAND = "Missing command."
PROGRAM = "gtid-audit"
HELP_COLUMNS = 100  # or those of the terminal, if it has fewer


app = typer.Typer(
    name="gtid-audit",
    help="Finds where MySQL servers disagree about GTIDs, proves why, and writes the repair.",
    epilog="Exit status: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN; 64 wrong usage, 70 a defect."
    " Every option can be set in the environment: --timeout by GTID_AUDIT_TIMEOUT, or by"
    " GTID_AUDIT_PAIR_TIMEOUT for `pair` alone.",
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": HELP_COLUMNS},
    **(PLAIN | {"add_completion": True}),
)


def _show_version(value: bool) -> None:
    if value:
        write_line(f"gtid-audit {__version__}")
        raise typer.Exit(exits.OK)


def _be_quiet(value: bool) -> None:
    GLOBAL_OPTIONS.is_quiet |= value


def _use_no_color(value: bool) -> None:
    GLOBAL_OPTIONS.has_color &= not value


def _debug(value: bool) -> None:
    GLOBAL_OPTIONS.is_debug |= value


# The callbacks of the options do all the work: they also run for an option after the command.
@app.callback()
def _options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", callback=_show_version, is_eager=True, help="Show the version."
        ),
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            callback=_be_quiet,
            expose_value=False,
            help="Show no progress and no hints, and of a verdict only its line.",
        ),
    ] = False,
    no_color: Annotated[
        bool,
        typer.Option(
            "--no-color",
            callback=_use_no_color,
            expose_value=False,
            help="Write no colors, like NO_COLOR in the environment.",
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug",
            callback=_debug,
            expose_value=False,
            help="Show the traceback of a defect.",
        ),
    ] = False,
) -> None:
    pass


app.add_typer(sets.commands(PLAIN), name="sets")
app.command("pair", cls=PlainCommand)(audit_pair.pair)
app.command("audit", cls=PlainCommand, epilog=AUDIT_NEEDS)(audit.audit)
app.command("snapshot", cls=PlainCommand, epilog=NEEDS_COLUMNS)(store_snapshot.snapshot)
app.command("handshake", cls=PlainCommand)(handshake.handshake)
app.command("history", cls=PlainCommand)(history.history)
app.command("locks", cls=PlainCommand)(locks.locks)
app.command("trace", cls=PlainCommand)(trace.trace)
app.add_typer(server_schemas.commands(PLAIN), name="schema")
app.command("explain", cls=PlainCommand)(explain.explain)
app.add_typer(binlog.commands(PLAIN), name="binlog")
app.add_typer(repair.commands(PLAIN), name="repair")
app.command("reconcile", cls=PlainCommand)(reconcile.reconcile)
app.command("serve", cls=PlainCommand, epilog=NEEDS_SERVE)(serve.serve)
app.command("monitoring", cls=PlainCommand)(monitoring.monitoring)
app.add_typer(spark.commands(PLAIN), name="spark")
app.command("completion", cls=PlainCommand)(manual.completion)
app.command("man", cls=PlainCommand)(manual.man)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and end the process with its exit status."""
    speak_utf8()
    # The interpreter would search all objects for cycles at its end, which takes 30 ms.
    atexit.register(gc.freeze)
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status. Report errors on standard error."""
    GLOBAL_OPTIONS.reset()
    command = typer.main.get_command(app)
    try:
        status = command.main(args=list(arguments), prog_name=PROGRAM, standalone_mode=False)
    except typer.TyperException as mistake:
        return _say_usage(mistake)
    except exits.USAGE_PROBLEMS as problem:
        return _warn_of([*problem.problems, *getattr(problem, "__notes__", ())])
    except ReaderGone:
        return exits.BROKEN_PIPE
    except OutputLost as lost:
        return _warn_of([str(lost)])
    except (KeyboardInterrupt, typer.Abort):
        warn("interrupted")
        return exits.INTERRUPTED
    except Exception as defect:  # noqa: BLE001 - every other exception is a defect; see exits.py
        output = _lost_output()  # Typer writes the help by itself
        return _say_defect(defect) if output is None else _warn_of([str(output)])
    return status if isinstance(status, int) else exits.OK


def _lost_output() -> OutputLost | None:
    """Return why what waits for standard output cannot be written; None if it can."""
    try:
        with written_answer():
            sys.stdout.write("")  # without a buffer: what is left of the last text
            sys.stdout.flush()
    except OutputLost as lost:
        return lost
    return None


def _warn_of(lines: Iterable[str]) -> int:
    for line in lines:
        warn(without_credentials(line))
    return exits.USAGE


def _say_usage(mistake: typer.TyperException) -> int:
    context = getattr(mistake, "ctx", None)
    message = getattr(mistake, "format_message", mistake.__str__)()
    if context is not None and message == _NO_COMMAND:
        sys.stderr.write(context.get_help() + "\n")
        return exits.USAGE
    _warn_of([message, *(environment_notes(context) if context is not None else ())])
    if context is not None:
        sys.stderr.write(f"{context.get_usage()}\nTry '{context.command_path} --help'.\n")
    return exits.USAGE


def _say_defect(defect: Exception) -> int:
    debug = GLOBAL_OPTIONS.is_debug
    if debug:
        import traceback

        text = "".join(traceback.format_exception(defect))
        sys.stderr.write(without_credentials(text))
    text = f"{type(defect).__name__}: {without_credentials(str(defect))}"
    hint = "" if debug else "; run 'gtid-audit --debug …' for the traceback"
    warn(f"a defect of gtid-audit, not of your servers: {text}{hint}")
    return exits.DEFECT

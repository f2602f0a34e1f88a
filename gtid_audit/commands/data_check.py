"""`repair check-data`: whether the rows of two servers are the same."""

from pathlib import Path
from typing import Annotated

import typer

from gtid_audit import exits
from gtid_audit.commands.options import AsJson, AskPassword, ServerSeconds, seconds_of
from gtid_audit.output import progress, write_json

_Server = Annotated[
    str, typer.Argument(metavar="DSN_A", help="mysql://user@host:port/?option=value")
]
_Other = Annotated[str, typer.Argument(metavar="DSN_B", help="The other server, in the same form.")]
_Tables = Annotated[
    list[str] | None,
    typer.Option("--table", metavar="DB.TABLE", help="Only this table. Repeatable."),
]
_Databases = Annotated[
    list[str] | None,
    typer.Option("--database", metavar="NAME", help="Only the tables of this. Repeatable."),
]
_Record = Annotated[
    Path | None,
    typer.Option(
        "--record",
        metavar="FILE",
        help="Record each part of a table there, and go on with what it has.",
    ),
]
_AsTheyAre = Annotated[
    bool,
    typer.Option(
        "--as-they-are",
        help="Do not wait for what one of them has not executed: what it did differs.",
    ),
]


def check_data(
    dsn_a: _Server,
    dsn_b: _Other,
    *,
    tables: _Tables = None,
    databases: _Databases = None,
    record: _Record = None,
    pause: Annotated[
        float,
        typer.Option(
            "--pause", metavar="SECONDS", min=0.0, help="Seconds to wait after each part."
        ),
    ] = 0.0,
    threads: Annotated[
        int,
        typer.Option(
            "--threads-running-max",
            metavar="NUMBER",
            min=1,
            help="Wait while one of the servers has more running threads.",
        ),
    ] = 25,
    behind: Annotated[
        float,
        typer.Option(
            "--behind-max",
            metavar="SECONDS",
            min=0.0,
            help="How many seconds to wait for a replica that is behind.",
        ),
    ] = 60.0,
    as_they_are: _AsTheyAre = False,
    as_json: AsJson = False,
    ask_password: AskPassword = False,
    timeout: ServerSeconds = None,
) -> int:
    """Compare the rows of two servers by checksums, in parts, while they are in use.

    It only reads, and locks nothing. --timeout is the limit for one part.

    Exit status: 0 all rows are the same; 2 rows differ; 3 something was not compared.
    """
    from gtid_audit.tasks.checked_rows import checked_rows
    from gtid_audit.views.checked_data_text import checked_data_document, show_checked_data
    from repair.data_check.check_limits import STATEMENT_SECONDS_MAX, CheckLimits

    if as_they_are and record is not None:
        raise exits.UsageProblem("--as-they-are and --record exclude each other")
    limits = CheckLimits(
        statement_seconds_max=seconds_of(timeout) or STATEMENT_SECONDS_MAX,
        behind_seconds_max=behind,
        threads_running_max=threads,
        pause_seconds=pause,
        as_they_are=as_they_are,
    )
    with progress() as line:
        found = checked_rows(
            (dsn_a, dsn_b),
            tables=tables or (),
            databases=databases or (),
            limits=limits,
            record=record,
            ask=ask_password,
            say=line.say,
        )
    if as_json:
        write_json(checked_data_document(found))
    else:
        show_checked_data(found)
    return exits.status_of(found.verdict)

"""Options that several commands share."""

from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from gtid_audit.exits import UsageProblem
from gtid_audit.output_form import OutputForm
from topology.documents.run_record import age_from_text

_SECONDS_MIN = 0.1
_SECONDS_MAX = 3600


class EngineChoice(Enum):
    """The values of --engine."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


Dsns: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="DSN", help="Servers: user@host:port or mysql://user@host:port/?option=value"
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Write one JSON document.")]
Format: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="text, json (one document), jsonl (one object per line), plugin (one line for Nagios"
        " or Icinga), svg (a picture), html (a page).",
        autocompletion=lambda: [each.value for each in OutputForm],
    ),
]
Watch: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--watch",
        metavar="SECONDS",
        help="Audit again SECONDS after each audit, until Ctrl-C.",
    ),
]
AskPassword: TypeAlias = Annotated[
    bool, typer.Option("--ask-password", help="Ask for the password on the terminal.")
]
FleetFile: TypeAlias = Annotated[
    Path, typer.Option("--fleet", metavar="FILE", help="The fleet file.")
]
OptionalFleetFile: TypeAlias = Annotated[
    Path | None, typer.Option("--fleet", metavar="FILE", help="The fleet file.")
]
OneCluster: TypeAlias = Annotated[
    str | None, typer.Option("--cluster", metavar="NAME", help="Only this cluster.")
]
ServerSeconds: TypeAlias = Annotated[
    str | None,
    typer.Option("--timeout", metavar="SECONDS", help="Time limit for one reading of a server."),
]
CompareContent: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--content/--no-content",
        help="Compare the content of transactions around every restart, and of the newest 10,000"
        " of each UUID; or compare nothing. Default: around restarts within the last day, and with"
        " --history or --out since the last audit.",
    ),
]
CompareDefinitions: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--definitions/--no-definitions",
        help="Compare the definitions of tables and other objects, and the DDL that servers are"
        " apart by (S1, S2). Default: as the policy of the fleet file says, else not.",
    ),
]
KeepHistory: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--history",
        metavar="FILE",
        help="Record the findings in this file, show since when each exists, and keep there"
        " what the next audit must compare again.",
    ),
]
AllowedUuids: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-uuid",
        metavar="UUID",
        help="Allow extra transactions of this UUID. Repeatable.",
    ),
]
Accepted: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--accepted",
        metavar="DIR",
        help="Directory of a plan that was run. Transactions that it left empty are accepted."
        " Repeatable.",
    ),
]
MaxAge: TypeAlias = Annotated[
    str,
    typer.Option(
        "--max-age",
        metavar="AGE",
        help="Maximum age of a stored run: 24h, 90m, 7d, none. An older run is UNKNOWN.",
    ),
]
EngineOption: TypeAlias = Annotated[
    EngineChoice, typer.Option("--engine", help="auto: spark for very large fleets, else local.")
]


def max_age_of(text: str) -> timedelta | None:
    """Parse --max-age; None is any age. Raises UsageProblem."""
    try:
        return age_from_text(text)
    except ValueError as problem:
        raise UsageProblem(f"--max-age: {problem}") from None


def seconds_of(text: str | None) -> float | None:
    """Parse --timeout: from 0.1 to 3600 seconds. Raises UsageProblem."""
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not _SECONDS_MIN <= seconds <= _SECONDS_MAX:  # also rejects nan
        raise UsageProblem(f"--timeout: expected {_SECONDS_MIN} to {_SECONDS_MAX} seconds")
    return seconds

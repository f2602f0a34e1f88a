"""Arguments that several log commands share."""

from typing import Annotated, TypeAlias

import typer

WantedSet: TypeAlias = Annotated[
    str, typer.Argument(metavar="SET", help="GTID set: text, @file, or - for standard input.")
]
LogSources: TypeAlias = Annotated[
    list[str],
    typer.Argument(metavar="SOURCE", help="Files, a directory, a glob; or a server's DSN."),
]
TrackedServer: TypeAlias = Annotated[
    str | None,
    typer.Option("--server", metavar="UUID", help="The server, if the store has several."),
]

"""`gtid-audit spark`: queries of stored runs that need Spark."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gtid_audit import exits
from gtid_audit.commands import spark_submit
from gtid_audit.commands.options import AsJson
from gtid_audit.commands.plain_commands import PlainCommand
from gtid_audit.exits import UsageProblem
from gtid_audit.optional_packages import NEEDS_SPARK, require_parquet, require_spark
from gtid_audit.output import progress, write


def commands(settings: dict[str, Any]) -> typer.Typer:
    """Return the command family."""
    family = typer.Typer(help="Query the stored runs of a fleet with Spark.", **settings)

    # Without a callback, Typer turns a family of one command into that command.
    @family.callback()
    def _family() -> None:
        """Query the stored runs of a fleet with Spark."""

    family.command("trends", cls=PlainCommand, epilog=NEEDS_SPARK)(trends)
    spark_submit.register(family)
    return family


def trends(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Snapshots that `snapshot --out` stored.")
    ],
    *,
    results: Annotated[
        Path | None,
        typer.Option("--results", metavar="DIR", help="Results of `audit --out`; default: DIR."),
    ] = None,
    runs: Annotated[
        int, typer.Option("--runs", metavar="N", min=1, max=1000, help="Use the newest N runs.")
    ] = 30,
    intervals_max: Annotated[
        int, typer.Option(metavar="N", min=1, help="A set with N intervals or more is fragmented.")
    ] = 10_000,
    quiet_runs: Annotated[
        int, typer.Option(metavar="N", min=2, help="A UUID is dead if it did not grow in N runs.")
    ] = 7,
    as_json: AsJson = False,
) -> int:
    """Show trends over the stored runs: fragmentation, dead UUIDs, findings over time."""
    require_parquet()
    require_spark()
    from spark_audit.adapters.session import JavaMissing, SparkNotStarted, local_session
    from spark_audit.adapters.trends import trends_of
    from spark_audit.trends_frames import TrendPolicy
    from topology.adapters.stored_runs import NoSnapshots

    policy = TrendPolicy(intervals_max=intervals_max, quiet_runs=quiet_runs)
    where = None if results is None else str(results)
    try:
        with (
            progress("Java and Spark start") as line,
            local_session() as session,
            trends_of(
                session, str(directory), results=where, policy=policy, runs_max=runs
            ) as found,
        ):
            line.clear()
            if as_json:
                from gtid_audit.views.trends_text import trend_document

                for piece in trend_document(found):
                    write(piece)
            else:
                from gtid_audit.views.trends_text import show_trends

                show_trends(found, policy=policy)
    except (NoSnapshots, JavaMissing, SparkNotStarted) as problem:
        raise UsageProblem(str(problem)) from problem
    return exits.OK

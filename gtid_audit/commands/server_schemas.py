"""`gtid-audit schema`: the schema versions of servers, and how their definitions differ."""

from typing import Annotated, Any, Final

import typer

from gtid_audit import exits
from gtid_audit.commands.options import (
    AsJson,
    AskPassword,
    Dsns,
    Format,
    OneCluster,
    OptionalFleetFile,
    ServerSeconds,
    seconds_of,
)
from gtid_audit.commands.plain_commands import PlainCommand
from gtid_audit.optional_packages import DDL_NEEDS_COLUMNS, NEEDS_COLUMNS, require_columns
from gtid_audit.output import hint, progress
from gtid_audit.output_form import form_of

Schemas = Annotated[
    list[str] | None,
    typer.Option("--schema", metavar="NAME", help="Only this schema. Repeatable."),
]
_SERVERS_MIN: Final = 2


def commands(settings: dict[str, Any]) -> typer.Typer:
    """Return the command family."""
    family = typer.Typer(no_args_is_help=False, **settings)
    family.callback()(_schema)
    family.command("versions", cls=PlainCommand, epilog=NEEDS_COLUMNS)(versions)
    family.command("drift", cls=PlainCommand, epilog=DDL_NEEDS_COLUMNS)(drift)
    return family


def _schema() -> None:
    """Compare what servers have: versions of their schemas, and definitions."""


def versions(
    dsns: Dsns = None,
    *,
    fleet: OptionalFleetFile = None,
    cluster: OneCluster = None,
    schema: Schemas = None,
    as_json: AsJson = False,
    form: Format = None,
    ask_password: AskPassword = False,
    timeout: ServerSeconds = None,
) -> int:
    """Show the DDL that each server has received and applied, and a digest of definitions.

    Exit status: 0 all definitions are alike, and no server is more than one DDL transaction behind;
    1 they differ; 3 something could not be read, or the account may not see all definitions.
    """
    from gtid_audit.operands.clusters_of_operands import clusters_of_operands
    from gtid_audit.tasks.definition_servers import DEFINITION_SECONDS_MAX
    from gtid_audit.tasks.version_reading import read_versions
    from gtid_audit.views.verdict_answers import write_answer
    from gtid_audit.views.versions_text import versions_answer

    chosen_form = form_of(form, as_json=as_json)
    require_columns()
    seconds = seconds_of(timeout)
    chosen = clusters_of_operands(
        dsns or [], fleet=fleet, cluster=cluster, ask=ask_password, seconds_max=seconds
    )
    with progress() as line:
        found = [
            (
                each.name,
                read_versions(
                    each,
                    schema or (),
                    seconds_max=seconds or DEFINITION_SECONDS_MAX,
                    say=line.say,
                ),
            )
            for each in chosen
        ]
    operands = [*(dsns or ()), *(f"--schema={each}" for each in schema or ())]
    operands += [f"--fleet={fleet}"] if fleet is not None else []
    operands += [f"--cluster={cluster}"] if cluster is not None else []
    operands += ["--ask-password"] if ask_password else []
    return write_answer(versions_answer(found, operands), chosen_form)


def drift(
    dsns: Dsns = None,
    *,
    fleet: OptionalFleetFile = None,
    cluster: OneCluster = None,
    schema: Schemas = None,
    as_json: AsJson = False,
    form: Format = None,
    ask_password: AskPassword = False,
    timeout: ServerSeconds = None,
) -> int:
    """Compare the definitions of every replica with those of its source.

    Exit status: 0 no difference, or only those that a replication filter explains; 1 definitions
    differ; 2 rows of the source stop an applier, or get wrong without an error; 3 something could
    not be read, or the account may not see all definitions.
    """
    from gtid_audit.operands.clusters_of_operands import clusters_of_operands
    from gtid_audit.tasks.definition_servers import DEFINITION_SECONDS_MAX
    from gtid_audit.tasks.drift_directions import compare_cluster
    from gtid_audit.views.drift_text import drift_answer
    from gtid_audit.views.verdict_answers import write_answer

    chosen_form = form_of(form, as_json=as_json)
    if dsns is not None and len(dsns) < _SERVERS_MIN:
        raise exits.UsageProblem("schema drift compares servers: give at least two DSNs")
    seconds = seconds_of(timeout)
    chosen = clusters_of_operands(
        dsns or [], fleet=fleet, cluster=cluster, ask=ask_password, seconds_max=seconds
    )
    for each in chosen:
        if len(each.targets) < _SERVERS_MIN:
            hint(f"cluster {each.name!r} has one server: nothing to compare")
    with progress() as line:
        found = [
            compare_cluster(
                each,
                schema or (),
                seconds_max=seconds or DEFINITION_SECONDS_MAX,
                say=line.say,
            )
            for each in chosen
        ]
    return write_answer(drift_answer(found), chosen_form)

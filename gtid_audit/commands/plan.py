"""`repair plan`: reads and evaluates servers, and writes the repair. It changes no server."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gtid_audit.commands.completing import strategies
from gtid_audit.commands.options import (
    Accepted,
    AllowedUuids,
    AsJson,
    AskPassword,
    CompareContent,
    CompareDefinitions,
    OneCluster,
    OptionalFleetFile,
    ServerSeconds,
    seconds_of,
)
from gtid_audit.exits import UsageProblem
from gtid_audit.output import progress, warn, write_json

if TYPE_CHECKING:
    from gtid_audit.operands.cluster_to_read import ClusterToRead
    from topology.policy import Policy

Servers = Annotated[
    list[str] | None,
    typer.Argument(metavar="DSN", help="Two or more servers, as for audit."),
]
TwoServers = Annotated[
    tuple[str, str] | None,
    typer.Option("--pair", metavar="DSN_A DSN_B", help="Plan repairs of these two servers."),
]
ChosenStrategies = Annotated[
    list[str] | None,
    typer.Option(
        "--strategy",
        metavar="CODE_OR_ID=NAME",
        help="Choose a repair strategy.",
        autocompletion=strategies,
    ),
]
OneTable = Annotated[
    str | None,
    typer.Option("--table", metavar="SCHEMA.TABLE", help="Read definitions, of this table only."),
]
OneDatabase = Annotated[
    str | None,
    typer.Option("--database", metavar="NAME", help="Read definitions, of this schema only."),
]


def plan(
    dsns: Servers = None,
    *,
    pair: TwoServers = None,
    fleet: OptionalFleetFile = None,
    cluster: OneCluster = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write scripts and runbook there.")
    ] = None,
    finding: Annotated[
        list[str] | None, typer.Option("--finding", metavar="ID", help="Plan only this finding.")
    ] = None,
    strategy: ChosenStrategies = None,
    again: Annotated[
        Path | None,
        typer.Option(
            "--again", metavar="DIR", help="Plan again with the choices of the plan in DIR."
        ),
    ] = None,
    as_json: AsJson = False,
    ask_password: AskPassword = False,
    timeout: ServerSeconds = None,
    allow_uuid: AllowedUuids = None,
    accepted: Accepted = None,
    content: CompareContent = None,
    definitions: CompareDefinitions = None,
    table: OneTable = None,
    database: OneDatabase = None,
) -> int:
    """Plan the repair of one cluster, as SQL scripts for the mysql client and a runbook.

    Exit status: 0 the steps cover every warning and critical finding (of those selected with
    --finding), or there is none; 1 at least one has no steps; 3 something could not be read.
    """
    from gtid_audit.operands.cluster_of_dsns import policy_of
    from gtid_audit.operands.scope_of_definitions import flags_of, scope_of
    from gtid_audit.tasks.audited_cluster import read_and_audit
    from gtid_audit.tasks.plan_again import PlanRequest, command_line, repeatable, wanted_by
    from gtid_audit.tasks.planning import make_plan

    choices = _choices(strategy or ())
    earlier = wanted_by(again) if again is not None else PlanRequest()
    flags = _flags(ask_password, timeout, content, allow_uuid, accepted)
    servers = _servers(dsns or (), pair, fleet)
    _check(fleet, cluster, is_of_dsns=any(not each.endswith("content") for each in flags))
    policy = policy_of(allow_uuid or (), accepted or ())
    to_read = _cluster(servers, fleet, cluster, ask=ask_password, timeout=timeout, policy=policy)
    with progress() as line:
        is_wanted = to_read.policy.definitions if definitions is None else definitions
        scope = scope_of(table, database)
        read = read_and_audit(
            to_read, content=content, definitions=is_wanted, scope=scope, say=line.say
        )
        still = earlier.still(read.audit, choices, read.compared)
        wanted = still.and_typed(choices, finding)
        planned = make_plan(read, choices=wanted.choices, finding_ids=wanted.only, say=line.say)
    flags += flags_of(definitions, table, database)
    command = command_line(servers, fleet, cluster, wanted, flags=flags, out=out)
    plan = repeatable(planned.plan, wanted, command, read.targets)
    planned = replace(planned, plan=plan)
    for text in planned.unread_events:
        warn(text)
    files = planned.write(out) if out is not None else ()
    if as_json:
        write_json({**planned.plan.as_json(), "files": [str(file) for file in files]})
    else:
        from gtid_audit.views.plan_text import show_plan

        show_plan(planned.plan, read.audit, files=files)
    return planned.status


def _servers(
    dsns: Sequence[str], pair: tuple[str, str] | None, fleet: Path | None
) -> tuple[str, ...]:
    """Return the DSNs; none with a fleet file. Raises UsageProblem unless one of them is given."""
    if sum((bool(dsns), pair is not None, fleet is not None)) != 1:
        raise UsageProblem(
            "repair plan needs either --pair DSN_A DSN_B or --fleet FILE, or the DSNs of all"
            " servers"
        )
    if len(dsns) == 1:
        raise UsageProblem("repair plan needs the DSNs of at least two servers")
    return pair or tuple(dsns)


def _cluster(
    dsns: tuple[str, ...],
    fleet: Path | None,
    cluster: str | None,
    *,
    ask: bool,
    timeout: str | None,
    policy: "Policy",
) -> "ClusterToRead":
    """Return the cluster that the operands select; `policy` is that of DSNs."""
    from gtid_audit.operands.cluster_of_dsns import cluster_of_dsns
    from gtid_audit.operands.load_fleet import cluster_to_read

    if fleet is None:
        return cluster_of_dsns(dsns, ask=ask, seconds_max=seconds_of(timeout), policy=policy)
    assert cluster is not None, "given with the fleet file"
    return cluster_to_read(fleet, cluster)


def _check(fleet: Path | None, cluster: str | None, *, is_of_dsns: bool) -> None:
    """Raise UsageProblem unless the operands select one cluster, with options that fit."""
    if (fleet is None) != (cluster is None):
        raise UsageProblem("--fleet and --cluster must be used together: a plan is for one cluster")
    if fleet is not None and is_of_dsns:
        raise UsageProblem(
            "--ask-password, --timeout, --allow-uuid and --accepted are for DSNs; set them in the"
            " fleet file"
        )


def _flags(
    ask_password: bool,
    timeout: str | None,
    content: bool | None,
    allowed: list[str] | None,
    accepted: list[str] | None,
) -> list[str]:
    """Return the options that determine what is read and what is accepted."""
    flags = ["--ask-password"] if ask_password else []
    if timeout is not None:
        flags.append(f"--timeout={timeout}")
    if content is not None:
        flags.append("--content" if content else "--no-content")
    flags += [f"--allow-uuid={each}" for each in allowed or ()]
    flags += [f"--accepted={each}" for each in accepted or ()]
    return flags


def _choices(texts: list[str] | tuple[()]) -> dict[str, str]:
    """Parse --strategy. Two strategies for one finding or code are refused as ambiguous."""
    choices: dict[str, str] = {}
    for text in texts:
        key, name = _choice(text)
        if choices.setdefault(key, name) != name:
            raise UsageProblem(f"--strategy: {key} has two strategies, {choices[key]} and {name}")
    return choices


def _choice(text: str) -> tuple[str, str]:
    key, equals, name = text.partition("=")
    if not (key and equals and name):
        raise UsageProblem("--strategy: expected CODE_OR_ID=NAME, as in H1=refetch")
    return key.upper() if len(key) <= len("C14") else key, name

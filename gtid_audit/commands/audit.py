"""`gtid-audit audit`: evaluates a live fleet, servers named by DSN, or stored snapshots.

Modules that only one of the three needs are imported where they are used.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gtid_audit import exits
from gtid_audit.commands.options import (
    Accepted,
    AllowedUuids,
    AsJson,
    AskPassword,
    CompareContent,
    Dsns,
    EngineChoice,
    EngineOption,
    MaxAge,
    OneCluster,
    OptionalFleetFile,
    ServerSeconds,
    max_age_of,
    seconds_of,
)
from gtid_audit.exits import UsageProblem
from gtid_audit.output import progress, warn, write
from topology.documents.run_record import MAX_AGE_DEFAULT

if TYPE_CHECKING:
    from gtid_audit.tasks.stored_run import StoredQuestion
    from gtid_audit.views.audit_results import AuditOutcome
    from gtid_audit.views.report import Engine

# With fewer clusters, Spark takes longer to start than the local engine takes to finish.
SPARK_CLUSTERS_MIN: Final = 200_000


Discover = Annotated[
    str | None,
    typer.Option("--discover", metavar="DSN", help="Find the other servers from this one."),
]


def audit(
    dsns: Dsns = None,
    *,
    discover: Discover = None,
    fleet: OptionalFleetFile = None,
    cluster: OneCluster = None,
    snapshots: Annotated[
        Path | None,
        typer.Option("--snapshots", metavar="DIR", help="Evaluate stored snapshots."),
    ] = None,
    engine: EngineOption = EngineChoice.AUTO,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Store snapshots and findings there as Parquet."),
    ] = None,
    as_json: AsJson = False,
    content: CompareContent = None,
    max_age: MaxAge = MAX_AGE_DEFAULT,
    ask_password: AskPassword = False,
    timeout: ServerSeconds = None,
    allow_uuid: AllowedUuids = None,
    accepted: Accepted = None,
) -> int:
    """Audit a fleet by the policy of its fleet file, the servers of DSNs, or stored snapshots."""
    named = _Named(
        tuple(dsns or ()),
        discover,
        ask_password=ask_password,
        timeout=timeout,
        allow_uuid=tuple(allow_uuid or ()),
        accepted=tuple(accepted or ()),
    )
    if named.has_servers:
        of_fleets = {"--fleet": fleet, "--cluster": cluster, "--snapshots": snapshots, "--out": out}
        is_spark, is_aged = engine is EngineChoice.SPARK, max_age != MAX_AGE_DEFAULT
        _refuse({**of_fleets, "--engine spark": is_spark or None, "--max-age": is_aged or None})
        return _audit_named(named, content=content, as_json=as_json)
    if named.has_options:
        raise UsageProblem(
            "--ask-password, --timeout, --allow-uuid and --accepted are for DSNs. The fleet file"
            " has its own settings"
        )
    if fleet is None and snapshots is None:
        raise UsageProblem("audit needs DSNs, --discover DSN, --fleet FILE or --snapshots DIR")
    if snapshots is not None and cluster is not None:
        raise UsageProblem("--cluster is for live servers, not for --snapshots")
    if snapshots is not None and content is not None:
        raise UsageProblem("--content is for live servers, not for --snapshots")
    if snapshots is not None:
        asked = _question(snapshots, fleet, max_age)
        from gtid_audit.tasks.stored_audit import answer_of_stored, count_stored

        chosen = engine_of(engine, partial(count_stored, snapshots))
        with answer_of_stored(asked, engine=chosen, out=out) as answer:
            return _say(answer, as_json=as_json)
    assert fleet is not None, "one of the two was given"
    from gtid_audit.operands.load_fleet import load
    from gtid_audit.tasks.fleet_audit import answer_of_fleet

    settings = load(fleet, cluster)
    chosen = engine_of(engine, lambda: len(settings.clusters))
    with (
        progress() as line,
        answer_of_fleet(settings, engine=chosen, out=out, say=line.say, content=content) as answer,
    ):
        line.clear()
        return _say(answer, as_json=as_json)


@dataclass(frozen=True, slots=True)
class _Named:
    """Servers that are on the command line, and the options that a fleet file would have."""

    dsns: tuple[str, ...]
    discover: str | None
    ask_password: bool
    timeout: str | None
    allow_uuid: tuple[str, ...]
    accepted: tuple[str, ...]

    @property
    def has_servers(self) -> bool:
        return bool(self.dsns) or self.discover is not None

    @property
    def has_options(self) -> bool:
        return self.ask_password or bool(self.timeout or self.allow_uuid or self.accepted)


def _refuse(of_fleets: Mapping[str, object]) -> None:
    """Raise UsageProblem for an option that was given and has no meaning for DSNs."""
    for option, value in of_fleets.items():
        if value is not None:
            raise UsageProblem(f"{option} is for fleets: use it without DSNs and --discover")


def _audit_named(named: _Named, *, content: bool | None, as_json: bool) -> int:
    from gtid_audit.operands.cluster_of_dsns import found_from, policy_of, servers_to_read
    from gtid_audit.tasks.named_servers import answer_of_servers
    from topology.catalogue.findings import Unknown

    seconds, policy = seconds_of(named.timeout), policy_of(named.allow_uuid, named.accepted)
    ask, unknown = named.ask_password, tuple[Unknown, ...]()
    with progress() as line:
        if named.discover is None:
            to_read = servers_to_read(named.dsns, ask=ask, seconds_max=seconds, policy=policy)
        else:
            starts = (named.discover, *named.dsns)
            to_read, found = found_from(
                starts, ask=ask, seconds_max=seconds, policy=policy, say=line.say
            )
            unknown = found.unknown(to_read.name)
            line.clear()
            for text in found.lines:
                warn(text)
        answer = answer_of_servers(to_read, content=content, say=line.say, also_unknown=unknown)
        line.clear()
    return _say(answer, as_json=as_json)


def _question(snapshots: Path, fleet: Path | None, max_age: str) -> "StoredQuestion":
    from gtid_audit import clock
    from gtid_audit.operands.load_fleet import load_without_accounts
    from gtid_audit.tasks.stored_run import StoredQuestion
    from topology.documents.run_record import AgeLimit
    from topology.policy import Policy

    limit = AgeLimit(clock.now(), max_age_of(max_age))
    roster = None if fleet is None else load_without_accounts(fleet)
    return StoredQuestion(snapshots, limit, roster.policy if roster else Policy(), roster)


def engine_of(choice: EngineChoice, count_clusters: Callable[[], int]) -> "Engine":
    """Return the chosen engine; `auto` is Spark from SPARK_CLUSTERS_MIN clusters on."""
    from gtid_audit.views.report import Engine

    if choice is not EngineChoice.AUTO:
        return Engine(choice.value)
    return Engine.SPARK if count_clusters() >= SPARK_CLUSTERS_MIN else Engine.LOCAL


def _say(answer: "AuditOutcome", *, as_json: bool) -> int:
    if as_json:
        for piece in answer.document():
            write(piece)
    else:
        answer.show()
    return exits.status_of(answer.verdict)

"""`gtid-audit audit`: evaluates a live fleet, servers named by DSN, stored or pasted readings.

Modules that only one of them needs are imported where they are used.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gtid_audit import exits
from gtid_audit.commands.audit_offline import Offline, Questions, audit_offline, print_questions
from gtid_audit.commands.audit_servers import NamedServers, audit_named
from gtid_audit.commands.options import (
    Accepted,
    AllowedUuids,
    AsJson,
    AskPassword,
    CompareContent,
    CompareDefinitions,
    Dsns,
    EngineChoice,
    EngineOption,
    KeepHistory,
    MaxAge,
    OneCluster,
    OptionalFleetFile,
    ServerSeconds,
    max_age_of,
)
from gtid_audit.exits import UsageProblem
from gtid_audit.output import progress, write
from topology.documents.run_record import MAX_AGE_DEFAULT

if TYPE_CHECKING:
    from gtid_audit.tasks.stored_run import StoredQuestion
    from gtid_audit.views.audit_results import AuditOutcome
    from gtid_audit.views.report import Engine

# With fewer clusters, Spark takes longer to start than the local engine takes to finish.
SPARK_CLUSTERS_MIN: Final = 200_000


Snapshots = Annotated[
    Path | None,
    typer.Option("--snapshots", metavar="DIR", help="Evaluate stored snapshots."),
]
StoreIn = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Store snapshots and findings there as Parquet."),
]
WriteBaseline = Annotated[
    Path | None,
    typer.Option(
        "--write-baseline",
        metavar="FILE",
        help="Write the findings above info there, as entries that the fleet file can accept.",
    ),
]
WriteMetrics = Annotated[
    Path | None,
    typer.Option(
        "--write-metrics",
        metavar="FILE",
        help="Write the metrics there, for node_exporter's textfile collector.",
    ),
]
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
    snapshots: Snapshots = None,
    offline: Offline = None,
    questions: Questions = None,
    engine: EngineOption = EngineChoice.AUTO,
    out: StoreIn = None,
    as_json: AsJson = False,
    history: KeepHistory = None,
    write_baseline: WriteBaseline = None,
    write_metrics: WriteMetrics = None,
    content: CompareContent = None,
    definitions: CompareDefinitions = None,
    max_age: MaxAge = MAX_AGE_DEFAULT,
    ask_password: AskPassword = False,
    timeout: ServerSeconds = None,
    allow_uuid: AllowedUuids = None,
    accepted: Accepted = None,
) -> int:
    """Audit a fleet by the policy of its fleet file, the servers of DSNs, or what was stored.

    --offline audits servers that gtid-audit cannot reach, from the output of their statements.
    """
    named = NamedServers(
        tuple(dsns or ()),
        discover,
        ask_password=ask_password,
        timeout=timeout,
        allow_uuid=tuple(allow_uuid or ()),
        accepted=tuple(accepted or ()),
    )
    stored = _Fleets(
        *(fleet, cluster, snapshots, out, engine, max_age, history),
        baseline=write_baseline,
        metrics=write_metrics,
    )
    if questions is not None:
        return print_questions(questions, offline)
    if offline is not None:
        of_live = {**named.given(), **stored.given(), "--max-age": None}
        of_live |= {"--content": content or None, "--history": history}
        of_live["--definitions"] = definitions or None
        _refuse(of_live, "is for servers that gtid-audit reads, not for --offline")
        answer = audit_offline(
            offline,
            allow_uuid=named.allow_uuid,
            accepted=named.accepted,
            max_age=max_age,
            content=content,
        )
        return _say(answer, as_json=as_json)
    if named.has_servers:
        _refuse(stored.given(), "is for fleets: use it without DSNs and --discover")
        answer = audit_named(named, content=content, definitions=bool(definitions), history=history)
        return _say(answer, as_json=as_json)
    if named.has_options:
        raise UsageProblem(
            "--ask-password, --timeout, --allow-uuid and --accepted are for DSNs. The fleet file"
            " has its own settings"
        )
    compared = _Comparing(content, definitions)
    return _audit_fleets(stored, compared, as_json=as_json)


@dataclass(frozen=True, slots=True)
class _Comparing:
    """What is compared beyond the sets; None: as the defaults and the policy say."""

    content: bool | None
    definitions: bool | None


@dataclass(frozen=True, slots=True)
class _Fleets:
    """A fleet file or stored snapshots, and the options that are only for these."""

    fleet: Path | None
    cluster: str | None
    snapshots: Path | None
    out: Path | None
    engine: EngineChoice
    max_age: str
    history: Path | None
    baseline: Path | None
    metrics: Path | None

    def given(self) -> dict[str, object]:
        """Return the options; None if one was not given."""
        is_spark, is_aged = self.engine is EngineChoice.SPARK, self.max_age != MAX_AGE_DEFAULT
        return {
            "--fleet": self.fleet,
            "--cluster": self.cluster,
            "--snapshots": self.snapshots,
            "--out": self.out,
            "--engine spark": is_spark or None,
            "--max-age": is_aged or None,
            "--write-baseline": self.baseline,
            "--write-metrics": self.metrics,
        }


def _audit_fleets(asked: _Fleets, compared: _Comparing, *, as_json: bool) -> int:
    """Evaluate live servers of a fleet file, or stored snapshots."""
    fleet, snapshots = asked.fleet, asked.snapshots
    if fleet is None and snapshots is None:
        raise UsageProblem(
            "audit needs DSNs, --discover DSN, --fleet FILE, --snapshots DIR or --offline DIR"
        )
    if snapshots is not None and asked.cluster is not None:
        raise UsageProblem("--cluster is for live servers, not for --snapshots")
    if snapshots is not None and compared.content is not None:
        raise UsageProblem("--content is for live servers, not for --snapshots")
    if snapshots is not None and compared.definitions is not None:
        raise UsageProblem("--definitions is for live servers, not for --snapshots")
    if snapshots is not None and asked.baseline is not None:
        raise UsageProblem("--write-baseline is for live servers, not for --snapshots")
    if snapshots is not None and asked.metrics is not None:
        raise UsageProblem("--write-metrics is for live servers, not for --snapshots")
    if snapshots is not None and asked.history is not None:
        raise UsageProblem(
            "--history is for live servers; results of --snapshots keep their history with --out"
        )
    if snapshots is not None:
        question = _question(snapshots, fleet, asked.max_age)
        from gtid_audit.tasks.stored_audit import answer_of_stored, count_stored

        chosen = engine_of(asked.engine, partial(count_stored, snapshots))
        with answer_of_stored(question, engine=chosen, out=asked.out) as answer:
            return _say(answer, as_json=as_json)
    assert fleet is not None, "one of the two was given"
    from gtid_audit.commands.audit_outputs import AuditOutputs
    from gtid_audit.operands.load_fleet import load
    from gtid_audit.tasks.fleet_audit import answer_of_fleet

    settings = load(fleet, asked.cluster)
    chosen = engine_of(asked.engine, lambda: len(settings.clusters))
    outputs = AuditOutputs(asked.baseline, asked.metrics)
    outputs.require(chosen)
    with (
        progress() as line,
        answer_of_fleet(
            settings,
            engine=chosen,
            out=asked.out,
            say=line.say,
            content=compared.content,
            definitions=compared.definitions,
            history=asked.history,
        ) as answer,
    ):
        line.clear()
        outputs.write(answer, settings.policy)
        return _say(answer, as_json=as_json)


def _refuse(options: Mapping[str, object], reason: str) -> None:
    """Raise UsageProblem for an option that was given and has no meaning here."""
    for option, value in options.items():
        if value is not None:
            raise UsageProblem(f"{option} {reason}")


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

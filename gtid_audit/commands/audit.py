"""`pair`, `audit` and `snapshot`: read servers, evaluate, show.

`pair` must be fast: modules that only the other commands need are imported inside them.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gtid_audit import exits
from gtid_audit.commands.options import (
    Accepted,
    AsJson,
    AskPassword,
    CompareContent,
    EngineChoice,
    EngineOption,
    FleetFile,
    MaxAge,
    OneCluster,
    OptionalFleetFile,
    ServerSeconds,
    max_age_of,
    seconds_of,
)
from gtid_audit.exits import UsageProblem
from gtid_audit.output import counted, printable, progress, warn, write, write_json, write_line
from topology.run_record import MAX_AGE_DEFAULT

if TYPE_CHECKING:
    from gtid_audit.stored_run import StoredQuestion
    from gtid_audit.views.audit_results import AuditOutcome
    from gtid_audit.views.report import Engine

DsnA = Annotated[str, typer.Argument(metavar="DSN_A", help="mysql://user@host:port/?option=value")]
DsnB = Annotated[str, typer.Argument(metavar="DSN_B", help="The other server, in the same form.")]


def pair(
    dsn_a: DsnA,
    dsn_b: DsnB,
    *,
    as_json: AsJson = False,
    ask_password: AskPassword = False,
    timeout: ServerSeconds = None,
    allow_uuid: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-uuid",
            metavar="UUID",
            help="Allow extra transactions of this UUID. Repeatable.",
        ),
    ] = None,
    accepted: Accepted = None,
    content: CompareContent = None,
) -> int:
    """Audit two live servers now, in this process."""
    from gtid_audit.pair import CLUSTER, audit_pair, policy_of
    from gtid_audit.views.report import Engine, report_of

    done = audit_pair(
        dsn_a,
        dsn_b,
        ask=ask_password,
        seconds_max=seconds_of(timeout),
        policy=policy_of(allow_uuid or (), accepted or ()),
        content=content,
    )
    report = report_of(Engine.LOCAL, [done.audit])
    compared = {} if done.contents is None else {CLUSTER: done.contents}
    contents = None if content is False else compared
    if as_json:
        write_json(report.to_document(contents))
    else:
        from gtid_audit.views.content_text import content_lines
        from gtid_audit.views.report_text import show_report

        show_report(report, snapshots=(done.snapshot,))
        for line in content_lines(contents, is_stored=False):
            write_line(printable(line))
    return exits.status_of(report.verdict)


def audit(
    *,
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
) -> int:
    """Audit a fleet by the policy of its fleet file: live servers, or stored snapshots."""
    from gtid_audit import audit_engines
    from gtid_audit.load_fleet import load

    if (fleet is None) and (snapshots is None):
        raise UsageProblem("audit needs --fleet FILE, or --snapshots DIR")
    if snapshots is not None and cluster is not None:
        raise UsageProblem("--cluster is for live servers, not for --snapshots")
    if snapshots is not None and content is not None:
        raise UsageProblem("--content is for live servers, not for --snapshots")
    if snapshots is not None:
        asked = _question(snapshots, fleet, max_age)
        chosen = _engine_for_stored(engine, snapshots)
        with audit_engines.answer_of_stored(asked, engine=chosen, out=out) as answer:
            return _say(answer, as_json=as_json)
    assert fleet is not None, "one of the two was given"
    settings = load(fleet, cluster)
    chosen = audit_engines.engine_for(engine.value, cluster_count=len(settings.clusters))
    with (
        progress() as line,
        audit_engines.answer_of_fleet(
            settings, engine=chosen, out=out, say=line.say, content=content
        ) as answer,
    ):
        line.clear()
        return _say(answer, as_json=as_json)


def _question(snapshots: Path, fleet: Path | None, max_age: str) -> "StoredQuestion":
    from gtid_audit import clock
    from gtid_audit.load_fleet import load_without_accounts
    from gtid_audit.stored_run import StoredQuestion
    from topology.policy import Policy
    from topology.run_record import AgeLimit

    limit = AgeLimit(clock.now(), max_age_of(max_age))
    roster = None if fleet is None else load_without_accounts(fleet)
    return StoredQuestion(snapshots, limit, roster.policy if roster else Policy(), roster)


def _engine_for_stored(choice: EngineChoice, snapshots: Path) -> "Engine":
    from gtid_audit import audit_engines
    from gtid_audit.views.report import Engine

    if choice is not EngineChoice.AUTO:
        return Engine(choice.value)
    return audit_engines.engine_for(
        choice.value, cluster_count=audit_engines.count_stored(snapshots)
    )


def _say(answer: "AuditOutcome", *, as_json: bool) -> int:
    if as_json:
        for piece in answer.document():
            write(piece)
    else:
        answer.show()
    return exits.status_of(answer.verdict)


def snapshot(
    *,
    fleet: FleetFile,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Write the run there.")],
    cluster: OneCluster = None,
    as_json: AsJson = False,
    content: CompareContent = None,
) -> int:
    """Read a fleet twice and store the readings as Parquet.

    Exit status: 0 every fact was read; 3 some were not.
    """
    from gtid_audit import audit_engines
    from gtid_audit.load_fleet import load
    from topology.findings import Verdict
    from topology.records import time_to_text

    audit_engines.require_parquet()
    settings = load(fleet, cluster)
    with progress() as line:
        taken = audit_engines.read_fleet(settings, will_store=True, say=line.say)
        contents, run = audit_engines.compare_and_store(
            settings, taken, content, store_in=out, say=line.say
        )
    servers = sum(len(each.last) for each in taken)
    unread = sum(len(server.unread) for each in taken for server in (*each.first, *each.last))
    unread += sum(len(each.unread) for each in (contents or {}).values())
    ended = max(each.read_ended for each in taken if each.read_ended is not None)
    if as_json:
        compared = None if contents is None else len(contents)
        counts = {"clusters": len(taken), "servers": servers, "unread_facts": unread}
        document = {"run": str(run), "read_ended": time_to_text(ended), **counts}
        write_json({**document, "contents_compared": compared, "partial": settings.is_partial})
    else:
        write_line(f"{run}")
        read = f"{counted(len(taken), 'cluster')}, {counted(servers, 'server')}"
        warn(f"{read}, {counted(unread, 'fact')} not read")
        if settings.is_partial:
            warn(
                "this run has only the selected clusters: to audit it, give `audit --snapshots` the"
                " path of the run itself"
            )
    return exits.status_of(Verdict.UNKNOWN) if unread else exits.OK

"""`gtid-audit audit`: evaluates a live fleet, or stored snapshots.

Modules that only one of the two needs are imported where they are used.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gtid_audit import exits
from gtid_audit.commands.options import (
    AsJson,
    CompareContent,
    EngineChoice,
    EngineOption,
    MaxAge,
    OneCluster,
    OptionalFleetFile,
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
    if (fleet is None) and (snapshots is None):
        raise UsageProblem("audit needs --fleet FILE, or --snapshots DIR")
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

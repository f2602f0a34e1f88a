"""`gtid-audit audit --fleet FILE` and `--snapshots DIR`: evaluates a fleet, live or stored.

Modules that only one of them needs are imported where they are used.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gtid_audit.commands.options import EngineChoice, max_age_of
from gtid_audit.commands.watching import Say
from gtid_audit.exits import UsageProblem
from gtid_audit.output import progress
from topology.documents.run_record import MAX_AGE_DEFAULT

if TYPE_CHECKING:
    from gtid_audit.tasks.stored_run import StoredQuestion
    from gtid_audit.views.report import Engine

# With fewer clusters, Spark takes longer to start than the local engine takes to finish.
SPARK_CLUSTERS_MIN: Final = 200_000


@dataclass(frozen=True, slots=True)
class AuditComparing:
    """What is compared beyond the sets; None: as the defaults and the policy say."""

    content: bool | None
    definitions: bool | None


@dataclass(frozen=True, slots=True)
class AuditedFleets:
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


def audit_fleets(asked: AuditedFleets, compared: AuditComparing, say: Say) -> int:
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
        with (
            progress("evaluating stored snapshots") as line,
            answer_of_stored(question, engine=chosen, out=asked.out) as answer,
        ):
            line.clear()
            return say(answer)
    assert fleet is not None, "one of the two was given"
    from gtid_audit.commands.audit_outputs import AuditOutputs
    from gtid_audit.operands.load_fleet import load
    from gtid_audit.operands.servers_in_commands import servers_of_fleet
    from gtid_audit.tasks.fleet_audit import answer_of_fleet
    from gtid_audit.views.audit_results import naming

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
        return say(naming(answer, servers_of_fleet(settings, fleet)))


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

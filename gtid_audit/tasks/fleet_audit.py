"""Audits a live fleet on the chosen engine. With a directory, stores snapshots and findings there.

If a defect of ours prevents the reading or evaluation of a cluster, that cluster is UNKNOWN, with
the reason, in the report and in the stored run. The other clusters are evaluated.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gtid_audit.exits import UsageProblem
from gtid_audit.optional_packages import require_spark
from gtid_audit.tasks.audit_engines import directory_or_scratch, results_on_spark, results_stored
from gtid_audit.tasks.fleet_reading import place_of, read_fleet
from gtid_audit.tasks.kept_history import HISTORY, KeptHistory, history_at
from gtid_audit.views.audit_results import InMemory, InResults
from gtid_audit.views.report import Engine, report_of
from gtid_audit.views.verdict_answers import VerdictAnswer
from topology.adapters.collect_fleet import Say
from topology.adapters.inventory.fleet import Fleet


def audit_fleet(
    fleet: Fleet,
    *,
    say: Say | None = None,
    content: bool | None = None,
    definitions: bool | None = None,
    history: KeptHistory | None = None,
) -> InMemory:
    """Read a fleet and evaluate it in this process.

    `content` and `definitions` are as in fleet_reading.py. `history` is where findings are
    recorded and looked up, and what the next audit must compare.
    """
    memory = None if history is None else history.memory_of_fleet()
    read = read_fleet(
        fleet, for_audit=True, content=content, definitions=definitions, say=say, memory=memory
    )
    report = report_of(Engine.LOCAL, read.evaluated(fleet.policy))
    if history is not None:
        report = history.dated_report(report)
    return InMemory(report, read.snapshots, read.contents, definitions=read.definitions)


@contextmanager
def answer_of_fleet(
    fleet: Fleet,
    *,
    engine: Engine,
    out: Path | None,
    say: Say | None = None,
    content: bool | None = None,
    definitions: bool | None = None,
    history: Path | None = None,
) -> Iterator[VerdictAnswer]:
    """Read a fleet and evaluate it. With `out`, store the snapshots and the findings there.

    `history` is a history file; with `out`, the default is a file beside the runs. Spark's results
    can be read as long as the context lasts. Raises UsageProblem.
    """
    if engine is Engine.SPARK and history is not None:
        raise UsageProblem(
            "--history is for --engine local; the history of Spark's results is in --out DIR"
        )
    if engine is Engine.LOCAL and out is None:
        kept = history_at(history, of_servers=False)
        yield audit_fleet(fleet, say=say, content=content, definitions=definitions, history=kept)
        return
    require_spark()
    with directory_or_scratch(out) as directory:
        place = place_of(fleet, directory)
        kept = None if engine is Engine.SPARK else _history_of(place, history)
        read = read_fleet(
            fleet,
            for_audit=True,
            content=content,
            definitions=definitions,
            store_in=directory,
            say=say,
        )
        assert read.run is not None, "there was a directory to store it in"
        if kept is not None:
            audits = read.evaluated(fleet.policy)
            results = results_stored(audits, read.run, place, fleet.policy, read.contents)
            report = kept.dated_report(report_of(engine, results.audits))
            yield InMemory(report, read.snapshots, read.contents, results.place, read.definitions)
            return
        if say is not None:
            say("Java and Spark start, and evaluate")
        with results_on_spark(read.run, place, fleet.policy) as on_spark:
            yield InResults(
                on_spark,
                engine,
                kept=out is not None,
                contents=read.contents,
                definitions=read.definitions,
            )


def _history_of(place: Path, history: Path | None) -> KeptHistory:
    """Open the chosen history file, or the one beside the runs in `place`. Raises UsageProblem."""
    if history is None:
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageProblem(f"{place}: {error.strerror or error}") from error
    kept = history_at(history or place / HISTORY, of_servers=False)
    assert kept is not None, "a path was given"
    return kept

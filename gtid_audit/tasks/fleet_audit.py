"""Audits a live fleet on the chosen engine. With a directory, stores snapshots and findings there.

If a defect of ours prevents the reading or evaluation of a cluster, that cluster is UNKNOWN, with
the reason, in the report and in the stored run. The other clusters are evaluated.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gtid_audit.optional_packages import require_spark
from gtid_audit.tasks.audit_engines import directory_or_scratch, results_on_spark, results_stored
from gtid_audit.tasks.compared_restarts import Memory
from gtid_audit.tasks.fleet_reading import read_fleet
from gtid_audit.tasks.run_storing import place_of
from gtid_audit.views.audit_results import AuditOutcome, InMemory, InResults
from gtid_audit.views.report import Engine, report_of
from topology.adapters.collect_fleet import Say
from topology.adapters.inventory.fleet import Fleet


def audit_fleet(
    fleet: Fleet,
    *,
    say: Say | None = None,
    content: bool | None = None,
    definitions: bool | None = None,
    memory: Memory | None = None,
) -> InMemory:
    """Read a fleet and evaluate it in this process. `memory` is what the next audit must compare.

    `content` and `definitions` are as in fleet_reading.py.
    """
    read = read_fleet(
        fleet, for_audit=True, content=content, definitions=definitions, say=say, memory=memory
    )
    report = report_of(Engine.LOCAL, read.evaluated(fleet.policy))
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
) -> Iterator[AuditOutcome]:
    """Read a fleet and evaluate it. With `out`, store the snapshots and the findings there.

    Spark's results can be read as long as the context lasts. Raises UsageProblem.
    """
    if engine is Engine.LOCAL and out is None:
        yield audit_fleet(fleet, say=say, content=content, definitions=definitions)
        return
    require_spark()
    with directory_or_scratch(out) as directory:
        read = read_fleet(
            fleet,
            for_audit=True,
            content=content,
            definitions=definitions,
            store_in=directory,
            say=say,
        )
        assert read.run is not None, "there was a directory to store it in"
        place = place_of(fleet, directory)
        if engine is Engine.LOCAL:
            audits = read.evaluated(fleet.policy)
            results = results_stored(audits, read.run, place, fleet.policy, read.contents)
            report = report_of(engine, results.audits)
            yield InMemory(report, read.snapshots, read.contents, results.place, read.definitions)
            return
        with results_on_spark(read.run, place, fleet.policy) as on_spark:
            yield InResults(
                on_spark,
                engine,
                kept=out is not None,
                contents=read.contents,
                definitions=read.definitions,
            )

"""Runs an audit of a live fleet or of stored snapshots, on the chosen engine.

1. `local` evaluates in this process, `spark` on Spark; both use the same rules.
2. If a module is not installed, the error states the command that installs it.
3. If a defect of ours prevents the reading or evaluation of a cluster, that cluster is UNKNOWN,
   with the reason, in the report and in the stored run. The other clusters are evaluated.
4. Runs of selected clusters are stored in a separate directory below `--out`, with their own
   history and their own memory of contents. They must not appear as the state of the fleet.
5. The process that reads the servers, this one, compares contents and stores the result beside the
   snapshots. So both engines evaluate the same facts, now and after the servers are gone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from gtid_audit.compared_restarts import DirectoryMemory, Memory
from gtid_audit.exits import UsageProblem
from gtid_audit.fleet_contents import compare_contents
from gtid_audit.refuse_same_server import refuse_same_servers
from gtid_audit.stored_run import NotInRun, StoredQuestion, answer_if_refused, not_in_run
from gtid_audit.views.audit_results import AuditOutcome, InMemory, InResults
from gtid_audit.views.report import Engine, report_of
from topology.adapters.collect_fleet import Say, collect_fleet
from topology.adapters.inventory.fleet import Fleet
from topology.audit_cluster import audit_or_unknown
from topology.contents import ContentReading
from topology.findings import ClusterAudit
from topology.policy import Policy
from topology.snapshot import ClusterSnapshot

if TYPE_CHECKING:  # PySpark is imported only where it is used
    from spark_audit.adapters.results import Results
    from spark_audit.result_records import LocalResults

# With fewer clusters, Spark takes longer to start than the local engine takes to finish.
SPARK_CLUSTERS_MIN: Final = 200_000
# Below `--out`: readings of selected clusters, and their findings.
PARTIAL: Final = "partial"
_ROWS_OF_A_PAIR: Final = 4  # two servers, two readings
INSTALL_SPARK: Final = "pip install 'gtid-audit[spark]'"


def engine_for(chosen: str, *, cluster_count: int) -> Engine:
    """Return the chosen engine; `auto` is Spark from SPARK_CLUSTERS_MIN clusters on."""
    if chosen == "auto":
        return Engine.SPARK if cluster_count >= SPARK_CLUSTERS_MIN else Engine.LOCAL
    return Engine(chosen)


def audit_fleet(
    fleet: Fleet,
    *,
    store_in: Path | None = None,
    say: Say | None = None,
    content: bool | None = None,
    memory: Memory | None = None,
) -> InMemory:
    """Read a fleet and evaluate it here; store the snapshots if a directory is given.

    `content`: True compares the content of transactions after every restart, False compares none.
    None compares after restarts since the last audit, and within the last day
    (contents_to_compare.py). Without a directory, `memory` keeps what the next audit must compare.
    """
    read = _collect(fleet, store_in, say, content, memory)
    report = report_of(Engine.LOCAL, _evaluated(read, fleet.policy))
    return InMemory(report, read.snapshots, read.contents)


@contextmanager
def answer_of_fleet(
    fleet: Fleet,
    *,
    engine: Engine,
    out: Path | None,
    say: Say | None = None,
    content: bool | None = None,
) -> Iterator[AuditOutcome]:
    """Read a fleet and evaluate it. With `out`, store the snapshots and the findings there.

    Spark's results can be read as long as the context lasts. Raises UsageProblem.
    """
    if engine is Engine.LOCAL:
        yield _audited_here(fleet, out, say=say, content=content)
        return
    require_spark()
    with _directory_or_scratch(out) as directory:
        read = _collect(fleet, directory, say, content)
        assert read.run is not None, "there was a directory to store it in"
        with _on_spark(read.run, _place_of(fleet, directory), fleet.policy) as results:
            yield InResults(results, engine, kept=out is not None, contents=read.contents)


@contextmanager
def answer_of_stored(
    asked: StoredQuestion, *, engine: Engine, out: Path | None = None
) -> Iterator[AuditOutcome]:
    """Evaluate the latest stored snapshots below a directory. With `out`, store the findings there.

    A run that does not show the current state of the fleet is not evaluated: the answer is UNKNOWN.
    Spark's results can be read as long as the context lasts. Raises UsageProblem.
    """
    require_parquet()
    from spark_audit.adapters.local import audit_snapshots_locally
    from topology.adapters.stored_contents import contents_of_run
    from topology.adapters.stored_runs import NoSnapshots, UnreadableSnapshots, latest_run

    try:
        run = latest_run(asked.directory)  # fails before Java is started
        refused = answer_if_refused(run, asked, engine=engine)
        kept_in = _place_for(run, out)
        contents = contents_of_run(run)
        absent = not_in_run(run, asked.roster)
        if refused is None and engine is not Engine.SPARK:
            audits = audit_snapshots_locally(run, policy=asked.policy, gaps=dict(absent.gaps))
    except (NoSnapshots, UnreadableSnapshots) as problem:
        raise UsageProblem(str(problem)) from problem
    if refused is not None:
        yield refused
        return
    if engine is not Engine.SPARK:
        local = _kept_or_not([*audits, *absent.clusters], run, kept_in, asked.policy, contents)
        yield InResults(local, engine, kept=out is not None, contents=contents, is_stored=True)
        return
    with (
        _directory_or_scratch(kept_in) as results_below,
        _on_spark(run, results_below, asked.policy, absent) as results,
    ):
        yield InResults(results, engine, kept=out is not None, contents=contents, is_stored=True)


def _audited_here(
    fleet: Fleet, out: Path | None, *, say: Say | None, content: bool | None
) -> InMemory:
    """Read a fleet and evaluate it in this process. With `out`, store everything there."""
    if out is None:
        return audit_fleet(fleet, say=say, content=content)
    require_spark()
    read = _collect(fleet, out, say, content)
    assert read.run is not None, "there was a directory to store it in"
    evaluated = _evaluated(read, fleet.policy)
    place = _place_of(fleet, out)
    results = _kept_or_not(evaluated, read.run, place, fleet.policy, read.contents)
    report = report_of(Engine.LOCAL, results.audits)
    return InMemory(report, read.snapshots, read.contents, results.place)


def _kept_or_not(
    audits: Sequence[ClusterAudit],
    run: Path,
    out: Path | None,
    policy: Policy,
    contents: Mapping[str, ContentReading] | None,
) -> "LocalResults":
    """Combine the evaluations; with `out`, add history and store the results there.

    Raises UsageProblem.
    """
    compared = None if contents is None else len(contents)
    if out is None:
        from spark_audit.result_records import results_of
        from topology.adapters.stored_runs import moment_of_run

        return results_of(
            audits,
            run=run.resolve().name,
            previous=None,
            known=(),
            run_at=moment_of_run(run),
            policy=policy,
            contents_compared=compared,
        )
    require_spark()
    from spark_audit.adapters.local_results import write_results_locally
    from spark_audit.adapters.results import ResultsDiffer
    from spark_audit.adapters.runs import RunName
    from spark_audit.summary import MalformedSummary

    try:
        return write_results_locally(
            audits,
            directory=out,
            run=RunName.of_place(str(run.resolve())),
            policy=policy,
            contents_compared=compared,
        )
    except OSError as error:
        raise UsageProblem(f"{out}: {error.strerror or error}") from error
    except (ResultsDiffer, MalformedSummary) as problem:
        raise UsageProblem(str(problem)) from problem


def compare_and_store(
    fleet: Fleet,
    snapshots: Sequence[ClusterSnapshot],
    chosen: bool | None,
    *,
    store_in: Path | None,
    say: Say | None = None,
    memory: Memory | None = None,
) -> tuple[Mapping[str, ContentReading] | None, Path | None]:
    """Compare contents where that is due, and store everything if a directory is given.

    Return what was compared, by cluster (None: comparing was off), and where the run is. The memory
    shows the next audit which servers have restarted since. Raises UsageProblem.
    """
    place = None if store_in is None else _place_of(fleet, store_in)
    if place is not None:
        memory = DirectoryMemory(place)
    remembered = memory.read() if memory is not None else None
    compared = compare_contents(fleet, snapshots, chosen, remembered=remembered, say=say)
    if not snapshots:
        return compared.readings, None
    run = None
    if place is not None:
        partial = [cluster.name for cluster in fleet.clusters] if fleet.is_partial else None
        run = store(place, snapshots, compared.readings, partial=partial)
    if memory is not None:
        memory.write(compared.remembered)
    return compared.readings, run


def store(
    directory: Path,
    snapshots: Iterable[ClusterSnapshot],
    contents: Mapping[str, ContentReading] | None,
    *,
    partial: Sequence[str] | None = None,
) -> Path:
    """Write snapshots, and the comparisons of contents, as one run; return its directory.

    `partial` is the list of clusters if they were selected from a fleet. Raises UsageProblem.
    """
    require_parquet()
    from topology.adapters.parquet import write_snapshots
    from topology.adapters.stored_contents import kept_beside

    try:
        return write_snapshots(directory, snapshots, beside=kept_beside(contents), partial=partial)
    except OSError as error:
        raise UsageProblem(f"{directory}: {error.strerror or error}") from error


def count_stored(directory: Path) -> int:
    """Return about how many clusters the latest run holds, assuming two servers each."""
    require_parquet()
    from pyarrow.parquet import read_metadata

    from topology.adapters.stored_runs import (
        NoSnapshots,
        UnreadableSnapshots,
        files_of_run,
        latest_run,
    )

    try:
        files = files_of_run(latest_run(directory))
    except (NoSnapshots, UnreadableSnapshots) as problem:
        raise UsageProblem(str(problem)) from problem
    rows: int = sum(read_metadata(file).num_rows for file in files)
    return rows // _ROWS_OF_A_PAIR


def require_parquet() -> None:
    """Raise UsageProblem if this installation cannot read or write stored snapshots."""
    _require("pyarrow", "stored snapshots need PyArrow")


def require_spark() -> None:
    """Raise UsageProblem if PySpark is not installed."""
    _require("pyspark", "--engine spark, and --out of any engine, need PySpark")


def _require(module: str, need: str) -> None:
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise UsageProblem(f"{need}, which is not installed: {INSTALL_SPARK}")


def read_fleet(
    fleet: Fleet, *, will_store: bool, say: Say | None = None
) -> tuple[ClusterSnapshot, ...]:
    """Read every cluster of a fleet; return them in order of name.

    Snapshots that will be stored are first converted to their stored form, so that they evaluate
    alike now and later (topology/adapters/storable.py).
    """
    found = collect_fleet(fleet, say=say)
    snapshots = tuple(sorted(found, key=lambda snapshot: snapshot.cluster))
    if not will_store:
        return snapshots
    from topology.adapters.storable import storable

    return storable(snapshots)


def _place_for(run: Path, out: Path | None) -> Path | None:
    """Return where the results of a stored run belong. Raises UnreadableSnapshots."""
    from topology.adapters.stored_runs import record_of_run

    record = record_of_run(run)
    if out is None or record is None or record.partial is None or out.name == PARTIAL:
        return out
    return out / PARTIAL


def _place_of(fleet: Fleet, directory: Path) -> Path:
    """Return where a fleet's runs and results belong; selected clusters have their own place."""
    return directory / PARTIAL if fleet.is_partial else directory


@dataclass(frozen=True, slots=True)
class _Read:
    """The readings of a fleet."""

    snapshots: tuple[ClusterSnapshot, ...]
    contents: Mapping[str, ContentReading] | None  # None: comparing was off
    run: Path | None  # where it is stored


def _collect(
    fleet: Fleet,
    store_in: Path | None,
    say: Say | None,
    content: bool | None,
    memory: Memory | None = None,
) -> _Read:
    """Read a fleet, and compare contents where that is due."""
    if store_in is not None:
        require_parquet()
    snapshots = read_fleet(fleet, will_store=store_in is not None, say=say)
    if len(fleet.clusters) == 1:
        refuse_same_servers(snapshots)
    contents, run = compare_and_store(
        fleet, snapshots, content, store_in=store_in, say=say, memory=memory
    )
    return _Read(snapshots, contents, run)


def _evaluated(read: _Read, policy: Policy) -> list[ClusterAudit]:
    contents = read.contents or {}
    return [
        audit_or_unknown(snapshot.with_contents(contents.get(snapshot.cluster)), policy)
        for snapshot in read.snapshots
    ]


@contextmanager
def _directory_or_scratch(directory: Path | None) -> Iterator[Path]:
    if directory is not None:
        yield directory
        return
    with TemporaryDirectory(prefix="gtid-audit-") as scratch:
        yield Path(scratch)


@contextmanager
def _on_spark(
    run: Path, out: Path, policy: Policy, absent: NotInRun | None = None
) -> Iterator["Results"]:
    require_spark()
    missing = absent or NotInRun()
    from spark_audit.adapters.job import audit_stored
    from spark_audit.adapters.results import ResultsDiffer
    from spark_audit.adapters.session import JavaMissing, SparkNotStarted, local_session
    from spark_audit.summary import MalformedSummary
    from topology.adapters.stored_runs import NoSnapshots, UnreadableSnapshots

    try:
        with local_session() as session:
            try:
                results = audit_stored(
                    session,
                    snapshots=str(run),
                    out=str(out),
                    policy=policy,
                    more=missing.clusters,
                    gaps=dict(missing.gaps),
                )
            except OSError as error:
                raise UsageProblem(f"{out}: {error.strerror or error}") from error
            yield results
    except (NoSnapshots, UnreadableSnapshots, ResultsDiffer, MalformedSummary) as problem:
        raise UsageProblem(str(problem)) from problem
    except (JavaMissing, SparkNotStarted) as problem:
        raise UsageProblem(str(problem)) from problem

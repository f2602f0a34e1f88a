"""From a live fleet or stored snapshots to a report: which engine judges, and where.

1. `local` judges in this process, `spark` on Spark; both ask the same rules.
2. What is not installed is named with the command that brings it.
3. A cluster that cannot be judged because of a defect of ours is UNKNOWN, and says so; the others
   are judged all the same.
4. Contents are compared by whoever reads the servers, which is this process, and kept beside the
   snapshots: so both engines judge the same, now and when the servers are gone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from gtid_audit.answers import Answer, InFiles, InMemory
from gtid_audit.content_fleet import compare_contents
from gtid_audit.content_memory import read_looks, write_looks
from gtid_audit.exits import UsageProblem
from gtid_audit.report import Engine, report_of
from topology.adapters.collect_fleet import Collected, CollectionFailed, Say, collect_fleet
from topology.adapters.inventory.fleet import Fleet
from topology.audit import audit_or_unknown, defect, unjudged
from topology.contents import ContentReading
from topology.findings import ClusterAudit
from topology.policy import Policy
from topology.snapshot import ClusterSnapshot

if TYPE_CHECKING:  # PySpark is imported only where it is used
    from spark_audit.adapters.results import Results

# Below this many clusters Spark would take longer to start than the local engine to finish.
SPARK_CLUSTERS_MIN: Final = 200_000
_ROWS_OF_A_PAIR: Final = 4  # two servers, two readings
INSTALL_SPARK: Final = "pip install 'gtid-audit[spark]'"


def engine_for(chosen: str, *, cluster_count: int) -> Engine:
    """Return the engine of a choice; `auto` is Spark from SPARK_CLUSTERS_MIN clusters on."""
    if chosen == "auto":
        return Engine.SPARK if cluster_count >= SPARK_CLUSTERS_MIN else Engine.LOCAL
    return Engine(chosen)


def audit_fleet(
    fleet: Fleet,
    *,
    store_in: Path | None = None,
    say: Say | None = None,
    content: bool | None = None,
) -> InMemory:
    """Read a fleet and judge it here; keep the snapshots in a directory if one is given.

    `content`: compare the content of transactions after every start of a server, or not at all;
    None compares after starts since the last look, and within the last day (content_due.py).
    """
    read = _collect(fleet, store_in, say, content)
    contents = read.contents or {}
    audits = [
        audit_or_unknown(snapshot, fleet.policy, contents.get(snapshot.cluster))
        for snapshot in read.snapshots
    ]
    report = report_of(Engine.LOCAL, [*audits, *read.failed])
    return InMemory(report, read.snapshots, read.contents)


@contextmanager
def answer_of_fleet(
    fleet: Fleet,
    *,
    engine: Engine,
    out: Path | None,
    say: Say | None = None,
    content: bool | None = None,
) -> Iterator[Answer]:
    """Read a fleet and judge it. With `out`, keep the snapshots and what Spark finds there.

    What Spark found can be read as long as the context lasts. Raises UsageProblem.
    """
    if engine is Engine.LOCAL:
        yield audit_fleet(fleet, store_in=out, say=say, content=content)
        return
    require_spark()
    with _directory_or_scratch(out) as directory:
        read = _collect(fleet, directory, say, content)
        if read.run is None:  # nothing was stored: there is nothing for Spark to judge
            yield InMemory(report_of(engine, read.failed), read.snapshots, read.contents)
            return
        with _on_spark(read.run, directory, fleet.policy, read.failed) as results:
            yield InFiles(results, kept=out is not None, contents=read.contents)


@contextmanager
def answer_of_stored(
    directory: Path, *, engine: Engine, policy: Policy, out: Path | None = None
) -> Iterator[Answer]:
    """Judge the latest stored snapshots below a directory. With `out`, keep what Spark finds there.

    What Spark found can be read as long as the context lasts. Raises UsageProblem.
    """
    require_parquet()
    if out is not None and engine is not Engine.SPARK:
        raise UsageProblem("results with their history are written by --engine spark")
    from spark_audit.adapters.local import audit_snapshots_locally
    from topology.adapters.parquet import NoSnapshots, UnreadableSnapshots, latest_run
    from topology.adapters.stored_contents import contents_of_run

    try:
        run = latest_run(directory)  # before Java is started for nothing
        contents = contents_of_run(run)
        if engine is not Engine.SPARK:
            audits = audit_snapshots_locally(run, policy=policy)
    except (NoSnapshots, UnreadableSnapshots) as problem:
        raise UsageProblem(str(problem)) from problem
    if engine is not Engine.SPARK:
        yield InMemory(report_of(engine, audits), contents=contents, is_stored=True)
        return
    with (
        _directory_or_scratch(out) as results_below,
        _on_spark(run, results_below, policy) as results,
    ):
        yield InFiles(results, kept=out is not None, contents=contents, is_stored=True)


def compare_and_store(
    fleet: Fleet,
    snapshots: Sequence[ClusterSnapshot],
    chosen: bool | None,
    *,
    store_in: Path | None,
    say: Say | None = None,
) -> tuple[Mapping[str, ContentReading] | None, Path | None]:
    """Compare contents where that is due, and keep all in a directory if one is given.

    Returns what was compared, by cluster (None: nobody was to look), and where the run is. What is
    kept tells the next time which servers have started since. Raises UsageProblem.
    """
    seen = read_looks(store_in) if store_in is not None else {}
    compared = compare_contents(fleet, snapshots, chosen, seen=seen, say=say)
    contents = None if compared is None else compared.readings
    if store_in is None or not snapshots:
        return contents, None
    run = store(store_in, snapshots, contents)
    if compared is not None:
        write_looks(store_in, {**seen, **compared.looks})
    return contents, run


def store(
    directory: Path,
    snapshots: Iterable[ClusterSnapshot],
    contents: Mapping[str, ContentReading] | None,
) -> Path:
    """Write snapshots, and what was compared, as one run; return its directory.

    Raises UsageProblem.
    """
    require_parquet()
    from topology.adapters.parquet import write_snapshots
    from topology.adapters.stored_contents import kept_beside

    try:
        return write_snapshots(directory, snapshots, beside=kept_beside(contents))
    except OSError as error:
        raise UsageProblem(f"{directory}: {error.strerror or error}") from error


def count_stored(directory: Path) -> int:
    """Return about how many clusters the latest run holds: two servers a cluster, two readings."""
    require_parquet()
    from pyarrow.parquet import read_metadata

    from topology.adapters.parquet import NoSnapshots, UnreadableSnapshots, files_of_run, latest_run

    try:
        files = files_of_run(latest_run(directory))
    except (NoSnapshots, UnreadableSnapshots) as problem:
        raise UsageProblem(str(problem)) from problem
    rows: int = sum(read_metadata(file).num_rows for file in files)
    return rows // _ROWS_OF_A_PAIR


def require_parquet() -> None:
    """Raise UsageProblem if stored snapshots cannot be read or written here."""
    _require("pyarrow", "stored snapshots need PyArrow")


def require_spark() -> None:
    """Raise UsageProblem if PySpark is not installed."""
    _require("pyspark", "--engine spark needs PySpark")


def _require(module: str, need: str) -> None:
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise UsageProblem(f"{need}, which is not installed: {INSTALL_SPARK}")


def _snapshots(collected: Iterable[Collected]) -> tuple[ClusterSnapshot, ...]:
    found = [each for each in collected if isinstance(each, ClusterSnapshot)]
    return tuple(sorted(found, key=lambda snapshot: snapshot.cluster))


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read of a fleet."""

    snapshots: tuple[ClusterSnapshot, ...]
    failed: tuple[ClusterAudit, ...]  # not to be read, by a defect of ours
    contents: Mapping[str, ContentReading] | None  # None: nobody was to look
    run: Path | None  # where it is stored


def _collect(fleet: Fleet, store_in: Path | None, say: Say | None, content: bool | None) -> _Read:
    """Read a fleet, and compare contents where that is due."""
    if store_in is not None:
        require_parquet()
    collected = list(collect_fleet(fleet, say=say))
    snapshots = _snapshots(collected)
    failed = tuple(_failed(each) for each in collected if isinstance(each, CollectionFailed))
    contents, run = compare_and_store(fleet, snapshots, content, store_in=store_in, say=say)
    return _Read(snapshots, failed, contents, run)


@contextmanager
def _directory_or_scratch(directory: Path | None) -> Iterator[Path]:
    if directory is not None:
        yield directory
        return
    with TemporaryDirectory(prefix="gtid-audit-") as scratch:
        yield Path(scratch)


@contextmanager
def _on_spark(
    run: Path, out: Path, policy: Policy, more: Sequence[ClusterAudit] = ()
) -> Iterator["Results"]:
    require_spark()
    from spark_audit.adapters.job import audit_stored
    from spark_audit.adapters.results import ResultsDiffer
    from spark_audit.adapters.session import JavaMissing, SparkNotStarted, local_session
    from spark_audit.summary import MalformedSummary
    from topology.adapters.parquet import NoSnapshots, UnreadableSnapshots

    try:
        with local_session() as session:
            try:
                results = audit_stored(
                    session, snapshots=str(run), out=str(out), policy=policy, more=more
                )
            except OSError as error:
                raise UsageProblem(f"{out}: {error.strerror or error}") from error
            yield results
    except (NoSnapshots, UnreadableSnapshots, ResultsDiffer, MalformedSummary) as problem:
        raise UsageProblem(str(problem)) from problem
    except (JavaMissing, SparkNotStarted) as problem:
        raise UsageProblem(str(problem)) from problem


def _failed(failed: CollectionFailed) -> ClusterAudit:
    assert failed.__cause__ is not None, "raised with its cause"
    return unjudged(failed.cluster, {defect(failed.cluster, failed.__cause__)})
